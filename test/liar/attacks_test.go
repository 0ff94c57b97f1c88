//go:build linux

package liar_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var whole = flag.Bool("whole", false, "attack at full size, as docs/security.md tells; else at a tenth")

// attack is what the liar does, for a while and then no more.
type attack struct {
	name string
	// says in a few words what is sent at full size.
	says string
	// do attacks at a size of 1 to 1000 thousandths.
	do func(l *liar, v *victims, size int)
	// anon is how much anonymous memory the victim may have had at most, in MiB.
	anon int64
	// checks says that do looks at the victim, too: it is for TestAttacks alone.
	checks bool
}

// share is that part of n, at least 1.
func share(n, size int) int { return max(1, n*size/1000) }

// attacks are all of them. Each ends by itself.
var attacks = []attack{
	{name: "chains", says: "1,100 chains of one author, each a fact that says nothing", anon: 100, do: chains(1100)},
	{name: "many-chains", says: "20,000 chains of one author", anon: 100, do: chains(20_000)},
	{name: "facts", says: "200,000 facts of one author in one instance", anon: 100, do: longChain(200_000)},
	{name: "forks", says: "a chain of 5,000 successes of one attempt that ends in 500 branches, another of 500 failures", anon: 100, do: forks},
	{name: "reversed", says: "frames of 1,000 facts, effects before causes, of which the first is missing, 20 times", anon: 100, do: reversed},
	{name: "instances", says: "12,000 running instances", anon: 100, do: instances(12_000, false)},
	{name: "ended-instances", says: "30,000 instances that have ended", anon: 100, do: instances(30_000, true)},
	{name: "definitions", says: "3 definitions of 6,000 tasks that ask for data that all of them write", anon: 100, do: definitions},
	{name: "many-definitions", says: "2,100 small definitions", anon: 100, do: manyDefinitions},
	{name: "greetings", says: "400 greetings", anon: 100, do: greetings},
	{name: "times", says: "an instance that began in the year 292 million", anon: 100, do: times},
	{name: "values", says: "an instance whose input is no number, or of the wrong type", anon: 100, do: values},
	{name: "rollback", says: "heads of the victim's own chains that it has not written", anon: 100, do: rollback, checks: true},
	{name: "reports", says: "reports of instances that began in the year 292 million", anon: 100, do: reports, checks: true},
}

// Whatever a lying member sends, the victim keeps within its means, and works.
func TestAttacks(t *testing.T) {
	size := 100
	if *whole {
		size = 1000
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			v := newVictims(t)
			id := v.begins()
			l := newLiar(t.Context(), t, v)
			l.knows(id)
			m := measure(v.ana)
			begun := time.Now()
			a.do(l, v, size)
			v.idles()
			if _, err := v.ana.API.Show(t.Context(), id); err != nil {
				t.Errorf("ana cannot show her instance: %v", err)
			}
			list, err := v.ana.API.Instances(t.Context(), true)
			if err != nil {
				t.Errorf("ana cannot list instances: %v", err)
			}
			for _, in := range list[:min(len(list), 20)] {
				if _, err := v.ana.API.Show(t.Context(), in.ID); err != nil {
					t.Errorf("ana cannot show instance %s of those that she lists: %v", in.ID, err)
				}
			}
			u := m.ends()
			t.Logf("%s: %d frames in %s; ana used %s", a.says, l.sent, time.Since(begun).Round(time.Second), u)
			if u.anon > a.anon {
				t.Errorf("%d MiB anonymous memory, at most %d", u.anon, a.anon)
			}
			v.holds()
		})
	}
}

// idles waits until ana has dealt with what it was sent: it uses little for a while.
func (v *victims) idles() {
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		before := cpuOf(v.ana.Process.Pid)
		<-time.After(time.Second)
		if cpuOf(v.ana.Process.Pid)-before < 300*time.Millisecond {
			return
		}
	}
	v.t.Error("ana is still busy three minutes later")
}

// taking is the instance in which the liar takes part: it is told a genesis.
func (l *liar) taking(v *victims) (workflow.InstanceID, []choreo.Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, hs := range l.heads {
		if len(hs) > 0 {
			return id, hs[:1]
		}
	}
	l.t.Fatal("the liar takes part in nothing")
	return workflow.InstanceID{}, nil
}

