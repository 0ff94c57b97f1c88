package testliar

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
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
	{"reversed", "6,000 facts in one frame, effects before causes; 20 times 1,000 of which the first is missing",
		reversed},
	{"instances", "12,000 running instances", instances(12_000, false)},
	{"ended-instances", "30,000 instances that have ended", instances(30_000, true)},
	{"definitions", "3 definitions of 6,000 tasks that ask for data that all of them write", definitions},
	{"many-definitions", "2,100 small definitions", manyDefinitions},
	{"names", "definitions that have the names of others' workflows", names},
	{"removals", "notices that take others' workflows off the list, numbered up to 2^32", removals},
	{"dense", "a definition of 400 tasks that wait for 60 each, and 10 instances of it", dense},
	{"greetings", "400 greetings, where 480 workflows are listed", greetings},
	{"times", "instances that began in the year 292 million, or before 1970", times},
	{"values", "instances whose input is no number, or of the wrong type", values},
	{"rollback", "heads of the victim's own chains that it has not written", rollback},
	{"reports", "reports of instances that began in the year 292 million", reports},
	{"asks", "an instance of 5,000 facts that has ended, asked for 50,000 times", asks},
	{"heads", "1,000,000 heads that nobody has, of an instance of 5,000 facts", heads},
	{"compared", "1,000 digests of ended instances that differ, where 250 are shared", compared},
	{"verdicts", "600 verdicts that each give 128 tasks to partners that do not exist", verdicts},
	{"clocks", "1,000 wall clocks of 1970, 2100, 9999 and of no year", clocks},
	{"garbage", "frames that are none, and partner records of noise", garbage},
	{"files", "60 instances that name 3,000 files, of which it gives nothing, something else, crumbs or too much; 20,000 requests for pieces", fileLies},
	{"words", "20,000 claims, results and orders in people's names, forged, replayed or its own, and requests for their work", words},
	{"news", "5 times 800 news by gossip that are none", news},
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
	mine := fact.AttemptID{Slot: "a"}
	ls := []lie{l.fact(id, 8, 1, fact.ID{}, genesis, fact.Body{Start: &fact.Start{Attempt: mine, Try: 1}})}
	for i := range share(5000, size) {
		last := ls[len(ls)-1]
		ls = append(ls, l.fact(id, 8, uint64(i+2), last.id, nil,
			fact.Body{Success: &fact.Success{Attempt: mine, Try: 1}}))
	}
	last := ls[len(ls)-1]
	for i := range share(500, size) {
		reason := fmt.Sprint("branch ", i)
		ls = append(ls, l.fact(id, 8, last.f.Seq+1, last.id, nil, fact.Body{Cancel: &fact.Cancel{Reason: reason}}))
	}
	l.tell(ctx, id, ls)
	var prev fact.ID
	var failed []lie
	for i := range share(500, size) {
		failed = append(failed, l.fact(id, 9, uint64(i+1), prev, genesis, fact.Body{Verdict: &fact.Verdict{
			Cause: fact.CauseReported, Actions: []fact.Action{{Attempt: mine, Kind: workflow.FailBlock}},
		}}))
		prev, genesis = failed[i].id, nil
	}
	l.tell(ctx, id, failed)
}

func reversed(ctx context.Context, l *Liar, size int) {
	id, genesis := l.instance(ctx)
	all := l.chain(id, 10, genesis, share(6000, size))
	slices.Reverse(all)
	whole := wire.Facts{Instance: id}
	att := fact.Attest([]fact.ID{all[0].id}, l.sign)[0] // it vouches for all before it
	for bytes := 0; len(whole.Facts) < len(all) &&
		bytes < wire.MaxFrame-4096; bytes += len(whole.Facts[len(whole.Facts)-1].Raw) + 8 {
		whole.Facts = append(whole.Facts, wire.Fact{Raw: all[len(whole.Facts)].raw})
	}
	whole.Facts[0].Att = att
	l.say(ctx, &wire.Message{Facts: []wire.Facts{whole}})
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
				ls = append(ls, l.after(id, g, fact.Body{Cancel: &fact.Cancel{Reason: strings.Repeat("x", 2000)}}))
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
	by := trust.Issuer{Mesh: l.who.Mesh, Key: l.who.Key, Chain: l.who.Chain}
	n, err := by.Announce(trust.Notice{
		Definition: def.Hash(), Name: def.Name, Author: l.who.ID(), Number: 1, At: trust.WallOf(time.Now()),
	})
	if err != nil {
		panic(err) // it is what any member may say
	}
	return wire.Definition{Notices: [][]byte{trust.EncodeNotice(n)}, Canonical: def.Canonical()}
}

