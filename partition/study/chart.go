package study

import (
	"fmt"
	"math"
	"slices"
)

// figure is a chart of means with their confidence intervals: a row per case, in
// it a mark per series.
type figure struct {
	in                       *language
	title, unit, description string
	legend                   string // what the series are
	series                   []string
	rows                     []figureRow
	line                     float64 // a dashed vertical line; none without lineLabel
	lineLabel                string
}

type figureRow struct {
	label  string
	values []Summary
}

// Chart is a picture with the name of its file.
type Chart struct {
	Name string // without extension
	SVG  []byte
}

// Charts are all pictures of what was found: by load, by condition, against the mean of the
// older mechanisms, and beside what was published.
func (r *Report) Charts() []Chart { return r.ChartsIn("") }

// ChartsIn are Charts in a language, Portuguese, or else English.
func (r *Report) ChartsIn(code string) []Chart {
	in := languages[code]
	var cs []Chart
	for _, m := range []struct {
		name, title, unit string
		of                func(*Measures) *Measure
	}{
		{"time", "Time until the last instance finished", "time units (less is better)",
			func(m *Measures) *Measure { return &m.Time }},
		{"instance-time", "Time per instance", "time units from arrival to end (less is better)",
			func(m *Measures) *Measure { return &m.InstanceTime }},
		{"quality", "Quality of the allocation", "Q_total = Q_actual / Q_ideal (more is better)",
			func(m *Measures) *Measure { return &m.Quality }},
	} {
		overall := m.of(&r.Measures)
		f := figure{in: in, title: in.say(m.title), unit: in.say(m.unit), description: r.describe(in, overall)}
		cs = append(cs, Chart{m.name, r.byLoad(f, m.of).draw()})
		cs = append(cs, r.byCondition(m.name, f, m.of)...)
		if mean, ok := r.meanFigure(f, overall); ok {
			cs = append(cs, Chart{m.name + "-mean", mean.draw()})
		}
	}
	if r.Published != nil && len(r.Published.Cells) > 0 {
		cs = append(cs, r.signCharts(in)...)
	}
	return cs
}

// byLoad has a row per mechanism, and a mark per load.
func (r *Report) byLoad(f figure, of func(*Measures) *Measure) *figure {
	f.legend = f.in.say("load")
	at := []*Measure{of(&r.Measures)}
	if r.Together {
		f.legend, f.series = f.in.say("instances"), []string{f.in.say("all at once")}
	} else {
		at = nil
		for i := range r.ByLoad {
			f.series = append(f.series, f.in.number(r.ByLoad[i].Load))
			at = append(at, of(&r.ByLoad[i].Measures))
		}
	}
	for _, mech := range r.Mechanisms {
		row := figureRow{label: string(mech)}
		for _, m := range at {
			row.values = append(row.values, m.Means[mech])
		}
		f.rows = append(f.rows, row)
	}
	return &f
}

// byCondition is a chart for each load: a row for each variability, and a mark
// per mechanism.
func (r *Report) byCondition(name string, f figure, of func(*Measures) *Measure) []Chart {
	var cs []Chart
	for rest := r.ByCondition; len(rest) > 0; {
		load := rest[0].Load
		n := slices.IndexFunc(rest, func(c ConditionReport) bool { return c.Load != load })
		if n < 0 {
			n = len(rest)
		}
		at := f
		at.title = f.in.say("%s, load %s", f.title, f.in.number(load))
		file := fmt.Sprintf("%s-load-%v", name, load)
		if r.Together {
			at.title, file = f.in.say("%s, all instances at once", f.title), name+"-together"
		}
		at.legend = f.in.say("by")
		for _, mech := range r.Mechanisms {
			at.series = append(at.series, string(mech))
		}
		for i := range rest[:n] {
			at.rows = append(at.rows, r.conditionRow(f.in, &rest[i], of))
		}
		cs = append(cs, Chart{file, at.draw()})
		rest = rest[n:]
	}
	return cs
}

func (r *Report) conditionRow(in *language, c *ConditionReport, of func(*Measures) *Measure) figureRow {
	row := figureRow{
		label: in.say("tasks %s, resources %s", in.number(c.TaskVariability), in.number(c.ResourceVariability)),
	}
	for _, mech := range r.Mechanisms {
		row.values = append(row.values, of(&c.Measures).Means[mech])
	}
	return row
}

