package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file checks what nodes keep: nothing is given up that somebody lacks or taken in
// again after that, one member fills no more than its part, and what a disk has lost
// comes back from the others.

// The keys of a node's store of which the simulator knows (node/keys.go).
const (
	closingKeys    = 'x'
	quarantineKeys = 'q'
)

// unanswered is how long a node waits for a partner that is connected, and does not
// acknowledge what has ended (node/retention.go), without what two comparisons take.
const unanswered = time.Hour - time.Minute

// gaveUp checks, when a machine replaces an instance by its summary, that all who take
// part have all of it. One whose disk is full, or that is paused while it is connected,
// acknowledges nothing, and is waited for no longer than others that do not.
func (c *checks) gaveUp(m *machine, id workflow.InstanceID) {
	c.w.note("n%d gives up %s", m.i, id.String()[:8])
	c.over[id.String()] = true
	if m.forgot {
		return // it does not know what it had told
	}
	for _, p := range c.parties[id] {
		i, ok := c.w.who(p)
		o := c.w.nodes[i]
		if !ok || o.forgot || o.lied || o.keepsSummary(id.String()) {
			continue
		}
		if f, lacks := c.lacks(o, m, id); lacks && o.muteFor(m.arrived[f]) < unanswered {
			c.w.violate("pruned: n%d gives up %s, and n%d does not have %s's %s", m.i, id.String()[:8], i,
				c.w.label(c.all[f].Chain.Author), said(c.all[f]))
			return
		}
	}
}

// lacks is what came first to a machine of what another lacks of an instance. Of what a
// liar wrote others may have other parts.
func (c *checks) lacks(o, m *machine, id workflow.InstanceID) (first factID, any bool) {
	for fid := range m.disk.facts {
		f := c.all[fid]
		if f == nil || f.Instance != id || o.disk.facts[fid] || c.lies[fid] || c.forged[fid] != "" {
			continue
		}
		if !any || cmp.Or(cmp.Compare(m.arrived[fid], m.arrived[first]), bytes.Compare(fid[:], first[:])) < 0 {
			first, any = fid, true
		}
	}
	return first, any
}

// fill has a machine's disk be full, or have room again.
func (m *machine) fill(full bool) {
	m.disk.full = full
	m.noteMute()
}

// pauses has one more or one less reason hold a machine up.
func (m *machine) pauses(by int) {
	m.paused += by
	m.noteMute()
}

// noteMute notes when a machine begins or ceases to acknowledge nothing. Connections to one
// that is paused stay as they are (reachable).
func (m *machine) noteMute() {
	if mute := m.disk.full || m.paused > 0; mute != (len(m.muted)%2 == 1) {
		m.muted = append(m.muted, m.w.now)
	}
}

// muteFor is for how long it could acknowledge nothing since then.
func (m *machine) muteFor(since time.Duration) (long time.Duration) {
	for i, at := range m.muted {
		until := m.w.now
		if i+1 < len(m.muted) {
			until = m.muted[i+1]
		}
		if i%2 == 0 {
			long += max(until, since) - max(at, since)
		}
	}
	return long
}

// again is called when a machine writes a fact of an instance that it had given up.
func (c *checks) again(m *machine, id workflow.InstanceID) {
	c.w.violate("pruned: n%d takes in %s again, which it had given up", m.i, id.String()[:8])
}

// inRoom checks that nobody fills more of a machine than members may: half of what there
// is room for, with what others named; and what came last at once.
func (c *checks) inRoom(m *machine) {
	if c.w.plan.Room == 0 || m.lied {
		return
	}
	of := map[workflow.PartnerID]int64{}
	for key, value := range m.disk.data {
		if key[0] != factKeys {
			continue
		}
		for x := range c.w.read.stored(value) {
			of[x.f.Chain.Author] += int64(x.size)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		if limit := c.w.plan.Room/2 + wire.MaxBundle; p != m.id && of[p] > limit {
			c.w.violate("bounded: n%d has %d bytes of facts of %s, at most %d are expected", m.i, of[p], c.w.label(p),
				limit)
		}
	}
}

// repaired checks, at the end, that nothing is set aside of which another has all. A node
// that is gone for good may have been out of reach of all others since its disk lost
// something.
func (c *checks) repaired(m *machine) {
	if m.gone {
		return
	}
	for key := range m.disk.data {
		if key[0] != quarantineKeys || len(key) != 17 {
			continue
		}
		id := workflow.InstanceID([]byte(key[1:]))
		for _, o := range c.w.honest() {
			if o == m || !slices.Contains(c.parties[id], o.id) || !slices.Contains(c.parties[id], m.id) {
				continue
			}
			if has := o.disk.has(id); has {
				c.w.violate("repaired: n%d has set %s aside, and n%d has it", m.i, id.String()[:8], o.i)
				return
			}
		}
	}
}

// has reports whether an instance is on the disk and was not set aside.
func (d *disk) has(id workflow.InstanceID) bool {
	_, aside := d.data[string(quarantineKeys)+string(id[:])]
	_, there := d.data[string(factKeys)+string(id[:])+"\x00\x00\x00\x00"]
	return there && !aside
}

// spoil has some facts of a machine's disk not be readable any more.
func (w *world) spoil(m *machine) {
	var keys []string
	for key := range m.disk.data {
		if key[0] == factKeys {
			keys = append(keys, key)
		}
	}
	if slices.Sort(keys); len(keys) == 0 {
		return
	}
	img := m.disk.backup()
	if img.bad == nil {
		img.bad = map[string]bool{}
	}
	for range 1 + w.r.IntN(3) {
		key := keys[w.r.IntN(len(keys))]
		img.bad[key] = true
		for x := range w.read.stored(img.data[key]) {
			delete(img.facts, x.id)
		}
		w.note("n%d's disk cannot read %q", m.i, key)
	}
	w.restored(m, img)
	for _, key := range slices.Sorted(maps.Keys(img.bad)) {
		m.disk.damage.Found = append(m.disk.damage.Found, fmt.Sprintf("%q cannot be read", key))
		if r := node.StoreRange([]byte(key)); r != nil {
			m.disk.damage.Ranges = append(m.disk.damage.Ranges, r)
		}
	}
}
