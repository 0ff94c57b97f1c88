package workflow

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mutirao-mesh/mutirao/internal/golden"
)

// Each file in testdata/mistakes shows one kind of mistake; the .txt beside it
// is what a user sees.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Parse(name, src)
			if err == nil {
				t.Fatalf("%s has no mistakes: %s", name, d.Canonical())
			}
			golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", []byte(err.Error()+"\n"))
		})
	}
}

// What is not YAML is told in our words, at the place of the mistake: each file of
// testdata/not-yaml.txtar, with what a user sees in the .txt beside it.
func TestNotYAML(t *testing.T) {
	const name = "testdata/not-yaml.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out txtar.Archive
	for _, f := range archive.Files {
		if path.Ext(f.Name) != ".yaml" {
			continue
		}
		d, err := Parse(f.Name, f.Data)
		if err == nil {
			t.Fatalf("%s has no mistakes: %s", f.Name, d.Canonical())
		}
		out.Files = append(out.Files, f,
			txtar.File{Name: strings.TrimSuffix(f.Name, ".yaml") + ".txt", Data: []byte(err.Error() + "\n")})
	}
	golden.Compare(t, name, txtar.Format(&out))
}
