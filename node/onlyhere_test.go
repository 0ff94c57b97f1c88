package node_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const readPhotos = `
workflow: album
data: {pic: {type: file}}
tasks:
  look: {type: manual, role: nurse, out: [pic]}
  read: {type: manual, after: look, in: [pic]}
partitions: {home: {tasks: [look], partner: base}, road: {tasks: [read], partner: tablet}}
`

// givesNoFiles has a node give no content, as over a link that is too weak for it, until it is started again.
func (tm *team) givesNoFiles(at string) {
	tm.p[at].plug.HandleRequest(files.Protocol, false, func(workflow.PartnerID, []byte) ([]byte, error) {
		return nil, errors.New("not now")
	})
}

// handFile hands in a file with an item, and returns what the node answers.
func (tm *team) handFile(at, user, item, text string) *api.Item {
	tm.t.Helper()
	f, err := tm.p[at].api.PutFile(tm.t.Context(), "pic.txt", strings.NewReader(text))
	if err != nil {
		tm.t.Fatal(err)
	}
	x, err := tm.p[at].api.FinishItem(tm.t.Context(),
		api.ItemResult{User: user, Item: item, Outputs: map[string]string{"pic": f.Value}})
	if err != nil {
		tm.t.Fatal(err)
	}
	return x
}

// wantAlone checks for which partners a file waits that is only at a node; none: it is elsewhere as well.
func (tm *team) wantAlone(at string, want ...string) {
	tm.t.Helper()
	box, err := tm.p[at].api.Outbox(tm.t.Context(), "")
	if err != nil {
		tm.t.Fatal(err)
	}
	box = slices.DeleteFunc(box, func(x api.Undelivered) bool { return x.File == "" })
	d, err := tm.p[at].api.Doctor(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	named := slices.ContainsFunc(d.Findings, func(f api.Finding) bool {
		return f.Check == "only-here" && f.State == api.FindingWarning && strings.Contains(f.What, "pic.txt")
	})
	switch {
	case named != (len(want) > 0):
		tm.t.Errorf("the doctor of %s names a file that is only there: %t", at, named)
	case len(want) == 0 && len(box) > 0, len(want) > 0 && len(box) != 1:
		tm.t.Errorf("the outbox of %s has %+v", at, box)
	case len(want) > 0 && (!slices.Equal(box[0].WaitsFor, want) || box[0].File != "pic" || box[0].FileName != "pic.txt" ||
		box[0].Task != "look" || box[0].User == "" || box[0].Refused != ""):
		tm.t.Errorf("the outbox of %s has %+v, and is to wait for %v", at, box[0], want)
	}
}

// Whoever hands in a file at another node than that of the holder, which takes part or not, is told that it is only
// there, by the answer, the outbox and the doctor, until the holder of the task has fetched it; and not any more after
// a restart.
func TestAFileFromElsewhereIsOnlyThereUntilItIsFetched(t *testing.T) {
	for _, takesPart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm := aWard(t)
			name := "photos"
			if tm.add("base", photos); takesPart {
				name = "both"
				tm.add("base", `
workflow: both
data: {pic: {type: file}}
tasks:
  look: {type: manual, role: nurse, out: [pic]}
  rest: {type: manual}
partitions: {home: {tasks: [look], partner: base}, road: {tasks: [rest], partner: tablet}}
`)
			}
			id, item := tm.rounds(name, nil)
			for _, x := range tm.items("tablet", "bia") {
				if x.Task == "look" {
					item = x.ID
				}
			}
			if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			tm.wantAlone("tablet")
			tm.givesNoFiles("tablet")
			x := tm.handFile("tablet", "bia", item, "a wound")
			if !slices.Equal(x.OnlyHere, []string{"pic"}) || !x.Delivered {
				t.Errorf("the answer is %+v", x)
			}
			pass(time.Minute)
			tm.wantAlone("tablet", "base")
			if x.Elsewhere == takesPart {
				t.Errorf("takes part: %t; the item says that its instance is elsewhere: %t", takesPart, x.Elsewhere)
			}
			if in := tm.show("base", id); len(in.OnlyHere) > 0 {
				t.Errorf("base, which has no content of it, says that it is only there: %v", in.OnlyHere)
			}
			if takesPart && !slices.Contains(tm.show("tablet", id).OnlyHere, "pic") {
				t.Error("the tablet does not show that it is only there")
			}
			for range 2 { // the second start goes by what is on the disk
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				tm.connect("base", "tablet")
				pass(10 * time.Minute)
				tm.wantAlone("tablet")
			}
		})
	}
}

