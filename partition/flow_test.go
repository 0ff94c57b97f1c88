package partition_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whoever goes on with data states whose holder is lost can do the tasks that they fire, and undo them, as at the
// start. Where nobody can, somebody keeps the states all the same: without that nothing could be repaired.
func TestWhoTakesOverDataStatesCanDoTheirTasks(t *testing.T) {
	def, err := workflow.Parse("w.yaml", []byte(`
workflow: w
data: {a: {type: integer, default: 0}}
tasks:
  count: {when: a < 3, application: counter, compensate: {application: uncount}, repeat: true, out: [a], needs: [scale]}
final: a == 3
partitions: {all: [count]}
`))
	if err != nil {
		t.Fatal(err)
	}
	partner := func(id workflow.PartnerID, applications ...workflow.ApplicationName) partition.Partner {
		return partition.Partner{ID: id, Name: string(id), Reachable: true, Rested: 1, Applications: applications,
			Capabilities: []workflow.Capability{"scale"}}
	}
	without := partner("d")
	without.Capabilities = nil
	for name, c := range map[string]struct {
		partners []partition.Partner
		want     workflow.PartnerID // empty: nobody
	}{
		"one can do and undo it":   {[]partition.Partner{partner("a"), partner("b", "counter"), partner("c", "counter", "uncount")}, "c"},
		"one can do it":            {[]partition.Partner{partner("a"), partner("b"), partner("c", "counter")}, "c"},
		"nobody can":               {[]partition.Partner{partner("b"), without}, "b"},
		"nobody has what it needs": {[]partition.Partner{without}, ""},
	} {
		for _, by := range []aptitude.Mechanism{partition.PlainRule, aptitude.Push} {
			s := partition.Situation{Partners: c.partners, Mechanism: by, Self: c.partners[0].ID}
			got, err := partition.DistributeTasks(partition.New(def), s, workflow.FlowTask)
			if got.Partner != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s, by %s: %s takes over, error %v; want %q", name, by, got.Partner, err, c.want)
			}
		}
	}
}
