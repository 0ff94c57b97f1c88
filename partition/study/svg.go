package study

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// drawing is an SVG picture in the making. Positions and sizes are in pixels.
type drawing struct{ strings.Builder }

// The look that all pictures share. The series colours are told apart by the
// colour-blind too, and series differ in shape besides.
const (
	ink    = "#1b1f24"
	faint  = "#6b7280"
	ground = "#ffffff"
	rule   = "#d9dde3"
	digit  = 6.6 // the width of a character at 12 px, roughly
)

var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7a5195"}

// newDrawing begins a picture that a screen reader announces by its title and
// description.
func newDrawing(width, height float64, title, description string) *drawing {
	d := &drawing{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="title desc" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12" fill="%s">`,
		px(width), px(height), px(width), px(height), ink)
	d.add(`<title id="title">%s</title>`, html.EscapeString(title))
	d.add(`<desc id="desc">%s</desc>`, html.EscapeString(description))
	d.rect(0, 0, width, height, ground, "")
	d.label(16, 26, title, `font-size="16" font-weight="600"`)
	return d
}

func (d *drawing) add(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

func (d *drawing) line(x1, y1, x2, y2 float64, stroke, more string) {
	d.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s" %s/>`, px(x1), px(y1), px(x2), px(y2), stroke, more)
}

// rect draws a rectangle, with a tooltip unless that is empty.
func (d *drawing) rect(x, y, width, height float64, fill, tip string) {
	end := "/>"
	if tip != "" {
		end = "><title>" + html.EscapeString(tip) + "</title></rect>"
	}
	d.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"%s`, px(x), px(y), px(width), px(height), fill, end)
}

func (d *drawing) label(x, y float64, text, more string) {
	d.add(`<text x="%s" y="%s" %s>%s</text>`, px(x), px(y), more, html.EscapeString(text))
}

// mark draws the point of a series: circle, square, triangle, diamond in turn.
func (d *drawing) mark(series int, x, y float64, tip string) {
	const r = 4.5
	shape := ""
	switch series % 4 {
	case 0:
		shape = fmt.Sprintf(`<circle cx="%s" cy="%s" r="%s"`, px(x), px(y), px(r))
	case 1:
		shape = fmt.Sprintf(`<rect x="%s" y="%s" width="%s" height="%s"`, px(x-r+.5), px(y-r+.5), px(2*r-1), px(2*r-1))
	case 2:
		shape = fmt.Sprintf(`<path d="M%s %sl%s %sh-%sz"`, px(x), px(y-r-.5), px(r+.5), px(2*r), px(2*r+1))
	case 3:
		shape = fmt.Sprintf(`<path d="M%s %sl%s %sl-%s %sl-%s -%sz"`, px(x), px(y-r-1), px(r+1), px(r+1), px(r+1),
			px(r+1), px(r+1), px(r+1))
	}
	d.add(`%s fill="%s"><title>%s</title></%s>`, shape, colour(series), html.EscapeString(tip),
		shape[1:strings.IndexByte(shape, ' ')])
}

// end finishes the picture.
func (d *drawing) end() []byte {
	d.add("</svg>")
	return []byte(d.String())
}

func colour(i int) string { return palette[i%len(palette)] }

// px writes a length with at most one decimal.
func px(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// number writes a number for people: few digits, no useless zeros.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// axis maps values to pixels.
type axis struct {
	low, high float64 // values at its ends
	from, to  float64 // pixels at its ends
	step      float64 // between ticks
}

// newAxis is an axis that holds both values, begins and ends at a tick, and
// has about as many steps as asked for.
func newAxis(low, high, from, to float64, steps int) axis {
	if !(high > low) {
		high = low + 1
	}
	step := roundStep((high - low) / float64(steps))
	return axis{math.Floor(low/step+epsilon) * step, math.Ceil(high/step-epsilon) * step, from, to, step}
}

const epsilon = 1e-9

// roundStep is the least of 1, 2, 5 × 10ⁿ that is not below x.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= x*(1-epsilon) {
			return f * power
		}
	}
	return 10 * power
}

func (a axis) at(value float64) float64 {
	return a.from + (value-a.low)/(a.high-a.low)*(a.to-a.from)
}

// vertical draws the axis below a plot, with a grid line up to top per tick.
func (a axis) vertical(d *drawing, in *language, top, bottom float64, title string) {
	for i := 0; ; i++ {
		v := a.low + float64(i)*a.step
		if v > a.high+a.step/2 {
			break
		}
		d.line(a.at(v), top, a.at(v), bottom, rule, "")
		d.label(a.at(v), bottom+16, in.number(v), fmt.Sprintf(`text-anchor="middle" fill="%s"`, faint))
	}
	d.line(a.from, bottom, a.to, bottom, ink, "")
	d.label((a.from+a.to)/2, bottom+36, title, `text-anchor="middle"`)
}
