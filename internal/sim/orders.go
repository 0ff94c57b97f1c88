package sim

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is what users decide about instances, whether or not they may: what becomes of a failure, that
// a task stops or an instance ends, that a result counts which is kept, and to whom an item passes. And it
// checks what they are told of that.

// decide has a user order something about an instance, now and then, from any node where the user is. What is
// ordered when all is healed would keep the run from its end.
func (w *world) decide(u *user, m *machine, n api.Service) {
	if w.now >= w.plan.Length || len(w.started) == 0 || w.people.IntN(2) == 0 {
		return
	}
	id := w.started[w.people.IntN(len(w.started))]
	in, err := n.Show(context.Background(), id)
	if err != nil {
		in = &api.Instance{} // it takes no part: what was heard of it elsewhere
	}
	for _, x := range in.Incidents {
		if x.Result != "" && !slices.Contains(w.results[id], x.Result) {
			w.results[id] = append(w.results[id], x.Result)
		}
	}
	if w.plan.drives() {
		w.checks.looked(m, n, in)
	}
	if w.plan.drives() && in.State == workflow.InstanceInterrupted && w.people.IntN(3) > 0 {
		w.repair(u, m, n, id, in)
		return
	}
	task := w.def.Tasks[w.people.IntN(len(w.def.Tasks))].Name
	if w.plan.standsIn() && w.people.IntN(3) == 0 || w.plan.amends() && w.people.IntN(5) == 0 {
		w.amend(u, n, m, id, task)
		return
	}
	switch k := w.people.IntN(40); {
	case k < 16 && len(in.Asks) > 0:
		ask := in.Asks[w.people.IntN(len(in.Asks))]
		what := []string{api.TaskAgain, api.TaskAgain, api.TaskContinue}[w.people.IntN(3)]
		if what == api.TaskAgain && w.out.Ordered%3 == 2 {
			what = api.TaskSkip
		}
		w.order(u, m, n, id, ask.Task, what)
	case k < 26 && len(w.results[id]) > 0:
		w.adopt(u, m, n, id, w.results[id][w.people.IntN(len(w.results[id]))])
	case k < 30 && len(in.Undoable) > 0:
		w.order(u, m, n, id, in.Undoable[0], api.TaskUndo)
	case k < 30:
		w.order(u, m, n, id, task, api.TaskAgain)
	case k < 33:
		w.order(u, m, n, id, task, api.TaskStop)
	case k == 33:
		w.order(u, m, n, id, task, api.TaskContinue)
	case k == 34 && w.people.IntN(3) == 0:
		w.order(u, m, n, id, "", api.TaskCancel)
	case k == 34 && w.out.Ordered%2 == 1:
		w.amend(u, n, m, id, task)
	case k == 34:
		w.notify(u, m, n, id)
	case k > 37:
		w.amend(u, n, m, id, task)
	case k > 34:
		w.assign(u, m, n, id, task)
	}
}

// order has a user order something, now and then twice.
func (w *world) order(u *user, m *machine, n api.Service, id string, t workflow.TaskName, what string) {
	w.checks.peoples.intents[intent{u.id, id, ordering(what, t)}] = true
	for range 1 + w.people.IntN(6)/5 {
		r := api.TaskOrder{User: u.name, ID: id, Task: t, Order: what, Reason: "simulated"}
		if k := w.out.Ordered; what == api.TaskAgain && k%4 == 1 {
			r.To = w.name(w.nodes[k%len(w.nodes)])
		}
		out, err := n.OrderTask(context.Background(), r)
		if err != nil {
			w.checks.toldNot(u, m, id, err)
			return
		}
		w.out.Ordered++
		w.checks.toldOrdered(u, m, out)
	}
}

// ordering is what somebody orders of a task, in short.
func ordering(what string, t workflow.TaskName) string { return "order " + what + " " + string(t) }

// policies are whom items may be offered to.
var policies = []string{"all", "fewest-assigned 1", "fewest-selected 2", "latest-connected 1"}

