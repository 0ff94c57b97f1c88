package workflow

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// shapes are definitions of n parts that ask for more than their size where
// somebody is careless: pairs of writers and readers, of those who wait for a
// shared contingency and those it stands in for, and so on.
var shapes = []struct {
	name  string
	wrong bool // it has mistakes
	text  func(n int) string
}{
	{"all write and read one data item", false, func(n int) string {
		b := strings.Builder{}
		for i := range n {
			fmt.Fprintf(&b, "  t%d: {when: x > %d, out: [x]}\n", i, i%64) // see MaxEvaluations
		}
		return "data: {x: {type: integer}}\ntasks:\n" + b.String()
	}},
	{"many wait for a shared contingency of many", false, func(n int) string {
		return "tasks:\n  c: {}\n" + lines(n, "  a%d: {contingency: c}") + lines(n, "  b%d: {after: c}")
	}},
	{"a fan-out and a join", false, func(n int) string {
		return "tasks:\n  first: {}\n" + lines(n, "  t%d: {after: first}") + "  last: {after: [" + list(n, "t%d") +
			"]}\n"
	}},
	{"many partitions, one path through all of them and back", false, func(n int) string {
		var b strings.Builder
		b.WriteString("tasks:\n  t0: {timeout: 1s}\n")
		for i := 1; i < 2*n; i++ {
			fmt.Fprintf(&b, "  t%d: {after: t%d, timeout: 1s}\n", i, i-1)
		}
		b.WriteString("partitions:\n")
		for i := range n {
			fmt.Fprintf(&b, "  p%d: [t%d, t%d]\n", i, i, 2*n-1-i)
		}
		return b.String()
	}},
	{"triggers behind one task that waits for many", false, func(n int) string {
		return "tasks:\n" + lines(n, "  a%d: {timeout: 1s}") + "  hub: {timeout: 1s, after: [" + list(n, "a%d") +
			"]}\n" +
			lines(n, "  e%d: {after: hub, time-to-wait: 1s, timeout: 1s}") +
			"partitions:\n  p: [hub, " + list(n, "a%d") + "]\n" + lines(n, "  q%d: [e%[1]d]")
	}},
	{"many contingencies with rules that many wait for", false, func(n int) string {
		return "tasks:\n  root: {}\n" + lines(n, "  c%d: {after: root}") +
			lines(n, "  t%d: {after: root, contingency: c%[1]d}")
	}},
	{"contingencies that wait for each other's tasks", false, func(n int) string {
		var b strings.Builder
		b.WriteString("tasks:\n")
		for i := range n {
			fmt.Fprintf(&b, "  t%d: {contingency: c%d}\n  c%d: {after: t%d}\n", i, i, i, (i/2*2)+1-i%2)
		}
		return b.String()
	}},
	{"a long list of data", false, func(n int) string {
		return "data:\n" + lines(n, "  x%d: {type: integer}") + "tasks:\n  t: {in: [" + list(n, "x%d") + "], out: [" +
			list(n, "x%d") +
			"], application: set, with: {" + list(n, "x%d: 1") + "}}\n"
	}},
	{"comparisons with an enum", false, func(n int) string {
		return "data: {x: {type: integer, enum: [" + list(min(n, MaxEnum), "%d") + "]}}\ntasks:\n" +
			lines(n, "  t%d: {when: x == 1}")
	}},
	{"loops of one task each, with rounds", false, func(n int) string {
		return "data: {x: {type: boolean}}\ntasks:\n  a: {out: x}\n" +
			lines(n/8, "  t%d: {after: a, repeat: {times: 2, while: x}, contingency: c}") + "  c: {}\n"
	}},
	{"loops one within the other", false, func(n int) string {
		return "tasks:\n  a0: {}\n" + chain(min(n, maxLoops), "  a%d: {after: a%d, repeat: {times: 1, from: a0}}")
	}},
	{"more loops of several tasks than are allowed", true, func(n int) string {
		return "tasks:\n  a0: {}\n" + chain(n+maxLoops+2, "  a%d: {after: a%d, repeat: {times: 1, from: a0}}")
	}},
	{"a loop for which many wait", false, func(n int) string {
		return "data: {x: {type: boolean}}\ntasks:\n  a: {repeat: {times: 20, while: x}}\n" +
			lines(n/8, "  t%d: {when: failed(\"a\") or succeeded(\"a\")}")
	}},
	{"rules with choices", false, func(n int) string {
		choice := `(failed("a") or failed("b")) and `
		return "tasks:\n  a: {}\n  b: {}\n" +
			lines(n/20, "  t%d: {when: '"+strings.Repeat(choice, 20)+`succeeded("a")'}`)
	}},
	{"rules of many terms", false, func(n int) string {
		return "data: {x: {type: integer}}\ntasks:\n  a: {}\n" +
			lines(n/20, "  t%d: {when: '"+strings.Repeat("x > 1 and ", 100)+`failed("a")'}`)
	}},
	{"conditions that name each other", false, func(n int) string {
		var b strings.Builder
		b.WriteString("data: {x: {type: integer}}\nconditions:\n")
		for i := range n {
			fmt.Fprintf(&b, "  c%d: x > %d", i, i)
			if i%100 != 99 {
				fmt.Fprintf(&b, " and c%d", i+1)
			}
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  c%d: x > 1\n", n)
		return b.String() + "tasks:\n" + lines(n, "  t%d: {when: c%[1]d}")
	}},
	{"conditions that each name the next twice", true, func(n int) string {
		var b strings.Builder
		b.WriteString("data: {x: {type: integer}}\nconditions:\n")
		for i := range n {
			fmt.Fprintf(&b, "  c%d: c%d and c%[2]d\n", i, i+1)
		}
		return b.String() + fmt.Sprintf("  c%d: x > 1\ntasks: {t: {}}\n", n)
	}},
	{"all lead into a loop of contingencies", true, func(n int) string {
		return "tasks:\n  a: {contingency: b}\n  b: {contingency: a}\n" + lines(n, "  t%d: {contingency: a}")
	}},
	{"many cycles, one behind the other", true, func(n int) string {
		var b strings.Builder
		b.WriteString("tasks:\n  b0: {}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, "  a%d: {after: [b%d, b%d]}\n  b%d: {after: a%d}\n", i, i-1, i, i, i)
		}
		return b.String()
	}},
	{"misspelled names of tasks", true, func(n int) string {
		return "tasks:\n" + lines(n, "  task%d: {after: tsak%[1]d}")
	}},
	{"misspelled names of data", true, func(n int) string {
		return "data:\n" + lines(n, "  data%d: {type: integer}") + "tasks:\n" + lines(n, "  t%d: {when: dtaa%[1]d > 1}")
	}},
}

// chain is a line for each number from 1, with that and the one before.
func chain(n int, format string) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, format+"\n", i, i-1)
	}
	return b.String()
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, strings.TrimSuffix(format, "\n")+"\n", i)
	}
	return b.String()
}

