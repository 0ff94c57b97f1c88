package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A file that its user may never read is said to be for others, and who may read it: nobody waits for it, neither
// whoever opens the item nor a device that goes out of reach.
func TestAFileForOthersIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		put := func(name, text string) string {
			f, err := tm.p["base"].api.PutFile(t.Context(), name, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return f.Value
		}
		tm.add("base", "workflow: care\ndata:\n  plan: {type: file}\n  photo: {type: file, readers: [doctor]}\n"+
			"tasks: {visit: {type: manual, role: nurse, offline: true, in: [photo, plan]}}\n"+
			"partitions: {ward: {tasks: [visit], partner: base}}\n")
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "care", Input: map[string]string{
			"plan": put("plan.pdf", "the river"), "photo": put("p.jpg", "a wound")}})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		item := tm.items("tablet", "bia")[0].ID
		if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
			t.Fatal(err)
		}
		q := api.ItemQuery{User: "bia", Item: item}
		sheet, err := tm.p["tablet"].api.ItemSheet(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range sheet.Data {
			want := map[string][]string{"photo": {"doctor"}}[d.Name]
			if d.File == nil || !slices.Equal(d.File.OnlyFor, want) {
				t.Errorf("%s is %+v, want it for %v", d.Name, d.File, want)
			}
		}
		if c := sheet.Coming; c == nil || c.Files != 1 {
			t.Errorf("what is still to come: %+v", c)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err = tm.p["tablet"].api.ItemFile(ctx, q, "photo")
		wantCode(t, err, api.NotAllowed, "bia may not read file photo (p.jpg), which task visit reads: only doctor may")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("to refuse it took %s", took)
		}
		data, err := tm.p["base"].api.Data(t.Context(), st.ID)
		if err != nil || len(data) != 2 || data[0].File.OnlyFor != nil || data[1].File.OnlyFor != nil {
			t.Errorf("at the node that gave it: %+v, %v", data, err)
		}
		c := tm.goesAway("tablet")
		for range 20 {
			if c.State == api.IsLeaving && c.Asks == "" {
				pass(time.Second)
			}
			if c, err = tm.p["tablet"].api.Contact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if c.State != api.IsDisconnected {
			t.Errorf("it is held up: %s, %s: %s", c.State, c.Asks, c.Why)
		}
		if w := c.Withheld; len(w) != 1 || w[0].Data != "photo" || w[0].File != "p.jpg" || w[0].User != "bia" ||
			!slices.Equal(w[0].OnlyFor, []string{"doctor"}) {
			t.Errorf("what does not come along: %+v", w)
		}
		if f := tm.items("tablet", "bia")[0]; !f.Prefetched {
			t.Errorf("all that comes is here, and yet: %+v", f)
		}
	})
}

// aVisit has rui, a medic at station, to visit somebody of whom base gave a photo; what is said of it comes after its name.
func aVisit(t *testing.T, photo string) (tm *wardTeam, id, item string) {
	t.Helper()
	tm = aWard(t, "station")
	if err := tm.signIn("station", tm.addUser("base", "rui", "medic")); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	f, err := tm.p["base"].api.PutFile(t.Context(), "p.jpg", strings.NewReader("a wound"))
	if err != nil {
		t.Fatal(err)
	}
	tm.add("base", "workflow: care\ndata: {photo: {"+photo+"}}\n"+
		"tasks: {visit: {type: manual, role: medic, in: [photo]}, note: {after: visit}}\n"+
		"partitions: {ward: {tasks: [visit], partner: station}, desk: {tasks: [note], partner: base}}\n")
	st, err := tm.p["base"].api.Start(t.Context(),
		api.StartRequest{Workflow: "care", Input: map[string]string{"photo": f.Value}})
	if err != nil {
		t.Fatal(err)
	}
	pass(time.Minute)
	return tm, st.ID, tm.itemOf("station", "rui", "visit").ID
}

// A file that a partner may not read, and a user at its node who has the item may, is refused to the node with what
// brings it to the user.
func TestAFileOfAUserIsNamedWithItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := aVisit(t, "type: file, readers: [medic]")
		wantHint := func(want string) {
			t.Helper()
			_, _, err := tm.p["station"].api.File(t.Context(), id, "photo")
			wantCode(t, err, api.NotAllowed, "only medic may read file photo")
			var no *api.Error
			if errors.As(err, &no) && !strings.Contains(no.Hint, want) {
				t.Errorf("the hint is %q, want %q", no.Hint, want)
			}
		}
		wantHint("mutirao worklist open ITEM --to DIR")
		if err := tm.claim("station", "rui", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		wantHint("mutirao worklist open " + item + " --to DIR --user rui")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, content, err := tm.p["station"].api.ItemFile(ctx, api.ItemQuery{User: "rui", Item: item}, "photo")
		if err != nil {
			t.Fatal(err)
		}
		content.Close()
	})
}

// A file that comes to the holder of a task only for the person who has it is said to come so, and not to be refused.
func TestAFileThatComesForAPersonIsSaidToDoSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id, item := aVisit(t, "type: file")
		says := func(want string) {
			t.Helper()
			if why := tm.taskOf("station", id, "visit").Reason; !strings.HasSuffix(why, "waits for file p.jpg: "+want) {
				t.Errorf("the task is said to be so: %s", why)
			}
			data, err := tm.p["station"].api.Data(t.Context(), id)
			if err != nil || data[0].File.Waits != want {
				t.Errorf("the file is said to be so: %+v, %v", data[0].File, err)
			}
		}
		says("whoever may read it and has a task that needs it gets it with the item: mutirao worklist open ITEM --to DIR")
		if err := tm.claim("station", "rui", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		says("rui gets it with the item: mutirao worklist open " + item + " --to DIR --user rui")
	})
}

// A program's task whose holder may not read a file that it needs waits for ever: everybody who takes part is told, and
// not the holder alone.
func TestWhoMayNotReadWhatItNeedsIsSaidEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, keepsFiles(t), "base", "tablet")
		f, err := tm.p["base"].api.PutFile(t.Context(), "p.jpg", strings.NewReader("a wound"))
		if err != nil {
			t.Fatal(err)
		}
		tm.add("base", "workflow: care\ndata: {photo: {type: file, readers: [doctor]}}\n"+
			"tasks: {weigh: {application: weigh, in: [photo]}, note: {after: weigh}}\n"+
			"partitions: {ward: {tasks: [weigh], partner: tablet}, desk: {tasks: [note], partner: base}}\n")
		st, err := tm.p["base"].api.Start(t.Context(),
			api.StartRequest{Workflow: "care", Input: map[string]string{"photo": f.Value}})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		const want = "tablet may not read file p.jpg, which it waits for: only doctor may"
		if why := tm.taskOf("base", st.ID, "weigh").Reason; why != want {
			t.Errorf("base says of the task: %q, want %q", why, want)
		}
		if why := tm.taskOf("tablet", st.ID, "weigh").Reason; !strings.Contains(why, "only doctor may read file photo") {
			t.Errorf("its holder says of the task: %q", why)
		}
	})
}
