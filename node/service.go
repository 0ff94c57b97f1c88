package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

var _ api.Service = (*Node)(nil)

// Status says which node this is and how it fares.
func (n *Node) Status(context.Context) (*api.Status, error) {
	leaf := n.certificates.Chain().Leaf()
	st := &api.Status{
		Name: leaf.Name, ID: n.member.ID(), Mesh: n.member.Mesh.Name, Version: n.parts.Version,
		Roles: texts(leaf.Roles),
		Since: n.started, Incarnation: n.life.incarnation().String(), Boot: n.life.bootCount(),
		Instances: n.index.Running(), Counters: n.counters.all(),
		Disconnected: n.absence.since(),
		Leaving:      n.departure.leaving.Load(), ForGood: n.departure.leaving.Load() && n.departure.forGood.Load(),
		Device: n.parts.device(),
	}
	if err := n.parts.mayLock(); err != nil {
		st.LocksNothing = err.Error()
	}
	if n.carrier != nil {
		st.Addresses, st.Traffic = n.carrier.Addrs(), n.carrier.Traffic()
		for k, v := range n.carrier.Refused() {
			st.Counters["mesh.refused."+k] = v
		}
	}
	st.Trouble = append(n.losses.damages(n.index.Quarantined()), n.troubles.list()...)
	if t := n.definitions.Trouble(); t != "" {
		st.Trouble = append(st.Trouble, t)
	}
	st.Trouble = append(st.Trouble, n.retention.lateOnes()...)
	return st, nil
}

