package state

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is the convergence rule: which attempt is in charge of a slot and
// which success counts, as a function of the set of counted facts. It is told for
// readers in docs/design.md, Convergence; here it is as this code does it.
//
//	            verdict by the guardian of the left side
//	  T ──────────────▶ T′ ──────▶ success′ ──▶ D started, built upon success′
//	  │
//	  └──────────────▶ success ──▶ E started, built upon success
//	            (the holder was only cut off)
//
//  0. An attempt that its holder passed on is followed by the one that took it,
//     whatever others concluded about the first.
//  1. A verdict's action counts unless its author knew of the attempt's
//     success. Of several on one attempt, the higher office (none, if its author
//     knew of a higher one), then the author earlier in the succession, then the
//     lower hash, says what follows; the attempts that the others assigned remain
//     attempts. How many verdicts on one attempt count, and how often one author
//     finds others for a slot, is limited by what the author knew (choreo/fact/limits.go).
//     A verdict that ends a slot is followed by another attempt where the attempt's holder
//     began one by order of the responsible user (orders.go), or another in its place (instead.go).
//  2. A start consumed, of each slot that its rule mentions, what it names; else the
//     success of the one attempt whose success it knew, and of several nothing (consumed.go).
//     Slots are judged against rule order, consumers before what they
//     consumed. A success that a standing success consumed stands; so does one
//     that the running current attempt of a slot without success consumed. A
//     success that only consumers in held slots consumed is held back with them.
//  3. Else one is picked by reconcile. For keep-replacement, while a started
//     attempt of equal or higher number lives, the slot is held: no pick. What
//     counts are the verdicts before an attempt: passing on replaces nothing.
//  4. Several that were built upon all stand: the slot is duplicated.
//  5. The rest is superseded, and undone once that is settled (compensate.go).
//  6. Data: of the standing successes' writes the one with the highest
//     (logical time, hash) is current; concurrent ones are a conflict.
//  7. An author in a fresh chain knows what its other chains show that it knew, by
//     facts that count (forget.go). A verdict does not count (1) if its author knew of the success
//     elsewhere; its attempt remains, and its success goes behind all others in 3.
//     So does a success whose author knew elsewhere of another's. What an author
//     put behind in this way its own starts, if they deny the same, do not hold up
//     (2). A success whose author knew elsewhere that it had given the attempt up
//     stands only where others built upon it. An attempt built upon what the
//     earliest start says that its success knew.
//  8. What an author knew is held against it only if that counted for it for certain:
//     neither it nor anything in its past comes after a fork, in a part of a chain that
//     does not count by itself (choreo/log/fork.go). Such a thing counts, or does not, wherever it
//     is and whatever else is known. Of all else nobody can tell whether it counted for
//     that author: it may have known of the fork, and not of others who had built upon
//     the branch. So what it wrote is not refused, and goes behind as in 7. A verdict is
//     void against a success that its author knew. A success goes behind all others in 3
//     if its start knew another attempt's. It stands only where others built upon it if
//     its author knew that it had given the attempt up. Its own starts do not hold up
//     (2) what an author put behind in this way, or had given up, if it has forked a chain:
//     of an author that has not, a fork of another may have taken that away.
//
//	one    verdict: a2 to three ┄┄┄ a fork: it does not count ┄┄┄ two had built upon it
//	three     └───▶ success             two: a2 to three ───▶ start: it counts
//
//     So a fork that shows later takes nothing away that an honest author did, if that
//     took part from the start: what such a one knew counts with what it did. Who was
//     brought in later holds nothing up (choreo/log/fork.go): what it began does not count where a
//     fork takes away what that waits for. A liar that forks its chain can do late what it
//     knew to be done, as if it had not heard of it, and undoes nothing by that.
//
// An adopted result (adopting.go) is one more success of its attempt, whoever wrote the adoption down. That its
// holder had given the attempt up is not held against it.
//
// docs/models/convergence.py is a model of rules 1 to 5 and 7.

