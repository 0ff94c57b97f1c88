package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rights are what somebody who looks at an instance may do about it now.
type rights struct{ decide, cancel bool }

// mayDo are the rights of the session's user. Of an instance that another node shows, and of which nobody says who decides
// now, it is told by the name of who answers for it: the node that holds the task judges.
func (p *Page) mayDo(ctx context.Context, in *api.Instance, s httpapi.Session) rights {
	if !s.Acts || s.User == "" {
		return rights{}
	}
	if st, err := p.node.Status(ctx); err != nil || st.Disconnected != nil && in.Told != nil {
		return rights{}
	}
	if d := p.decides(ctx, in, s); d != nil {
		return rights{d.May, d.MayCancel}
	}
	is := in.Told != nil && in.Responsible != "" && string(in.Responsible) == s.Name
	return rights{is, is}
}

// deciders says who decides about an instance, to somebody who looks at it; d is nil where this node does not know.
func (l *language) deciders(in *api.Instance, d *api.Deciding, s httpapi.Session) string {
	who := cmp.Or(string(in.Responsible), "–")
	you := in.Responsible != "" && string(in.Responsible) == s.Name
	switch {
	case in.ResponsibleGone && in.Administrators != "":
		return l.say("asks.gone.role", who, in.Administrators)
	case in.ResponsibleGone && !in.Cancellable():
		return l.say("asks.gone.stays", who)
	case in.ResponsibleGone:
		return l.say("asks.gone", who)
	case d == nil && you:
		return l.say("asks.you")
	case d == nil:
		return l.say("asks.who", who)
	case d.Administrators == "" && you:
		return l.say("asks.you.only")
	case d.Administrators == "":
		return l.say("asks.who.only", who)
	case you:
		return l.say("asks.you.role", d.Administrators)
	}
	return l.say("asks.who.role", who, d.Administrators)
}

// ordered names the partners at whose nodes administrators may do something about an instance that this node only
// shows, where it is not known that the session's user is one.
func ordered(in *api.Instance, s httpapi.Session, may rights) (at []string) {
	open := in.Ended == nil || len(in.Asks)+len(in.Undoable) > 0
	if in.Told == nil || in.Closed != nil || !open || !s.Acts || may.decide || may.cancel {
		return nil
	}
	at = slices.Clone(in.Told.Participants)
	for _, part := range in.Partitions {
		at = append(at, part.Holders()...)
	}
	slices.Sort(at)
	at = slices.DeleteFunc(slices.Compact(at), func(name string) bool { return name == "" })
	if len(at) == 0 {
		return []string{in.Told.By.Name}
	}
	return at
}

// ask is a failure that waits for somebody's order, with a form for each that the session's user may give.
type ask struct {
	api.Ask
	Instance string
	Token    string
	Acts     bool
	Others   []string // partners here that could do it once more in place of its holder, as far as they are able
	Why      string   // it failed
}

// Form names one of its forms, each by another name: one that was sent does not count as another.
func (a ask) Form() string { return rand.Text() }

// asks are those of an instance.
func (p *Page) asks(ctx context.Context, in *api.Instance, s httpapi.Session, may rights) (out []ask) {
	if len(in.Asks) == 0 {
		return nil
	}
	partners, _ := p.node.Partners(ctx) // without them it is its holder that does it
	for _, a := range in.Asks {
		x := ask{Ask: a, Instance: in.ID, Token: s.FormToken}
		for i := range in.Tasks {
			if t := &in.Tasks[i]; t.Name == a.Task {
				x.Why = t.Reason
			}
		}
		x.Orders = slices.DeleteFunc(slices.Clone(a.Orders), func(order string) bool {
			return order == api.TaskCancel && !may.cancel || order != api.TaskCancel && !may.decide
		})
		x.Acts = len(x.Orders) > 0
		for _, o := range partners {
			if o.State == "active" && o.Name != a.Partner {
				x.Others = append(x.Others, o.Name)
			}
		}
		out = append(out, x)
	}
	return out
}

// undoable are the tasks of an instance whose work can be undone by an order.
func undoable(in *api.Instance, s httpapi.Session, may rights) (out []ask) {
	for _, t := range in.Undoable {
		out = append(out, ask{
			Ask: api.Ask{Task: t, Label: in.CalledTask(t), Orders: []string{api.TaskUndo}}, Instance: in.ID, Token: s.FormToken,
			Acts: may.decide,
		})
	}
	return out
}

// May reports whether something can be ordered.
func (a ask) May(order string) bool { return slices.Contains(a.Orders, order) }

