package diagram

// This file says at arrows what they mean, where no other arrow passes.

const (
	letter = 6 // wide, of a label, and a little more
	raster = 4 // of places that arrows pass, in pixels
)

// ink is where arrows pass, and labels are: how many, in squares of the raster.
type ink map[point]int

// draw notes where an arrow passes.
func (k ink) draw(path []point) {
	for i := 1; i < len(path); i++ {
		a, z := path[i-1], path[i]
		bend := max(abs(z.x-a.x)/2, 24)
		n := max(abs(z.x-a.x), abs(z.y-a.y))/raster + 1
		for step := range n + 1 {
			t := float64(step) / float64(n)
			if a.y == z.y { // smooth draws no curve
				k[square(a.x+(z.x-a.x)*step/n, a.y)]++
				continue
			}
			x := between(t, a.x, a.x+bend, z.x-bend, z.x)
			k[square(x, between(t, a.y, a.y, z.y, z.y))]++
		}
	}
}

func square(x, y int) point { return point{x / raster, y / raster} }

// between is a place on a cubic curve.
func between(t float64, a, b, c, d int) int {
	u := 1 - t
	return int(u*u*u*float64(a) + 3*u*u*t*float64(b) + 3*u*t*t*float64(c) + t*t*t*float64(d))
}

// label is what is said at an arrow, and where: from its lower left corner.
type label struct {
	of   edge
	at   point
	wide int
	tip  bool // it ends at the tip of the arrow
}

// crossed is how often something passes a label.
func (k ink) crossed(l label) (n int) {
	l.squares(func(at point) { n += k[at] })
	return n
}

// squares are where a label is.
func (l label) squares(do func(point)) {
	from, to := square(l.at.x, l.at.y-9), square(l.at.x+l.wide, l.at.y+2)
	for x := from.x; x <= to.x; x++ {
		for y := from.y; y <= to.y; y++ {
			do(point{x, y})
		}
	}
}

// labels finds a place for what is said at each arrow: at its tip, on the side from which it does not come, or else
// above or below its box.
func (p *picture) labels(paths [][]point) (out []label, k ink) {
	k = ink{}
	for _, path := range paths {
		k.draw(path)
	}
	for i, e := range p.scene.edges {
		if e.label == "" {
			continue
		}
		var best label
		for n, l := range p.places(e, paths[i]) {
			if n == 0 || k.crossed(l) < k.crossed(best) {
				best = l
			}
		}
		best.squares(func(at point) { k[at]++ })
		out = append(out, best)
	}
	return out, k
}

// places are where the label of an arrow can be, the best first.
func (p *picture) places(e edge, path []point) []label {
	tip, from := path[len(path)-1], path[len(path)-2]
	x, top := p.corner(e.to)
	wide := letter * len([]rune(e.label))
	first, second := tip.y-6, tip.y+14
	if from.y < tip.y {
		first, second = second, first
	}
	over := x
	if w := p.scene.boxes[e.to].wait(); w != "" { // there is a clock
		over += 40 + letter*len(w)
	}
	return []label{
		{e, point{tip.x - 14 - wide, first}, wide, true}, {e, point{tip.x - 14 - wide, second}, wide, true},
		{e, point{over, top - 6}, wide, false}, {e, point{x, top + p.height + 14}, wide, false},
	}
}

// word draws a label.
func (p *picture) word(l label) {
	class := "label"
	if markerOf(l.of.kind) == "soft" {
		class += " soft"
	}
	x, anchor := l.at.x, ""
	if l.tip {
		x, anchor = x+l.wide, ` text-anchor="end"`
	}
	for _, c := range []string{"halo", class} {
		p.put(`<text class="%s" x="%d" y="%d"%s>%s</text>`, c, x, l.at.y, anchor, escape(l.of.label))
	}
}
