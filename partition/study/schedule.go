package study

import (
	"fmt"
	"slices"
	"strings"
)

// span is when a task can be under way if it never waits for a resource, by mean
// times from the beginning of its instance.
type span struct{ start, end float64 }

// spans are those of a process, task by task, with its topological order.
func spans(tasks []Task) (ss []span, order []int) {
	order, _ = topological(tasks)
	ss = make([]span, len(tasks))
	for _, t := range order {
		for _, b := range tasks[t].After {
			ss[t].start = max(ss[t].start, ss[b].end)
		}
		ss[t].end = ss[t].start + tasks[t].Time
	}
	return ss, order
}

// SchedulingGraph draws the process by mean times, as if nobody were busy: a bar
// per task, from its earliest start to its earliest end, an arrow to each task
// that comes after it, and the costliest path in another colour.
func (s *Scenario) SchedulingGraph() []byte {
	const left, top, row, width = 150.0, 78.0, 34.0, 1000.0
	ss, order := spans(s.Process)
	path := costliestPath(s.Process, order)
	last := 0.0
	for _, sp := range ss {
		last = max(last, sp.end)
	}
	bottom := top + row*float64(len(order))
	d := newDrawing(width, bottom+52, "Scheduling graph: "+s.Name, s.describeSchedule(path, last))
	x := newAxis(0, last, left, width-40, 10)
	x.vertical(d, nil, top, bottom, "time units from the beginning of an instance, by mean times")
	d.rect(left, 46, 12, 12, colour(1), "")
	d.label(left+18, 56, "the costliest path"+s.allocated(), "")
	y := make([]float64, len(order)) // of the middle of each task's row
	for place, t := range order {
		y[t] = top + row*(float64(place)+.5)
		d.label(left-12, y[t]+4, fit(string(s.Process[t].Name), left-24), `text-anchor="end"`)
	}
	for t, task := range s.Process {
		for _, b := range task.After {
			arrow(d, x.at(ss[b].end), y[b], x.at(ss[t].start), y[t], onPath(path, b, t))
		}
	}
	for t, task := range s.Process {
		series := 0
		if slices.Contains(path, t) {
			series = 1
		}
		tip := fmt.Sprintf("%s, %s: time %s, from %s to %s", task.Name, strings.Join(task.Roles, " or "),
			number(task.Time), number(ss[t].start), number(ss[t].end))
		d.rect(x.at(ss[t].start), y[t]-10, max(2, x.at(ss[t].end)-x.at(ss[t].start)), 20, colour(series), tip)
		d.label(x.at(ss[t].start)+5, y[t]+4, number(task.Time), `font-size="11" fill="#ffffff" pointer-events="none"`)
	}
	return d.end()
}

// allocated says what a scenario allocates if that is not all.
func (s *Scenario) allocated() string {
	if s.CriticalPath {
		return ": only it is allocated"
	}
	return ""
}

// onPath reports whether one task follows the other on a path.
func onPath(path []int, task, next int) bool {
	i := slices.Index(path, task)
	return i >= 0 && i+1 < len(path) && path[i+1] == next
}

// arrow leads from the end of one task to the start of one below it.
func arrow(d *drawing, x1, y1, x2, y2 float64, path bool) {
	stroke, more := faint, `fill="none"`
	if path {
		stroke, more = colour(1), `fill="none" stroke-width="2"`
	}
	const tip = 5.0
	d.add(`<path d="M%s %sC%s %s %s %s %s %s" stroke="%s" %s/>`, px(x1-11), px(y1+10), px(x1-11), px(y2), px(x1-11),
		px(y2),
		px(x2-tip), px(y2), stroke, more)
	d.add(`<path d="M%s %sl-%s -%sv%sz" fill="%s"/>`, px(x2), px(y2), px(tip+1), px(tip-1), px(2*tip-2), stroke)
}

// describeSchedule says in words what the scheduling graph shows.
func (s *Scenario) describeSchedule(path []int, last float64) string {
	names := make([]string, len(path))
	for i, t := range path {
		names[i] = string(s.Process[t].Name)
	}
	return fmt.Sprintf("Scenario %s: %d tasks. The costliest path is %s, and takes %s time units by mean times.",
		s.Name, len(s.Process), strings.Join(names, ", "), number(last))
}
