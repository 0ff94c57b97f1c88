package runner

import "github.com/mutirao-mesh/mutirao/workflow"

// BuiltIn reports whether every node has that application (docs/language.md, application).
func BuiltIn(app workflow.ApplicationName) bool {
	switch app {
	case "", workflow.AppNoop, workflow.AppSleep, workflow.AppSet, workflow.AppFail:
		return true
	}
	return false
}

// runBuiltIn runs a built-in application that takes no time.
func runBuiltIn(j Job) (Result, bool) {
	switch j.Application {
	case "", workflow.AppNoop:
		return Result{}, true
	case workflow.AppSet:
		return set(j), true
	case workflow.AppFail:
		return failure("%s", j.With.Failure()), true
	}
	return Result{}, false
}

// set evaluates its expressions on the job's input; none sees another's result.
func set(j Job) Result {
	outputs, err := j.With.Values(j.Input, j.Instance, j.AgeOfInstance)
	if err != nil {
		return failure("%v", err)
	}
	return Result{Outputs: outputs}
}
