package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var _ api.Service = (*Node)(nil)

// Status says which node this is and how it fares.
func (n *Node) Status(context.Context) (*api.Status, error) {
	leaf := n.people.chain().Leaf()
	st := &api.Status{
		Name: leaf.Name, ID: n.member.ID(), Mesh: n.member.Mesh.Name, Version: n.version, Roles: texts(leaf.Roles),
		Since: n.started, Incarnation: n.incarnation().String(), Boot: n.Boot(), Instances: n.index.running(), Counters: map[string]uint64{},
	}
	if n.carrier != nil {
		st.Addresses = n.carrier.Addrs()
	}
	st.Trouble = n.troubles()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(n.trouble)) {
		st.Trouble = append(st.Trouble, n.trouble[k])
	}
	if t := n.definitions.trouble(); t != "" {
		st.Trouble = append(st.Trouble, t)
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.late), compareInstances) {
		st.Trouble = append(st.Trouble, n.late[id])
	}
	for k, c := range n.counters {
		st.Counters[k] = c.Load()
	}
	if c, ok := n.carrier.(Counting); ok {
		for k, v := range c.Refused() {
			st.Counters["mesh.refused."+k] = v
		}
	}
	return st, nil
}

func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, x := range in {
		out[i] = string(x)
	}
	return out
}

// Partners lists the partners that are here.
func (n *Node) Partners(context.Context) ([]api.Partner, error) {
	out := []api.Partner{}
	for _, p := range n.people.all() {
		r := p.Record
		out = append(out, api.Partner{
			Name: r.Name(), ID: r.Partner, Roles: texts(r.Roles()), State: string(p.State), Since: since(p), Reason: string(p.Reason()), Addresses: append([]string{}, r.Addresses...),
			LastValidated: p.Validated.Time(), ConnectionTime: r.ConnectionTime.String(), Load: float64(p.Load) / 1000, Self: r.Partner == n.member.ID(),
			Refused: n.refusals.list(r.Partner),
		})
	}
	slices.SortFunc(out, func(a, b api.Partner) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// since is when a partner came into its state; nil: not known.
func since(p membership.Partner) *time.Time {
	if p.Since == 0 {
		return nil
	}
	t := p.Since.Time()
	return &t
}

// Invite opens an invitation to the mesh.
func (n *Node) Invite(_ context.Context, r api.InviteRequest) (*api.Invitation, error) {
	inv, err := n.people.invite(r, n.inviteAt())
	return inv, n.shown(err)
}

// AddWorkflow checks a definition, lists it and spreads it.
func (n *Node) AddWorkflow(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	def, err := workflow.Parse(file, source)
	if err != nil {
		return nil, api.Errorf(api.Failed, "%v", err)
	}
	l, say, err := n.definitions.add(def, n.clock.Now().Wall)
	if err != nil {
		return nil, n.shown(err)
	}
	n.shareDefinitions(say, "")
	n.events.publish(api.Event{At: n.clock.Now().Wall, Kind: "workflow", Text: string(def.Name) + " added"})
	added, err := n.definitions.whole(l)
	if err != nil {
		return nil, n.shown(err)
	}
	added.Author = n.people.name(n.definitions.author(l))
	if added.Refused, err = n.refusedStart(ctx, l.hash); err != nil {
		return nil, n.shown(err)
	}
	return added, nil
}

// Workflows lists the definitions.
func (n *Node) Workflows(context.Context) ([]api.Workflow, error) {
	out := []api.Workflow{}
	editions := map[workflow.Name][]*listing{}
	list := n.definitions.list()
	for _, l := range list {
		editions[l.about.Name] = append(editions[l.about.Name], l)
	}
	for _, l := range list {
		w := n.about(l)
		all := editions[w.Name]
		w.Current = len(all) == 1 || l == n.definitions.newest(all)
		out = append(out, w)
	}
	return out, nil
}

// Workflow shows one definition.
func (n *Node) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	l, err := n.definitions.find(ref)
	if err != nil {
		return nil, err
	}
	w, err := n.definitions.whole(l)
	if err != nil {
		return nil, n.shown(err)
	}
	w.Author = n.people.name(n.definitions.author(l))
	return w, nil
}

// RemoveWorkflow takes all editions off the list that ref names, here and in the mesh,
// and says which. Instances of them go on.
func (n *Node) RemoveWorkflow(_ context.Context, ref string) ([]api.Workflow, error) {
	editions, err := n.definitions.editions(ref)
	if err != nil {
		return nil, err
	}
	removed := []api.Workflow{}
	for _, l := range editions {
		about := n.about(l)
		say, err := n.definitions.remove(l, n.clock.Now().Wall)
		n.shareDefinitions(say, "")
		if err != nil {
			return removed, n.shown(err)
		}
		removed = append(removed, about)
	}
	return removed, nil
}

// about is a listed definition as it is shown in lists.
func (n *Node) about(l *listing) api.Workflow {
	w := l.about
	w.Author = n.people.name(n.definitions.author(l))
	return w
}

// startWait is how long Start waits for a second participant to hold the
// instance before it says that it is held only here.
const startWait = 3 * time.Second

// Start creates an instance and hands its partitions out.
func (n *Node) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	l, err := n.definitions.find(r.Workflow)
	if err != nil {
		return nil, err
	}
	e, err := n.definitions.get(l.hash)
	if err != nil {
		return nil, n.shown(err)
	}
	input, _ := inputs(e.def, r.Input) // what is wrong with it is said below
	found, missed := n.materialised(ctx, e.def, input)
	m, notes, err := n.prepare(e, r, found)
	if err != nil {
		if why := n.people.standing(); why != nil { // that is what kept partners from taking it
			err = api.Errorf(api.NotAllowed, "this node is no member any more: %s", n.people.say(why)).WithHint("mutirao doctor says how to mend it")
		}
		return nil, andMissed(err, missed)
	}
	notes = append(notes, missed...)
	id := m.Instance()
	err = n.do(ctx, id, func(s *shard) error {
		if err := n.index.begin(id, n.config.Limits, n.member.ID(), n.member.ID(), e.hash); err != nil {
			return api.Errorf(api.Refused, "%v", err)
		}
		if err := n.definitions.keep(e); err != nil { // it may have been taken off the list meanwhile
			n.index.forget(id)
			return err
		}
		s.touch(s.create(m, e))
		return nil
	})
	if err != nil {
		n.ledger.drop(id)
		return nil, n.shown(err)
	}
	only, err := n.heldOnlyHere(ctx, id)
	return &api.Started{ID: id.String(), HeldOnlyHere: only, Notes: notes}, err
}

