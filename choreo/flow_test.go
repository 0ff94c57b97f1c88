package choreo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// recover has the one who answers for the instance order a step of recovery.
func (s *story) recover() string {
	n := s.node(0)
	step := dataflow.Step{Method: s.d.CmdArgs[1].Key, When: s.arg("when"), Set: map[workflow.DataName]*string{}}
	step.Steps, _ = strconv.Atoi(s.arg("steps"))
	if until, err := strconv.Atoi(s.arg("until")); err == nil {
		step.Until = &until
	}
	for _, a := range s.d.CmdArgs[2:] {
		if name := workflow.DataName(a.Key); slices.ContainsFunc(s.data(),
			func(d workflow.DataDecl) bool { return d.Name == name }) {
			text := strings.Join(a.Vals, ",")
			if step.Set[name] = &text; text == "null" {
				step.Set[name] = nil
			}
		}
	}
	reason, err := step.Encode()
	if err != nil {
		return err.Error()
	}
	i, _, err := n.m.Ordered(workflow.FlowTask)
	if err != nil {
		return err.Error()
	}
	who := fact.Speaker{User: n.m.Responsible(), At: n.id}
	s.w.people[who.User] = who
	return s.put(n, s.w.word(who, worklist.Order{Item: i, What: worklist.Recover, Reason: reason}))
}

// history lists the data states as a node knows them: what it says of each beside what changed.
func (s *story) history() string {
	var b strings.Builder
	m := s.node(0).m
	for _, v := range m.History() {
		name := fmt.Sprintf("S%d", v.Output)
		if v.Mark == "aborted" {
			name = "  "
		}
		fmt.Fprintf(&b, "%s %s", name, v.Kind)
		if v.Task != "" {
			fmt.Fprintf(&b, " %s at %s", v.Task, v.Partner)
		}
		if v.FiredBy >= 0 {
			fmt.Fprintf(&b, " fired by S%d", v.FiredBy)
		}
		if v.Input >= 0 {
			fmt.Fprintf(&b, " on S%d", v.Input)
		}
		for _, n := range slices.Sorted(maps.Keys(v.Changed)) {
			fmt.Fprintf(&b, ", %s=%v", n, v.Changed[n])
		}
		if v.EquivalentTo >= 0 {
			fmt.Fprintf(&b, ", as S%d", v.EquivalentTo)
		}
		if v.Mark != "" {
			fmt.Fprintf(&b, " [%s]", v.Mark)
		}
		if v.Status != "regular" {
			fmt.Fprintf(&b, " (%s)", v.Status)
		}
		if v.Kind == dataflow.Compensation && v.Reason != "" {
			fmt.Fprintf(&b, ": %s", v.Reason)
		}
		b.WriteString("\n")
	}
	for _, v := range m.Superseded() {
		fmt.Fprintf(&b, "   %s %s at %s", v.Kind, v.Task, v.Partner)
		if v.FiredBy >= 0 {
			fmt.Fprintf(&b, " fired by S%d", v.FiredBy)
		}
		for _, n := range slices.Sorted(maps.Keys(v.Values)) {
			fmt.Fprintf(&b, ", %s=%v", n, v.Values[n])
		}
		fmt.Fprintf(&b, " [%s]", v.Mark)
		if v.Compensation != "" {
			fmt.Fprintf(&b, " compensation %s", v.Compensation)
		}
		b.WriteString("\n")
	}
	if x := m.Interrupted(); x != nil {
		fmt.Fprintf(&b, "interrupted: %s %s consistent=%t\n", x, x.Task, x.Consistent)
	}
	return trimmed(b.String())
}