// Whoever holds a task and gives a file with it is told that it is only here, by all that shows it, until somebody has
// it who may read it.
func TestAFileOfTheHolderIsOnlyHereUntilItIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", readPhotos)
		tm.givesNoFiles("base")
		id, item := tm.rounds("album", nil)
		if err := tm.claim("base", "ana", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		if x := tm.handFile("base", "ana", item, "a wound"); !slices.Equal(x.OnlyHere, []string{"pic"}) {
			t.Errorf("the answer is %+v", x)
		}
		shown := func(want bool) {
			t.Helper()
			in := tm.show("base", id)
			data, err := tm.p["base"].api.Data(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(in.OnlyHere, "pic"); got != want || data[0].File.OnlyHere != want {
				t.Errorf("show says that it is only here: %t, data: %t; want %t", got, data[0].File.OnlyHere, want)
			}
		}
		pass(time.Minute)
		shown(true)
		tm.wantAlone("base", "tablet")
		for range 2 {
			tm.p["base"].crash()
			tm.p["base"].start()
			tm.connect("base", "tablet")
			pass(10 * time.Minute)
			shown(false)
			tm.wantAlone("base")
		}
	})
}

// keepsake has the tablet give a file that no task reads, so that nobody fetches it by itself.
const keepsake = `
workflow: keepsake
data: {pic: {type: file}}
tasks:
  look: {type: manual, out: [pic]}
  rest: {type: manual, after: look}
partitions: {road: {tasks: [look], partner: tablet}, home: {tasks: [rest], partner: PARTNER}}
`

// keepsakeOf has somebody start keepsake, bia give the file at the tablet, and its last task be done at a partner. All
// know then that it has ended.
func (tm *team) keepsakeOf(starter, partner string) (id string) {
	tm.t.Helper()
	tm.add(starter, strings.Replace(keepsake, "PARTNER", partner, 1))
	st, err := tm.p[starter].api.Start(tm.t.Context(), api.StartRequest{Workflow: "keepsake"})
	if err != nil {
		tm.t.Fatal(err)
	}
	pass(time.Second)
	item := tm.itemIn("tablet", "bia", st.ID)
	if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
		tm.t.Fatal(err)
	}
	tm.handFile("tablet", "bia", item, "a wound")
	pass(time.Minute)
	if box, err := tm.p["tablet"].api.Outbox(tm.t.Context(), ""); err != nil || len(box) != 1 {
		tm.t.Errorf("before the end the outbox has %+v, %v", box, err)
	}
	tm.finish(partner, st.ID, "rest")
	pass(time.Minute)
	if in := tm.show("tablet", st.ID); in.State != workflow.InstanceSucceeded {
		tm.t.Fatalf("the instance is %s", in.State)
	}
	return st.ID
}

// restartAlone has a node be killed, and start again out of reach of all others.
func (tm *team) restartAlone(at string) {
	tm.p[at].crash()
	tm.p[at].start()
	pass(time.Minute)
}

// A file that was handed in at a node is said to be only there also when its instance has ended, and after a restart,
// until somebody has fetched it who may read it.
func TestAFileOfAnEndedInstanceIsOnlyHereUntilItIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		id := tm.keepsakeOf("base", "base")
		tm.wantAlone("tablet", "base")
		tm.restartAlone("tablet")
		tm.wantAlone("tablet", "base")
		tm.connect("base", "tablet")
		pass(10 * time.Minute)
		tm.wantAlone("tablet", "base")
		box, err := tm.p["tablet"].api.Outbox(t.Context(), "")
		if err != nil || len(box) != 1 || box[0].Instance != id || box[0].Workflow != "keepsake" || !box[0].HeldHere ||
			box[0].Alone || box[0].User != "bia" || box[0].Since.IsZero() {
			t.Errorf("the outbox has %+v, %v", box, err)
		}
		_, r, err := tm.p["base"].api.File(t.Context(), id, "pic")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		tm.wantAlone("tablet")
		tm.restartAlone("tablet")
		tm.wantAlone("tablet")
	})
}

// Where the only other that may read a file of an ended instance is gone for good, it waits for nobody any more. Nor does
// one that nobody else may read.
func TestAFileOfAnEndedInstanceWaitsForNobodyWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "van")
		tm.keepsakeOf("van", "van")
		tm.wantAlone("tablet", "van")
		tm.expel("base", "van")
		pass(time.Minute)
		tm.wantAlone("tablet")
	})
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.keepsakeOf("tablet", "base") // who started it may read it
		tm.wantAlone("tablet")
	})
}

// With the facts of an ended instance it is forgotten, too, which of its files are only here: they go as well.
func TestAFileOfWhatIsGivenUpIsNotOnlyHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWardOf(t, keeping(time.Hour))
		id := tm.keepsakeOf("base", "base")
		tm.wantAlone("tablet", "base")
		pass(2 * time.Hour)
		if n := tm.p["tablet"].entries('f', id); n > 0 {
			t.Fatalf("the tablet has %d entries of its facts still", n)
		}
		tm.wantAlone("tablet")
	})
}