// Partners lists the partners that are here.
func (n *Node) Partners(context.Context) ([]api.Partner, error) {
	out := []api.Partner{}
	for _, p := range n.people.All() { // by the names that all else has for them, also where two have the same
		r := p.Record
		out = append(out, api.Partner{
			Name: n.people.name(r.Partner), ID: r.Partner, Roles: texts(r.Roles()), State: string(p.State), Since: since(p),
			Reason: string(p.Reason()), Remark: n.people.remark(p), Addresses: append([]string{}, r.Addresses...),
			LastValidated: p.Validated.Time(), ConnectionTime: r.ConnectionTime.String(), Load: p.Load.Share(),
			FilesRate: n.filing.rateFrom(r.Partner), Self: r.Partner == n.member.ID(),
			Refused: n.refusals.List(r.Partner),
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
	out, err := n.joining.Invite(r)
	return out, n.explain(err)
}

// startWait is how long Start waits for a second participant to hold the
// instance before it says that it is held only here.
const startWait = 3 * time.Second

// start creates an instance and hands its partitions out.
func (k *desk) start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	h, err := k.definitions.Resolve(r.Workflow)
	if err != nil {
		return nil, err
	}
	e, err := k.definitions.Get(h)
	if err != nil {
		return nil, err
	}
	b, err := k.launch(ctx, e, r, nil)
	if err != nil {
		return nil, err
	}
	only, err := k.heldOnlyHere(ctx, b)
	return &api.Started{ID: b.id.String(), Notes: b.notes, HeldOnlyHere: only}, err
}

// birth is how an instance begins that is for a task of another (nested.go).
type birth struct {
	parent      *fact.Parent
	input       map[workflow.DataName]workflow.Value
	responsible workflow.UserName
	decides     worklist.User
	uses        []fact.Pin
}

// launched is an instance that has begun.
type launched struct {
	id    workflow.InstanceID
	notes []string
	alone bool // only this node takes part in it
	// elsewhere is closed when another participant is known to have made it durable; never, if its
	// machine is loaded again meanwhile.
	elsewhere chan struct{}
}

// launch creates an instance. Without a birth it is for itself.
func (k *desk) launch(ctx context.Context, e *library.Definition, r api.StartRequest, b *birth) (launched, error) {
	input, _ := inputs(e.Def, r.Input) // what is wrong with it is said below
	if b != nil {
		input = b.input
	}
	found, missed := k.data.Materialised(ctx, e.Def, input)
	uses, err := k.uses(ctx, e, b)
	if err != nil {
		return launched{}, datasets.AndMissed(err, missed)
	}
	m, notes, err := k.prepare(e, r, found, uses, b)
	if err != nil {
		if why := k.wallet.Standing(); why != nil { // that is what kept partners from taking it
			err = api.Errorf(api.NotAllowed, "this node is no member any more: %s", k.people.say(why)).
				WithHint("mutirao doctor says how to mend it")
		}
		return launched{}, datasets.AndMissed(err, missed)
	}
	notes = append(notes, missed...)
	id, elsewhere, alone := m.Instance(), make(chan struct{}), len(m.Participants()) == 1
	if err := k.filing.given(e.Def, id.String(), k.member.ID(), m.Genesis().Body.Genesis.Input, true); err != nil {
		k.ledger.TakeBack(id)
		return launched{}, err
	}
	err = k.do(ctx, id, func(s *shard) error {
		err := s.open(m, e, elsewhere)
		if err != nil {
			k.ledger.TakeBack(id) // by its owner, who may be at it still when ctx ends
		}
		return err
	})
	if err != nil {
		return launched{}, err
	}
	return launched{id, notes, alone, elsewhere}, nil
}

// open opens an instance that this node begins.
func (s *shard) open(m *choreo.Machine, e *library.Definition, elsewhere chan struct{}) error {
	id, self := m.Instance(), s.n.member.ID()
	if err := s.n.index.Begin(id, s.n.config.Limits, self, self, true, e.Hash); err != nil {
		return err
	}
	if err := s.n.definitions.Keep(e); err != nil { // it may have been taken off the list meanwhile
		s.n.index.Forget(id)
		return err
	}
	h := s.create(m, e, s.n.lineup.Begins(m.Genesis().At))
	h.elsewhere = elsewhere
	s.touch(h)
	return nil
}

// prepare makes the machine of a new instance. Its work counts as given from
// now on, so that of many that are started at once each sees those before it.
func (k *desk) prepare(
	e *library.Definition, r api.StartRequest, found []datasets.Materialised, uses []fact.Pin, b *birth,
) (*choreo.Machine, []string, error) {
	defer k.ledger.Choosing()()
	f, notes, err := k.genesis(e, r, found, b)
	if err != nil {
		return nil, nil, err
	}
	f.annex.Uses = uses
	self := k.self()
	self.Credentials = k.people.Credentials()
	m, err := choreo.Create(self, e.Def, e.Plan, f.genesis, f.annex, choreo.Moment{Wall: k.clock.Now().Wall})
	if err != nil {
		return nil, nil, api.Judge(api.Invalid, err)
	}
	k.ledger.Give(m, f.choices)
	return m, notes, nil
}

// heldOnlyHere waits a while for a second participant to acknowledge.
func (k *desk) heldOnlyHere(ctx context.Context, b launched) (only bool, err error) {
	if b.alone || !k.waits() { // else nobody can answer before the next step
		return true, nil
	}
	select {
	case <-b.elsewhere:
		return false, nil
	case <-ctx.Done():
		return true, nil
	case <-k.clock.After(startWait):
	}
	err = k.peek(ctx, b.id, func(h *held) { only = !h.isElsewhere() })
	return only || err != nil, err
}

// foundation is what a new instance begins with.
type foundation struct {
	genesis *fact.Genesis
	annex   *fact.Annex
	choices []partition.Choice
}

// genesis works out what a new instance begins with, and what its user should know.
func (k *desk) genesis(
	e *library.Definition, r api.StartRequest, found []datasets.Materialised, b *birth,
) (foundation, []string, error) {
	if err := k.notYet(e.Def, r); err != nil {
		return foundation{}, nil, err
	}
	err := k.mayCreate(e.Def)
	if err == nil {
		err = k.mayHaveCreated(e.Def, b)
	}
	if err != nil {
		k.count("refused.role", 1)
		return foundation{}, nil, err
	}
	input, err := b.inputs(e.Def, r.Input)
	if err != nil {
		return foundation{}, nil, err
	}
	if why := choreo.Rejects(e.Def, input); why != "" {
		return foundation{}, nil, api.Errorf(api.Refused, "workflow %s is not started: %s", e.Def.Name, why).
			WithHint("mutirao workflow show %s has its data: give others with --input NAME=VALUE", e.Def.Name)
	}
	pins, err := k.pins(e, r.Assign)
	if err != nil {
		return foundation{}, nil, err
	}
	mechanism, err := partition.MechanismOf(e.Def, r.Mechanism)
	if err != nil {
		return foundation{}, nil, api.Errorf(api.Invalid, "--mechanism %v", err)
	}
	annex := &fact.Annex{Mechanism: mechanism}
	notes, err := dates(annex, e.Def, r)
	if err != nil {
		return foundation{}, nil, err
	}
	for _, x := range found {
		notes = append(notes, x.TakenUp(annex, input))
	}
	plan := e.Plan.Without(datasets.Dropped(found))
	lacking, err := k.performable(plan, r.WaitForRole)
	if err != nil {
		return foundation{}, nil, err
	}
	notes = append(notes, lacking...)
	s := k.situation(e.Def, mechanism, input)
	s.Awaited = partition.Awaited(plan, k.partners.Roles()) // some only if the request waits for them
	s.Rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(k.random(8)), 0))
	placed, choices, err := partition.Distribute(plan, s, pins)
	if err != nil {
		return foundation{}, nil, api.Judge(api.Refused, err)
	}
	g := &fact.Genesis{
		Definition: e.Hash, Nonce: [16]byte(k.random(16)), Input: input,
		Succession: []workflow.PartnerID{k.member.ID()}, Coordination: workflow.Choreography,
	}
	var who []string
	if b != nil {
		g.Nonce, annex.Parent, g.Responsible, annex.Responsible = b.parent.Nonce(), b.parent, b.responsible, b.decides
	} else if g.Responsible, annex.Responsible, who, err = k.responsible(e.Def, r); err != nil {
		return foundation{}, nil, err
	}
	notes = append(notes, who...)
	for _, p := range e.Plan.Partitions() {
		who := placed[p.Name]
		g.Assign = append(g.Assign, fact.Placement{Partition: p.Name, Partner: who})
		if !slices.Contains(g.Succession, who) {
			g.Succession = append(g.Succession, who)
		}
	}
	var about []string
	if g.Coordination, g.Succession, about, err = k.coordination(e.Def, r.Coordination, g.Succession); err != nil {
		return foundation{}, nil, err
	}
	notes = append(notes, about...)
	var why []fact.Why
	for _, c := range choices {
		why = append(why, fact.WhyOf(c))
		notes = append(notes, k.goes(c)...)
	}
	annex.Why = fact.Brief(why)
	return foundation{g, annex, choices}, notes, nil
}

