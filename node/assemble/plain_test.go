package assemble_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// A thief of a device reads in its files what the node keeps: the data of instances and the
// names of partners, as they are; and a copy of the folder has the partner's key.
func TestTheDiskCanBeReadInPlain(t *testing.T) {
	const secret = "the-insulin-is-behind-the-third-hut"
	ctx := context.Background()
	all := team(t, "ana", "bea-of-the-north-bank")
	ana := all["ana"].h.Service()
	source := `{workflow: hidden, data: {place: {type: string}}, tasks: {look: {type: manual}}}`
	if _, err := ana.AddWorkflow(ctx, "test.yaml", []byte(source)); err != nil {
		t.Fatal(err)
	}
	r := api.StartRequest{
		Workflow: "hidden", Input: map[string]string{"place": secret}, Assign: map[string]string{"main": "ana"},
	}
	if _, err := ana.Start(ctx, r); err != nil {
		t.Fatal(err)
	}
	is, err := ana.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all["ana"].close()
	defer all["ana"].start() // the team closes it once more
	stolen := filepath.Join(t.TempDir(), "stolen")
	if err := os.CopyFS(stolen, os.DirFS(all["ana"].dir)); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{secret, "bea-of-the-north-bank"} {
		found := false
		err := filepath.WalkDir(stolen, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			found = found || bytes.Contains(b, []byte(what))
			return err
		})
		if err != nil || !found {
			t.Errorf("%q is in no file of the folder, %v: if the node encrypts its disk by now, docs/security.md is to say so", what, err)
		}
	}
	for _, name := range node.PrivateFiles() { // as the thief may make it, too
		if err := os.Chmod(filepath.Join(stolen, name), 0o600); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if m, err := node.LoadMember(stolen); err != nil || m.ID() != is.ID {
		t.Errorf("the copy is of %s, %v; want %s", m.ID(), err, is.ID)
	}
}