// meanFigure compares each mechanism to the mean of the older five, if these
// were studied.
func (r *Report) meanFigure(f figure, m *Measure) (*figure, bool) {
	if slices.ContainsFunc(older, r.without) {
		return nil, false
	}
	f.title = f.in.say("%s, against the mean", f.title)
	f.legend, f.series = f.in.say("over"), []string{f.in.say("all conditions")}
	f.line, f.lineLabel = m.average(older), f.in.say("mean of the five older mechanisms")
	for _, mech := range r.Mechanisms {
		f.rows = append(f.rows, figureRow{string(mech), []Summary{m.Means[mech]}})
	}
	return &f, true
}

// Sizes of figures in pixels.
const (
	figureWidth = 860.0
	figureLeft  = 160.0
	figureRight = 130.0
	figureTop   = 76.0
	figureLane  = 17.0 // a mark, with its value beside it
)

func (f *figure) draw() []byte {
	row := figureLane*float64(len(f.series)) + 14
	bottom := figureTop + row*float64(len(f.rows))
	d := newDrawing(figureWidth, bottom+52, f.title, f.description)
	low, high := f.span()
	x := newAxis(low, high, figureLeft, figureWidth-figureRight, 7)
	x.vertical(d, f.in, figureTop, bottom, f.unit)
	f.drawLegend(d)
	if f.lineLabel != "" {
		d.line(x.at(f.line), figureTop, x.at(f.line), bottom, ink, `stroke-dasharray="5 4"`)
	}
	for i, r := range f.rows {
		y := figureTop + row*float64(i)
		if i%2 == 0 {
			d.add(`<rect x="0" y="%s" width="%s" height="%s" fill="%s" fill-opacity="0.035"/>`, px(y), px(figureWidth),
				px(row), ink)
		}
		d.label(figureLeft-12, y+row/2+4, r.label, `text-anchor="end"`)
		for j, s := range r.values {
			errorBar(d, f.in, x, y+7+figureLane*(float64(j)+.5), j, s,
				fmt.Sprintf("%s, %s %s", r.label, f.legend, f.series[j]))
		}
	}
	return d.end()
}

// errorBar draws a mean with its interval and its value.
func errorBar(d *drawing, in *language, x axis, y float64, series int, s Summary, what string) {
	low, high := x.at(s.Low()), x.at(s.High())
	d.line(low, y, high, y, colour(series), `stroke-width="1.5"`)
	for _, end := range []float64{low, high} {
		d.line(end, y-3.5, end, y+3.5, colour(series), `stroke-width="1.5"`)
	}
	value := fmt.Sprintf("%s ± %s", in.number(s.Mean), in.number(roundTo(s.Margin, 2)))
	d.mark(series, x.at(s.Mean), y, what+": "+value)
	d.label(high+8, y+3.5, value, fmt.Sprintf(`font-size="10" fill="%s"`, faint))
}

// drawLegend says which mark stands for which series.
func (f *figure) drawLegend(d *drawing) {
	x := 16.0
	d.label(x, 56, f.legend, fmt.Sprintf(`fill="%s"`, faint))
	x += 16 + long(f.legend)
	for i, name := range f.series {
		d.mark(i, x, 52, name)
		d.label(x+10, 56, name, "")
		x += 28 + long(name)
	}
	note := f.in.say("mean and 95 % confidence interval")
	if f.lineLabel != "" {
		note += f.in.say("; dashed: %s, %s", f.lineLabel, f.in.number(f.line))
	}
	d.label(16, 71, note, fmt.Sprintf(`font-size="10" fill="%s"`, faint))
}

// span is the least and the greatest value that a figure must show.
func (f *figure) span() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, r := range f.rows {
		for _, s := range r.values {
			low, high = min(low, s.Low()), max(high, s.High())
		}
	}
	return low, high
}

// describe says in words what a chart shows.
func (r *Report) describe(in *language, m *Measure) string {
	text := in.say("Scenario %s, seed %d, %d simulations. Means over all conditions:", r.Scenario, r.Seed,
		r.Simulations)
	for _, mech := range r.Mechanisms {
		text += fmt.Sprintf(" %s %s;", mech, in.number(m.Means[mech].Mean))
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
