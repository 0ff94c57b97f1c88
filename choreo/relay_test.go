package choreo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// weightOf is about how many bytes the facts of a bundle take in a frame, without
// their attestations.
func weightOf(b *Bundle) (n int) {
	for _, o := range b.Facts {
		n += len(o.e.Raw) + 16
	}
	return n
}

// offline has ann and bob work each for itself, out of each other's reach, and then
// meet cy one after the other. Each chain is attested where a letter of its author
// ended, nowhere else.
func offline(t *testing.T, def string, work func(w *mesh)) *mesh {
	w := newMesh(t, parse(t, def))
	w.limit = 192 << 10
	at := map[workflow.PartitionName]workflow.PartnerID{"pa": "ann", "pb": "bob", "pz": "cy"}
	if err := w.start("ann", w.genesis(at, "ann", "bob", "cy", "dan")); err != nil {
		t.Fatal(err)
	}
	for _, l := range w.mail {
		w.deliver(l)
	}
	w.mail = nil
	work(w)
	w.mail = nil
	for _, x := range []workflow.PartnerID{"ann", "bob"} {
		w.meet(x, "cy")
		for len(w.mail) > 0 {
			l := w.mail[0]
			w.mail = w.mail[1:]
			if l.to == x || l.to == "cy" {
				w.deliver(l)
			}
		}
	}
	return w
}

// TestRelayOfTwoWhoWorkedOffline: a node that relays what two others did side by side
// sends it in bundles of the usual size, although hardly ever both chains are attested at
// once.
func TestRelayOfTwoWhoWorkedOffline(t *testing.T) {
	small := func(n int) string {
		var tasks strings.Builder
		var p [2][]string
		for i := range n {
			name := fmt.Sprintf("t%d%s", i, []string{"", "-of-bob"}[i%2])
			fmt.Fprintf(&tasks, "  %s: {}\n", name)
			p[i%2] = append(p[i%2], name)
		}
		return fmt.Sprintf("workflow: small\ntasks:\n%s  z: {type: manual}\npartitions:\n  pa: [%s]\n  pb: [%s]\n  pz: [z]\n", tasks.String(), strings.Join(p[0], ", "), strings.Join(p[1], ", "))
	}
	large := func(n int) string {
		var tasks strings.Builder
		var p [2][]string
		for i := range n {
			for k := range 2 {
				name, after := fmt.Sprintf("t%d%c", i, 'a'+k), ""
				if i > 0 {
					after = fmt.Sprintf("after: t%d%c, ", i-1, 'a'+k)
				}
				fmt.Fprintf(&tasks, "  %s: {%stype: manual, out: [%c]}\n", name, after, 'x'+k)
				p[k] = append(p[k], name)
			}
		}
		return fmt.Sprintf("workflow: large\ndata: {x: {type: string}, y: {type: string}}\ntasks:\n%s  z: {type: manual}\npartitions:\n  pa: [%s]\n  pb: [%s]\n  pz: [z]\n",
			tasks.String(), strings.Join(p[0], ", "), strings.Join(p[1], ", "))
	}
	for _, c := range []struct {
		what, def string
		work      func(w *mesh)
	}{
		{"4,000 small tasks each", small(8000), func(w *mesh) {
			for _, id := range []workflow.PartnerID{"ann", "bob"} {
				n, done := w.nodes[id], []fact.Body(nil)
				for _, a := range n.running() {
					done = append(done, fact.Body{Success: &fact.Success{Attempt: a, Try: 1}})
				}
				n.m.insertBodies(t, done)
				w.step(n)
			}
		}},
		{"40 results of 23 to 30 KB each", large(40), func(w *mesh) {
			for i := range 40 {
				for k, id := range []workflow.PartnerID{"ann", "bob"} {
					data := map[workflow.DataName]workflow.Value{
						workflow.DataName(rune('x' + k)): strings.Repeat("x", []int{30_000, 23_000}[k]),
					}
					if err := w.nodes[id].m.Finish(workflow.TaskName(fmt.Sprintf("t%d%c", i, 'a'+k)),
						Result{Outputs: data}, w.moment(), w); err != nil {
						w.t.Fatal(err)
					}
					w.step(w.nodes[id])
					w.mail = nil
				}
			}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := offline(t, c.def, c.work)
			cy, dan := w.nodes["cy"], w.nodes["dan"]
			if cy.m.Len() < 160 {
				t.Fatalf("cy has %d facts only", cy.m.Len())
			}
			w.sent = func(l letter, b *Bundle) {
				if n := weightOf(b); l.from == "cy" && n > 2*w.limit {
					t.Errorf("a bundle of %d facts takes %d bytes, the limit is %d", len(b.Facts), n, w.limit)
				}
			}
			cy.m.Restate("dan", dan.inc, dan.m.Heads())
			w.mail = nil
			w.send(cy, "dan")
			for len(w.mail) > 0 {
				l := w.mail[0]
				w.mail = w.mail[1:]
				if l.to == "dan" {
					w.deliver(l)
				}
			}
			if len(dan.errs) > 0 || dan.m.Len() != cy.m.Len() {
				t.Errorf("dan has %d of %d facts; errors %v", dan.m.Len(), cy.m.Len(), dan.errs)
			}
		})
	}
}

