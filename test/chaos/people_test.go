//go:build linux

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// pace is how fast things happen, on average.
type pace struct {
	trouble time.Duration   // between two faults
	starts  time.Duration   // between two starts of an instance
	persons time.Duration   // between two looks of a person
	minutes []time.Duration // what a minute of a random definition takes
}

// asking is how long somebody waits for a node's answer.
const asking = 5 * time.Second

// found makes the first node's folder.
func found(p *proc) error {
	_, err := node.Init(p.dir, node.InitOptions{Mesh: "chaos", Name: p.name, Roles: sim.RolesOf(p.host)})
	return err
}

// maxWorkflows is how many workflows a run has: a mesh knows some, and runs many
// instances of each.
const maxWorkflows = 200

// random is a random workflow.
type random struct {
	name   workflow.Name
	text   string
	assign map[string]string
}

// start starts instances of random workflows at random nodes until ctx ends.
func (tm *team) start(ctx context.Context, r *rand.Rand, pace pace) {
	for pause(ctx, between(r, 0, 2*pace.starts)) {
		w, err := tm.workflow(r, pace)
		if err != nil {
			tm.harness(err)
			continue
		}
		req := api.StartRequest{Workflow: string(w.name), Assign: w.assign}
		if r.IntN(4) == 0 {
			req.Coordination = string(workflow.Orchestration)
		}
		_ = tm.any(r).start(ctx, w.text, req) // it may be down, or not hear those that are needed
	}
}

// workflow makes a random workflow, or gives one that was made before.
func (tm *team) workflow(r *rand.Rand, pace pace) (random, error) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	if len(tm.workflows) == maxWorkflows {
		return tm.workflows[r.IntN(maxWorkflows)], nil
	}
	text, pins := sim.RandomWorkflow(r, nodes, tm.speed(r, pace))
	w := random{name: workflow.Name(fmt.Sprintf("random-%d", len(tm.workflows))), assign: map[string]string{}}
	w.text = strings.Replace(text, "workflow: random", "workflow: "+string(w.name), 1)
	def, err := workflow.Parse("random.yaml", []byte(w.text))
	if err != nil {
		return w, err
	}
	for p, i := range pins {
		w.assign[p] = tm.ps[i].name
	}
	tm.workflows, tm.defs[w.name] = append(tm.workflows, w), def
	return w, nil
}

func (tm *team) speed(r *rand.Rand, pace pace) sim.Pace {
	minute := pace.minutes[r.IntN(len(pace.minutes))]
	return sim.Pace{Minute: minute, Second: minute / 60, Rough: true, Undo: r, People: r}
}

// start starts an instance here; whether that succeeded may stay open.
func (p *proc) start(ctx context.Context, text string, req api.StartRequest) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	if _, err := p.client.AddWorkflow(ctx, "random.yaml", []byte(text)); err != nil {
		return err
	}
	st, err := p.client.Start(ctx, req)
	if err != nil {
		return err
	}
	p.tm.mu.Lock()
	defer p.tm.mu.Unlock()
	p.tm.started[st.ID] = &started{at: p.name}
	if p.tm.liar != nil {
		p.tm.liar.betray(st.ID)
	}
	return nil
}

// person does now and then what is ready at a node, until ctx ends.
func (p *proc) person(ctx context.Context, r *rand.Rand, pace pace) {
	for pause(ctx, between(r, pace.persons/2, 3*pace.persons/2)) {
		p.work(ctx, r)
	}
}

// work does one task.
func (p *proc) work(ctx context.Context, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	running, err := p.client.Instances(ctx, false)
	running = slices.DeleteFunc(running, func(in api.InstanceSummary) bool {
		return in.State != workflow.InstanceRunning || p.tm.liars(in)
	})
	if err != nil || len(running) == 0 {
		return
	}
	in, err := p.client.Show(ctx, running[r.IntN(len(running))].ID)
	if err != nil {
		return
	}
	def := p.tm.def(in.Workflow)
	for _, t := range in.Tasks {
		if t.Partner != p.name || def.Task(t.Name).Type != workflow.Manual {
			continue
		}
		// What has failed may only be presumed to: then its person may go on.
		if t.State != workflow.Ready && t.State != workflow.Running && t.State != workflow.Failed {
			continue
		}
		req := api.FinishRequest{ID: in.ID, Task: t.Name, Failed: r.IntN(8) == 0, Reason: "by chance"}
		if !req.Failed && len(def.Task(t.Name).Out) > 0 {
			req.Outputs = map[string]string{}
			for _, n := range def.Task(t.Name).Out {
				req.Outputs[string(n)] = fmt.Sprint(r.IntN(10))
			}
		}
		if p.client.FinishTask(ctx, req) == nil {
			p.tm.mu.Lock()
			p.tm.done = append(p.tm.done, doneWork{p.name, in.ID, t.Name})
			p.tm.mu.Unlock()
			return
		}
	}
}

func (tm *team) def(name workflow.Name) *workflow.Definition {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.defs[name]
}
