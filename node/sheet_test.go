package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whoever has an item is told with what it is done, what is known of that, and whether the device has it; a device that
// lacks it does not go out of reach with the item unasked.
func TestAnItemNamesItsApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", "workflow: survey\napplications: {editor: {size: 3MB, os: linux, installer: the office}}\ntasks:\n"+
			"  visit: {type: semi-automatic, application: editor, role: nurse, offline: true}\n"+
			"partitions: {ward: {tasks: [visit], partner: base}}\n")
		_, visit := tm.rounds("survey", nil)
		if err := tm.claim("tablet", "bia", api.ClaimLock, visit); err != nil {
			t.Fatal(err)
		}
		has := func(here bool) {
			t.Helper()
			want := api.ItemApplication{Name: "editor", Size: 3_000_000, OS: "linux", Installer: "the office", Here: here}
			if a := tm.sheet("tablet", "bia", visit).Application; a == nil || *a != want {
				t.Errorf("it is done with %+v, want %+v", a, want)
			}
		}
		has(false)
		c := tm.goesAway("tablet")
		if c.State != api.IsLeaving || c.Asks != "no-program" || len(c.Items) != 1 || !strings.Contains(c.Why, "(editor)") {
			t.Errorf("it is %+v", c)
		}
		if c = tm.goesAway("tablet", "no-program"); c.State != api.IsDisconnected {
			t.Errorf("it is %+v", c)
		}
		has(false) // as it is kept
		tm.comesBack("tablet", "base")
		if _, err := tm.p["tablet"].api.SetProfile(t.Context(), api.ProfileChange{Applications: &[]string{"editor"}}); err != nil {
			t.Fatal(err)
		}
		has(true)
		if c = tm.goesAway("tablet"); c.State != api.IsDisconnected {
			t.Errorf("it is %+v", c)
		}
	})
}

// ward has tasks with all that a form is made of.
const ward = `
workflow: ward
data:
  patient: {type: string, required: true, doc: Who it is about}
  bed:     {type: integer, required: true}
  secret:  {type: string, default: not for everybody}
  weight:  {type: number, min: 0, max: 300, doc: In kilograms}
  mood:    {type: string, enum: [well, unwell]}
tasks:
  weigh: {type: manual, role: nurse, out: [weight], doc: "Weigh the patient.\nWithout shoes."}
  ask:   {type: manual, role: nurse, after: weigh, in: [patient, weight], out: [mood], timeout: 2h, offline: true}
partitions: {main: {tasks: [weigh, ask], partner: base}}
`

// sheet is an item of a user with all that is needed to do it.
func (tm *team) sheet(at, user, item string) *api.ItemSheet {
	tm.t.Helper()
	s, err := tm.p[at].api.ItemSheet(tm.t.Context(), api.ItemQuery{User: user, Item: item})
	if err != nil {
		tm.t.Fatal(err)
	}
	return s
}

// Whoever may take an item sees what is to be done, about what and until when; whoever has it sees the data
// that the task reads as well, and no others. That is so at the node of another, which takes no part in the
// instance, and, of what is locked, with the holder out of reach.
func TestWhatAPersonSeesOfAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		tm.add("base", ward)
		if _, err := tm.p["base"].api.Start(t.Context(),
			api.StartRequest{
				Workflow: "ward", Input: map[string]string{"patient": "Zoë Ávila", "bed": "7"},
			}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		of := func(task string) api.Item {
			t.Helper()
			for _, x := range tm.items("tablet", "bia") {
				if x.Task == task && x.Workflow == "ward" {
					return x
				}
			}
			t.Fatalf("no item %s", task)
			return api.Item{}
		}
		weigh := of("weigh")
		if weigh.Doc != "Weigh the patient." || weigh.Subject != "Zoë Ávila, bed 7" || weigh.Due != nil {
			t.Errorf("the list says %+v", weigh)
		}
		zero, most := 0.0, 300.0
		weight := api.Field{Name: "weight", Type: "number", Doc: "In kilograms", Min: &zero, Max: &most}
		s := tm.sheet("tablet", "bia", weigh.ID)
		if !s.Whole || s.Doc != "Weigh the patient.\nWithout shoes." || cmp.Diff(s.Fields, []api.Field{weight}) != "" ||
			len(s.Data) > 0 {
			t.Errorf("before it is taken: %+v", s)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, weigh.ID); err != nil {
			t.Fatal(err)
		}
		if err := tm.hand("tablet", "bia", weigh.ID, map[string]string{"weight": "61.5"}); err != nil {
			t.Fatal(err)
		}

		ask := of("ask")
		if s := tm.sheet("tablet", "bia", ask.ID); len(s.Data) > 0 || len(s.After) != 1 || s.After[0].Task != "weigh" ||
			s.After[0].By != "bia" {
			t.Errorf("before it is taken: %+v", s)
		}
		if err := tm.claim("tablet", "bia", api.ClaimLock, ask.ID); err != nil {
			t.Fatal(err)
		}
		whole := func() {
			t.Helper()
			s := tm.sheet("tablet", "bia", ask.ID)
			data := []api.Datum{
				{Name: "patient", Type: "string", Doc: "Who it is about", Value: "Zoë Ávila"},
				{Name: "weight", Type: "number", Doc: "In kilograms", Value: 61.5},
			}
			mood := []api.Field{{Name: "mood", Type: "string", Enum: []any{"well", "unwell"}}}
			if diff := cmp.Diff(data, s.Data) + cmp.Diff(mood, s.Fields); !s.Whole || diff != "" {
				t.Errorf("once it is locked: %+v\n%s", s, diff)
			}
			if s.Item.Due == nil || s.Item.Due.Kind != "timeout" || !s.Item.Due.About ||
				s.Item.State != api.ItemLocked || s.Item.Subject != "Zoë Ávila, bed 7" {
				t.Errorf("its item: %+v, due %+v", s.Item, s.Item.Due)
			}
		}
		whole()
		left := tm.sheet("tablet", "bia", ask.ID).Item.Due.At
		tm.disconnect("base", "tablet")
		pass(5 * time.Minute)
		whole()
		if now := tm.sheet("tablet", "bia", ask.ID).Item.Due.At; !now.Equal(left) {
			t.Errorf("its time ends at %s out of reach, and at %s before", now, left)
		}
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		whole()
		if err := tm.hand("tablet", "bia", ask.ID, map[string]string{"mood": "well"}); err != nil {
			t.Fatal(err)
		}
		if s := tm.sheet("tablet", "bia", ask.ID); s.Item.State != api.ItemDone || s.Item.Delivered {
			t.Errorf("done out of reach: %+v", s.Item)
		}
	})
}