// TestBundlesAreNoLargerThanTheyCame: in random histories a bundle is within the limit, or
// a single fact, or no larger than some bundle that its sender had received; and in each
// of its chains the last fact is attested.
func TestBundlesAreNoLargerThanTheyCame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := diceOf(rt)
		w := randomMesh(t, d)
		came := map[workflow.PartnerID]int{}
		w.sent = func(l letter, b *Bundle) {
			n, single, intro := weightOf(b), 0, 0
			covered := map[fact.ID]bool{}
			for _, o := range b.Facts {
				covered[o.e.Fact.Prev] = true
				if o.e.Fact.Body.BringsIn() && o.e != w.nodes[l.from].m.log.Genesis() {
					intro += len(o.e.Raw) + 16 // it may go beyond the limit
				}
				if m := w.nodes[l.from].m; m.mine(o.e) {
					single = max(single, len(o.e.Raw)+16)
				}
			}
			if n > max(w.limit, single, came[l.from])+intro {
				rt.Fatalf("%s sends %d facts of %d bytes; the limit is %d, the largest bundle that it had %d", l.from,
					len(b.Facts), n, w.limit, came[l.from])
			}
			for _, o := range b.Facts {
				if o.e.Att == nil && (!covered[o.e.ID] || o.e.Fact.Body.BringsIn()) {
					rt.Fatalf("%s sends a %s fact that nothing attests", l.from, o.e.Fact.Body.Kind())
				}
			}
			came[l.to] = max(came[l.to], n)
		}
		for range 40 + d(60) {
			w.randomStep(d)
		}
	})
}