// prepare makes the machine of a new instance. Its work counts as given from
// now on, so that of many that are started at once each sees those before it.
func (n *Node) prepare(e *definition, r api.StartRequest, found []materialised) (*choreo.Machine, []string, error) {
	n.ledger.assigning.Lock()
	defer n.ledger.assigning.Unlock()
	g, annex, notes, err := n.genesis(e, r, found)
	if err != nil {
		return nil, nil, err
	}
	self := n.self()
	self.Credentials = n.people.Credentials()
	m, err := choreo.Create(self, e.def, e.plan, g, annex, choreo.Moment{Wall: n.clock.Now().Wall})
	if err != nil {
		return nil, nil, api.Errorf(api.Invalid, "%v", err)
	}
	n.ledger.give(m)
	return m, notes, nil
}

// heldOnlyHere waits a while for a second participant to acknowledge.
func (n *Node) heldOnlyHere(ctx context.Context, id workflow.InstanceID) (bool, error) {
	if n.stepped {
		return true, nil // nobody can answer before the next step
	}
	deadline := n.clock.Now().Awake + startWait
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		elsewhere, alone := false, false
		err := n.peek(ctx, id, func(h *held) {
			elsewhere, alone = h.sum.Settled || h.m.HeldElsewhere(), len(h.m.Participants()) == 1
		})
		switch {
		case err != nil:
			return true, n.shown(err)
		case elsewhere && !alone:
			return false, nil
		case alone || n.clock.Now().Awake > deadline:
			return true, nil
		}
		select {
		case <-n.clock.After(pause):
		case <-ctx.Done():
			return true, nil
		}
	}
}

