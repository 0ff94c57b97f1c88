package workflow

import (
	"os"
	"path/filepath"
	"testing"
)

// The example workflows that ship with the program are free of mistakes, and
// stay themselves in their canonical form.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../configs/workflows/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples: %v, %v; want at least 5", files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(filepath.Base(file), src)
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := Parse("canonical", d.Canonical())
		if err != nil {
			t.Errorf("%s: canonical form: %v\n%s", file, err, d.Canonical())
			continue
		}
		if again.Hash() != d.Hash() || string(again.WrittenOut()) != string(d.WrittenOut()) {
			t.Errorf("%s: the canonical form changed:\n%s\n%s", file, d.Canonical(), again.Canonical())
		}
	}
}
