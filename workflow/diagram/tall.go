package diagram

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// Sizes of a tall picture in pixels: it is as wide as a phone shows without moving it sideways.
const (
	tallWidth = 358
	tallPad   = 2
	laneBar   = 7  // the coloured edge by which a lane is told
	tallGap   = 26 // between two boxes, where arrows and their labels are
	firstLine = 24
	lineGap   = 18
	trackGap  = 11
	maxTracks = 8 // arrows beyond them share the outermost
	turn      = 8 // the radius of an arrow's corners
)

// laneColors tell lanes apart beside their names, on white and on black.
var laneColors = []string{"#2a78c2", "#c2571a", "#2c8f57", "#8e5bc4", "#b8860b", "#c23b6b", "#1d8f94", "#7a7f2a"}

// tall is a picture in which time goes downwards, one task below the other in the order of the definition, and
// arrows pass at the right.
type tall struct {
	*picture
	order  []int // boxes, downwards
	at     []int // of each box its place in order
	tops   []int // of each box, downwards
	high   []int // of each box
	right  int   // where boxes end
	tracks map[edge]int
}

// tallSVG draws a scene for a narrow screen.
func tallSVG(s *scene) ([]byte, error) {
	if len(s.boxes) > maxDrawn {
		return nil, tooMany(len(s.boxes))
	}
	t := &tall{
		picture: &picture{scene: s, style: ".wide{font-size:14px}\n"}, at: s.place, order: make([]int, len(s.boxes)),
		tops: make([]int, len(s.boxes)), high: make([]int, len(s.boxes)),
	}
	for i, p := range s.place {
		t.order[p] = i
	}
	s.simplify(s.place)
	y := tallGap
	for _, i := range t.order {
		t.tops[i], t.high[i] = y, firstLine+lineGap*len(t.lines(i))+8
		y += t.high[i] + tallGap
	}
	t.bottom = y
	t.track()
	t.open(tallWidth, y+3*lineGap)
	for _, e := range s.edges {
		t.arrow(e)
	}
	for i := range s.boxes {
		t.task(i)
	}
	t.labels()
	t.explain()
	t.WriteString("</svg>\n")
	return t.Bytes(), nil
}

// lines are what is said of a task below its name.
func (t *tall) lines(i int) (out []string) {
	s, b := t.scene, t.scene.boxes[i]
	if b.state != "" {
		out = append(out, strings.ToLower(strings.ReplaceAll(s.say(string(b.state)), "_", " ")))
		if b.known != "" {
			out = append(out, b.known)
		}
	}
	where := s.lanes[b.lane]
	if where.partner == where.name {
		where.partner = ""
	}
	out = append(out, laneTitle(where)+" · "+s.detail(b))
	if c := s.condition(b); c != "" {
		out = append(out, c)
	}
	if w := b.wait(); w != "" {
		out = append(out, s.say("starts by itself"), s.say("when undecided for %s", w)) // one line has no room for both
	}
	return out
}

// next reports whether an arrow leads to the box right below.
func (t *tall) next(e edge) bool { return t.at[e.to] == t.at[e.from]+1 }

// track gives the arrows that pass boxes a track each at the right, the short ones inside.
func (t *tall) track() {
	var far []edge
	for _, e := range t.scene.edges {
		if !t.next(e) {
			far = append(far, e)
		}
	}
	span := func(e edge) (from, to int) {
		from, to = t.at[e.from], t.at[e.to]
		return min(from, to), max(from, to)
	}
	slices.SortStableFunc(far, func(a, b edge) int {
		fromA, toA := span(a)
		fromB, toB := span(b)
		return toA - fromA - (toB - fromB)
	})
	t.tracks = make(map[edge]int, len(far))
	taken := make([][]bool, maxTracks) // of each track, between which boxes it is taken
	used := 0
	for _, e := range far {
		from, to := span(e)
		n := 0
		for ; n < maxTracks-1; n++ {
			if taken[n] == nil {
				taken[n] = make([]bool, len(t.order))
			}
			t.scene.steps += to - from
			if !slices.Contains(taken[n][from:to], true) {
				break
			}
		}
		for k := from; n < maxTracks-1 && k < to; k++ {
			taken[n][k] = true
		}
		t.tracks[e] = n
		used = max(used, n+1)
	}
	t.right = tallWidth - tallPad - 2*turn - trackGap*used
	if used == 0 {
		t.right = tallWidth - tallPad
	}
}

