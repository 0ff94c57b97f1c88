package sim

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/sim/meaning"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file holds what the nodes made of the facts against a second reading of the
// rules (package meaning): how every instance stands at the end, and for every fact
// whether its author was right to write it, by what it knew.

// most is how many facts an instance may have for each of them to be looked at.
const most = 400

// meanwhile has a machine's idea of an instance checked as soon as its step is over, if
// several have succeeded in one slot: that is when it is easily wrong for a while.
func (c *checks) meanwhile(m *machine, f *fact.Fact) {
	a, ends := adoptedBy(f)
	if s := f.Body.Success; s != nil {
		a, ends = s.Attempt, true
	}
	if ends {
		k := slot{f.Instance, a.Slot}
		if m.several[k] == nil {
			m.several[k] = map[fact.AttemptID]bool{}
		}
		m.several[k][a] = true
		m.contested[f.Instance] = m.contested[f.Instance] || len(m.several[k]) > 1
	}
	if !m.contested[f.Instance] || m.looking[f.Instance] {
		return
	}
	m.looking[f.Instance] = true
	c.w.at(c.w.now, func() {
		m.looking[f.Instance] = false
		if m.node == nil || m.paused > 0 || m.disk.full || m.lied || m.forgot {
			return
		}
		c.w.guard(m, func() {
			if print, err := m.node.Fingerprint(context.Background(), f.Instance.String()); err == nil {
				c.reads(m, f.Instance, print)
			}
		})
	})
}

// reads checks how a machine shows an instance against what its disk says.
func (c *checks) reads(m *machine, id workflow.InstanceID, print []byte) (*meaning.History, map[factID]*fact.Fact) {
	facts := m.disk.factsOf(id)
	h, err := meaning.New(c.w.def, facts)
	if err != nil {
		c.w.violate("meaning: what n%d has of %s: %v", m.i, id.String()[:8], err)
		return nil, nil
	}
	if c.w.claims() {
		h.Hear(c.voices(id))
		h.Amend(c.w.amended, c.w.roundsBy)
	}
	c.refuseAs(h, facts, print)
	all := h.Of(h.All())
	want, got := all.Lines(), meaning.Shown(print)
	if !slices.Equal(want, got) {
		c.w.violate("meaning: n%d shows %s otherwise than its facts say:\n%s", m.i, id.String()[:8],
			strings.Join(append(refusals(print),
				c.apart(want, got)), "\n"))
	}
	c.stands(all, id, got)
	if want, got := all.UnitLines(), meaning.ShownUnits(print); !slices.Equal(want, got) {
		c.w.violate("units: n%d shows the resources of %s otherwise than its facts say:\n%s", m.i, id.String()[:8],
			difference([]byte(strings.Join(want, "\n")), []byte(strings.Join(got, "\n"))))
	}
	c.readItems(m, id, all, print)
	if want, got := all.FlowLines(), meaning.ShownFlow(print); !slices.Equal(want, got) {
		c.w.violate("history: n%d shows the states of %s otherwise than its facts say:\n%s", m.i, id.String()[:8],
			difference([]byte(strings.Join(want, "\n")), []byte(strings.Join(got, "\n"))))
	}
	return h, facts
}

// meant checks one instance, as a machine shows it at the end.
func (c *checks) meant(m *machine, id workflow.InstanceID, print []byte) {
	h, facts := c.reads(m, id, print)
	if h == nil {
		return
	}
	if c.forkers(id, h); c.w.claims() {
		c.peoplesWork(m, id, h, print)
	}
	if h.Forked() || len(facts) > most {
		return
	}
	for _, fid := range slices.SortedFunc(maps.Keys(facts), compareFacts(facts)) {
		if c.forged[fid] != "" || c.lies[fid] {
			continue
		}
		if i, ok := c.w.who(facts[fid].Chain.Author); ok && c.w.nodes[i].lied && c.w.claims() {
			continue // its own node may believe what it lied about its items
		}
		for _, wrong := range h.Faults(fid) {
			f := facts[fid]
			c.w.violate("meaning: %s's %s of %s: %s", c.w.label(f.Chain.Author), said(f), id.String()[:8], wrong)
		}
		c.inTime(h, fid, facts[fid])
	}
}

