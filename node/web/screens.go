package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mesh answers: who is here, who coordinates, what is wrong?
func (p *Page) mesh(ctx context.Context, _ *http.Request) (view, error) {
	st, err := p.node.Status(ctx)
	if err != nil {
		return view{}, err
	}
	partners, err := p.node.Partners(ctx)
	if err != nil {
		return view{}, err
	}
	c, err := p.node.CoordinatorStatus(ctx)
	if err != nil {
		return view{}, err
	}
	e, err := p.node.Electorate(ctx)
	if err != nil {
		return view{}, err
	}
	return view{template: "mesh", title: "nav.mesh", live: true, data: struct {
		Status      *api.Status
		Partners    []api.Partner
		Coordinator *api.Coordinator
		Electorate  *api.Electorate
	}{st, partners, c, e}}, nil
}

// instance answers: where does it stand, and why is its work where it is?
func (p *Page) instance(ctx context.Context, r *http.Request) (view, error) {
	return p.instanceWith(nil)(ctx, r)
}

// instanceWith is the page of an instance, with the reason why an order was not carried out.
func (p *Page) instanceWith(why error) screen {
	return func(ctx context.Context, r *http.Request) (view, error) {
		return p.instanceAfter(ctx, r, p.problem(r, why))
	}
}

func (p *Page) instanceAfter(ctx context.Context, r *http.Request, why *problem) (view, error) {
	asked, err := p.node.Refresh(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	in, err := p.node.Show(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	states := map[workflow.TaskName]workflow.State{}
	for _, t := range in.Tasks {
		states[t.Name] = t.State
	}
	lang, now := languageOf(ctx), time.Now()
	rows, from, to := timeline(in, now)
	return view{template: "instance", name: about(string(in.Workflow), in.Subject), live: true, instance: in.ID, status: why.status(), data: struct {
		Why      *problem
		Note     *note
		Asks     []ask
		Says     []string
		Rows     []span
		From, To time.Time
		Instance *api.Instance
		Silent   []string // those that were asked and did not answer
		States   map[workflow.TaskName]workflow.State
		Summary  bool // nobody can be asked for more
		Diagram  string
	}{why, p.notes.find(r), asks(in, session(ctx)), lang.sentences(in, now), rows, from, to, in, asked.Silent, states, in.Told != nil && in.Told.Summary, diagramURL(in)}}, nil
}

// diagramURL is where an instance's drawing is. It differs when the drawing does,
// so that a browser that shows it knows when to ask again.
func diagramURL(in *api.Instance) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, t := range in.Tasks {
		_ = enc.Encode([]any{t.Name, t.State, t.Known}) // a hash takes everything
	}
	for _, p := range in.Partitions {
		_ = enc.Encode([]any{p.Name, p.Holders()})
	}
	return "/instances/" + url.PathEscape(in.ID) + "/diagram.svg?v=" + hex.EncodeToString(h.Sum(nil)[:6])
}

// history answers: what happened, in what order?
func (p *Page) history(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	entries, err := p.node.Log(ctx, id)
	if err != nil {
		return view{}, err
	}
	return view{template: "log", title: "log.title", live: true, instance: id, data: struct {
		ID      string
		Entries []api.LogEntry
	}{id, entries}}, nil
}