// performable notes which roles of a plan nobody has; an error, unless these may be waited for.
func (k *desk) performable(plan *partition.Plan, waits bool) (notes []string, err error) {
	switch err := partition.Unperformed(plan, k.partners.Roles()); {
	case err == nil:
	case waits:
		notes = strings.Split(err.Error(), "\n")
	default:
		return nil, api.Judge(api.Refused, err).
			WithHint("--wait-for-role starts it all the same; what nobody has the role for waits, with its time-out running")
	}
	return append(notes, partition.Uncovered(plan, k.partners.Roles())...), nil
}

// goes notes where a partition goes, and why.
func (k *desk) goes(c partition.Choice) []string {
	notes := []string{fmt.Sprintf("partition %s goes to %s: %s", c.Partition, c.Name, c.Why)}
	if c.Partner != k.member.ID() && !k.up(c.Partner) {
		notes = append(notes, fmt.Sprintf("%s cannot be reached now; it gets the partition when it is back", c.Name))
	}
	return notes
}

// pins reads which partitions are assigned by hand.
func (k *desk) pins(
	e *library.Definition, assign map[string]string,
) (map[workflow.PartitionName]workflow.PartnerID, error) {
	pins := map[workflow.PartitionName]workflow.PartnerID{}
	for part, who := range assign {
		if e.Plan.Partition(workflow.PartitionName(part)) == nil {
			err := api.Errorf(api.Invalid, "--assign %s=%s: workflow %s has no partition %q", part, who,
				e.Def.Name, part)
			if meant := e.Def.MeantPartition(part); meant != "" {
				err = err.WithHint("did you mean %s?", meant)
			}
			return nil, err
		}
		id, err := k.people.Find(who)
		if err != nil {
			return nil, err
		}
		pins[workflow.PartitionName(part)] = id
	}
	return pins, nil
}

// inputs are the values with which an instance begins: those of its birth, or else given as texts.
func (b *birth) inputs(
	def *workflow.Definition, given map[string]string,
) (map[workflow.DataName]workflow.Value, error) {
	if b != nil {
		return maps.Clone(b.input), nil
	}
	return inputs(def, given)
}

