package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A task may begin in the round in which its instance came here. What it asks of the instance, as for its
// files, finds it.
func TestWhatBeginsIsInAnInstanceThatIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "ana", "bia")
		tm.add("ana", "workflow: flood\ntasks: {look: {}, warn: {after: look}}\npartitions: {pa: [warn], pb: [look]}\n")
		begun := 0
		tm.p["bia"].hand.begins = func(j runner.Job) {
			begun++
			if !node.IsHere(tm.p["bia"].node, j.Instance) {
				t.Error("a task begins, and its instance is not here")
			}
		}
		tm.begin("ana", "flood", map[string]string{"pa": "ana", "pb": "bia"})
		synctest.Wait()
		if begun != 1 {
			t.Errorf("%d tasks began at bia", begun)
		}
	})
}

// keepsFiles has a node keep files, up to a MiB of them.
func keepsFiles(t *testing.T) func(*node.Parts) {
	return func(p *node.Parts) {
		kept, err := files.Open(t.TempDir(), files.Options{Limit: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p.Files = kept
	}
}

// Whoever takes part sees the reference of a file. That it says that it gave the file as well
// does not let it have the content.
func TestACopiedReferenceGivesNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, keepsFiles(t), "ana", "mal")
		ana := tm.p["ana"]
		tm.add("ana", "workflow: care\ndata: {photo: {type: file, readers: [medic]}}\ntasks:\n  look: {type: manual, out: [photo]}\n  again: {type: manual, out: [photo]}\n  end: {type: manual, after: [look, again]}\npartitions: {pa: [look, end], pb: [again]}\n")
		f, err := ana.api.PutFile(t.Context(), "photo", strings.NewReader("under the mat"))
		if err != nil {
			t.Fatal(err)
		}
		id := tm.begin("ana", "care", map[string]string{"pa": "ana", "pb": "mal"})
		if err := ana.api.FinishTask(t.Context(),
			api.FinishRequest{ID: id, Task: "look", Outputs: map[string]string{"photo": f.Value}}); err != nil {
			t.Fatal(err)
		}
		asks := func() error {
			file, err := workflow.ParseFile(f.Value)
			if err != nil {
				t.Fatal(err)
			}
			req, err := wire.EncodeFileAsk(wire.FileAsk{
				Instance: instance(t, id), Item: "photo", File: file.String(), Sums: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = tm.p["mal"].plug.Request(t.Context(), ana.id(), nil, files.Protocol, req)
			return err
		}
		if asks() == nil {
			t.Fatal("mal has a file of which it is no reader")
		}
		l := tm.forger("mal", id)
		a := fact.AttemptID{Slot: "again"}
		l.says("ana", tm.headSent(l.id), fact.Body{Start: &fact.Start{Attempt: a, Try: 1}})
		l.says("ana", tm.headSent(l.id),
			fact.Body{Success: &fact.Success{
				Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"photo": f.Value},
			}})
		if in, err := ana.api.Show(t.Context(), id); err != nil || in.Tasks[1].State != workflow.Succeeded {
			t.Fatalf("what mal says does not count: %v, %+v", err, in.Tasks)
		}
		if err := asks(); err == nil {
			t.Error("mal has a file, as it says that it gave it")
		}
	})
}

// Whoever gives a file for which limits.files has no room is told that, whatever is free on the disk.
func TestAFileBeyondTheLimitSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, nil, keepsFiles(t), "one")
		_, err := tm.p["one"].api.PutFile(t.Context(), "photo", strings.NewReader(strings.Repeat("x", 2<<20)))
		wantCode(t, err, api.Refused, "file photo is not kept: there is room for")
		if hint := hintOf(err); !strings.Contains(hint, "raise limits.files in config.yaml") {
			t.Errorf("what to do is %q", hint)
		}
	})
}

// A file that is not here yet is no fault of the node: who asks is told so, that it may come from anybody who has it, and
// gets no exit status of a node that does not run.
func TestAFileThatIsNotHereYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := aWard(t)
		tm.add("base", `
workflow: late
data: {pic: {type: file, required: true}}
tasks:
  first: {type: manual}
  look:  {type: manual, after: first, in: [pic]}
partitions: {a: {tasks: [first], partner: base}, b: {tasks: [look], partner: tablet}}
`)
		f, err := tm.p["base"].api.PutFile(t.Context(), "pic.txt", strings.NewReader("a river"))
		if err != nil {
			t.Fatal(err)
		}
		tm.p["base"].plug.HandleRequest(files.Protocol, false, func(workflow.PartnerID, []byte) ([]byte, error) {
			return nil, errors.New("not now")
		})
		st, err := tm.p["base"].api.Start(t.Context(), api.StartRequest{Workflow: "late", Input: map[string]string{"pic": f.Value}})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		tm.disconnect("base", "tablet")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _, err = tm.p["tablet"].api.File(ctx, st.ID, "pic")
		wantCode(t, err, api.NotYet, "file pic.txt is not here yet: base: cannot be reached")
		var no *api.Error
		if errors.As(err, &no) && (no.Code.Exit() != 1 || !strings.Contains(no.Hint, "from any partner that has it")) {
			t.Errorf("exit status %d, and the hint %q", no.Code.Exit(), no.Hint)
		}
	})
}
