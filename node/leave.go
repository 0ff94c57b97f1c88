package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Leaving, unlike going down (depart), is giving one's work on first: nothing is
// judged then. What has begun, and what nobody takes, stays with this node; it goes on
// with that, takes nothing new on, and leaves when nothing stays. Until then nothing of
// it is stored: a restart takes it back.

// ErrLeft is returned by New for a node that left its mesh for good.
var ErrLeft = errors.New("this node left its mesh for good")

// metaLeft is the key of the moment at which the node left for good.
const metaLeft = "left"

const (
	leaveWait  = 10 * time.Second // for others to acknowledge what they were given
	leaveAgain = time.Second      // between attempts to leave
)

// mayComeBack returns ErrLeft if this node left for good.
func (n *Node) mayComeBack() error {
	switch _, err := n.store.Get(metaKey(metaLeft)); {
	case errors.Is(err, kv.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return ErrLeft
}

// Leave gives this node's work on, says what stays, and has the node go as soon as
// nothing stays.
func (n *Node) Leave(ctx context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	if r.ForGood {
		if err := n.mayLeaveForGood(); err != nil {
			return nil, err
		}
		n.forGood.Store(true)
	}
	first := n.leaving.CompareAndSwap(false, true)
	if err := n.announce(n.carrier.Addrs()); err != nil {
		if first {
			n.leaving.Store(false)
			n.forGood.Store(false)
		}
		return nil, n.shown(err)
	}
	out, err := n.giveOnAll(ctx)
	if first { // it leaves, whether the caller still waits or not
		n.running.Go(n.leaveWhenDone)
	}
	if err != nil {
		return nil, n.shown(err)
	}
	out.Left = len(out.Stays) == 0 && n.gone(ctx)
	return out, nil
}

// giveOnAll gives on what can be, and waits a while until others have acknowledged it.
func (n *Node) giveOnAll(ctx context.Context) (*api.Leaving, error) {
	out := &api.Leaving{ForGood: n.forGood.Load(), Given: []api.Given{}}
	for until := n.clock.Now().Awake + leaveWait; ; {
		given, stays, err := n.giveOn(ctx)
		if err != nil {
			return nil, err
		}
		out.Given, out.Stays = append(out.Given, given...), stays
		wait := slices.ContainsFunc(stays, func(s api.Stay) bool { return s.Task == "" })
		if !wait || n.clock.Now().Awake > until {
			return out, nil
		}
		select {
		case <-n.clock.After(leaveWait / 50):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// gone reports whether the node has left, durably where it is for good; it waits for
// that a moment.
func (n *Node) gone(ctx context.Context) bool {
	select {
	case <-n.hasLeft:
		return true
	case <-n.clock.After(leaveWait):
	case <-ctx.Done():
	}
	return false
}

// mayLeaveForGood says what keeps a node from leaving for good.
func (n *Node) mayLeaveForGood() error {
	if n.member.ID() == n.member.Mesh.Founder {
		return api.Errorf(api.Refused, "the founder does not leave mesh %s for good: nobody else makes delegates, or replaces voters who are lost", n.member.Mesh.Name).
			WithHint("mutirao leave gives its work on; keep its folder")
	}
	v, err := n.office.view()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(v.head.Voters, func(x membership.Voter) bool { return x.Partner == n.member.ID() }) {
		return api.Errorf(api.Refused, "this node may vote: without it a majority is harder to reach for good").
			WithHint("set who votes without it first, on the founder or a delegate: mutirao coordinator electorate --set …")
	}
	return nil
}

// leaveWhenDone leaves as soon as nothing stays here.
func (n *Node) leaveWhenDone() {
	for {
		_, stays, err := n.giveOn(context.Background())
		if err == nil && len(stays) == 0 {
			if err = n.goAway(); err == nil {
				return
			}
		}
		if err != nil {
			n.log.Warn("this node cannot leave yet", "error", err)
		}
		select {
		case <-n.clock.After(leaveAgain):
		case <-n.stopped:
			return
		}
	}
}

// goAway tells the others that this node has left, and ends Run. That it is for good
// is durable first: a partner that was told so takes nothing from this node any
// more.
func (n *Node) goAway() error {
	how := membership.Leaves
	if n.forGood.Load() {
		how = membership.LeavesForGood
		now := membership.WallOf(n.clock.Now().Wall)
		if err := n.store.CommitWait([]kv.Write{{Key: metaKey(metaLeft), Value: []byte(now.String())}}); err != nil {
			return err
		}
	}
	n.depart(how)
	close(n.hasLeft)
	return nil
}

// giveOn passes on what can be passed on of all instances, and lists what stays.
func (n *Node) giveOn(ctx context.Context) ([]api.Given, []api.Stay, error) {
	var given []api.Given
	stays := []api.Stay{}
	for _, s := range n.shards {
		g, st, err := n.giveOnFrom(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		given, stays = append(given, g...), append(stays, st...)
	}
	return given, stays, nil
}

// giveOnFrom is giveOn of one shard's instances. The caller may give up before the
// shard has done it, so what it did is read only after that.
func (n *Node) giveOnFrom(ctx context.Context, s *shard) ([]api.Given, []api.Stay, error) {
	var given []api.Given
	var stays []api.Stay
	done := make(chan error, 1)
	err := n.handTo(ctx, s, event{apply: func(s *shard) error {
		s.each(func(id workflow.InstanceID, h *held) {
			g, st := n.giveOnOf(s, id, h)
			given, stays = append(given, g...), append(stays, st...)
		})
		for id := range s.aside {
			stays = append(stays, api.Stay{Instance: id.String(), Reason: "it is in quarantine: mutirao doctor says why"})
		}
		return nil
	}, after: func(err error) { done <- err }}, done)
	if err != nil {
		return nil, nil, err
	}
	return given, stays, nil
}

// giveOnOf is giveOn of one instance.
func (n *Node) giveOnOf(s *shard, id workflow.InstanceID, h *held) (given []api.Given, stays []api.Stay) {
	passed, left := h.m.GiveOn(n.people.chain().Leaf().Name+" leaves", s.moment(), n.people)
	name := h.def.def.Name
	for _, x := range passed {
		given = append(given, api.Given{Instance: id.String(), Workflow: name, Task: x.Task, Partner: n.people.name(x.To.Partner), Reason: x.To.Why})
	}
	for _, x := range left {
		stays = append(stays, api.Stay{Instance: id.String(), Workflow: name, Task: x.Task, State: x.State, Reason: n.people.say(x.Why)})
	}
	if len(passed)+len(left) > 0 {
		s.touch(h)
	}
	if len(passed) > 0 || h.m.OnlyHere(n.people) {
		stays = append(stays, api.Stay{Instance: id.String(), Workflow: name, Reason: "nobody else has acknowledged yet all that happened here"})
	}
	return given, stays
}

// Left says how the node left, if it did; else membership.Staying.
func (n *Node) Left() membership.Going {
	select {
	case <-n.hasLeft:
		p, _ := n.people.get(n.member.ID())
		return p.Record.Going
	default:
		return membership.Staying
	}
}