// inputs reads the values given at the start by the types of the data.
func inputs(def *workflow.Definition, given map[string]string) (map[workflow.DataName]workflow.Value, error) {
	input := map[workflow.DataName]workflow.Value{}
	for i := range def.Data {
		d := &def.Data[i]
		text, ok := given[string(d.Name)]
		switch {
		case ok && d.Type == workflow.TypeQuery:
			return nil, api.Errorf(api.Invalid, "--input %s: database %s answers that, and nobody else", d.Name,
				d.Database).
				WithHint("leave it out: a task asks for it")
		case ok:
			v, err := workflow.ParseValue(d, text)
			if err != nil {
				return nil, api.Errorf(api.Invalid, "--input %v", err)
			}
			input[d.Name] = v
		case d.Required && d.Default == nil:
			return nil, api.Errorf(api.Invalid, "workflow %s needs a value for %s (%s)", def.Name, d.Name, d.Type).
				WithHint("give it: --input %s=…", d.Name)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if declared(def, workflow.DataName(k)) == nil {
			return nil, noData(api.Invalid, def, k)
		}
	}
	return input, nil
}

// noData says that a definition has no such data, and which may be meant: people read labels.
func noData(code api.Code, def *workflow.Definition, text string) error {
	err := api.Errorf(code, "workflow %s has no data %q", def.Name, text)
	if meant := def.MeantData(text); meant != "" {
		return err.WithHint("did you mean %s?", meant)
	}
	var names []string
	for i := range def.Data {
		names = append(names, string(def.Data[i].Name))
	}
	return err.WithHint("%s", declares(names))
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
	"timeout":                     true, "time-to-wait": true, "reconcile": true, "on-failure: release": true,
	"on-failure: contingency": true, "on-failure: block": true,
	"type: manual": true, "type: semi-automatic": true, "type: workflow": true, "uses": true,
	"needs": true, "retries": true, "compensate": true, "responsible": true, "administrators": true, "role": true,
	"creator-role": true,
	"produces":     true, "distribution: mechanism": true, "distribution: dispatching": true,
	"distribution: compensate-violations": true, "distribution: learning": true, "constraints: violated": true,
	"suitability": true, "urgency": true, "duration": true, "offline": true,
	"data: file": true, "data: query": true, "deadline": true, "warnings": true, "transfer": true, "priority": true,
	"initial": true, "constraints: when": true, "final": true,
	"enabled": true, "distribution: notify": true, "distribution: patience": true,
	"distribution: relax": true, "distribution: urgency-growth": true, "resources": true, "holds": true,
}

// driven are those that a definition may have besides that is driven by its data.
var driven = map[string]bool{
	"repeat": true, "on-conflict": true, workflow.FeatureAge: true,
}

// NotYet are the parts of the language that a definition uses and that nodes of
// this version cannot do, in the order of its text: they refuse to start it.
func NotYet(def *workflow.Definition) []workflow.FeatureUse {
	return slices.DeleteFunc(workflow.Features(def), func(f workflow.FeatureUse) bool {
		return alive[f.Feature] || def.Flow() != nil && driven[f.Feature]
	})
}

// WhyNotYet is what about its use keeps nodes of this version from doing a part of the language; empty: all uses do.
func WhyNotYet(def *workflow.Definition, f workflow.FeatureUse) string {
	if f.Feature != "repeat" {
		return ""
	}
	return def.FlowObstacle()
}

// notYet refuses what this node cannot do yet.
func (k *desk) notYet(def *workflow.Definition, r api.StartRequest) error {
	var missing []string
	for _, f := range NotYet(def) {
		what := f.Feature
		if why := WhyNotYet(def, f); why != "" {
			what += ": " + why
		} else if f.Task != "" {
			what += " (task " + string(f.Task) + ")"
		}
		missing = append(missing, what)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	return api.Errorf(api.Refused, "workflow %s uses what this version cannot do yet: %s", def.Name,
		strings.Join(missing, ", ")).
		WithHint("leave it out, or wait for the version that has it; nothing of a definition is ever ignored")
}

// progressWait is how long a list of instances waits for their progress: a
// disk that hangs must not keep people from the list.
const progressWait = 2 * time.Second

// show shows one instance; at the coordinator also one of others.
func (k *desk) show(ctx context.Context, ref string) (*api.Instance, error) {
	var out *api.Instance
	err := k.look(ctx, ref, func(h *held) { out = k.view.Instance(h.shown()) }, func(there []overview.Account) error {
		out = k.showElsewhere(ctx, there)
		return nil
	})
	var only *onlySummary
	if errors.As(err, &only) {
		return k.retention.shownClosing(only.closing), nil
	}
	return out, err
}

// history shows the facts of one instance; at the coordinator also of one of others.
func (k *desk) history(ctx context.Context, ref string) ([]api.LogEntry, error) {
	var out []api.LogEntry
	err := k.look(ctx, ref, func(h *held) { out = k.view.Log(h.shown()) }, func(there []overview.Account) (err error) {
		out, err = k.logElsewhere(ctx, there)
		return err
	})
	return out, err
}

// writeOff has nobody wait for a partner before superseded work is undone; with check it only says whether it may.
func (k *desk) writeOff(ctx context.Context, ref, who string, check bool) error {
	p, err := k.people.resolveWhole(who)
	if err != nil {
		return err
	}
	return k.with(ctx, ref, func(s *shard, h *held) error {
		if check {
			return h.m.MayWriteOff(p)
		}
		err := h.m.WriteOff(p, s.moment())
		s.touch(h)
		return err
	})
}

// mayPerform refuses a person's task to a node without the role for it.
func (k *desk) mayPerform(h *held, task workflow.TaskName, what string) error {
	if t := h.m.Definition().Task(task); t != nil && t.Role != "" && !k.wallet.HasRole(t.Role) {
		return k.lacks(t.Role, fmt.Sprintf("%s task %s", what, task))
	}
	return nil
}

// beginTask notes that a person began a task that this node holds.
func (k *desk) beginTask(ctx context.Context, r api.BeginRequest) error {
	return k.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := k.mayPerform(h, r.Task, "begin"); err != nil {
			return err
		}
		err := h.m.Begin(r.Task, s.moment(), k.partners)
		s.touch(h)
		return err
	})
}

