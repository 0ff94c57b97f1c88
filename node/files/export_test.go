package files

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// BlockUses is how many instances one block of a record has.
const BlockUses = blockUses

// The shares of what waits to come here, for tests.
const (
	MaxAhead    = maxAhead
	MemberAhead = memberAhead
	OthersAhead = othersAhead
	MemberTurns = memberTurns
)

// Waiting is how many contents are to come here, for how many wants of tasks, and how many
// references were looked at for that.
func (t *Topic) Waiting() (contents, ahead, steps int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.coming), t.ahead, t.steps
}

// Idle reports whether nothing is remembered of what came.
func (t *Topic) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.coming)+len(t.promised)+len(t.lines)+len(t.needs)+t.ahead+t.aheadOfOthers+t.running+t.others == 0
}

// Failing are options with which what is done to the folder fails, as fails says.
func (o Options) Failing(fails func(step string) error) Options {
	o.step = fails
	return o
}

// SetLimit has the limit be another, whatever is there.
func (s *Store) SetLimit(limit int64) { s.o.Limit = limit }

// Weighed is how many contents were looked at to know how much room there is.
func (s *Store) Weighed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room.steps
}

// Audit returns an error if the ledger is not what the contents add up to.
func (s *Store) Audit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, others int64
	by := map[string]int64{}
	for n, c := range s.held {
		size := c.part + Overhead
		if c.state == whole || len(c.uses) > 0 {
			size = n.size + Overhead
		}
		all += size
		of := map[string]bool{}
		for _, u := range c.uses {
			of[u.by] = true
		}
		for m := range of {
			by[m] += n.size + Overhead
		}
		if delete(of, ""); len(of) > 0 {
			others += n.size + Overhead
		}
	}
	if all != s.room.all || others != s.room.others || fmt.Sprint(by) != fmt.Sprint(s.room.by) {
		return fmt.Errorf("the ledger has %d, of others %d, %v; there are %d, %d, %v", s.room.all, s.room.others,
			s.room.by, all, others, by)
	}
	return nil
}

// Lent is how many turns others have while those who had them wait for answers.
func (t *Topic) Lent() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lent
}

// TooMany is which turns are taken by more than there are; empty: none. What is lent may be taken back beyond
// that by those who have got an answer, for a chunk.
func (t *Topic) TooMany() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running > turns || t.others > othersTurns || t.vain > vainTurns {
		return fmt.Sprintf("%d of %d turns, members have %d of %d, those that waited in vain %d of %d",
			t.running, turns, t.others, othersTurns, t.vain, vainTurns)
	}
	return ""
}

// ErrKilled is what a step says after which the node is dead.
var ErrKilled = errors.New("killed")

// Lendable is the most of Lent.
const Lendable = lendable

// Recorded is how many bytes of records were stored.
func (s *Store) Recorded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded
}

// Instances are those that are known to have a content, and whether it is known that there are no others.
func (s *Store) Instances(f workflow.File) (ids []string, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	if c == nil {
		return nil, true
	}
	return slices.Sorted(maps.Keys(c.uses)), !c.unsure
}

// AuditTurns returns an error if the turns that are counted are not those that are taken.
func (t *Topic) AuditTurns() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := fmt.Sprint(t.running, t.others, t.vain, t.lent, t.lentOfOthers)
	running, others, vain, lent, lentOfOthers := 0, 0, 0, 0, 0
	turns, lends, all := map[*line]int{}, map[*line]int{}, map[*line]int{}
	for _, c := range t.coming {
		for _, o := range c.orders {
			l := o.in
			all[l]++
			switch {
			case o.cancel == nil && o.lent:
				return fmt.Errorf("an order of %q without a turn lends one", l.of.by)
			case o.lent:
				lends[l]++
				lent++
				if l.of.by != "" {
					lentOfOthers++
				}
			case o.cancel != nil:
				turns[l]++
				if !l.of.asked {
					running++
				}
				if l.of.by != "" {
					others++
				}
				if o.vain {
					vain++
				}
			}
		}
	}
	if is := fmt.Sprint(running, others, vain, lent, lentOfOthers); is != was {
		return fmt.Errorf("counted %s turns, and there are %s", was, is)
	}
	for _, l := range t.lines {
		if l.turns != turns[l] || l.lent != lends[l] || l.all != all[l] {
			return fmt.Errorf("counted %d turns of %q, %d lent, %d orders, and there are %d, %d, %d",
				l.turns, l.of.by, l.lent, l.all, turns[l], lends[l], all[l])
		}
	}
	if len(all) > len(t.lines) || t.lent > lendable {
		return fmt.Errorf("%d lines with orders, %d lines; %d turns lent", len(all), len(t.lines), t.lent)
	}
	tried := 0
	for _, m := range t.mutes {
		if m.tried {
			tried++
		}
	}
	if tried != t.tried {
		return fmt.Errorf("counted %d partners that are asked whether they are mute, and there are %d", t.tried, tried)
	}
	return nil
}

// Left is what is left of turns and requests; empty: nothing.
func (t *Topic) Left() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.running + t.others + t.vain + t.lent + t.lentOfOthers + t.tried + len(t.intakes); n > 0 {
		return fmt.Sprintf("%d turns are taken, %d of members, %d vain, %d lent, %d of members, %d partners asked, %d of these whether they are mute",
			t.running, t.others, t.vain, t.lent, t.lentOfOthers, len(t.intakes), t.tried)
	}
	if !t.stopped && len(t.coming)+len(t.lines)+len(t.needs)+t.ahead > 0 {
		return fmt.Sprintf("%d contents, %d lines, %d instances are remembered", len(t.coming), len(t.lines),
			len(t.needs))
	}
	return ""
}

// GivenTo are the partners that said since this node runs that they have all of a file.
func (s *Store) GivenTo(f workflow.File) (out []workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.held[nameOf(f)]; c != nil {
		for _, p := range slices.Sorted(maps.Keys(c.given)) {
			out = append(out, workflow.PartnerID(p))
		}
	}
	return out
}

// Untold is of how many contents somebody is still to be told that they are here.
func (s *Store) Untold() int { return len(s.due()) }
