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