// TestWhoComesLateSeesThatAtOnce: a node that is given work after more has happened
// than fits into a bundle sees in the first one that it takes part, and that its
// sender does.
func TestWhoComesLateSeesThatAtOnce(t *testing.T) {
	var tasks, done strings.Builder
	for i := range 20 {
		fmt.Fprintf(&tasks, "  t%d: {type: manual, out: [x]}\n", i)
		fmt.Fprintf(&done, "t%d, ", i)
	}
	w := newMesh(t, parse(t, "workflow: long\ndata: {x: {type: string}}\ntasks:\n"+tasks.String()+
		"  y: {type: manual}\n  z: {type: manual}\npartitions:\n  pa: ["+done.String()+"y, z]\n"))
	w.limit = 4 << 10
	w.takers = map[workflow.TaskName]workflow.PartnerID{"y": "bob", "z": "bob"}
	if err := w.start("ann", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"pa": "ann"}, "ann")); err != nil {
		t.Fatal(err)
	}
	ann := w.nodes["ann"]
	for i := range 20 {
		res := Result{Outputs: map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", 1000)}}
		if err := ann.m.Finish(workflow.TaskName(fmt.Sprintf("t%d", i)), res, w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(ann)
	}
	first := map[workflow.PartnerID]*Bundle{}
	w.sent = func(l letter, b *Bundle) {
		if first[l.to] == nil {
			first[l.to] = b
		}
	}
	reject := func(by workflow.PartnerID, task workflow.TaskName) {
		t.Helper()
		if _, err := w.nodes[by].m.Reject(task, "no time", w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(w.nodes[by])
	}
	reject("ann", "y")
	reject("ann", "z")
	w.stabilize(false)
	w.takers["z"] = "cy" // whom bob tells, and ann cannot reach
	w.paused = map[workflow.PartnerID]bool{"ann": true}
	reject("bob", "z")
	w.stabilize(false)
	for _, who := range []workflow.PartnerID{"bob", "cy"} {
		n := w.node(who)
		if n.m == nil || n.m.Len() < ann.m.Len() || !n.m.Participates(who) {
			t.Errorf("%s does not have what ann has: %v", who, n.errs)
		}
		if b := first[who]; !b.More {
			t.Errorf("all fits into the first bundle for %s: the test shows nothing", who)
		}
	}
}

// TestWhoeverElseBroughtANewcomerIn: a partner that is given work by an honest participant
// gets in, in a bundle of the usual size, although a liar had given it work before, and by
// its last fact attested a whole bundle.
func TestWhoeverElseBroughtANewcomerIn(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: heavy\ntasks: {a: {type: manual}, x: {type: manual}}\npartitions: {pa: [a], px: [x]}\n"))
	w.limit = 192 << 10
	if err := w.start("ann", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"pa": "ann", "px": "lou"}, "ann",
		"lou")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	ann := w.nodes["ann"]
	lou, size := w.as("lou", ann.m), 0
	var run []fact.Received
	add := func(b fact.Body) {
		f := encoded(t, lou.mustAppend(w.moment(), b).Fact)
		run, size = append(run, f), size+len(f.Raw)
	}
	lie := func(n int) fact.Body {
		out := map[workflow.DataName]workflow.Value{"lie": strings.Repeat("x", n)}
		return fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Slot: "x"}, Try: 1, Outputs: out}}
	}
	add(fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "x"}, Task: "x", Partner: "new"},
		Annex: &fact.Annex{Rejected: "no"}})
	add(lie(fact.MaxFact - 1<<10))
	before := size
	add(lie(128 << 10))
	rest := fact.MaxBundle - size - (size - before - 128<<10)
	add(lie(rest))
	if size != fact.MaxBundle {
		t.Fatalf("lou's bundle has %d bytes, want %d", size, fact.MaxBundle)
	}
	run[len(run)-1].Att = &fact.Attestation{Sig: make([]byte, 64)}
	if n, err := ann.m.Receive("lou", run); n != len(run) || err != nil || !ann.m.Participates("new") {
		t.Fatalf("ann took %d facts: %v", n, err)
	}
	w.step(ann)
	first := func() []fact.Received {
		ann.m.Forget("new")
		var facts []fact.Received
		size := 0
		for _, o := range ann.m.Outgoing("new", w.limit, w.moment()).Facts {
			facts = append(facts, fact.Received{Fact: o.e.Fact, ID: o.e.ID, Raw: o.e.Raw})
			size += len(o.e.Raw)
		}
		if size > fact.MaxBundle || facts[0].Fact.Body.Genesis == nil {
			t.Errorf("the first bundle has %d bytes and begins with a %s fact: want at most %d, and the genesis", size,
				facts[0].Fact.Body.Kind(), fact.MaxBundle)
		}
		return facts
	}
	first()
	w.takers = map[workflow.TaskName]workflow.PartnerID{"a": "new"}
	if _, err := ann.m.Reject("a", "no time", w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.step(ann)
	m, err := Open(Self{Partner: "new", Incarnation: fact.Incarnation{2}, Trust: testTrust{}}, w.def, w.plan,
		first()[0])
	if err != nil {
		t.Fatal(err)
	}
	if !m.BringsIn("new", first()) {
		t.Error("it does not see that ann gave it work")
	}
}

