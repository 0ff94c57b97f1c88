package worklists

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// halfMute are partners of whom all are connected, and one never answers.
type halfMute struct {
	Peers
	mu    sync.Mutex // guards what follows
	asked map[workflow.PartnerID]int
	when  []time.Duration // when somebody who answers was asked
	begun time.Time
}

func (*halfMute) UpPeers() []workflow.PartnerID { return []workflow.PartnerID{"good", "mute"} }
func (*halfMute) Up(workflow.PartnerID) bool    { return true }

func (h *halfMute) Request(
	_ context.Context, p workflow.PartnerID, _ []string, _ string, _ []byte, wait time.Duration,
) ([]byte, error) {
	h.mu.Lock()
	h.asked[p]++
	h.mu.Unlock()
	if p == "mute" {
		time.Sleep(wait)
		return nil, errors.New("no answer")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.when = append(h.when, time.Since(h.begun))
	return []byte(`{}`), nil
}

type wallClock struct{}

func (wallClock) Now() moment.Now { return moment.Now{Wall: time.Now()} }

// A partner that does not answer keeps nobody else's work waiting: it is asked about the first of
// what it has to get, for as long as there is time, and others get theirs meanwhile.
func TestWhoDoesNotAnswerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &halfMute{asked: map[workflow.PartnerID]int{}, begun: time.Now()}
		d, err := New(Surroundings{
			Self: "here", Store: kvtest.New(), Clock: wallClock{}, Peers: peers, Waits: func() bool { return true },
			Publish: func(api.Event) {}, Gone: func(workflow.PartnerID) bool { return false },
			Evicted: func(workflow.PartnerID) bool { return false },
		})
		if err != nil {
			t.Fatal(err)
		}
		word, err := wire.EncodeSpoken(wire.Spoken{Says: []byte{1}, Word: []byte{2}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			at := []string{"mute", "good"}[i%2]
			if err := d.keep(&kept{
				User: "bia", Task: "weigh", Slot: fmt.Sprintf("weigh-%d", i), At: at, Word: word, Done: int64(i),
			}); err != nil {
				t.Fatal(err)
			}
		}
		d.deliver()
		if len(peers.when) != 10 || peers.when[9] > time.Second {
			t.Errorf("what waits for who answers was handed in at %v", peers.when)
		}
		if peers.asked["mute"] != 1 || len(d.allKept("")) != 10 {
			t.Errorf("who does not answer was asked %d times, and %d wait still", peers.asked["mute"],
				len(d.allKept("")))
		}
	})
}

// However long it takes to hand something in, the node is not asked to look again and again meanwhile; when it has
// ended, it looks at once for what still waits.
func TestALongDeliveryKeepsNoNodeBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &halfMute{asked: map[workflow.PartnerID]int{}, begun: time.Now()}
		var nudges atomic.Int64
		d, err := New(Surroundings{
			Self: "here", Store: kvtest.New(), Clock: bubbleClock{time.Now()}, Peers: peers,
			Waits: func() bool { return true }, Watched: func() bool { return false },
			Aside: func(fn func()) { go fn() }, Nudge: func() { nudges.Add(1) }, Publish: func(api.Event) {}, People: onlyBia{},
			Loads: noLoads{}, ConnectionTime: func(workflow.PartnerID) time.Duration { return time.Minute },
			Gone:    func(workflow.PartnerID) bool { return false },
			Evicted: func(workflow.PartnerID) bool { return false },
		})
		if err != nil {
			t.Fatal(err)
		}
		word, err := wire.EncodeSpoken(wire.Spoken{Says: []byte{1}, Word: []byte{2}})
		if err != nil {
			t.Fatal(err)
		}
		k := &kept{User: "bia", Task: "weigh", Slot: "weigh", At: "mute", Word: word, Done: 1}
		if err := d.keep(k); err != nil {
			t.Fatal(err)
		}
		looked := 0
		for begun := time.Now(); time.Since(begun) < time.Minute; looked++ {
			pause := d.Tick(d.in.Clock.Now())
			if pause == 0 {
				t.Fatalf("after %s it is to look again at once, for the %d. time", time.Since(begun), looked+1)
			}
			time.Sleep(min(pause, time.Second))
		}
		if nudges.Load() == 0 {
			t.Error("nobody wakes it when it has ended")
		}
		time.Sleep(time.Minute) // what was asked has ended
	})
}

// bubbleClock counts in the time of a test.
type bubbleClock struct{ begun time.Time }

func (c bubbleClock) Now() moment.Now {
	return moment.Now{Wall: time.Now(), Boot: time.Since(c.begun), Awake: time.Since(c.begun)}
}
