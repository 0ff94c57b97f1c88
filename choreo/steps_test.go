package choreo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// These tests count steps, not time: what a peer can trigger, and what a large
// instance does, costs for each fact the same at sizes ×1, ×10 and ×100, but
// for a logarithm.

// growth checks that work takes about as many steps for each of n facts, however
// large n is: ten times as many may cost each once as much again.
func growth(t *testing.T, base int, work func(n int) (steps, facts int)) {
	t.Helper()
	var each []float64
	for _, n := range []int{base, 10 * base, 100 * base} {
		steps, facts := work(n)
		each = append(each, float64(steps)/float64(facts))
	}
	t.Logf("steps for each fact: %.1f, %.1f, %.1f", each[0], each[1], each[2])
	if each[0] == 0 {
		t.Error("no step is counted")
	}
	for i, e := range each {
		if e > float64(i+1)*each[0]+2 {
			t.Errorf("%.1f steps for each fact of many, %.1f of few", e, each[0])
		}
	}
}

// pen writes facts of one chain, as anybody can who has a key.
type pen struct {
	t        testing.TB
	instance workflow.InstanceID
	chain    fact.Chain
	seq      uint64
	first    fact.ID
	prev     fact.ID
	at       int64 // how its facts are dated
}

// write writes the chain's next fact.
func (p *pen) write(b fact.Body, seen ...fact.Head) fact.Received {
	p.t.Helper()
	slices.SortFunc(seen, fact.Head.Compare)
	f := &fact.Fact{
		Format: fact.Format, Instance: p.instance, Chain: p.chain, Seq: p.seq + 1, Prev: p.prev, At: p.at, Seen: seen,
		Body: b,
	}
	r := encoded(p.t, f)
	r.Att = &fact.Attestation{Sig: make([]byte, 64)}
	if p.seq, p.prev = f.Seq, r.ID; f.Seq == 1 {
		p.first = r.ID
	}
	return r
}

// head is the chain's last fact.
func (p *pen) head() fact.Head { return fact.Head{Chain: p.chain, Seq: p.seq, ID: p.prev} }

// penOf writes in a new chain of an instance; its first fact must have seen the genesis.
func penOf(t testing.TB, m *Machine, author workflow.PartnerID, inc byte) *pen {
	return &pen{t: t, instance: m.log.Instance(), chain: fact.Chain{Author: author, Incarnation: fact.Incarnation{inc}}}
}

// words are n facts of a participant that say nothing.
func words(t testing.TB, m *Machine, n int) []fact.Received {
	p := penOf(t, m, "three", 7)
	out := []fact.Received{p.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())}
	for len(out) < n {
		out = append(out, p.write(fact.Body{Seen: &fact.Seen{}}))
	}
	return out
}

func TestStepsOfBatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		order func(facts []fact.Received)
		keeps func(n int) int // how many facts can be taken in
	}{
		{"sorted", func([]fact.Received) {}, func(n int) int { return n }},
		{"reversed", slices.Reverse[[]fact.Received], func(n int) int { return n }},
		{"halves in turn", func(fs []fact.Received) {
			slices.SortStableFunc(fs, func(a, b fact.Received) int { return int(a.Fact.Seq%2) - int(b.Fact.Seq%2) })
		}, func(n int) int { return n }},
		{"reversed, only the last attested", func(fs []fact.Received) {
			for i := range fs[:len(fs)-1] {
				fs[i].Att = nil
			}
			slices.Reverse(fs)
		}, func(n int) int { return n }},
		{"reversed, and the attested one names what nobody has", func(fs []fact.Received) {
			for i := range fs {
				fs[i].Att = nil
			}
			last := &fs[len(fs)-1]
			f := *last.Fact
			f.Seen = []fact.Head{{Chain: fact.Chain{Author: "two", Incarnation: fact.Incarnation{9}}, Seq: 5,
				ID: fact.ID{1, 2, 3}}}
			last.Fact, last.Att = &f, &fact.Attestation{}
			slices.Reverse(fs)
		}, func(int) int { return 0 }},
		{"reversed, the first missing", func(fs []fact.Received) {
			fs[0].Fact = fs[len(fs)-1].Fact
			fs[0].ID = fs[len(fs)-1].ID
			slices.Reverse(fs)
		}, func(int) int { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			growth(t, 30, func(n int) (int, int) {
				m := relayMesh(t).nodes["one"].m
				facts, before := words(t, m, n), m.log.Steps
				c.order(facts)
				got, err := m.Receive("three", facts)
				if want := c.keeps(n); got != want || errors.Is(err, log.ErrMissingPast) != (want < n) {
					t.Errorf("%d of %d facts are taken in (%v), want %d", got, n, err, want)
				}
				return m.log.Steps - before, n
			})
		})
	}
}

