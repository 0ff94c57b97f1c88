package diagram

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/nulab/autog"
	"github.com/nulab/autog/graph"
)

// maxDrawn bounds what is laid out here: a greater picture is of no use to
// people.
const maxDrawn = 400

// cell is where a box stands: its column, in the direction of time, and its row
// inside its lane.
type cell struct{ column, row int }

// grid is the layout of a scene: lanes below each other, time to the right.
type grid struct {
	cells   []cell
	columns int
	rows    []int // of each lane
}

// arrange finds a place for every box: its column by what it waits for, its row
// by the boxes before it and by the order in which arrows cross least.
func arrange(s *scene) (*grid, error) {
	if len(s.boxes) > maxDrawn {
		return nil, tooMany(len(s.boxes))
	}
	layers := layered(s)
	s.simplify(layers)
	order, err := ordered(s, layers)
	if err != nil {
		return nil, err
	}
	g := &grid{cells: make([]cell, len(s.boxes)), rows: make([]int, len(s.lanes))}
	boxes := make([]int, len(s.boxes))
	for i := range boxes {
		boxes[i] = i
	}
	slices.SortStableFunc(boxes, func(a, b int) int {
		return cmp.Or(cmp.Compare(layers[a], layers[b]), cmp.Compare(order[a], order[b]))
	})
	before := make([][]int, len(s.boxes)) // of each box, the boxes that it waits for
	for _, e := range s.edges {
		before[e.to] = append(before[e.to], e.from)
		s.steps++
	}
	taken := map[[3]int]bool{} // lane, column, row
	for _, i := range boxes {
		lane, column := s.boxes[i].lane, layers[i]
		row := nearestFree(g.wishedRow(s, i, before[i], layers),
			func(r int) bool { return taken[[3]int{lane, column, r}] })
		taken[[3]int{lane, column, row}] = true
		g.cells[i] = cell{column, row}
		g.columns = max(g.columns, column+1)
		g.rows[lane] = max(g.rows[lane], row+1)
	}
	return g, nil
}

func tooMany(boxes int) error {
	return fmt.Errorf("%d tasks are too many to draw: at most %d; use the format dot, and Graphviz", boxes, maxDrawn)
}

// wishedRow is the mean row of the boxes of the same lane that come before, so
// that arrows are straight.
func (g *grid) wishedRow(s *scene, i int, before []int, layers []int) int {
	sum, n := 0, 0
	for _, from := range before {
		if s.boxes[from].lane == s.boxes[i].lane && layers[from] < layers[i] {
			sum += g.cells[from].row
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

func nearestFree(row int, taken func(int) bool) int {
	for d := 0; ; d++ {
		if !taken(row + d) {
			return row + d
		}
		if row-d >= 0 && !taken(row-d) {
			return row - d
		}
	}
}

// What is drawn of arrows is bounded too: where there are more, those over the least
// columns are drawn. The others would cover one another.
const (
	maxArrows   = 2_000
	maxPassages = 10_000 // columns that arrows cross, together
)

// simplify leaves out arrows that are too many to draw, and counts them.
func (s *scene) simplify(layers []int) {
	length := func(e edge) int { return max(layers[e.to]-layers[e.from], 1) }
	byLength := slices.Clone(s.edges)
	slices.SortStableFunc(byLength, func(a, b edge) int { return length(a) - length(b) })
	passages, drawn := 0, map[edge]bool{}
	for _, e := range byLength {
		if passages += length(e); passages > maxPassages || len(drawn) == maxArrows {
			break
		}
		drawn[e] = true
	}
	all := len(s.edges)
	s.edges = slices.DeleteFunc(s.edges, func(e edge) bool { return !drawn[e] })
	s.leftOut = all - len(s.edges)
}

// layered puts each box into the layer after the last of those it waits for.
// Arrows against the order of the definition, as to a contingency that runs
// earlier in its own right, do not count.
func layered(s *scene) []int {
	layers := make([]int, len(s.boxes))
	into := make([][]int, len(s.boxes))
	for _, e := range s.edges {
		if s.place[e.from] < s.place[e.to] {
			into[e.to] = append(into[e.to], e.from)
		}
	}
	boxes := make([]int, len(s.boxes))
	for i, p := range s.place {
		boxes[p] = i
	}
	for _, i := range boxes {
		for _, from := range into[i] {
			layers[i] = max(layers[i], layers[from]+1)
		}
	}
	return layers
}

// autogLock guards the layout library, which keeps a variable of its own for
// the time of a layout.
var autogLock sync.Mutex

// ordered asks the layout library in which order inside their layers the boxes'
// arrows cross least. It is asked about arrows between neighbouring layers
// only: for each layer that a longer one passes it would take one more box, and
// its time grows with the cube of their number.
func ordered(s *scene, layers []int) (order []float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the layout of %s failed (%v): use the format dot, and Graphviz", s.title, r)
		}
	}()
	order = make([]float64, len(s.boxes))
	var pairs graph.EdgeSlice
	seen := map[[2]int]bool{}
	for _, e := range s.edges {
		if pair := [2]int{e.from, e.to}; layers[e.to] == layers[e.from]+1 && !seen[pair] {
			seen[pair] = true
			pairs = append(pairs, []string{strconv.Itoa(e.from), strconv.Itoa(e.to)})
		}
	}
	if len(pairs) == 0 {
		return order, nil
	}
	autogLock.Lock()
	defer autogLock.Unlock()
	out := autog.Layout(pairs,
		autog.WithCycleBreaking(autog.CycleBreakingDepthFirst),
		autog.WithLayering(autog.LayeringLongestPath),
		autog.WithPositioning(autog.PositioningVAlign),
		autog.WithEdgeRouting(autog.EdgeRoutingNoop),
		autog.WithNodeFixedSize(1, 1), autog.WithLayerSpacing(9), autog.WithNodeSpacing(9))
	for _, n := range out.Nodes {
		if i, err := strconv.Atoi(n.ID); err == nil { // else a node of the library's own
			order[i] = n.X
		}
	}
	return order, nil
}
