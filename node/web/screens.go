package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
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
	var expired []string
	for _, x := range partners {
		if x.State == "expired" {
			expired = append(expired, x.Name)
		}
	}
	return view{template: "mesh", title: "nav.mesh", live: true, data: struct {
		Status      *api.Status
		Expired     []string // names of partners
		Partners    []api.Partner
		Coordinator *api.Coordinator
		Electorate  *api.Electorate
		Installable bool // the page may be put among a device's programs
	}{st, expired, partners, c, e, httpapi.LANWords(ctx) == ""}}, nil
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
	lang, now, s := languageOf(ctx), time.Now(), session(ctx)
	rows, from, to := timeline(in, now)
	data, unset := p.data(ctx, in)
	history, err := p.dataStates(ctx, in)
	if err != nil {
		return view{}, err
	}
	past, before := newest(in, history)
	may := p.mayDo(ctx, in, s)
	return view{template: "instance", name: about(cmp.Or(in.Label, string(in.Workflow)), in.Subject), live: true, instance: in.ID,
		status: why.status(), data: struct {
			Why      *problem
			Note     *note
			Asks     []ask
			Overdue  []overdue
			Undo     []ask  // what can be undone
			Kept     []kept // incidents, with results that can be adopted
			Repairs  bool   // its page of recovery has something for who looks at it
			Pass     *pass
			Later    *later
			Says     []string
			Steps    []step // of the history of data states, the newest
			More     int    // how many there are before these
			Rows     []span
			From, To time.Time
			Instance *api.Instance
			Ordered  []string // of an instance of others: at which nodes it can be ordered about
			Silent   []string // those that were asked and did not answer
			States   map[workflow.TaskName]workflow.State
			Summary  bool   // nobody can be asked for more
			Deciders string // who decides about it, in words
			Diagram  drawing
			Gantt    string // the page with the drawing of when each task ran
			Data     []datum
			Unset    []string // data that nobody has set
		}{
			why, p.notes.find(r), p.asks(ctx, in, s, may), p.overdueOf(ctx, in, s, may), undoable(in, s, may), incidents(in, s, may, r.PostForm),
			in.Told == nil || may.decide, p.deciding(ctx, r, in, s, may),
			p.later(ctx, r, in, s, may), lang.sentences(in, now),
			past, before, rows, from, to, in, ordered(in, s, may), asked.Silent, states, in.Told != nil && in.Told.Summary, lang.deciders(in, p.decides(ctx, in, s), s),
			diagramOf(in), "/instances/" + url.PathEscape(in.ID) + "/gantt", data, unset,
		}}, nil
}

// datum is a data item of an instance that has been set.
type datum struct {
	Name  string
	Label string // what people call it
	Value any
	File  *api.File // where it is a file
}

// data are the data of an instance that were set, and the names of the others.
func (p *Page) data(ctx context.Context, in *api.Instance) (set []datum, unset []string) {
	files := map[workflow.DataName]*api.File{}
	if slices.ContainsFunc(slices.Collect(maps.Values(in.Data)), isFile) {
		list, err := p.node.Data(ctx, in.ID)
		if err != nil { // it is not held here: then its files are names
			list = nil
		}
		for _, d := range list {
			files[d.Name] = d.File
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Data)) {
		label := in.CalledData(workflow.DataName(name))
		if v := in.Data[name]; v != nil {
			set = append(set, datum{name, label, v, files[workflow.DataName(name)]})
		} else {
			unset = append(unset, label)
		}
	}
	return set, unset
}

// isFile reports whether a value is the reference to a file.
func isFile(v any) bool {
	text, ok := v.(string)
	if !ok {
		return false
	}
	_, err := workflow.ParseFile(text)
	return err == nil
}

// drawing is where a drawing is, as it is and for a narrow screen.
type drawing struct{ URL, Tall string }

// drawingOf are the drawings of what is at a path; state differs when they do.
func drawingOf(path, state string) drawing {
	if state != "" {
		return drawing{path + "/diagram.svg?v=" + state, path + "/diagram.svg?tall&v=" + state}
	}
	return drawing{path + "/diagram.svg", path + "/diagram.svg?tall"}
}

// diagramOf is where an instance's drawing is. That differs when the drawing does,
// so that a browser that shows it knows when to ask again.
func diagramOf(in *api.Instance) drawing {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, t := range in.Tasks {
		_ = enc.Encode([]any{t.Name, t.State, t.Known}) // a hash takes everything
	}
	for _, p := range in.Partitions {
		_ = enc.Encode([]any{p.Name, p.Holders()})
	}
	return drawingOf("/instances/"+url.PathEscape(in.ID), hex.EncodeToString(h.Sum(nil)[:6]))
}

// gantt answers: when did each task run? Its drawing is as wide as that takes, and is moved within the page. On a narrow
// screen, where a bar and its name would never be seen together, there are rows in place of it.
func (p *Page) gantt(ctx context.Context, r *http.Request) (view, error) {
	in, err := p.node.Show(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	rows, from, to := timeline(in, time.Now())
	return view{template: "gantt", title: "gantt.title", instance: in.ID, data: struct {
		ID, Drawing string
		Rows        []span
		From, To    time.Time
	}{in.ID, "/instances/" + url.PathEscape(in.ID) + "/gantt.svg", rows, from, to}}, nil
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
