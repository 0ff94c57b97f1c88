package study

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// Gantt draws what each resource did when, in one run: a bar per task, in the
// colour of its place in the process, with the number of its workflow instance.
func (s *Scenario) Gantt(m aptitude.Mechanism, t Trial, work []Work) []byte {
	const left, top, row, width = 150.0, 84.0, 26.0, 1100.0
	bottom := top + row*float64(len(s.Resources))
	d := newDrawing(width, bottom+52, fmt.Sprintf("Gantt chart of one run: %s", m), s.describeRun(m, t, work))
	end := 0.0
	for _, w := range work {
		end = max(end, w.End)
	}
	x := newAxis(0, end, left, width-24, 12)
	x.vertical(d, nil, top, bottom, "time units")
	s.taskLegend(d, left)
	for i, r := range s.Resources {
		y := top + row*float64(i)
		d.line(0, y, width, y, rule, "")
		d.label(left-12, y+row/2+4, fit(string(r.Name), left-24), `text-anchor="end"`)
	}
	for _, w := range work {
		s.bar(d, x, w, top+row*float64(w.Resource)+3, row-6)
	}
	return d.end()
}

// bar draws one task of one instance.
func (s *Scenario) bar(d *drawing, x axis, w Work, y, height float64) {
	from, width := x.at(w.Start), x.at(w.End)-x.at(w.Start)
	tip := fmt.Sprintf("instance %d, %s, %s: ready %s, start %s, end %s", w.Instance+1, s.Tasks[w.Task].Name,
		s.Resources[w.Resource].Name, number(w.Ready), number(w.Start), number(w.End))
	d.rect(from+.5, y, max(1, width-1), height, colour(w.Task), tip)
	if label := fmt.Sprint(w.Instance + 1); width > digit*float64(len(label))+2 {
		d.label(from+width/2, y+height/2+4, label,
			`text-anchor="middle" font-size="11" fill="#ffffff" pointer-events="none"`)
	}
}

// taskLegend says which colour stands for which task.
func (s *Scenario) taskLegend(d *drawing, left float64) {
	const shown = 8 // as many as there are colours; tooltips tell the rest
	x := left
	for i, t := range s.Tasks[:min(shown, len(s.Tasks))] {
		name := fit(string(t.Name), 120)
		d.rect(x, 46, 12, 12, colour(i), "")
		d.label(x+18, 56, name, "")
		x += 36 + long(name)
	}
	d.label(left, 74, "Numbers are workflow instances.", fmt.Sprintf(`font-size="11" fill="%s"`, faint))
}

func (s *Scenario) describeRun(m aptitude.Mechanism, t Trial, work []Work) string {
	return fmt.Sprintf("Scenario %s under %s: %d tasks of %d workflow instances on %d resources; %s.",
		s.Name, m, len(work), s.Instances, len(s.Resources), s.DescribeTrial(t))
}

// AllocationTable is who performed each task of each workflow instance in one
// run: a row per instance, a column per task, resource indexes; −1 where
// nothing was done.
func (s *Scenario) AllocationTable(work []Work) [][]int {
	rows := make([][]int, s.Instances)
	for i := range rows {
		rows[i] = slices.Repeat([]int{-1}, len(s.Tasks))
	}
	for _, w := range work {
		rows[w.Instance][w.Task] = w.Resource
	}
	return rows
}

// AllocationChart draws the allocation table; the apter the resource, the
// deeper the colour.
func (s *Scenario) AllocationChart(m aptitude.Mechanism, t Trial, work []Work) []byte {
	const left, top, row, column = 90.0, 92.0, 22.0, 150.0
	width := max(520, left+column*float64(len(s.Tasks))+16)
	d := newDrawing(width, top+row*float64(s.Instances)+20, fmt.Sprintf("Allocation table of one run: %s", m),
		s.describeRun(m, t, work))
	d.label(16, 50, "Who performed each task; the deeper the colour, the greater the suitability.",
		fmt.Sprintf(`fill="%s"`, faint))
	d.label(left-12, top-8, "instance", fmt.Sprintf(`text-anchor="end" fill="%s"`, faint))
	for j, task := range s.Tasks {
		d.label(left+column*float64(j)+8, top-8, fit(string(task.Name), column-16), `font-weight="600"`)
	}
	for i, resources := range s.AllocationTable(work) {
		y := top + row*float64(i)
		d.label(left-12, y+15, fmt.Sprint(i+1), `text-anchor="end"`)
		for j, r := range resources {
			s.cell(d, left+column*float64(j), y, column-2, row-2, j, r)
		}
	}
	return d.end()
}

// cell draws who performed a task of an instance.
func (s *Scenario) cell(d *drawing, x, y, width, height float64, task, resource int) {
	if resource < 0 {
		return
	}
	r := s.Resources[resource]
	suitability := r.Suitability[s.Tasks[task].Name]
	d.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="%s"/>`,
		px(x), px(y), px(width), px(height), colour(0), number(0.08+0.4*suitability*suitability))
	d.label(x+8, y+14, fit(string(r.Name), width-50), "")
	d.label(x+width-8, y+14, number(suitability), `text-anchor="end" font-size="10"`)
}

// fit shortens a text to about so many pixels.
func fit(text string, width float64) string { return plain.Cut(text, max(1, int(width/digit))) }

// long is about how many pixels a text takes.
func long(text string) float64 { return digit * float64(plain.Width(text)) }
