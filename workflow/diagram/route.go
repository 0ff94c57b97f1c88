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
// them. It returns the points that it passes.
func (p *picture) edge(e edge) []point {
	path := p.route(e)
	p.put(`<path class="%s" d="%s" marker-end="url(#arrow-%s)"/>`, e.kind, smooth(path), markerOf(e.kind))
	return path
}

// markerOf names the tip of an arrow.
func markerOf(k edgeKind) string {
	switch k {
	case failure, standIn:
		return "fail"
	case other, undoing:
		return "soft"
	}
	return "ink"
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

// arrival is the how-many-th of the arrows at one box an arrow is.
type arrival struct{ nth, of int }

// interval is where a column is not free, without its ends.
type interval struct{ from, to int }

// survey finds out once where arrows arrive, and where boxes stand in their way.
func (p *picture) survey() {
	s := p.scene
	into := make([][]edge, len(s.boxes))
	for _, e := range s.edges {
		into[e.to] = append(into[e.to], e)
	}
	p.arrivals = make(map[edge]arrival, len(s.edges))
	for _, all := range into {
		slices.SortStableFunc(all, func(a, b edge) int { // those from above over those from below
			_, ya := p.corner(a.from)
			_, yb := p.corner(b.from)
			return ya - yb
		})
		for i, e := range all {
			p.arrivals[e] = arrival{i, len(all)}
		}
	}
	p.blocked = make([][]interval, p.grid.columns)
	clear := p.height/2 + rowGap/2
	for i, c := range p.grid.cells {
		_, top := p.corner(i)
		middle := top + p.height/2
		p.blocked[c.column] = append(p.blocked[c.column], interval{middle - clear + 2, middle + clear - 2})
	}
	for c, all := range p.blocked {
		slices.SortFunc(all, func(a, b interval) int { return a.from - b.from })
		var merged []interval
		for _, x := range all {
			if last := len(merged) - 1; last >= 0 && x.from < merged[last].to {
				merged[last].to = max(merged[last].to, x.to)
				continue
			}
			merged = append(merged, x)
		}
		p.blocked[c] = merged
	}
}

// arrival spreads the arrows that come to one box over its left side.
func (p *picture) arrival(e edge, top int) int {
	a := p.arrivals[e]
	return top + p.height*(2*a.nth+1)/(2*a.of)
}

// passage is the height nearest to y at which column c is free.
func (p *picture) passage(c, y int) int {
	p.scene.steps++
	below, above := max(y, margin+1), y
	if x := p.blocking(c, below); x != nil {
		below = x.to
	}
	if x := p.blocking(c, above); x != nil {
		above = x.from
	}
	if above > margin && y-above < below-y {
		return above
	}
	return below
}

// blocking is what stands at a height of a column, or nil.
func (p *picture) blocking(c, y int) *interval {
	all := p.blocked[c]
	i, _ := slices.BinarySearchFunc(all, y, func(x interval, y int) int {
		if x.to <= y {
			return -1
		}
		return 1
	})
	if i < len(all) && all[i].from < y {
		return &all[i]
	}
	return nil
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