func (t *tall) arrow(e edge) {
	marker := markerOf(e.kind)
	if t.next(e) {
		x := tallPad + laneBar + 18
		from := t.tops[e.from] + t.high[e.from]
		t.put(`<path class="%s" d="M%d %dV%d" marker-end="url(#arrow-%s)"/>`, e.kind, x, from, t.tops[e.to], marker)
		return
	}
	x := t.right + 2*turn + trackGap*t.tracks[e]
	from, to := t.tops[e.from]+t.high[e.from]*2/3, t.tops[e.to]+t.high[e.to]/3
	down := turn
	if to < from {
		down = -turn
	}
	t.put(`<path class="%s" d="M%d %dH%dQ%d %d %d %dV%dQ%d %d %d %dH%d" marker-end="url(#arrow-%s)"/>`, e.kind,
		t.right, from, x-turn, x, from, x, from+down, to-down, x, to, x-turn, to, t.right, marker)
}

func (t *tall) task(i int) {
	b := t.scene.boxes[i]
	x, y, wide := tallPad, t.tops[i], t.right-tallPad
	t.put(`<g class="%s"><title>%s</title>`, classOf(b), escape(t.scene.description(i)))
	radius := 2
	if b.byPeople() {
		radius = 10
	}
	t.put(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, x, y, wide, t.high[i], radius)
	t.put(`<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`, x, y+4, laneBar, t.high[i]-8,
		laneColors[b.lane%len(laneColors)])
	left := x + laneBar + 10
	name := left
	if b.byPeople() {
		t.person(left, y-4)
		name += 20
	}
	t.put(`<text class="name wide" x="%d" y="%d">%s</text>`, name, y+firstLine-2,
		escape(plain.Cut(b.task.Called(), (t.right-name)/9)))
	for n, line := range t.lines(i) {
		class := "detail wide"
		if n == 0 && b.state != "" {
			class = "name wide"
		}
		t.put(`<text class="%s" x="%d" y="%d">%s</text>`, class, left, y+firstLine+lineGap*(n+1)-2,
			escape(plain.Cut(line, (t.right-left)/8)))
	}
	t.put(`</g>`)
}

// labels says above each box what the arrows to it mean that are no successes.
func (t *tall) labels() {
	all := map[int][]string{} // few for a box: there are few kinds
	for _, e := range t.scene.edges {
		t.scene.steps++
		if e.label != "" && !slices.Contains(all[e.to], e.label) {
			all[e.to] = append(all[e.to], e.label)
		}
	}
	for _, i := range t.order {
		if len(all[i]) > 0 {
			t.put(`<text class="label" x="%d" y="%d" text-anchor="end">%s</text>`, t.right-4, t.tops[i]-6,
				escape(plain.Cut(strings.Join(all[i], ", "), 40)))
		}
	}
}

// explain says what the kinds of arrows mean.
func (t *tall) explain() {
	x, y := tallPad, t.bottom+4
	for _, k := range arrowKinds {
		t.put(`<path class="%s" d="M%d %dh26" marker-end="url(#arrow-%s)"/><text class="detail wide" x="%d" y="%d">%s</text>`,
			k.class, x, y, k.marker, x+32, y+4, t.scene.say(k.text))
		if x += 172; x > tallWidth-150 {
			x, y = tallPad, y+lineGap+4
		}
	}
	if t.scene.leftOut > 0 {
		t.put(`<text class="label" x="%d" y="%d">%s</text>`, tallPad, y+lineGap, fmt.Sprintf("+ %d", t.scene.leftOut))
	}
}
