package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

// FormatGantt is the format of a drawing of when each task of an instance ran.
const FormatGantt = "gantt"

// Gantt draws when each task of an instance ran, as its facts say, by the clocks of a zone: a node draws by those
// where it runs, as its page says all times, and the command by those of whoever types it.
func Gantt(in *api.Instance, now time.Time, language string, zone *time.Location) ([]byte, error) {
	if err := Undrawable(in); err != nil {
		return nil, err
	}
	c := diagram.Chart{
		Title: fmt.Sprintf("%s@%d  %s", cmp.Or(in.Label, string(in.Workflow)), in.Version, in.ID), From: in.Started, To: now, Language: language,
		Zone: zone,
	}
	if in.Ended != nil {
		c.To = *in.Ended
	}
	for _, t := range in.Tasks {
		b := diagram.Bar{
			Name: cmp.Or(t.Label, string(t.Name)), Who: cmp.Or(t.PerformedBy, t.ClaimedBy, t.Partner), State: t.State,
		}
		if t.Started != nil {
			b.Begin = *t.Started
		}
		if t.Ended != nil {
			b.End = *t.Ended
		}
		for _, x := range t.Superseded {
			b.Others = append(b.Others, x.Ended)
		}
		for _, at := range append(slices.Clone(b.Others), b.Begin, b.End) { // clocks of partners differ
			if !at.IsZero() && at.Before(c.From) {
				c.From = at
			}
			if at.After(c.To) {
				c.To = at
			}
		}
		c.Bars = append(c.Bars, b)
	}
	return diagram.Gantt(c), nil
}

// Undrawable says that an instance cannot be drawn, of which a node knows no more than a summary.
func Undrawable(in *api.Instance) error {
	if in.Told == nil || !in.Told.Summary {
		return nil
	}
	return api.Errorf(api.Failed, "only a summary of this instance is known here: %s", in.Told.Why).
		WithHint("draw it on a node that takes part: %s", strings.Join(in.Told.Participants, ", "))
}

// Draw draws an instance: its definition, the partner of each partition and
// the state of each task.
func Draw(def *workflow.Definition, in *api.Instance, format string) ([]byte, error) {
	opt := diagram.Options{
		States: map[workflow.TaskName]workflow.State{}, Partners: map[workflow.PartitionName]string{},
		Known: map[workflow.TaskName]string{},
	}
	for _, t := range in.Tasks {
		opt.States[t.Name] = t.State
		if t.Known != "" {
			opt.Known[t.Name] = t.Known
		}
	}
	for _, p := range in.Partitions {
		opt.Partners[p.Name] = strings.Join(p.Holders(), ", ")
	}
	for _, language := range []string{diagram.English, diagram.Portuguese} {
		if of, ok := strings.CutSuffix(format, "-"+language); ok {
			format, opt.Language = of, language
		}
	}
	if format == "svg-tall" {
		format, opt.Tall = "svg", true
	}
	b, err := diagram.Render(def, format, opt)
	if err != nil {
		return nil, api.Judge(api.Invalid, err)
	}
	return b, nil
}
