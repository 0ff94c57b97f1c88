package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Leaving, unlike going down (depart), is giving one's work on first: nothing is
// judged then. What has begun, and what nobody takes, stays with this node; it goes on
// with that, takes nothing new on, and leaves when nothing stays. Until then nothing of
// it is stored: a restart takes it back.

// ErrLeft is what New says of a node that left its mesh for good.
var ErrLeft = errors.New("left its mesh for good: partners take nothing from it any more")

// metaLeft is the key of the moment at which the node left for good.
const metaLeft = "left"

// LeftKey is the key of the entry in a node's store which says that it left for good.
func LeftKey() []byte { return metaKey(metaLeft) }

const (
	leaveWait  = 10 * time.Second // for others to acknowledge what they were given
	leaveAgain = time.Second      // between attempts to leave
	tellWait   = 2 * time.Second  // for the disk, before partners are told what has begun
)

// departure is how this node goes: down for a while, or out of the mesh, with its work
// given on first.
type departure struct {
	*contacts
	crew      *crew
	people    farewell
	wallet    named
	own       publisher
	partners  *assignment.Partners
	elections voting
	announce  func() error
	inAWhile  func(since time.Duration) time.Duration // roster.Topic.TellStart

	departs atomic.Bool   // starts are told at once, not in a while
	leaving atomic.Bool   // it takes nothing new on, and goes when nothing stays
	patient atomic.Int64  // until when (Awake) it waits for each that can be reached to hear of what it gave on
	forGood atomic.Bool   // it will not come back
	hasLeft chan struct{} // closed when it has left
}

// farewell is what leaving asks of the partner list.
type farewell interface {
	Get(workflow.PartnerID) (membership.Partner, bool)
	name(workflow.PartnerID) string
	say(error) string
}

// named is this node by its certificate.
type named interface{ Chain() trust.Chain }

// publisher publishes this node's record.
type publisher interface {
	Publish(fn func(*membership.Record)) (membership.Record, error)
	ConnectionTime() time.Duration
	// Described is what this node says of itself, as its user set it.
	Described() membership.Record
}

// voting is what leaving asks of elections.
type voting interface {
	Votes(workflow.PartnerID) (bool, error)
	StandDown()
}

