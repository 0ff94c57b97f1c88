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

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mostListed is how many people, or roles, are offered to choose from; of more the name is typed.
const mostListed = 100

// pass is a form by which a person's task goes to somebody else.
type pass struct {
	Action      string
	Form, Token string
	Tasks       []choice // of an instance; empty: it is an item's form
	People      []choice // empty: the name is typed
	Roles       []choice // empty: the name is typed
	NoRole      bool     // it cannot go to a role
	To, Role    string   // as typed
	Reason      string
	Open        bool
}

// passing is an item's form; nil: the user may not pass it on.
func (p *Page) passing(ctx context.Context, r *http.Request, x item) *pass {
	if !x.Movable() || len(x.Awaits) > 0 { // what nobody can do now is passed on to nobody
		return nil
	}
	f := newPass("/items/"+url.PathEscape(x.ID)+"/transfer", x.Token, r.PostForm)
	f.choices(p.people(ctx), func(u api.User) bool {
		return u.ID != session(ctx).User && fits(u, x.Role, x.Partner)
	})
	f.Roles = slices.DeleteFunc(f.Roles, func(c choice) bool { return c.Value == x.Role })
	f.NoRole = x.Role == "" // people at one partner cannot be told by a role
	return f
}

// fits reports whether a task can be handed to a user: one of its role who is signed in somewhere or, of a task without a
// role, somebody at its partner.
func fits(u api.User, role, partner string) bool {
	if role == "" {
		return slices.Contains(u.Devices, partner)
	}
	return slices.Contains(u.Roles, role) && len(u.Devices) > 0
}

// deciding is the form of an instance, for who decides about it; nil: there is nothing to pass on, or the user does not.
func (p *Page) deciding(ctx context.Context, r *http.Request, in *api.Instance, s httpapi.Session, may rights) *pass {
	if !may.decide || in.Ended != nil {
		return nil
	}
	f := newPass("/instances/"+url.PathEscape(in.ID)+"/transfer", s.FormToken, r.PostForm)
	by := p.byPeople(ctx, in)
	var open []api.Task
	for _, t := range in.Tasks {
		if t.State != workflow.Ready && t.State != workflow.Running {
			continue
		}
		if who := t.ClaimedBy + t.KeptFor; who != "" || by[t.Name] {
			c := choice{Value: string(t.Name), Name: cmp.Or(t.Label, string(t.Name)), Chosen: r.PostForm.Get("task") == string(t.Name)}
			if who != "" {
				c.Name += " (" + who + ")"
			}
			f.Tasks, open = append(f.Tasks, c), append(open, t)
		}
	}
	if len(f.Tasks) == 0 {
		return nil
	}
	f.choices(p.people(ctx), func(u api.User) bool { // who decides may hand it to oneself, too
		return slices.ContainsFunc(open, func(t api.Task) bool { return fits(u, string(t.Role), t.Partner) })
	})
	f.NoRole = !slices.ContainsFunc(open, func(t api.Task) bool { return t.Role != "" })
	return f
}

// byPeople are the tasks that people do.
func (p *Page) byPeople(ctx context.Context, in *api.Instance) map[workflow.TaskName]bool {
	by := map[workflow.TaskName]bool{}
	def := p.definitionOf(ctx, in)
	if def == nil {
		return by // what somebody has is known all the same
	}
	for _, t := range def.Tasks {
		by[t.Name] = t.Type == workflow.Manual || t.Type == workflow.SemiAutomatic
	}
	return by
}

// definitionOf is the definition of an instance, as this node has it under that name; nil: it has none. It is only
// for what is offered: another definition may have had that name.
func (p *Page) definitionOf(ctx context.Context, in *api.Instance) *workflow.Definition {
	wf, err := p.node.Workflow(ctx, string(in.Workflow)+"@"+strconv.Itoa(in.Version))
	if err != nil {
		return nil
	}
	def, err := workflow.Parse(string(wf.Name), wf.Definition)
	if err != nil {
		return nil
	}
	return def
}

// newPass is a form, with what was typed if it came before.
func newPass(action, token string, typed url.Values) *pass {
	return &pass{
		Action: action, Form: rand.Text(), Token: token,
		To: typed.Get("to"), Role: typed.Get("role"), Reason: typed.Get("why"), Open: typed.Has("way"),
	}
}

// people are the users that the node knows; nil: it does not say, and names are typed.
func (p *Page) people(ctx context.Context) []api.User {
	all, err := p.node.Users(ctx)
	if err != nil {
		return nil
	}
	return all
}

