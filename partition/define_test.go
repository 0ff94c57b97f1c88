package partition_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// succeeded is a term of a rule: the task must succeed.
func succeeded(t workflow.TaskName) *workflow.Rule {
	return &workflow.Rule{Op: workflow.OpTask, Transition: workflow.BecameSucceeded, Task: t}
}

// after is the rule that all the tasks must succeed.
func after(tasks ...workflow.TaskName) *workflow.Rule {
	if len(tasks) == 0 {
		return nil
	}
	r := &workflow.Rule{Op: workflow.OpAnd}
	for _, t := range tasks {
		r.Args = append(r.Args, succeeded(t))
	}
	return r
}

// shape says what randomDefinition may draw.
type shape struct {
	timeouts      bool // every task has a timeout
	contingencies bool
	waits         bool // some tasks have a time-to-wait
	roles         bool // some tasks have roles and needs
}

// randomDefinition draws a workflow whose tasks wait only for earlier ones, and
// a cut of it.
func randomDefinition(t *rapid.T, s shape) *workflow.Definition {
	def := &workflow.Definition{Name: "random"}
	n := rapid.IntRange(1, 9).Draw(t, "tasks")
	parts := make([]workflow.PartitionDecl, rapid.IntRange(1, 4).Draw(t, "partitions"))
	for i := range parts {
		parts[i].Name = workflow.PartitionName(fmt.Sprintf("p%d", i))
	}
	place := func(name workflow.TaskName) {
		i := rapid.IntRange(0, len(parts)-1).Draw(t, "home of "+string(name))
		parts[i].Tasks = append(parts[i].Tasks, name)
	}
	for i := range n {
		task := &workflow.Task{Name: workflow.TaskName(fmt.Sprintf("t%d", i)), Type: workflow.Automatic}
		var before []workflow.TaskName
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("t%d after t%d", i, j)) == 0 {
				before = append(before, def.Tasks[j].Name)
			}
		}
		task.Rule = after(before...)
		task.Timeout = randomTimeout(t, s.timeouts)
		if s.waits && len(before) > 0 && rapid.Bool().Draw(t, "waits") {
			task.TimeToWait = time.Duration(rapid.IntRange(1, 90).Draw(t, "time-to-wait")) * time.Minute
		}
		if s.roles {
			task.Role = rapid.SampledFrom([]workflow.RoleName{"", "crew", "chief"}).Draw(t, "role")
			task.Needs = rapid.SampledFrom([][]workflow.Capability{nil, {"radio"}, {"ladder", "radio"}}).
				Draw(t, "needs")
		}
		def.Tasks = append(def.Tasks, task)
		place(task.Name)
	}
	if s.contingencies {
		addContingencies(t, def, s, place)
	}
	for _, p := range parts {
		if len(p.Tasks) > 0 {
			def.Partitions = append(def.Partitions, p)
		}
	}
	return def
}

// addContingencies gives some tasks chains of contingencies, some of which are
// placed and some left to any available partner.
func addContingencies(t *rapid.T, def *workflow.Definition, s shape, place func(workflow.TaskName)) {
	for _, task := range def.Tasks {
		for range rapid.IntRange(0, 2).Draw(t, "contingencies of "+string(task.Name)) {
			c := &workflow.Task{Name: task.Name + "x", ContingencyOnly: true, Timeout: randomTimeout(t, s.timeouts)}
			task.OnFailure, task.Contingency = workflow.FailContingency, c.Name
			def.Tasks = append(def.Tasks, c)
			if rapid.Bool().Draw(t, "placed") {
				place(c.Name)
			}
			task = c
		}
	}
}

func randomTimeout(t *rapid.T, always bool) time.Duration {
	least := 0
	if always {
		least = 1
	}
	return time.Duration(rapid.IntRange(least, 60).Draw(t, "timeout")) * time.Minute
}

// taskOf finds a task in a definition that was built by hand.
func taskOf(def *workflow.Definition, name workflow.TaskName) *workflow.Task {
	for _, t := range def.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// mentions reports whether the rule of t mentions the other task.
func mentions(t *workflow.Task, other workflow.TaskName) bool {
	found := false
	t.Rule.Terms(func(r *workflow.Rule) { found = found || r.Op == workflow.OpTask && r.Task == other })
	return found
}

// chainOf is a task and its contingencies, by the definition alone.
func chainOf(def *workflow.Definition, name workflow.TaskName) []*workflow.Task {
	chain := []*workflow.Task{taskOf(def, name)}
	for chain[len(chain)-1].OnFailure == workflow.FailContingency {
		chain = append(chain, taskOf(def, chain[len(chain)-1].Contingency))
	}
	return chain
}

// homeOf is the partition of a task, by the definition alone.
func homeOf(def *workflow.Definition, name workflow.TaskName) workflow.PartitionName {
	for _, p := range def.Partitions {
		for _, t := range p.Tasks {
			if t == name {
				return p.Name
			}
		}
	}
	return ""
}
