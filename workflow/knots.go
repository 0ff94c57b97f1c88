package workflow

// Knots are nodes, and all that comes before them, in sets of which each member comes
// before each, directly or not (Tarjan's algorithm): most sets have one member. A set
// comes after all that comes before its members. before is asked once for each node; the
// order of its answers, and that of the nodes, decides the order of the rest.
func Knots[N comparable](nodes []N, before func(N) []N) [][]N {
	t := tarjan[N]{before: before, number: make(map[N]int, len(nodes)), low: make(map[N]int, len(nodes))}
	for _, n := range nodes {
		if t.number[n] == 0 {
			t.visit(n)
		}
	}
	return t.knots
}

type tarjan[N comparable] struct {
	before func(N) []N
	number map[N]int // in the order of visits; 0: not yet
	low    map[N]int // the lowest number that can be reached; 0: its knot is known
	stack  []N
	knots  [][]N
}

func (t *tarjan[N]) visit(n N) {
	number, bottom := len(t.number)+1, len(t.stack)
	t.number[n], t.low[n] = number, number
	t.stack = append(t.stack, n)
	for _, p := range t.before(n) {
		if t.number[p] == 0 {
			t.visit(p)
		}
		if low := t.low[p]; low > 0 {
			t.low[n] = min(t.low[n], low)
		}
	}
	if t.low[n] != number {
		return
	}
	knot := append([]N(nil), t.stack[bottom:]...)
	for _, member := range knot {
		t.low[member] = 0
	}
	t.stack = t.stack[:bottom]
	t.knots = append(t.knots, knot)
}
