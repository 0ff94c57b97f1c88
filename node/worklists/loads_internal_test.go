package worklists

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// someLoads are what people have to do here, which a test changes, and what was heard.
type someLoads struct {
	noLoads
	own map[worklist.User]worklist.Load
	at  int
}

func (s *someLoads) Own(int) map[worklist.User]worklist.Load { return maps.Clone(s.own) }
func (s *someLoads) OwnAt() int                              { return s.at }

func (s *someLoads) set(u worklist.User, assigned int) {
	s.own[u], s.at = worklist.Load{Assigned: assigned}, s.at+1
	if assigned == 0 {
		delete(s.own, u)
	}
}

// setClock shows what a test sets.
type setClock struct{ now *moment.Now }

func (c *setClock) Now() moment.Now { return *c.now }

// A partner that is met is told all, and later what has changed, at most so often; what it did not hear is told once
// more, all of it. Nothing is told as long as nothing changes.
func TestPartnersAreToldHowMuchPeopleHaveToDo(t *testing.T) {
	d, peers, _ := afar(t)
	own := &someLoads{own: map[worklist.User]worklist.Load{}}
	now := moment.Now{Awake: time.Hour}
	d.in.Loads, d.in.Aside, d.in.Clock = own, func(fn func()) { fn() }, &setClock{&now}
	var told []string
	mute := map[workflow.PartnerID]bool{}
	for _, p := range []workflow.PartnerID{"near", "far"} {
		peers.answers[p] = func(protocol string, req []byte) any {
			if protocol != ProtocolLoads || mute[p] {
				return nil
			}
			m, err := wire.DecodeLoads(req)
			if err != nil {
				t.Fatal(err)
			}
			is := ""
			for _, x := range m.Of {
				is += fmt.Sprintf(" %s=%d", x.User, x.Assigned)
			}
			if m.All {
				is = " all" + is
			}
			told = append(told, string(p)+is)
			return "heard"
		}
	}
	passes := func(by time.Duration, want ...string) (next time.Duration) {
		t.Helper()
		now.Awake += by
		told = nil
		d.mindLoads(now)
		next = d.mindLoads(now) // the end of a round wakes the node
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("told was %q, want %q", told, want)
		}
		return next
	}
	const pause = 15 * time.Second / loadsPart
	passes(time.Hour)
	d.meetLoads("near")
	passes(0, "near all") // it may remember what this node said before it was started again
	d.meetLoads("near")
	passes(0)
	own.set("lia", 1)
	if next := passes(0); next != tellEvery {
		t.Errorf("what has changed is told after %s, want %s", next, tellEvery)
	}
	own.set("rui", 2)
	passes(tellEvery, "far all lia=1 rui=2", "near all lia=1 rui=2")
	own.set("rui", 3)
	if next := passes(tellEvery); next != pause-tellEvery {
		t.Errorf("what has changed once more is told after %s, want %s", next, pause-tellEvery)
	}
	passes(pause, "far rui=3", "near rui=3")
	d.meetLoads("near")
	passes(0, "near all lia=1 rui=3")
	own.set("lia", 1) // as it was
	passes(0)
	passes(pause)

	mute["far"] = true
	own.set("lia", 0)
	passes(0)
	if next := passes(pause, "near lia=0"); next != loadsAgain {
		t.Errorf("far is told once more after %s, want %s", next, loadsAgain)
	}
	mute["far"] = false
	passes(loadsAgain, "far all rui=3")
	own.set("rui", 0)
	passes(0)
	passes(pause, "far rui=0", "near rui=0")
	if next := passes(time.Hour); next != moment.Never {
		t.Errorf("with nothing to tell it is to be called again after %s", next)
	}
}

// What a partner says of that is bounded, as is how often, and what changed of something that is not known is refused.
func TestWhatPartnersSayOfLoads(t *testing.T) {
	d, _, _ := afar(t)
	says := func(m wire.Loads) error {
		req, err := wire.EncodeLoads(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.AnswerLoads("mal", req)
		return err
	}
	d.in.Loads = deaf{}
	if err := says(wire.Loads{}); !errors.Is(err, errSayAll) {
		t.Errorf("what is not taken in is answered by %v", err)
	}
	d.in.Loads = noLoads{}
	if _, err := d.AnswerLoads("mal", []byte("x")); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("of garbage it says %v", err)
	}
	err := error(nil)
	for i := 0; i < loadsRation.Burst && err == nil; i++ {
		err = says(wire.Loads{All: true})
	}
	if !errors.Is(err, errTooOften) {
		t.Errorf("a partner that says it again and again hears %v", err)
	}
}

// deaf takes nothing in.
type deaf struct{ noLoads }

func (deaf) Hear(workflow.PartnerID, bool, map[worklist.User]worklist.Load, int) bool { return false }
