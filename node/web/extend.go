package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// spans are the units in which a deadline is extended, as the node reads them.
var spans = []string{"m", "h", "d"}

// later is a form by which a task gets a later deadline.
type later struct {
	Instance    string
	Form, Token string
	Tasks       []choice
	Dues        []due
	Count, To   string // as typed
	Units       []choice
	Open        bool
}

// due is the deadline that a task had when its form was made, in a hidden field of that.
type due struct{ Field, At string }

const (
	duePrefix = "due." // of the name of that field, before the task's
	// sameDue is how far apart two deadlines may be that are the same: where the holder of a task is another node, one
	// that is a span is known as it was told.
	sameDue = 30 * time.Second
)

// isOf reports whether a deadline is the one that a form names in a hidden field; one that names none, or none that can be
// read, is about any.
func isOf(form string, deadline time.Time) bool {
	named, err := time.Parse(time.RFC3339, form)
	return err != nil || deadline.Sub(named).Abs() <= sameDue
}

// isDeadline reports whether a clock is a deadline.
func isDeadline(d api.Due) bool { return d.Kind == "deadline" }

// later is that form, for who decides about an instance; nil: no task has a deadline that matters.
func (p *Page) later(ctx context.Context, r *http.Request, in *api.Instance, s httpapi.Session, may rights) *later {
	lang := languageOf(ctx)
	f := &later{
		Instance: in.ID, Form: rand.Text(), Token: s.FormToken,
		Count: r.PostForm.Get("count"), To: r.PostForm.Get("till"), Open: r.PostForm.Has("extend"),
	}
	for _, t := range in.Tasks {
		i := slices.IndexFunc(t.Due, isDeadline)
		if i < 0 || t.State.Done() {
			continue
		}
		name := string(t.Name)
		f.Dues = append(f.Dues, due{
			duePrefix + name, cmp.Or(r.PostForm.Get(duePrefix+name), t.Due[i].At.Format(time.RFC3339)), // the same form, once more
		})
		f.Tasks = append(f.Tasks, choice{
			Value: name, Name: cmp.Or(t.Label, name) + " (" + lang.hour(t.Due[i].At, time.Now()) + ")",
			Chosen: r.PostForm.Get("task") == name,
		})
	}
	if len(f.Tasks) == 0 || !may.decide {
		return nil
	}
	unit := r.PostForm.Get("unit")
	if !slices.Contains(spans, unit) {
		unit = "h"
	}
	for _, u := range spans {
		f.Units = append(f.Units, choice{Value: u, Name: lang.word("unit", u), Chosen: u == unit})
	}
	return f
}

// dueChanged reports whether a task has another deadline by now than the form says that gives it more time: it may be that
// form which did so, sent once more by the browser after the node was started again.
func (p *Page) dueChanged(ctx context.Context, in api.ExtendRequest, was string) bool {
	if was == "" {
		return false // the form names none
	}
	x, err := p.node.Show(ctx, in.ID)
	if err != nil {
		return false // whoever extends it says why
	}
	for _, t := range x.Tasks {
		if i := slices.IndexFunc(t.Due, isDeadline); t.Name == in.Task && i >= 0 {
			return !isOf(was, t.Due[i].At)
		}
	}
	return false
}

// extend gives a task a later deadline.
func (p *Page) extend(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	lang := languageOf(ctx)
	in := api.ExtendRequest{User: s.User, ID: r.PathValue("id"), Task: workflow.TaskName(r.PostForm.Get("task"))}
	if in.Task == "" {
		return nil, &trouble{key: "wrong.task"}
	}
	switch r.PostForm.Get("extend") {
	case "by":
		n, err := strconv.Atoi(strings.TrimSpace(r.PostForm.Get("count")))
		unit := r.PostForm.Get("unit")
		if err != nil || n < 1 || !slices.Contains(spans, unit) {
			return nil, &trouble{key: "wrong.span"}
		}
		if was := duePrefix + string(in.Task); p.dueChanged(ctx, in, r.PostForm.Get(was)) {
			r.PostForm.Del(was) // what is seen from now on is as it is now
			return nil, &trouble{key: "wrong.due"}
		}
		in.By = strconv.Itoa(n) + unit
	case "to":
		till, wrong := lang.read(api.Field{Type: string(workflow.TypeTime)}, strings.TrimSpace(r.PostForm.Get("till")))
		if wrong != "" {
			return nil, &trouble{key: "wrong.till"}
		}
		in.To = till
	default:
		return nil, &trouble{key: "wrong.extend"}
	}
	done, err := p.node.ExtendDeadline(ctx, in)
	if err != nil {
		return nil, err
	}
	task := p.called(ctx, done.ID, done.Task)
	n := note{Key: "note.extended.span", Args: []any{task, left(done.After)}}
	if done.At != nil {
		n = note{Key: "note.extended", Args: []any{task, lang.hour(*done.At, time.Now())}}
	}
	return &outcome{to: "/instances/" + url.PathEscape(done.ID), note: n}, nil
}