// conclude applies rules 1 to 5 to the slots with new facts, and as far back
// from them as verdicts on what they consumed depend on it.
func (s *State) conclude() {
	q := s.judging[:0]
	for i := 0; i < len(s.dirty); i++ { // what an attempt built upon may change with its success, and adds to them
		sl := s.dirty[i]
		s.weigh(sl)
		s.follow(sl)
		q.add(sl)
	}
	for len(q) > 0 {
		sl := heap.Pop(&q).(*Slot)
		sl.awaits = false
		if s.pickStanding(sl) {
			s.touch(sl)
		}
		for _, u := range sl.Attempts {
			s.stake(u, &q)
		}
	}
	s.judging = q
}

// stake has what an attempt was built upon hear what the attempt claims by now.
func (s *State) stake(u *Attempt, q *Judging) {
	claims := s.Claim(u)
	if claims == u.claims {
		return
	}
	for from := range s.BuiltOn(u, u.Base) {
		s.log.Steps++
		best := s.BuiltUpon(from)
		from.claimed[u.claims]--
		from.claimed[claims]++
		if d := from.denials; d != nil && d.of[u] == denies {
			d.claimed[u.claims]--
			d.claimed[claims]++
		}
		if s.BuiltUpon(from) != best {
			q.add(from.Slot)
		}
	}
	u.claims = claims
}

// follow walks the chain of verdicts to the attempt in charge (rule 1).
func (s *State) follow(sl *Slot) {
	defer s.held(sl, sl.Current.Partner)
	sl.Current, sl.Outcome, sl.Pending = s.root(sl), nil, nil
	for {
		s.log.Steps++
		if next := s.TakenOver(sl.Current); next != nil {
			sl.Current = next
			continue
		}
		r := s.Prevailing(sl.Current.Rulings)
		if r == nil {
			return
		}
		if r.Action.Kind != workflow.FailContingency {
			if next := s.doneAgain(sl.Current); next != nil {
				sl.Current = next
				continue
			}
			sl.Outcome = r
			return
		}
		next := r.Next
		if next == nil {
			next = s.firstAssigned(sl.Current, r)
		}
		if next == nil {
			sl.Pending = r
			return
		}
		sl.Current = next
	}
}

// held notes who holds a slot that asks for data, for those that write them.
func (s *State) held(sl *Slot, was workflow.PartnerID) {
	is := sl.Current.Partner
	if is == was {
		return
	}
	for _, it := range sl.asks {
		s.log.Steps++
		it.holders[is]++
		if it.holders[was]--; it.holders[was] == 0 {
			delete(it.holders, was)
		}
	}
}

// pickStanding applies rules 2 to 4 to one slot whose consumers have been judged. It
// reports whether anything came out otherwise than before.
func (s *State) pickStanding(sl *Slot) (changed bool) {
	s.Judged = sl
	was, before := judgement{sl.Pick, sl.Held}, sl.verdicts()
	sl.Pick, sl.Held, sl.Duplicated = nil, false, false
	var all, built, perhaps []*Attempt // all: without those that only what was built upon them holds up
	for _, a := range sl.Attempts {
		s.log.Steps++
		if a.Stands = Superseded; a.Success() == nil {
			continue
		}
		if !a.overruled {
			all = append(all, a)
		}
		switch s.BuiltUpon(a) {
		case Standing:
			built = append(built, a)
		case HeldBack:
			perhaps = append(perhaps, a)
		}
	}
	switch {
	case len(built) > 0: // 2, 4
		mark(perhaps, HeldBack)
		mark(built, Standing)
		sl.Duplicated = len(built) > 1
		sl.Pick = preferred(sl.Task.Reconcile, built)
	case s.awaitsReplacement(sl, all): // 3, held
		sl.Held = true
		mark(all, HeldBack)
		mark(perhaps, HeldBack)
	case len(perhaps) > 0: // 2, held back with their consumers
		mark(perhaps, HeldBack)
		sl.Pick = preferred(sl.Task.Reconcile, perhaps)
	case len(all) > 0: // 3
		sl.Pick = preferred(sl.Task.Reconcile, all)
		sl.Pick.Stands = Standing
	}
	return was != judgement{sl.Pick, sl.Held} || !slices.Equal(before, sl.verdicts())
}

