package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file begins instances.

// startWait is how long Start waits for a second participant to hold the
// instance before it says that it is held only here.
const startWait = 3 * time.Second

// start creates an instance and hands its partitions out.
func (k *desk) start(ctx context.Context, r api.StartRequest) (*api.Started, error) {
	if r.Key != "" {
		was, over, err := k.asked(ctx, r)
		if err != nil || was != nil {
			return was, err
		}
		defer over()
	}
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
	only, refusals, err := k.heldOnlyHere(ctx, b)
	return &api.Started{ID: b.id.String(), Notes: append(b.notes, refusals...), HeldOnlyHere: only}, err
}

// launched is an instance that has begun.
type launched struct {
	id    workflow.InstanceID
	notes []string
	alone bool // only this node takes part in it
	// elsewhere says that another participant is known to have made it durable, or, with false, that all others have
	// refused it; nothing, if its machine is loaded again meanwhile.
	elsewhere chan bool
}

// launch creates an instance. Without a birth it is for itself.
func (k *desk) launch(ctx context.Context, e *library.Definition, r api.StartRequest, b *birth) (launched, error) {
	input, _ := inputs(e.Def, r.Input, r.Null) // what is wrong with it is said below
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
	id, elsewhere, alone := m.Instance(), make(chan bool, 1), len(m.Participants()) == 1
	if err := k.filing.Given(e.Def, id.String(), k.member.ID(), m.Genesis().Body.Genesis.Input, true); err != nil {
		k.ledger.TakeBack(id)
		return launched{}, err
	}
	opening := ctx
	if r.Key != "" { // whoever asks once more is to find it, or that none was begun
		opening = context.WithoutCancel(ctx)
	}
	err = k.do(opening, id, func(s *shard) error {
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
func (s *shard) open(m *choreo.Machine, e *library.Definition, elsewhere chan bool) error {
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
	by, err := k.creator(r, b)
	if err != nil {
		return nil, nil, err
	}
	f, notes, err := k.genesis(e, r, found, b, by)
	if err != nil {
		return nil, nil, err
	}
	f.annex.Uses = uses
	if b == nil {
		notes = append(notes, k.unstartable(e, uses, f.genesis, by)...)
	}
	m, err := choreo.Create(k.creating(by), e.Def, e.Plan, f.genesis, f.annex, choreo.Moment{Wall: k.clock.Now().Wall})
	if err != nil {
		return nil, nil, api.Judge(api.Invalid, err)
	}
	k.ledger.Give(m, f.choices)
	return m, notes, nil
}

// heldOnlyHere waits a while for a second participant to acknowledge, as long as one may. It says who has refused the
// instance if there is none.
func (k *desk) heldOnlyHere(ctx context.Context, b launched) (only bool, refusals []string, err error) {
	if b.alone || !k.waits() { // else nobody can answer before the next step
		return true, nil, nil
	}
	select {
	case is := <-b.elsewhere:
		if is {
			return false, nil, nil
		}
	case <-ctx.Done():
		return true, nil, nil
	case <-k.clock.After(startWait):
	}
	err = k.peek(ctx, b.id, func(h *held) {
		if only = !h.isElsewhere(); only {
			refusals = k.view.Untaken(h.shown())
		}
	})
	return only || err != nil, refusals, err
}

// notTaken says of each instance here that partners do not take in which those are, and why.
func (k *desk) notTaken(ctx context.Context) ([]string, error) {
	found, err := lookAt(ctx, k.crew, func(s *shard) (out []string) {
		s.only(func(h *held) bool { return len(h.refused) > 0 }, func(id workflow.InstanceID, h *held) {
			for _, why := range k.view.Untaken(h.shown()) {
				out = append(out, fmt.Sprintf("instance %s of %s: %s", id, h.def.Def.Name, why))
			}
		})
		return out
	})
	return slices.Concat(found...), err
}

// foundation is what a new instance begins with.
type foundation struct {
	genesis *fact.Genesis
	annex   *fact.Annex
	choices []partition.Choice
}

// genesis works out what a new instance begins with, and what its user should know.
func (k *desk) genesis(
	e *library.Definition, r api.StartRequest, found []datasets.Materialised, b *birth, by users.Who,
) (foundation, []string, error) {
	if err := k.notYet(e.Def, r); err != nil {
		return foundation{}, nil, err
	}
	err := k.mayCreate(e.Def, by, b != nil)
	if err == nil {
		err = k.mayHaveCreated(e.Def, b)
	}
	if err != nil {
		k.count("refused.role", 1)
		return foundation{}, nil, err
	}
	input, err := b.inputs(e.Def, r.Input, r.Null)
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
	s := k.situation(e.Def, mechanism, input)
	s.Awaited = partition.Awaited(plan, k.partners.OwnRoles())
	s.Rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(k.random(8)), 0))
	placed, choices, err := partition.Distribute(plan, s, pins)
	lacking, err := k.performable(plan, r.WaitForRole, err)
	if err != nil {
		return foundation{}, nil, err
	}
	notes = append(notes, lacking...)
	g := &fact.Genesis{
		Definition: e.Hash, Nonce: k.nonce(by, r), Input: input,
		Succession: []workflow.PartnerID{k.member.ID()}, Coordination: workflow.Choreography,
	}
	var who []string
	if b != nil {
		g.Nonce, annex.Parent, g.Responsible, annex.Responsible = b.parent.Nonce(), b.parent, b.responsible, b.decides
	} else if g.Responsible, annex.Responsible, who, err = k.responsible(e.Def, r, by); err != nil {
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

// performable notes which roles of a plan nobody has; an error, unless these may be waited for. It is one too if the
// plan could not be distributed even so (undistributed): then all that stands against it is said at once.
func (k *desk) performable(plan *partition.Plan, waits bool, undistributed error) (notes []string, err error) {
	unperformed := partition.Unperformed(plan, k.partners.Roles())
	switch {
	case undistributed != nil && !waits:
		return nil, api.Judge(api.Refused, errors.Join(unperformed, undistributed))
	case undistributed != nil:
		return nil, api.Judge(api.Refused, undistributed)
	case unperformed == nil:
	case waits:
		notes = strings.Split(unperformed.Error(), "\n")
	default:
		return nil, api.Judge(api.Refused, unperformed).
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