// notify has a user change whom the items of an instance are offered to.
func (w *world) notify(u *user, m *machine, n api.Service, id string) {
	policy := policies[w.people.IntN(len(policies))]
	w.checks.peoples.intents[intent{u.id, id, "notify " + policy}] = true
	out, err := n.ChangeNotify(context.Background(), api.NotifyRequest{User: u.name, ID: id, Policy: policy})
	if err != nil {
		w.checks.toldNot(u, m, id, err)
		return
	}
	if out.Already {
		return
	}
	w.out.Ordered++
	w.checks.toldSaid(u, m, out.ID, out.Partner, "notify "+policy, func(b worklist.Body, _ *workflow.Task) bool {
		x, is := b.(worklist.Notify)
		return is && x.Policy.String() == policy
	})
}

// amend has a user change an instance, whether or not the user may: what a task of it weighs, what becomes of one, or
// which there are.
func (w *world) amend(u *user, n api.Service, m *machine, id string, t workflow.TaskName) {
	var def map[string]any
	err := json.Unmarshal(w.def.Canonical(), &def)
	tasks, _ := def["tasks"].(map[string]any)
	resteers := false
	if _, written := tasks[string(t)].(map[string]any); written && w.plan.standsIn() && w.people.IntN(3) > 0 {
		w.standIn(def, tasks, w.def.Task(t))
	} else if w.def.Flow() == nil && w.people.IntN(2) == 0 && (!w.plan.amends() || w.people.IntN(2) == 0) {
		w.addTask(def, tasks, t)
	} else if body, written := tasks[string(t)].(map[string]any); written && w.plan.amends() && w.people.IntN(8) > 0 {
		w.resteer(body, w.def.Task(t))
		resteers = true
	} else if body, written := tasks[string(t)].(map[string]any); written { // else it stands for the flow
		body["priority"] = 1 + w.people.IntN(len(policies))
	}
	source, no := json.Marshal(def)
	if err := errors.Join(err, no); err != nil { // it is JSON of ours
		w.violate("the canonical form cannot be read, or written: %v", err)
		return
	}
	w.checks.peoples.intents[intent{u.id, id, "amend"}] = true
	out, err := n.AmendInstance(context.Background(), api.AmendRequest{
		User: u.name, ID: id, File: "amended.json", Source: string(source),
	})
	if err != nil || out.Already {
		return
	}
	w.out.Ordered++
	if resteers {
		w.out.Resteered++
	}
	if slices.ContainsFunc(out.Lines, func(l string) bool { return strings.Contains(l, " is new, in partition ") }) {
		w.out.Added++
	}
	if slices.ContainsFunc(out.Lines, func(l string) bool { return strings.HasPrefix(l, "partition place") }) {
		w.out.Placed++
	}
	if slices.ContainsFunc(out.Lines, func(l string) bool { return strings.Contains(l, ", contingency: ") }) {
		w.out.StandIns++
	}
	if slices.ContainsFunc(out.Lines, func(l string) bool { return strings.HasPrefix(l, "data ") }) {
		w.out.AddedData++
	}
	w.checks.toldSaid(u, m, out.ID, out.Partner, "amend", func(b worklist.Body, _ *workflow.Task) bool {
		_, is := b.(worklist.Amend)
		return is
	})
}

// resteer changes what becomes of a task's failures, what undoes it, or how long it may take: these are longer than they
// were, so that nothing is judged earlier than it was without that.
func (w *world) resteer(body map[string]any, t *workflow.Task) {
	other := func(was time.Duration) string {
		more := time.Duration(1+w.people.IntN(5)) * time.Minute
		w.longer += more
		return workflow.FormatDuration(was + more)
	}
	switch k := w.people.IntN(6); {
	case k == 0 && t.Type == workflow.Automatic:
		if w.retried == nil {
			w.retried = map[workflow.TaskName]bool{}
		}
		w.retried[t.Name] = true
		body["retries"] = map[string]any{"times": w.people.IntN(3), "backoff": "10s"}
	case k <= 1 && t.Contingency == "":
		body["on-failure"] = []string{"block", "release"}[w.people.IntN(2)]
	case k <= 2:
		body["compensate"] = map[string]any{"application": "noop"}
	case k == 3:
		delete(body, "compensate")
	case k == 4 && t.TimeToWait > 0:
		body["time-to-wait"] = other(t.TimeToWait)
	case k >= 4 && t.Timeout > 0:
		body["timeout"] = other(t.Timeout)
	}
}

