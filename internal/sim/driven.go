package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about instances that are driven by their data: random definitions whose tasks repeat, people who
// recover what is interrupted, also while the mesh is cut, and what must hold of every history.

// Driven is the first seed whose instances are driven by their data. They are claimed ones otherwise (Claimed).
const Driven = 50_000_000

// drives reports whether a plan has such instances.
func (p *Plan) drives() bool { return p.Seed >= Driven }

// flowAuthor writes a random definition whose tasks repeat. It counts rounds: in each of them every lane sets its datum
// to the number of the round, in any order, then a step begins the next round.
type flowAuthor struct {
	r      *rand.Rand
	pace   Pace
	rounds int
	data   []string
	tasks  []string
}

// randomFlow makes a definition with one partition, and says at which node that is.
func randomFlow(r *rand.Rand, nodes int, pace Pace) (string, map[string]int) {
	a := &flowAuthor{r: r, pace: pace, rounds: 1 + r.IntN(4), data: []string{"n: {type: integer, default: 0}"}}
	var all []string
	for i := range 1 + r.IntN(3) {
		all = append(all, a.lane(i))
	}
	a.step(strings.Join(all, " and "))
	if r.IntN(3) == 0 {
		a.late()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "workflow: random\ndata: {%s}\n", strings.Join(a.data, ", "))
	b.WriteString("tasks:\n" + strings.Join(a.tasks, "\n") + "\n")
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "constraints: [{name: bound, when: n <= %d, strict: %t}]\n", a.rounds, r.IntN(2) == 0)
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "conditions: {half: n > %d}\n", a.rounds/2)
	}
	fmt.Fprintf(&b, "final: n == %d\npartitions: {main: [%s]}\n", a.rounds, strings.Join(a.names(), ", "))
	return b.String(), map[string]int{"main": r.IntN(nodes)}
}

// names are those of the tasks that it wrote, without compensations.
func (a *flowAuthor) names() (out []string) {
	for _, t := range a.tasks {
		if name, _, _ := strings.Cut(strings.TrimSpace(t), ":"); !strings.HasPrefix(name, "u") {
			out = append(out, name)
		}
	}
	return out
}

// lane writes a trigger that sets a datum of its own once in a round, and gives the condition that it has.
func (a *flowAuthor) lane(i int) (done string) {
	d := fmt.Sprintf("a%d", i)
	a.data = append(a.data, d+": {type: integer}")
	when := fmt.Sprintf("n < %d and (%s == null or %s < n)", a.rounds, d, d)
	a.task(fmt.Sprintf("t%d", i), when, d, "n")
	return d + " >= n"
}

// step writes the trigger that begins the next round.
func (a *flowAuthor) step(ready string) {
	a.task("t9", fmt.Sprintf("n < %d and %s", a.rounds, ready), "n", "n + 1")
}

// late writes a trigger that fires at an age of the instance.
func (a *flowAuthor) late() {
	a.data = append(a.data, "old: {type: integer}")
	a.task("t8", fmt.Sprintf("old == null and instance.age > duration(\"%dm\") and n < %d",
		time.Duration(1+a.r.IntN(20))*a.pace.Minute/time.Minute, a.rounds), "old", "n")
}

