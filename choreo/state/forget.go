package state

import (
	"slices"
	"sort"

	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what authors knew elsewhere (converge.go, rule 7). A node
// that was restored goes on in a fresh chain, which knows less than the one
// before; a liar may do the same on purpose, and deny what it has shown to know.
//
//	liar, chain 1  ──── seen ─────────────── it knew of the success: f
//	                     │     (the others hear of f)
//	liar, chain 2  genesis ──▶ verdict x ── that does not know of it
//
// Which of x and f came first their author alone knows, and the others show:
// those who knew of f without x against those who knew of x without f. Everybody
// shows one of the two at most, and has shown it once it knows either, so what
// was settled does not change any more.
//
// Only facts that count show anything. A node that knows of another one does not name
// it, so it would not show what it knows, and somebody else need not have it.

// forgot reports whether x denies y: a fact of x's author in another chain knew of
// y, neither of the two knew of the other, and no more of the others had heard of
// x first than of that fact.
func (s *State) forgot(x, y *log.Entry) bool {
	chains := s.log.ByAuthor()[x.Fact.Chain.Author]
	if len(chains) < 2 || s.log.Knew(x, y) {
		return false
	}
	s.dependsOn(x, s.user)
	s.dependsOn(y, s.everyUser())
	return slices.ContainsFunc(chains, func(c *log.Chain) bool {
		f := s.firstThatKnew(c, y)
		if f == nil || c == x.Strand.Chain || s.log.Knew(f, x) || s.log.Knew(x, f) {
			return false
		}
		s.dependsOn(f, s.everyUser())
		return s.heardFirst(f, x) >= s.heardFirst(x, f)
	})
}

// heardFirst counts those of the others that showed to know x without y. They are
// those who took part from the start: an author could bring in others.
func (s *State) heardFirst(x, y *log.Entry) (n int) {
	for _, p := range s.genesis.Succession {
		if p != x.Fact.Chain.Author && slices.ContainsFunc(s.log.ByAuthor()[p], func(c *log.Chain) bool {
			f := s.firstThatKnew(c, x)
			return f != nil && !s.log.Knew(f, y)
		}) {
			n++
		}
	}
	return n
}

// firstThatKnew is the first fact of a chain, before it was forked, that counts and
// knew of g. Nil: there is none.
func (s *State) firstThatKnew(c *log.Chain, g *log.Entry) *log.Entry {
	facts := c.Strands[0].Counted
	if c.ForkedAt > 0 {
		facts = c.Strands[0].CountedBefore(c.Cut())
	}
	i := sort.Search(len(facts), func(i int) bool { return s.log.Knew(facts[i], g) })
	if i == len(facts) {
		return nil
	}
	return facts[i]
}

// anyUser stands for all users of a slot's attempts of which that was asked. It is not written.
var anyUser = &Attempt{}

// everyUser is for what is asked of many users alike, so that it is noted once.
func (s *State) everyUser() *Attempt {
	if s.user == nil {
		return nil
	}
	return anyUser
}

// dependsOn notes that how the slot is judged, or what its user denies, depends on who knows
// of a fact.
func (s *State) dependsOn(e *log.Entry, user *Attempt) {
	d := doubt{s.Judged, user}
	if on := (doubtOn{e, d}); !s.doubted[on] {
		s.doubted[on] = true
		s.doubts[e] = append(s.doubts[e], d)
	}
}

// reopen has those slots judged again of which new facts show who knew what.
func (s *State) reopen(es []*log.Entry) {
	for _, e := range es {
		if e.Fact.Seq == 1 && len(s.log.ByAuthor()[e.Fact.Chain.Author]) > 1 {
			s.reopenAll(e.Fact.Chain.Author)
		}
	}
	if len(s.doubts) == 0 {
		return
	}
	for _, e := range es {
		if !e.Counted || e.Strand != e.Strand.Chain.Strands[0] {
			continue // firstThatKnew passes it over
		}
		s.reopenFor(e)
		var before log.Vector
		if shown := e.Strand.CountedBefore(e.Fact.Seq); len(shown) > 0 {
			before = shown[len(shown)-1].Others
		}
		e.Others.Beyond(before, func(k int, to uint64) {
			st := s.log.Strands()[k]
			for n := max(before.At(k), st.Base()) + 1; n <= to; n++ {
				s.log.Steps++
				s.reopenFor(st.Number(n))
			}
		})
	}
}

// reopenDoubts has all slots judged again for which it matters who knew what, or who
// forked a chain.
func (s *State) reopenDoubts() {
	for _, ds := range s.doubts {
		for _, d := range ds {
			s.touch(d.slot)
		}
	}
	for _, sl := range s.slots {
		sl.forgetDenials()
		if slices.ContainsFunc(sl.Attempts, (*Attempt).Doubted) {
			s.touch(sl)
		}
	}
}

// Doubted reports whether something stands against an attempt's success, because of which
// it does not stand by all that was built upon it.
func (a *Attempt) Doubted() bool { return len(a.Blame) > 0 || a.overruled }

func (s *State) reopenFor(e *log.Entry) {
	for _, d := range s.doubts[e] {
		s.log.Steps++
		s.touch(d.slot)
		switch d.user {
		case nil:
		case anyUser:
			d.slot.askAgain()
		default:
			for from := range s.BuiltOn(d.user, d.user.Base) {
				if from.Slot == d.slot && from.denials != nil {
					from.denials.ask(d.user)
				}
			}
		}
	}
}

// reopenAll has all slots judged again for which something counts that an author
// said.
func (s *State) reopenAll(author workflow.PartnerID) {
	by := func(e *log.Entry) bool { return e != nil && e.Fact.Chain.Author == author }
	for _, sl := range s.slots {
		if slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
			return by(a.Start) || slices.ContainsFunc(a.Successes, by) ||
				slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { return by(r.At) })
		}) {
			sl.forgetDenials()
			s.touch(sl)
		}
	}
}

