package node

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// asksFirst is a runner for jobs that ask databases: their applications begin once the answers
// are here, get them, and end with them. So what an instance knows of a database is what the
// task's success says, and nothing before: a try that was cut short asks again, and counts
// once all the same.
type asksFirst struct {
	Runner
	databases Asker // nil: no partner gives this node such a task

	mu     sync.Mutex // guards asking
	asking map[string]*question
}

// question is a job that asks or has asked, until it has ended.
type question struct{ cancelled bool }

// Start implements Runner.
func (r *asksFirst) Start(j runner.Job, done func(runner.Result)) {
	switch {
	case len(j.Asks) == 0:
		r.Runner.Start(j, done)
		return
	case r.databases == nil:
		done(runner.Result{Failed: true, Reason: "this node has no databases"})
		return
	}
	r.mu.Lock()
	if r.asking[j.Key] != nil {
		r.mu.Unlock()
		return
	}
	q := &question{}
	r.asking[j.Key] = q
	r.mu.Unlock()
	answered := func(res runner.Result) {
		r.mu.Lock()
		delete(r.asking, j.Key)
		r.mu.Unlock()
		done(res)
	}
	r.databases.Ask(j, func(res runner.Result) {
		if res.Failed || res.Cancelled {
			answered(res)
			return
		}
		r.startWith(j, q, res.Outputs, answered)
	})
}

// startWith starts a job that has its answers. Who cancels it meanwhile may find it neither
// there nor here, and is remembered.
func (r *asksFirst) startWith(
	j runner.Job, q *question, answers map[workflow.DataName]workflow.Value, done func(runner.Result),
) {
	if r.isCancelled(q) {
		done(runner.Result{Cancelled: true, Reason: "cancelled"})
		return
	}
	input := make(map[workflow.DataName]workflow.Value, len(j.Input)+len(answers)) // the job's may be nil
	maps.Copy(input, j.Input)
	maps.Copy(input, answers)
	j.Input = input
	r.Runner.Start(j, func(res runner.Result) { done(withAnswers(res, answers)) })
	if r.isCancelled(q) {
		r.Runner.Cancel(j.Key)
	}
}

func (r *asksFirst) isCancelled(q *question) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return q.cancelled
}

// withAnswers is a result with what databases answered, which an application does not say itself.
func withAnswers(res runner.Result, answers map[workflow.DataName]workflow.Value) runner.Result {
	if res.Failed || res.Cancelled {
		return res
	}
	for _, name := range slices.Sorted(maps.Keys(res.Outputs)) {
		if _, asked := answers[name]; asked {
			return runner.Result{Failed: true, Answer: res.Answer,
				Reason: fmt.Sprintf("output %s: a database answers that, and not the application", name)}
		}
	}
	outputs := maps.Clone(answers)
	maps.Copy(outputs, res.Outputs)
	res.Outputs = outputs
	return res
}

// Cancel implements Runner.
func (r *asksFirst) Cancel(key string) {
	r.mu.Lock()
	if q := r.asking[key]; q != nil {
		q.cancelled = true
	}
	r.mu.Unlock()
	r.Runner.Cancel(key)
}

// asks are the queries of a task, with the values that their parameters have.
func asks(t *workflow.Task, input map[workflow.DataName]workflow.Value) (out []workflow.Question) {
	for _, q := range t.Queries {
		var values []workflow.Value
		for _, p := range q.Statement.Parameters() {
			values = append(values, input[p])
		}
		out = append(out, workflow.Question{Query: q, Values: values})
	}
	return out
}
