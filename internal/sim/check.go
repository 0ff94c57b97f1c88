package sim

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file checks what must hold at the end of a run; watch.go checks what
// must hold all the time.

// atEnd checks what must hold once everything has healed and ended.
func (c *checks) atEnd() {
	all := map[factID]bool{}
	for _, m := range c.w.nodes {
		maps.Copy(all, m.disk.facts)
		c.w.out.Commits += m.disk.commits
		for id, x := range c.promised[m.i] {
			if !m.disk.facts[id] {
				c.w.violate("durable: n%d had acknowledged number %d of %s, and it is not on its disk", m.i, x.Seq,
					c.w.label(x.Chain.Author))
			}
		}
		room := len(c.w.def.Canonical()) + diskRoom + diskPerFact*len(m.disk.facts) + diskPerUser*len(c.w.users)
		if size := m.disk.size(); size > room {
			c.w.violate("bounded: n%d's disk holds %d bytes for %d facts", m.i, size, len(m.disk.facts))
		}
		c.fewChains(m)
		c.inRoom(m)
		c.repaired(m)
		c.givenBack(m)
		if m.node == nil && !m.gone {
			c.w.violate("live: n%d is down although everything healed", m.i)
		}
	}
	c.w.out.Facts = len(all)
	for _, id := range c.w.started {
		c.instance(id)
	}
	hours := c.w.now.Hours() * float64(len(c.w.nodes))
	if limit := 5000 + int(hours*3000); c.w.out.Frames > limit {
		c.w.violate("bounded: %d frames in %.0f node-hours, at most %d are expected", c.w.out.Frames, hours, limit)
	}
}

// fewChains checks that a machine took in no more chains of anybody than each partner
// takes in for itself.
func (c *checks) fewChains(m *machine) {
	type author struct {
		instance workflow.InstanceID
		partner  workflow.PartnerID
	}
	chains := map[author]map[fact.Chain]bool{}
	for id := range m.disk.facts {
		f := c.all[id]
		if f == nil || m.lied {
			continue
		}
		a := author{f.Instance, f.Chain.Author}
		if chains[a] == nil {
			chains[a] = map[fact.Chain]bool{}
		}
		chains[a][f.Chain] = true
	}
	for a, cs := range chains {
		if limit := fact.MaxChains * (len(c.w.nodes) + 1); len(cs) > limit {
			c.w.violate("bounded: n%d has %d chains of %s in %s, at most %d are expected",
				m.i, len(cs), c.w.label(a.partner), a.instance.String()[:8], limit)
		}
	}
}

// What a node may keep on its disk, in bytes, beside the run's definition, which all members
// list: records, instances that others made and it does not hold, and so much for each fact,
// with its share of summaries and waits.
const (
	diskRoom    = 16 << 10
	diskPerFact = 1536
	diskPerUser = 1 << 10 // the records about a user, and what was certified here
)

// honest are the machines whose nodes run and never lied. What a liar itself
// believes is its own affair: it has told of facts that it does not have.
func (w *world) honest() []*machine {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return m.node == nil || m.lied })
}

// instance checks one instance over all nodes that have it.
func (c *checks) instance(id string) {
	ctx := context.Background()
	var first []byte
	var where int
	var entries []api.LogEntry
	var shown *api.Instance
	views := c.views(id)
	for _, v := range views {
		m := v.m
		if c.outside(v) {
			if o := views[0]; o.takesPart(o.m) && o.takesPart(m) {
				c.w.violate("convergent: n%d believes that it takes no part in %s, n%d that it does", m.i, id[:8],
					o.m.i)
			} else if a, b := c.withoutLies(first), c.withoutLies(v.print); first != nil && !bytes.Equal(a, b) {
				c.w.violate("convergent: n%d and n%d differ on %s:\n%s", where, m.i, id[:8], difference(a, b))
			}
			continue
		}
		if first == nil {
			first, where, shown = v.print, m.i, v.in
			entries, _ = m.node.Service().Log(ctx, id)
		} else if !bytes.Equal(first, v.print) {
			c.differ(c.w.nodes[where], m, id, first, v.print)
		}
		if c.w.plan.drives() && v.takesPart(m) {
			c.history(m, id, v.in)
		}
		if v.in.State == workflow.InstanceRunning && !c.w.nobodyLeft(v.in) && !c.w.keptByLiar(v.in) && !c.over[id] && v.takesPart(m) {
			c.w.violate("live: %s is still running at n%d:\n%s", id[:8], m.i, waiting(v.in))
		}
	}
	if shown == nil {
		return
	}
	c.w.out.Instances[shown.State]++
	for _, t := range shown.Tasks {
		c.w.out.Tasks[t.Name] = t.State
	}
	if t := c.settled[id]; t != nil && !c.over[id] {
		if before, after := c.compared(t, first); !bytes.Equal(before, after) {
			c.w.violate("final: %s changed after everything was known:\n%s", id[:8], difference(before, after))
		}
	}
	if c.w.plan.drives() {
		c.brought(shown)
	} else {
		c.single(id, entries)
	}
	c.keptWork(id, entries)
	c.authorised(id, entries)
	if parsed, err := workflow.ParseInstanceID(id); err == nil {
		c.meant(c.w.nodes[where], parsed, first)
		c.lifted(parsed)
		c.undone(parsed, shown)
	}
}