func chains(n int) func(*liar, *victims, int) {
	return func(l *liar, v *victims, size int) {
		id, genesis := l.taking(v)
		var ls []lie
		for i := range share(n, size) {
			ls = append(ls, l.chain(id, uint64(i+1)<<20, genesis, 1)...)
		}
		l.tell(id, ls)
	}
}

func longChain(n int) func(*liar, *victims, int) {
	return func(l *liar, v *victims, size int) {
		id, genesis := l.taking(v)
		l.tell(id, l.chain(id, 7, genesis, share(n, size)))
	}
}

// forks are of a chain that says how the liar's own task went: it succeeded many
// times. In another chain it failed as often as it likes, and knew of no success.
func forks(l *liar, v *victims, size int) {
	id, genesis := l.taking(v)
	mine := choreo.AttemptID{Slot: "c"}
	ls := []lie{l.fact(id, 8, 1, choreo.FactID{}, genesis, choreo.Body{Start: &choreo.Start{Attempt: mine, Try: 1}})}
	for i := range share(5000, size) {
		last := ls[len(ls)-1]
		ls = append(ls, l.fact(id, 8, uint64(i+2), last.id, nil, choreo.Body{Success: &choreo.Success{Attempt: mine, Try: 1}}))
	}
	last := ls[len(ls)-1]
	for i := range share(500, size) {
		ls = append(ls, l.fact(id, 8, last.f.Seq+1, last.id, nil, choreo.Body{Cancel: &choreo.Cancel{Reason: fmt.Sprint("branch ", i)}}))
	}
	l.tell(id, ls)
	var prev choreo.FactID
	var failed []lie
	for i := range share(500, size) {
		failed = append(failed, l.fact(id, 9, uint64(i+1), prev, genesis, choreo.Body{Verdict: &choreo.Verdict{
			Cause: choreo.CauseReported, Actions: []choreo.Action{{Attempt: mine, Kind: workflow.FailBlock}},
		}}))
		prev, genesis = failed[i].id, nil
	}
	l.tell(id, failed)
}

func reversed(l *liar, v *victims, size int) {
	id, genesis := l.taking(v)
	ls := l.chain(id, 9, genesis, 1001)[1:]
	for i, j := 0, len(ls)-1; i < j; i, j = i+1, j-1 {
		ls[i], ls[j] = ls[j], ls[i]
	}
	part := l.bundle(id, nil, ls...)
	for range share(20, size) {
		l.say(&wire.Message{Facts: []wire.Facts{part}})
	}
}

func (l *liar) parsed(source string) *workflow.Definition {
	def, err := workflow.Parse("lie.yaml", []byte(source))
	if err != nil {
		l.t.Fatal(err)
	}
	return def
}

// instances are many of them, of the liar's own definition.
func instances(n int, ended bool) func(*liar, *victims, int) {
	return func(l *liar, v *victims, size int) {
		def := l.parsed("workflow: mine\ntasks:\n  a: {type: manual}\n  b: {type: manual}\npartitions:\n  mine: [a]\n  yours: [b]\n")
		var parts []wire.Facts
		for i := range share(n, size) {
			id, g := l.creates(def, nil)
			ls := []lie{g}
			if ended {
				ls = append(ls, l.fact2(id, g, choreo.Body{Cancel: &choreo.Cancel{Reason: strings.Repeat("x", 2000)}}))
			}
			var canonical []byte
			if i == 0 {
				canonical = def.Canonical()
			}
			parts = append(parts, l.bundle(id, canonical, ls...))
			if len(parts) == 100 {
				if !l.say(&wire.Message{Facts: parts}) {
					return
				}
				parts = nil
			}
		}
		l.say(&wire.Message{Facts: parts})
	}
}

// fact2 follows a genesis in its chain.
func (l *liar) fact2(id workflow.InstanceID, g lie, b choreo.Body) lie {
	return l.encoded(&choreo.Fact{Format: choreo.FormatFact, Instance: id, Chain: g.f.Chain, Seq: 2, Prev: g.id, At: time.Now().UnixMilli(), Body: b})
}