// mayComeBack returns ErrLeft if this node left for good.
func mayComeBack(store Store) error {
	switch _, err := store.Get(LeftKey()); {
	case errors.Is(err, kv.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return ErrLeft
}

// leave gives this node's work on, says what stays, and has the node go as soon as
// nothing stays.
func (d *departure) leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	if r.ForGood {
		if err := d.mayLeaveForGood(); err != nil {
			return nil, err
		}
	}
	if r.Check {
		return &api.Leaving{ForGood: r.ForGood, Given: []api.Given{}, Stays: []api.Stay{}}, nil
	}
	if r.ForGood {
		d.forGood.Store(true)
	}
	first := d.leaving.CompareAndSwap(false, true)
	if first {
		d.patient.Store(int64(d.clock.Now().Awake + leaveWait))
	}
	if err := d.announce(); err != nil {
		if first {
			d.leaving.Store(false)
			d.forGood.Store(false)
		}
		return nil, err
	}
	out, err := d.giveOnAll(ctx)
	if first { // it leaves, whether the caller still waits or not
		d.crew.running.Go(d.leaveWhenDone)
	}
	if err != nil {
		return nil, err
	}
	out.Left = len(out.Stays) == 0 && d.gone(ctx)
	return out, nil
}

// tellStart is when partners are told of a start.
func (d *departure) tellStart(since time.Duration) time.Duration {
	if d.departs.Load() {
		return since
	}
	return d.inAWhile(since)
}

// giveOnAll gives on what can be, and waits a while until others have acknowledged it.
func (d *departure) giveOnAll(ctx context.Context) (*api.Leaving, error) {
	out := &api.Leaving{ForGood: d.forGood.Load(), Given: []api.Given{}}
	for until := d.clock.Now().Awake + leaveWait; ; {
		given, stays, err := d.giveOn(ctx)
		if err != nil {
			return nil, err
		}
		out.Given, out.Stays = append(out.Given, given...), stays
		wait := slices.ContainsFunc(stays, func(s api.Stay) bool { return s.Task == "" })
		if !wait || d.clock.Now().Awake > until {
			return out, nil
		}
		select {
		case <-d.clock.After(leaveWait / 50):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// gone reports whether the node has left, durably where it is for good; it waits for
// that a moment.
func (d *departure) gone(ctx context.Context) bool {
	select {
	case <-d.hasLeft:
		return true
	case <-d.clock.After(leaveWait):
	case <-ctx.Done():
	}
	return false
}

// mayLeaveForGood says what keeps a node from leaving for good.
func (d *departure) mayLeaveForGood() error {
	if d.member.ID() == d.member.Mesh.Founder {
		return api.Errorf(api.Refused, "the founder does not leave mesh %s for good: nobody else makes delegates, or replaces voters who are lost", d.member.Mesh.Name).
			WithHint("mutirao leave gives its work on; keep its folder")
	}
	votes, err := d.elections.Votes(d.member.ID())
	if err != nil {
		return err
	}
	if votes {
		return api.Errorf(api.Refused, "this node may vote: without it a majority is harder to reach for good").
			WithHint("set who votes without it first, on the founder or a delegate: mutirao coordinator electorate --set …")
	}
	return nil
}

// leaveWhenDone leaves as soon as nothing stays here.
func (d *departure) leaveWhenDone() {
	for {
		_, stays, err := d.giveOn(context.Background())
		if err == nil && len(stays) == 0 {
			if err = d.goAway(); err == nil {
				return
			}
		}
		if err != nil {
			d.log.Warn("this node cannot leave yet", "error", err)
		}
		select {
		case <-d.clock.After(leaveAgain):
		case <-d.crew.stopped:
			return
		}
	}
}

// goAway tells the others that this node has left, and ends Run. That it is for good
// is durable first: a partner that was told so takes nothing from this node any
// more.
func (d *departure) goAway() error {
	how := membership.Leaves
	if d.forGood.Load() {
		how = membership.LeavesForGood
		now := trust.WallOf(d.clock.Now().Wall)
		if err := d.store.CommitWait([]kv.Write{{Key: LeftKey(), Value: []byte(now.String())}}); err != nil {
			return err
		}
	}
	d.depart(how, 0)
	close(d.hasLeft)
	return nil
}

// giveOn passes on what can be passed on of all instances, and lists what stays.
func (d *departure) giveOn(ctx context.Context) ([]api.Given, []api.Stay, error) {
	var given []api.Given
	stays := []api.Stay{}
	for _, s := range d.crew.shards {
		g, st, err := d.giveOnFrom(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		given, stays = append(given, g...), append(stays, st...)
	}
	return given, stays, nil
}

// giveOnFrom is giveOn of one shard's instances. The caller may give up before the
// shard has done it, so what it did is read only after that.
func (d *departure) giveOnFrom(ctx context.Context, s *shard) ([]api.Given, []api.Stay, error) {
	var given []api.Given
	var stays []api.Stay
	var of []workflow.InstanceID
	aside := func(id workflow.InstanceID) {
		stays = append(stays, api.Stay{Instance: id.String(), Reason: "it is in quarantine: mutirao doctor says why"})
	}
	done := make(chan error, 1)
	err := d.crew.hand(ctx, s, event{apply: func(s *shard) error {
		s.each(func(id workflow.InstanceID, h *held) {
			g, st := d.giveOnOf(s, id, h)
			given, stays, of = append(given, g...), append(stays, st...), append(of, id)
		})
		if d.forGood.Load() {
			stays = append(stays, d.undecided(s)...)
		}
		for id := range s.aside {
			aside(id)
		}
		return nil
	}, after: func(err error) {
		for _, id := range of {
			if !s.n.faults.has(id) { // else nothing of it was passed on: it failed as that was to be durable
				continue
			}
			given = slices.DeleteFunc(given, func(x api.Given) bool { return x.Instance == id.String() })
			stays = slices.DeleteFunc(stays, func(x api.Stay) bool { return x.Instance == id.String() })
			aside(id)
		}
		done <- err
	}}, done)
	if err != nil {
		return nil, nil, err
	}
	return given, stays, nil
}

// giveOnOf is giveOn of one instance.
func (d *departure) giveOnOf(s *shard, id workflow.InstanceID, h *held) (given []api.Given, stays []api.Stay) {
	var passed []choreo.GivenOn
	var left []choreo.Stay
	d.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
		passed, left = h.m.GiveOn(d.wallet.Chain().Leaf().Name+" leaves its mesh", s.moment(), p)
		return h.m.Given()
	})
	name := h.def.Def.Name
	given = d.tellGiven(h, passed)
	stays = d.tellStays(h, left)
	if len(passed)+len(left) > 0 {
		s.touch(h)
	}
	patient := s.now.Awake < time.Duration(d.patient.Load())
	if len(passed) > 0 || h.m.Untold(d.partners, patient) {
		stays = append(stays, api.Stay{
			Instance: id.String(), Workflow: name, Reason: "not everybody has acknowledged yet what happened here",
		})
	}
	return given, stays
}

// passOn passes on what this node was only given to perform and nobody here has taken, and notes in which instances it
// did. It returns what it passed on and what nobody else can do now, and whether somebody who can be reached has still to
// hear of that.
func (d *departure) passOn(
	ctx context.Context, passed map[workflow.InstanceID]bool,
) (given []api.Given, stays []api.Stay, waits bool, err error) {
	for _, s := range d.crew.shards {
		// The shard has its own of all this, as the caller may give up before it answers.
		known, found, untold := maps.Clone(passed), map[workflow.InstanceID][]api.Given{}, false
		var left []api.Stay
		done := make(chan error, 1)
		err := d.crew.hand(ctx, s, event{apply: func(s *shard) error {
			s.each(func(id workflow.InstanceID, h *held) {
				now, not := d.passOnOf(s, h)
				if left = append(left, not...); len(now) > 0 {
					found[id] = now
				}
				untold = untold || (known[id] || found[id] != nil) && h.m.Untold(d.partners, true)
			})
			return nil
		}, after: func(err error) {
			maps.DeleteFunc(found, func(id workflow.InstanceID, _ []api.Given) bool { return s.n.faults.has(id) })
			done <- err
		}}, done)
		if err != nil {
			return given, nil, false, err
		}
		stays = append(stays, left...)
		for id, now := range found {
			passed[id], given = true, append(given, now...)
		}
		waits = waits || untold
	}
	slices.SortFunc(given, func(x, y api.Given) int {
		return cmp.Or(cmp.Compare(x.Instance, y.Instance), cmp.Compare(x.Task, y.Task))
	})
	return given, stays, waits, nil
}

// passOnOf is passOn of one instance.
func (d *departure) passOnOf(s *shard, h *held) ([]api.Given, []api.Stay) {
	var given []choreo.GivenOn
	var left []choreo.Stay
	name := d.wallet.Chain().Leaf().Name
	d.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
		given, left = h.m.GiveUntaken(name+" goes out of reach", s.moment(), p)
		return h.m.Given()
	})
	for _, x := range given {
		d.log.Info("passed on before this node is out of reach", "instance", h.m.Instance(), "task", x.Task,
			"to", d.people.name(x.To.Partner))
	}
	if len(given) > 0 {
		s.touch(h)
	}
	return d.tellGiven(h, given), d.tellStays(h, left)
}

// tellGiven says what was passed on of an instance, for people.
func (d *departure) tellGiven(h *held, given []choreo.GivenOn) (out []api.Given) {
	for _, x := range given {
		item := ""
		if t := h.m.Definition().Task(x.Task); t != nil && !t.ByNode() {
			r := worklists.Row{Instance: h.m.Instance(), Item: x.Item}
			item = r.ID()
		}
		out = append(out, api.Given{
			ID: item, Instance: h.m.Instance().String(), Subject: h.subject(), Workflow: h.def.Def.Name,
			Task: x.Task, Partner: d.people.name(x.To.Partner),
			Reason: x.To.Why,
		})
	}
	return out
}

// tellStays says what stays of an instance, for people.
func (d *departure) tellStays(h *held, left []choreo.Stay) (out []api.Stay) {
	for _, x := range left {
		out = append(out, api.Stay{
			Instance: h.m.Instance().String(), Subject: h.subject(), Workflow: h.def.Def.Name, Task: x.Task, State: x.State,
			Reason: d.people.say(x.Why),
		})
	}
	return out
}

// undecided is what failed here in instances that can still go on, once this node leaves for good: whoever decides about it
// can have only others do something then.
func (d *departure) undecided(s *shard) (stays []api.Stay) {
	for _, id := range s.n.index.GoingOn() {
		if d.crew.shardOf(id) != s {
			continue
		}
		h, err := s.find(id)
		if err != nil {
			continue // what cannot be read is in quarantine, and stays for that
		}
		for _, a := range h.m.Asks() {
			if a.Partner != d.member.ID() || a.Presumed || a.Left {
				continue
			}
			stays = append(stays, api.Stay{
				Instance: id.String(), Workflow: h.def.Def.Name, Task: a.Task, State: workflow.Failed,
				Reason: fmt.Sprintf("%s decides about it, and when this node is gone another has to do what is decided: mutirao task again, skip or continue %s %s, or mutirao cancel %s",
					d.partners.AnswersFor(h.m), id, a.Task, id),
			})
		}
		s.touch(h)
	}
	return stays
}

// left says how the node left, if it did; else membership.Staying.
func (d *departure) left() membership.Going {
	select {
	case <-d.hasLeft:
		p, _ := d.people.Get(d.member.ID())
		return p.Record.Going
	default:
		return membership.Staying
	}
}

// tellBegun tells partners of the starts of which they would be told in a while, and what is here of what they sent: then
// this node is gone, and to them the task would be READY, and what they sent unheard, until it is back.
func (d *departure) tellBegun() {
	d.departs.Store(true)
	defer d.departs.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), tellWait)
	defer cancel()
	for _, s := range d.crew.shards {
		done := make(chan error, 1)
		err := d.crew.hand(ctx, s, event{apply: func(s *shard) error {
			s.only(func(h *held) bool { return h.m.Begun() }, func(_ workflow.InstanceID, h *held) { s.touch(h) })
			s.acknowledgeAll()
			return nil
		}, after: func(err error) { done <- err }}, done)
		if err != nil {
			d.log.Warn("partners are not told what has just begun here", "error", err)
		}
	}
}

// depart tells partners what has begun here, gives the office up, if this node holds it,
// so that nobody waits for its lease to run out, and tells the others that this node goes, and
// for how long, if that is known. One that goes down says no more that it takes nothing on: what
// is bound to it, by hand or by a definition, waits for it.
func (d *departure) depart(how membership.Going, away time.Duration) {
	d.tellBegun()
	d.elections.StandDown()
	takes := d.own.Described().Absence
	r, err := d.own.Publish(func(r *membership.Record) {
		if r.Going, r.Away = how, away; how == membership.GoesDown {
			r.Absence = takes
		}
	})
	if err == nil {
		d.broadcast(&wire.Message{Records: [][]byte{membership.EncodeRecord(r)}})
	}
}
