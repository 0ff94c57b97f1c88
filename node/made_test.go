package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const surveys = `
workflow: surveys
data: {district: {type: string}, permit: {type: string, default: none}, map: {type: string}, level: {type: number}}
tasks:
  fly:
    type: manual
    in: [district]
    out: [map, level]
    produces: {name: flood-map, valid: 24h, readers: [medic, four]}
  plan: {after: fly, type: manual, in: [map, level]}
partitions: {air: [fly], desk: [plan]}
`

// survey starts surveys of a district at a partner, flown at two, and gives its ID
// and what the start noted.
func (tm *team) survey(at, district string) (string, []string) {
	tm.t.Helper()
	st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{
		Workflow: "surveys", Input: map[string]string{"district": district},
		Assign: map[string]string{"air": "two", "desk": at},
	})
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return st.ID, st.Notes
}

// flown finishes the flight of an instance.
func (tm *team) flown(id, picture string) {
	tm.t.Helper()
	r := api.FinishRequest{ID: id, Task: "fly", Outputs: map[string]string{"map": picture, "level": "4.5"}}
	if err := tm.p["two"].api.FinishTask(tm.t.Context(), r); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
}

// sets are the data sets that the catalogue lists at a partner.
func (tm *team) sets(at string) []api.Resource {
	tm.t.Helper()
	list, err := tm.p[at].api.Resources(tm.t.Context(), "data")
	if err != nil {
		tm.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(r api.Resource) bool { return r.Kind != "data" })
}

// wantNote checks that a note of a start, or of none if it is empty, says why fly
// was not dropped, and that it was dropped then.
func (tm *team) wantNote(at, id string, notes []string, want string) {
	tm.t.Helper()
	dropped := tm.taskOf(at, id, "fly").Dropped != nil
	if said := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }); dropped != (want == "") || !said && want != "" {
		tm.t.Errorf("at %s fly is dropped: %v; the start says %q, want %q", at, dropped, notes, want)
	}
}

// What a task made is registered by itself where it was done, with its terms: it is
// found by those that may read it, as long as it is valid, for the data that it was
// made from; also after a crash.
func TestWhatTasksMakeIsRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two:pilot", "three:clerk", "four")
		tm.add("one", surveys)
		id, _ := tm.survey("one", "north")
		if sets := tm.sets("one"); len(sets) != 0 {
			t.Fatalf("before anything is made there is %+v", sets)
		}
		made := time.Now()
		tm.flown(id, "dry")
		sets := tm.sets("three")
		if len(sets) != 1 || sets[0].Name != "flood-map" || sets[0].Holders[0].Name != "two" ||
			sets[0].Size != uint64(len(`{"level":4.5,"map":"dry"}`)) {
			t.Fatalf("three sees %+v", sets)
		}
		if h := sets[0].Holders[0]; h.ValidUntil == nil || h.ValidUntil.Sub(made).Round(time.Minute) != 24*time.Hour ||
			!slices.Equal(h.Readers, []string{"four", "medic"}) {
			t.Errorf("its terms are %+v", h)
		}
		check := func() {
			t.Helper()
			for at, want := range map[string]string{
				"one": "", "four": "", "two": "", "three": "from two: it is for four, medic",
			} {
				id, notes := tm.survey(at, "north")
				tm.wantNote(at, id, notes, want)
				if want == "" && tm.show(at, id).Data["map"] != "dry" {
					t.Errorf("at %s the map is %v", at, tm.show(at, id).Data["map"])
				}
			}
			id, notes := tm.survey("one", "south")
			tm.wantNote("one", id, notes, "from two: a task made it from other data")
			for at, may := range map[string]bool{
				"one": true, "three": false, "four": true,
			} { // whatever it believes of itself
				content, err := tm.p[at].plug.Request(t.Context(), tm.p["two"].id(), nil, "/mutirao/data/1.0.0",
					tm.floodMapOf("one"))
				if (err == nil) != may || may && !strings.Contains(string(content), "dry") {
					t.Errorf("%s asks for the data itself, and gets %q, %v", at, content, err)
				}
			}
		}
		check()
		tm.p["two"].crash()
		tm.p["two"].start()
		for _, at := range []string{"one", "three", "four"} {
			tm.connect("two", at)
		}
		synctest.Wait()
		check()
		pass(time.Until(made.Add(24*time.Hour - time.Minute)))
		if len(tm.sets("four")) != 1 {
			t.Error("a minute before it ceases to be valid it is not in the catalogue")
		}
		pass(2 * time.Minute)
		if content, err := tm.p["one"].plug.Request(t.Context(), tm.p["two"].id(), nil, "/mutirao/data/1.0.0",
			tm.floodMapOf("one")); err == nil {
			t.Errorf("when it is not valid any more, two gives %q", content)
		}
		for _, at := range []string{"one", "two"} {
			if sets := tm.sets(at); len(sets) != 0 {
				t.Errorf("when it is not valid any more, %s has %+v in the catalogue", at, sets)
			}
			id, notes := tm.survey(at, "north")
			if tm.taskOf(at, id, "fly").Dropped != nil {
				t.Errorf("when it is not valid any more, it is used all the same: %q", notes)
			}
		}
	})
}

