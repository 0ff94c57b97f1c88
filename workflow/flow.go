package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// FlowTask is the task that a definition has for its data-state flow as a whole. Nobody writes
// it: no name that is written begins so. Who holds it runs the flow.
const FlowTask TaskName = "~flow"

// Flow is what a definition says that is driven by its data, which is one with a task that
// repeats: its tasks are triggers (docs/language.md, repeat). One that does not repeat fires once.
type Flow struct {
	Partition PartitionName
	Triggers  []*Task // by name; the condition of each is its Condition
}

// Flow is the definition's data-state flow; nil: it has none, or one that cannot be run (FlowObstacle).
func (d *Definition) Flow() *Flow { return d.flow }

// FlowObstacle says why the tasks that repeat cannot be run as a data-state flow; empty: they
// can, or there are none.
func (d *Definition) FlowObstacle() string { return d.flowObstacle }

// Written are the tasks that somebody wrote: all but the one that stands for the flow.
func (d *Definition) Written() []*Task {
	if d.flow == nil {
		return d.Tasks
	}
	return d.Tasks[:len(d.Tasks)-1]
}

// layFlow makes the flow of a definition with tasks that repeat. They have no slots of their own
// then, and no rules: their conditions are asked of data states. The flow has both, as one
// task, with what its holder needs for all of them.
func (d *Definition) layFlow() {
	if !slices.ContainsFunc(d.Tasks, func(t *Task) bool { return t.Repeat }) {
		return
	}
	f := &Flow{}
	for _, t := range d.Tasks {
		if t.Repeat || !t.ContingencyOnly {
			f.Triggers = append(f.Triggers, t)
		}
	}
	if d.flowObstacle = d.hindrance(f); d.flowObstacle != "" {
		return
	}
	slices.SortFunc(f.Triggers, func(a, b *Task) int { return strings.Compare(string(a.Name), string(b.Name)) })
	whole := &Task{
		Name: FlowTask, Type: Automatic, Whole: true, OnFailure: FailContingency, Contingency: FlowTask,
		Reconcile: KeepFirst, OnConflict: ConflictApply, Urgency: DefaultUrgency,
	}
	for _, t := range f.Triggers {
		t.Condition, t.Rule, t.ContingencyOnly = t.Rule.Data, nil, true
		if !t.Repeat {
			t.RepeatTimes = 1
		}
		for _, n := range t.Needs {
			if !slices.Contains(whole.Needs, n) {
				whole.Needs = append(whole.Needs, n)
			}
		}
	}
	slices.Sort(whole.Needs)
	whole.In = d.filesOf(f)
	d.Tasks = append(d.Tasks, whole)
	d.index[FlowTask] = whole
	i := slices.IndexFunc(d.Partitions, func(p PartitionDecl) bool { return p.Name == f.Partition })
	d.Partitions[i].Tasks = append(slices.Clip(d.Partitions[i].Tasks), FlowTask)
	d.flow = f
}

// filesOf are the files that a flow's transitions read or write, by name: whoever keeps its data states has all of
// them, as any may be read next.
func (d *Definition) filesOf(f *Flow) (out []DataName) {
	for _, x := range d.Data {
		touches := func(t *Task) bool { return slices.Contains(t.In, x.Name) || slices.Contains(t.Out, x.Name) }
		if x.Type == TypeFile && slices.ContainsFunc(f.Triggers, touches) {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return out
}

// hindrance says what of a definition with tasks that repeat is not built; empty: all is. It
// finds the flow's partition.
func (d *Definition) hindrance(f *Flow) string {
	for _, t := range f.Triggers {
		what := fmt.Sprintf("task %s repeats", t.Name)
		if !t.Repeat {
			what = fmt.Sprintf("task %s does not repeat, beside tasks that do,", t.Name)
		}
		switch {
		case t.Rule == nil:
			return what + " and has no when: such tasks wait for data"
		case len(t.After) > 0 || t.Rule.Op != OpData:
			return what + " and waits for tasks: such tasks wait for data alone"
		case t.Type == SubWorkflow:
			return what + " and runs a workflow"
		case t.OnFailure != FailBlock:
			return what + " and has on-failure: a failure interrupts the instance"
		case t.TimeToWait > 0, t.Deadline != nil, t.Produces.Name != "":
			return what + " and has time-to-wait, deadline or produces"
		case len(t.Holds) > 0:
			return what + " and holds a resource"
		}
	}
	if d.Final != nil && d.Final.aged {
		return "final asks for instance.age: have a task do so, and set data that final asks for"
	}
	for _, c := range d.Constraints {
		if c.When != nil && c.When.aged {
			return fmt.Sprintf("constraint %s asks for instance.age: data break constraints, and time does not", c.Name)
		}
	}
	for _, x := range d.Data {
		if x.Type == TypeQuery {
			return fmt.Sprintf("%s is a %s: tasks that repeat do not write or read such data", x.Name, x.Type)
		}
	}
	for _, p := range d.Partitions {
		if !slices.ContainsFunc(p.Tasks, func(n TaskName) bool { return slices.Contains(f.Triggers, d.index[n]) }) {
			continue
		}
		if f.Partition != "" {
			return fmt.Sprintf("its tasks that repeat are in partitions %s and %s: one partner keeps all data states of an instance, so they belong in one", f.Partition, p.Name)
		}
		if f.Partition = p.Name; p.Timeout > 0 {
			return fmt.Sprintf("partition %s has a timeout, and what repeats in it none as a whole: write timeout at its tasks", p.Name)
		}
	}
	return ""
}

// ParseCondition reads a predicate over the definition's data that somebody gives while an instance
// runs. An error says what is wrong with it.
func (d *Definition) ParseCondition(src string) (*Expr, error) {
	const name = "the_condition_that_was_given"
	var whole map[string]any
	if err := json.Unmarshal(d.canonical, &whole); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	named, _ := whole["conditions"].(map[string]any)
	if named == nil {
		named = map[string]any{}
	}
	named[name] = src
	whole["conditions"] = named
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("write the definition: %w", err)
	}
	with, err := Parse("condition", text)
	var wrong Errors
	if errors.As(err, &wrong) && len(wrong) > 0 {
		err = wrongCondition(wrong[0], text, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no condition over the data of %s: %w", excerpt(src), d.Name, err)
	}
	return with.Condition(name), nil
}

// wrongCondition says what is wrong with a condition and where in it, as it is under its name in the text of a
// definition on one line.
func wrongCondition(p Problem, text []byte, name string) error {
	at := 0
	if _, from, found := bytes.Cut(text, []byte(`"`+name+`":"`)); found {
		begins := utf8.RuneCount(text[:len(text)-len(from)])
		before := []rune(string(from))[:max(p.Col-1-begins, 0)]
		var read string // what escapes stand for
		if json.Unmarshal([]byte(`"`+string(before)+`"`), &read) == nil {
			at = utf8.RuneCountInString(read) + 1
		}
	}
	said := p.Message
	if at > 0 {
		said = fmt.Sprintf("at its character %d: %s", at, p.Message)
	}
	if p.Hint != "" {
		said += " (" + p.Hint + ")"
	}
	return errors.New(said)
}