// addTask adds a task of a name that no other has to a definition, which waits for another task.
func (w *world) addTask(def, tasks map[string]any, after workflow.TaskName) {
	parts, _ := def["partitions"].(map[string]any)
	home := w.def.Partitions[w.people.IntN(len(w.def.Partitions))].Name
	part, there := parts[string(home)].(map[string]any)
	if _, looped := w.def.Round(after); !there || looped || w.def.Task(after).ContingencyOnly {
		return // a rule names no round, and to wait for the end of a loop may add that
	}
	name := "added" + strconv.Itoa(len(w.added))
	if w.people.IntN(3) == 0 { // in a partition of its own
		parts["place"+strconv.Itoa(len(w.added))] = map[string]any{"tasks": []string{name}}
	} else {
		list, _ := part["tasks"].([]any)
		part["tasks"] = append(list, name)
	}
	body := map[string]any{"after": []string{string(after)}, "timeout": "9m", "on-failure": "release"}
	tasks[name] = body
	if list := w.def.Resources; len(list) > 0 && len(w.added)%3 == 1 {
		body["holds"] = []string{string(list[len(w.added)%len(list)].Name)}
	}
	if len(w.added)%2 == 1 {
		w.addData(def, body, "datum"+strconv.Itoa(len(w.added)))
	}
	source, err := json.Marshal(def)
	if err != nil {
		return // it is JSON of ours
	}
	made, err := workflow.Parse("amended", source)
	if err != nil {
		w.violate("a task cannot be added to the definition: %v", err)
		return
	}
	if w.added == nil {
		w.added = map[workflow.TaskName]*workflow.Task{}
	}
	w.added[workflow.TaskName(name)] = made.Task(workflow.TaskName(name))
}

// addData adds data to a definition, which a task sets, and a condition and a constraint that ask for them. The
// constraint is not strict: whether a result may break it would depend on who had heard of it.
func (w *world) addData(def, task map[string]any, name string) {
	put := func(group string) map[string]any {
		if def[group] == nil {
			def[group] = map[string]any{}
		}
		all, _ := def[group].(map[string]any)
		return all
	}
	put("data")[name] = map[string]any{"type": "integer", "default": 1 + w.people.IntN(3)}
	put("conditions")[name+"_high"] = name + " > 3"
	rules, _ := def["constraints"].([]any)
	def["constraints"] = append(rules, map[string]any{"name": name, "when": name + " < 4"})
	task["application"], task["with"] = "set", map[string]any{name: name + " + 1"}
	task["out"] = []string{name}
}

// amended is the definition with patches.
func (w *world) amended(texts []string) *workflow.Definition {
	key := strings.Join(texts, "\x00")
	if def, known := w.editions[key]; known {
		return def
	}
	var patches []amendments.Meant
	var rounds []meaning.Round
	def, anyOne := w.def, func(*workflow.Definition) error { return nil }
	for _, x := range texts {
		p, err := amendments.DecodePatch(x)
		if err != nil {
			w.violate("an amendment counts that cannot be read: %v", err)
			return w.def
		}
		m, err := amendments.Fits(w.def, def, p, anyOne)
		if err != nil { // its author did not know of all others
			m.Patch = p
		}
		rounds = nil
		for _, t := range m.Adds() {
			if what, home := m.Said(t); !slices.Contains(p.Adds(), t) {
				rounds = append(rounds, meaning.Round{Task: t, What: what, Home: home})
			}
		}
		patches = append(patches, m)
		def, _ = amendments.Effective(w.def, patches, nil, anyOne)
	}
	if w.editions == nil {
		w.editions, w.comeBy = map[string]*workflow.Definition{}, map[string][]meaning.Round{}
	}
	w.editions[key], w.comeBy[key] = def, rounds
	return def
}

// boundsOf are the bounds of the workflow, or of it as amended.
func (w *world) boundsOf(def *workflow.Definition) *partition.Plan {
	if def == w.def {
		return w.bounds
	}
	return partition.New(def)
}

// roundsBy are the rounds of loops that the last of some patches brings.
func (w *world) roundsBy(texts []string) []meaning.Round {
	w.amended(texts)
	return w.comeBy[strings.Join(texts, "\x00")]
}

// task is a task of the workflow, or one that was added to an instance.
func (w *world) task(t workflow.TaskName) *workflow.Task {
	if x := w.def.Task(t); x != nil {
		return x
	}
	if i := slices.IndexFunc(w.spares, func(x *workflow.Task) bool { return x.Name == t }); i >= 0 {
		return w.spares[i]
	}
	return w.added[t]
}