// What cannot be vouched for is not taken in, what can be is, in any order.
func TestOfAnIncompleteBatchWhatIsVouchedForStays(t *testing.T) {
	m := relayMesh(t).nodes["one"].m
	facts := words(t, m, 9)
	for i := range facts {
		if i != 3 {
			facts[i].Att = nil
		}
	}
	batch := append(slices.Clone(facts[:6]), facts[7:]...) // the seventh is missing
	slices.Reverse(batch)
	got, err := m.Receive("three", batch)
	if got != 4 || !errors.Is(err, log.ErrMissingPast) {
		t.Errorf("%d facts are taken in (%v), want the first four", got, err)
	}
	facts[8].Att = &fact.Attestation{}
	if got, err = m.Receive("three", facts); got != 5 || err != nil {
		t.Errorf("%d facts are taken in (%v), want the other five", got, err)
	}
}

// fork has a pen write from the chain's fact of that number on again.
func (p *pen) fork(l *log.Log, number uint64) *pen {
	from := l.Index()[p.chain].Strands[0].Number(number)
	return &pen{t: p.t, instance: p.instance, chain: p.chain, seq: number, prev: from.ID}
}

func (m *Machine) mustTake(t testing.TB, facts ...fact.Received) {
	t.Helper()
	if _, err := m.Receive("three", facts); err != nil {
		t.Fatal(err)
	}
}

// One fork costs its own length once: neither it nor what follows it costs more
// where the instance is long.
func TestStepsAfterAFork(t *testing.T) {
	for _, at := range []string{"first", "last"} {
		t.Run("of its "+at+" fact", func(t *testing.T) {
			growth(t, 50, func(n int) (int, int) {
				m := relayMesh(t).nodes["one"].m
				liar, facts := penOf(t, m, "three", 7), []fact.Received(nil)
				for range n {
					seen := []fact.Head{}
					if liar.seq == 0 {
						seen = append(seen, m.log.Genesis().Head())
					}
					facts = append(facts, liar.write(fact.Body{Seen: &fact.Seen{}}, seen...))
				}
				m.mustTake(t, facts...)
				before := m.log.Steps
				number := uint64(1)
				if at == "last" {
					number = uint64(n - 1)
				}
				m.mustTake(t, liar.fork(m.log, number).write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()))
				for range n {
					m.mustAppend(Moment{}, fact.Body{Seen: &fact.Seen{}})
					m.mustTake(t, liar.write(fact.Body{Seen: &fact.Seen{}}))
				}
				if m.log.Forked() != 1 {
					t.Error("no fork")
				}
				return m.log.Steps - before, 2 * n
			})
		})
	}
}

// A liar that forks again and again, each time earlier, has the state applied
// again a few times, not each time.
func TestStepsOfManyForks(t *testing.T) {
	growth(t, 40, func(n int) (int, int) {
		m := relayMesh(t).nodes["one"].m
		m.mustTake(t, words(t, m, n)...)
		liar := penOf(t, m, "three", 7)
		before := m.log.Steps
		for i := range n / 4 {
			m.mustTake(t, liar.fork(m.log, uint64(n-1-i)).write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()))
		}
		if m.log.Forked() != 1 {
			t.Error("no fork")
		}
		for range n {
			m.mustAppend(Moment{}, fact.Body{Seen: &fact.Seen{}})
		}
		return m.log.Steps - before, n + n/4
	})
}

// Many chains: a fact costs what of them is new to its author.
func TestStepsOfManyChains(t *testing.T) {
	growth(t, 30, func(n int) (int, int) {
		m := relayMesh(t).nodes["one"].m
		two := penOf(t, m, "two", 9)
		m.mustTake(t, two.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head()))
		before := m.log.Steps
		for i := range n {
			other := penOf(t, m, "three", 0)
			other.chain.Incarnation = fact.Incarnation{1, byte(i >> 8), byte(i)}
			opened := other.write(fact.Body{Seen: &fact.Seen{}}, m.log.Genesis().Head())
			// for itself it may be one too many
			m.mustTake(t, opened, two.write(fact.Body{Seen: &fact.Seen{}}, other.head()))
		}
		for range n {
			m.mustTake(t, two.write(fact.Body{Seen: &fact.Seen{}}))
			m.mustAppend(Moment{}, fact.Body{Seen: &fact.Seen{}})
		}
		return m.log.Steps - before, 4 * n
	})
}

