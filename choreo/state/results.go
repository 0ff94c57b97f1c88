package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// CheckOutputs checks a result against what the task may write.
func (s *State) CheckOutputs(
	t *workflow.Task, out map[workflow.DataName]workflow.Value,
) (map[workflow.DataName]workflow.Value, error) {
	return s.EvidenceOf(nil).checkOutputs(t, out)
}

func (e *Evidence) checkOutputs(
	t *workflow.Task, out map[workflow.DataName]workflow.Value,
) (map[workflow.DataName]workflow.Value, error) {
	if len(out) == 0 {
		return nil, nil
	}
	checked := make(map[workflow.DataName]workflow.Value, len(out))
	for n, v := range out {
		if !slices.Contains(t.Out, n) {
			return nil, fmt.Errorf("task %s returned %q, which its out does not name (out: %v)", t.WithLabel(), n, t.Out)
		}
		d := e.decl(n)
		if d == nil {
			return nil, fmt.Errorf("the workflow has no data %s any more", n)
		}
		c, err := workflow.CheckValue(d, v)
		if err != nil {
			return nil, fmt.Errorf("task %s returned a wrong %s: %w", t.WithLabel(), n, err)
		}
		checked[n] = c
	}
	return checked, nil
}

// CheckResult checks a result against what its task may write, and against the strict constraints.
func (s *State) CheckResult(
	a *Attempt, out map[workflow.DataName]workflow.Value,
) (map[workflow.DataName]workflow.Value, error) {
	checked, err := s.CheckOutputs(a.Task, out)
	if err != nil {
		return nil, err
	}
	if why := s.breaks(a, checked); why != "" {
		return nil, fmt.Errorf("the result of %s: %s", a.Task.Name, why)
	}
	return checked, nil
}

// Errors of Finish and Cancel.
var (
	// ErrNoTask is returned for a task that the definition does not have.
	ErrNoTask = errors.New("no such task")
	// ErrElsewhere is returned for a task that another partner holds.
	ErrElsewhere = errors.New("held by another partner")
	// ErrOutput is returned for a result that the task may not have.
	ErrOutput = errors.New("wrong output")
	// ErrNotNow is returned where the state of the task or instance does not allow it.
	ErrNotNow = errors.New("refused")
)

func (e *Evidence) written(t *workflow.Task, x worklist.Result) (map[workflow.DataName]workflow.Value, error) {
	out := make(map[workflow.DataName]workflow.Value, len(x.Outputs))
	for _, n := range slices.Sorted(maps.Keys(x.Outputs)) {
		d := e.decl(n)
		if d == nil {
			return nil, fmt.Errorf("the workflow has no data %s", n)
		}
		text, _ := x.Outputs[n].(string)
		v, err := workflow.ParseValue(d, text)
		if err != nil {
			return nil, err
		}
		out[n] = v
	}
	return e.checkOutputs(t, out)
}

// Written are the data that a result brings, read by their types.
func (s *State) Written(t *workflow.Task, x worklist.Result) (map[workflow.DataName]workflow.Value, error) {
	return s.EvidenceOf(nil).written(t, x)
}

// unfit is why what is claimed of attempts is a result that its task may not have, as its author knew: then it is kept,
// and does not count. Empty: it may, or it is no result.
func (s *State) unfit(e *log.Entry, of []*Attempt, body worklist.Body) string {
	x, is := body.(worklist.Result)
	if !is || x.Failed || len(of) == 0 || len(x.Outputs) == 0 {
		return ""
	}
	if _, err := s.EvidenceOf(e).written(of[0].Task, x); err != nil {
		return fact.Clip(err.Error())
	}
	return ""
}

// WasFit reports whether a result is one that its task might have when its user took the item, as whoever gave it knew.
func (s *State) WasFit(a *Attempt, x worklist.Result) bool {
	g := s.log.ByID()[fact.ID(x.Grant)]
	return g != nil && s.unfit(g, []*Attempt{a}, x) == ""
}

// breaks says which strict constraint the result of an attempt would break; empty: none. What may not count is
// left to what comes of it.
func (s *State) breaks(a *Attempt, out map[workflow.DataName]workflow.Value) string {
	if a.Beside() || !s.Wanted(a) {
		return ""
	}
	return s.WouldBreak(out)
}