// view is an instance as a machine shows it.
type view struct {
	m     *machine
	in    *api.Instance
	print []byte
}

// views is how the machines show an instance, those first that take part in it. They are
// all but those that have only its summary, and those that never heard of it because its
// starter lost it before it told anybody.
func (c *checks) views(id string) (vs []view) {
	ctx, others := context.Background(), []view(nil)
	for _, m := range c.w.honest() {
		in, err := m.node.Service().Show(ctx, id)
		if err != nil || in.Told != nil || m.keepsSummary(id) { // told: others show it to whoever decides here
			continue
		}
		print, err := m.node.Fingerprint(ctx, id)
		if err != nil {
			c.w.violate("n%d: %v", m.i, err)
			continue
		}
		if takesPart(m, print) {
			vs = append(vs, view{m, in, print})
		} else {
			others = append(others, view{m, in, print})
		}
	}
	return append(vs, others...)
}

// takesPart reports whether a machine takes part in an instance that is shown in this
// way. A node that was brought in by a chain that proved to be forked does not any
// more, and has nothing to end: where only the liar is left, nobody has.
func (v view) takesPart(m *machine) bool { return takesPart(m, v.print) }

// takesPart is view.takesPart for a fingerprint.
func takesPart(m *machine, print []byte) bool {
	return bytes.Contains(print, []byte("\nparticipant "+string(m.member.ID())+"\n"))
}

// nobodyLeft reports whether an instance visibly waits for a node that can take
// a contingency, while the one that could is gone for good or shut out by its clock.
func (w *world) nobodyLeft(in *api.Instance) bool {
	crane := w.nodes[craneAt]
	return (crane.gone || crane.shutOut()) &&
		slices.ContainsFunc(in.Tasks, func(t api.Task) bool { return strings.Contains(t.Reason, "nobody can take") })
}

// shutOut reports whether the machine's clock is so far behind that for it no certificate
// is valid yet, not even its own: it takes nothing and reaches nobody until somebody sets
// its clock.
func (m *machine) shutOut() bool {
	wall := trust.WallOf(base.Add(m.w.now + m.skew + trust.ClockSkew))
	return wall < m.member.Chain.Leaf().NotBefore
}

// compared are two fingerprints, as far as they must be the same. Where there is little
// room nodes need not have the same of what liars wrote and does not count, and may find
// room for it late.
func (c *checks) compared(a, b []byte) ([]byte, []byte) {
	if c.w.plan.Room > 0 {
		return c.withoutLies(a), c.withoutLies(b)
	}
	return a, b
}

// differ says that two machines show an instance otherwise.
func (c *checks) differ(m, o *machine, id string, a, b []byte) {
	if a, b = c.compared(a, b); !bytes.Equal(a, b) {
		c.w.violate("convergent: n%d and n%d differ on %s:\n%s", m.i, o.i, id[:8], difference(a, b))
	}
}

// withoutLies is a fingerprint without what liars wrote and does not count.
func (c *checks) withoutLies(print []byte) (out []byte) {
	for line := range strings.Lines(string(print)) {
		var id factID
		if x := refusedFact.FindStringSubmatch(line); x != nil {
			if _, err := hex.Decode(id[:], []byte(x[1])); err == nil &&
				(c.lies[id] || c.forged[id] != "" || c.byLiar(id)) {
				continue
			}
		}
		if !strings.HasPrefix(line, "refused ") && !strings.HasPrefix(line, "fork ") {
			out = append(out, line...)
		}
	}
	return out
}

