package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file checks that nodes say no more than they have to: that they are quiet once
// all is known everywhere, and can read what they wrote themselves.

// talk is what one node says to another about an instance.
type talk struct {
	from, to int
	instance workflow.InstanceID
}

func (t talk) compare(o talk) int {
	return cmp.Or(cmp.Compare(t.from, o.from), cmp.Compare(t.to, o.to), slices.Compare(t.instance[:], o.instance[:]))
}

// lacking is an instance of which a node has no room for all facts.
type lacking struct {
	node     int
	instance string
}

// How many frames about an instance one honest node may send another once all is known:
// a few, and where one may still lack something what comparing it takes now and then.
const (
	quietFrames = 10
	quietEvery  = 30 * time.Second / 4
)

// said counts what a node says of instances in the last stretch of a run.
func (c *checks) said(from, to int, m *wire.Message) {
	if m == nil {
		return
	}
	c.w.nodes[from].announces(m)
	for _, r := range m.Refusals {
		if r.Why == wire.RefusedFacts {
			c.crowded[lacking{from, r.Instance.String()}] = c.w.now
		}
	}
	if c.talk == nil {
		return
	}
	about := map[workflow.InstanceID]bool{}
	for _, h := range m.Heads {
		about[h.Instance] = true
	}
	for _, f := range m.Facts {
		about[f.Instance] = true
	}
	for id := range about {
		c.talk[talk{from, to, id}]++
	}
}

// quiet checks that honest nodes were quiet in the last stretch. Where there is little
// room some lack for good what others have, and are told of it.
func (c *checks) quiet(stretch time.Duration) {
	if c.w.plan.Room > 0 {
		return
	}
	limit := quietFrames + int(stretch/quietEvery)
	for _, t := range slices.SortedFunc(maps.Keys(c.talk), talk.compare) {
		// One that takes no certificate, as its clock is far behind, lacks for good what others have.
		if to := c.w.nodes[t.to]; to.shutOut() || c.w.nodes[t.from].shutOut() {
			continue
		}
		if n := c.talk[t]; n > limit && !c.w.nodes[t.from].lied && !c.w.nodes[t.to].lied {
			c.w.violate("quiet: n%d sends n%d %d frames about %s in %s in which nothing happens, at most %d are expected",
				t.from, t.to, n, t.instance.String()[:8], stretch, limit)
		}
	}
}

// readable checks that no node counted, since it runs, that it could not read what it
// wrote itself: these disks lose whole entries, and change none.
func (c *checks) readable() {
	for _, m := range c.w.nodes {
		if m.node == nil {
			continue
		}
		st, err := m.node.Service().Status(context.Background())
		if err != nil {
			c.w.violate("readable: n%d: %v", m.i, err)
			continue
		}
		for _, what := range []string{"unreadable.summaries", "unreadable.waits"} {
			if n := st.Counters[what]; n > 0 {
				c.w.violate("readable: n%d counts %d %s, which it wrote itself", m.i, n, what)
			}
		}
	}
}
