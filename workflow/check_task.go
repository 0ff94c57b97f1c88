package workflow

import (
	"maps"
	"slices"
)

// checkTask reports what does not fit together within one task.
func (r *reader) checkTask(t *Task) {
	has := func(key string) bool { return r.written(t, key) != nil }
	switch t.Type {
	case Manual:
		r.refuse(t, "application", "make it semi-automatic, or leave it out", "a manual task has no application")
		r.refuse(t, "with", "leave it out", "with holds the arguments of an application, and a manual task has none")
	case SemiAutomatic:
		if !has("application") {
			r.on(r.head(t), "name what the person opens, or make it manual",
				"the semi-automatic task %s has no application", t.Name)
		}
		if !has("role") {
			r.on(r.head(t), "write role: ROLE", "the semi-automatic task %s has no role to be offered to", t.Name)
		}
	case SubWorkflow:
		r.refuse(t, "application", "leave it out", "a task of type workflow runs a workflow, not an application")
		r.refuse(t, "with", "write uses: {workflow: NAME, input: {…}}", "with holds the arguments of an application")
		if !has("uses") {
			r.on(r.head(t), "write uses: NAME", "%s does not say which workflow it uses", t.Name)
		}
	}
	if t.Type != SubWorkflow {
		r.refuse(t, "uses", "write type: workflow", "uses belongs to tasks of type workflow")
	}
	r.checkRetries(t)
	if t.Type != Manual && t.Type != SemiAutomatic {
		r.refuse(t, "role", "write type: manual, or ask the role of the holder: partitions: {NAME: {tasks: [TASK], roles: [ROLE]}}",
			"a role is asked of the person who performs a task, and nobody performs this one: a node runs it")
		if t.Offline {
			r.refuse(t, "offline", "leave it out", "only manual and semi-automatic tasks can be done offline")
		}
	}
	if has("urgency") && t.Urgency == 0 {
		r.refuse(t, "urgency", "", "with urgency 0 the task would never be given to anybody: it must be more than 0")
	}
	if t.Compensate != nil && t.Compensate.Task == t.Name {
		r.refuse(t, "compensate", "name another task", "a task cannot undo itself")
	}
	r.checkForm(t)
	r.checkWarnings(t)
	r.checkTransfer(t)
	r.checkArguments(t)
	r.checkRule(t)
}

// checkRetries reports tries of what no program does.
func (r *reader) checkRetries(t *Task) {
	if t.Type != Automatic {
		r.refuse(t, "retries", "a person decides to try again", "retries belong to automatic tasks")
	}
}

// refuse reports a key of a task that must not be there.
func (r *reader) refuse(t *Task, key, hint, message string) {
	if n := r.written(t, key); n != nil {
		r.on(n, hint, "%s", message)
	}
}

// checkArguments checks what the built-in applications need.
func (r *reader) checkArguments(t *Task) {
	r.checkSet(t, t.With.Set, r.where(t, "with"))
	if t.Compensate != nil {
		r.checkSet(t, t.Compensate.With.Set, r.where(t, "compensate"))
	}
	with := r.where(t, "with")
	switch t.Application {
	case AppSet:
		if len(with.entries) == 0 {
			r.on(with, "write with: {data: expression}", "set does not say what to set")
		}
	case AppSleep:
		if with.get("for") == nil {
			r.on(with, "write with: {for: 2s}", "sleep does not say how long")
		}
	}
}

// checkSet reports data that set writes although the task does not own up to it.
func (r *reader) checkSet(t *Task, assigned map[DataName]*Expr, at *node) {
	out := make(map[DataName]bool, len(t.Out))
	for _, name := range t.Out {
		out[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(assigned)) {
		if !out[name] {
			r.on(at, "add it to out:", "set writes %s, which is not in out", name)
		}
	}
}

// checkRule checks the keys that are about the rule.
func (r *reader) checkRule(t *Task) {
	ruled := r.written(t, "after") != nil || r.written(t, "when") != nil
	if t.TimeToWait > 0 && !ruled {
		r.on(r.where(t, "time-to-wait"), "say what it waits for, with after or when",
			"time-to-wait, but there is nothing to wait for")
	}
}
