package study

import (
	"fmt"
	"math"
)

// TimeChart draws the time per mechanism and load.
func (r *Report) TimeChart() []byte {
	return r.chart(&r.Time, "Time until the last instance finished", "time units (less is better)")
}

// QualityChart draws the quality per mechanism and load.
func (r *Report) QualityChart() []byte {
	return r.chart(&r.Quality, "Quality of the allocation", "Q_total = Q_actual / Q_ideal (more is better)")
}

// chart draws means with their confidence intervals: a row per mechanism, a
// mark per load, values written beside them.
func (r *Report) chart(m *Measure, title, unit string) []byte {
	const left, right, top, lane = 150.0, 130.0, 76.0, 17.0
	row := lane*float64(len(r.Loads)) + 14
	bottom := top + row*float64(len(r.Mechanisms))
	const width = 860.0
	d := newDrawing(width, bottom+52, title, r.describe(m))
	low, high := m.span()
	x := newAxis(low, high, left, width-right, 7)
	x.vertical(d, top, bottom, unit)
	r.legend(d, left)
	for i, mech := range r.Mechanisms {
		y := top + row*float64(i)
		if i%2 == 0 {
			d.add(`<rect x="0" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.035"/>`, px(y), px(width), px(row), ink)
		}
		d.label(left-12, y+row/2+4, string(mech), `text-anchor="end"`)
		for j, s := range m.ByLoad[mech] {
			errorBar(d, x, y+7+lane*(float64(j)+.5), j, s, fmt.Sprintf("%s, load %v", mech, r.Loads[j]))
		}
	}
	return d.end()
}

// errorBar draws a mean with its interval and its value.
func errorBar(d *drawing, x axis, y float64, series int, s Summary, what string) {
	low, high := x.at(s.Low()), x.at(s.High())
	d.line(low, y, high, y, colour(series), `stroke-width="1.5"`)
	for _, end := range []float64{low, high} {
		d.line(end, y-3.5, end, y+3.5, colour(series), `stroke-width="1.5"`)
	}
	value := fmt.Sprintf("%s ± %s", number(s.Mean), number(roundTo(s.Margin, 2)))
	d.mark(series, x.at(s.Mean), y, what+": "+value)
	d.label(high+8, y+3.5, value, fmt.Sprintf(`font-size="10" fill="%s"`, faint))
}

// legend says which mark stands for which load.
func (r *Report) legend(d *drawing, left float64) {
	x := left
	d.label(x, 56, "load", fmt.Sprintf(`fill="%s"`, faint))
	x += 42
	for i, load := range r.Loads {
		d.mark(i, x, 52, fmt.Sprintf("load %v", load))
		text := number(load)
		d.label(x+10, 56, text, "")
		x += 34 + digit*float64(len(text))
	}
	d.label(x+6, 56, "mean and 95 % confidence interval", fmt.Sprintf(`fill="%s"`, faint))
}

// span is the least and the greatest value that a chart must show.
func (m *Measure) span() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, loads := range m.ByLoad {
		for _, s := range loads {
			low, high = min(low, s.Low()), max(high, s.High())
		}
	}
	return low, high
}

// describe says in words what a chart shows.
func (r *Report) describe(m *Measure) string {
	text := fmt.Sprintf("Scenario %s, seed %d, %d simulations. Means over all loads:", r.Scenario, r.Seed, r.Simulations)
	for _, mech := range r.Mechanisms {
		text += fmt.Sprintf(" %s %s;", mech, number(m.Overall[mech].Mean))
	}
	return text
}

// roundTo keeps so many significant digits.
func roundTo(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}
