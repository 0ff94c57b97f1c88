package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// factBytes is how many bytes of facts were sent to a partner.
func (tm *team) factBytes(to string) (n int) {
	for _, c := range tm.f.sent(func(c carried) bool { return c.to == tm.p[to].id() }) {
		for _, fs := range c.m.Facts {
			for _, w := range fs.Facts {
				n += len(w.Raw)
			}
		}
	}
	return n
}

// question is what a member may say of an instance as often as it likes.
type question struct {
	name string
	ask  func(x *liar, i int) wire.Heads
}

var questions = []question{
	{"it has nothing", func(x *liar, _ int) wire.Heads { return wire.Heads{Mode: wire.Ask} }},
	{"answers that it has nothing", func(x *liar, _ int) wire.Heads { return wire.Heads{Mode: wire.Answer} }},
	{"each time a new incarnation", func(x *liar, i int) wire.Heads {
		return wire.Heads{Mode: wire.HeadsMode(i % 3), Incarnation: fact.Incarnation{byte(i), byte(i >> 8), 1}}
	}},
	{"now it has much, now nothing", func(x *liar, i int) wire.Heads {
		if i%2 == 0 {
			return wire.Heads{Mode: wire.Ask}
		}
		return wire.Heads{Mode: wire.Acknowledge, Heads: []fact.Head{x.genesis}}
	}},
}

// asks has a member ask so often within a minute, and tells how many bytes of facts it
// was sent for that.
func asks(t *testing.T, q question, times int) (sent int) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", eleven)
		tm.p["two"].hand.hold("k")
		id := tm.begin("one", "eleven", map[string]string{"p1": "one", "p2": "two", "p3": "one"})
		pass(2 * time.Minute)
		x := newLiar(tm, "two", id)
		before := tm.factBytes("two")
		tm.f.losing(func(from, _ workflow.PartnerID, m *wire.Message) bool { // its own node says no word of it
			return from == x.member.ID() && len(m.Heads) > 0
		})
		for i := range times {
			w := q.ask(x, i)
			w.Instance = x.instance
			frame, err := wire.Encode(&wire.Message{Heads: []wire.Heads{w}})
			if err != nil {
				t.Fatal(err)
			}
			tm.p["one"].node.OnFrame(x.member.ID(), frame)
			pass(time.Minute / time.Duration(times))
		}
		sent = tm.factBytes("two") - before
		tm.p["two"].hand.letAllGo()
	})
	return sent
}

// What a member says of what it has, however often, makes a node send an instance at most
// once more for each time that it does so anyhow for one that asks once and is silent.
func TestAsksCostNoMoreThanSilence(t *testing.T) {
	silence := asks(t, questions[0], 1)
	for _, q := range questions {
		t.Run(q.name, func(t *testing.T) {
			for _, times := range []int{10, 100, 1000} {
				if sent := asks(t, q, times); sent == 0 || sent > 2*silence {
					t.Errorf("asked %d times in a minute it sends %d bytes of facts, asked once %d", times, sent,
						silence)
				}
			}
		})
	}
}
