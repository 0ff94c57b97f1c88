package web

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// workflows answers: what can be started?
func (p *Page) workflows(ctx context.Context, r *http.Request) (view, error) {
	list, err := p.node.Workflows(ctx)
	list = slices.DeleteFunc(slices.Clone(list),
		func(w api.Workflow) bool { return w.Kind != "" }) // they start nothing
	return view{template: "workflows", title: "nav.workflows", live: true, data: struct {
		List []api.Workflow
		Acts bool
	}{list, session(ctx).Acts}}, err
}

// beginning is a page with all that is needed to start a workflow.
type beginning struct {
	Workflow    *api.Workflow
	Tasks       []*workflow.Task // in the order in which they wait for each other
	Diagram     drawing
	Controls    []control // of what nobody sets later
	Later       []control // of what a task sets later
	Asked       []query   // what nobody sets, as a database answers it
	Form, Token string
	Acts        bool
	Only        workflow.RoleName // the node lacks this role, which only may start it; empty: it may
	Why         *problem
	Responsible string
	WaitForRole bool
	Open        bool // what is folded is shown, since something in it will not do
	Roles       []workflow.RoleName
}

// query is data that a database answers.
type query struct{ Called, Database string }

// begin answers: what is this workflow, and what does it need to be started?
func (p *Page) begin(ctx context.Context, r *http.Request) (view, error) {
	return p.beginWith(nil)(ctx, r)
}

func (p *Page) beginWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		s, lang := session(ctx), languageOf(ctx)
		wf, def, fields, err := p.definition(ctx, r)
		if err != nil {
			return view{}, err
		}
		refusalOf(ctx).fields = fields
		b := beginning{
			Workflow: wf, Tasks: inOrder(def),
			Diagram: drawingOf("/workflows/"+url.PathEscape(string(wf.Name)+"@"+short(wf.Hash)), ""), Form: sameName(r),
			Token: s.FormToken, Acts: s.Acts, Why: p.problem(r, why),
			Responsible: r.PostForm.Get("responsible"), WaitForRole: r.PostForm.Has("wait-for-role"),
		}
		if def.CreatorRole != "" {
			roles, err := p.rolesOf(ctx, s)
			if err != nil {
				return view{}, err
			}
			if !slices.Contains(roles, string(def.CreatorRole)) {
				b.Only = def.CreatorRole
			}
		}
		if !r.PostForm.Has("responsible") {
			b.Responsible = string(def.Responsible)
		}
		var bad invalid
		errors.As(why, &bad)
		written := map[string]bool{}
		for _, t := range def.Tasks {
			for _, d := range t.Out {
				written[string(d)] = true
			}
		}
		for _, f := range fields {
			c := lang.control(f, r.PostForm)
			c.Error = bad[f.Name]
			if written[f.Name] && !f.Required {
				b.Later = append(b.Later, c)
			} else {
				b.Controls = append(b.Controls, c)
			}
			b.Open = b.Open || c.Error != ""
		}
		for _, d := range def.Data {
			if d.Type == workflow.TypeQuery {
				b.Asked = append(b.Asked, query{cmp.Or(d.Label, string(d.Name)), d.Database})
			}
		}
		b.Why.name(b.Controls)
		b.Why.name(b.Later)
		for _, t := range def.Tasks {
			if t.Role != "" && !slices.Contains(b.Roles, t.Role) {
				b.Roles = append(b.Roles, t.Role)
			}
		}
		return view{template: "begin", title: "nav.workflows", name: def.Called(), status: b.Why.status(), data: b},
			nil
	}
}

// rolesOf are those of whoever starts what this browser starts: its user or, where it acts for nobody, the partner.
func (p *Page) rolesOf(ctx context.Context, s httpapi.Session) ([]string, error) {
	if s.User == "" {
		st, err := p.node.Status(ctx)
		if err != nil {
			return nil, err
		}
		return st.Roles, nil
	}
	all, err := p.node.Users(ctx)
	i := slices.IndexFunc(all, func(u api.User) bool { return u.ID == s.User })
	if err != nil || i < 0 {
		return nil, err
	}
	return all[i].Roles, nil
}

// inOrder are the tasks of a definition, each after those that it waits for.
func inOrder(def *workflow.Definition) []*workflow.Task {
	var out []*workflow.Task
	for _, name := range def.TopoOrder() {
		out = append(out, def.Task(name))
	}
	return out
}

// definition is the workflow that a path names, with what can be set at its start: what is required first.
func (p *Page) definition(
	ctx context.Context, r *http.Request,
) (*api.Workflow, *workflow.Definition, []api.Field, error) {
	wf, err := p.node.Workflow(ctx, r.PathValue("workflow"))
	if err != nil {
		return nil, nil, nil, err
	}
	def, err := workflow.Parse(string(wf.Name), wf.Definition)
	if err != nil {
		return nil, nil, nil, api.Errorf(api.Failed, "the definition of %s cannot be read: %v", wf.Name, err)
	}
	var fields []api.Field
	for _, d := range def.Data {
		if def.OfRounds(d.Name) || d.Type == workflow.TypeQuery {
			continue
		}
		fields = append(fields, api.Field{
			Name: string(d.Name), Type: string(d.Type), Label: d.Label, Doc: d.Doc, Required: d.Required, Enum: d.Enum,
			Min: d.Min, Max: d.Max, Value: d.Default,
		})
	}
	slices.SortStableFunc(fields, func(a, b api.Field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return wf, def, fields, nil
}

// start starts a workflow with what was typed.
func (p *Page) start(ctx context.Context, r *http.Request, s httpapi.Session) (*outcome, error) {
	wf, _, fields, err := p.definition(ctx, r)
	if err != nil {
		return nil, err
	}
	refusalOf(ctx).fields = fields
	lost := languageOf(ctx).withFiles(r.PostForm, s.Files)
	input, wrong := languageOf(ctx).typed(fields, r.PostForm, true)
	if maps.Copy(wrong, lost); len(wrong) > 0 {
		return nil, invalid(wrong)
	}
	started, err := p.node.Start(ctx, api.StartRequest{
		Workflow: r.PathValue("workflow"), User: s.User, Input: input, Responsible: r.PostForm.Get("responsible"),
		WaitForRole: r.PostForm.Has("wait-for-role"), Key: r.PostForm.Get(formName),
	})
	if err != nil {
		return nil, err
	}
	key := "note.started"
	switch {
	case started.Already:
		key = "note.started.already"
	case started.HeldOnlyHere:
		key = "note.started.here"
	}
	return &outcome{to: "/instances/" + url.PathEscape(started.ID), note: note{Key: key, Args: []any{cmp.Or(wf.Label, string(wf.Name))}}}, nil
}
