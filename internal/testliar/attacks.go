package testliar

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Attack is what the liar does to its victim, for a while and then no more.
type Attack struct {
	Name string
	// Says in a few words what is sent at full size.
	Says string
	// Do attacks at a size of 1 to Whole.
	Do func(ctx context.Context, l *Liar, size int)
}

// Whole is the full size of an attack.
const Whole = 1000

// share is that part of n, at least 1.
func share(n, size int) int { return max(1, n*size/Whole) }

// Attacks are all of them.
var Attacks = []Attack{
	{"chains", "1,100 chains of one author, each a fact that says nothing", chains(1100)},
	{"many-chains", "20,000 chains of one author", chains(20_000)},
	{"facts", "200,000 facts of one author in one instance", facts},
	{"forks", "a chain of 5,000 successes of one attempt that ends in 500 branches, another of 500 failures", forks},
	{"reversed", "frames of 1,000 facts, effects before causes, of which the first is missing, 20 times", reversed},
	{"instances", "12,000 running instances", instances(12_000, false)},
	{"ended-instances", "30,000 instances that have ended", instances(30_000, true)},
	{"definitions", "3 definitions of 6,000 tasks that ask for data that all of them write", definitions},
	{"many-definitions", "2,100 small definitions", manyDefinitions},
	{"names", "definitions that have the names of others' workflows", names},
	{"greetings", "400 greetings", greetings},
	{"times", "instances that began in the year 292 million, or before 1970", times},
	{"values", "instances whose input is no number, or of the wrong type", values},
	{"rollback", "heads of the victim's own chains that it has not written", rollback},
	{"reports", "reports of instances that began in the year 292 million", reports},
	{"garbage", "frames that are none, and partner records of noise", garbage},
}

func chains(n int) func(context.Context, *Liar, int) {
	return func(ctx context.Context, l *Liar, size int) {
		id, genesis := l.instance(ctx)
		var ls []lie
		for i := range share(n, size) {
			ls = append(ls, l.chain(id, uint64(i+1)<<20, genesis, 1)...)
		}
		l.tell(ctx, id, ls)
	}
}

func facts(ctx context.Context, l *Liar, size int) {
	id, genesis := l.instance(ctx)
	l.tell(ctx, id, l.chain(id, 7, genesis, share(200_000, size)))
}

// forks are of a chain that says how the liar's own task went: it succeeded many
// times. In another chain it failed as often as it likes, and knew of no success.
func forks(ctx context.Context, l *Liar, size int) {
	id, genesis := l.instance(ctx)
	mine := choreo.AttemptID{Slot: "a"}
	ls := []lie{l.fact(id, 8, 1, choreo.FactID{}, genesis, choreo.Body{Start: &choreo.Start{Attempt: mine, Try: 1}})}
	for i := range share(5000, size) {
		last := ls[len(ls)-1]
		ls = append(ls, l.fact(id, 8, uint64(i+2), last.id, nil, choreo.Body{Success: &choreo.Success{Attempt: mine, Try: 1}}))
	}
	last := ls[len(ls)-1]
	for i := range share(500, size) {
		reason := fmt.Sprint("branch ", i)
		ls = append(ls, l.fact(id, 8, last.f.Seq+1, last.id, nil, choreo.Body{Cancel: &choreo.Cancel{Reason: reason}}))
	}
	l.tell(ctx, id, ls)
	var prev choreo.FactID
	var failed []lie
	for i := range share(500, size) {
		failed = append(failed, l.fact(id, 9, uint64(i+1), prev, genesis, choreo.Body{Verdict: &choreo.Verdict{
			Cause: choreo.CauseReported, Actions: []choreo.Action{{Attempt: mine, Kind: workflow.FailBlock}},
		}}))
		prev, genesis = failed[i].id, nil
	}
	l.tell(ctx, id, failed)
}

func reversed(ctx context.Context, l *Liar, size int) {
	id, genesis := l.instance(ctx)
	ls := l.chain(id, 9, genesis, 1001)[1:]
	slices.Reverse(ls)
	part := l.bundle(id, nil, ls...)
	for range share(20, size) {
		l.say(ctx, &wire.Message{Facts: []wire.Facts{part}})
	}
}

// instances are many of them, of the liar's own definition.
func instances(n int, ended bool) func(context.Context, *Liar, int) {
	return func(ctx context.Context, l *Liar, size int) {
		var parts []wire.Facts
		canonical := l.def.Canonical()
		for range share(n, size) {
			id, g := l.creates(l.def, nil)
			ls := []lie{g}
			if ended {
				ls = append(ls, l.after(id, g, choreo.Body{Cancel: &choreo.Cancel{Reason: strings.Repeat("x", 2000)}}))
			}
			parts = append(parts, l.bundle(id, canonical, ls...))
			canonical = nil
			if len(parts) == 100 {
				if !l.say(ctx, &wire.Message{Facts: parts}) {
					return
				}
				parts = nil
			}
		}
		l.say(ctx, &wire.Message{Facts: parts})
	}
}