// However much tasks make, its partners are told of it no more often than of news of
// its load: 48 things in an hour are told in at most 17 records, to three partners.
func TestWhatTasksMakeIsToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two:pilot", "three:clerk", "four")
		tm.add("one", surveys)
		before := tm.records()
		for i := range 48 {
			id, _ := tm.survey("one", fmt.Sprint("district ", i))
			tm.flown(id, "dry")
			pass(75 * time.Second)
		}
		if n := tm.records() - before; n < 3*10 || n > 3*17 {
			t.Errorf("%d records were sent", n)
		}
	})
}

// records counts the frames with a record of two that were sent by it.
func (tm *team) records() int {
	return len(tm.f.sent(func(c carried) bool { return c.from == tm.p["two"].id() && len(c.m.Records) > 0 }))
}

// The newest counts; what a user registered is not replaced, and is for the
// partners that the user names, as long as the user says.
func TestWhatUsersRegisterIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two:pilot", "three:clerk", "four")
		tm.add("one", surveys)
		first, _ := tm.survey("one", "north")
		second, _ := tm.survey("one", "north")
		tm.flown(first, "dry")
		tm.flown(second, "wet")
		pass(10 * time.Minute) // news of what is made does not go out at once each time
		id, _ := tm.survey("one", "north")
		if m := tm.show("one", id).Data["map"]; m != "wet" {
			t.Errorf("the map is %v", m)
		}
		third, _ := tm.survey("one", "south")
		add := func(terms api.DataTerms) {
			t.Helper()
			if _, err := tm.p["two"].api.AddData(t.Context(), "flood-map", []byte(`{"map": "by hand", "level": 1}`),
				terms); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		add(api.DataTerms{Valid: time.Hour, Readers: []string{"clerk"}})
		tm.flown(third, "south")
		pass(10 * time.Minute)
		id, notes := tm.survey("three", "south")
		tm.wantNote("three", id, notes, "")
		if m := tm.show("three", id).Data["map"]; m != "by hand" {
			t.Errorf("the map is %v", m)
		}
		id, notes = tm.survey("one", "south")
		tm.wantNote("one", id, notes, "from two: it is for clerk")
		pass(time.Hour)
		id, notes = tm.survey("three", "north")
		tm.wantNote("three", id, notes, "from two: it was valid until 2000-01-01T01:10:00Z")
		id, notes = tm.survey("one", "north") // which may not read it, but that is not why it helps nobody
		tm.wantNote("one", id, notes, "from two: it was valid until 2000-01-01T01:10:00Z")
		if len(tm.sets("three")) != 0 {
			t.Error("what the user registered for an hour is still in the catalogue")
		}
		// What the definition takes is at most a day old, whatever a user says.
		add(api.DataTerms{})
		pass(25 * time.Hour)
		id, notes = tm.survey("one", "north")
		tm.wantNote("one", id, notes, "and the definition takes what is at most 1d old")
		if _, err := tm.p["two"].api.AddData(t.Context(), "x", []byte("1"),
			api.DataTerms{Readers: make([]string, workflow.MaxReaders+1)}); err == nil {
			t.Error("too many readers are accepted")
		}
	})
}

// Data sets that are not valid any more take no room from new ones.
func TestExpiredDataSetsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		one := tm.p["one"]
		add := func(i int, valid time.Duration) error {
			_, err := one.api.AddData(t.Context(), fmt.Sprint("level-", i), []byte("1"), api.DataTerms{Valid: valid})
			return err
		}
		for i := range membership.MaxItems {
			if err := add(i, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		wantRefusal(t, "one more", add(membership.MaxItems, 0), "no more can be registered")
		pass(2 * time.Hour)
		for i := range membership.MaxItems {
			if err := add(1000+i, 0); err != nil {
				t.Fatal("when all others have expired:", err)
			}
		}
		one.crash()
		one.start()
		wantRefusal(t, "one more after a restart", add(membership.MaxItems, 0), "no more can be registered")
	})
}

