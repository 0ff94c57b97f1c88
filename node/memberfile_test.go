package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node"
)

// Whatever bit flips in the files that hold a node's identity: it is noticed, or the
// node is the same member of the same mesh.
func TestDamagedMemberFiles(t *testing.T) {
	dir := t.TempDir()
	was, err := node.Init(dir, node.InitOptions{Mesh: "test", Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
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
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