// byLiar reports whether a fact is of a machine that has lied: what it said honestly may not count for its lies.
func (c *checks) byLiar(id factID) bool {
	f := c.all[id]
	if f == nil {
		return false
	}
	i, known := c.w.who(f.Chain.Author)
	return known && c.w.nodes[i].lied
}

// keepsSummary reports whether all that the machine has of an instance is its summary.
func (m *machine) keepsSummary(id string) bool {
	parsed, err := workflow.ParseInstanceID(id)
	_, over := m.disk.data[string(closingKeys)+string(parsed[:])]
	return err == nil && over
}

// settle keeps what every instance has come to, when all is known everywhere. What it has
// come to at a node that lately had no room for facts says nothing: they come when there is
// room, as when other instances have ended.
func (c *checks) settle() {
	c.talk = map[talk]int{}
	for _, id := range c.w.started {
		for _, v := range c.views(id) {
			at, crowded := c.crowded[lacking{v.m.i, id}]
			if !c.outside(v) && !(crowded && c.w.now-at < 2*exchange) {
				c.settled[id] = v.print
				c.w.out.Settled++
				break
			}
		}
	}
}

// outside reports whether a machine sees that it takes no part in an instance. It is told what
// counts (choreo.Machine.Involved). What liars told it that does not count it may have alone:
// a node that takes no part any more names nothing, so others need not take that in.
func (c *checks) outside(v view) bool { return !v.takesPart(v.m) }

// single checks that without verdicts nothing started or succeeded twice. A
// node that lost its memory cannot know what it had started.
func (c *checks) single(id string, entries []api.LogEntry) {
	if slices.ContainsFunc(entries, func(e api.LogEntry) bool { return e.Kind == "verdict" }) ||
		c.w.amnesia() {
		return
	}
	seen := map[string]int{}
	for _, e := range entries {
		undoes := strings.HasPrefix(e.Text, "compensation ") // of what counts, by order
		if !e.Counted || undoes {
			continue
		}
		if e.Succeeds() {
			seen["success of "+string(e.Task)]++
		}
		if e.Starts() && !strings.Contains(e.Text, "try") {
			seen["start of "+string(e.Task)]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		if n := seen[what]; n > 1 {
			c.w.violate("single: %d times %s in %s although nobody gave a verdict", n, what, id[:8])
		}
	}
}

// keptWork checks that what a person was told is done is in the history. At a node in
// whose name more chains were opened than others take in, or that filled with lies what others
// keep of its words, nobody may hear of it.
func (c *checks) keptWork(id string, entries []api.LogEntry) {
	for _, d := range c.done {
		m := c.w.nodes[d.node]
		if d.id != id || m.gone || c.tooManyChains(m, id) || c.filled(m, id) || m.keepsSummary(id) && c.hadDone(m, d) {
			continue
		}
		ok := slices.ContainsFunc(entries, func(e api.LogEntry) bool {
			// What became of an attempt that a fork takes away is told by the task whose slot it was to fill.
			return (e.Task == d.task || c.w.mayFill(e.Task, d.task)) && (e.Succeeds() || e.Kind == "verdict")
		})
		if !ok {
			c.w.violate("durable: n%d was told that %s of %s is done, and nobody knows of it", d.node, d.task, id[:8])
		}
	}
}

// mayFill reports whether a task may fill the slot of another, as its contingency or that one's.
func (w *world) mayFill(slot, task workflow.TaskName) bool {
	for _, t := range w.chain(slot) {
		if t.Name == task && t.Name != slot && !w.task(slot).Whole {
			return true
		}
	}
	return false
}

// filled reports whether a machine brought so many bytes of lies into an instance that others
// said that they have no room for what it adds.
func (c *checks) filled(m *machine, id string) bool {
	in, err := workflow.ParseInstanceID(id)
	loads := func(key string) bool { return strings.HasSuffix(key, string(in[:])) }
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(m.loads)), loads) {
		return false
	}
	for _, other := range c.w.nodes {
		if _, crowded := c.crowded[lacking{other.i, id}]; other != m && !other.gone && !crowded {
			return false
		}
	}
	return true
}