// A clock that is ahead for a while takes nothing off the catalogue for good.
func TestDataSetsOutliveAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one")
		clock := clockAhead(0)
		tm.again("one", nil, clock.on)
		add := func(name string) {
			if _, err := tm.p["one"].api.AddData(t.Context(), name, []byte("1"), api.DataTerms{Valid: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		add("level")
		clock.set(2 * time.Hour)
		add("wind")
		clock.set(0)
		add("rain")
		if n := len(tm.sets("one")); n != 3 {
			t.Errorf("%d data sets are in the catalogue, want 3", n)
		}
	})
}

// Names of what tasks made have owners: what workflows of two authors made under one name
// stands side by side, and neither replaces the other's. Read is what was made for the
// author of the workflow, else for somebody whom the reader trusts. What nobody lists makes
// nothing.
func TestOthersDoNotReplaceWhatWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two:pilot", "three:medic", "four")
		tm.add("one", surveys)
		tm.add("four", strings.Replace(surveys, "workflow: surveys", "workflow: mine", 1))
		tm.add("three", strings.Replace(surveys, "workflow: surveys", "workflow: third", 1))
		start := func(name, at string) (string, []string) {
			t.Helper()
			st, err := tm.p[at].api.Start(t.Context(), api.StartRequest{
				Workflow: name, Input: map[string]string{"district": "north"},
				Assign: map[string]string{"air": "two", "desk": at},
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return st.ID, st.Notes
		}
		fly := func(name string) string {
			id, _ := start(name, "four")
			return id
		}
		check := func(when string, want map[string]string) {
			t.Helper()
			pass(10 * time.Minute)
			for _, author := range []string{"one", "three", "four"} {
				content, err := tm.p["four"].plug.Request(t.Context(), tm.p["two"].id(), nil, "/mutirao/data/1.0.0",
					tm.floodMapOf(author))
				if (err == nil) != (want[author] != "") || !strings.Contains(string(content), want[author]) {
					t.Errorf("%s two gives for %s %q, %v; want %q", when, author, content, err, want[author])
				}
			}
		}
		before, between, after := fly("mine"), fly("mine"), fly("mine")
		good, _ := tm.survey("one", "north")
		tm.flown(before, `"theirs"`)
		check("before anything else is made", map[string]string{"four": "theirs"})
		tm.flown(good, `"ours"`)
		tm.flown(between, `"theirs again"`)
		check("when both made it", map[string]string{"one": "ours", "four": "theirs again"})
		read := func() {
			t.Helper()
			for name, want := range map[string]string{
				"surveys": `"ours"`, "mine": `"theirs again"`, "third": `"ours"`,
			} {
				id, notes := start(name, "three")
				if got := tm.show("three", id).Data["map"]; got != want {
					t.Errorf("%s reads %v, want %s; %q", name, got, want, notes)
				}
			}
		}
		read()
		tm.p["two"].crash()
		tm.p["two"].start()
		for _, at := range []string{"one", "three", "four"} {
			tm.connect("two", at)
		}
		check("after a crash", map[string]string{"one": "ours", "four": "theirs again"})
		read()
		var authors []string
		for _, r := range tm.sets("three") {
			for _, h := range r.Holders {
				authors = append(authors, h.Author)
			}
		}
		if slices.Sort(authors); !slices.Equal(authors, []string{"four", "one"}) {
			t.Errorf("the catalogue has what workflows of %q made", authors)
		}
		if err := tm.p["two"].api.RemoveData(t.Context(), "flood-map"); err != nil {
			t.Fatal(err)
		}
		check("when it is taken off the catalogue", nil)
		if _, err := tm.p["four"].api.RemoveWorkflow(t.Context(), "mine"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		tm.flown(after, `"unlisted"`)
		check("when what nobody lists made it", nil)
	})
}

// floodMapOf is what asks for the flood map that workflows of a partner made.
func (tm *team) floodMapOf(author string) []byte {
	return []byte("flood-map\x00" + string(tm.p[author].id()))
}

// What could not be told is told later.
func TestWhatIsMadeIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two:pilot", "three:clerk", "four")
		tm.add("one", surveys)
		id, _ := tm.survey("one", "north")
		two := tm.p["two"].plug
		addrs := two.addrs
		two.addrs = slices.Repeat([]string{strings.Repeat("a", 1000)}, 100)
		tm.flown(id, "dry")
		pass(time.Second)
		two.addrs = addrs
		if sets := tm.sets("two"); len(sets) != 0 {
			t.Fatalf("it was told: %+v", sets)
		}
		pass(10 * time.Minute)
		if sets := tm.sets("two"); len(sets) != 1 {
			t.Errorf("later two has %+v in the catalogue", sets)
		}
	})
}