// finishTask completes or fails a person's task that this node holds.
func (k *desk) finishTask(ctx context.Context, r api.FinishRequest) error {
	return k.with(ctx, r.ID, func(s *shard, h *held) error {
		if err := k.mayPerform(h, r.Task, "finish"); err != nil {
			return err
		}
		res := choreo.Result{Failed: r.Failed, Reason: r.Reason, Outputs: map[workflow.DataName]workflow.Value{}}
		for k, text := range r.Outputs {
			d := declared(h.m.Definition(), workflow.DataName(k))
			if d == nil {
				return noData(api.Invalid, h.m.Definition(), k)
			}
			v, err := workflow.ParseValue(d, text)
			if err != nil {
				return api.Errorf(api.Invalid, "--output %v", err)
			}
			res.Outputs[d.Name] = v
		}
		err := k.filing.given(h.m.Definition(), h.m.Instance().String(), h.sum.By, res.Outputs, true)
		if err != nil {
			return err
		}
		k.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
			err = h.m.Finish(r.Task, res, s.moment(), p)
			return h.m.Given()
		})
		s.touch(h)
		if errors.Is(err, choreo.ErrTaken) {
			return k.hasIt(h, r.Task)
		}
		return err
	})
}

// lacks says that this node may not do something for want of a role.
func (k *desk) lacks(role workflow.RoleName, what string) error {
	k.count("refused.role", 1)
	return k.lacking(role, what)
}

// lacking is the refusal of what a role that this node lacks is for.
func (k *desk) lacking(role workflow.RoleName, what string) error {
	leaf := k.wallet.Chain().Leaf()
	return api.Errorf(api.NotAllowed, "%s may not %s: role %s does that, and its certificate gives it %s", leaf.Name,
		what, role, orNone(leaf.Roles)).
		WithHint("roles come with the invitation: a partner that may invite makes one with --role %s", role)
}

func orNone(roles []workflow.RoleName) string {
	if len(roles) == 0 {
		return "no role"
	}
	return strings.Join(texts(roles), ", ")
}

// Watch follows what happens.
func (n *Node) Watch(ctx context.Context, fn func(api.Event) error) error {
	return n.events.watch(ctx, fn)
}

// Happened counts what Watch tells, also what happened while nobody watched: a page that was made before it watches
// learns by it whether it is out of date already.
func (n *Node) Happened() uint64 { return n.events.happened.Load() }

// AddWorkflow checks a definition, lists it and spreads it.
func (n *Node) AddWorkflow(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	out, err := n.library.Add(ctx, file, source)
	return out, n.explain(err)
}

// Workflows lists the definitions.
func (n *Node) Workflows(context.Context) ([]api.Workflow, error) { return n.library.List(), nil }

// Workflow shows one definition.
func (n *Node) Workflow(_ context.Context, ref string) (*api.Workflow, error) {
	out, err := n.library.Show(ref)
	return out, n.explain(err)
}

// RemoveWorkflow takes all editions off the list that ref names, here and in the mesh,
// and says which. Instances of them go on.
func (n *Node) RemoveWorkflow(_ context.Context, ref string) ([]api.Workflow, error) {
	out, err := n.library.Remove(ref)
	return out, n.explain(err)
}

// Boot is this node's boot counter: how often it was started.
func (n *Node) Boot() uint64 { return n.life.bootCount() }

// CoordinatorStatus says who coordinates.
func (n *Node) CoordinatorStatus(context.Context) (*api.Coordinator, error) {
	out, err := n.elections.Status()
	return out, n.explain(err)
}