// task writes a trigger that sets a datum: by an expression or, some of them, as a person says.
func (a *flowAuthor) task(name, when, sets, to string) {
	r := a.r
	keys := []string{"when: '" + when + "'", "repeat: true", "out: [" + sets + "]"}
	if r.IntN(6) == 0 {
		keys[1] = fmt.Sprintf("repeat: {times: %d}", 1+r.IntN(2*a.rounds))
	}
	if r.IntN(4) == 0 {
		keys = append(keys, "type: manual", "timeout: "+a.minutes(20, 90))
		if i := r.IntN(3); i < len(Roles) {
			keys = append(keys, "role: "+string(Roles[i]))
		}
		if r.IntN(2) == 0 {
			keys = append(keys, "offline: true")
		}
	} else {
		keys = append(keys, "application: set", fmt.Sprintf("with: {%s: '%s'}", sets, to), "timeout: "+a.minutes(5, 60))
		if r.IntN(2) == 0 {
			keys = append(keys, fmt.Sprintf("retries: {times: %d, backoff: 10s, jitter: 0.2}", 1+r.IntN(3)))
		}
	}
	if r.IntN(4) == 0 {
		keys = append(keys, "on-conflict: fail")
	}
	switch r.IntN(4) {
	case 0, 1:
		keys = append(keys, "compensate: {application: set, with: {"+sets+": 'null'}}")
	case 2:
		keys = append(keys, "compensate: u"+name)
		a.tasks = append(a.tasks, fmt.Sprintf("  u%s: {application: set, with: {%s: 'null'}, out: [%s], timeout: %s}", name,
			sets, sets, workflow.FormatDuration(5*a.pace.Minute)))
	}
	a.tasks = append(a.tasks, "  "+name+": {"+strings.Join(keys, ", ")+"}")
}

func (a *flowAuthor) minutes(lo, hi int) string {
	return workflow.FormatDuration(time.Duration(lo+a.r.IntN(hi-lo)) * a.pace.Minute)
}

// part has whoever keeps the states be out of reach of all others, in two thirds of the plans, for so long that another
// takes over while the first goes on: then there are two histories, of which one counts. In a quarter somebody says of
// the flow what only who holds it may.
func (p *Plan) part(r *rand.Rand) {
	for range r.IntN(3) {
		at := p.Starts[r.IntN(len(p.Starts))].At + between(r, 10*time.Second, 10*time.Minute*p.Scale)
		p.Faults = append(p.Faults, p.cutOff(p.Pins["main"], min(at, p.Length-time.Minute),
			between(r, p.ConnectionTime, 3*p.ConnectionTime))...)
	}
	if r.IntN(4) == 0 {
		at := p.Starts[r.IntN(len(p.Starts))].At + between(r, 10*time.Second, 10*time.Minute*p.Scale)
		p.Faults = append(p.Faults, Fault{
			At: min(at, p.Length-time.Minute), Kind: Usurp, Node: r.IntN(p.Nodes), For: between(r, time.Minute, 20*time.Minute),
		})
	}
}

// usurpsFlow is something about the data states of an instance that a machine may not say, as it was not given the flow at
// the start: that it fires a trigger, that it goes by an age, or what somebody else's transition brought.
func (w *world) usurpsFlow(m *machine, id workflow.InstanceID) (b fact.Body, ok bool) {
	if w.home[workflow.FlowTask] == m.i {
		return b, false
	}
	var begun, fired factID
	for x, f := range w.checks.all {
		switch {
		case f.Body.Genesis != nil && fact.InstanceOf(x) == id:
			begun = x
		case f.Body.Fire != nil && f.Instance == id && f.Chain.Author != m.id && x.Compare(fired) > 0: // the same each run
			fired = x
		}
	}
	a := fact.AttemptID{Slot: workflow.FlowTask}
	t := w.def.Flow().Triggers[w.r.IntN(len(w.def.Flow().Triggers))]
	switch k := w.r.IntN(3); {
	case begun.IsZero():
		return b, false
	case k == 0:
		return fact.Body{Fire: &fact.Fire{Attempt: a, State: begun, Tasks: []workflow.TaskName{t.Name}}}, true
	case k == 1:
		return fact.Body{Aged: &fact.Aged{Attempt: a, Age: 1000 * time.Hour}}, true
	case fired.IsZero():
		return b, false
	}
	of := w.checks.all[fired].Body.Fire.Tasks[0]
	outputs := map[workflow.DataName]workflow.Value{}
	for _, d := range w.def.Task(of).Out {
		outputs[d] = int64(1)
	}
	return fact.Body{Success: &fact.Success{Attempt: fact.AttemptID{Fact: fired, Slot: of}, Try: 1, Outputs: outputs}}, true
}

