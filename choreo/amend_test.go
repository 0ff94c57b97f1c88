package choreo

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// A task that was added is there for whoever knew of that: what others say of it does not count, whoever hears of it in
// which order. A node that has heard of it may begin it.
func TestATaskIsThereForThoseWhoKnewOfIt(t *testing.T) {
	const src = "workflow: w\ntasks: {a: {}, b: {type: manual}}\npartitions: {p: [a], q: [b]}\n"
	w := newMesh(t, parse(t, src))
	w.people["one"] = fact.Speaker{User: "one", At: "one"}
	at := map[workflow.PartitionName]workflow.PartnerID{"p": "one", "q": "two"}
	if err := w.start("one", w.genesis(at, "one", "two")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	one, two := w.nodes["one"], w.nodes["two"]
	patch, err := amendments.DecodePatch(`[{"kind":"task","name":"m","key":"add-to","value":"q"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.put(one, w.word(w.people["one"], worklist.Amend{Patch: patch.Text()})); err != nil {
		t.Fatal(err)
	}
	w.mail = nil
	w.lies = true
	begin := fact.Body{Start: &fact.Start{Attempt: one.m.state.BySlot()["m"].Current.ID, Try: 1}}
	early := two.m.mustAppend(w.moment(), begin)
	w.step(two)
	w.meetAll()
	w.stabilize(false)
	for _, n := range []*node{one, two} {
		if e := n.m.log.ByID()[early.ID]; e == nil || e.Counted || e.Why != "it is about an attempt that it does not know" {
			t.Errorf("%s: who had not heard of the task began it, %t", n.id, e != nil && e.Counted)
		}
		if s := n.m.state.BySlot()["m"]; s == nil || s.Current.Partner != "two" || s.Current.Start == nil {
			t.Errorf("%s: who has heard of it did not begin it: %+v", n.id, s)
		}
	}
	mustMatch(t, "folded as they came, and all at once", two.m, w.scratch(two.m))
}

// An instance takes so many amendments, and no more, whoever writes one down; each costs what the instance costs once
// more, and one that changes nothing costs little.
func TestAnInstanceTakesSoManyAmendments(t *testing.T) {
	w := newMesh(t, parse(t, ward(200)))
	who := worklist.User("one") // the initiator answers for it
	w.people[who] = fact.Speaker{User: who, At: "one"}
	home := w.plan.Partitions()[0].Name
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{home: "one"}, "one")); err != nil {
		t.Fatal(err)
	}
	n := w.nodes["one"]
	task := string(n.m.Definition().Tasks[0].Name)
	amend := func(priority int) worklist.Amend {
		p := amendments.Patch{{
			Part: amendments.Part{Kind: amendments.OfTask, Name: task}, Key: "priority",
			Value: json.RawMessage(strconv.Itoa(priority)),
		}}
		return worklist.Amend{Patch: p.Text()}
	}
	for k := range amendments.MaxPatches {
		before := n.m.log.Steps
		if _, err := w.put(n, w.word(w.people[who], amend(1+k/2))); err != nil {
			t.Fatalf("amendment %d: %v", k+1, err)
		}
		if got := n.m.Definition().Tasks[0].Priority; got != 1+k/2 {
			t.Fatalf("priority %d after amendment %d", got, k+1)
		}
		if cost := n.m.log.Steps - before; cost > 60*(200+n.m.log.Len()) || k%2 == 1 && cost > 2000 {
			t.Errorf("amendment %d costs %d steps", k+1, cost)
		}
	}
	if _, err := w.put(n, w.word(w.people[who], amend(99))); !errors.Is(err, state.ErrNotNow) {
		t.Errorf("one more: %v", err)
	}
	w.lies = true
	if e := n.m.mustAppend(w.moment(), fact.Body{Claim: w.word(w.people[who], amend(99))}); e.Counted {
		t.Error("one more counts")
	}
	if got := n.m.Definition().Tasks[0].Priority; got != amendments.MaxPatches/2 {
		t.Errorf("priority %d in the end", got)
	}
	if got := n.m.Original().Tasks[0].Priority; got != 0 {
		t.Errorf("the definition with which it was started has priority %d", got)
	}
}

// A partner that brings one word of somebody who may amend again and again costs the others one look at it, whether or
// not it fits.
func TestOneWordIsLookedAtOnce(t *testing.T) {
	w := newMesh(t, parse(t, ward(300)))
	who := worklist.User("one")
	w.people[who] = fact.Speaker{User: who, At: "one"}
	home := w.plan.Partitions()[0].Name
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{home: "one"}, "one")); err != nil {
		t.Fatal(err)
	}
	n := w.nodes["one"]
	w.lies = true
	for _, patch := range []string{
		`[{"kind":"task","name":"nobody","key":"enabled","value":false}]`,
		`[{"kind":"task","name":"added","key":"add-to","value":"` + string(home) + `"}]`,
	} {
		c := w.word(w.people[who], worklist.Amend{Patch: patch})
		bring := func() int {
			before := n.m.log.Steps
			n.m.mustAppend(w.moment(), fact.Body{Claim: c})
			return n.m.log.Steps - before
		}
		first, rest := bring()+bring(), 0 // where it counts, the definition is another by then
		for range 50 {
			rest = max(rest, bring())
		}
		if first < 300 || rest > 100 {
			t.Errorf("%s: it costs %d steps at first, and %d later", patch, first, rest)
		}
	}
}