func list(n int, format string) string {
	return strings.ReplaceAll(strings.TrimSuffix(lines(n, format), "\n"), "\n", ", ")
}

// Reading, checking and sealing a definition takes memory, and steps along the
// order of its tasks, in proportion to its size: ten times as large, about ten times
// as dear.
func TestGrowth(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			var bytes, steps [3]int
			for i, n := range []int{40, 400, 4000} {
				bytes[i], steps[i] = cost(t, "workflow: big\n"+s.text(n), s.wrong)
			}
			for i := range 2 {
				if bytes[i+1] > 14*bytes[i] {
					t.Errorf("ten times the size takes %d bytes after %d", bytes[i+1], bytes[i])
				}
				if steps[i+1] > 14*max(steps[i], 100) {
					t.Errorf("ten times the size takes %d steps after %d", steps[i+1], steps[i])
				}
			}
		})
	}
}

// cost is what reading a text takes.
func cost(t *testing.T, text string, wrong bool) (bytes, steps int) {
	t.Helper()
	src, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(src) > MaxSource {
		t.Fatalf("%d bytes", len(src))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Parse("big", src)
	runtime.ReadMemStats(&after)
	switch {
	case (err != nil) != wrong:
		t.Fatalf("%.500v", err)
	case err == nil:
		g := d.order()
		g.contingencies()
		g.waitingForReplaced(g.contingencies().next)
		g.knots()
		steps = g.steps
	}
	return int(after.TotalAlloc - before.TotalAlloc), steps
}

// A short text does not stand for a long one before that is known.
func TestLongModelIsRefusedBeforeItIsWrittenOut(t *testing.T) {
	needs, tasks := list(40_000, "c%d"), lines(9_000, "  t%d: {model: m}")
	bytes, _ := cost(t, "workflow: big\nmodels:\n  m: {needs: ["+needs+"]}\ntasks:\n"+tasks, true)
	if bytes > 100<<20 { // written out it would be 2 GiB of text alone
		t.Errorf("it took %d bytes", bytes)
	}
}

// A loop in many others has rounds with long names, and labels as far as they have room for the numbers.
func TestDeepLoops(t *testing.T) {
	d, err := Parse("deep", []byte("workflow: deep\ntasks:\n  a0: {label: "+strings.Repeat("x", MaxLabel)+"}\n"+
		chain(50, "  a%d: {after: a%d, label: deep, repeat: {times: 1, from: a0}}")+
		"  z: {after: a49, label: last, repeat: {times: 2, from: a0}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse("again", d.Canonical()); err != nil || again.Hash() != d.Hash() {
		t.Errorf("its canonical form: %v", err)
	}
	if z, deep := d.Task("z.2"), d.Task("a49.2.1"); z == nil || z.Label != "last · 2" || deep == nil || deep.Label != "deep · 2.1" {
		t.Errorf("%+v, %+v", z, deep)
	}
}

// Nor do the rounds of loops: not as tasks, and not as text.
func TestManyRoundsAreRefusedBeforeTheyAreWrittenOut(t *testing.T) {
	doc := strings.Repeat("x", 400_000)
	for name, tasks := range map[string]string{
		"nested": "  a0: {}\n" + chain(90, "  a%d: {after: a%d, repeat: {times: 64, from: a0}}"),
		"wide":   lines(9_000, "  t%d: {after: c, repeat: {times: 64}}") + "  c: {}\n",
		"text":   "  a: {doc: " + doc + "}\n  b: {after: a, repeat: {times: 64, from: a}}\n",
	} {
		if bytes, _ := cost(t, "workflow: big\ntasks:\n"+tasks, true); bytes > 100<<20 {
			t.Errorf("%s: it took %d bytes", name, bytes)
		}
	}
}