// called is what people call a task of an instance, as far as that is known here.
func (p *Page) called(ctx context.Context, id string, t workflow.TaskName) string {
	in, err := p.node.Show(ctx, id)
	if err != nil {
		return string(t)
	}
	return in.CalledTask(t)
}

// sameOrder is as sameForm. A form that comes again after the task has failed once more is not answered as if that had
// been decided: it comes to the node, which says so.
func (p *Page) sameOrder(r *http.Request, s httpapi.Session) string {
	form, about := sameForm(r, s), r.PostForm.Get("item")
	if form == "" || about == "" {
		return form
	}
	in, err := p.node.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return form
	}
	for _, a := range in.Asks {
		if string(a.Task) == r.PostForm.Get("task") && a.Item != about {
			form += " " + a.Item
		}
	}
	return form
}

// unlessOver refuses what nobody can undo where that is over about which its page asked: an instance is cancelled for
// an attempt that waits for an order, and a task stopped for the deadline that is over. A page from before may be about
// another: the task failed once more, was done, or got more time.
func (p *Page) unlessOver(ctx context.Context, o api.TaskOrder, due string) error {
	if o.Order != api.TaskStop && (o.Order != api.TaskCancel || o.Item == "") {
		return nil
	}
	in, err := p.node.Show(ctx, o.ID)
	if err != nil || in.Told != nil && in.Told.Summary {
		return nil // whoever carries it out knows
	}
	if o.Order == api.TaskCancel {
		if slices.ContainsFunc(in.Asks, func(a api.Ask) bool { return a.Task == o.Task && a.Item == o.Item }) {
			return nil
		}
		return &trouble{key: "wrong.cancel"}
	}
	if slices.ContainsFunc(in.Overdue, func(x api.Overdue) bool { return x.Task == o.Task && isOf(due, x.Since) }) {
		return nil
	}
	return &trouble{key: "wrong.stop"}
}

// order gives an order about a failure, or cancels the instance.
func (p *Page) order(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	o := api.TaskOrder{
		User: s.User, ID: r.PathValue("id"), Task: workflow.TaskName(r.PostForm.Get("task")),
		Order: r.PostForm.Get("order"), Item: r.PostForm.Get("item"),
	}
	switch o.Order {
	case api.TaskSkip:
		o.Reason = r.PostForm.Get("reason")
	case api.TaskAgain:
		o.To = r.PostForm.Get("to")
	}
	if err := p.unlessOver(ctx, o, r.PostForm.Get("due")); err != nil {
		return nil, err
	}
	if o.Order == api.TaskCancel {
		o.Task, o.Item = "", ""
	}
	done, err := p.node.OrderTask(ctx, o)
	if err != nil {
		return nil, err
	}
	called, by := p.called(ctx, done.ID, cmp.Or(done.StandIn, o.Task)), cmp.Or(done.To, done.At)
	said := map[string]note{
		api.TaskAgain: {Key: "note.again", Args: []any{called, by}}, api.TaskSkip: {Key: "note.skip", Args: []any{called}},
		api.TaskUndo: {Key: "note.undo", Args: []any{called, by}}, api.TaskStop: {Key: "note.stop", Args: []any{called}},
		api.TaskContinue: {Key: "note.continue", Args: []any{called}}, api.TaskCancel: {Key: "note.cancel"},
	}[done.Order]
	switch {
	case done.Order == api.TaskContinue && r.PostForm.Get("from") != "": // it is overdue, and has not failed
		said = note{Key: "note.beyond", Args: []any{called}}
	case done.Order == api.TaskStop && done.MayCount != "":
		said = note{Key: "note.stop.counts", Args: []any{called, p.called(ctx, done.ID, o.Task), done.MayCount}}
	case len(done.GoneToo) > 0:
		var tasks []string
		for _, t := range done.GoneToo {
			tasks = append(tasks, p.called(ctx, done.ID, t))
		}
		key := map[string]string{api.TaskAgain: "note.again.gone", api.TaskSkip: "note.skip.gone"}[done.Order]
		said = note{Key: key, Args: []any{called, by, list(tasks)}}
	}
	to := "/instances/" + url.PathEscape(done.ID)
	switch r.PostForm.Get("from") {
	case fromHome:
		to = "/"
	case fromMessages:
		to = "/messages"
	}
	return &outcome{to: to, note: said}, nil
}

// orderWith is the page that an order was given on, with the reason why it was not carried out.
func (p *Page) orderWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		switch r.PostForm.Get("from") {
		case fromHome:
			return p.homeWith(why)(ctx, r)
		case fromMessages:
			return p.messagesWith(why)(ctx, r)
		}
		return p.instanceWith(why)(ctx, r)
	}
}