// Elect has a node stand for election, this one if none is named, and waits
// for the outcome.
func (n *Node) Elect(ctx context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	out, err := n.elections.Elect(ctx, r)
	return out, n.explain(err)
}

// Resign gives this node's office up.
func (n *Node) Resign(context.Context) error {
	return n.explain(n.elections.Resign())
}

// Electorate says who may vote.
func (n *Node) Electorate(context.Context) (*api.Electorate, error) {
	out, err := n.elections.Electorate()
	return out, n.explain(err)
}

// SetElectorate changes who may vote.
func (n *Node) SetElectorate(ctx context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	out, err := n.elections.SetElectorate(ctx, r)
	return out, n.explain(err)
}

// Leads reports whether this node holds the office at this moment, and by which
// mandate.
func (n *Node) Leads() (m election.Mandate, ok bool) { return n.elections.Leads() }

// Evict removes a member for good.
func (n *Node) Evict(_ context.Context, r api.EvictRequest) (*api.Evicted, error) {
	out, err := n.evictions.Evict(r)
	return out, n.explain(err)
}

// AddData registers a data set, which partners may then be given.
func (n *Node) AddData(_ context.Context, name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	out, err := n.data.Add(name, content, terms)
	return out, n.explain(err)
}

// RemoveData takes a data set back.
func (n *Node) RemoveData(_ context.Context, name string) error {
	return n.explain(n.data.Remove(name))
}

// Doctor looks for what is wrong with this node and its links.
func (n *Node) Doctor(ctx context.Context) (*api.Diagnosis, error) {
	out, err := n.doctor.Examine(ctx)
	return out, n.explain(err)
}

// Start creates an instance and hands its partitions out.
func (n *Node) Start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	out, err := n.desk.start(ctx, r)
	return out, n.explain(err)
}

// Instances lists instances, newest first: those that this node takes part in
// and, at the coordinator, those of the whole mesh.
func (n *Node) Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	out, err := n.desk.list(ctx, all)
	return out, n.explain(err)
}

// InstancePage lists a part of them.
func (n *Node) InstancePage(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	out, err := n.desk.page(ctx, q)
	return out, n.explain(err)
}

// Refresh asks the participants of an instance for what is new, and says who answered.
func (n *Node) Refresh(ctx context.Context, ref string) (*api.Refreshed, error) {
	out, err := n.desk.refresh(ctx, ref)
	return out, n.explain(err)
}

// Show says how an instance stands.
func (n *Node) Show(ctx context.Context, ref string) (*api.Instance, error) {
	out, err := n.desk.show(ctx, ref)
	return out, n.explain(err)
}

// Log is what happened in an instance.
func (n *Node) Log(ctx context.Context, ref string) ([]api.LogEntry, error) {
	out, err := n.desk.history(ctx, ref)
	return out, n.explain(err)
}

// History are the data states that an instance went through.
func (n *Node) History(ctx context.Context, ref string) ([]api.DataState, error) {
	out, err := n.desk.states(ctx, ref)
	return out, n.explain(err)
}

// ForeseeRecovery says what a step would lead to that recovers an interrupted instance.
func (n *Node) ForeseeRecovery(ctx context.Context, ref string, step api.RecoveryStep) (*api.Outlook, error) {
	out, err := n.desk.outlook(ctx, ref, step)
	return out, n.explain(err)
}

// Diagram draws an instance or a workflow.
func (n *Node) Diagram(ctx context.Context, ref, format string) ([]byte, error) {
	out, err := n.desk.diagram(ctx, ref, format)
	return out, n.explain(err)
}

// Cancel ends an instance.
func (n *Node) Cancel(ctx context.Context, ref, reason string) error {
	_, err := n.worklists.Order(ctx, api.TaskOrder{ID: ref, Order: api.TaskCancel, Reason: reason})
	return n.explain(err)
}

// WriteOff says that a participant will not answer any more; with check it only says whether that may be said.
func (n *Node) WriteOff(ctx context.Context, ref, who string, check bool) error {
	return n.explain(n.desk.writeOff(ctx, ref, who, check))
}

// RejectTask passes a task that this node holds, and has not started, on to
// another partner.
func (n *Node) RejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	out, err := n.desk.rejectTask(ctx, r)
	return out, n.explain(err)
}

// BeginTask notes that a person began a task that this node holds.
func (n *Node) BeginTask(ctx context.Context, r api.BeginRequest) error {
	return n.explain(n.desk.beginTask(ctx, r))
}

