package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Sizes in pixels.
const (
	boxWidth   = 188
	plainBox   = 58 // high
	ruledBox   = 76 // high, with a line for a condition
	columnGap  = 96
	rowGap     = 30
	lanePad    = 20
	laneGap    = 10
	laneHeader = 26
	margin     = 16
	titleSpace = 40
	legend     = 40
)

// picture is an SVG in the making.
type picture struct {
	bytes.Buffer
	scene    *scene
	grid     *grid
	style    string // beyond that of all pictures
	height   int    // of a box
	laneTops []int
	bottom   int
	arrivals map[edge]arrival
	blocked  [][]interval // of each column, where boxes stand, downwards
}

// laidOut is a scene with a place for all that is in it, of which nothing is drawn yet.
func laidOut(s *scene) (*picture, error) {
	g, err := arrange(s)
	if err != nil {
		return nil, err
	}
	p := &picture{scene: s, grid: g, height: plainBox}
	for _, b := range s.boxes {
		if s.condition(b) != "" {
			p.height = ruledBox
		}
	}
	y := margin + titleSpace
	for _, rows := range g.rows {
		p.laneTops = append(p.laneTops, y)
		y += p.laneHeight(rows) + laneGap
	}
	p.bottom = y
	p.survey()
	return p, nil
}

func svg(s *scene) ([]byte, error) {
	p, err := laidOut(s)
	if err != nil {
		return nil, err
	}
	p.open(p.width(), p.bottom+legend)
	p.put(`<text class="title" x="%d" y="%d">%s</text>`, margin, margin+20, escape(p.scene.title))
	p.lanes()
	paths := make([][]point, len(s.edges))
	for i, e := range s.edges {
		paths[i] = p.edge(e)
	}
	words, _ := p.labels(paths)
	for _, l := range words {
		p.word(l)
	}
	for i := range s.boxes {
		p.box(i)
	}
	p.legend()
	p.WriteString("</svg>\n")
	return p.Bytes(), nil
}

func (p *picture) laneHeight(rows int) int {
	return laneHeader + 2*lanePad + rows*p.height + max(rows-1, 0)*rowGap
}

func (p *picture) width() int {
	inner := p.grid.columns*boxWidth + max(p.grid.columns-1, 0)*columnGap
	return max(2*margin+2*lanePad+inner, 620)
}

// corner is the upper left corner of a box.
func (p *picture) corner(i int) (x, y int) {
	c := p.grid.cells[i]
	x = margin + lanePad + c.column*(boxWidth+columnGap)
	y = p.laneTops[p.scene.boxes[i].lane] + laneHeader + lanePad + c.row*(p.height+rowGap)
	return x, y
}