func definitions(ctx context.Context, l *Liar, size int) {
	for i := range 3 {
		var b strings.Builder
		fmt.Fprintf(&b, "workflow: big-%d\ndata: {x: {type: integer}}\ntasks:\n", i)
		for k := range share(6000, size) {
			fmt.Fprintf(&b, "  t%d: {when: x > %d, out: [x]}\n", k, k%40) // as many conditions as are allowed
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

// Tomorrow is a workflow that a victim adds after the liar has said that it is off the
// list.
const Tomorrow = "workflow: tomorrow\ntasks:\n  a: {}\n"

// removals are of all workflows that the liar was told of, of one of its own, and of one
// that the victim has not added yet.
func removals(ctx context.Context, l *Liar, _ int) {
	l.say(ctx, &wire.Message{Greeting: true})
	select { // the answer is on its way
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	of := l.listed()
	for _, source := range []string{ownWorkflow, Tomorrow} {
		def, err := workflow.Parse("lie.yaml", []byte(source))
		if err != nil {
			panic(err) // it is ours
		}
		for _, author := range []workflow.PartnerID{l.who.ID(), l.victim} {
			of = append(of, trust.Notice{
				Definition: def.Hash(), Name: def.Name, Author: author, At: trust.WallOf(time.Now()),
			})
		}
	}
	by := trust.Issuer{Mesh: l.who.Mesh, Key: l.who.Key, Chain: l.who.Chain}
	for _, n := range of {
		n.Removed = true
		for _, number := range []uint64{1, 2, trust.MaxNotices, 1 << 32} {
			n.Number = number
			forged, _ := by.Announce(n) // it is refused here already
			all := [][]byte{trust.EncodeNotice(forged)}
			l.say(ctx, &wire.Message{Definitions: []wire.Definition{{Notices: all}}})
			if first := l.noticeOf(n); first != nil { // after what its author has said
				l.say(ctx, &wire.Message{Definitions: []wire.Definition{{Notices: append([][]byte{first}, all...)}}})
			}
		}
	}
}

// dense draws too many arrows, for whoever draws it.
func dense(ctx context.Context, l *Liar, size int) {
	var b strings.Builder
	b.WriteString("workflow: dense\ntasks:\n  t0: {type: manual}\n")
	for i := 1; i < share(400, size); i++ {
		fmt.Fprintf(&b, "  t%d: {type: manual, after: [", i)
		for k := max(i-60, 0); k < i; k++ {
			fmt.Fprintf(&b, "t%d, ", k)
		}
		b.WriteString("]}\n")
	}
	def, err := workflow.Parse("dense.yaml", []byte(b.String()))
	if err != nil {
		panic(err) // it is ours
	}
	l.Lists(ctx, def)
	for range share(10, size) {
		l.Begins(ctx, def, nil)
	}
}

func greetings(ctx context.Context, l *Liar, size int) {
	for range share(400, size) {
		l.say(ctx, &wire.Message{Greeting: true, Wall: time.Now().UnixMilli()})
	}
}

func times(ctx context.Context, l *Liar, _ int) {
	for _, at := range []int64{math.MaxInt64, math.MinInt64, -1, 253402300800000} {
		id, g := l.creates(l.def, func(f *fact.Fact) { f.At = at })
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g)}})
	}
}

func values(ctx context.Context, l *Liar, _ int) {
	for _, in := range []map[workflow.DataName]workflow.Value{
		{"n": math.NaN()}, {"n": math.Inf(1)}, {"n": "text"}, {"s": int64(3)}, {"nothing": "x"},
	} {
		id, g := l.creates(l.def, func(f *fact.Fact) { f.Body.Genesis.Input = in })
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g)}})
	}
}

// rollback claims that the chain of the instance's initiator, and one of the
// victim's own, go on.
func rollback(ctx context.Context, l *Liar, size int) {
	id, hs := l.instance(ctx)
	head := hs[0]
	for i := range share(100, size) {
		head.Seq, head.ID = uint64(100+i), fact.ID{1, byte(i)}
		l.say(ctx, &wire.Message{Heads: []wire.Heads{{Instance: id, Heads: []fact.Head{head}, Mode: wire.Ask}}})
	}
}

func reports(ctx context.Context, l *Liar, size int) {
	for i := range share(100, size) {
		l.say(ctx, &wire.Message{Reports: []wire.Report{{
			Instance: workflow.InstanceID{1, byte(i)}, Definition: l.def.Hash(), Workflow: "mine",
			State:   workflow.InstanceRunning,
			Started: math.MaxInt64, Ended: math.MinInt64, Tasks: 1, Facts: 1,
			Participants: []workflow.PartnerID{l.who.ID()},
		}}})
	}
}

// clocks say in turn what time it is.
func clocks(ctx context.Context, l *Liar, size int) {
	late := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for i := range share(1000, size) {
		at := []int64{math.MaxInt64, math.MinInt64, -1, wire.MaxWall, 1, late}[i%6]
		l.say(ctx, &wire.Message{Wall: at})
	}
	l.say(ctx, &wire.Message{Wall: late})
}

