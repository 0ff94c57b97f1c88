package node_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
)

// photographed adds to patrol a photo that is taken at one node and looked at with the other.
var photographed = []string{
	"tasks:\n", "data: {pic: {type: file, name: view.jpg, readers: [one, two], label: The view}}\ntasks:\n",
	"  rest:", "  shoot: {type: manual, out: [pic]}\n  see: {type: manual, after: shoot, in: [pic]}\n  rest:",
	"tasks: [walk]", "tasks: [walk, shoot]", "tasks: [rest]", "tasks: [rest, see]",
}

// A file is among the data that an amendment adds to an instance whose definition has none: it comes to whoever needs
// it, people see it, and whoever gave it notices if it is lost there and has it come back.
func TestAFileIsAddedToTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		tm := newTeamWith(t, nil, func(p *node.Parts) {
			var err error
			p.Files, err = files.Open(filepath.Join(root, string(p.Member.ID())), files.Options{Limit: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
		}, "one", "two", "three")
		tm.add("one", patrol)
		id := tm.begin("one", "patrol", nil)
		if _, err := tm.amend("one", "one", id, photographed...); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		f, err := tm.p["two"].api.PutFile(t.Context(), "view.jpg", strings.NewReader("a river"))
		if err != nil {
			t.Fatal(err)
		}
		tm.ends("two", id, api.FinishRequest{Task: "shoot", Outputs: map[string]string{"pic": f.Value}})
		pass(10 * time.Second)
		here := func(at string) bool {
			t.Helper()
			data, err := tm.p[at].api.Data(t.Context(), id)
			i := slices.IndexFunc(data, func(d api.DataItem) bool { return d.Name == "pic" })
			if err != nil || i < 0 || data[i].Label != "The view" || data[i].File == nil {
				t.Fatalf("at %s it is %+v, %v", at, data, err)
			}
			return data[i].File.Here
		}
		if !here("one") {
			t.Error("it did not come to whoever is to look at it")
		}
		tm.p["two"].crash()
		if err := os.RemoveAll(filepath.Join(root, string(tm.p["two"].id()))); err != nil {
			t.Fatal(err)
		}
		tm.p["two"].start()
		tm.connect("one", "two")
		pass(2 * time.Hour)
		if !here("two") {
			t.Error("whoever gave it has lost it, and does not notice")
		}
		_, content, err := tm.p["two"].api.File(t.Context(), id, "pic")
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if b, err := io.ReadAll(content); err != nil || string(b) != "a river" {
			t.Errorf("it is %q, %v", b, err)
		}
		tm.finish("one", id, "see")
	})
}
