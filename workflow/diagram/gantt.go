package diagram

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Bar is when one task of an instance was worked on.
type Bar struct {
	Name, Who string
	State     workflow.State
	Begin     time.Time // zero: not yet, or nobody said when
	End       time.Time // zero: it goes on
	// Others are when executions of it ended that do not count.
	Others []time.Time
}

// Chart is an instance in time, for Gantt.
type Chart struct {
	Title    string
	From, To time.Time // To: when it ended, or now
	Bars     []Bar
	Language string         // as in Options
	Zone     *time.Location // of the times; nil: UTC
}

// Sizes of a chart in pixels.
const (
	ganttNames = 220 // wide
	ganttTime  = 520 // wide
	ganttSaid  = 200 // wide: how each stands, and who had it
	ganttRow   = 26  // high
	ganttTicks = 6   // at most, beside the first
	ganttDay   = 24 * time.Hour
)

// Gantt draws when each task of an instance ran, as SVG: a row for each, in the order in which they
// began, and those that have not begun after them. Times are in the chart's zone.
func Gantt(c Chart) []byte {
	g := &chart{Chart: c, s: &scene{language: c.Language}}
	if g.Zone == nil {
		g.Zone = time.UTC
	}
	if !g.To.After(g.From) {
		g.To = g.From.Add(time.Second)
	}
	g.Bars = slices.Clone(c.Bars)
	slices.SortStableFunc(g.Bars, func(a, b Bar) int {
		if a.begin().IsZero() != b.begin().IsZero() {
			if a.begin().IsZero() {
				return 1
			}
			return -1
		}
		return a.begin().Compare(b.begin())
	})
	return g.draw()
}

// begin is when a bar begins: of a task of which only the end is known, there.
func (b Bar) begin() time.Time {
	if b.Begin.IsZero() {
		return b.End
	}
	return b.Begin
}

// chart is a Gantt chart in the making.
type chart struct {
	Chart
	bytes.Buffer
	s *scene
}

func (g *chart) put(format string, args ...any) {
	fmt.Fprintf(g, format, args...)
	g.WriteByte('\n')
}

const ganttTop = margin + titleSpace + 24

// x is where a moment lies.
func (g *chart) x(t time.Time) int {
	part := float64(t.Sub(g.From)) / float64(g.To.Sub(g.From))
	return margin + ganttNames + int(min(max(part, 0), 1)*ganttTime)
}

