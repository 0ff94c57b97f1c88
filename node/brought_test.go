package node_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const photos = `
workflow: photos
data: {pic: {type: file}}
tasks: {look: {type: manual, role: nurse, offline: true, out: [pic]}}
partitions: {home: {tasks: [look], partner: base}}
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
				pass(24 * time.Hour)
			}
			f, err := tm.p["tablet"].api.PutFile(t.Context(), "small.txt", strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := tm.hand("tablet", "bia", item, map[string]string{"pic": f.Value}); err != nil {
				t.Fatal(err)
			}
			if away {
				pass(3 * 24 * time.Hour)
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