// Of a file whose giver has expired it is said that it may not come, as long as that one is away.
func TestAFileOfWhoHasExpiredIsSaidNotToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWardOf(t, func(c *configs.Config) { c.ConnectionTime = 20 * time.Second })
		id := tm.keepsakeOf("base", "base")
		wantGone := func(want ...string) {
			t.Helper()
			data, err := tm.p["base"].api.Data(t.Context(), id)
			if err != nil || len(data) != 1 || data[0].File == nil || !slices.Equal(data[0].File.Gone, want) {
				t.Errorf("base says %+v of %+v, %v; want %v", data[0].File, data, err, want)
			}
		}
		wantGone()
		tm.p["tablet"].crash()
		pass(time.Minute)
		wantGone("tablet")
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		pass(time.Minute)
		wantGone()
	})
}

// Whoever has an item is told of a file that its task reads, and that only a partner had who was evicted, that it is not
// on its way: at the item's holder, and at the device from which it was taken.
func TestAnItemNamesTheGiverOfItsFileWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "van:nurse")
		tm.add("base", `
workflow: keep
data: {pic: {type: file}}
tasks:
  look: {type: manual, role: nurse, out: [pic]}
  read: {type: manual, role: nurse, after: look, in: [pic]}
  note: {type: manual, after: look, in: [pic]}
  rest: {type: manual}
partitions: {home: {tasks: [look, read, note], partner: base}, road: {tasks: [rest], partner: van}}
`)
		tm.givesNoFiles("tablet")
		id := tm.begin("base", "keep", nil)
		pass(time.Second)
		look := tm.itemIn("tablet", "bia", id)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, look); err != nil {
			t.Fatal(err)
		}
		tm.handFile("tablet", "bia", look, "a wound")
		pass(time.Minute)
		items := map[string]string{"van": tm.itemOf("van", "van", "read").ID, "base": tm.itemOf("base", "base", "note").ID}
		for at, item := range items {
			if err := tm.claim(at, at, api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
		}
		want := func(gone ...string) {
			t.Helper()
			for at, item := range items {
				s := tm.sheet(at, at, item)
				if s.Coming == nil || (s.Coming.Advice == api.AdviceGone) != (gone != nil) {
					t.Errorf("%s is advised %+v", at, s.Coming)
				}
				if len(s.Data) != 1 || s.Data[0].File == nil || s.Data[0].File.Here || !slices.Equal(s.Data[0].File.Gone, gone) {
					t.Errorf("%s is told %+v of %+v; want that %v are gone", at, s.Data, s.Data[0].File, gone)
				}
			}
			if data, err := tm.p["van"].api.Data(t.Context(), id); err != nil || len(data) != 1 ||
				!slices.Equal(data[0].File.Gone, gone) {
				t.Errorf("the instance has %+v, %v; want that %v are gone", data[0].File, err, gone)
			}
		}
		want()
		tm.expel("base", "tablet")
		pass(time.Minute)
		want("tablet")
	})
}

// Of a content that its holder has already, as it was given there as well, nobody fetches anything: the holder is
// asked.
func TestAFileThatItsHolderHasAlreadyIsNotOnlyHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", photos)
		_, item := tm.rounds("photos", nil)
		if _, err := tm.p["base"].api.PutFile(t.Context(), "pic.txt", strings.NewReader("a wound")); err != nil {
			t.Fatal(err)
		}
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.handFile("tablet", "bia", item, "a wound")
		pass(5 * time.Minute)
		tm.wantAlone("tablet")
	})
}

// A file that was given with a result which its holder refused is for nobody: it waits for nobody when the item is done
// well, with another file.
func TestAFileOfARefusedResultIsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", photos)
		_, item := tm.rounds("photos", nil)
		if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
			t.Fatal(err)
		}
		tm.givesNoFiles("tablet")
		for _, outputs := range []map[string]string{
			{"foto": ""},            // there is no such data
			{"pic": "", "foto": ""}, // one of them is right
		} {
			for name := range outputs {
				f, err := tm.p["tablet"].api.PutFile(t.Context(), "pic.txt",
					strings.NewReader("a blurred wound, as "+name))
				if err != nil {
					t.Fatal(err)
				}
				outputs[name] = f.Value
			}
			_, err := tm.p["tablet"].api.FinishItem(t.Context(),
				api.ItemResult{User: "bia", Item: item, Outputs: outputs})
			wantCode(t, err, api.Invalid, "has no data foto")
			pass(time.Minute)
			tm.wantAlone("tablet")
		}
		tm.handFile("tablet", "bia", item, "a wound")
		pass(time.Minute)
		tm.wantAlone("tablet", "base") // the one that counts
		tm.p["tablet"].crash()
		tm.p["tablet"].start()
		tm.connect("base", "tablet")
		pass(10 * time.Minute)
		tm.wantAlone("tablet")
	})
}