// weigh works out what of a slot is denied by what its authors knew elsewhere:
// verdicts that are void, and successes that go behind others.
func (s *State) weigh(sl *Slot) {
	if a := sl.Attempts[0]; len(sl.Attempts) == 1 && len(a.Rulings) == 0 && len(a.Successes) <= 1 {
		s.rebase(a)
		return
	}
	s.Judged = sl
	for _, a := range sl.Attempts {
		for _, r := range a.Rulings {
			r.Void = slices.ContainsFunc(a.Successes, func(ok *log.Entry) bool {
				return s.Despite(r.At, ok) || s.forgot(r.At, ok)
			})
		}
	}
	for _, a := range sl.Attempts {
		if len(a.Successes) > 0 {
			s.weighSuccesses(a)
		}
	}
	for _, a := range sl.Attempts { // each after the one that it follows
		s.log.Steps++
		var blamed []workflow.PartnerID
		if a.after != nil {
			blamed = a.after.blamed
		}
		if a.by != nil && a.by.Void {
			blamed = append(slices.Clip(blamed), a.by.At.Fact.Chain.Author)
		}
		blame := slices.Clip(blamed)
		if a.Success() != nil && (s.DeniesOthers(a, a.Success()) || s.DespiteOthers(a, a.Base)) {
			blame = append(blame, a.Success().Fact.Chain.Author)
		}
		if len(blame) > 0 || len(a.Blame) > 0 {
			t := a.turning()
			if !slices.Equal(t.Blame, blame) {
				t.denials = nil
			}
			t.Blame, t.blamed = blame, blamed
		}
	}
}

// weighSuccesses puts an attempt's successes in order, the one that counts first,
// and works out what it built upon.
func (s *State) weighSuccesses(a *Attempt) {
	if len(a.Successes) > 1 {
		rank := func(e *log.Entry) int {
			switch {
			case s.DeniesOthers(a, e):
				return 2
			case slices.ContainsFunc(a.Successes, func(o *log.Entry) bool { return o != e && s.repeats(e, o) }):
				return 1
			}
			return 0
		}
		ranks := map[*log.Entry]int{}
		for _, e := range a.Successes {
			ranks[e] = rank(e)
		}
		slices.SortFunc(a.Successes, func(x, y *log.Entry) int {
			if n := ranks[x] - ranks[y]; n != 0 {
				return n
			}
			return log.ByTime(x, y)
		})
	}
	was := a.overruled
	a.overruled = a.Success().Fact.Body.Success != nil &&
		slices.ContainsFunc(a.Rulings, func(r *Ruling) bool { // not by an adoption
			return r.Final && !r.Void && (s.Despite(a.Success(), r.At) || s.forgot(a.Success(), r.At))
		})
	if a.overruled != was {
		a.turning().denials = nil
	}
	s.rebase(a)
}

// repeats reports whether more of the others heard of o before e, another success of
// the same attempt.
func (s *State) repeats(e, o *log.Entry) bool {
	s.dependsOn(e, nil)
	s.dependsOn(o, nil)
	return s.heardFirst(o, e) > s.heardFirst(e, o)
}

// DeniesOthers reports whether a success of an attempt denies one of another attempt.
func (s *State) DeniesOthers(a *Attempt, e *log.Entry) bool {
	return slices.ContainsFunc(a.Slot.Attempts, func(o *Attempt) bool {
		return o != a && slices.ContainsFunc(o.Successes, func(ok *log.Entry) bool { return s.forgot(e, ok) })
	})
}

// DespiteOthers reports whether a start was written although its author knew the success
// of another attempt.
func (s *State) DespiteOthers(a *Attempt, start *log.Entry) bool {
	return s.log.Forked() > 0 && start != nil && slices.ContainsFunc(a.Slot.Attempts, func(o *Attempt) bool {
		s.log.Steps++
		return o != a && slices.ContainsFunc(o.Successes, func(ok *log.Entry) bool { return s.Despite(start, ok) })
	})
}

// Props reports whether an attempt built upon another by a start that denies what
// stands against it, of the author because of whom the other goes behind, or that had
// given the other up. Having forked a chain denies what its author knew as well: of an
// author that did not, a fork of another may have taken that away.
func (s *State) Props(u, a *Attempt) bool {
	forked := s.log.Forkers()[u.Partner]
	switch {
	case u.Base == nil:
		return false
	case forked && a.overruled && u.Partner == a.Partner:
		return true
	}
	s.user = u
	defer func() { s.user = nil }()
	return slices.Contains(a.Blame, u.Partner) && (s.DeniesOthers(a, u.Base) || forked && s.DespiteOthers(a, u.Base))
}

// mayDeny reports whether an attempt that built upon another is of one whose denial counts.
func (s *State) mayDeny(u, a *Attempt) bool {
	return a.overruled && u.Partner == a.Partner || slices.Contains(a.Blame, u.Partner)
}

// deniedBy asks those who built upon an attempt that have not been asked.
func (s *State) deniedBy(a *Attempt) *denials {
	d := a.denials
	if d == nil {
		d = &denials{of: map[*Attempt]denial{}}
		a.turning().denials = d
		for _, u := range a.Users {
			d.ask(u)
		}
	}
	s.Judged = a.Slot
	for _, u := range d.asks {
		s.log.Steps++
		switch {
		case d.of[u] != unasked: // it is no user any more, or named twice
		case !s.mayDeny(u, a):
			delete(d.of, u)
		case s.Props(u, a):
			d.of[u] = denies
			d.claimed[u.claims]++
		default:
			d.of[u] = admits
		}
	}
	d.asks = nil
	return d
}