// genesis works out what a new instance begins with.
func (n *Node) genesis(e *definition, r api.StartRequest, found []materialised) (*choreo.Genesis, *choreo.Annex, []string, error) {
	if err := n.notYet(e.def, r); err != nil {
		return nil, nil, nil, err
	}
	if err := n.mayCreate(e.def); err != nil {
		n.count("refused.role", 1)
		return nil, nil, nil, err
	}
	input, err := inputs(e.def, r.Input)
	if err != nil {
		return nil, nil, nil, err
	}
	pins, err := n.pins(e, r.Assign)
	if err != nil {
		return nil, nil, nil, err
	}
	mechanism, err := partition.MechanismOf(e.def, r.Mechanism)
	if err != nil {
		return nil, nil, nil, api.Errorf(api.Invalid, "--mechanism %v", err)
	}
	annex := &choreo.Annex{Mechanism: mechanism}
	var notes []string
	for _, x := range found {
		notes = append(notes, x.takenUp(annex, input))
	}
	plan := e.plan.Without(droppedOf(found))
	switch err := partition.Unperformed(plan, n.people.roles()); {
	case err == nil:
	case r.WaitForRole && mechanism == partition.PlainRule:
		notes = append(notes, strings.Split(err.Error(), "\n")...)
	case r.WaitForRole:
		return nil, nil, nil, api.Errorf(api.Refused, "%v", err).WithHint("%s chooses who is apt at the start, so nobody can be waited for: leave the mechanism out", mechanism)
	default:
		return nil, nil, nil, api.Errorf(api.Refused, "%v", err).WithHint("--wait-for-role starts it all the same; what nobody has the role for waits, with its time-out running")
	}
	s := n.situation(e.def, mechanism, input)
	s.Rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(n.random(8)), 0))
	placed, choices, err := partition.Distribute(plan, s, pins)
	if err != nil {
		return nil, nil, nil, api.Errorf(api.Refused, "%v", err)
	}
	g := &choreo.Genesis{
		Definition: e.hash, Nonce: [16]byte(n.random(16)), Input: input,
		Succession: []workflow.PartnerID{n.member.ID()}, Responsible: workflow.UserName(r.Responsible), Coordination: workflow.Choreography,
	}
	if g.Responsible == "" {
		g.Responsible = e.def.Responsible
	}
	for _, p := range e.plan.Partitions() {
		who := placed[p.Name]
		g.Assign = append(g.Assign, choreo.Placement{Partition: p.Name, Partner: who})
		if !slices.Contains(g.Succession, who) {
			g.Succession = append(g.Succession, who)
		}
	}
	var about []string
	if g.Coordination, g.Succession, about, err = n.coordination(e.def, r.Coordination, g.Succession); err != nil {
		return nil, nil, nil, err
	}
	notes = append(notes, about...)
	var why []choreo.Why
	for _, c := range choices {
		why = append(why, choreo.WhyOf(c))
		notes = append(notes, fmt.Sprintf("partition %s goes to %s: %s", c.Partition, c.Name, c.Why))
		if who := placed[c.Partition]; who != n.member.ID() && !n.up(who) {
			notes = append(notes, fmt.Sprintf("%s cannot be reached now; it gets the partition when it is back", c.Name))
		}
	}
	annex.Why = choreo.Brief(why)
	return g, annex, notes, nil
}

// pins reads which partitions are assigned by hand.
func (n *Node) pins(e *definition, assign map[string]string) (map[workflow.PartitionName]workflow.PartnerID, error) {
	pins := map[workflow.PartitionName]workflow.PartnerID{}
	for part, who := range assign {
		if e.plan.Partition(workflow.PartitionName(part)) == nil {
			return nil, api.Errorf(api.Invalid, "--assign %s=%s: workflow %s has no partition %q", part, who, e.def.Name, part)
		}
		id, err := n.people.resolve(who)
		if err != nil {
			return nil, err
		}
		pins[workflow.PartitionName(part)] = id
	}
	return pins, nil
}