// choices offers those who may get it, and all roles that somebody has.
func (f *pass) choices(all []api.User, may func(api.User) bool) {
	var roles []string
	for _, u := range all {
		roles = append(roles, u.Roles...)
		if may(u) {
			name := u.Name
			if len(u.Roles) > 0 {
				name += " (" + list(u.Roles) + ")"
			}
			f.People = append(f.People, choice{Value: u.ID, Name: name, Chosen: u.ID == f.To})
		}
	}
	slices.Sort(roles)
	for _, role := range slices.Compact(roles) {
		f.Roles = append(f.Roles, choice{Value: role, Name: role, Chosen: role == f.Role})
	}
	if len(f.People) > mostListed {
		f.People = nil
	}
	if len(f.Roles) > mostListed {
		f.Roles = nil
	}
}

// transfer passes an item on, or the one of a task of an instance.
func (p *Page) transfer(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	in := api.TransferRequest{User: s.User, Item: r.PathValue("item"), Reason: strings.TrimSpace(r.PostForm.Get("why"))}
	next := "/"
	if in.Item == "" {
		in.ID, in.Task = r.PathValue("id"), workflow.TaskName(r.PostForm.Get("task"))
		if next = "/instances/" + url.PathEscape(in.ID); in.Task == "" {
			return nil, &trouble{key: "wrong.which"}
		}
	}
	switch r.PostForm.Get("way") {
	case "to":
		if in.To = strings.TrimSpace(r.PostForm.Get("to")); in.To == "" {
			return nil, &trouble{key: "wrong.whom"}
		}
	case "role":
		if in.Role = strings.TrimSpace(r.PostForm.Get("role")); in.Role == "" {
			return nil, &trouble{key: "wrong.role"}
		}
	case "back":
		in.Back = true
	default:
		return nil, &trouble{key: "wrong.way"}
	}
	done, err := p.node.TransferItem(ctx, in)
	if err != nil {
		return nil, err
	}
	task := done.Label
	if task == "" && in.ID != "" {
		task = p.called(ctx, done.ID, done.Task)
	}
	task = cmp.Or(task, string(done.Task))
	n := note{Key: "note.passed.back", Args: []any{task}}
	switch {
	case done.To != "" && done.Already:
		n = note{Key: "note.passed.already", Args: []any{task, done.To}}
	case done.To != "":
		n = note{Key: "note.passed.to", Args: []any{task, done.To}}
	case in.Role != "":
		n = note{Key: "note.passed.role", Args: []any{task, done.Role}}
	}
	return &outcome{to: next, note: n}, nil
}

// wholeResult is how many digits the ID of a result has.
const wholeResult = 64

// kept is an incident; of a result that can be adopted it has a form.
type kept struct {
	api.Incident
	Instance    string
	Label       string // what people call its task
	Form, Token string
	Adoptable   bool
	Open        bool
	Told        bool // it says by itself which task it is about
}

// tells reports whether a sentence names a task, as people call it.
func tells(what, task string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(what, func(r rune) bool { return strings.ContainsRune(" :,;()", r) }),
		func(word string) bool { return word == task })
}

// incidents are those of an instance.
func incidents(in *api.Instance, s httpapi.Session, may rights, typed url.Values) (out []kept) {
	for _, i := range in.Incidents {
		if in.Recovery != nil && strings.HasPrefix(i.What, "interrupted: "+in.Recovery.Cause) {
			continue // it is said above, with what may be done
		}
		can := may.decide && len(i.Result) == wholeResult && len(i.Commands) > 0
		called := in.CalledTask(i.Task)
		out = append(out, kept{
			i, in.ID, called, rand.Text(), s.FormToken, can, typed.Get("result") == i.Result, tells(i.What, called),
		})
	}
	return out
}

// adopt has a result count that is kept.
func (p *Page) adopt(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	in := api.AdoptRequest{User: s.User, ID: r.PathValue("id"), Result: r.PostForm.Get("result")}
	if len(in.Result) != wholeResult { // nobody is asked whether the beginning of a name means the right one
		return nil, &trouble{key: "wrong.result"}
	}
	done, err := p.node.AdoptResult(ctx, in)
	if err != nil {
		return nil, err
	}
	return &outcome{
		to:   "/instances/" + url.PathEscape(done.ID),
		note: note{Key: "note.adopted", Args: []any{p.called(ctx, done.ID, done.Task), done.At}},
	}, nil
}
