package election

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// The exhaustive check visits every state that three or five voters, two of which
// stand at once, can reach within so many steps, each of which delivers a
// message, repeats one, restarts a node or lets a lease pass. Messages that
// are never delivered are lost.

// budget bounds how many vote, and what may happen besides the delivery of messages.
type budget struct{ voters, steps, repeats, restarts, leases int }

// state is a world, how it was reached, and what may still happen.
type state struct {
	w    *world
	left budget
	path []string
}

// clone copies a world, but for its trace.
func (w *world) clone() *world {
	c := *w
	c.nodes = nil
	for _, m := range w.nodes {
		n := *m
		n.election = m.election.clone()
		c.nodes = append(c.nodes, &n)
	}
	c.net = slices.Clone(w.net)
	c.holders, c.heirs = maps.Clone(w.holders), maps.Clone(w.heirs)
	c.trace = nil
	return &c
}

// clone copies an election. Chance is reset: it only spreads waiting times.
func (e *Election) clone() *Election {
	c := *e
	c.rand = rand.New(rand.NewPCG(c.cfg.Seed, 0))
	c.candidacy.votes = maps.Clone(e.candidacy.votes)
	c.candidacy.granted = maps.Clone(e.candidacy.granted)
	c.candidacy.refusals = maps.Clone(e.candidacy.refusals)
	c.proposing.lists = maps.Clone(e.proposing.lists)
	c.proposing.consents = map[ListHash]map[workflow.PartnerID]Consent{}
	for h, given := range e.proposing.consents {
		c.proposing.consents[h] = maps.Clone(given)
	}
	c.nominations = nominations{ours: maps.Clone(e.nominations.ours), theirs: maps.Clone(e.nominations.theirs)}
	return &c
}

// key is the same for worlds that behave the same.
func (s state) key() string {
	var b strings.Builder
	fmt.Fprintln(&b, s.w.real, s.left)
	for _, m := range s.w.nodes {
		e := m.election
		c := e.candidacy
		fmt.Fprintln(&b, e.ballot.Voted, e.ballot.VotedFor, e.ballot.Highest, m.ballot.Voted.Term, e.voter, m.wake,
			e.ballot.Known.Office, e.ballot.Known.Holder, e.known.heard, e.known.highest,
			c.role, c.office, c.granted, c.askAt, c.tryUntil, c.giveUpAt, c.until)
	}
	var under []string
	for _, p := range s.w.net {
		under = append(under, p.key())
	}
	sort.Strings(under)
	b.WriteString(strings.Join(under, "\n"))
	return b.String()
}

// key names a packet by all that it says.
func (p packet) key() string {
	var sent time.Duration
	if p.msg.Ask != nil {
		sent = p.msg.Ask.Sent
	}
	if p.msg.Grant != nil {
		sent = p.msg.Grant.Sent
	}
	return fmt.Sprint(p.from, p.to, sent, describe(p.msg))
}

// successors are the states one step on.
func (s state) successors() []state {
	var out []state
	step := func(left budget, label string, do func(*world)) {
		left.steps--
		next := state{w: s.w.clone(), left: left, path: append(slices.Clip(s.path), label)}
		do(next.w)
		out = append(out, next)
	}
	seen := map[string]bool{}
	for k, p := range s.w.net {
		if id := p.key(); !seen[id] {
			seen[id] = true
			step(s.left, "deliver "+id, func(w *world) { w.deliver(k, false) })
			if left := s.left; left.repeats > 0 {
				left.repeats--
				step(left, "repeat "+id, func(w *world) { w.deliver(k, true) })
			}
		}
	}
	if left := s.left; left.restarts > 0 {
		left.restarts--
		for i := range s.w.nodes {
			step(left, "restart "+s.w.nodes[i].name, func(w *world) { w.restart(i) })
		}
	}
	if left := s.left; left.leases > 0 {
		left.leases--
		step(left, "a lease passes", func(w *world) { w.advance(testLease + time.Second) })
	}
	return out
}

// explore visits every state within the budget, and returns how many there
// are, or the path to the first bad one.
func explore(t *testing.T, f flaws, b budget) (visited int, bad string) {
	w := newWorld(t, b.voters, b.voters, f)
	w.advance(testLease + time.Second)
	w.elect(0)
	w.elect(1)
	frontier := []state{{w: w, left: b}}
	seen := map[string]bool{}
	for len(frontier) > 0 {
		var next []state
		for _, s := range frontier {
			if s.w.bad != "" {
				return len(seen), s.w.bad + ":\n" + strings.Join(s.path, "\n")
			}
			if k := s.key(); !seen[k] {
				seen[k] = true
				if s.left.steps > 0 {
					next = append(next, s.successors()...)
				}
			}
		}
		frontier = next
	}
	return len(seen), ""
}

func TestEveryShortHistory(t *testing.T) {
	for _, b := range []budget{
		{voters: 3, steps: 40, repeats: 1},
		{voters: 3, steps: 6, repeats: 1, restarts: 1},
		{voters: 3, steps: 4, restarts: 1, leases: 1},
		{voters: 5, steps: 6},
		{voters: 5, steps: 4, repeats: 1, restarts: 1},
	} {
		visited, bad := explore(t, flaws{}, b)
		if bad != "" {
			t.Errorf("%+v: %s", b, bad)
		}
		t.Logf("%+v: %d states", b, visited)
	}
}

func TestExhaustiveCheckFindsFlaws(t *testing.T) {
	for name, c := range map[string]struct {
		flaws
		budget
	}{
		"a voter votes twice in a term": {flaws{twoVotes: true, ignoreLeases: true}, budget{voters: 3, steps: 4}},
		"votes are not durable": {flaws{forgetVotes: true, ignoreLeases: true},
			budget{voters: 3, steps: 5, restarts: 1}},
	} {
		visited, bad := explore(t, c.flaws, c.budget)
		if bad == "" {
			t.Errorf("%s: not found in %d states", name, visited)
		}
		t.Logf("%s, found after %d states: %s", name, visited, bad)
	}
}
