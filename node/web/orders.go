package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// ask is a failure that waits for somebody's order, with a form for who may give one: the node
// that holds the task says who that is.
type ask struct {
	api.Ask
	Instance    string
	Form, Token string
	Acts        bool
}

// asks are those of an instance.
func asks(in *api.Instance, s httpapi.Session) (out []ask) {
	for _, a := range in.Asks {
		out = append(out, ask{a, in.ID, rand.Text(), s.FormToken, s.Acts})
	}
	return out
}

// May reports whether something can be ordered.
func (a ask) May(order string) bool { return slices.Contains(a.Orders, order) }

// order gives an order about a failure, or cancels the instance.
func (p *Page) order(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	o := api.TaskOrder{User: s.User, ID: r.PathValue("id"), Task: workflow.TaskName(r.PostForm.Get("task")), Order: r.PostForm.Get("order")}
	if o.Order == api.TaskCancel {
		o.Task = ""
	}
	done, err := p.node.OrderTask(ctx, o)
	if err != nil {
		return nil, err
	}
	key := map[string]string{
		api.TaskAgain: "note.again", api.TaskContinue: "note.continue", api.TaskStop: "note.stop", api.TaskCancel: "note.cancel",
	}[done.Order]
	return &outcome{to: "/instances/" + url.PathEscape(done.ID), note: note{Key: key, Args: []any{string(o.Task), done.At}}}, nil
}