// FinishTask completes or fails a person's task that this node holds.
func (n *Node) FinishTask(ctx context.Context, r api.FinishRequest) error {
	return n.explain(n.desk.finishTask(ctx, r))
}

// Leave gives this node's work on, says what stays, and has the node go as soon as
// nothing stays.
func (n *Node) Leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	if n.Away() {
		return nil, n.explain(api.Errorf(api.Refused,
			"this node is disconnected on purpose: nobody would hear that it leaves").
			WithHint("mutirao worklist reconnect, and leave then"))
	}
	out, err := n.departure.leave(ctx, r)
	return out, n.explain(err)
}

// Left says how the node left, if it did; else membership.Staying.
func (n *Node) Left() membership.Going { return n.departure.left() }

// Users lists the partners, which are users by being partners, and all other users.
func (n *Node) Users(ctx context.Context) ([]api.User, error) {
	out, err := n.users.List(ctx)
	return out, n.explain(err)
}

// AddUser makes a user, and a token by which it signs in.
func (n *Node) AddUser(_ context.Context, r api.UserRequest) (*api.SignInToken, error) {
	out, err := n.users.Add(r)
	return out, n.explain(err)
}

// RemoveUser removes a user for good, or one of its keys.
func (n *Node) RemoveUser(_ context.Context, user string) (*api.RemovedUser, error) {
	out, err := n.users.Remove(user)
	return out, n.explain(err)
}

// SignInUser signs a user in at this node.
func (n *Node) SignInUser(ctx context.Context, token string) (*api.SignedIn, error) {
	out, err := n.users.SignIn(ctx, token)
	return out, n.explain(err)
}

// SignOutUser ends a user's being signed in at this node.
func (n *Node) SignOutUser(_ context.Context, user string) (*api.SignedOut, error) {
	out, err := n.users.SignOut(user)
	return out, n.explain(err)
}

// LinkUser makes a token for another device of a user who is signed in here.
func (n *Node) LinkUser(_ context.Context, user string, expires time.Duration) (*api.SignInToken, error) {
	out, err := n.users.Link(user, expires)
	return out, n.explain(err)
}

// Worklist lists what a user has and may take.
func (n *Node) Worklist(ctx context.Context, q api.WorklistQuery) ([]api.Item, error) {
	out, err := n.worklists.List(ctx, q)
	return out, n.explain(err)
}

// WorklistUnanswered names the partners that did not answer when a user's list was asked for last.
func (n *Node) WorklistUnanswered(_ context.Context, user string) ([]string, error) {
	out, err := n.worklists.Unanswered(user)
	return out, n.explain(err)
}

// ItemSheet shows an item with all that is needed to do it.
func (n *Node) ItemSheet(ctx context.Context, q api.ItemQuery) (*api.ItemSheet, error) {
	out, err := n.worklists.Sheet(ctx, q)
	if err == nil {
		n.filing.describeData(out.Data)
	}
	return out, n.explain(err)
}

// ItemFile gives the content of a file among the data of an item that a user has.
func (n *Node) ItemFile(ctx context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
	f, content, err := n.filing.ofItem(ctx, q, name, n.worklists.Content)
	return f, content, n.explain(err)
}

// MoveItem puts an item elsewhere in a list that is ordered by hand.
func (n *Node) MoveItem(ctx context.Context, r api.MoveRequest) ([]api.Item, error) {
	out, err := n.worklists.Move(ctx, r)
	return out, n.explain(err)
}

// Prefetch says which files of a user's items come before they are needed.
func (n *Node) Prefetch(ctx context.Context, user string) (*api.Prefetch, error) {
	out, err := n.worklists.Prefetch(ctx, user)
	return out, n.explain(err)
}

// SetPrefetch switches that on or off.
func (n *Node) SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	out, err := n.worklists.SetPrefetch(ctx, r)
	return out, n.explain(err)
}

// ClaimItems takes items for a user, or gives them back.
func (n *Node) ClaimItems(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	out, err := n.worklists.Claim(ctx, r)
	return out, n.explain(err)
}

// WorklistLost lists the items that a user had and lost lately.
func (n *Node) WorklistLost(ctx context.Context, user string) ([]api.LostItem, error) {
	out, err := n.worklists.Lost(ctx, user)
	return out, n.explain(err)
}

// TransferItem has a user pass an item on.
func (n *Node) TransferItem(ctx context.Context, r api.TransferRequest) (*api.Transferred, error) {
	out, err := n.worklists.Transfer(ctx, r)
	return out, n.explain(err)
}

