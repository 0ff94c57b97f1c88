package node

import (
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file hands what partners say of instances to the shards that own them, once it is verified.

// Greet: of instances both sides begin to speak after the greeting (met).
func (x *instances) Greet(workflow.PartnerID, *wire.Message) {}

// met has the shards say to a partner that was just connected what is here.
func (x *instances) met(p workflow.PartnerID) {
	for _, s := range x.shards {
		x.post(s, event{apply: func(s *shard) error { s.greet(p); return nil }})
	}
}

// Take hands on what a partner says of instances.
func (x *instances) Take(p workflow.PartnerID, m *wire.Message) {
	for i := range m.Facts {
		if !x.faults.has(m.Facts[i].Instance) { // else it would be verified for nothing
			x.routeFacts(p, &m.Facts[i])
		}
	}
	for _, r := range m.Refusals {
		if r.Why == wire.RefusedStranger {
			x.roster.Introduce(p, r.Author)
			continue
		}
		if x.faults.has(r.Instance) {
			continue
		}
		x.post(x.shardOf(r.Instance), event{
			of: r.Instance, from: p, apply: func(s *shard) error { return s.takeRefusal(p, r) },
		})
	}
	for i := range m.Heads {
		w := &m.Heads[i]
		if x.faults.has(w.Instance) {
			continue
		}
		x.post(x.shardOf(w.Instance), event{
			of: w.Instance, from: p, apply: func(s *shard) error { return s.takeHeads(p, w) },
			after: x.logRefusal(p, w.Instance),
		})
	}
}

// Tick: what is due of instances their shards know.
func (x *instances) Tick(moment.Now) time.Duration { return moment.Never }

// routeFacts verifies facts, on the peer's own goroutine, and hands them on.
func (x *instances) routeFacts(p workflow.PartnerID, f *wire.Facts) {
	l, _ := x.link(p)
	if l == nil {
		return
	}
	facts, err := l.read(f, &x.verifier)
	if err == nil {
		err = x.checkRights(p, facts)
	}
	if err != nil {
		why := "facts-malformed"
		if errors.Is(err, fact.ErrForged) {
			why = "facts-forged"
		}
		x.refuse(why, p)
		x.log.Warn("facts refused", "from", p, "instance", f.Instance, "error", err)
		return
	}
	if author := x.stranger(p, facts); author != "" {
		x.refuse("facts-of-strangers", p)
		x.log.Info("facts put off", "from", p, "instance", f.Instance, "of", author,
			"because", "it is not on the partner list")
		x.roster.Miss(author)
		x.transmit(p, &wire.Message{Refusals: []wire.Refusal{{Instance: f.Instance, Why: wire.RefusedStranger,
			Author: author}}})
		return
	}
	x.library.ReadAhead(p, f)
	size := 0
	for _, w := range f.Facts {
		size += len(w.Raw)
	}
	if !l.queue(size, x.crew) {
		return
	}
	posted := x.post(x.shardOf(f.Instance), event{
		of: f.Instance, from: p, taken: func() { l.done(size) },
		apply: func(s *shard) error { return s.takeFacts(p, f, facts) }, after: x.logRefusal(p, f.Instance),
	})
	if !posted {
		l.done(size)
	}
}

// logRefusal counts that something was not taken in of what a partner says of an instance.
// Where this program failed at the instance, that is not the partner's doing.
func (x *instances) logRefusal(p workflow.PartnerID, id workflow.InstanceID) func(error) {
	return func(err error) {
		if err == nil || x.faults.has(id) {
			return
		}
		x.refuse("facts-not-taken", p)
		x.log.Warn("message not taken", "from", p, "instance", id, "error", err)
	}
}

// reconsider has the instances that a change of p concerns decide again.
func (x *instances) reconsider(p workflow.PartnerID) {
	x.have(func(s *shard) error {
		s.touchConcerned(p)
		return nil
	})
}

// peopleChanged has those instances look at people's work again in which somebody has some, or some waits for somebody.
func (x *instances) peopleChanged() {
	x.have(func(s *shard) error {
		s.only(func(h *held) bool { return len(h.refused) > 0 }, func(_ workflow.InstanceID, h *held) { s.beginAgain(h) })
		s.only(func(h *held) bool { return h.m.Claims() || h.m.Waiting() }, func(_ workflow.InstanceID, h *held) {
			h.m.PeopleChanged()
			s.touch(h)
		})
		return nil
	})
}

// touchAll has all instances worked out again.
func (x *instances) touchAll() {
	x.have(func(s *shard) error {
		s.each(func(_ workflow.InstanceID, h *held) { s.touch(h) })
		return nil
	})
}

// checkRights refuses facts that show what is not true and, of what their author
// sends itself, what is not valid any more. The error wraps fact.ErrForged.
func (x *instances) checkRights(from workflow.PartnerID, facts []fact.Received) error {
	if err := x.credentials.check(facts); err != nil {
		return err
	}
	for _, f := range facts {
		if c := f.Fact.Body.Claim; c != nil && len(c.Word) > 0 {
			if _, err := x.credentials.Speaker(c.Word, fact.SpokenOf(f.Fact.Instance, c.Says, c.Nonce)); err != nil {
				return said.Errorf("%w: the word of a person in fact %s of %s: %w", fact.ErrForged, f.ID.Short(),
					f.Fact.Chain.Author, err)
			}
		}
		author, proof := f.Fact.Chain.Author, f.Fact.Body.Credentials
		if len(proof) == 0 {
			continue
		}
		ch, err := x.credentials.chain(author, proof)
		if err == nil && author == from {
			err = x.people.current(ch)
		}
		if err != nil {
			return said.Errorf("%w: the credentials of %s in fact %s: %w", fact.ErrForged, author, f.ID.Short(), err)
		}
	}
	return nil
}

// stranger is an author of facts whom this node does not know to be a member, or to have been
// one: a key can be made up as often as one likes, and each would have the share of a member.
// The record of one that has just joined is on its way, and so are its facts once
// more; the sender itself has shown its certificate. Empty: there is none.
func (x *instances) stranger(from workflow.PartnerID, facts []fact.Received) workflow.PartnerID {
	last := workflow.PartnerID("")
	for _, f := range facts {
		author := f.Fact.Chain.Author
		if author == last {
			continue
		}
		if last = author; author != from && author != x.member.ID() && !x.people.Member(author) {
			return author
		}
	}
	return ""
}
