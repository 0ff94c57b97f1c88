package node_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

// A member that publishes news that cannot be read is counted, and cut off.
func TestGarbageNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		before := tm.counter("two", "refused.news-malformed")
		if s := tm.partnerState("two", "one"); s != "active" {
			t.Fatalf("one is %s before", s)
		}
		tm.p["two"].node.OnNews(tm.p["one"].id(), []byte("garbage"))
		synctest.Wait()
		if n := tm.counter("two", "refused.news-malformed"); n != before+1 {
			t.Errorf("%d were counted", n-before)
		}
		if s := tm.partnerState("two", "one"); s == "active" {
			t.Error("its connection was not cut")
		}
	})
}

// Greetings that come too often are not answered, and counted by member; a node that
// was not answered asks again, and learns of all definitions in the end.
func TestGreetingsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		for i := range 5 {
			tm.add("one", small(i))
		}
		before := tm.counter("one", "sent.definitions")
		for range 400 {
			tm.p["two"].say(tm.p["one"], &wire.Message{Greeting: true})
		}
		if n := tm.counter("one", "sent.definitions") - before; n > 8*5 {
			t.Errorf("%d definitions answered 400 greetings", n)
		}
		if n := tm.counter("one", "refused.greetings-too-fast"); n < 390 {
			t.Errorf("%d greetings were refused", n)
		}
		tm.disconnect("one", "two")
		synctest.Wait()
		for i := range 5 {
			tm.add("one", small(10+i))
		}
		tm.connect("one", "two") // this greeting is not answered either
		synctest.Wait()
		tm.wantListed("two", 5)
		pass(3 * time.Minute)
		tm.wantListed("two", 10)
	})
}

// Definitions of one member that come faster than they may be read are put off, and
// read later.
func TestReadingIsRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.disconnect("one", "two")
		synctest.Wait()
		var doc [300 << 10]byte
		for i := range doc {
			doc[i] = 'x'
		}
		for i := range 20 { // 6 MiB
			tm.add("one", fmt.Sprintf("workflow: long-%d\ndoc: %s\ntasks: {a: {}}\n", i, doc))
		}
		tm.connect("one", "two")
		synctest.Wait()
		if n := len(tm.listed("two")); n < 10 || n > 14 {
			t.Errorf("%d of 20 were read at once, want 4 MiB of 6", n)
		}
		pass(6 * time.Minute)
		tm.wantListed("two", 20)
	})
}

// Digests of ended instances that differ again and again have those read at a limited
// rate only; what goes on is not kept waiting.
func TestComparisonsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", chain)
		work := map[string]string{"pa": "one", "pb": "two", "pc": "two"}
		id := tm.begin("one", "chain", work)
		tm.succeeds(id, time.Second, "one", "two")
		pass(time.Minute)
		const digests, paid = 1500, 1024
		asked := tm.counter("one", "sent.heads")
		for i := range digests {
			tm.p["two"].say(tm.p["one"], &wire.Message{Ended: []byte{byte(i), byte(i >> 8), 15: 1}})
		}
		if n := tm.counter("one", "sent.heads") - asked; n > 2*paid {
			t.Errorf("%d digests had it tell %d times what it has", digests, n)
		}
		if n := tm.counter("one", "refused.comparisons-too-fast"); n < digests-paid-1 {
			t.Errorf("%d comparisons were refused", n)
		}
		// It is no reason to suspect anybody: nodes in order ask for many after restarts.
		d, err := tm.p["one"].api.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings {
			if f.Check == "refused" && (f.State != api.FindingOK || !strings.Contains(f.What, "of two: ") ||
				!strings.Contains(f.What, "were put off")) {
				t.Errorf("doctor: %s %s → %s", f.State, f.What, f.Mend)
			}
		}
		tm.succeeds(tm.begin("one", "chain", work), time.Second, "one", "two")
	})
}
