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
	Count, To   string // as typed
	Units       []choice
	Open        bool
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