// repair has a user order a step of recovery, whether or not the rules allow it or the user may.
func (w *world) repair(u *user, m *machine, n api.Service, id string, in *api.Instance) {
	methods := []string{"compensate", "offer", "restart", "jump-back", "jump-forward"}
	if in.Recovery != nil && len(in.Recovery.Methods) > 0 && w.people.IntN(5) > 0 {
		methods = in.Recovery.Methods
	}
	step := api.RecoveryStep{Method: methods[w.people.IntN(len(methods))]}
	switch step.Method {
	case "compensate":
		step.Steps = w.people.IntN(3)
	case "jump-back", "jump-forward":
		step.Set = w.jumpsTo(n, id)
	}
	w.recover(u, m, n, id, step)
}

// jumpsTo are data for a jump: those of a state of the history, or any.
func (w *world) jumpsTo(n api.Service, id string) map[workflow.DataName]*string {
	out := map[workflow.DataName]*string{}
	history, err := n.History(context.Background(), id)
	history = slices.DeleteFunc(history, func(s api.DataState) bool { return s.Kind == "offer" || s.Kind == "restart" })
	if err == nil && len(history) > 0 && w.people.IntN(2) == 0 {
		then := history[w.people.IntN(len(history))].Attributes
		for _, d := range w.def.Data {
			out[d.Name] = textOf(then[string(d.Name)])
		}
		return out
	}
	for _, d := range w.def.Data {
		if w.people.IntN(2) == 0 {
			out[d.Name] = textOf(w.people.IntN(5))
		}
	}
	return out
}

// textOf is a value as people write it; nil: null.
func textOf(v any) *string {
	if v == nil {
		return nil
	}
	s := fmt.Sprint(v)
	return &s
}

// recover has a user order a step.
func (w *world) recover(u *user, m *machine, n api.Service, id string, step api.RecoveryStep) {
	if w.people.IntN(2) == 0 { // as commands and the page do
		if out, err := n.ForeseeRecovery(context.Background(), u.name, id, step); err == nil {
			step.From, step.Interruption = &out.From, out.Interruption
		}
	}
	w.checks.peoples.intents[intent{u.id, id, ordering(api.TaskRecover, workflow.FlowTask)}] = true
	r := api.TaskOrder{User: u.name, ID: id, Order: api.TaskRecover, Recover: &step}
	out, err := n.OrderTask(context.Background(), r)
	if err != nil {
		if w.now > w.plan.Length {
			w.note("%s at n%d does not recover %s by %s: %v", u.name, m.i, id[:8], step.Method, err)
		}
		w.checks.toldNot(u, m, id, err)
		return
	}
	w.out.Ordered++
	w.out.Recovered++
	w.checks.toldOrdered(u, m, out)
}

// mend has whoever answers for what is interrupted bring it to an end, once everything has healed: by a jump to a final
// state, which the rules allow unless the history has one that is equivalent, or else by what they do allow.
func (w *world) mend() {
	if !w.plan.drives() || w.hushed {
		return
	}
	for _, id := range w.started {
		in := w.interrupted(id)
		if in == nil || in.Recovery.UnderWay && w.people.IntN(8) > 0 { // compensations may take their time
			continue
		}
		if m := w.mender(in); m != nil {
			w.serve(m, func(n api.Service) { w.mendOne(w.responsible(in), m, n, id, in) })
		}
	}
	w.at(w.now+3*time.Minute, w.mend)
}

// interrupted is how an instance is shown that is interrupted, to whoever may see what can be done about it; nil: it is
// not.
func (w *world) interrupted(id string) *api.Instance {
	for _, m := range w.honest() {
		in, err := m.node.Service().Show(context.Background(), id)
		if err == nil && in.State == workflow.InstanceInterrupted && in.Recovery != nil {
			return in
		}
	}
	return nil
}

// responsible is the user who answers for an instance.
func (w *world) responsible(in *api.Instance) *user {
	i := slices.IndexFunc(w.users, func(u *user) bool { return u.name == string(in.Responsible) })
	if i < 0 {
		return nil
	}
	return w.users[i]
}

