package node_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// lacks is what an example says that this version cannot do yet, in its comments.
var lacks = regexp.MustCompile(`(?s)does not start it yet\. What is still missing: (.*?)\.\n`)

// Every example that is shipped starts, or says what this version still lacks for it.
func TestExamplesStartOrSayWhen(t *testing.T) {
	files, err := filepath.Glob("../configs/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		def, err := workflow.Parse(f, src)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		var want, said []string
		for _, x := range node.NotYet(def) {
			want = append(want, x.Feature)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if m := lacks.FindStringSubmatch(strings.ReplaceAll(string(src), "\n# ", " ") + "\n"); m != nil {
			said = strings.Split(m[1], ", ")
		}
		if !slices.Equal(want, said) {
			t.Errorf("%s says that this version lacks %q of what it uses: it lacks %q", f, said, want)
		}
		starts := "| now | |"
		if len(want) > 0 {
			starts = "| later | " + strings.Join(want, ", ") + " |"
		}
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		row := regexp.MustCompile(`(?m)^\| \[` + name + `\]\(` + name + `\.yaml\) \|.*$`).FindString(readme(t))
		if !strings.HasSuffix(row, starts) {
			t.Errorf("the row of %s in the README of the examples is %q: want it to end in %q", name, row, starts)
		}
	}
}

// readme is the README of the examples.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../configs/workflows/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
