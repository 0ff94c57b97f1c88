package diagram

import (
	"fmt"
	"slices"
	"strings"
)

// point is a place in the picture.
type point struct{ x, y int }

// edge draws an arrow. It leaves a box at its right side and arrives at the
// left side of another; where boxes stand between, it passes above or below
// them.
func (p *picture) edge(e edge) {
	path := p.route(e)
	marker := "ink"
	switch e.kind {
	case failure, standIn:
		marker = "fail"
	case other, undoing:
		marker = "soft"
	}
	p.put(`<path class="%s" d="%s" marker-end="url(#arrow-%s)"/>`, e.kind, smooth(path), marker)
	if e.label == "" {
		return
	}
	class := "label"
	if marker == "soft" {
		class += " soft"
	}
	at := path[len(path)-1]
	for _, c := range []string{"halo", class} {
		p.put(`<text class="%s" x="%d" y="%d" text-anchor="end">%s</text>`, c, at.x-14, at.y-6, escape(e.label))
	}
}

// route gives the points that an arrow passes.
func (p *picture) route(e edge) []point {
	x1, y1 := p.corner(e.from)
	x2, y2 := p.corner(e.to)
	from, to := point{x1 + boxWidth, y1 + p.height/2}, point{x2, p.arrival(e, y2)}
	first, last := p.grid.cells[e.from].column, p.grid.cells[e.to].column
	path := []point{from}
	for c := first + 1; c < last; c++ {
		x := margin + lanePad + c*(boxWidth+columnGap)
		wish := from.y + (to.y-from.y)*(c-first)/(last-first)
		y := p.passage(c, wish)
		path = append(path, point{x - columnGap/4, y}, point{x + boxWidth + columnGap/4, y})
	}
	return append(path, to)
}

// arrival spreads the arrows that come to one box over its left side, those
// that come from above over those from below.
func (p *picture) arrival(e edge, top int) int {
	var all []edge
	for _, f := range p.scene.edges {
		if f.to == e.to {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b edge) int {
		_, ya := p.corner(a.from)
		_, yb := p.corner(b.from)
		return ya - yb
	})
	return top + p.height*(2*slices.Index(all, e)+1)/(2*len(all))
}

// passage is the height nearest to y at which column c is free.
func (p *picture) passage(c, y int) int {
	clear := p.height/2 + rowGap/2
	for d := 0; ; d++ {
		for _, try := range []int{y + d, y - d} {
			free := try > margin
			for i := range p.scene.boxes {
				if p.grid.cells[i].column != c {
					continue
				}
				_, top := p.corner(i)
				middle := top + p.height/2
				free = free && (try <= middle-clear+2 || try >= middle+clear-2)
			}
			if free {
				return try
			}
		}
	}
}

// smooth draws a curve that is level at every point.
func smooth(path []point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", path[0].x, path[0].y)
	for i := 1; i < len(path); i++ {
		a, z := path[i-1], path[i]
		if a.y == z.y {
			fmt.Fprintf(&b, "H%d", z.x)
			continue
		}
		bend := max(abs(z.x-a.x)/2, 24)
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", a.x+bend, a.y, z.x-bend, z.y, z.x, z.y)
	}
	return b.String()
}

func abs(n int) int { return max(n, -n) }