func (w *world) mendOne(u *user, m *machine, n api.Service, id string, in *api.Instance) {
	step := api.RecoveryStep{Method: "jump-forward", Set: map[workflow.DataName]*string{}}
	end := w.lastRound()
	step.Set["n"] = &end
	if allowed := in.Recovery.Methods; w.people.IntN(3) == 0 && len(allowed) > 0 {
		step = api.RecoveryStep{Method: allowed[w.people.IntN(len(allowed))]}
		if strings.HasPrefix(step.Method, "jump") {
			step.Set = w.jumpsTo(n, id)
		}
	}
	w.recover(u, m, n, id, step)
}

// history checks what a machine shows of the states of an instance: each was made from the one before, by what that or
// an earlier one fired; nothing fires more often than its bound; of a trigger one transition is pending at most; the
// data are those of the last state; what is superseded is in it; and no instance runs in a state that is inconsistent.
func (c *checks) history(m *machine, id string, in *api.Instance) {
	states, err := m.node.Service().History(context.Background(), id)
	if err != nil {
		c.w.violate("history: n%d has none of %s: %v", m.i, id[:8], err)
		return
	}
	number, fired, last := 0, map[workflow.TaskName]int{}, map[string]any(nil)
	aside := map[workflow.TaskName]int{}
	for _, s := range states {
		if s.Mark == api.MarkSuperseded && s.Kind == "transition" {
			aside[*s.Transition]++
		}
		if s.State == nil || s.Mark == "aborted" {
			continue
		}
		if *s.State != number || s.Input != nil && *s.Input != number-1 || s.FiredBy != nil && *s.FiredBy >= number {
			c.w.violate("history: at n%d state %d of %s is number %d, or was made from another than the one before", m.i,
				number, id[:8], *s.State)
		}
		if s.Kind == "transition" && s.Transition != nil && s.Mark == "" {
			fired[*s.Transition]++
		}
		if len(slices.Compact(slices.Sorted(slices.Values(s.Pending)))) < len(s.Pending) {
			c.w.violate("history: at n%d two transitions of one trigger of %s are pending in state %d", m.i, id[:8], number)
		}
		number, last = number+1, s.Attributes
	}
	for _, t := range in.Tasks {
		if n := len(t.Superseded); n != aside[t.Name] {
			c.w.violate("history: at n%d %d of %s of %s are superseded, and the history has %d", m.i, n, t.Name, id[:8],
				aside[t.Name])
		}
		c.w.out.Aside += aside[t.Name]
	}
	for t, n := range fired {
		if most := c.w.def.Task(t).RepeatTimes; most > 0 && n > most {
			c.w.violate("history: at n%d %s of %s was done %d times, and may be %d times", m.i, t, id[:8], n, most)
		}
	}
	for n, v := range in.Data {
		if fmt.Sprint(last[n]) != fmt.Sprint(v) {
			c.w.violate("history: at n%d %s of %s is %v, and %v in the last state", m.i, n, id[:8], v, last[n])
		}
	}
	c.consistent(m, id, in.State, states)
	c.w.out.States += number
}

// looked checks what a user sees of an instance on the way: what runs is never inconsistent, also while the mesh is cut.
func (c *checks) looked(m *machine, n api.Service, in *api.Instance) {
	if m.lied || in.State != workflow.InstanceRunning {
		return
	}
	states, err := n.History(context.Background(), in.ID)
	var no *api.Error
	switch {
	case errors.As(err, &no) && no.Code == api.NotAllowed: // it is shown to somebody who only has an item of it
		return
	case err != nil && in.Told != nil: // it is elsewhere, where nobody answers now
		return
	case err != nil:
		c.w.violate("history: n%d has none of %s: %v", m.i, in.ID[:8], err)
		return
	}
	c.consistent(m, in.ID, in.State, states)
}

