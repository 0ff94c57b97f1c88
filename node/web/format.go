package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// functions are what templates can call, in this language.
func (l *language) functions() template.FuncMap {
	return template.FuncMap{
		"lang": func() string { return l.code }, "static": address,
		"t": l.say, "word": l.word, "num": l.number,
		"known":    func(v any) bool { return !instant(v).IsZero() },
		"datetime": func(v any) string { return instant(v).Format(time.RFC3339) },
		"moment":   func(v any) string { return l.moment(instant(v), time.Now()) },
		"ago":      func(v any) string { return l.ago(time.Since(instant(v))) },
		"left":     left, "reason": l.reason, "about": about, "needy": needsPerson,
		"clock":  func(t time.Time) string { return l.hour(t, time.Now()) },
		"key":    func(id string) string { return workflow.PartnerID(id).Short() },
		"lease":  lease,
		"secs":   func(d api.Due) int { return int(max(time.Until(d.At), 0).Seconds()) },
		"saying": func(n *note) string { return l.say(n.Key, n.Args...) }, "replaced": replaced,
		"datum": func(in *api.Instance, name string) string { return in.CalledData(workflow.DataName(name)) },
		"told":  messageText,
		"more":  func(n api.Need) int { return max(n.Number-len(n.Tasks), 0) },
		"size":  l.size, "hasFiles": hasFiles, "exact": exact, "called": l.calledFile,
		"drawn": func(scenario string, c chart) drawn { return drawn{scenario, c} },
		"zone":  func() string { return time.Now().Format("UTC-07:00") },
		"list":  list, "voters": voters, "short": short, "value": l.value, "tone": tone,
		"state": func(family string, value any) stated { return stated{family, fmt.Sprint(value)} },
		"assignment": func(of string, name any, why *api.Why) assignment {
			return assignment{fmt.Sprintf("why-%s-%v", of, name), why}
		},
	}
}

// lease is the clock of whoever has an item: others may take it then.
func lease(until *time.Time) api.Due {
	return api.Due{Kind: "lease", At: *until, Left: max(time.Until(*until), 0).Round(time.Second).String()}
}

// drawn is a chart of the study of a scenario.
type drawn struct {
	Scenario string
	Chart    chart
}

// size is so many bytes for people.
func (l *language) size(n int64) string {
	return strings.Replace(workflow.FormatSize(n), ".", l.comma, 1)
}

// calledFile is what was typed; a file by its name and size.
func (l *language) calledFile(text string) string {
	if file, err := workflow.ParseFile(text); err == nil {
		return file.Name + " (" + l.size(file.Size) + ")"
	}
	return text
}

// stated is a state, and of what.
type stated struct{ Family, Value string }

// assignment is why a piece of work is where it is; ID tells it from others on
// the page.
type assignment struct {
	ID  string
	Why *api.Why
}

// instant is a moment, or one that may be missing.
func instant(v any) time.Time {
	switch v := v.(type) {
	case time.Time:
		return v
	case *time.Time:
		if v != nil {
			return *v
		}
	}
	return time.Time{}
}

// moment is a moment by this device's clock; the date only where it is another day.
func (l *language) moment(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(l.date + " " + time.TimeOnly)
}

// replaced reports whether what replaced a task has succeeded.
func replaced(states map[workflow.TaskName]workflow.State, t api.Task) bool {
	if t.StandIn != nil {
		return t.StandIn.State == workflow.Succeeded
	}
	return states[*t.ReplacedBy] == workflow.Succeeded
}

// left is a duration as people say it.
func left(d string) string {
	t, err := workflow.ParseDuration(d)
	switch {
	case err != nil:
		return d
	case t < time.Minute:
		return fmt.Sprintf("%d s", int(t.Seconds()))
	case t < time.Hour:
		return inTwo(int(t.Minutes()), "min", int(t.Seconds())%60, "s")
	case t < 48*time.Hour:
		return inTwo(int(t.Hours()), "h", int(t.Minutes())%60, "min")
	}
	return fmt.Sprintf("%d d", int(t.Hours()/24))
}

// inTwo is a span in two units, or in the greater alone, if that is all.
func inTwo(n int, unit string, rest int, small string) string {
	if rest == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, rest, small)
}

// ago is how long ago something was, in the greatest unit that says enough.
func (l *language) ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return l.say("ago.seconds", int(d.Seconds()))
	case d < time.Hour:
		return l.say("ago.minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return l.say("ago.hours", int(d.Hours()))
	}
	return l.say("ago.days", int(d.Hours()/24))
}

// number is a share or a factor, to three digits.
func (l *language) number(x float64) string {
	return strings.Replace(strconv.FormatFloat(x, 'g', 3, 64), ".", l.comma, 1)
}

func list(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}

func voters(e *api.Electorate) string {
	var names []string
	for _, v := range e.Voters {
		names = append(names, v.Name)
	}
	return list(names)
}

// short is enough of an ID to tell it from others by eye.
func short(id string) string {
	const enough = 10
	if len(id) > enough {
		return id[:enough]
	}
	return id
}

// value is data for people: strings as they are, files by name and size, everything else as JSON.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case string:
		if f, err := workflow.ParseFile(v); err == nil {
			return f.Name + ", " + workflow.FormatSize(f.Size) // as the command line has it
		}
		return v
	}
	var b strings.Builder
	as := json.NewEncoder(&b)
	as.SetEscapeHTML(false) // people read it, and html/template escapes it
	if err := as.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// value is data as readers of this language write them: of numbers the comma, a moment as a clock of this device shows
// it, yes and no.
func (l *language) value(v any) string {
	switch x := v.(type) {
	case bool:
		return l.say(map[bool]string{true: "yes", false: "no"}[x])
	case float64, json.Number:
		return strings.Replace(value(v), ".", l.comma, 1)
	case string:
		if t, err := time.Parse(time.RFC3339, x); err == nil {
			return l.moment(t, time.Now())
		}
		if f, err := workflow.ParseFile(x); err == nil {
			return f.Name + ", " + l.size(f.Size)
		}
	}
	return value(v)
}

// tone is how urgent a state is, for its looks. It is written out as well.
func tone(state string) string {
	switch strings.ToLower(state) {
	case "succeeded", "active", "final":
		return "good"
	case "running", "ready":
		return "busy"
	case "failed", "blocked", "expired", "evicted", "interrupted", "exception":
		return "bad"
	case "aborted", "cancelled", "unreachable", "compensated", "jumped", "superseded":
		return "warn"
	}
	return "idle"
}
