package overview

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// office is what the node of ana knows of elections; it is also its clock and its members.
type office struct {
	holder workflow.PartnerID
	term   uint64
}

func (o *office) Known() (election.Mandate, bool) {
	return election.Mandate{Holder: o.holder, Office: election.Office{Term: o.term}}, true
}

func (o *office) Leads() (election.Mandate, bool) {
	m, _ := o.Known()
	return m, o.holder == "ana"
}

func (*office) Now() moment.Now { return moment.Now{Wall: time.UnixMilli(1_900_000_000_000)} }

func (*office) Get(workflow.PartnerID) (membership.Partner, bool) { return membership.Partner{}, false }
func (*office) Name(p workflow.PartnerID) string                  { return string(p) }
func (*office) Names(ids []workflow.PartnerID) []string           { return make([]string, len(ids)) }

// One partner fills its share of the overview and nobody else's, and what was reported is
// forgotten with the office: what was said to the holder of one is not shown in another.
func TestRoomForReports(t *testing.T) {
	o := &office{"ana", 1}
	counted, trouble := map[string]uint64{}, ""
	topic := New(Surroundings{
		Self: "ana", Clock: o, Offices: o, Members: o, Limit: 2,
		Here:   func(id workflow.InstanceID) bool { return id[0] == 'h' },
		Labels: func(workflow.Hash, []workflow.TaskName) (string, map[string]string) { return "", nil }, Another: func() {},
		Count:   func(what string, by uint64) { counted[what] += by },
		Trouble: func(_, why string) { trouble = why }, Publish: func(api.Event) {},
	})
	report := func(from workflow.PartnerID, ids ...byte) {
		var list []wire.Report
		for _, id := range ids {
			r := wire.Report{Instance: workflow.InstanceID{id}, State: workflow.InstanceRunning, Facts: uint64(id)}
			list = append(list, r)
		}
		topic.Take(from, &wire.Message{Reports: list})
	}
	want := func(when string, instances int, leftOut uint64, troubled bool) {
		t.Helper()
		list := topic.Elsewhere(true, 0, workflow.InstanceID{}, 100)
		if len(list) != instances {
			t.Errorf("%s: %d instances are listed, want %d", when, len(list), instances)
		}
		for i, row := range list { // one by one they are the same
			var id workflow.InstanceID
			_, _ = hex.Decode(id[:], []byte(row.ID))
			next := topic.Elsewhere(true, row.Started.UnixMilli(), id, 1)
			if (i+1 < len(list)) != (len(next) == 1) || len(next) == 1 && next[0].ID != list[i+1].ID {
				t.Errorf("%s: after %s comes %v", when, row.ID, next)
			}
		}
		if counted["reports.left-out"] != leftOut || (trouble != "") != troubled {
			t.Errorf("%s: %d reports were left out, want %d; trouble %q", when, counted["reports.left-out"], leftOut,
				trouble)
		}
	}
	topic.Tick(moment.Now{})
	report("bea", 'a', 'b')
	want("two of one", 2, 0, false)
	report("bea", 'a', 'b', 'c')
	want("a third of the same", 2, 1, true)
	report("eve", 'c', 'h')
	want("those of another, of which one is here", 3, 1, true)
	if got := topic.Accounts(workflow.InstanceID{'c'}); len(got) != 1 || got[0].By != "eve" {
		t.Errorf("accounts of c: %v", got)
	}
	o.holder, o.term = "eve", 2
	topic.Tick(moment.Now{})
	want("another holds the office", 0, 1, false)
	if c := topic.Chief(); c.Partner != "eve" || c.Office.Term != 2 {
		t.Errorf("the office is held by %v", c)
	}
	report("bea", 'a')
	if counted["reports.unasked"] != 1 {
		t.Error("what is reported to one that does not coordinate is taken in")
	}
	o.holder, o.term = "ana", 3
	topic.Tick(moment.Now{})
	want("in office again", 0, 1, false)
	report("bea", 'd')
	if got := topic.Find("64"); len(got) != 1 || got[0] != (workflow.InstanceID{'d'}) {
		t.Errorf("found: %v", got)
	}
}