func (g *chart) draw() []byte {
	w, bottom := 2*margin+ganttNames+ganttTime+ganttSaid, ganttTop+ganttRow*len(g.Bars)
	h := bottom + margin
	g.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`, w, h, w, h)
	g.put(`<title id="title">%s</title>`, escape(g.Title))
	g.put(`<desc id="desc">%s</desc>`,
		escape(g.s.say("%d tasks, from %s to %s", len(g.Bars), g.stamp(g.From), g.stamp(g.To))))
	g.put("<style>%s", style)
	for _, st := range slices.Sorted(slices.Values(g.states())) {
		g.put(".%s .box{fill:%s;stroke:#16202c}", st, stateColor[st])
	}
	g.put("</style>")
	g.put(`<rect width="%d" height="%d" class="paper"/>`, w, h)
	g.put(`<text class="title" x="%d" y="%d">%s</text>`, margin, margin+20, escape(plain.Cut(g.Title, 90)))
	g.axis(bottom)
	for i, b := range g.Bars {
		g.bar(b, ganttTop+i*ganttRow)
	}
	g.WriteString("</svg>\n")
	return g.Bytes()
}

// states are those that occur and have a colour.
func (g *chart) states() (out []workflow.State) {
	for _, b := range g.Bars {
		if stateColor[b.State] != "" && !slices.Contains(out, b.State) {
			out = append(out, b.State)
		}
	}
	return out
}

// axis draws the moments above the rows.
func (g *chart) axis(bottom int) {
	step := tickStep(g.To.Sub(g.From))
	format := "15:04:05"
	if step >= ganttDay {
		format = g.day()
	} else if step >= time.Minute {
		format = "15:04"
	}
	for t := g.firstTick(step); !t.After(g.To); t = nextTick(t, step) {
		if t.Before(g.From) {
			continue
		}
		x := g.x(t)
		g.put(`<path class="other" d="M%d %dV%d"/>`, x, ganttTop-6, bottom)
		g.put(`<text class="detail" x="%d" y="%d" text-anchor="middle">%s</text>`, x, ganttTop-10,
			t.Format(format))
	}
	g.put(`<text class="detail" x="%d" y="%d">%s</text>`, margin, ganttTop-10, g.stamp(g.From))
}

// firstTick is a round moment by the clocks of the chart's zone, at its beginning or not long before.
func (g *chart) firstTick(step time.Duration) time.Time {
	from := g.From.In(g.Zone)
	if step >= ganttDay {
		return time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, g.Zone)
	}
	_, off := from.Zone()
	ahead := time.Duration(off) * time.Second
	return from.Add(ahead).Truncate(step).Add(-ahead)
}

// nextTick is a step later. A day is one by the calendar: where the clocks are changed, it has not 24 hours.
func nextTick(t time.Time, step time.Duration) time.Time {
	if step >= ganttDay {
		return t.AddDate(0, 0, int(step/ganttDay))
	}
	return t.Add(step)
}

// tickStep is a span that people count in, so that a few of them make up the whole.
func tickStep(whole time.Duration) time.Duration {
	second, minute, hour, day := time.Second, time.Minute, time.Hour, ganttDay
	for _, s := range []time.Duration{
		second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second, minute, 2 * minute, 5 * minute,
		10 * minute, 15 * minute,
		30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day,
	} {
		if whole/s <= ganttTicks {
			return s
		}
	}
	return (whole/ganttTicks + day).Truncate(day)
}

// day is how a day is written in the chart's language.
func (g *chart) day() string {
	if g.Language == Portuguese {
		return "02/01/2006"
	}
	return time.DateOnly
}

// stamp is a moment in the chart's zone, and says which that is.
func (g *chart) stamp(t time.Time) string {
	t = t.In(g.Zone)
	if _, off := t.Zone(); off == 0 {
		return t.Format(g.day() + " 15:04:05 UTC")
	}
	return t.Format(g.day() + " 15:04:05 -07:00")
}

// bar draws one row.
func (g *chart) bar(b Bar, y int) {
	state := g.s.say(string(b.State))
	what := fmt.Sprintf("%s: %s", b.Name, state)
	if b.Who != "" {
		what += ", " + b.Who
	}
	if !b.Begin.IsZero() {
		what += ", " + g.stamp(b.Begin)
	}
	if !b.End.IsZero() {
		what += " – " + g.stamp(b.End)
	}
	class := "task"
	if stateColor[b.State] != "" {
		class += " state " + string(b.State)
	}
	g.put(`<g><title>%s</title><text class="name" x="%d" y="%d">%s</text>`, escape(what), margin, y+17,
		escape(plain.Cut(b.Name, 26)))
	label := state
	if b.Who != "" {
		label += " · " + b.Who
	}
	if begin := b.begin(); !begin.IsZero() {
		end := b.End
		if end.IsZero() {
			end = g.To
		}
		from, to := g.x(begin), g.x(end)
		width := max(to-from, 3)
		from = min(from, margin+ganttNames+ganttTime-width)
		g.put(`<g class="%s"><rect class="box" x="%d" y="%d" width="%d" height="%d" rx="3"/></g>`, class, from, y+4,
			width, ganttRow-8)
	}
	for _, t := range b.Others {
		g.put(`<path class="failure" d="M%d %dv%d"/>`, g.x(t), y+2, ganttRow-4)
	}
	g.put(`<text class="detail" x="%d" y="%d">%s</text></g>`, margin+ganttNames+ganttTime+12, y+17,
		escape(plain.Cut(label, (ganttSaid-12)/6)))
}