// What is made from data that another task writes is for no node that does not
// know that data yet; what is not whole is not registered; and what is can be
// taken off the catalogue.
func TestWhatIsOfNoUseToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one:medic", "two")
		tm.add("one", strings.NewReplacer("tasks:", "tasks:\n  ask: {type: manual, out: [district]}", "{air:",
			"{first: [ask], air:").Replace(surveys))
		start := func() (string, []string) {
			t.Helper()
			st, err := tm.p["one"].api.Start(t.Context(),
				api.StartRequest{
					Workflow: "surveys", Assign: map[string]string{"air": "two", "desk": "one", "first": "one"},
				})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return st.ID, st.Notes
		}
		id, _ := start()
		if err := tm.p["two"].api.FinishTask(t.Context(),
			api.FinishRequest{ID: id, Task: "fly", Outputs: map[string]string{"map": "dry"}}); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		if sets := tm.sets("one"); len(sets) != 0 {
			t.Errorf("half of the data is registered: %+v", sets)
		}
		id, _ = start()
		tm.flown(id, "dry")
		_, err := tm.p["two"].api.AddData(t.Context(), "other", []byte("x"), api.DataTerms{Readers: []string{"one"}})
		synctest.Wait()
		if sets := tm.sets("one"); err != nil || len(sets) != 2 {
			t.Fatalf("one sees %+v, %v", sets, err)
		}
		id, notes := start()
		if tm.taskOf("one", id, "fly").Dropped != nil || !slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, "a task made it from district, which is not known yet")
		}) {
			t.Errorf("the start says %q", notes)
		}
		if err := tm.p["two"].api.RemoveData(t.Context(), "flood-map"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var e *api.Error
		if err := tm.p["two"].api.RemoveData(t.Context(), "flood-map"); !errors.As(err, &e) ||
			e.Code != api.NotFound || len(tm.sets("one")) != 1 {
			t.Errorf("what a task made cannot be taken off the catalogue: %v, %+v", err, tm.sets("one"))
		}
	})
}

// What a task makes that an amendment added is registered if the changed definition is listed, too: else whoever may
// amend an instance would speak for the author of its workflow. It does not matter for that what else is amended before
// it is made, nor that a task which the changed definition has no more stays in the instance, left out.
func TestWhatAnAddedTaskMakes(t *testing.T) {
	fly2 := []string{
		"version: 1", "version: 2",
		"  plan:", "  fly2:\n    type: manual\n    in: [district]\n    out: [level]\n" +
			"    produces: {name: level-map, valid: 24h}\n  plan:", "[fly]", "[fly, fly2]",
	}
	said := strings.Replace(surveys, "workflow: surveys", "workflow: surveys\nversion: 1", 1)
	spare := strings.NewReplacer("  plan:", "  note: {type: manual}\n  plan:", "[plan]", "[note, plan]").Replace(said)
	more := strings.NewReplacer(fly2...).Replace(said)
	later := strings.Replace(more, "{after: fly,", "{after: fly, timeout: 5h,", 1)
	other := strings.Replace(more, "in: [district]\n    out: [level]", "in: [permit]\n    out: [level]", 1)
	for name, c := range map[string]struct {
		start, listed string
		amended       []string
		want          int
	}{
		"nobody lists it":                      {said, "", []string{more}, 0},
		"it is listed":                         {said, more, []string{more}, 1},
		"it is listed, and amended again":      {said, more, []string{more, later}, 1},
		"only what comes of it is listed":      {said, later, []string{more, later}, 1},
		"a task is left out":                   {spare, more, []string{more}, 1},
		"one is listed that makes it of other": {said, other, []string{more}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one:medic", "two:pilot")
				tm.add("one", c.start)
				id, _ := tm.survey("one", "north")
				if c.listed != "" {
					tm.add("one", c.listed)
				}
				for _, source := range c.amended {
					if _, err := tm.p["one"].api.AmendInstance(t.Context(), api.AmendRequest{
						User: "one", ID: id, File: "surveys.yaml", Source: source,
					}); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if err := tm.p["two"].api.FinishTask(t.Context(), api.FinishRequest{
					ID: id, Task: "fly2", Outputs: map[string]string{"level": "2"},
				}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if sets := tm.sets("one"); len(sets) != c.want {
					t.Errorf("the catalogue has %+v, want %d", sets, c.want)
				}
			})
		})
	}
}