// TestIntroductionIsTheLightest: of several ways in which somebody came to take part, that
// of the fewest bytes is shown, though it has more steps and came later.
func TestIntroductionIsTheLightest(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: rows\ntasks: {b: {type: manual}, x: {type: manual}}\npartitions: {pb: [b], px: [x]}\n"))
	if err := w.start("ann", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"pb": "ann", "px": "lou"}, "ann",
		"lou")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	ann := w.nodes["ann"]
	passOn := func(by, to workflow.PartnerID) {
		t.Helper()
		w.takers = map[workflow.TaskName]workflow.PartnerID{"b": to}
		if _, err := w.nodes[by].m.Reject("b", "no time", w.moment(), w); err != nil {
			t.Fatal(err)
		}
		w.step(w.nodes[by])
		w.stabilize(false)
	}
	check := func(want ...string) {
		t.Helper()
		var shown []string
		for _, e := range ann.m.introduction("new", log.Vector{}) {
			shown = append(shown, string(e.Fact.Chain.Author)+" to "+string(e.Fact.Body.Assign.Partner))
		}
		if !slices.Equal(shown, want) {
			t.Errorf("shown: %q, want %q", shown, want)
		}
	}
	lie := fact.Body{
		Assign: &fact.Assign{After: fact.AttemptID{Slot: "x"}, Task: "x", Partner: "new"},
		Annex:  &fact.Annex{Rejected: strings.Repeat("x", fact.MaxReason)},
	}
	f := encoded(t, w.as("lou", ann.m).mustAppend(w.moment(), lie).Fact)
	f.Att = &fact.Attestation{Sig: make([]byte, 64)}
	if _, err := ann.m.Receive("lou", []fact.Received{f}); err != nil {
		t.Fatal(err)
	}
	check("lou to new")
	passOn("ann", "bob")
	passOn("bob", "new")
	check("ann to bob", "bob to new")
}

// TestUnattestedIsNotRelayed: a fact of somebody else that nothing here attests stays
// here, and what its chain has before it goes, as far as it is attested.
func TestUnattestedIsNotRelayed(t *testing.T) {
	w := newMesh(t, parse(t, "workflow: relay\ntasks:\n  a: {type: manual}\n  b: {after: a, type: manual}\npartitions:\n  pa: [a]\n  pb: [b]\n"))
	at := map[workflow.PartitionName]workflow.PartnerID{"pa": "ann", "pb": "bob"}
	if err := w.start("ann", w.genesis(at, "ann", "bob", "cy")); err != nil {
		t.Fatal(err)
	}
	ann, bob := w.nodes["ann"], w.nodes["bob"]
	for _, l := range w.mail {
		w.deliver(l)
	}
	if err := ann.m.Finish("a", Result{}, w.moment(), w); err != nil {
		t.Fatal(err)
	}
	w.mail = nil
	w.step(ann)
	for _, l := range w.mail {
		w.deliver(l)
	}
	last := bob.m.log.ChainOf(ann.m.chain).Strands[0].Last()
	if last.Fact.Body.Success == nil || last.Att == nil {
		t.Fatalf("bob has %s of ann last, attested: %t", last.Fact.Body.Kind(), last.Att != nil)
	}
	last.Att = nil
	b := bob.m.Outgoing("cy", w.limit, w.moment())
	if b == nil || b.Facts[0].e != bob.m.log.Genesis() {
		t.Fatalf("bob sends no genesis: %+v", b)
	}
	for _, o := range b.Facts {
		if o.e == last {
			t.Errorf("bob sends a fact that nothing attests: %s", b.Describe())
		}
	}
}
