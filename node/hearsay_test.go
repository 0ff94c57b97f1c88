package node_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// In a line of partners, of which only neighbours can reach each other, everybody
// stays listed by what the others pass on. When the last one dies, nobody lists it
// for longer than its connectionTime, however it was heard of.
func TestNewsOfWhoIsOutOfReachCountsFromWhenItWasTold(t *testing.T) {
	const connectionTime = 15 * time.Second
	names := []string{"one", "two", "three", "four", "five"}
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = connectionTime }, names...)
		for i := range names {
			for j := range i - 1 {
				tm.disconnect(names[i], names[j])
			}
		}
		for range 20 * 60 {
			pass(time.Second)
			for _, at := range names {
				for _, of := range names {
					if s := tm.partnerState(at, of); s == "expired" {
						t.Fatalf("%s takes %s for expired, which is at work %s after the start", at, of,
							time.Duration(elapsed())*time.Millisecond)
					}
				}
			}
		}
		tm.p["five"].crash()
		pass(connectionTime)
		for _, at := range names[:4] {
			if s := tm.partnerState(at, "five"); s != "expired" {
				t.Errorf("%s takes five for %s, a connectionTime after it died", at, s)
			}
		}
	})
}

// say has a partner's process send another a message of the test's own, which
// arrives.
func (p *partner) say(to *partner, m *wire.Message) {
	p.t.Helper()
	frame, err := wire.Encode(m)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.plug.Send(to.id(), frame); err != nil {
		p.t.Fatal(err)
	}
	synctest.Wait()
}

// Three passes every beat of two on before two's own arrives, and says that it is
// old. One has it from two as well, so it is not.
func TestWhoPassesBeatsOnCannotMakeTheirAuthorOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 15 * time.Second }, "one", "two", "three")
		one, two, three := tm.p["one"], tm.p["two"], tm.p["three"]
		var late [][]byte
		delay := func(from, to workflow.PartnerID, m *wire.Message) bool {
			if from != two.id() || to != one.id() {
				return false
			}
			late = append(late, m.Beats...)
			return len(m.Beats) > 0 || m.Pulse != nil
		}
		for range 120 {
			tm.f.losing(delay)
			pass(time.Second)
			beats := late
			late = nil
			tm.f.losing(nil)
			for _, b := range beats {
				beat, err := membership.DecodeBeat(b)
				if err != nil {
					t.Fatal(err)
				}
				beat.Partner = two.id()
				three.say(one, &wire.Message{Beats: [][]byte{membership.EncodeBeat(beat)}, Ages: []uint64{wire.MaxAge}})
				two.say(one, &wire.Message{Beats: [][]byte{b}})
			}
			synctest.Wait()
			if s := tm.partnerState("one", "two"); s != "active" {
				t.Fatalf("one takes two for %s, of which it hears itself", s)
			}
		}
	})
}

// Three passes every record of two on before two's own arrives, and says that it is
// old. One has it from two as well, so it is not.
func TestWhoPassesRecordsOnCannotMakeTheirAuthorOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) { c.ConnectionTime = 15 * time.Second }, "one", "two", "three")
		one, two, three := tm.p["one"], tm.p["two"], tm.p["three"]
		var late [][]byte
		delay := func(from, to workflow.PartnerID, m *wire.Message) bool {
			if from != two.id() || to != one.id() {
				return from == three.id() && to == one.id() && len(m.Records)+len(m.Beats) > 0
			}
			late = append(late, m.Records...)
			return len(m.Records)+len(m.Beats) > 0 || m.Pulse != nil
		}
		told := 0
		for i := range 60 {
			tm.f.losing(delay)
			is := []string{fmt.Sprint("is-", i)}
			if _, err := two.api.SetProfile(t.Context(), api.ProfileChange{Capabilities: &is}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
			records := late
			late = nil
			tm.f.losing(nil)
			for _, r := range records {
				told++
				three.say(one, &wire.Message{Records: [][]byte{r}, Ages: []uint64{wire.MaxAge}})
				two.say(one, &wire.Message{Records: [][]byte{r}})
			}
			if s := tm.partnerState("one", "two"); s != "active" {
				t.Fatalf("after %d s one takes two for %s, of which it hears itself", i, s)
			}
		}
		if told < 30 {
			t.Fatalf("only %d records of two were passed on: nothing was tested", told)
		}
	})
}
