package study

import (
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// signCharts have, for each measure that the source compares, the published table with what
// was obtained beside it.
func (r *Report) signCharts(in *language) (cs []Chart) {
	for _, of := range []struct{ measure, title string }{
		{"time", "Time until the last instance finished"}, {"quality", "Quality of the allocation"},
	} {
		cs = append(cs, Chart{of.measure + "-published", r.signChart(in, of.measure, in.say(of.title))})
	}
	return cs
}

// Sizes of a table of signs in pixels.
const (
	signLeft   = 150.0
	signTop    = 104.0
	signColumn = 152.0
	signRow    = 48.0
)

func (r *Report) signChart(in *language, measure, title string) []byte {
	width := signLeft + signColumn*float64(len(columns)) + 16
	d := newDrawing(width, signTop+signRow*float64(len(family))+16,
		in.say("%s, beside what was published", title), r.describeSigns(in, measure))
	small := fmt.Sprintf(`font-size="11" fill="%s"`, faint)
	d.label(16, 50, in.say("Row against column: + significantly better, - worse, = no significant difference. "+
		"In a frame: not as published."), small)
	d.label(16, 68, r.toldSigns(in, measure), small)
	for i, column := range columns {
		d.label(signLeft+signColumn*float64(i)+8, signTop-10, string(column), `font-weight="600"`)
	}
	for i, row := range family {
		y := signTop + signRow*float64(i)
		d.label(signLeft-12, y+signRow/2+2, string(row), `text-anchor="end" font-weight="600"`)
		for j, column := range columns {
			r.sign(d, in, signLeft+signColumn*float64(j), y, measure, row, column)
		}
	}
	return d.end()
}

// sign draws how a row compares to a column, and below it what was published.
func (r *Report) sign(d *drawing, in *language, x, y float64, measure string, row, column aptitude.Mechanism) {
	cell, known := r.Published.At(measure, row, column)
	if !known {
		var has bool
		if cell, has = at(r.Published.Unknown, measure, row, column); !has {
			d.rect(x, y, signColumn-4, signRow-4, rule, "")
			return
		}
	}
	says, frame := in.say("not known here"), ""
	if known {
		says = string(cell.Published)
	}
	if known && !cell.Same() {
		frame = fmt.Sprintf(` stroke="%s" stroke-width="2"`, colour(1))
	}
	d.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.04"%s/>`, px(x), px(y),
		px(signColumn-4), px(signRow-4), ink, frame)
	d.label(x+10, y+20, string(cell.Obtained), `font-size="18" font-weight="600"`)
	d.label(x+10, y+37, in.say("published: %s", says), fmt.Sprintf(`font-size="10" fill="%s"`, faint))
}

// toldSigns says in short how much of a table came out.
func (r *Report) toldSigns(in *language, measure string) string {
	var t Tally
	unknown := 0
	for _, c := range r.Published.Cells {
		if c.Measure == measure {
			t.count(&c)
		}
	}
	for _, c := range r.Published.Unknown {
		if c.Measure == measure {
			unknown++
		}
	}
	text := in.say("Scenario %s, seed %d: %d of %d cells as published", r.Scenario, r.Seed, t.Same, t.Cells)
	if unknown > 0 {
		text += in.say("; of %d more the published signs are not known here", unknown)
	}
	return text + "."
}

// describeSigns says in words what a table of signs shows.
func (r *Report) describeSigns(in *language, measure string) string {
	text := r.toldSigns(in, measure)
	var differ []string
	for _, c := range r.Published.Cells {
		if c.Measure == measure && !c.Same() {
			differ = append(differ, in.say("%s against %s: %s, published %s", c.Row, c.Column, c.Obtained, c.Published))
		}
	}
	if len(differ) > 0 {
		text += in.say(" Not as published: %s.", strings.Join(differ, "; "))
	}
	return text
}