// news are signed by the liar, as all are. With the first the victim may cut it off: then
// they go on when it lets the liar in again.
func news(ctx context.Context, l *Liar, size int) {
	for round := range share(5, size) {
		l.say(ctx, &wire.Message{}) // it is connected
		for i := range share(800, size) {
			l.gossip.Publish(fmt.Appendf(nil, "no news %d %d", round, i))
			if i%20 == 0 { // more would not wait
				select {
				case <-ctx.Done():
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}
}

// News is one more of them. News reach only who is known to follow them when they are published, which a partner says
// shortly after it is connected: all of an attack may be lost.
func (l *Liar) News() { l.gossip.Publish(fmt.Appendf(nil, "no news %d", time.Now().UnixNano())) }

func garbage(ctx context.Context, l *Liar, size int) {
	for i := range share(100, size) {
		l.say(ctx, &wire.Message{
			Records: [][]byte{{byte(i)}}, Beats: [][]byte{{byte(i)}}, Election: [][]byte{{byte(i)}},
		})
		_ = l.mesh.Send(l.victim, []byte{wire.Version, 0xff, byte(i)}) // it may be cut off
	}
}

// long begins an instance of many facts, most of them of the liar's.
func (l *Liar) long(ctx context.Context, n int, end bool) workflow.InstanceID {
	id, g := l.creates(l.def, nil)
	ls := append([]lie{g}, l.chain(id, 7, []fact.Head{{Chain: g.f.Chain, Seq: 1, ID: g.id}}, n)...)
	if end {
		ls = append(ls, l.after(id, g, fact.Body{Cancel: &fact.Cancel{Reason: "no more"}}))
	}
	for i, part := 0, slices.Collect(slices.Chunk(ls, 700)); i < len(part); i++ {
		var definition []byte
		if i == 0 {
			definition = l.def.Canonical()
		}
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, definition, part[i]...)}})
	}
	return id
}

func asks(ctx context.Context, l *Liar, size int) {
	id := l.long(ctx, share(5000, size), true)
	for range share(100, size) {
		l.say(ctx, &wire.Message{Heads: slices.Repeat([]wire.Heads{{Instance: id, Mode: wire.Ask}}, 500)})
	}
}

func heads(ctx context.Context, l *Liar, size int) {
	id := l.long(ctx, share(5000, size), false)
	all := make([]fact.Head, wire.MaxHeads)
	for i := range all {
		all[i] = fact.Head{Chain: fact.Chain{
			Author: l.who.ID(), Incarnation: fact.Incarnation{byte(i), byte(i >> 8)},
		}, Seq: 9, ID: fact.ID{byte(i)}}
	}
	for range share(200, size) {
		l.say(ctx, &wire.Message{Heads: slices.Repeat([]wire.Heads{{Instance: id, Heads: all, Mode: wire.Ask}}, 5)})
	}
}

// compared are instances that the victim need not keep in memory, as the liar says
// that it has all of them.
func compared(ctx context.Context, l *Liar, size int) {
	for range share(250, size) {
		id, g := l.creates(l.def, nil)
		end := l.after(id, g, fact.Body{Cancel: &fact.Cancel{Reason: strings.Repeat("x", 2000)}})
		head := fact.Head{Chain: g.f.Chain, Seq: 2, ID: end.id}
		l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, l.def.Canonical(), g, end)}})
		l.say(ctx, &wire.Message{Heads: []wire.Heads{{Instance: id, Heads: []fact.Head{head}}}})
	}
	for i := range share(1000, size) {
		l.say(ctx, &wire.Message{Ended: []byte{byte(i), byte(i >> 8), 15: 1}})
	}
}

// verdicts give all work of some instances away, again and again: each is small for
// what follows from it.
func verdicts(ctx context.Context, l *Liar, size int) {
	const tasks = fact.MaxActions
	var b strings.Builder
	b.WriteString("workflow: given\ntasks:\n  b: {type: manual}\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  a%d: {type: manual, on-failure: {contingency: b}}\n", i)
	}
	def, err := workflow.Parse("given.yaml", []byte(b.String()))
	if err != nil {
		panic(err) // it is ours
	}
	for k := range 6 {
		id, g := l.creates(def, nil)
		ls := []lie{g}
		seen, prev := []fact.Head{{Chain: g.f.Chain, Seq: 1, ID: g.id}}, fact.ID{}
		for i := range share(100, size) {
			v := &fact.Verdict{Cause: fact.CauseTimeout}
			for t := range tasks {
				v.Actions = append(v.Actions, fact.Action{
					Attempt: fact.AttemptID{Slot: workflow.TaskName(fmt.Sprint("a", t))},
					Kind:    workflow.FailContingency, Task: "b",
					Partner: workflow.PartnerID(fmt.Sprint(k, "-", i, "-", t)),
				})
			}
			ls = append(ls, l.fact(id, 7, uint64(i+1), prev, seen, fact.Body{Verdict: v}))
			seen, prev = nil, ls[len(ls)-1].id
		}
		definition := def.Canonical()
		for part := range slices.Chunk(ls, 40) {
			if !l.say(ctx, &wire.Message{Facts: []wire.Facts{l.bundle(id, definition, part...)}}) {
				return
			}
			definition = nil
		}
	}
}
