package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// render shows an instance with the partners' names.
func (n *Node) render(h *held) *api.Instance {
	snap := h.m.Snapshot()
	g := h.m.Genesis().Body.Genesis
	out := &api.Instance{
		ID: h.m.Instance().String(), Workflow: h.def.def.Name, Version: h.def.def.Version, State: snap.State, Duplicated: snap.Duplicated,
		Incidents: []api.Incident{}, Conflicts: []api.Conflict{}, Coordination: g.Coordination, Responsible: g.Responsible,
		Started: time.UnixMilli(snap.Started), Ended: instant(h.sum.Ended), Data: map[string]any{},
	}
	for _, i := range snap.Incidents {
		what := i.What
		if i.Who != "" {
			what = n.people.name(i.Who) + ": " + what
		}
		out.Incidents = append(out.Incidents, api.Incident{At: time.UnixMilli(i.At), What: what, Task: i.Task})
	}
	for _, d := range h.def.def.Data {
		out.Data[string(d.Name)] = snap.Data[d.Name]
		if vs, ok := snap.Conflicts[d.Name]; ok {
			out.Conflicts = append(out.Conflicts, api.Conflict{Data: d.Name, Values: vs})
		}
	}
	for _, p := range snap.Partitions {
		v := api.Partition{Name: p.Name, Partner: n.people.name(p.Partner), Attempt: 1, State: string(p.State)}
		if d := h.def.plan.Timeout(p.Name); d > 0 {
			v.Timeout = d.String()
		}
		out.Partitions = append(out.Partitions, v)
	}
	for _, t := range snap.Tasks {
		out.Tasks = append(out.Tasks, n.renderTask(t))
	}
	return out
}

func (n *Node) renderTask(t choreo.TaskView) api.Task {
	v := api.Task{
		Name: t.Task.Name, Partition: t.Partition, Attempt: t.Attempt, State: t.State, ResponseImmediate: t.Immediate,
		Started: instant(t.Started), Ended: instant(t.Ended), Outputs: map[string]any{}, TriggerFired: t.TriggerFired, Reason: t.Reason,
		Superseded: []api.Superseded{},
	}
	if t.Partner != "" {
		v.Partner = n.people.name(t.Partner)
	}
	if t.ContingencyOf != "" {
		v.ContingencyOf = &t.ContingencyOf
	}
	if t.ReplacedBy != "" {
		v.ReplacedBy = &t.ReplacedBy
	}
	for k, val := range t.Outputs {
		v.Outputs[string(k)] = val
	}
	for _, s := range t.Superseded {
		v.Superseded = append(v.Superseded, api.Superseded{Task: s.Task, Partner: n.people.name(s.Partner), Attempt: s.Attempt, Ended: time.UnixMilli(s.Ended), Compensated: s.Compensated})
	}
	return v
}

// renderLog shows the facts in words.
func (n *Node) renderLog(h *held) []api.LogEntry {
	var out []api.LogEntry
	for _, f := range h.m.Facts() {
		e := api.LogEntry{
			At: time.UnixMilli(f.Fact.At), Time: f.Time, Fact: f.ID.String(), Author: n.people.name(f.Fact.Chain.Author), Seq: f.Fact.Seq,
			Kind: f.Fact.Body.Kind(), Counted: f.Counted,
		}
		e.Task, e.Text = n.tell(h, &f.Fact.Body)
		if !f.Counted {
			e.Text += " (does not count)"
		}
		out = append(out, e)
	}
	return out
}

// tell says in words what a fact says.
func (n *Node) tell(h *held, b *choreo.Body) (workflow.TaskName, string) {
	name := func(a choreo.AttemptID) workflow.TaskName {
		t, _ := h.m.AttemptTask(a)
		return t
	}
	try := func(t int) string {
		if t > 1 {
			return fmt.Sprintf(", try %d", t)
		}
		return ""
	}
	switch {
	case b.Genesis != nil:
		var parts []string
		for _, a := range b.Genesis.Assign {
			parts = append(parts, string(a.Partition)+" at "+n.people.name(a.Partner))
		}
		return "", "instance created: " + strings.Join(parts, ", ")
	case b.Ready != nil && b.Ready.Trigger:
		return name(b.Ready.Attempt), "emergency trigger fired"
	case b.Ready != nil:
		return name(b.Ready.Attempt), "ready: its rule about data holds"
	case b.Start != nil:
		var on []string
		for _, c := range b.Start.Consumed {
			on = append(on, string(c.Slot))
		}
		text := "started" + try(b.Start.Try)
		if len(on) > 0 {
			text += ", building upon " + strings.Join(on, ", ")
		}
		return name(b.Start.Attempt), text
	case b.Success != nil:
		return name(b.Success.Attempt), "succeeded" + try(b.Success.Try) + outputs(b.Success.Outputs)
	case b.TryFailed != nil:
		return name(b.TryFailed.Attempt), fmt.Sprintf("try %d failed: %s", b.TryFailed.Try, b.TryFailed.Reason)
	case b.Verdict != nil:
		return n.tellVerdict(b.Verdict, name)
	case b.Assign != nil:
		return b.Assign.Task, "assigned to " + n.people.name(b.Assign.Partner) + " in place of " + string(name(b.Assign.After))
	case b.CalledOff != nil:
		return name(b.CalledOff.Attempt), "called off: it is not needed any more"
	case b.Cancel != nil:
		return "", strings.TrimSuffix("instance cancelled: "+b.Cancel.Reason, ": ")
	case b.Seen != nil:
		return "", "has seen what was known"
	case b.Compensated != nil && b.Compensated.Failed != "":
		return "", "compensation failed: " + b.Compensated.Failed
	}
	return "", "compensated a superseded execution"
}

func (n *Node) tellVerdict(v *choreo.Verdict, name func(choreo.AttemptID) workflow.TaskName) (workflow.TaskName, string) {
	var what []string
	for _, a := range v.Actions {
		text := fmt.Sprintf("%s failed, %s", name(a.Attempt), a.Kind)
		if a.Task != "" {
			who := "nobody yet"
			if a.Partner != "" {
				who = n.people.name(a.Partner)
			}
			text += fmt.Sprintf(" %s by %s", a.Task, who)
		}
		what = append(what, text)
	}
	text := fmt.Sprintf("%s (%s)", strings.Join(what, "; "), v.Cause)
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	if len(v.Actions) == 1 {
		return name(v.Actions[0].Attempt), text
	}
	return "", text
}

func outputs(out map[workflow.DataName]workflow.Value) string {
	var parts []string
	for k, v := range out {
		parts = append(parts, fmt.Sprintf("%s = %v", k, v))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// Diagram draws an instance with the states of its tasks.
func (n *Node) Diagram(ctx context.Context, ref, format string) ([]byte, error) {
	in, err := n.Show(ctx, ref)
	if err != nil {
		return nil, err
	}
	id, err := n.index.resolve(in.ID)
	if err != nil {
		return nil, err
	}
	sum, _ := n.index.get(id)
	return n.draw(n.definitions.get(sum.Definition).def, in, format)
}
