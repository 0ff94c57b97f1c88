package study

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Charts in Portuguese say all that those in English do, and nothing in English.
func TestChartsInPortuguese(t *testing.T) {
	together, three := small(), Builtin("three")
	together.Together, together.Loads = true, []float64{1}
	three.Repetitions = 2 // of some of its published signs nothing is known here
	texts := regexp.MustCompile(`>([^<>]*[a-z][^<>]*)<`)
	in := func(c *Chart) (out []string) {
		for _, m := range texts.FindAllStringSubmatch(string(c.SVG), -1) {
			out = append(out, m[1])
		}
		return out
	}
	words := 0
	for _, s := range []*Scenario{small(), together, three} {
		r := report(t, s, 1, nil, aptitude.Mechanisms()...)
		r.Published = compareToSource(r)
		there := r.ChartsIn(Portuguese)
		for i, c := range r.Charts() {
			english, portuguese := in(&c), in(&there[i])
			if there[i].Name != c.Name || len(english) != len(portuguese) {
				t.Fatalf("%s with %d texts is %s with %d in Portuguese", c.Name, len(english), there[i].Name, len(portuguese))
			}
			words += len(english)
			for k, text := range portuguese {
				same := text == english[k] && !slices.Contains(r.Mechanisms, aptitude.Mechanism(text))
				if same || strings.Contains(text, "0.") {
					t.Errorf("%s says %q in Portuguese", c.Name, text)
				}
			}
		}
	}
	if words < 300 {
		t.Errorf("only %d texts were compared", words)
	}
}
