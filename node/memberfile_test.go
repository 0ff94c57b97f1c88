package node_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whatever bit flips in the files that hold a node's identity: it is noticed, or the
// node is the same member of the same mesh. Whatever the damage looks like, it is refused
// in one way, so that nobody takes it for something that somebody else may do, and no
// service manager starts the node for ever.
func TestDamagedMemberFiles(t *testing.T) {
	dir := t.TempDir()
	was, err := node.Init(dir, node.InitOptions{Mesh: "test", Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	asIfNotAllowed := 0
	for _, name := range []string{"key", "member"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := [][]byte{nil, make([]byte, len(whole)), whole[:len(whole)/2]}
		for i := range whole {
			b := bytes.Clone(whole)
			b[i] ^= 1 << (i % 8)
			damaged = append(damaged, b)
		}
		for i, b := range damaged {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			is, err := node.LoadMember(dir)
			switch {
			case err != nil && !strings.Contains(err.Error(), "is damaged"):
				t.Errorf("%s, damage %d: %v; want that it is damaged", name, i, err)
			case err == nil && (is.ID() != was.ID() || is.Mesh.ID() != was.Mesh.ID()):
				t.Errorf("%s, damage %d: it is another member", name, i)
			}
			var shown *api.Error
			if err != nil && (!errors.As(node.Explain(err, workflow.PartnerID.Short), &shown) ||
				shown.Code != api.Refused) {
				t.Errorf("%s, damage %d: %v is explained as %v, want %s", name, i, err, shown, api.Refused)
			}
			if errors.Is(err, trust.ErrNotAllowed) {
				asIfNotAllowed++
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if asIfNotAllowed == 0 {
		t.Error("no damage looks like something that is not allowed, want some")
	}
}