// What a partner answers about an item is checked, as forms are made of it; and a partner that says nothing of
// it leaves the item on the list.
func TestWhatPartnersSayOfAnItemIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		item := tm.items("tablet", "bia")[0].ID
		for _, answer := range []string{
			"", "[]", `{"fields":[{"name":"a b","type":"string"}]}`, `{"fields":[{"name":"a","type":"script"}]}`,
			`{"fields":[` + strings.Repeat(`{"name":"a","type":"string"},`, 600) + `{"name":"a","type":"string"}]}`,
		} {
			tm.p["base"].plug.HandleRequest("/mutirao/item/1.0.0", false,
				func(workflow.PartnerID, []byte) ([]byte, error) { return []byte(answer), nil })
			if s := tm.sheet("tablet", "bia", item); s.Whole || len(s.Fields) > 0 || s.Item.Task != "weigh" {
				t.Errorf("%.60s: %+v", answer, s)
			}
		}
		if got := tm.refused("tablet", "base"); len(got) == 0 {
			t.Error("nothing is counted as refused")
		}
	})
}

// Nobody asks about an item for a person who is elsewhere, or gets it who may not take it.
func TestWhoMayAskAboutAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := nurses(t)
		item, bia := tm.items("tablet", "bia")[0].ID, tm.user("base", "bia").ID
		for _, q := range []wire.Item{
			{User: bia, Instance: instance(t, id), Item: item},
			{User: string(tm.p["phone"].id()), Instance: instance(t, id), Item: item},
			{User: string(tm.p["phone"].id()), Item: item},
		} {
			if b, err := tm.p["phone"].plug.Request(t.Context(), tm.p["base"].id(), nil, "/mutirao/item/1.0.0",
				must(wire.EncodeItem(q))); err == nil {
				t.Errorf("the phone got %s for %+v", b, q)
			}
		}
		if b, err := tm.p["tablet"].plug.Request(t.Context(), tm.p["base"].id(), nil, "/mutirao/item/1.0.0",
			must(wire.EncodeItem(wire.Item{
				User: bia, Instance: instance(t, id), Item: item,
			}))); err != nil || !strings.Contains(string(b), "weight") {
			t.Errorf("the tablet got %s, %v", b, err)
		}
	})
}

// The fields of an item come in the order of its task's form, those that the form does not name after them, also on the
// device of somebody whose node takes no part in the instance.
func TestTheAuthorOrdersTheFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t)
		tm.add("base", `
workflow: visits
data: {a_note: {type: string}, patient: {type: string}, pulse: {type: integer}, ward: {type: string}}
tasks:
  visit: {type: manual, role: nurse, out: [a_note, patient, pulse, ward], form: [ward, patient]}
`)
		if _, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "visits"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, x := range tm.items("tablet", "bia") {
			if x.Task != "visit" {
				continue
			}
			var got []string
			for _, f := range tm.sheet("tablet", "bia", x.ID).Fields {
				got = append(got, f.Name)
			}
			if want := []string{"ward", "patient", "a_note", "pulse"}; !slices.Equal(got, want) {
				t.Errorf("the fields are %q, want %q", got, want)
			}
			return
		}
		t.Error("there is no item visit")
	})
}