// inputs reads the values given at the start by the types of the data.
func inputs(def *workflow.Definition, given map[string]string) (map[workflow.DataName]workflow.Value, error) {
	input := map[workflow.DataName]workflow.Value{}
	var names []string
	for i := range def.Data {
		d := &def.Data[i]
		names = append(names, string(d.Name))
		text, ok := given[string(d.Name)]
		switch {
		case ok:
			v, err := workflow.ParseValue(d, text)
			if err != nil {
				return nil, api.Errorf(api.Invalid, "--input %v", err)
			}
			input[d.Name] = v
		case d.Required && d.Default == nil:
			return nil, api.Errorf(api.Invalid, "workflow %s needs a value for %s (%s)", def.Name, d.Name, d.Type).WithHint("give it: --input %s=…", d.Name)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, k) {
			return nil, api.Errorf(api.Invalid, "workflow %s has no data %q", def.Name, k).WithHint("%s", declares(names))
		}
	}
	return input, nil
}

// declares says which data a workflow has.
func declares(names []string) string {
	if len(names) == 0 {
		return "it declares no data"
	}
	return "it has: " + strings.Join(names, ", ")
}

// alive are the parts of the language that need behaviour and have it here.
// What is not in it is refused at start, never ignored.
var alive = map[string]bool{
	"coordination: orchestration": true,
	"timeout":                     true, "time-to-wait": true, "reconcile": true, "on-failure: release": true, "on-failure: contingency": true, "on-failure: block": true,
	"type: manual": true, "type: semi-automatic": true,
	"needs": true, "retries": true, "compensate": true, "responsible": true, "role": true, "creator-role": true,
	"produces": true, "distribution: mechanism": true, "distribution: dispatching": true, "distribution: compensate-violations": true, "distribution: learning": true, "constraints: violated": true, "suitability": true, "urgency": true, "duration": true,
}

// NotYet are the parts of the language that a definition uses and that nodes of
// this version cannot do, in the order of its text: they refuse to start it.
func NotYet(def *workflow.Definition) []workflow.FeatureUse {
	return slices.DeleteFunc(workflow.Features(def), func(f workflow.FeatureUse) bool { return alive[f.Feature] })
}