// tooManyChains reports whether more chains were opened in a machine's name, in an instance,
// than others take in: it lied, or lost its disk so often.
func (c *checks) tooManyChains(m *machine, id string) bool {
	chains := map[fact.Chain]bool{}
	for f, x := range c.all {
		if x.Chain.Author == m.id && (fact.Received{Fact: x, ID: f}).Instance().String() == id {
			chains[x.Chain] = true
		}
	}
	return len(chains) > fact.MaxChains
}

// hadDone reports whether a machine's own success of a task, or its verdict about it, was
// durable at that machine. Where it has given up the instance since, only a store that was
// put back may still show it, as it was before.
func (c *checks) hadDone(m *machine, d doneWork) bool {
	is := func(a fact.AttemptID) bool {
		if from := c.all[a.Fact]; from != nil && from.Body.Assign != nil {
			return from.Body.Assign.Task == d.task
		}
		return a.Slot == d.task
	}
	for id := range m.disk.facts {
		f := c.all[id]
		if f == nil || f.Instance.String() != d.id || f.Chain.Author != m.id {
			continue
		}
		if s := f.Body.Success; s != nil && is(s.Attempt) {
			return true
		}
		if v := f.Body.Verdict; v != nil &&
			slices.ContainsFunc(v.Actions, func(x fact.Action) bool { return is(x.Attempt) }) {
			return true
		}
	}
	return false
}

// authorised checks that no fact counts that its author was not entitled to.
func (c *checks) authorised(id string, entries []api.LogEntry) {
	for _, e := range entries {
		if !e.Counted || len(c.forged) == 0 {
			continue
		}
		for lie, kind := range c.forged {
			if lie.String() == e.Fact && !c.amendedTo(c.all[lie]) {
				c.w.violate("authorised: in %s a forged %s counts", id[:8], kind)
			}
		}
	}
}

// amendedTo reports whether a verdict, which is wrong by the definition, says what an amendment of its instance has
// become of the task's failure. Then it may be right, which the second reading judges.
func (c *checks) amendedTo(lie *fact.Fact) bool {
	if lie == nil || lie.Body.Verdict == nil {
		return false
	}
	x := lie.Body.Verdict.Actions[0]
	for _, f := range c.all {
		if f.Instance != lie.Instance || f.Body.Claim == nil {
			continue
		}
		amend, is := f.Body.Claim.Body().(worklist.Amend)
		if !is {
			continue
		}
		p, err := amendments.DecodePatch(amend.Patch)
		if err == nil && slices.ContainsFunc(p, func(s amendments.Setting) bool {
			if s.Kind == amendments.OfTask && s.Key == "contingency" && x.Kind == workflow.FailContingency &&
				string(s.Value) == strconv.Quote(string(x.Task)) {
				return true
			}
			return s.Kind == amendments.OfTask && s.Name == string(x.Attempt.Slot) && s.Key == "on-failure" &&
				(string(s.Value) == strconv.Quote(string(x.Kind)) || len(s.Value) == 0 && x.Kind == workflow.FailBlock)
		}) {
			return true
		}
	}
	return false
}

// difference shows the first lines in which two fingerprints differ.
func difference(a, b []byte) string {
	la, lb := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	var out []string
	for i := range max(len(la), len(lb)) {
		x, y := "", ""
		if i < len(la) {
			x = la[i]
		}
		if i < len(lb) {
			y = lb[i]
		}
		if x != y && len(out) < 8 {
			out = append(out, "  - "+x, "  + "+y)
		}
	}
	return strings.Join(out, "\n")
}

// waiting says what an instance waits for.
func waiting(in *api.Instance) string {
	var out []string
	for _, t := range in.Tasks {
		if !t.State.Done() {
			out = append(out, fmt.Sprintf("  %s is %s at %s %s", t.Name, t.State, t.Partner, t.Reason))
		}
	}
	return strings.Join(out, "\n")
}

// name is what people call a machine.
func (w *world) name(m *machine) string { return m.member.Chain.Leaf().Name }

// label is a node by its ID.
func (w *world) label(p workflow.PartnerID) string {
	if i, ok := w.who(p); ok {
		return fmt.Sprintf("n%d", i)
	}
	return string(p)
}