// consistent checks that each state which was none of an exception keeps the strict constraints, and that of an instance
// that runs something is pending, or fires at an age that is to come.
func (c *checks) consistent(m *machine, id string, is workflow.InstanceState, states []api.DataState) {
	var last api.DataState
	for _, s := range states {
		if s.State == nil || s.Mark == "aborted" {
			continue
		}
		last = s
		for _, r := range c.w.def.Constraints {
			if r.Strict && s.Status != "exception" && !holds(r.When, c.valuesOf(s), 0) {
				c.w.violate("history: at n%d state %d of %s breaks the constraint %s, and is no exception", m.i, *s.State,
					id[:8], r.Name)
			}
		}
	}
	if is == workflow.InstanceRunning && last.State != nil && (last.Status != "regular" || len(last.Pending) == 0 && !c.firesLater(last)) {
		c.w.violate("history: at n%d %s runs in state %d, which is %s, with %v, and nothing is pending", m.i, id[:8],
			*last.State, last.Status, last.Attributes)
	}
}

// firesLater reports whether a state fires something at some age.
func (c *checks) firesLater(s api.DataState) bool {
	data := c.valuesOf(s)
	return slices.ContainsFunc(c.w.def.Flow().Triggers, func(t *workflow.Task) bool {
		return slices.ContainsFunc(t.Condition.Ages(), func(age time.Duration) bool {
			return holds(t.Condition, data, age)
		})
	})
}

// holds reports whether a condition is true of data at an age.
func holds(e *workflow.Expr, data map[workflow.DataName]workflow.Value, age time.Duration) bool {
	v, err := e.Eval(workflow.Env{Data: data, Age: age})
	yes, is := v.(bool)
	return err == nil && is && yes
}

// valuesOf are the data of a state.
func (c *checks) valuesOf(s api.DataState) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for i := range c.w.def.Data {
		d := &c.w.def.Data[i]
		v, err := workflow.CheckValue(d, s.Attributes[string(d.Name)])
		if err != nil {
			c.w.violate("history: state %d has a wrong %s: %v", *s.State, d.Name, err)
		}
		if v != nil {
			out[d.Name] = v
		}
	}
	return out
}

// brought checks, at the end, that nothing is interrupted for good which somebody could bring to an end.
func (c *checks) brought(in *api.Instance) {
	if in.State == workflow.InstanceInterrupted && c.w.mender(in) != nil {
		c.w.violate("live: %s is interrupted for good, though n%d could be asked: %s", in.ID[:8], c.w.mender(in).i,
			in.Recovery.Cause)
	}
}

// mender is a machine at which whoever answers for an instance can be; nil: there is none.
func (w *world) mender(in *api.Instance) *machine {
	u := w.responsible(in)
	if u == nil || u.dismissed || u.unsure || w.keptByLiar(in) {
		return nil
	}
	for _, m := range w.honest() {
		if _, here := u.keys[m.i]; here && m.paused == 0 && !m.shutOut() {
			return m
		}
	}
	return nil
}

// keptByLiar reports whether somebody keeps the states of an instance who lies: it may never go on, nor be judged, as a
// flow has no time-out.
func (w *world) keptByLiar(in *api.Instance) bool {
	return w.plan.drives() && slices.ContainsFunc(in.Partitions, func(p api.Partition) bool {
		return slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.lied && w.name(m) == p.Partner })
	})
}

// waitsInVain reports whether an instance comes to no end any more: it waits for somebody who is gone or, where its data
// drive it, lies.
func (w *world) waitsInVain(m *machine, id string) bool {
	in, err := m.node.Service().Show(context.Background(), id)
	if err == nil && !w.plan.drives() {
		return w.undoesInVain(m, in)
	}
	return err == nil && (in.State == workflow.InstanceInterrupted && w.mender(in) == nil || w.keptByLiar(in))
}

// rounds is how often a definition's tasks may come one after the other.
func (w *world) rounds() time.Duration {
	if !w.plan.drives() {
		return 1
	}
	n, err := strconv.Atoi(w.lastRound())
	if err != nil {
		w.violate("the last round of the definition is no number: %v", err)
		return 1
	}
	return time.Duration(2 * n)
}

// lastRound is the value of n that ends an instance of a driven plan.
func (w *world) lastRound() string { return strings.TrimPrefix(w.def.Final.String(), "n == ") }