// An author that says the same of one attempt again and again, or finds somebody else
// for it, makes nothing that follows more costly: beyond a limit that nobody honest
// comes near it does not count.
func TestStepsOfSayingTheSame(t *testing.T) {
	const text = "workflow: same\ntasks:\n  e: {type: manual, role: doctor}\n  a: {on-failure: {contingency: b}}\n  b: {on-failure: {contingency: c}}\n  c: {}\n  d: {after: a}\n"
	a := fact.AttemptID{Slot: "a"}
	verdict := func(on fact.AttemptID, then workflow.TaskName, p string) fact.Body {
		return fact.Body{Verdict: &fact.Verdict{
			Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: on, Kind: workflow.FailContingency, Task: then,
				Partner: workflow.PartnerID(p)}},
		}}
	}
	for name, say := range map[string]func(p *pen, i int) fact.Body{
		"ready": func(*pen, int) fact.Body { return fact.Body{Ready: &fact.ReadyBody{Attempt: a}} },
		"start": func(_ *pen, i int) fact.Body { return fact.Body{Start: &fact.Start{Attempt: a, Try: i + 1}} },
		"credentials that do not do": func(*pen, int) fact.Body {
			return fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "e"}, Try: 1},
				Credentials: []byte("nurse")}
		},
		"verdicts": func(*pen, int) fact.Body { return verdict(a, "b", "") },
		"verdicts that give it to others": func(_ *pen, i int) fact.Body {
			return verdict(a, "b", fmt.Sprint("p", i))
		},
		"verdicts on what followed": func(p *pen, i int) fact.Body {
			if i%2 == 0 {
				return verdict(a, "b", fmt.Sprint("p", i))
			}
			return verdict(fact.AttemptID{Fact: p.prev, Slot: "a"}, "c", fmt.Sprint("p", i))
		},
		"others for one verdict": func(p *pen, i int) fact.Body {
			if i == 0 {
				return verdict(a, "b", "")
			}
			return fact.Body{Assign: &fact.Assign{
				After: a, Verdict: p.first, Task: "b", Partner: workflow.PartnerID(fmt.Sprint("p", i)),
			}}
		},
		"passed on to others": func(_ *pen, i int) fact.Body {
			return fact.Body{Assign: &fact.Assign{After: a, Task: "a", Partner: workflow.PartnerID(fmt.Sprint("p", i))}}
		},
		"passed on to one": func(*pen, int) fact.Body {
			return fact.Body{Assign: &fact.Assign{After: a, Task: "a", Partner: "four"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth(t, 40, func(n int) (int, int) {
				w := newMesh(t, parse(t, text))
				if err := w.start("one",
					w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "three"}, "one", "two",
						"three")); err != nil {
					t.Fatal(err)
				}
				m := w.nodes["one"].m
				before, liar := m.log.Steps, penOf(t, m, "three", 7)
				for i := range n {
					seen := []fact.Head{}
					if i == 0 {
						seen = append(seen, m.log.Genesis().Head())
					}
					m.mustTake(t, liar.write(say(liar, i), seen...))
					m.Decide(w.moment(), w)
				}
				if m.Len() < n {
					t.Errorf("%d facts of %d", m.Len(), n)
				}
				return m.log.Steps - before, n
			})
		})
	}
}

// Participants that somebody brings in with every task that he judges cost each fact the
// same, be they always one or always others, who may not exist.
func TestStepsOfBringingIn(t *testing.T) {
	for name, who := range map[string]func(i int) workflow.PartnerID{
		"one":    func(int) workflow.PartnerID { return "four" },
		"others": func(i int) workflow.PartnerID { return workflow.PartnerID(fmt.Sprint("p", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			growth(t, 40, func(n int) (int, int) {
				var b strings.Builder
				b.WriteString("workflow: many\ntasks:\n  b: {}\n")
				for i := range n {
					fmt.Fprintf(&b, "  t%05d: {on-failure: {contingency: b}}\n", i)
				}
				w := newMesh(t, parse(t, b.String()))
				if err := w.start("one",
					w.genesis(map[workflow.PartitionName]workflow.PartnerID{"main": "three"}, "one", "two",
						"three")); err != nil {
					t.Fatal(err)
				}
				m := w.nodes["one"].m
				before, liar, seen := m.log.Steps, penOf(t, m, "three", 7), []fact.Head{m.log.Genesis().Head()}
				for i := range n {
					act := fact.Action{
						Attempt: fact.AttemptID{Slot: workflow.TaskName(fmt.Sprintf("t%05d", i))},
						Kind:    workflow.FailContingency, Task: "b", Partner: who(i),
					}
					m.mustTake(t, liar.write(fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout,
						Actions: []fact.Action{act}}},
						seen...))
					m.Decide(w.moment(), w)
					w.now += time.Millisecond
					seen = nil
				}
				if m.state.Contested() != true {
					t.Error("no verdict counts")
				}
				return m.log.Steps - before, n
			})
		})
	}
}
