package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// fewStates is how many steps of a history the page of an instance shows, the newest.
	fewStates = 8
	// perPageStates is how many a page of the whole history lists.
	perPageStates = 50
)

// step is a step of the history of data states, as people see it.
type step struct {
	api.DataState
	Number  string // of the state; empty: it brought none
	Task    string // whose transition it is, or was undone
	From    string // the state that fired it
	Like    string // the first state before that it is equivalent to
	Current bool
	Begun   []string // what is pending, as people call it
	Changes []change
}

// change is a data item with the value that it had, and the one that it has.
type change struct {
	Name     string
	Was, Is  any
	Conflict bool // it was changed after the state that was known to what set it
	Unknown  bool // nobody knows what it was: it was set in a history that does not count
}

// stateNumber is how people name a state; empty: none.
func stateNumber(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("S%d", *n)
}

// steps are those of a history, the newest first.
func steps(in *api.Instance, history []api.DataState) []step {
	out := make([]step, 0, len(history))
	var was map[string]any
	for _, s := range history {
		x := step{
			DataState: s, Number: stateNumber(s.State), From: stateNumber(s.FiredBy), Like: stateNumber(s.EquivalentTo),
		}
		if s.Transition != nil {
			x.Task = in.CalledTask(*s.Transition)
		}
		for _, t := range s.Pending {
			x.Begun = append(x.Begun, in.CalledTask(t))
		}
		for _, n := range s.Changed {
			name := string(n)
			x.Changes = append(x.Changes, change{
				Name: in.CalledData(n), Was: was[name], Is: s.Attributes[name],
				Conflict: slices.Contains(s.Conflicts, n), Unknown: s.Mark == api.MarkSuperseded,
			})
		}
		if s.State != nil {
			was = s.Attributes
		}
		out = append(out, x)
	}
	slices.Reverse(out)
	if i := slices.IndexFunc(out, func(x step) bool { return x.State != nil }); i >= 0 {
		out[i].Current = true
	}
	return out
}

// dataStates is the history of an instance that is driven by its data; none where it is not, or where the partner that
// shows it does not show that as well: it does to those who decide about the instance.
func (p *Page) dataStates(ctx context.Context, in *api.Instance) ([]api.DataState, error) {
	if !in.DataDriven || in.Told != nil && in.Told.Summary {
		return nil, nil
	}
	out, err := p.node.History(ctx, in.ID)
	if err != nil && in.Told != nil {
		return nil, nil
	}
	return out, err
}

// newest are the newest steps of a history, and how many there are before them.
func newest(in *api.Instance, history []api.DataState) (shown []step, more int) {
	all := steps(in, history)
	few := min(len(all), fewStates)
	return all[:few], len(all) - few
}

// states answers: through which states did the data of an instance go, and what brought each?
func (p *Page) states(ctx context.Context, r *http.Request) (view, error) {
	in, err := p.node.Show(ctx, r.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	history, err := p.node.History(ctx, in.ID)
	if err != nil {
		return view{}, err
	}
	all := steps(in, history)
	pages := max((len(all)+perPageStates-1)/perPageStates, 1)
	page, _ := strconv.Atoi(r.URL.Query().Get("page")) // what is no number is the first
	page = min(max(page, 1), pages)
	from := (page - 1) * perPageStates
	v := struct {
		Instance            *api.Instance
		Steps               []step
		First, Last, Number int
		Back, On            string
	}{Instance: in, Steps: all[from:min(from+perPageStates, len(all))], First: from + 1,
		Last: min(from+perPageStates, len(all)), Number: len(all)}
	at := func(n int) string { return "?page=" + strconv.Itoa(n) }
	if page > 1 {
		v.Back = at(page - 1)
	}
	if page < pages {
		v.On = at(page + 1)
	}
	return view{template: "states-page", title: "states.title", live: true, instance: in.ID, data: v}, nil
}

// compared are the data of two states: those with another value, and the names of the others.
func compared(in *api.Instance, now, then map[string]any, changed []workflow.DataName) (differ []change, same []string) {
	for _, n := range changed {
		differ = append(differ, change{Name: in.CalledData(n), Was: now[string(n)], Is: then[string(n)]})
	}
	for _, n := range slices.Sorted(maps.Keys(then)) {
		if !slices.Contains(changed, workflow.DataName(n)) {
			same = append(same, in.CalledData(workflow.DataName(n)))
		}
	}
	return differ, same
}
