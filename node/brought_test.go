package node_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const photos = `
workflow: photos
data: {pic: {type: file}}
tasks: {look: {type: manual, role: nurse, offline: true, out: [pic]}}
partitions: {home: {tasks: [look], partner: base}}
`

// alsoTells is photos that goes on after its result.
const alsoTells = `
workflow: photos
data: {pic: {type: file}}
tasks: {look: {type: manual, role: nurse, offline: true, out: [pic]}, tell: {type: manual, after: look}}
partitions: {home: {tasks: [look, tell], partner: base}}
`

// A user hands in a file at a node that takes no part in the instance, in reach or not: the result counts at once, and
// the holder fetches the content from there, also if the node is started again before that. Nobody else gets it there.
func TestAFileComesWithTheResultOfANodeThatTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "mal")
		tm.add("base", photos)
		for _, away := range []bool{false, true} {
			text := map[bool]string{false: "a wound", true: "the same wound, a day later"}[away]
			id, item := tm.rounds("photos", nil)
			how := map[bool]string{false: api.ClaimSelect, true: api.ClaimLock}[away]
			if err := tm.claim("tablet", "bia", how, item); err != nil {
				t.Fatal(err)
			}
			if away {
				tm.goesAway("tablet")
				pass(long(24 * time.Hour))
			}
			f, err := tm.p["tablet"].api.PutFile(t.Context(), "small.txt", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}); err != nil {
				t.Fatal(err)
			}
			if away {
				pass(long(3 * 24 * time.Hour))
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				pass(3 * time.Hour)
				tm.comesBack("tablet", "base")
			}
			pass(time.Minute)
			if in, err := tm.p["base"].api.Show(t.Context(), id); err != nil ||
				in.Tasks[0].State != workflow.Succeeded {
				t.Fatalf("out of reach: %t: it does not count: %v, %+v", away, err, in.Tasks)
			}
			ref, err := workflow.ParseFile(f.Value)
			if err != nil {
				t.Fatal(err)
			}
			req, err := wire.EncodeFileAsk(wire.FileAsk{Instance: instance(t, id), Item: "pic", File: ref.String(), Sums: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["mal"].plug.Request(t.Context(), tm.p["tablet"].id(), nil, files.Protocol, req); err == nil {
				t.Error("somebody who does not hold the task has the file from the tablet")
			}
			_, content, err := tm.p["base"].api.File(t.Context(), id, "pic")
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(content); err != nil || string(b) != text {
				t.Errorf("out of reach: %t: it is %q, %v", away, b, err)
			}
			content.Close()
		}
	})
}

// The link is lost while the holder of an item fetches the file that came with its result from a device that takes no
// part: the result counts, the file is only at the device, which says so, and it comes when they are connected again, also
// to a holder that was started again, and where that result ended the instance. What had come is not asked for again.
func TestCutWhileTheFileOfAResultComes(t *testing.T) {
	for name, plan := range map[string]string{
		"the instance ends": photos,
		"it goes on":        alsoTells,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cutWhileTheFileOfAResultComes(t, plan) })
		})
	}
}

func cutWhileTheFileOfAResultComes(t *testing.T, plan string) {
	tm := aWard(t)
	tm.add("base", plan)
	id, item := tm.rounds("photos", nil)
	if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
		t.Fatal(err)
	}
	pic := bytes.Repeat([]byte("pic."), 2<<20) // eight chunks: the last is not under way when it breaks
	f, err := tm.p["tablet"].api.PutFile(t.Context(), "pic.txt", bytes.NewReader(pic))
	if err != nil {
		t.Fatal(err)
	}
	over := tm.breaksOnce("tablet", "base", 5)
	if err := tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		pass(time.Minute)
		if in := tm.show("base", id); in.Tasks[0].State != workflow.Succeeded || tm.here("base", f.Value) {
			t.Errorf("look is %s; its file is at base: %t", in.Tasks[0].State, tm.here("base", f.Value))
		}
		tm.wantAlone("tablet", "base")
		tm.p["base"].crash()
		tm.p["base"].start()
	}
	pass(time.Hour)
	tm.heals(over, "tablet", "base")
	pass(time.Minute)
	over.wantGoesOn(t, len(pic), 2) // of the link, and of the holder
	tm.wantAlone("tablet")
	_, content, err := tm.p["base"].api.File(t.Context(), id, "pic")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(content); err != nil || !bytes.Equal(b, pic) {
		t.Errorf("%d bytes are there, %v", len(b), err)
	}
	content.Close()
}

