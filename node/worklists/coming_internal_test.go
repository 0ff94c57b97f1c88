package worklists

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// What is still to come is counted once, without what is here already, and how long it takes heeds the bound under
// which it comes by itself; what has no room does not come.
func TestWhatIsStillToComeIsCountedOnce(t *testing.T) {
	d, p, _ := afar(t)
	d.in.Lacks = func(f workflow.File) int64 { return f.Size - 2e6 }
	d.in.Rate = func([]workflow.PartnerID) int64 { return 100e3 }
	d.in.Runs = func(workflow.ApplicationName) bool { return false }
	plan := workflow.File{Name: "plan.pdf", Size: 9e6, Root: [32]byte{1}}.String()
	sheet := &Sheet{Data: []api.Datum{{Name: "plan", Type: "file", Value: plan}, {Name: "copy", Type: "file", Value: plan}}}
	first, second := weigh(worklist.Lock), weigh(worklist.Select)
	second.Task, second.Item.Slot = "feed", "feed"
	p.answers["base"] = func(protocol string, _ []byte) any {
		switch protocol {
		case ProtocolItems:
			return []Row{first, second}
		case ProtocolItem:
			return sheet
		}
		return nil
	}
	said, err := d.SetPrefetch(t.Context(), api.PrefetchRequest{On: true, AtMost: 20e3})
	if err != nil || len(said.Items) != 2 || said.Volume != 7e6 {
		t.Errorf("still to come: %+v, %v", said, err)
	}
	who := users.Who{ID: "bia", Name: "bia"}
	r := first
	r.At = "base"
	c := d.coming(who, &r, sheet)
	if c.Files != 1 || c.Bytes != 7e6 || c.Rate != 100e3 || c.AtMost != 20e3 || c.Takes != "5m50s" || c.Advice != "coming" {
		t.Errorf("with a bound: %+v", c)
	}
	if _, err := d.SetPrefetch(t.Context(), api.PrefetchRequest{On: true}); err != nil {
		t.Fatal(err)
	}
	if c := d.coming(who, &r, sheet); c.AtMost != 0 || c.Takes != "1m10s" || c.Advice != "coming" {
		t.Errorf("without: %+v", c)
	}
	d.in.NoRoom = func(of []Content) int64 { return int64(len(of)) }
	if c := d.coming(who, &r, sheet); c.NoRoom != 1 || c.Takes != "" || c.Advice != "room" {
		t.Errorf("without room: %+v", c)
	}
	if said, err := d.Prefetch(t.Context(), "bia"); err != nil || said.NoRoom != 1 {
		t.Errorf("still to come without room: %+v, %v", said, err)
	}
}
