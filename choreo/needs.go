package choreo

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// NeedKind says why an instance needs a person.
type NeedKind string

// Why it may.
const (
	NeedFailed   NeedKind = "failed"   // tasks failed, and nothing stands in for them or deals with that
	NeedBlocked  NeedKind = "blocked"  // tasks wait for what cannot come
	NeedNobody   NeedKind = "nobody"   // tasks that nobody can perform, or take
	NeedIncident NeedKind = "incident" // something happened that people should look at
	// NeedInterrupted: it is driven by its data, and what happened must be recovered before it goes on.
	NeedInterrupted NeedKind = "interrupted"
	// NeedGoesOn: tasks are ready or run at this node, while others presumed that they failed.
	NeedGoesOn NeedKind = "goes-on"
	// NeedOverdue: the deadline of people's tasks is over, and nobody has done anything about that.
	NeedOverdue NeedKind = "overdue"
)

// Need is why an instance needs a person.
type Need struct {
	Kind   NeedKind
	Number int
	Tasks  []workflow.TaskName // the first of them, in rule order
	// Presumed is how many of those that failed their holders have not given up themselves: while these are
	// there nobody can order anything about them.
	Presumed int
}

// MaxNeedTasks bounds the tasks that a need names.
const MaxNeedTasks = 3

// Needs are why an instance needs a person now. performed reports whether anybody has
// a role, and byUser whether a user has it, who may take the task from a worklist; answered, whether who answers for
// the instance is known, and so can do what has passed to that user. A
// failure that was released, or taken up by a task that has started, needs nobody; nor
// does one that was only presumed, at the node that works on at its task: there is said that it goes on.
func (m *Machine) Needs(performed, byUser func(workflow.RoleName) bool, answered func() bool) []Need {
	var failed, blocked, nobody, incident, interrupted, goesOn Need
	for _, sl := range m.state.Slots() {
		t := sl.Current.Task
		switch {
		case sl.State == workflow.Failed && m.goesOnHere(sl):
			goesOn.add(sl.Task.Name)
		case sl.State == workflow.Failed:
			if !m.state.Handled(sl) && !m.state.Answered(sl) {
				failed.add(sl.Task.Name)
				if !sl.Current.EndedByHolder() {
					failed.Presumed++
				}
			}
		case sl.State == workflow.Blocked:
			blocked.add(sl.Task.Name)
		case sl.Pending != nil && sl.Pick == nil:
			nobody.add(sl.Pending.Action.Task)
		case !sl.State.Done() && (m.nobody[sl.Current.ID] != "" && (m.unseen[sl.Current.ID] != "" || !byUser(t.Role)) ||
			(t.ByRole() && !performed(t.Role))) && !m.WithSomebody(sl.Current.ID, answered):
			nobody.add(t.Name)
		}
	}
	for _, a := range m.state.PeoplesJobs() {
		if a.Task.ByRole() && !performed(a.Task.Role) && !m.WithSomebody(a.ID, answered) {
			nobody.add(a.Task.Name)
		}
	}
	for _, i := range m.state.Incidents() {
		incident.add(i.Task)
	}
	if x := m.Interrupted(); x != nil {
		interrupted.add(x.Task)
	}
	switch m.state.Overall() {
	case workflow.InstanceSucceeded, workflow.InstanceCancelled:
		failed, blocked, nobody = Need{}, Need{}, Need{}
	}
	failed.Kind, blocked.Kind, nobody.Kind, incident.Kind, interrupted.Kind = NeedFailed, NeedBlocked, NeedNobody,
		NeedIncident, NeedInterrupted
	goesOn.Kind = NeedGoesOn
	var out []Need
	for _, n := range [...]*Need{&interrupted, &failed, &blocked, &goesOn, &nobody, &incident} {
		if n.Number > 0 {
			out = append(out, *n)
		}
	}
	return out
}

// RolesAwaited are the roles of which somebody must be there, as tasks wait for them that are not done. whole: nothing else
// is known for which nobody may be there.
func (m *Machine) RolesAwaited() (roles []workflow.RoleName, whole bool) {
	await := func(t *workflow.Task) {
		if t.ByRole() && !slices.Contains(roles, t.Role) {
			roles = append(roles, t.Role)
		}
	}
	for _, sl := range m.state.Slots() {
		if sl.State.Done() {
			continue
		}
		if m.nobody[sl.Current.ID] != "" {
			return nil, false
		}
		await(sl.Current.Task)
	}
	for _, a := range m.state.PeoplesJobs() {
		await(a.Task)
	}
	return roles, true
}

// WithSomebody reports whether somebody can do a person's task whatever its role: who has it, or who answers for the
// instance, if answered says that this user is known, once it has passed to that user.
func (m *Machine) WithSomebody(id fact.AttemptID, answered func() bool) bool {
	a := m.state.Attempts()[id]
	return a != nil && (m.claimed(a) || m.Claims() && len(m.state.People().DueTo[id]) > 0 && answered())
}

func (n *Need) add(t workflow.TaskName) {
	if n.Number++; t != "" && len(n.Tasks) < MaxNeedTasks && !slices.Contains(n.Tasks, t) {
		n.Tasks = append(n.Tasks, t)
	}
}

// Holders are the other partners who hold what is not done, in the order of their
// IDs.
func (m *Machine) Holders() []workflow.PartnerID {
	var out []workflow.PartnerID
	last := workflow.PartnerID("")
	for _, sl := range m.state.Slots() {
		if p := sl.Current.Partner; !sl.State.Done() && p != m.self && p != last {
			out = append(out, p)
			last = p
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// HasAll reports whether all that a partner said it has is here.
func (m *Machine) HasAll(heads []fact.Head) bool {
	return !slices.ContainsFunc(heads, func(h fact.Head) bool { return m.log.ByID()[h.ID] == nil })
}
