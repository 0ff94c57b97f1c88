package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what happens at a node besides what goes wrong: applications
// run, and persons do what is ready.

// Has tells that a machine can run everything.
func (m *machine) Has(workflow.ApplicationName) bool { return true }

// Start runs a job: it takes as long as sleep says, at most fails now and then,
// and hangs once in a while.
func (m *machine) Start(j runner.Job, done func(runner.Result)) {
	w, n := m.w, m.node
	m.jobSeq++
	num := m.jobSeq
	m.jobs[j.Key] = num
	took := time.Duration(w.people.IntN(2000)) * time.Millisecond
	if j.Application == workflow.AppSleep {
		took += j.With.For
	}
	var res runner.Result
	switch k := w.people.IntN(40); {
	case w.plan.Calm:
		res = result(j)
	case k < 3:
		res = runner.Result{Failed: true, Reason: "simulated failure"}
	case k == 3:
		return // it hangs
	default:
		res = result(j)
	}
	w.at(w.now+took, func() {
		if m.jobs[j.Key] != num || (n != nil && m.node != n) {
			return
		}
		delete(m.jobs, j.Key)
		w.act(m, func(*node.Node) { done(res) })
	})
}

// result is what a job gives: for set the values of its expressions.
func result(j runner.Job) runner.Result {
	switch j.Application {
	case workflow.AppFail:
		return runner.Result{Failed: true, Reason: "simulated failure"}
	case workflow.AppSet:
	default:
		return large(j)
	}
	out := map[workflow.DataName]workflow.Value{}
	for name, e := range j.With.Set {
		v, err := e.Eval(workflow.Env{Data: j.Input, Instance: j.Instance})
		if err != nil {
			return runner.Result{Failed: true, Reason: err.Error()}
		}
		out[name] = v
	}
	return runner.Result{Outputs: out}
}

// large gives what a task puts out of which a situation wants much.
func large(j runner.Job) (res runner.Result) {
	if strings.HasPrefix(string(j.Task), survey) {
		res.Outputs = map[workflow.DataName]workflow.Value{
			big: strings.Repeat(string(j.Task)+" ", bigResult/(len(j.Task)+1)),
		}
	}
	return res
}

// Cancel forgets a job.
func (m *machine) Cancel(key string) { delete(m.jobs, key) }

// persons look at a node now and then and do what is ready there.
func (w *world) persons(m *machine) {
	pause := time.Duration(20+w.people.IntN(400)) * w.plan.Scale * time.Second
	w.at(w.now+pause, func() {
		if m.gone {
			return
		}
		w.serve(m, func(n api.Service) { w.work(m, n) })
		w.persons(m)
	})
}

func (w *world) work(m *machine, n api.Service) {
	ctx := context.Background()
	list, err := n.Instances(ctx, true)
	if err != nil {
		return
	}
	for _, sum := range slices.Backward(list) {
		if sum.State != workflow.InstanceRunning && sum.State != workflow.InstanceBlocked {
			continue
		}
		in, err := n.Show(ctx, sum.ID)
		if err != nil {
			continue
		}
		for _, t := range in.Tasks {
			// What has failed may only be presumed to: then its person may go on.
			if t.State != workflow.Ready && t.State != workflow.Running && t.State != workflow.Failed {
				continue
			}
			req := api.FinishRequest{
				ID: in.ID, Task: t.Name, Failed: !w.plan.Calm && w.people.IntN(8) == 0, Reason: "simulated",
			}
			if !req.Failed {
				req.Outputs = w.filledIn(t.Name)
			}
			if n.FinishTask(ctx, req) == nil {
				w.checks.reported(m, in.ID, t.Name)
				return
			}
		}
	}
}

// filledIn are a person's answers for what a task puts out.
func (w *world) filledIn(t workflow.TaskName) map[string]string {
	task := w.task(t)
	if task == nil || len(task.Out) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, n := range task.Out {
		out[string(n)] = fmt.Sprint(w.people.IntN(10))
	}
	return out
}