// offers a definition to the mesh.
func (l *Liar) offers(ctx context.Context, source string) bool {
	def, err := workflow.Parse("lie.yaml", []byte(source))
	if err != nil {
		return true // it is refused here already
	}
	return l.say(ctx, &wire.Message{Definitions: []wire.Definition{l.definition(def)}})
}

// definition is one that the liar adds to what the mesh shares, with a proper notice.
func (l *Liar) definition(def *workflow.Definition) wire.Definition {
	by := membership.Issuer{Mesh: l.who.Mesh, Key: l.who.Key, Chain: l.who.Chain}
	n, err := by.Announce(membership.Notice{
		Definition: def.Hash(), Name: def.Name, Author: l.who.ID(), Number: 1, At: membership.WallOf(time.Now()),
	})
	if err != nil {
		panic(err) // it is what any member may say
	}
	return wire.Definition{Notices: [][]byte{membership.EncodeNotice(n)}, Canonical: def.Canonical()}
}

func definitions(ctx context.Context, l *Liar, size int) {
	for i := range 3 {
		var b strings.Builder
		fmt.Fprintf(&b, "workflow: big-%d\ndata: {x: {type: integer}}\ntasks:\n", i)
		for k := range share(6000, size) {
			fmt.Fprintf(&b, "  t%d: {when: x > %d, out: [x]}\n", k, k)
		}
		l.offers(ctx, b.String())
	}
}

func manyDefinitions(ctx context.Context, l *Liar, size int) {
	for i := range share(2100, size) {
		if !l.offers(ctx, fmt.Sprintf("workflow: small-%d\ntasks:\n  a: {}\n", i)) {
			return
		}
	}
}

// names are those of the workflows that the victims work by.
func names(ctx context.Context, l *Liar, _ int) {
	for _, name := range []string{"honest", "shared"} {
		l.offers(ctx, "workflow: "+name+"\nversion: 99\ntasks:\n  a: {type: manual}\n")
	}
}

func greetings(ctx context.Context, l *Liar, size int) {
	for range share(400, size) {
		l.say(ctx, &wire.Message{Greeting: true, Wall: time.Now().UnixMilli()})
	}
}

func times(ctx context.Context, l *Liar, _ int) {
	for _, at := range []int64{math.MaxInt64, math.MinInt64, -1, 253402300800000} {
		id, g := l.creates(l.def, func(f *choreo.Fact) { f.At = at })
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g)}})
	}
}

func values(ctx context.Context, l *Liar, _ int) {
	for _, in := range []map[workflow.DataName]workflow.Value{
		{"n": math.NaN()}, {"n": math.Inf(1)}, {"n": "text"}, {"s": int64(3)}, {"nothing": "x"},
	} {
		id, g := l.creates(l.def, func(f *choreo.Fact) { f.Body.Genesis.Input = in })
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g)}})
	}
}

// rollback claims that the chain of whoever made the instance, and one of the
// victim's own, go on.
func rollback(ctx context.Context, l *Liar, size int) {
	id, hs := l.instance(ctx)
	head := hs[0]
	for i := range share(100, size) {
		head.Seq, head.ID = uint64(100+i), choreo.FactID{1, byte(i)}
		l.say(ctx, &wire.Message{Heads: []wire.Heads{{Instance: id, Heads: []choreo.Head{head}, Mode: wire.Ask}}})
	}
}

func reports(ctx context.Context, l *Liar, size int) {
	for i := range share(100, size) {
		l.say(ctx, &wire.Message{Reports: []wire.Report{{
			Instance: workflow.InstanceID{1, byte(i)}, Definition: l.def.Hash(), Workflow: "mine", State: workflow.InstanceRunning,
			Started: math.MaxInt64, Ended: math.MinInt64, Tasks: 1, Facts: 1, Participants: []workflow.PartnerID{l.who.ID()},
		}}})
	}
}

func garbage(ctx context.Context, l *Liar, size int) {
	for i := range share(100, size) {
		l.say(ctx, &wire.Message{Records: [][]byte{{byte(i)}}, Beats: [][]byte{{byte(i)}}, Election: [][]byte{{byte(i)}}})
		_ = l.mesh.Send(l.victim, []byte{wire.Version, 0xff, byte(i)}) // it may be cut off
	}
}
