package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var _ api.Service = (*Node)(nil)

// Status says who this node is and how it fares.
func (n *Node) Status(context.Context) (*api.Status, error) {
	leaf := n.people.chain().Leaf()
	st := &api.Status{
		Name: leaf.Name, ID: n.member.ID(), Mesh: n.member.Mesh.Name, Version: n.version, Roles: texts(leaf.Roles),
		Since: n.started, Incarnation: n.incarnation().String(), Boot: n.Boot(), Instances: n.index.running(), Counters: map[string]uint64{},
	}
	if n.carrier != nil {
		st.Addresses = n.carrier.Addrs()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(n.trouble)) {
		st.Trouble = append(st.Trouble, n.trouble[k])
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

// Partners lists who is here.
func (n *Node) Partners(context.Context) ([]api.Partner, error) {
	out := []api.Partner{}
	for _, p := range n.people.all() {
		r := p.Record
		out = append(out, api.Partner{
			Name: r.Name(), ID: r.Partner, Roles: texts(r.Roles()), State: string(p.State), Addresses: append([]string{}, r.Addresses...),
			LastValidated: p.Validated.Time(), ConnectionTime: r.ConnectionTime.String(), Load: float64(p.Load) / 1000, Self: r.Partner == n.member.ID(),
		})
	}
	slices.SortFunc(out, func(a, b api.Partner) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Invite opens an invitation to the mesh.
func (n *Node) Invite(_ context.Context, r api.InviteRequest) (*api.Invitation, error) {
	inv, err := n.people.invite(r, n.carrier.Addrs())
	return inv, shown(err)
}

// AddWorkflow checks a definition, lists it and spreads it.
func (n *Node) AddWorkflow(_ context.Context, file string, source []byte) (*api.Workflow, error) {
	def, err := workflow.Parse(file, source)
	if err != nil {
		return nil, api.Errorf(api.Failed, "%v", err)
	}
	if len(def.Canonical()) > wire.MaxDefinition {
		return nil, api.Errorf(api.Invalid, "workflow %s has a canonical form of %d bytes, at most %d can be spread", def.Name, len(def.Canonical()), wire.MaxDefinition)
	}
	e, err := n.definitions.add(def)
	if err != nil {
		return nil, shown(err)
	}
	n.shareDefinitions([]wire.Definition{e.wire()}, "")
	n.events.publish(api.Event{At: n.clock.Now().Wall, Kind: "workflow", Text: string(def.Name) + " added"})
	return e.apiWorkflow(true), nil
}

// Workflows lists the definitions.
func (n *Node) Workflows(context.Context) ([]api.Workflow, error) {
	out := []api.Workflow{}
	for _, e := range n.definitions.list() {
		out = append(out, *e.apiWorkflow(false))
	}
	return out, nil
}

// Workflow shows one definition.
func (n *Node) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	e, err := n.definitions.find(ref)
	if err != nil {
		return nil, err
	}
	return e.apiWorkflow(true), nil
}

// RemoveWorkflow takes a definition off the list, here and in the mesh.
// Instances of it go on.
func (n *Node) RemoveWorkflow(_ context.Context, ref string) error {
	e, err := n.definitions.find(ref)
	if err != nil {
		return err
	}
	if err := n.definitions.remove(e); err != nil {
		return shown(err)
	}
	n.shareDefinitions([]wire.Definition{n.definitions.get(e.stamp.Hash).wire()}, "")
	return nil
}

// startWait is how long Start waits for a second participant to hold the
// instance before it says that it is held only here.
const startWait = 3 * time.Second

// Start creates an instance and hands its partitions out.
func (n *Node) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	e, err := n.definitions.find(r.Workflow)
	if err != nil {
		return nil, err
	}
	g, notes, err := n.genesis(e, r)
	if err != nil {
		return nil, err
	}
	m, err := choreo.Create(n.self(), e.def, e.plan, g, choreo.Moment{Wall: n.clock.Now().Wall})
	if err != nil {
		return nil, api.Errorf(api.Invalid, "%v", err)
	}
	id := m.Instance()
	err = n.do(ctx, id, func(s *shard) error {
		if n.index.running() >= n.config.Limits.Instances {
			return api.Errorf(api.Refused, "%v", errTooManyInstances)
		}
		s.touch(s.create(m, e))
		return nil
	})
	if err != nil {
		return nil, shown(err)
	}
	only, err := n.heldOnlyHere(ctx, id)
	return &api.Started{ID: id.String(), HeldOnlyHere: only, Notes: notes}, err
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
			return true, shown(err)
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
func (n *Node) genesis(e *definition, r api.StartRequest) (*choreo.Genesis, []string, error) {
	if err := n.notYet(e.def, r); err != nil {
		return nil, nil, err
	}
	if role := e.def.CreatorRole; role != "" && !n.people.hasRole(role) {
		return nil, nil, n.lacks(role, fmt.Sprintf("start workflow %s", e.def.Name))
	}
	input, err := inputs(e.def, r.Input)
	if err != nil {
		return nil, nil, err
	}
	pins := map[workflow.PartitionName]workflow.PartnerID{}
	for part, who := range r.Assign {
		if e.plan.Partition(workflow.PartitionName(part)) == nil {
			return nil, nil, api.Errorf(api.Invalid, "--assign %s=%s: workflow %s has no partition %q", part, who, e.def.Name, part)
		}
		id, err := n.people.resolve(who)
		if err != nil {
			return nil, nil, err
		}
		pins[workflow.PartitionName(part)] = id
	}
	placed, choices, err := partition.Assign(e.plan, n.people.candidates(), pins, n.member.ID())
	if err != nil {
		return nil, nil, api.Errorf(api.Refused, "%v", err)
	}
	g := &choreo.Genesis{
		Definition: e.stamp.Hash, Nonce: [16]byte(n.random(16)), Input: input,
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
	var notes []string
	if g.Coordination, g.Succession, notes, err = n.coordination(e.def, r.Coordination, g.Succession); err != nil {
		return nil, nil, err
	}
	for _, c := range choices {
		notes = append(notes, fmt.Sprintf("partition %s goes to %s: %s", c.Partition, c.Name, c.Why))
		if who := placed[c.Partition]; who != n.member.ID() && !n.up(who) {
			notes = append(notes, fmt.Sprintf("%s cannot be reached now; it gets the partition when it is back", c.Name))
		}
	}
	return g, notes, nil
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
			return nil, api.Errorf(api.Invalid, "workflow %s has no data %q", def.Name, k).WithHint("it has: %s", strings.Join(names, ", "))
		}
	}
	return input, nil
}

// alive are the parts of the language that need behaviour and have it here.
// What is not in it is refused at start, never ignored.
var alive = map[string]bool{
	"coordination: orchestration": true,
	"timeout":                     true, "time-to-wait": true, "reconcile": true, "on-failure: release": true, "on-failure: contingency": true, "on-failure: block": true,
	"type: manual": true, "type: semi-automatic": true,
	"needs": true, "retries": true, "responsible": true, "role": true, "creator-role": true,
}

// notYet refuses what this node cannot do yet.
func (n *Node) notYet(def *workflow.Definition, r api.StartRequest) error {
	var missing []string
	for _, f := range workflow.Features(def) {
		if alive[f.Feature] {
			continue
		}
		what := f.Feature
		if f.Task != "" {
			what += " (task " + string(f.Task) + ")"
		}
		missing = append(missing, what)
	}
	for flag, v := range map[string]string{"--mechanism": r.Mechanism, "--notify": r.Notify, "--warnings": r.Warnings, "--transfer": r.Transfer} {
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

// Instances lists instances.
func (n *Node) Instances(_ context.Context, all bool) ([]api.InstanceSummary, error) {
	return n.index.list(all), nil
}

// Show shows one instance.
func (n *Node) Show(ctx context.Context, ref string) (*api.Instance, error) {
	var out *api.Instance
	err := n.look(ctx, ref, func(h *held) { out = n.render(h) })
	return out, err
}

// Log shows the facts of one instance.
func (n *Node) Log(ctx context.Context, ref string) ([]api.LogEntry, error) {
	var out []api.LogEntry
	err := n.look(ctx, ref, func(h *held) { out = n.renderLog(h) })
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

// FinishTask completes or fails a person's task that this node holds.
func (n *Node) FinishTask(ctx context.Context, r api.FinishRequest) error {
	return n.with(ctx, r.ID, func(s *shard, h *held) error {
		if t := h.def.def.Task(r.Task); t != nil && t.Role != "" && !n.people.hasRole(t.Role) {
			return n.lacks(t.Role, fmt.Sprintf("finish task %s", r.Task))
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
	leaf := n.people.chain().Leaf()
	n.count("refused.role", 1)
	return api.Errorf(api.NotAllowed, "%s may not %s: role %s does that, and its certificate gives it %s", leaf.Name, what, role, orNone(leaf.Roles)).
		WithHint("roles come with the invitation: whoever may invite makes one with --role %s", role)
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
	id, err := n.index.resolve(ref)
	if err != nil {
		return err
	}
	return shown(n.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		err = fn(s, h)
		s.touch(h)
		return err
	}))
}

// look has fn read an instance, found by ID or prefix, on its owner. It shows
// what is durable, and works on a disk that takes no writes.
func (n *Node) look(ctx context.Context, ref string, fn func(*held)) error {
	id, err := n.index.resolve(ref)
	if err != nil {
		return err
	}
	return shown(n.peek(ctx, id, fn))
}

// explain turns the core's refusals into errors for users.
func (n *Node) explain(err error) error {
	var elsewhere *choreo.Elsewhere
	switch {
	case err == nil:
		return nil
	case errors.As(err, &elsewhere):
		return api.Errorf(api.Refused, "task %s is held by %s", elsewhere.Task, n.people.name(elsewhere.Partner)).
			WithHint("complete it on that node, which holds its partition")
	case errors.Is(err, choreo.ErrNoTask):
		return api.Errorf(api.NotFound, "%v", err)
	case errors.Is(err, choreo.ErrOutput):
		return api.Errorf(api.Invalid, "%v", err)
	case errors.Is(err, choreo.ErrNotNow):
		return api.Errorf(api.Refused, "%v", err)
	}
	return err
}

// shown makes sure that an error may be shown to a user.
func shown(err error) error {
	var e *api.Error
	switch {
	case err == nil, errors.As(err, &e), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, choreo.ErrNotNow):
		return api.Errorf(api.Refused, "%v", err)
	}
	return api.Errorf(api.Failed, "%v", err)
}
