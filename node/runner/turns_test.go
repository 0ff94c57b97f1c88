package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestInstancesTakeTurns(t *testing.T) {
	var q turns
	for _, s := range strings.Fields("a1 a2 a3 a4 b1 b2 c1") {
		q.push(&work{Job: Job{Key: s, Instance: s[:1]}})
	}
	if got, want := drain(&q), "a1 b1 c1 a2 b2 a3 a4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Instances that a dispatching rule orders take their turns in its order, among
// themselves; the others are not kept waiting by that.
func TestTurnsByDispatchingRule(t *testing.T) {
	var q turns
	rank := map[string][]float64{"a": {1, 9}, "b": {1, 3}, "c": {0, 5}}
	for _, s := range strings.Fields("a1 x1 b1 x2 c1 y1 a2 c2") {
		w := &work{Job: Job{Key: s, Instance: s[:1], Rank: rank[s[:1]]}}
		if w.Rank != nil {
			w.Dispatching = "spt"
		}
		q.push(w)
	}
	if got, want := drain(&q), "c1 c2 b1 a1 x1 y1 a2 x2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func drain(q *turns) string {
	var keys []string
	for w := q.pop(); w != nil; w = q.pop() {
		keys = append(keys, w.Key)
	}
	return strings.Join(keys, " ")
}

// Whatever is pushed, removed and popped: nothing is lost or doubled, an
// instance's jobs keep their order, and an instance that waits is passed over
// at most once by each other one.
func TestTurnsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q turns
		waiting := map[string][]*work{}
		passed := map[string]map[string]bool{} // instance → served since it waits
		n := 0
		take := func(w *work) {
			line := waiting[w.Instance]
			if line[0] != w {
				t.Fatalf("%s came before %s", w.Key, line[0].Key)
			}
			waiting[w.Instance] = line[1:]
			delete(passed, w.Instance)
			for other, seen := range passed {
				if len(waiting[other]) == 0 {
					continue
				}
				if seen[w.Instance] {
					t.Fatalf("%s was served twice while %s waited", w.Instance, other)
				}
				seen[w.Instance] = true
			}
			if len(waiting[w.Instance]) > 0 {
				passed[w.Instance] = map[string]bool{}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n++
				w := &work{Job: Job{
					Key: fmt.Sprint(n), Instance: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "instance"),
				}}
				if len(waiting[w.Instance]) == 0 {
					passed[w.Instance] = map[string]bool{}
				}
				waiting[w.Instance] = append(waiting[w.Instance], w)
				q.push(w)
			},
			"pop": func(t *rapid.T) {
				if w := q.pop(); w != nil {
					take(w)
				}
			},
			"remove": func(t *rapid.T) {
				instance := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "instance")
				line := waiting[instance]
				if len(line) == 0 {
					return
				}
				i := rapid.IntRange(0, len(line)-1).Draw(t, "i")
				w := line[i]
				if !q.remove(w) || q.remove(w) {
					t.Fatalf("%s was to be removed once", w.Key)
				}
				if waiting[instance] = slices.Delete(slices.Clone(line), i, i+1); len(waiting[instance]) == 0 {
					delete(passed, instance)
				}
			},
			"": func(t *rapid.T) {
				total := 0
				for _, line := range waiting {
					total += len(line)
				}
				held := 0
				for _, line := range q.waiting {
					held += len(line)
				}
				if total != held || (total == 0) != (len(q.order) == 0) {
					t.Fatalf("holds %d jobs of %d, %d instances in line", held, total, len(q.order))
				}
			},
		})
	})
}

// The higher priority goes first, in an instance and among instances, but whoever has waited longest is
// passed over so often at most.
func TestTurnsByPriority(t *testing.T) {
	var q turns
	push := func(priority int, keys string) {
		for _, s := range strings.Fields(keys) {
			q.push(&work{Job: Job{Key: s, Instance: s[:1], Priority: priority}})
		}
	}
	push(0, "a1 a2 b1")
	push(5, "a3 c1")
	push(9, "b2")
	if got, want := drain(&q), "b2 a3 c1 b1 a1 a2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	push(0, "x1")
	for i := range 3 * mostPassed {
		push(1, fmt.Sprintf("%c1", 'A'+i))
	}
	before := strings.Fields(strings.SplitN(drain(&q), "x1", 2)[0])
	if len(before) != mostPassed {
		t.Errorf("x was passed over %d times, want %d", len(before), mostPassed)
	}
}
