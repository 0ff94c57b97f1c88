package diagram

import (
	"path/filepath"
	"strings"
	"testing"
)

// What is said at an arrow is crossed by no other, nor by another label.
func TestLabelsAreNotCrossed(t *testing.T) {
	files, err := filepath.Glob("../../configs/workflows/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	labels := 0
	for _, file := range files {
		d := example(t, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		for _, language := range []string{English, Portuguese} {
			p, err := laidOut(newScene(d, Options{Language: language}))
			if err != nil {
				t.Fatal(err)
			}
			paths := make([][]point, len(p.scene.edges))
			for i, e := range p.scene.edges {
				paths[i] = p.route(e)
			}
			words, k := p.labels(paths)
			for _, l := range words {
				labels++
				itself := 0
				if l.squares(func(point) { itself++ }); k.crossed(l) > itself {
					t.Errorf("%s (%s): %q at %s is crossed", d.Name, language, l.of.label, p.scene.boxes[l.of.to].task.Name)
				}
			}
		}
	}
	if labels == 0 {
		t.Error("nothing is said at any arrow")
	}
}