// forkers checks that whoever forked a chain lies, or lost what it had on its disk.
func (c *checks) forkers(id workflow.InstanceID, h *meaning.History) {
	for _, p := range h.Forkers() {
		if i, known := c.w.who(p); known && !c.w.nodes[i].lied && !c.w.nodes[i].forgot {
			c.w.violate("durable: n%d used a number of a chain of %s twice", i, id.String()[:8])
		}
	}
}

// refuseAs is refuse of all facts that do not count for a machine, as its fingerprint says.
func (c *checks) refuseAs(h *meaning.History, facts map[factID]*fact.Fact, print []byte) {
	for line := range strings.Lines(string(print)) {
		if x := refusedFact.FindStringSubmatch(line); x != nil {
			c.refuse(h, facts, x[1])
		}
	}
}

// refuse takes a node's word for it that a fact does not count, if its author is one
// that lies, or had built upon what a fork took away and does not hold that up. That what a
// liar may not say does not count is checked besides (authorised).
func (c *checks) refuse(h *meaning.History, facts map[factID]*fact.Fact, name string) {
	for id, f := range facts {
		if id.String() != name {
			continue
		}
		if i, ok := c.w.who(f.Chain.Author); ok && c.w.nodes[i].lied || h.Bereft(id) {
			h.Refuse(id)
		}
	}
}

// stands checks that what was built upon stands.
func (c *checks) stands(all *meaning.Meaning, id workflow.InstanceID, shown []string) {
	stand := func(a fact.AttemptID) bool {
		return slices.ContainsFunc(shown, func(l string) bool {
			return strings.HasPrefix(l, "attempt "+a.String()+" of ") && strings.Contains(l, " stands=true")
		})
	}
	all.BuiltUpon(func(a, upon fact.AttemptID) {
		if stand(a) && !stand(upon) {
			c.w.violate("meaning: in %s %s stands, and %s, which it was built upon, does not", id.String()[:8], a, upon)
		}
	})
}

// refusedFact is a fingerprint's line of a fact that does not count.
var refusedFact = regexp.MustCompile(`^fact \d+ (\S+) .*counted=false`)

// refusals are the lines of a fingerprint about what does not count, and why.
func refusals(print []byte) (out []string) {
	for line := range strings.Lines(string(print)) {
		if strings.HasPrefix(line, "refused ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// said names what a fact says, and of what.
func said(f *fact.Fact) string {
	b := &f.Body
	switch {
	case b.Ready != nil:
		return "ready " + b.Ready.Attempt.String()
	case b.Start != nil:
		return "start " + b.Start.Attempt.String()
	case b.Success != nil:
		return "success " + b.Success.Attempt.String()
	case b.CalledOff != nil:
		return "called-off " + b.CalledOff.Attempt.String()
	case b.Claim != nil:
		return fmt.Sprintf("claim %T of %s", b.Claim.Body(), b.Claim.About())
	case b.Fire != nil:
		return fmt.Sprintf("firing of %s in state %s", b.Fire.Tasks, b.Fire.State.Short())
	}
	return fmt.Sprintf("%s number %d", b.Kind(), f.Seq)
}

// compareFacts orders facts by name: runs are to be the same each time.
func compareFacts(facts map[factID]*fact.Fact) func(a, b factID) int {
	return func(a, b factID) int {
		return cmp.Or(cmp.Compare(facts[a].Seq, facts[b].Seq), slices.Compare(a[:], b[:]))
	}
}

// apart shows the first of those lines that only one of two sorted lists has.
func (c *checks) apart(a, b []string) string {
	var out []string
	only := func(sign string, of, others []string) {
		for _, l := range of {
			if _, has := slices.BinarySearch(others, l); !has && len(out) < 16 {
				out = append(out, "  "+sign+" "+l+c.named(l))
			}
		}
	}
	only("-", a, b)
	only("+", b, a)
	return strings.Join(out, "\n")
}

// named says what the fact says that a line is about.
func (c *checks) named(line string) string {
	var id factID
	name, counts := strings.CutPrefix(line, "counts ")
	if _, err := hex.Decode(id[:], []byte(name)); !counts || err != nil || c.all[id] == nil {
		return ""
	}
	return ": " + c.w.label(c.all[id].Chain.Author) + "'s " + said(c.all[id])
}