func (p *picture) put(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

// style names every colour twice, for light and for dark, because not every
// viewer knows CSS variables.
const style = `text{font-family:system-ui,sans-serif;font-size:13px;fill:#16202c}
.paper{fill:#fff}
.title{font-size:18px;font-weight:600}
.lane{fill:#f4f6f9;stroke:#cdd5de}
.lane-name{font-size:12px;font-weight:600;fill:#5a6775}
.box{fill:#fff;stroke:#16202c;stroke-width:1.2}
.inner{fill:none}
.name{font-weight:600}
.detail{font-size:11px;fill:#5a6775}
.person{fill:#5a6775}
path{fill:none;stroke-width:1.4}
.success{stroke:#16202c}
.failure,.contingency{stroke:#b3261e;stroke-dasharray:6 4}
.other,.compensation{stroke:#5a6775;stroke-dasharray:2 4}
.tip-ink{fill:#16202c}
.tip-fail{fill:#b3261e}
.tip-soft{fill:#5a6775}
.label{font-size:11px;fill:#b3261e}
.soft{fill:#5a6775}
.halo{font-size:11px;fill:none;stroke:#f4f6f9;stroke-width:4px}
.clock{fill:#fff;stroke:#b3261e;stroke-width:1.4}
.hand{stroke:#b3261e}
@media (prefers-color-scheme:dark){
text{fill:#e8edf3}
.paper,.box{fill:#10161d}
.lane{fill:#1b232d;stroke:#3b4958}
.lane-name,.detail,.person,.soft,.tip-soft{fill:#9fb0c0}
.box,.success{stroke:#e8edf3}
.inner{fill:none}
.tip-ink{fill:#e8edf3}
.failure,.contingency,.clock,.hand{stroke:#ff8a80}
.tip-fail,.label{fill:#ff8a80}
.label.soft{fill:#9fb0c0}
.other,.compensation{stroke:#9fb0c0}
.halo{stroke:#1b232d}
.clock{fill:#10161d}
}
.state text,.state .detail{fill:#111}
.state .person{fill:#444}
.state .label{fill:#b3261e}
@media (prefers-color-scheme:dark){.state .label{fill:#ff8a80}}
`

// open begins a picture of that size.
func (p *picture) open(w, h int) {
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`, w, h, w, h)
	p.put(`<title id="title">%s</title>`, escape(p.scene.title))
	p.put(`<desc id="desc">%s</desc>`, escape(p.summary()))
	p.put("<style>%s%s", style, p.style)
	for _, st := range statesOf(p.scene) {
		p.put(".%s .box{fill:%s;stroke:#16202c}", st, stateColor[st])
	}
	p.put("</style>")
	p.put(`<defs>`)
	for _, m := range []string{"ink", "fail", "soft"} {
		p.put(`<marker id="arrow-%s" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="tip-%s" d="M0 1 10 5 0 9z"/></marker>`, m, m)
	}
	p.put(`</defs>`)
	p.put(`<rect width="%d" height="%d" class="paper"/>`, w, h)
}

// omission says what is not drawn.
func (p *picture) omission() string {
	return p.scene.say("%d of %d arrows are left out, the longest ones: the format dot has them all", p.scene.leftOut,
		p.scene.leftOut+len(p.scene.edges))
}

// summary is the picture in words.
func (p *picture) summary() string {
	var b strings.Builder
	if p.scene.doc != "" {
		b.WriteString(oneLine(p.scene.doc) + " ")
	}
	b.WriteString(p.scene.say("%d tasks in %d partitions.", len(p.scene.boxes), len(p.scene.lanes)))
	if p.scene.leftOut > 0 {
		b.WriteString(" " + p.omission() + ".")
	}
	for _, l := range p.scene.lanes {
		var tasks []string
		for _, i := range l.boxes {
			tasks = append(tasks, p.scene.boxes[i].task.Called())
		}
		fmt.Fprintf(&b, " %s: %s.", laneTitle(l), strings.Join(tasks, ", "))
	}
	return b.String()
}

func (p *picture) lanes() {
	for i, l := range p.scene.lanes {
		p.put(`<rect class="lane" x="%d" y="%d" width="%d" height="%d" rx="8"/>`,
			margin, p.laneTops[i], p.width()-2*margin, p.laneHeight(p.grid.rows[i]))
		p.put(`<text class="lane-name" x="%d" y="%d">%s</text>`, margin+12, p.laneTops[i]+20,
			escape(plain.Cut(laneTitle(l), 80)))
	}
}

func (p *picture) box(i int) {
	b := p.scene.boxes[i]
	x, y := p.corner(i)
	p.put(`<g class="%s"><title>%s</title>`, classOf(b), escape(p.scene.description(i)))
	radius := 2
	if b.byPeople() {
		radius = 18
	}
	p.put(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, x, y, boxWidth, p.height, radius)
	if b.task.Type == workflow.SubWorkflow {
		p.put(`<rect class="box inner" x="%d" y="%d" width="%d" height="%d"/>`, x+4, y+4, boxWidth-8, p.height-8)
	}
	left := x + 14
	if b.byPeople() {
		p.person(left, y)
		left += 20
	}
	p.put(`<text class="name" x="%d" y="%d">%s</text>`, left, y+24,
		escape(plain.Cut(b.task.Called(), (x+boxWidth-left)/9)))
	bottom := p.scene.detail(b)
	if b.known != "" {
		bottom = b.known
	}
	if b.state != "" {
		bottom = p.scene.say(string(b.state)) + " · " + bottom
	}
	p.put(`<text class="detail" x="%d" y="%d">%s</text>`, x+14, y+45, escape(plain.Cut(bottom, (boxWidth-24)/6)))
	if c := p.scene.condition(b); c != "" {
		p.put(`<text class="detail" x="%d" y="%d">%s</text>`, x+14, y+63, escape(plain.Cut(c, (boxWidth-24)/6)))
	}
	if w := b.wait(); w != "" {
		p.clock(x+12, y, w)
	}
	p.put(`</g>`)
}

// classOf is how a box looks by its state.
func classOf(b box) string {
	if stateColor[b.state] == "" { // it is a text like any other
		return "task"
	}
	return "task state " + string(b.state)
}

// person marks what people do.
func (p *picture) person(left, y int) {
	p.put(`<path class="person" d="M%d %da4 4 0 1 0 .1 0zM%d %dc0-8 12-8 12 0z"/>`, left+6, y+11, left, y+29)
}

// clock marks an emergency trigger on the upper edge of its box.
func (p *picture) clock(x, y int, wait string) {
	p.put(`<circle class="clock" cx="%d" cy="%d" r="8"/><path class="hand" d="M%d %dv-5M%d %dh4"/>`, x, y-3, x, y-3, x,
		y-3)
	p.put(`<text class="label" x="%d" y="%d">%s</text>`, x+13, y-5, escape(wait))
}

// arrowKinds are the looks of arrows, and what they mean.
var arrowKinds = []struct{ class, marker, text string }{
	{"success", "ink", "after success"}, {"failure", "fail", "on failure"}, {"other", "soft", "other"},
}

func (p *picture) legend() {
	y := p.bottom + 20
	x := margin
	for _, item := range arrowKinds {
		p.put(`<path class="%s" d="M%d %dh34" marker-end="url(#arrow-%s)"/><text class="detail" x="%d" y="%d">%s</text>`,
			item.class, x, y, item.marker, x+42, y+4, p.scene.say(item.text))
		x += 140
	}
	p.put(`<circle class="clock" cx="%d" cy="%d" r="8"/><path class="hand" d="M%d %dv-5M%d %dh4"/><text class="detail" x="%d" y="%d">%s</text>`,
		x+28, y, x+28, y, x+28, y, x+44, y+4, p.scene.say("starts by itself"))
	if p.scene.leftOut > 0 {
		p.put(`<text class="label" x="%d" y="%d">%s</text>`, margin, y-24, p.omission())
	}
}

// escape makes a text safe inside XML; what XML cannot say becomes U+FFFD.
func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(oneLine(s))); err != nil {
		panic("diagram: a strings.Builder does not fail: " + err.Error())
	}
	return b.String()
}