// OrderTask has a user who decides about an instance say what becomes of a task.
func (n *Node) OrderTask(ctx context.Context, r api.TaskOrder) (*api.TaskOrdered, error) {
	out, err := n.worklists.Order(ctx, r)
	return out, n.explain(err)
}

// Deciding says whether a user decides about an instance.
func (n *Node) Deciding(ctx context.Context, q api.DecidingQuery) (*api.Deciding, error) {
	out, err := n.desk.deciding(ctx, q)
	return out, n.explain(err)
}

// ExtendDeadline has a user who decides about an instance give a task a later deadline.
func (n *Node) ExtendDeadline(ctx context.Context, r api.ExtendRequest) (*api.Extended, error) {
	out, err := n.worklists.Extend(ctx, r)
	return out, n.explain(err)
}

// ChangeNotify has a user who decides about an instance change whom its items are offered to.
func (n *Node) ChangeNotify(ctx context.Context, r api.NotifyRequest) (*api.Notified, error) {
	out, err := n.worklists.Notify(ctx, r)
	return out, n.explain(err)
}

// AdoptResult has a user who decides about an instance adopt a result that is kept.
func (n *Node) AdoptResult(ctx context.Context, r api.AdoptRequest) (*api.Adopted, error) {
	out, err := n.worklists.Adopt(ctx, r)
	return out, n.explain(err)
}

// Disconnect has this node end all contact with its partners, once what it needs is here.
func (n *Node) Disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	out, err := n.absence.disconnect(ctx, r)
	return out, n.explain(err)
}

// Reconnect has this node talk to its partners again.
func (n *Node) Reconnect(context.Context) (*api.Contact, error) {
	out, err := n.absence.reconnect()
	return out, n.explain(err)
}

// Contact says how this node stands to its partners.
func (n *Node) Contact(context.Context) (*api.Contact, error) { return n.absence.contact(), nil }

// Away reports whether this node is out of contact on purpose: it begins in silence.
func (n *Node) Away() bool {
	_, away := n.absence.away()
	return away
}

// Outbox lists what users did at this node that nobody else has acknowledged yet.
func (n *Node) Outbox(context.Context) ([]api.Undelivered, error) { return n.worklists.Outbox(), nil }

// Messages lists what a user is told of instances.
func (n *Node) Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error) {
	out, err := n.worklists.Messages(ctx, q)
	return out, n.explain(err)
}

// UnreadMessages is how many messages a user has not read.
func (n *Node) UnreadMessages(ctx context.Context, user string) (int, error) {
	out, err := n.worklists.Unread(ctx, user)
	return out, n.explain(err)
}

// ReadMessages notes that a user has read messages.
func (n *Node) ReadMessages(ctx context.Context, r api.MessagesRead) error {
	return n.explain(n.worklists.ReadMessages(ctx, r))
}

// FinishItem hands in what a user made of an item.
func (n *Node) FinishItem(ctx context.Context, r api.ItemResult) (*api.Item, error) {
	out, err := n.worklists.Finish(ctx, r)
	return out, n.explain(err)
}

// Roles lists the roles that users have.
func (n *Node) Roles(ctx context.Context) ([]api.Role, error) {
	out, err := n.users.Roles(ctx)
	return out, n.explain(err)
}

// GrantRole gives a user a role.
func (n *Node) GrantRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := n.users.ChangeRole(r, true)
	return out, n.explain(err)
}

// RevokeRole takes a role away from a user.
func (n *Node) RevokeRole(_ context.Context, r api.RoleRequest) (*api.UserRoles, error) {
	out, err := n.users.ChangeRole(r, false)
	return out, n.explain(err)
}

// diagram draws an instance with the states of its tasks.
func (k *desk) diagram(ctx context.Context, ref, format string) ([]byte, error) {
	id, there, err := k.locate(ref)
	if err != nil {
		return nil, err
	}
	in, err := k.show(ctx, id.String())
	if err != nil {
		return nil, err
	}
	if of, language, _ := strings.Cut(format, "-"); of == show.FormatGantt {
		return show.Gantt(in, k.clock.Now().Wall, language, time.Local)
	}
	if err := show.Undrawable(in); err != nil {
		return nil, err
	}
	sum, _ := k.index.Get(id)
	hash := sum.Definition
	if there != nil {
		hash = there[0].Definition
	}
	def, err := k.definitions.Get(hash)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, api.Errorf(api.Failed, "the definition of this instance, %s@%d, is not known here", in.Workflow,
			in.Version).
			WithHint("draw it on a node that takes part")
	}
	if err != nil {
		return nil, err
	}
	return show.Draw(def.Def, in, format)
}