// judgement is what others may build upon a slot.
type judgement struct {
	pick *Attempt
	held bool
}

// verdicts is how the slot's attempts were judged.
func (sl *Slot) verdicts() []Stands {
	out := make([]Stands, len(sl.Attempts))
	for i, a := range sl.Attempts {
		out[i] = a.Stands
	}
	return out
}

func mark(as []*Attempt, how Stands) {
	for _, a := range as {
		a.Stands = how
	}
}

// BuiltUpon is the best claim among the consumers of one success (rule 2). Where something
// stands against it, those who deny that claim nothing.
func (s *State) BuiltUpon(a *Attempt) Stands {
	all := a.claimed
	if a.Doubted() {
		for how, n := range s.deniedBy(a).claimed {
			all[how] -= n
		}
	}
	return all.best()
}

// Claim says whether an attempt stands up for what it consumed.
func (s *State) Claim(u *Attempt) Stands {
	switch sl := u.Slot; {
	case u.Success() != nil:
		return u.Stands
	case u.Start == nil || u.Off != nil || sl.Current != u || sl.over():
		return Superseded
	case sl.Held:
		return HeldBack
	case slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool { return a.Success() != nil && !a.overruled }):
		return Superseded
	}
	return Standing
}

// over reports whether verdicts ended the attempt in charge for its holder, too:
// its own, even if another's prevails, or a release. After a presumed block, or
// while nobody can take a contingency that a presumed failure asked for, its
// holder may start or go on (docs/design.md, idea 5).
func (sl *Slot) over() bool {
	return sl.Current.EndedByHolder() || (sl.Outcome != nil && sl.Outcome.Action.Kind != workflow.FailBlock)
}

// awaitsReplacement reports whether the slot is held (rule 3): the choice is
// keep-replacement and a started attempt that would be preferred to all
// successes still lives.
func (s *State) awaitsReplacement(sl *Slot, all []*Attempt) bool {
	c := sl.Current
	lives := c.Start != nil && c.Off == nil && c.Success() == nil && sl.Outcome == nil && sl.Pending == nil
	return sl.Task.Reconcile == workflow.KeepReplacement && lives && len(all) > 0 &&
		!slices.ContainsFunc(all, func(a *Attempt) bool { return a.replaced > c.replaced })
}

// preferred picks among successes by the author's choice.
func preferred(r workflow.Reconcile, as []*Attempt) *Attempt {
	return slices.MinFunc(as, func(a, b *Attempt) int {
		n := cmp.Compare(min(len(a.Blame), 1), min(len(b.Blame), 1))
		if n != 0 {
			return n
		}
		switch r {
		case workflow.KeepOriginal:
			n = cmp.Compare(a.replaced, b.replaced)
		case workflow.KeepReplacement:
			n = cmp.Compare(b.replaced, a.replaced)
		}
		if n != 0 {
			return n
		}
		return log.ByTime(a.Success(), b.Success())
	})
}

// Wanted reports whether the slot still waits for this attempt. A slot is held
// for the sake of the attempt in charge, so that one goes on too. One that its holder
// called off does not, though others only presume that it failed. A transition is wanted while it is pending.
func (s *State) Wanted(a *Attempt) bool {
	switch {
	case a.Fired != nil:
		return s.Wanted(a.Fired.Flow) && s.flow.Goes(a)
	case a.Undoes != nil:
		return a.Undoes.Undo == a && a.Undoes.Undoing()
	}
	sl := a.Slot
	return sl.Dropped == nil && sl.Pick == nil && sl.Current == a && a.Off == nil && !sl.over() && s.cancel == nil
}