// A user who only names the hash of a file hands in none, whoever has it; the result is not written down.
func TestAFileThatIsOnlyNamedIsNotHandedIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", photos)
		f, err := tm.p["base"].api.PutFile(t.Context(), "list.txt", strings.NewReader("all patients"))
		if err != nil {
			t.Fatal(err)
		}
		_, item := tm.rounds("photos", nil)
		for _, how := range []string{api.ClaimSelect, api.ClaimLock} {
			if err := tm.claim("tablet", "bia", how, item); err != nil {
				t.Fatal(err)
			}
			wantCode(t, tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}), api.Refused, "is not at this node")
		}
		tm.wantItems("tablet", "bia", "look LOCKED")
	})
}

// A node that gave a file with a result asks the holder of the task whether that has it, and forgets it a day later, also
// where it was started again meanwhile. While the holder does not have it, as the result does not count, it can be
// fetched; and nobody is told of files that others gave.
func TestAFileIsForgottenOnceItsHolderHasIt(t *testing.T) {
	for name, counts := range map[string]bool{"the result counts": true, "it does not count": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := aWard(t, "mal")
				tm.add("base", photos)
				id, item := tm.rounds("photos", nil)
				if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
					t.Fatal(err)
				}
				f, err := tm.p["tablet"].api.PutFile(t.Context(), "small.txt", strings.NewReader("a wound"))
				if err != nil {
					t.Fatal(err)
				}
				if !counts {
					if _, err := tm.p["base"].api.TransferItem(t.Context(),
						api.TransferRequest{User: "ana", Item: item, Back: true}); err != nil {
						t.Fatal(err)
					}
				}
				err = tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value})
				if counts != (err == nil) {
					t.Fatal(err)
				}
				pass(time.Minute)
				tm.p["tablet"].crash()
				tm.p["tablet"].start()
				tm.connect("base", "tablet")
				pass(23 * time.Hour)
				ask := func(from, at, protocol string) (string, error) {
					req, err := wire.EncodeFileAsk(wire.FileAsk{
						Instance: instance(t, id), Item: "pic", File: f.Value, Sums: true,
					})
					if err != nil {
						t.Fatal(err)
					}
					b, err := tm.p[from].plug.Request(t.Context(), tm.p[at].id(), nil, protocol, req)
					return string(b), err
				}
				if _, err := ask("base", "tablet", files.Protocol); err != nil {
					t.Errorf("within a day: %v", err)
				}
				pass(3 * time.Hour)
				if _, err := ask("base", "tablet", files.Protocol); counts != (err != nil) {
					t.Errorf("a day later: %v", err)
				}
				if said, _ := ask("mal", "base", worklists.ProtocolGiven); said == "whole" {
					t.Error("whoever did not give the file is told that it is there")
				}
				if said, _ := ask("tablet", "base", worklists.ProtocolGiven); counts != (said == "whole") {
					t.Errorf("whoever gave it is told %q", said)
				}
			})
		})
	}
}

const sketches = `
workflow: sketches
data: {pic: {type: file}, n: {type: integer}}
tasks:
  look: {type: manual, role: nurse, offline: true, out: [pic]}
  proc: {after: look, application: slow, in: [pic], out: [n], contingency: byhand}
  byhand: {type: manual, role: nurse, in: [pic], out: [n]}
partitions: {home: {tasks: [look], partner: base}, away: {tasks: [proc], partner: depot}, spare: {tasks: [byhand], partner: base}}
`

