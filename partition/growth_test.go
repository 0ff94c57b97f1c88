package partition

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// shapes are definitions of n parts in which many things on one side have to do with
// many on the other.
var shapes = []struct {
	name string
	text func(b *strings.Builder, n int)
}{
	{"all write and read one data item", func(b *strings.Builder, n int) {
		b.WriteString("data: {x: {type: integer}}\ntasks:\n")
		conditions(b, n, "  t%d: {when: x > %d, out: [x]}")
	}},
	{"many write what many read", func(b *strings.Builder, n int) {
		b.WriteString("data: {x: {type: integer}}\ntasks:\n")
		each(b, n, "  t%d: {timeout: 1s, out: [x]}")
		conditions(b, n, "  u%d: {when: x > %d}")
	}},
	{"many wait for a shared contingency of many", func(b *strings.Builder, n int) {
		b.WriteString("tasks:\n  c: {}\n")
		each(b, n, "  a%d: {contingency: c}")
		each(b, n, "  b%d: {after: c}")
	}},
	{"a contingency with a rule of its own writes much and stands in for many", func(b *strings.Builder, n int) {
		b.WriteString("data:\n")
		each(b, n, "  x%d: {type: integer}")
		b.WriteString("tasks:\n  first: {timeout: 1s}\n  c: {after: first, timeout: 1s, out: [x0")
		for i := range n - 1 {
			fmt.Fprintf(b, ", x%d", i+1)
		}
		b.WriteString("]}\n")
		each(b, n, "  a%d: {contingency: c, timeout: 1s}")
		each(b, n, "  b%d: {when: x%[1]d > 0}")
	}},
	{"a fan-out and a join", func(b *strings.Builder, n int) {
		b.WriteString("tasks:\n  first: {}\n")
		each(b, n, "  t%d: {after: first}")
		b.WriteString("  last: {after: [first")
		for i := range n {
			fmt.Fprintf(b, ", t%d", i)
		}
		b.WriteString("]}\n")
	}},
	{"triggers behind one task that waits for many", func(b *strings.Builder, n int) {
		b.WriteString("tasks:\n  first: {timeout: 1s}\n")
		each(b, n, "  a%d: {timeout: 1s}")
		b.WriteString("  hub: {timeout: 1s, after: [first")
		for i := range n {
			fmt.Fprintf(b, ", a%d", i)
		}
		b.WriteString("]}\n")
		each(b, n, "  e%d: {after: hub, time-to-wait: 1s, timeout: 1s}")
		b.WriteString("partitions:\n")
		each(b, n, "  p%d: [e%[1]d]")
		each(b, n, "  q%d: [a%[1]d]")
		b.WriteString("  r: [first, hub]\n")
	}},
	{"many partitions side by side", func(b *strings.Builder, n int) {
		b.WriteString("tasks:\n")
		each(b, n, "  a%d: {timeout: 1s}")
		each(b, n, "  b%d: {timeout: 1s, after: a%[1]d}")
		b.WriteString("partitions:\n")
		each(b, n, "  p%d: [a%[1]d, b%[1]d]")
	}},
}

func each(b *strings.Builder, n int, line string) {
	for i := range n {
		fmt.Fprintf(b, line+"\n", i)
	}
}

// conditions is each with a condition in the line: as many different ones as a definition
// may have where thousands write what they are about (workflow.MaxEvaluations).
func conditions(b *strings.Builder, n int, line string) {
	for i := range n {
		fmt.Fprintf(b, line+"\n", i, i%64)
	}
}

// Deriving a plan takes memory and steps in proportion to the definition: ten times
// as large, about ten times as dear. So does asking it about every task.
func TestGrowth(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			var bytes, steps [3]int
			for i, n := range []int{30, 300, 3000} {
				bytes[i], steps[i] = planCost(t, definition(t, s.text, n))
			}
			for i := range 2 {
				if bytes[i+1] > 14*bytes[i] {
					t.Errorf("ten times the size takes %d bytes after %d", bytes[i+1], bytes[i])
				}
				if steps[i+1] > 14*steps[i] {
					t.Errorf("ten times the size takes %d steps after %d", steps[i+1], steps[i])
				}
			}
		})
	}
}

func definition(t *testing.T, text func(b *strings.Builder, n int), n int) *workflow.Definition {
	t.Helper()
	var b strings.Builder
	b.WriteString("workflow: big\n")
	text(&b, n)
	def, err := workflow.Parse("big", []byte(b.String()))
	if err != nil {
		t.Fatalf("%.500v", err)
	}
	return def
}

func planCost(t *testing.T, def *workflow.Definition) (bytes, steps int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := New(def)
	runtime.ReadMemStats(&after)
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return int(after.TotalAlloc - before.TotalAlloc), p.graph.steps
}

// What would cost more than its size has a limit, which the error names.
func TestTooDear(t *testing.T) {
	for _, c := range []struct {
		name string
		text func(b *strings.Builder, n int)
		n    int
		want string
	}{
		{"one path through all partitions and back", func(b *strings.Builder, n int) {
			b.WriteString("tasks:\n  t0: {timeout: 1s}\n")
			for i := 1; i < 2*n; i++ {
				fmt.Fprintf(b, "  t%d: {after: t%d, timeout: 1s}\n", i, i-1)
			}
			b.WriteString("partitions:\n")
			for i := range n {
				fmt.Fprintf(b, "  p%d: [t%d, t%d]\n", i, i, 2*n-1-i)
			}
		}, 4000, "take more than 8388608 steps"},
		{"long chains of contingencies before many", func(b *strings.Builder, n int) {
			b.WriteString("tasks:\n  c31: {}\n")
			for i := range 31 {
				fmt.Fprintf(b, "  c%d: {contingency: c%d}\n", i, i+1)
			}
			for i := range n {
				fmt.Fprintf(b, "  t%d: {contingency: c0}\n  u%d: {after: [t%d", i, i, i)
				for j := max(i-10, 0); j < i; j++ {
					fmt.Fprintf(b, ", t%d", j)
				}
				b.WriteString("]}\n")
			}
		}, 2000, "at most 524288 are allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := New(definition(t, c.text, 10)).Err(); err != nil {
				t.Errorf("a small one: %v", err)
			}
			err := New(definition(t, c.text, c.n)).Err()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
