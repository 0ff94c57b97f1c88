package choreo

import (
	"cmp"
	"maps"
	"slices"
	"sort"

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

// Nor does what comes after a fork show for certain what its author went by: whether it
// counted there depends on what else was there (converge.go, rule 8).

// certain reports whether the author of e knew g, and that g counted: then g is held
// against e. It is so where nothing in g's past comes after a fork, as all of that counts
// by itself, wherever g is.
func (s *State) certain(e, g *entry) bool {
	is := !g.beyond && s.log.knew(e, g)
	s.bound = s.bound || is
	return is
}

// despite reports whether what counts was written by an author that knew of y, without
// that y is held against it.
func (s *State) despite(x, y *entry) bool { return y.beyond && s.log.knew(x, y) }

// forgot reports whether x denies y: a fact of x's author in another chain knew of
// y, neither of the two knew of the other, and no more of the others had heard of
// x first than of that fact.
func (s *State) forgot(x, y *entry) bool {
	chains := s.log.byAuthor[x.fact.Chain.Author]
	if len(chains) < 2 || s.log.knew(x, y) {
		return false
	}
	s.dependsOn(x, s.user)
	s.dependsOn(y, s.everyUser())
	return slices.ContainsFunc(chains, func(c *chain) bool {
		f := s.firstThatKnew(c, y)
		if f == nil || c == x.strand.chain || s.log.knew(f, x) || s.log.knew(x, f) {
			return false
		}
		s.dependsOn(f, s.everyUser())
		return s.heardFirst(f, x) >= s.heardFirst(x, f)
	})
}

// heardFirst counts those of the others that showed to know x without y. They are
// those who took part from the start: an author could bring in others.
func (s *State) heardFirst(x, y *entry) (n int) {
	for _, p := range s.genesis.Succession {
		if p != x.fact.Chain.Author && slices.ContainsFunc(s.log.byAuthor[p], func(c *chain) bool {
			f := s.firstThatKnew(c, x)
			return f != nil && !s.log.knew(f, y)
		}) {
			n++
		}
	}
	return n
}

// firstThatKnew is the first fact of a chain, before it was forked, that counts and
// knew of g. Nil: there is none.
func (s *State) firstThatKnew(c *chain, g *entry) *entry {
	facts := c.strands[0].counted
	if c.forkedAt > 0 {
		facts = c.strands[0].countedBefore(c.cut())
	}
	i := sort.Search(len(facts), func(i int) bool { return s.log.knew(facts[i], g) })
	if i == len(facts) {
		return nil
	}
	return facts[i]
}

// doubt is what depends on who knew of a fact: how a slot is judged or, if a user is named,
// whether that one denies what stands against the slot's attempt on which it built.
type doubt struct {
	slot *Slot
	user *Attempt
}

type doubtOn struct {
	of *entry
	doubt
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
func (s *State) dependsOn(e *entry, user *Attempt) {
	d := doubt{s.judged, user}
	if on := (doubtOn{e, d}); !s.doubted[on] {
		s.doubted[on] = true
		s.doubts[e] = append(s.doubts[e], d)
	}
}

// reopen has those slots judged again of which new facts show who knew what.
func (s *State) reopen(es []*entry) {
	for _, e := range es {
		if e.fact.Seq == 1 && len(s.log.byAuthor[e.fact.Chain.Author]) > 1 {
			s.reopenAll(e.fact.Chain.Author)
		}
	}
	if len(s.doubts) == 0 {
		return
	}
	for _, e := range es {
		if !e.counted || e.strand != e.strand.chain.strands[0] {
			continue // firstThatKnew passes it over
		}
		s.reopenFor(e)
		var before vector
		if shown := e.strand.countedBefore(e.fact.Seq); len(shown) > 0 {
			before = shown[len(shown)-1].others
		}
		e.others.beyond(before, func(k int, to uint64) {
			st := s.log.strands[k]
			for n := max(before.at(k), st.base()) + 1; n <= to; n++ {
				s.log.steps++
				s.reopenFor(st.number(n))
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
		if slices.ContainsFunc(sl.Attempts, (*Attempt).doubted) {
			s.touch(sl)
		}
	}
}

// doubted reports whether something stands against an attempt's success, because of which
// it does not stand by all that was built upon it.
func (a *Attempt) doubted() bool { return len(a.blame) > 0 || a.overruled }

func (s *State) reopenFor(e *entry) {
	for _, d := range s.doubts[e] {
		s.log.steps++
		s.touch(d.slot)
		switch d.user {
		case nil:
		case anyUser:
			d.slot.askAgain()
		default:
			for from := range s.builtOn(d.user, d.user.base) {
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
	by := func(e *entry) bool { return e != nil && e.fact.Chain.Author == author }
	for _, sl := range s.slots {
		if slices.ContainsFunc(sl.Attempts, func(a *Attempt) bool {
			return by(a.start) || slices.ContainsFunc(a.successes, by) ||
				slices.ContainsFunc(a.rulings, func(r *ruling) bool { return by(r.at) })
		}) {
			sl.forgetDenials()
			s.touch(sl)
		}
	}
}

// weigh works out what of a slot is denied by what its authors knew elsewhere:
// verdicts that are void, and successes that go behind others.
func (s *State) weigh(sl *Slot) {
	if a := sl.Attempts[0]; len(sl.Attempts) == 1 && len(a.rulings) == 0 && len(a.successes) <= 1 {
		s.rebase(a)
		return
	}
	s.judged = sl
	for _, a := range sl.Attempts {
		for _, r := range a.rulings {
			r.void = slices.ContainsFunc(a.successes, func(ok *entry) bool {
				return s.despite(r.at, ok) || s.forgot(r.at, ok)
			})
		}
	}
	for _, a := range sl.Attempts {
		if len(a.successes) > 0 {
			s.weighSuccesses(a)
		}
	}
	for _, a := range sl.Attempts { // each after the one that it follows
		s.log.steps++
		var blamed []workflow.PartnerID
		if a.after != nil {
			blamed = a.after.blamed
		}
		if a.by != nil && a.by.void {
			blamed = append(slices.Clip(blamed), a.by.at.fact.Chain.Author)
		}
		blame := slices.Clip(blamed)
		if a.success() != nil && (s.deniesOthers(a, a.success()) || s.despiteOthers(a, a.base)) {
			blame = append(blame, a.success().fact.Chain.Author)
		}
		if len(blame) > 0 || len(a.blame) > 0 {
			t := a.turning()
			if !slices.Equal(t.blame, blame) {
				t.denials = nil
			}
			t.blame, t.blamed = blame, blamed
		}
	}
}

// weighSuccesses puts an attempt's successes in order, the one that counts first,
// and works out what it built upon.
func (s *State) weighSuccesses(a *Attempt) {
	if len(a.successes) > 1 {
		rank := func(e *entry) int {
			switch {
			case s.deniesOthers(a, e):
				return 2
			case slices.ContainsFunc(a.successes, func(o *entry) bool { return o != e && s.repeats(e, o) }):
				return 1
			}
			return 0
		}
		ranks := map[*entry]int{}
		for _, e := range a.successes {
			ranks[e] = rank(e)
		}
		slices.SortFunc(a.successes, func(x, y *entry) int {
			if n := ranks[x] - ranks[y]; n != 0 {
				return n
			}
			return byTime(x, y)
		})
	}
	was := a.overruled
	a.overruled = a.success().fact.Body.Success != nil &&
		slices.ContainsFunc(a.rulings, func(r *ruling) bool { // not by an adoption
			return r.final && !r.void && (s.despite(a.success(), r.at) || s.forgot(a.success(), r.at))
		})
	if a.overruled != was {
		a.turning().denials = nil
	}
	s.rebase(a)
}

// repeats reports whether more of the others heard of o before e, another success of
// the same attempt.
func (s *State) repeats(e, o *entry) bool {
	s.dependsOn(e, nil)
	s.dependsOn(o, nil)
	return s.heardFirst(o, e) > s.heardFirst(e, o)
}

// deniesOthers reports whether a success of an attempt denies one of another attempt.
func (s *State) deniesOthers(a *Attempt, e *entry) bool {
	return slices.ContainsFunc(a.Slot.Attempts, func(o *Attempt) bool {
		return o != a && slices.ContainsFunc(o.successes, func(ok *entry) bool { return s.forgot(e, ok) })
	})
}

// despiteOthers reports whether a start was written although its author knew the success
// of another attempt.
func (s *State) despiteOthers(a *Attempt, start *entry) bool {
	return s.log.forks > 0 && start != nil && slices.ContainsFunc(a.Slot.Attempts, func(o *Attempt) bool {
		s.log.steps++
		return o != a && slices.ContainsFunc(o.successes, func(ok *entry) bool { return s.despite(start, ok) })
	})
}

// props reports whether an attempt built upon another by a start that denies what
// stands against it, of the author because of whom the other goes behind, or that had
// given the other up. Having forked a chain denies what its author knew as well: of an
// author that did not, a fork of another may have taken that away.
func (s *State) props(u, a *Attempt) bool {
	forked := s.log.forkers[u.Partner]
	switch {
	case u.base == nil:
		return false
	case forked && a.overruled && u.Partner == a.Partner:
		return true
	}
	s.user = u
	defer func() { s.user = nil }()
	return slices.Contains(a.blame, u.Partner) && (s.deniesOthers(a, u.base) || forked && s.despiteOthers(a, u.base))
}

// mayDeny reports whether an attempt that built upon another is of one whose denial counts.
func (s *State) mayDeny(u, a *Attempt) bool {
	return a.overruled && u.Partner == a.Partner || slices.Contains(a.blame, u.Partner)
}

// denials say which of those who built upon an attempt deny what stands against it, and so
// do not hold it up. Each is asked once, and again only when its answer may have changed: so
// what one of them does costs the same however many there are.
type denials struct {
	of      map[*Attempt]denial // of users that may deny it
	asks    []*Attempt          // those that are still to be asked
	claimed claims              // what those that deny it claim
}

// denial is what is known of a user; none of one that cannot deny anything.
type denial uint8

const (
	unasked denial = iota + 1
	denies
	admits
)

// deniedBy asks those who built upon an attempt that have not been asked.
func (s *State) deniedBy(a *Attempt) *denials {
	d := a.denials
	if d == nil {
		d = &denials{of: map[*Attempt]denial{}}
		a.turning().denials = d
		for _, u := range a.users {
			d.ask(u)
		}
	}
	s.judged = a.Slot
	for _, u := range d.asks {
		s.log.steps++
		switch {
		case d.of[u] != unasked: // it is no user any more, or named twice
		case !s.mayDeny(u, a):
			delete(d.of, u)
		case s.props(u, a):
			d.of[u] = denies
			d.claimed[u.claims]++
		default:
			d.of[u] = admits
		}
	}
	d.asks = nil
	return d
}

// ask has a user be asked, again if it was.
func (d *denials) ask(u *Attempt) {
	if d.of[u] == unasked {
		return
	}
	d.drop(u)
	d.of[u] = unasked
	d.asks = append(d.asks, u)
}

// drop forgets a user.
func (d *denials) drop(u *Attempt) {
	if d.of[u] == denies {
		d.claimed[u.claims]--
	}
	delete(d.of, u)
}

// askAgain has all users of the slot's attempts be asked again that may deny anything.
func (sl *Slot) askAgain() {
	for _, a := range sl.Attempts {
		if a.denials == nil {
			continue
		}
		inOrder := func(x, y *Attempt) int { return cmp.Or(x.Slot.place-y.Slot.place, byTime(x.assigned, y.assigned)) }
		for _, u := range slices.SortedFunc(maps.Keys(a.denials.of), inOrder) { // notes are made in one order
			a.denials.ask(u)
		}
	}
}

// forgetDenials has all users of the slot's attempts be asked again.
func (sl *Slot) forgetDenials() {
	for _, a := range sl.Attempts {
		if a.denials != nil {
			a.denials = nil
		}
	}
}

// addUser notes that another attempt built upon this one.
func (a *Attempt) addUser(u *Attempt) {
	if a.userAt != nil {
		a.userAt[u] = len(a.users)
	}
	a.users = append(a.users, u)
	a.claimed[u.claims]++
	if a.denials != nil {
		a.denials.ask(u)
	}
}

// dropUser notes that it did not.
func (a *Attempt) dropUser(u *Attempt) {
	t := a.turning()
	if t.userAt == nil {
		t.userAt = make(map[*Attempt]int, len(a.users))
		for i, x := range a.users {
			t.userAt[x] = i
		}
	}
	i, last := t.userAt[u], len(a.users)-1
	a.users[i] = a.users[last]
	t.userAt[a.users[i]] = i
	delete(t.userAt, u)
	a.users[last] = nil
	a.users = a.users[:last]
	a.claimed[u.claims]--
	if t.denials != nil {
		t.denials.drop(u)
	}
}