// The holder of a person's task has no room for the file that came with the result. Whoever has a task that reads it
// gets it from the node where it was handed in, once the holder says that it may; who may not gets nothing there. While
// the holder cannot be asked the content is waited for: that it is not given is not that nobody has it.
func TestAFileThatItsHolderHasNoRoomForIsNotLost(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tm := aWard(t, "depot", "mal")
			tm.profile("depot", api.ProfileChange{Applications: &[]string{"slow"}})
			pass(time.Second)
			tm.add("base", sketches)
			id, item := tm.rounds("sketches", nil)
			if err := tm.claim("tablet", "bia", api.ClaimSelect, item); err != nil {
				t.Fatal(err)
			}
			f, err := tm.p["tablet"].api.PutFile(t.Context(), "huge.bin", strings.NewReader("a wound"))
			if err != nil {
				t.Fatal(err)
			}
			for _, giver := range []string{"tablet", "depot"} { // as if base had no room for it
				answer := tm.p[giver].plug.handlers[files.Protocol]
				tm.p[giver].plug.HandleRequest(files.Protocol, false, func(from workflow.PartnerID, req []byte) ([]byte, error) {
					if from == tm.p["base"].id() {
						return nil, io.ErrClosedPipe
					}
					return answer(from, req)
				})
			}
			if away {
				tm.disconnect("tablet", "depot")
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}); err != nil {
				t.Fatal(err)
			}
			if away {
				tm.disconnect("tablet", "base")
				tm.connect("tablet", "depot")
			}
			ref, err := workflow.ParseFile(f.Value)
			if err != nil {
				t.Fatal(err)
			}
			req, err := wire.EncodeFileAsk(wire.FileAsk{Instance: instance(t, id), Item: "pic", File: ref.String(), Sums: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tm.p["mal"].plug.Request(t.Context(), tm.p["tablet"].id(), nil, files.Protocol, req); err == nil {
				t.Error("somebody who has no task that reads the file has it from the tablet")
			}
			if away {
				pass(10 * time.Minute)
				in := tm.show("depot", id)
				if x := in.Tasks[1]; x.State != workflow.Running || !strings.Contains(x.Reason, "it is for base") {
					t.Errorf("while its holder is away: proc is %s (%s)", x.State, x.Reason)
				}
				tm.connect("tablet", "base")
			}
			pass(3 * time.Minute)
			in := tm.show("depot", id)
			if x := in.Tasks[1]; x.State != workflow.Succeeded || len(in.Incidents) > 0 {
				t.Errorf("away: %t: proc is %s (%s), with %+v", away, x.State, x.Reason, in.Incidents)
			}
			if tm.here("base", f.Value) {
				t.Fatal("the file is at base, so that this says nothing")
			}
		})
	}
}

// What a person did counts also where its holder has the content of the file that comes with it, and cannot note that now,
// as its disk is full: it is noted later.
func TestAResultWaitsForNoNoteOfItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t, "depot")
		tm.profile("depot", api.ProfileChange{Applications: &[]string{"slow"}})
		pass(time.Second)
		tm.add("base", sketches)
		var second string
		for i := range 2 {
			id, item := tm.rounds("sketches", nil)
			if err := tm.claim("tablet", "bia", api.ClaimLock, item); err != nil {
				t.Fatal(err)
			}
			f, err := tm.p["tablet"].api.PutFile(t.Context(), "same.bin", strings.NewReader("a wound"))
			if err != nil {
				t.Fatal(err)
			}
			folder := ""
			if i == 1 { // base has it by now
				ref, err := workflow.ParseFile(f.Value)
				if err != nil {
					t.Fatal(err)
				}
				path, here := tm.stores[tm.p["base"].id()].Path(ref)
				if folder = filepath.Dir(path); !here {
					t.Fatal("base has not fetched it")
				}
				if err := os.Rename(folder, folder+"-away"); err != nil {
					t.Fatal(err)
				}
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}); err != nil {
				t.Errorf("handing it in: %v", err)
			}
			tm.wantStates(id, "look", workflow.Succeeded, "base")
			if second = id; folder != "" {
				if err := os.Rename(folder+"-away", folder); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Minute)
		}
		pass(10 * time.Minute)
		tm.wantStates(second, "proc", workflow.Succeeded, "base", "depot")
	})
}