// notYet refuses what this node cannot do yet.
func (n *Node) notYet(def *workflow.Definition, r api.StartRequest) error {
	var missing []string
	for _, f := range NotYet(def) {
		what := f.Feature
		if f.Task != "" {
			what += " (task " + string(f.Task) + ")"
		}
		missing = append(missing, what)
	}
	for flag, v := range map[string]string{"--notify": r.Notify, "--warnings": r.Warnings, "--transfer": r.Transfer} {
		if v != "" {
			missing = append(missing, flag)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return api.Errorf(api.Refused, "workflow %s uses what this version cannot do yet: %s", def.Name, strings.Join(missing, ", ")).
		WithHint("leave it out, or wait for the version that has it; nothing of a definition is ever ignored")
}

// Instances lists instances, newest first: those that this node takes part in
// and, at the coordinator, those of the whole mesh.
func (n *Node) Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	list := n.index.list(all)
	if all {
		closed, err := n.closings("")
		if err != nil {
			return nil, n.shown(err)
		}
		for _, c := range closed {
			if c.Signer != "" {
				list = append(list, c.listed())
			}
		}
	}
	n.addProgress(ctx, list)
	list = n.elsewhere(list, all)
	newestFirst(list)
	return list, nil
}

// progressWait is how long a list of instances waits for their progress: a
// disk that hangs must not keep people from the list.
const progressWait = 2 * time.Second

// addProgress adds how far those instances are that are in memory.
func (n *Node) addProgress(ctx context.Context, list []api.InstanceSummary) {
	ctx, cancel := context.WithTimeout(ctx, progressWait)
	defer cancel()
	of := make(map[string]*api.InstanceSummary, len(list))
	for i := range list {
		of[list[i].ID] = &list[i]
	}
	for _, s := range n.shards {
		type progress struct {
			id          string
			done, tasks int
			at          []workflow.PartnerID
			needs       []api.Need
			asOf        *time.Time
			known       string
		}
		var found []progress
		done := make(chan error, 1)
		err := n.handTo(ctx, s, event{look: func(s *shard) {
			s.each(func(id workflow.InstanceID, h *held) {
				p := progress{id: id.String()}
				p.done, p.tasks, p.at = h.m.Progress()
				p.needs = s.n.needs(h)
				p.asOf, p.known = s.n.oldest(h)
				found = append(found, p)
			})
			done <- nil
		}}, done)
		if err != nil {
			return // the list does without
		}
		for _, p := range found {
			if sum := of[p.id]; sum != nil {
				sum.Done, sum.Tasks, sum.At = p.done, p.tasks, n.names(p.at)
				sum.Needs, sum.AsOf, sum.Known = p.needs, p.asOf, p.known
			}
		}
	}
}

// Show shows one instance; at the coordinator also one of others.
func (n *Node) Show(ctx context.Context, ref string) (*api.Instance, error) {
	var out *api.Instance
	err := n.look(ctx, ref, func(h *held) { out = n.render(h) }, func(there []account) error {
		out = n.showElsewhere(ctx, there)
		return nil
	})
	var only *onlySummary
	if errors.As(err, &only) {
		return n.shownClosing(only.closing), nil
	}
	return out, err
}

// Log shows the facts of one instance; at the coordinator also of one of others.
func (n *Node) Log(ctx context.Context, ref string) ([]api.LogEntry, error) {
	var out []api.LogEntry
	err := n.look(ctx, ref, func(h *held) { out = n.renderLog(h) }, func(there []account) (err error) {
		out, err = n.logElsewhere(ctx, there)
		return err
	})
	return out, err
}

// Cancel ends an instance.
func (n *Node) Cancel(ctx context.Context, ref, reason string) error {
	return n.with(ctx, ref, func(s *shard, h *held) error {
		err := h.m.Cancel(reason, s.moment())
		s.touch(h)
		return err
	})
}

// WriteOff has nobody wait for a partner before superseded work is undone.
func (n *Node) WriteOff(ctx context.Context, ref, who string) error {
	p, err := n.people.resolve(who)
	if err != nil {
		return err
	}
	return n.with(ctx, ref, func(s *shard, h *held) error {
		err := h.m.WriteOff(p, s.moment())
		s.touch(h)
		return n.explain(err)
	})
}

// mayPerform refuses a person's task to a node without the role for it.
func (n *Node) mayPerform(h *held, task workflow.TaskName, what string) error {
	if t := h.def.def.Task(task); t != nil && t.Role != "" && !n.people.hasRole(t.Role) {
		return n.lacks(t.Role, fmt.Sprintf("%s task %s", what, task))
	}
	return nil
}

// BeginTask notes that a person began a task that this node holds.
func (n *Node) BeginTask(ctx context.Context, r api.BeginRequest) error {
	return n.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := n.mayPerform(h, r.Task, "begin"); err != nil {
			return err
		}
		err := h.m.Begin(r.Task, s.moment(), n.people)
		s.touch(h)
		return n.explain(err)
	})
}

// FinishTask completes or fails a person's task that this node holds.
func (n *Node) FinishTask(ctx context.Context, r api.FinishRequest) error {
	return n.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := n.mayPerform(h, r.Task, "finish"); err != nil {
			return err
		}
		res := choreo.Result{Failed: r.Failed, Reason: r.Reason, Outputs: map[workflow.DataName]workflow.Value{}}
		for k, text := range r.Outputs {
			d := declared(h.def.def, workflow.DataName(k))
			if d == nil {
				return api.Errorf(api.Invalid, "workflow %s has no data %q", h.def.def.Name, k)
			}
			v, err := workflow.ParseValue(d, text)
			if err != nil {
				return api.Errorf(api.Invalid, "--output %v", err)
			}
			res.Outputs[d.Name] = v
		}
		err := h.m.Finish(r.Task, res, s.moment(), n.people)
		s.touch(h)
		return n.explain(err)
	})
}

