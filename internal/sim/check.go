package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// checks are the invariants of design.md, as far as a run can see them.
type checks struct {
	w *world
	// promised are facts that somebody acknowledged or reported as done.
	promised map[choreo.FactID]string
	done     []doneWork
}

type doneWork struct {
	node int
	id   string
	task workflow.TaskName
}

// factKeys are the keys of facts in a node's store (node/keys.go).
const factKeys = "f"

// onDisk lists the facts on a disk, as a crash would leave it.
func (d *disk) onDisk() map[choreo.FactID]bool {
	out := map[choreo.FactID]bool{}
	for k, v := range d.data {
		if !strings.HasPrefix(k, factKeys) {
			continue
		}
		var sf []cbor.RawMessage
		var raw []byte
		if cbor.Unmarshal(v, &sf) == nil && len(sf) > 0 && cbor.Unmarshal(sf[0], &raw) == nil {
			if _, id, err := choreo.DecodeFact(raw); err == nil {
				out[id] = true
			}
		}
	}
	return out
}

// sent checks a frame at the moment when it is sent: what it acknowledges, and
// what it tells of its sender, is durable there (Durable).
func (c *checks) sent(m *machine, frame []byte) {
	msg, err := wire.Decode(frame)
	if err != nil {
		c.w.violate("n%d sends a frame that cannot be read: %v", m.i, err)
		return
	}
	if len(msg.Facts) == 0 && len(msg.Heads) == 0 {
		return
	}
	var durable map[choreo.FactID]bool
	holds := func(id choreo.FactID) bool {
		if durable == nil {
			durable = m.disk.onDisk()
		}
		return durable[id]
	}
	for _, h := range msg.Heads {
		for _, x := range h.Heads {
			if !holds(x.ID) {
				c.w.violate("durable: n%d acknowledges number %d of %s, which is not on its disk (%d facts)", m.i, x.Seq, c.w.label(x.Chain.Author), len(durable))
			}
			c.promise(x.ID, m.i)
		}
	}
	for _, f := range msg.Facts {
		for _, x := range f.Facts {
			if _, id, err := choreo.DecodeFact(x.Raw); err != nil || !holds(id) {
				c.w.violate("durable: n%d sends a fact that is not on its disk (%v)", m.i, err)
			}
		}
	}
}

func (c *checks) promise(id choreo.FactID, node int) {
	if c.promised == nil {
		c.promised = map[choreo.FactID]string{}
	}
	c.promised[id] = fmt.Sprintf("n%d", node)
}

// reported notes that a person was told that a task is finished.
func (c *checks) reported(m *machine, id string, t workflow.TaskName) {
	c.done = append(c.done, doneWork{m.i, id, t})
}

// atEnd checks what must hold once everything has healed.
func (c *checks) atEnd() {
	all := map[choreo.FactID]bool{}
	for _, m := range c.w.nodes {
		for id := range m.disk.onDisk() {
			all[id] = true
		}
		c.w.out.Commits += m.disk.commits
	}
	for id, by := range c.promised {
		if !all[id] {
			c.w.violate("durable: a fact that %s had acknowledged is nowhere", by)
		}
	}
	c.w.out.Facts = len(all)
	for _, id := range c.w.started {
		c.instance(id)
	}
}

// instance checks one instance over all nodes that have it.
func (c *checks) instance(id string) {
	ctx := context.Background()
	var first []byte
	var where int
	var entries []api.LogEntry
	var shown *api.Instance
	for _, m := range c.w.nodes {
		if m.node == nil {
			c.w.violate("live: n%d is down although everything healed", m.i)
			continue
		}
		in, err := m.node.Show(ctx, id)
		if err != nil {
			continue // it takes no part, or never heard of it because its starter lost it before it told anybody
		}
		print, err := m.node.Fingerprint(ctx, id)
		if err != nil {
			c.w.violate("n%d: %v", m.i, err)
			continue
		}
		if first == nil {
			first, where, shown = print, m.i, in
			entries, _ = m.node.Log(ctx, id)
		} else if !bytes.Equal(first, print) {
			c.w.violate("convergent: n%d and n%d differ on %s:\n%s", where, m.i, id[:8], difference(first, print))
		}
		if in.State == workflow.InstanceRunning {
			c.w.violate("live: %s is still running at n%d:\n%s", id[:8], m.i, waiting(in))
		}
	}
	if shown == nil {
		return
	}
	c.w.out.Instances[shown.State]++
	c.single(id, entries)
	c.keptWork(id, entries)
}

// single checks that without verdicts nothing started or succeeded twice.
func (c *checks) single(id string, entries []api.LogEntry) {
	if slices.ContainsFunc(entries, func(e api.LogEntry) bool { return e.Kind == "verdict" }) {
		return
	}
	seen := map[string]int{}
	for _, e := range entries {
		if e.Kind == "success" || (e.Kind == "start" && !strings.Contains(e.Text, "try")) {
			seen[e.Kind+" of "+string(e.Task)]++
		}
	}
	for what, n := range seen {
		if n > 1 {
			c.w.violate("single: %d times %s in %s although nobody gave a verdict", n, what, id[:8])
		}
	}
}

// keptWork checks that what a person was told is done is in the history.
func (c *checks) keptWork(id string, entries []api.LogEntry) {
	for _, d := range c.done {
		if d.id != id {
			continue
		}
		ok := slices.ContainsFunc(entries, func(e api.LogEntry) bool {
			return e.Task == d.task && (e.Kind == "success" || e.Kind == "verdict")
		})
		if !ok {
			c.w.violate("durable: n%d was told that %s of %s is done, and nobody knows of it", d.node, d.task, id[:8])
		}
	}
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

// label is a node by its ID.
func (w *world) label(p workflow.PartnerID) string {
	if i, ok := w.who(p); ok {
		return fmt.Sprintf("n%d", i)
	}
	return string(p)
}
