package realproc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/worker"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// weighing is a flow that workers do, also what undoes it.
const weighing = `
workflow: weighing
data: {weight: {type: integer}, packed: {type: boolean}}
tasks:
  weigh:
    when: weight == null
    repeat: true
    application: weigh
    out: [weight]
    compensate: {application: unload}
  pack: {when: weight != null and packed == null, repeat: true, application: pack, in: [weight], out: [packed]}
final: packed
partitions: {main: [weigh, pack]}
`

// weighers says beside which node there are workers of an application: two holds the work of both.
var weighers = map[string]string{"weigh": "two", "unload": "one", "pack": "two"}

// hands are what workers, and whoever orders recovery, have done at an instance of weighing.
type hands struct {
	job       *worker.Job // which a worker has; nil: none
	at        *proc       // beside which node
	gaveBack  bool        // the first job
	weight    int         // of the job in hand
	confirmed []int       // weights of which a node said that they count
}

// hire makes a token for the workers beside each node, which come for jobs once, so the node announces that it is able.
// It waits until the first node has heard that, which starts an instance then.
func (tm *team) hire() {
	tm.t.Helper()
	ctx := context.Background()
	for _, p := range tm.ps {
		made, err := p.client.AddToken(ctx, httpapi.TokenRequest{Name: "workers", Scope: "admin"})
		if err != nil {
			tm.t.Fatal(err)
		}
		p.token = made.Token
		for app := range weighers {
			if _, err := p.workers().Take(ctx, app, "scales", 0, 0); err != nil {
				tm.t.Fatal(err)
			}
		}
	}
	var st *api.Started
	var err error
	until(tm.t, "one knows that two has workers", patience, func() bool {
		st, err = tm.ps[0].client.Start(ctx, api.StartRequest{
			Workflow: "weighing", Assign: map[string]string{"main": "two"},
		})
		return err == nil
	})
	tm.weighed(st.ID)
}

// workers are those beside a node, wherever that is now.
func (p *proc) workers() *worker.Client {
	url, _, by := p.client.Way()
	return &worker.Client{URL: url, Token: p.token, HTTP: by}
}

// weigh does the next thing that there is to do at an instance of weighing, as far as the nodes answer, and notes what
// they show. The first job is given back. Packing fails until what was weighed first is undone. A job may be of an
// instance that was begun without the answer that says so: it is done, and nobody recovers that instance.
func (tm *team) weigh(id string) {
	tm.t.Helper()
	tm.look(id)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	h := &tm.hands
	if h.job == nil && !tm.take(ctx) {
		tm.recover(ctx, id)
		return
	}
	w := h.at.workers()
	var err error
	switch h.job.Application {
	case "weigh":
		if !h.gaveBack {
			if err = w.GiveBack(ctx, h.job.Lease); settled(err) {
				h.gaveBack = true
			}
			break
		}
		if err = w.Complete(ctx, h.job.Lease, map[string]any{"weight": h.weight}); err == nil && h.job.Instance == id {
			h.confirmed = append(h.confirmed, h.weight)
		}
	case "unload":
		err = w.Complete(ctx, h.job.Lease, map[string]any{"weight": nil})
	case "pack":
		undone, known := tm.undone(h.job.Instance)
		if !known {
			return
		}
		if undone {
			err = w.Complete(ctx, h.job.Lease, map[string]any{"packed": true})
		} else {
			err = w.Fail(ctx, h.job.Lease, "the box is too small")
		}
	}
	if settled(err) {
		h.job = nil
	}
}

// settled reports whether a node has answered: whatever it said, the lease is over.
func settled(err error) bool {
	var no *worker.Error
	return err == nil || errors.As(err, &no) && no.Status != http.StatusServiceUnavailable
}

// take has a worker take a job, if there is one.
func (tm *team) take(ctx context.Context) bool {
	h := &tm.hands
	for app, name := range weighers {
		p := tm.node(name)
		job, err := p.workers().Take(ctx, app, "scales", 0, 5*time.Second)
		if err == nil && job != nil {
			h.job, h.at, h.weight = job, p, h.weight+1
			return true
		}
	}
	return false
}

// undone reports whether the holder shows that what was weighed first is undone.
func (tm *team) undone(id string) (undone, known bool) {
	states, err := tm.node("two").client.History(context.Background(), id)
	return slices.ContainsFunc(states, func(s api.DataState) bool { return s.Kind == "compensation" }), err == nil
}

// recover orders the step of recovery that an interrupted instance is to go on by, at the node that does not hold it.
func (tm *team) recover(ctx context.Context, id string) {
	c := tm.node("one").client
	in, err := c.Show(ctx, id)
	if err != nil || in.Recovery == nil || in.Recovery.UnderWay {
		return
	}
	step := api.RecoveryStep{Method: "compensate"}
	if in.Data["weight"] == nil {
		step.Method = "restart"
	}
	out, err := c.ForeseeRecovery(ctx, "", id, step)
	if err != nil {
		return
	}
	step.From, step.Interruption = &out.From, out.Interruption
	_, _ = c.OrderTask(ctx, api.TaskOrder{ID: id, Order: api.TaskRecover, Recover: &step}) // seen by what comes of it
}

// weighed does what there is to do at an instance of weighing until it has ended at both nodes. They have one history
// then: what was weighed first is undone once, and what a node confirmed is there.
func (tm *team) weighed(id string) {
	tm.t.Helper()
	for _, p := range tm.ps {
		until(tm.t, p.name+" has the end of "+id, 3*patience, func() bool {
			tm.weigh(id)
			return p.state(id) == workflow.InstanceSucceeded
		})
	}
	until(tm.t, "the histories of "+id+" are equal", patience, func() bool {
		return slices.Equal(tm.ps[0].history(id), tm.ps[1].history(id))
	})
	want := []string{"0 initial", "1 weigh compensated", "- pack aborted", "2 weigh compensation", "- restart", "3 weigh", "4 pack"}
	for _, p := range tm.ps {
		states, err := p.client.History(context.Background(), id)
		if err != nil {
			tm.t.Fatal(err)
		}
		if got := outline(states); !slices.Equal(got, want) {
			tm.t.Errorf("%s has %q, want %q", p.name, got, want)
		}
		for _, w := range tm.hands.confirmed {
			if !slices.ContainsFunc(states, func(s api.DataState) bool {
				return s.State != nil && fmt.Sprint(s.Attributes["weight"]) == fmt.Sprint(w)
			}) {
				tm.t.Errorf("%s lacks the weight %d, which was said to count", p.name, w)
			}
		}
	}
	tm.goesOn(id)
}

// outline is a history in short.
func outline(states []api.DataState) (out []string) {
	for _, s := range states {
		line := "-"
		if s.State != nil {
			line = fmt.Sprint(*s.State)
		}
		if s.Transition != nil {
			line += " " + string(*s.Transition)
		}
		if s.Kind != "transition" {
			line += " " + s.Kind
		}
		out = append(out, strings.TrimRight(line+" "+s.Mark, " "))
	}
	return out
}
