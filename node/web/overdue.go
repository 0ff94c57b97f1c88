package web

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The pages that have forms about what is overdue. Each is shown again after an order.
const (
	fromHome     = "home"
	fromMessages = "messages"
	fromInstance = "instance"
)

// overdue is a task whose deadline is over, with forms for who may say what becomes of that.
type overdue struct {
	api.Overdue
	Instance string
	From     string // the page that it is on
	Token    string
	Acts     bool
}

// Form names one of its forms, each by another name: one that was sent does not count as the other.
func (o overdue) Form() string { return rand.Text() }

// Due is the deadline that the form is about, in a hidden field of it; empty: it is not known.
func (o overdue) Due() string {
	if o.Since.IsZero() {
		return ""
	}
	return o.Since.Format(time.RFC3339)
}

// newOverdue is a task of an instance on one of the pages.
func newOverdue(of api.Overdue, instance, from string, s httpapi.Session, may bool) overdue {
	return overdue{of, instance, from, s.FormToken, may && s.Acts}
}

// overdueOf are those of an instance. The holder of a task carries out what is ordered about it.
func (p *Page) overdueOf(ctx context.Context, in *api.Instance, s httpapi.Session, may rights) (out []overdue) {
	if len(in.Overdue) == 0 {
		return nil // nearly always: the node is not asked how it is
	}
	alone := p.alone(ctx)
	for _, o := range in.Overdue {
		out = append(out, newOverdue(o, in.ID, fromInstance, s, may.decide && (alone == "" || alone == o.Partner)))
	}
	return out
}

// alone is the node's name while it is out of reach on purpose, when it asks nobody for anything; else empty.
func (p *Page) alone(ctx context.Context) string {
	if st, err := p.node.Status(ctx); err == nil && st.Disconnected != nil {
		return st.Name
	}
	return ""
}

// needy is an instance that needs a person, with what the session's user may order about it at once.
type needy struct {
	api.InstanceSummary
	Overdue []overdue
}

// addOverdue adds the forms about what is overdue to instances on home, of those about which the session's user decides.
// Whether that is so is asked elsewhere of some, for which home does not wait long.
func (p *Page) addOverdue(ctx context.Context, list []needy, s httpapi.Session, st *api.Status) {
	if !s.Acts || st.Disconnected != nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	for i := range list {
		in := &list[i]
		at := slices.IndexFunc(in.Needs, func(n api.Need) bool { return n.Kind == api.NeedOverdue })
		if at < 0 {
			continue
		}
		if d := p.decides(soon, &api.Instance{ID: in.ID}, s); d == nil || !d.May {
			continue
		}
		n, shown := in.Needs[at], p.whatIsOverdue(soon, in.ID)
		for _, t := range n.Tasks {
			in.Overdue = append(in.Overdue, newOverdue(known(shown, t, n.Called(t)), in.ID, fromHome, s, true))
		}
	}
}

// whatIsOverdue are the tasks of an instance whose deadline is over, as far as that is known at once.
func (p *Page) whatIsOverdue(ctx context.Context, instance string) []api.Overdue {
	if in, err := p.node.Show(ctx, instance); err == nil {
		return in.Overdue
	}
	return nil // its forms say of which task, and not of which deadline
}

// known is a task whose deadline is over, as it is shown or, where it is not, by its name.
func known(shown []api.Overdue, t workflow.TaskName, label string) api.Overdue {
	x := api.Overdue{Task: t}
	if i := slices.IndexFunc(shown, func(o api.Overdue) bool { return o.Task == t }); i >= 0 {
		x = shown[i]
	}
	x.Label = label
	return x
}

// message is one with what the session's user may order about it at once.
type message struct {
	api.Message
	Overdue *overdue
}

// asking are messages with the forms of those that ask about what is overdue.
func (p *Page) asking(ctx context.Context, list []api.Message, s httpapi.Session) (out []message) {
	isAbout := func(m api.Message) bool { return m.Asks && m.Type == api.MessageDeadline }
	can := s.Acts && slices.ContainsFunc(list, isAbout) && p.alone(ctx) == ""
	soon, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	shown := map[string][]api.Overdue{}
	for _, m := range list {
		x := message{Message: m}
		if can && isAbout(m) {
			of, asked := shown[m.Instance]
			if !asked {
				of = p.whatIsOverdue(soon, m.Instance)
				shown[m.Instance] = of
			}
			o := newOverdue(known(of, workflow.TaskName(m.Task), m.Label), m.Instance, fromMessages, s, true)
			x.Overdue = &o
		}
		out = append(out, x)
	}
	return out
}