func definitions(l *liar, v *victims, size int) {
	for i := range 3 {
		var b strings.Builder
		fmt.Fprintf(&b, "workflow: big-%d\ndata: {x: {type: integer}}\ntasks:\n", i)
		for k := range share(6000, size) {
			fmt.Fprintf(&b, "  t%d: {when: x > %d, out: [x]}\n", k, k)
		}
		def := l.parsed(b.String())
		l.say(&wire.Message{Definitions: []wire.Definition{{Stamp: wire.DefinitionStamp{Hash: def.Hash(), Edit: 1}, Canonical: def.Canonical()}}})
	}
}

func manyDefinitions(l *liar, v *victims, size int) {
	for i := range share(2100, size) {
		def := l.parsed(fmt.Sprintf("workflow: small-%d\ntasks:\n  a: {}\n", i))
		l.say(&wire.Message{Definitions: []wire.Definition{{Stamp: wire.DefinitionStamp{Hash: def.Hash(), Edit: 1}, Canonical: def.Canonical()}}})
	}
}

func greetings(l *liar, v *victims, size int) {
	for range share(400, size) {
		l.say(&wire.Message{Greeting: true, Wall: time.Now().UnixMilli()})
	}
}

func times(l *liar, v *victims, _ int) {
	def := l.parsed("workflow: mine\ntasks:\n  a: {type: manual}\n  b: {type: manual}\npartitions:\n  mine: [a]\n  yours: [b]\n")
	for _, at := range []int64{math.MaxInt64, math.MinInt64, -1, 253402300800000} {
		id, g := l.creates(def, func(f *choreo.Fact) { f.At = at })
		l.say(&wire.Message{Facts: []wire.Facts{l.bundle(id, def.Canonical(), g)}})
	}
}

func values(l *liar, v *victims, _ int) {
	def := l.parsed("workflow: mine\ndata: {n: {type: number}, s: {type: string}}\ntasks:\n  a: {type: manual, in: [n, s]}\n  b: {type: manual}\npartitions:\n  mine: [a]\n  yours: [b]\n")
	for _, in := range []map[workflow.DataName]workflow.Value{
		{"n": math.NaN()}, {"n": math.Inf(1)}, {"n": "text"}, {"s": int64(3)}, {"nothing": "x"},
	} {
		id, g := l.creates(def, func(f *choreo.Fact) { f.Body.Genesis.Input = in })
		l.say(&wire.Message{Facts: []wire.Facts{l.bundle(id, def.Canonical(), g)}})
	}
}

func rollback(l *liar, v *victims, size int) {
	id, hs := l.taking(v)
	st, err := v.ana.API.Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	head := hs[0]
	for i := range share(100, size) {
		head.Seq, head.ID = uint64(100+i), choreo.FactID{1, byte(i)}
		l.say(&wire.Message{Heads: []wire.Heads{{Instance: id, Heads: []choreo.Head{head}, Mode: wire.Ask}}})
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	<-time.After(2 * time.Second)
	now, err := v.ana.API.Status(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	if now.Incarnation != st.Incarnation {
		l.t.Error("a mere claim made ana take a new incarnation")
	}
	e, err := v.ana.API.Electorate(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, x := range e.Voters {
		if x.Name == "ana" && !x.Current {
			l.t.Error("a mere claim cost ana her vote")
		}
	}
}

func reports(l *liar, v *victims, size int) {
	if _, err := v.ana.API.Elect(l.t.Context(), api.ElectRequest{}); err != nil { // only a coordinator is told
		l.t.Fatal(err)
	}
	def := l.parsed("workflow: mine\ntasks:\n  a: {type: manual}\npartitions:\n  mine: [a]\n")
	for i := range share(100, size) {
		l.say(&wire.Message{Reports: []wire.Report{{
			Instance: workflow.InstanceID{1, byte(i)}, Definition: def.Hash(), Workflow: "mine", State: workflow.InstanceRunning,
			Started: math.MaxInt64, Ended: math.MinInt64, Tasks: 1, Facts: 1, Participants: []workflow.PartnerID{l.who.ID()},
		}}})
	}
}