// adopt has a user adopt a result.
func (w *world) adopt(u *user, m *machine, n api.Service, id, result string) {
	w.checks.peoples.intents[intent{u.id, id, "adopt " + result}] = true
	for range 1 + w.people.IntN(6)/5 {
		out, err := n.AdoptResult(context.Background(), api.AdoptRequest{User: u.name, ID: id, Result: result})
		if err != nil {
			return
		}
		w.out.Adopted++
		w.checks.toldSaid(u, m, out.ID, out.At, "adopted "+result[:8], func(b worklist.Body, _ *workflow.Task) bool {
			x, is := b.(worklist.Adopt)
			return is && hex.EncodeToString(x.Result[:]) == result
		})
	}
}

// assign has a user pass on the item of a task, as those may who decide about the instance.
func (w *world) assign(u *user, m *machine, n api.Service, id string, t workflow.TaskName) {
	r := api.TransferRequest{User: u.name, ID: id, Task: t}
	var to worklist.User
	switch k := w.people.IntN(5); {
	case k < 3:
		o := w.users[w.people.IntN(len(w.users))]
		r.To, to = o.name, o.id
	case k == 3:
		r.Role = string(Roles[w.people.IntN(len(Roles))])
	default:
		r.Back = true
	}
	what := passingOf(to, workflow.RoleName(r.Role))
	w.checks.peoples.intents[intent{u.id, id, what + " " + string(t)}] = true
	done, err := n.TransferItem(context.Background(), r)
	if err != nil || done.Already {
		return
	}
	w.out.PassedOn++
	w.checks.toldSaid(u, m, id, done.Partner, what, func(b worklist.Body, of *workflow.Task) bool {
		x, is := b.(worklist.Transfer)
		return is && passingOf(x.To, x.Role) == what && (of.Name == t || x.Item.Slot == t)
	})
}

// toldOrdered checks an order of which its user was told that it is written down.
func (c *checks) toldOrdered(u *user, m *machine, out *api.TaskOrdered) {
	if out.Order == api.TaskCancel && out.At == c.w.name(m) && u.id == worklist.User(m.id) {
		return // a partner's own fact says so
	}
	c.toldSaid(u, m, out.ID, out.At, out.Order+" "+string(out.Task), func(b worklist.Body, t *workflow.Task) bool {
		x, is := b.(worklist.Order)
		yes := is && x.What == out.Order &&
			(out.Order == api.TaskCancel || out.Order == api.TaskRecover || t.Name == out.Task || x.Item.Slot == out.Task)
		if yes && out.Order == api.TaskStop {
			c.stops(out, x)
		}
		return yes
	})
}

// toldNot checks that nobody is told not to decide about an instance who does, while nothing is wrong, no clock is,
// and nothing changed lately of the users.
func (c *checks) toldNot(u *user, m *machine, id string, err error) {
	w := c.w
	wrong := w.wrong > 0 || u.unsure || u.dismissed || w.now-max(w.disturbed, w.newestUser()) < 10*time.Minute
	var e *api.Error
	if wrong || !errors.As(err, &e) || e.Code != api.NotAllowed ||
		slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.skew != 0 || m.lied || m.forgot }) {
		return
	}
	instance, bad := workflow.ParseInstanceID(id)
	all := c.onDiskOf(m, instance)
	if bad == nil && all != nil && all.Decides(u.id, u.now) && !c.unheard(u, m) {
		w.violate("claims: %s at n%d decides about %s, and was told: %v", u.name, m.i, id[:8], err)
	}
}

// unheard reports whether a machine does not know which roles a user has, and who knew it may be gone for good.
func (c *checks) unheard(u *user, m *machine) bool {
	if !slices.ContainsFunc(c.w.nodes, func(m *machine) bool { return m.gone }) || m.node == nil {
		return false
	}
	all, err := m.node.Service().Users(context.Background())
	return err == nil && !slices.ContainsFunc(all, func(x api.User) bool {
		return x.ID == string(u.id) && !slices.ContainsFunc(u.now, func(r workflow.RoleName) bool {
			return !slices.Contains(x.Roles, string(r))
		})
	})
}