// lacks says that this node may not do something for want of a role.
func (n *Node) lacks(role workflow.RoleName, what string) error {
	n.count("refused.role", 1)
	return n.lacking(role, what)
}

// lacking is the refusal of what a role that this node lacks is for.
func (n *Node) lacking(role workflow.RoleName, what string) error {
	leaf := n.people.chain().Leaf()
	return api.Errorf(api.NotAllowed, "%s may not %s: role %s does that, and its certificate gives it %s", leaf.Name, what, role, orNone(leaf.Roles)).
		WithHint("roles come with the invitation: a partner that may invite makes one with --role %s", role)
}

func orNone(roles []workflow.RoleName) string {
	if len(roles) == 0 {
		return "no role"
	}
	return strings.Join(texts(roles), ", ")
}

func declared(def *workflow.Definition, name workflow.DataName) *workflow.DataDecl {
	for i := range def.Data {
		if def.Data[i].Name == name {
			return &def.Data[i]
		}
	}
	return nil
}

// Watch follows what happens.
func (n *Node) Watch(ctx context.Context, fn func(api.Event) error) error {
	return n.events.watch(ctx, fn)
}

// with has fn run on the owner of an instance, found by ID or prefix.
func (n *Node) with(ctx context.Context, ref string, fn func(*shard, *held) error) error {
	id, there, err := n.locate(ref)
	switch {
	case err != nil:
		return err
	case there != nil:
		return n.onlyThere(there)
	}
	return n.shown(n.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		err = fn(s, h)
		s.touch(h)
		return err
	}))
}

// look has here read an instance, found by ID or prefix, on its owner. It shows
// what is durable, and works on a disk that takes no writes. For an instance that
// others reported, there is called instead.
func (n *Node) look(ctx context.Context, ref string, here func(*held), there func([]account) error) error {
	id, elsewhere, err := n.locate(ref)
	switch {
	case err != nil:
		return err
	case elsewhere != nil:
		return there(elsewhere)
	}
	return n.shown(n.peek(ctx, id, here))
}

// explain turns the core's refusals into errors for users.
func (n *Node) explain(err error) error {
	var elsewhere *choreo.Elsewhere
	var answers *choreo.Unanswerable
	switch {
	case err == nil:
		return nil
	case errors.As(err, &elsewhere):
		return api.Errorf(api.Refused, "task %s is held by %s", elsewhere.Task, n.people.name(elsewhere.Partner)).
			WithHint("do that on the node of %s", n.people.name(elsewhere.Partner))
	case errors.As(err, &answers):
		by := n.people.name(answers.By)
		return api.Errorf(api.NotAllowed, "only %s, who began the instance, may write somebody off", by).WithHint("do that on the node of %s", by)
	case errors.Is(err, choreo.ErrNoTask):
		return api.Errorf(api.NotFound, "%v", err)
	case errors.Is(err, choreo.ErrOutput):
		return api.Errorf(api.Invalid, "%v", err)
	case errors.Is(err, choreo.ErrNotNow), errors.Is(err, choreo.ErrFactInvalid):
		return api.Errorf(api.Refused, "%v", err)
	}
	return err
}

// shown makes sure that an error may be shown to a user, who calls partners by their
// names.
func (n *Node) shown(err error) error {
	var e *api.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &e):
		return e.Named(n.people.label)
	case errors.Is(err, choreo.ErrNotNow):
		return api.Errorf(api.Refused, "%s", n.people.say(err))
	}
	return api.Errorf(api.Failed, "%s", n.people.say(err))
}
