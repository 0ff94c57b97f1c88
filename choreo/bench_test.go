package choreo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// shape makes the tasks of a definition with n tasks.
type shape struct {
	name string
	task func(b *strings.Builder, i, n int)
}

var shapes = []shape{
	{name: "deep", task: func(b *strings.Builder, i, _ int) {
		if i == 0 {
			b.WriteString("  t0: {}\n")
			return
		}
		fmt.Fprintf(b, "  t%d: {after: t%d}\n", i, i-1)
	}},
	{name: "wide", task: func(b *strings.Builder, i, _ int) { fmt.Fprintf(b, "  t%d: {}\n", i) }},
	{name: "wide-data", task: func(b *strings.Builder, i, _ int) { fmt.Fprintf(b, "  t%d: {when: x > %d}\n", i, i%3) }},
	{name: "deep-contested", task: func(b *strings.Builder, i, _ int) {
		if i == 0 {
			b.WriteString("  t0: {on-failure: {contingency: spare}}\n  spare: {}\n")
			return
		}
		fmt.Fprintf(b, "  t%d: {after: t%d}\n", i, i-1)
	}},
}

func (s shape) definition(b *testing.B, n int) *workflow.Definition {
	var src strings.Builder
	src.WriteString("workflow: bench\ndata: {x: {type: integer, default: 7}}\ntasks:\n")
	for i := range n {
		s.task(&src, i, n)
	}
	def, err := workflow.Parse("bench.yaml", []byte(src.String()))
	if err != nil {
		b.Fatal(err)
	}
	return def
}

// history is a whole run of a definition at one node: start and success of
// every task, so about two facts for each, or three where data decide.
func (s shape) history(b *testing.B, tasks int) (*mesh, []fact.Received) {
	w := newMesh(b, s.definition(b, tasks))
	w.takers["spare"] = "one"
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "one"}, "one",
		"two")); err != nil {
		b.Fatal(err)
	}
	if strings.Contains(s.name, "contested") {
		n := w.nodes["one"]
		id, _ := n.jobOf("t0")
		w.end(n, id, Result{Failed: true})
	}
	w.mail = nil
	for w.workOne() {
		w.mail = nil
	}
	return w, received(w.nodes["one"].m)
}

// BenchmarkFold is the cost of one more fact, arriving by itself, in an
// instance of so many facts; it grows with the log only if fold is not
// incremental.
func BenchmarkFold(b *testing.B) {
	for _, s := range shapes {
		for _, facts := range []int{1_000, 3_000, 10_000} {
			b.Run(fmt.Sprintf("%s/facts=%d", s.name, facts), func(b *testing.B) {
				w, all := s.history(b, facts/2)
				b.ResetTimer()
				for range b.N {
					m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}, Trust: testTrust{}}, w.def,
						w.plan,
						all[0])
					if err != nil {
						b.Fatal(err)
					}
					for i := range all[1:] {
						if _, err := m.Receive("one", all[i+1:i+2]); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/fact")
			})
		}
	}
}

// BenchmarkLoad is the cost of a fact when all are loaded at once.
func BenchmarkLoad(b *testing.B) {
	for _, s := range shapes[:2] {
		b.Run(s.name+"/facts=10000", func(b *testing.B) {
			w, all := s.history(b, 5_000)
			b.ResetTimer()
			for range b.N {
				m, err := Open(Self{Partner: "two", Incarnation: fact.Incarnation{2}, Trust: testTrust{}}, w.def,
					w.plan,
					all[0])
				if err == nil {
					err = m.Load(all[1:], true)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/fact")
		})
	}
}

// BenchmarkRun is the cost of a fact at the node that writes them: decide, fold
// and encode.
func BenchmarkRun(b *testing.B) {
	for _, s := range shapes {
		for _, facts := range []int{1_000, 3_000} {
			b.Run(fmt.Sprintf("%s/facts=%d", s.name, facts), func(b *testing.B) {
				n := 0
				for range b.N {
					_, all := s.history(b, facts/2)
					n += len(all)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/fact")
			})
		}
	}
}

// What it costs to look at an instance that is driven by its data, by how many states it had.
func BenchmarkSnapshot(b *testing.B) {
	def := func(b *testing.B) *workflow.Definition {
		d, err := workflow.Parse("w", []byte(`
workflow: w
data: {n: {type: integer, default: 0}}
tasks:
  go: {when: n >= 0, repeat: true, application: x, out: [n]}
final: n < 0
`))
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	for _, states := range []int{100, 10_000} {
		b.Run(fmt.Sprint("states-", states), func(b *testing.B) {
			w := newMesh(b, def(b))
			in := map[workflow.PartitionName]workflow.PartnerID{"main": "ann"}
			if err := w.start("ann", w.genesis(in, "ann")); err != nil {
				b.Fatal(err)
			}
			n := w.nodes["ann"]
			for i := range int64(states) {
				id, _ := n.jobOf("go")
				w.end(n, id, Result{Outputs: map[workflow.DataName]workflow.Value{"n": i + 1}})
			}
			for b.Loop() {
				n.m.Snapshot()
			}
		})
	}
}