// stops checks that what was ordered to stop has stopped soon, at its holder.
func (c *checks) stops(out *api.TaskOrdered, x worklist.Order) {
	h := c.holderOf(api.Item{Partner: out.At})
	id, err := workflow.ParseInstanceID(out.ID)
	n := h.node
	if err != nil || h.lied || h.forgot {
		return
	}
	c.w.at(c.w.now+time.Minute, func() {
		if h.node != n || n == nil || h.paused > 0 || h.disk.full || h.lied || h.forgot ||
			c.w.now-h.well < time.Minute {
			return
		}
		a := fact.AttemptID{Fact: fact.ID(x.Item.Assigned), Slot: x.Item.Slot}
		if all := c.onDiskOf(h, id); all != nil && all.Clocked(a) {
			c.w.violate("claims: %s of %s was stopped by order, and goes on at n%d", a, out.ID[:8], h.i)
		}
	})
}

// toldSaid checks that the word of somebody who decides is durable at whoever wrote it down when the user is told
// so, and that this user may decide.
func (c *checks) toldSaid(u *user, m *machine, id, at, what string, is func(worklist.Body, *workflow.Task) bool) {
	h := c.holderOf(api.Item{Partner: at})
	instance, err := workflow.ParseInstanceID(id)
	if h == nil || h.lied || h.forgot || err != nil {
		return
	}
	all := c.onDiskOf(h, instance)
	if all == nil {
		return // it is said elsewhere
	}
	if !all.Decides(u.id, u.roles) {
		c.w.violate("authorised: %s at n%d, who does not decide about %s, was told that %q is written down", u.name,
			m.i, id[:8], what)
	}
	found := false
	all.Words(func(_ fact.ID, who meaning.Voice, b worklist.Body) {
		found = found || who.User == u.id && is(b, all.TaskOf(b))
	})
	if !found {
		c.w.violate("claims: %s at n%d was told that %q about %s is written down, and n%d's disk does not have that",
			u.name, m.i, what, id[:8], h.i)
	}
}

// onDiskOf is what a machine's disk says of an instance; nil: nothing.
func (c *checks) onDiskOf(m *machine, id workflow.InstanceID) *meaning.Meaning {
	if h := c.historyOn(m, id); h != nil {
		return h.Of(h.All())
	}
	return nil
}

// historyOn are the facts of an instance on a machine's disk; nil: there are none.
func (c *checks) historyOn(m *machine, id workflow.InstanceID) *meaning.History {
	facts := m.disk.factsOf(id)
	h, err := meaning.New(c.w.def, facts)
	if err != nil || len(facts) == 0 {
		return nil
	}
	h.Hear(c.voices(id))
	h.Amend(c.w.amended, c.w.roundsBy)
	if slices.ContainsFunc(c.w.nodes, func(m *machine) bool { return m.lied }) && m.node != nil {
		if print, err := m.node.Fingerprint(context.Background(), id.String()); err == nil {
			c.refuseAs(h, facts, print)
		}
	}
	return h
}

// decisionMeant reports whether a user meant to decide something, or did not decide that.
func (c *checks) decisionMeant(id workflow.InstanceID, u worklist.User, b worklist.Body, t *workflow.Task) bool {
	meant := func(what ...string) bool {
		return slices.ContainsFunc(what, func(s string) bool { return c.peoples.intents[intent{u, id.String(), s}] })
	}
	switch x := b.(type) {
	case worklist.Order:
		return meant(ordering(x.What, x.Item.Slot), ordering(x.What, t.Name)) ||
			x.What == api.TaskCancel && c.cancelMeant(id, u)
	case worklist.Amend:
		return meant("amend")
	case worklist.Notify:
		return meant("notify " + x.Policy.String())
	case worklist.Adopt:
		return meant("adopt " + hex.EncodeToString(x.Result[:]))
	case worklist.Transfer:
		what := passingOf(x.To, x.Role)
		return meant(what+" "+string(x.Item.Slot), what+" "+string(t.Name))
	}
	return false
}

// cancelMeant reports whether a user meant to cancel an instance, of whatever task that was said.
func (c *checks) cancelMeant(id workflow.InstanceID, u worklist.User) bool {
	for in := range c.peoples.intents {
		if in.user == u && in.item == id.String() && strings.HasPrefix(in.what, ordering(api.TaskCancel, "")) {
			return true
		}
	}
	return false
}
