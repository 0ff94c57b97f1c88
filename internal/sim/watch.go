package sim

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// checks are the invariants (docs/design.md, The invariants), as far as a run can see them.
type checks struct {
	w *world
	// promised are, by node, the facts that it acknowledged.
	promised []map[factID]fact.Head
	done     []doneWork
	forged   map[factID]string
	lies     map[factID]bool // by hostile members: whether they count the rules say
	// over are instances that somebody has given up: a node that comes later with more
	// is told so, and need not find anybody who goes on with it.
	over map[string]bool
	// beganBy is the initiator of an instance; unbegun are those that nobody may have begun.
	beganBy map[workflow.InstanceID]workflow.PartnerID
	unbegun map[workflow.InstanceID]bool
	// settled is what every instance had come to once all was known everywhere.
	settled map[string][]byte
	// crowded is when a node last said that it had no room for facts of an instance.
	crowded map[lacking]time.Duration
	all     map[factID]*fact.Fact
	judges  map[job]judge // the first to judge an attempt
	parties map[workflow.InstanceID][]workflow.PartnerID
	// talk is how many frames about instances were sent since all was known everywhere.
	talk map[talk]int
	// heard is when each node had a sign of life of each other from itself last, and
	// expired the same when it wrote a verdict on a partner that is gone.
	heard   map[[2]int]time.Duration
	expired map[factID]map[int]time.Duration
	// absentThen are the absences of which the author of such a verdict knew.
	absentThen map[factID]map[int]absence
	// peoples is what people were told, and meant.
	peoples peoples
}

// judge is a node that judged, and when.
type judge struct {
	node int
	at   time.Duration
}

type doneWork struct {
	node int
	id   string
	task workflow.TaskName
}

func newChecks(w *world) checks {
	return checks{w: w, promised: make([]map[factID]fact.Head, w.plan.Nodes), forged: map[factID]string{},
		lies: map[factID]bool{}, settled: map[string][]byte{},
		crowded: map[lacking]time.Duration{},
		all:     map[factID]*fact.Fact{}, judges: map[job]judge{},
		parties: map[workflow.InstanceID][]workflow.PartnerID{}, beganBy: map[workflow.InstanceID]workflow.PartnerID{},
		unbegun: map[workflow.InstanceID]bool{}, over: map[string]bool{},
		heard: map[[2]int]time.Duration{}, expired: map[factID]map[int]time.Duration{},
		absentThen: map[factID]map[int]absence{}, peoples: newPeoples()}
}

// sent checks a frame at the moment when it is sent: what it acknowledges, and
// what it tells of its sender, is durable there (Durable).
func (c *checks) sent(m *machine, frame []byte) *wire.Message {
	msg, err := wire.Decode(frame)
	if err != nil {
		c.w.violate("n%d sends a frame that cannot be read: %v", m.i, err)
		return nil
	}
	if len(msg.Facts)+len(msg.Heads) == 0 {
		return msg
	}
	c.w.event()
	for _, h := range msg.Heads {
		for _, x := range h.Heads {
			if !m.disk.facts[x.ID] {
				c.w.violate("durable: n%d acknowledges number %d of %s, which is not on its disk", m.i, x.Seq,
					c.w.label(x.Chain.Author))
			}
			if c.promised[m.i] == nil {
				c.promised[m.i] = map[factID]fact.Head{}
			}
			c.promised[m.i][x.ID] = x
		}
	}
	for _, f := range msg.Facts {
		for _, x := range f.Facts {
			if id, _, err := c.w.read.raw(x.Raw); err != nil || !m.disk.facts[id] {
				c.w.violate("durable: n%d sends a fact that is not on its disk (%v)", m.i, err)
			}
		}
	}
	return msg
}

// hears notes a sign of life of the sender's own: what it passes on of others is none,
// nor what is about a record that the hearer has not got yet, or comes when the sender's
// certificate is not valid by the hearer's clock.
func (c *checks) hears(m *machine, from int, msg *wire.Message) {
	valid := c.w.nodes[from].member.Chain.Leaf()
	if at := trust.WallOf(base.Add(c.w.now + m.skew)); msg == nil || at < valid.NotBefore || at > valid.NotAfter {
		return
	}
	self := c.w.nodes[from].member.ID()
	sign := func(about membership.Version) {
		if about.Compare(m.records[self]) <= 0 {
			c.heard[[2]int{m.i, from}] = c.w.now
		}
	}
	for _, b := range msg.Records {
		r, err := membership.DecodeRecord(b)
		if err != nil {
			continue
		}
		if r.Version.Compare(m.records[r.Partner]) > 0 {
			m.records[r.Partner] = r.Version
			c.w.hearsOfAbsence(m, r)
		}
		if r.Partner == self {
			sign(r.Version)
		}
	}
	for _, b := range msg.Beats {
		if beat, err := membership.DecodeBeat(b); err == nil && (beat.Partner == "" || beat.Partner == self) {
			sign(membership.Version{Boot: beat.Version.Boot, Seq: beat.Base})
		}
	}
	if msg.Pulse != nil {
		sign(msg.Pulse.Record)
	}
}

// excuse drops what a node promised before its disk was lost or put back.
func (c *checks) excuse(m *machine) {
	c.promised[m.i] = nil
	c.done = slices.DeleteFunc(c.done, func(d doneWork) bool { return d.node == m.i })
	c.peoples.excuse(m)
}

// reported notes that a person was told that a task is finished.
func (c *checks) reported(m *machine, id string, t workflow.TaskName) {
	c.done = append(c.done, doneWork{m.i, id, t})
}

// wrote looks at every fact that becomes durable at a node.
func (c *checks) wrote(m *machine, id factID, f *fact.Fact) {
	c.w.event()
	c.w.newest = c.w.now
	c.meanwhile(m, f)
	c.goesOn(m, f)
	c.all[id] = f
	if _, here := m.arrived[id]; !here {
		m.arrived[id] = c.w.now
	}
	if g := f.Body.Genesis; g != nil {
		if c.unbegun[fact.InstanceOf(id)] {
			c.w.violate("authorised: n%d takes in %s, which its author may not begin", m.i,
				fact.InstanceOf(id).String()[:8])
			return
		}
		c.parties[fact.InstanceOf(id)], c.beganBy[fact.InstanceOf(id)] = g.Succession, f.Chain.Author
		c.learned(m, fact.InstanceOf(id))
		return
	}
	if c.unbegun[f.Instance] { // that is wrong enough, and may be of another workflow
		return
	}
	lie := c.forged[id] != "" || c.lies[id]
	if s := f.Body.Success; s != nil && !lie {
		m.succeeded[job{f.Instance, s.Attempt}] = true
	}
	if c.forged[id] == "" {
		m.learnEnds(f)
	}
	if lie || f.Chain.Author != m.id {
		return
	}
	if v := f.Body.Verdict; v != nil {
		c.judged(m, id, f, v)
		if v.Cause == fact.CauseExpired {
			c.expired[id] = map[int]time.Duration{}
			for i := range c.w.nodes {
				c.expired[id][i] = c.heard[[2]int{m.i, i}]
			}
			c.absentThen[id] = maps.Clone(m.absent)
		}
	}
	if a := f.Body.Assign; a != nil && f.Body.Annex != nil && f.Body.Annex.Offered {
		if a.Partner == m.id {
			c.w.out.Kept++
		} else {
			c.w.out.Passed++
		}
	}
	if b := f.Body.Start; b != nil && !m.lied { // what a liar believes is its own affair
		if laterRound.MatchString(string(b.Attempt.Slot)) {
			c.w.out.Loops++
		}
		c.notBefore(m, f.Instance, b.Attempt)
		c.knownToAll(m, f.Instance, b.Attempt)
	}
	if b := f.Body.Ready; b != nil && b.Trigger {
		c.notEarly(m, f.Instance, c.w.task(b.Attempt.Slot).TimeToWait, "the trigger of "+string(b.Attempt.Slot))
	}
}

// job is an attempt of an instance.
type job struct {
	instance workflow.InstanceID
	attempt  fact.AttemptID
}

// judged checks a verdict of a node: it does not judge what it knows to have
// succeeded or has judged before, and no time-out ends before its time.
func (c *checks) judged(m *machine, id factID, f *fact.Fact, v *fact.Verdict) {
	for _, a := range v.Actions {
		if !c.w.amnesia() && m.succeeded[job{f.Instance, a.Attempt}] {
			c.w.violate("single: n%d judges %s although it knows of its success", m.i, a.Attempt.Slot)
		}
		key := job{f.Instance, a.Attempt}
		if !c.w.amnesia() && m.judged[key] {
			c.w.violate("bounded: n%d judges %s twice", m.i, a.Attempt)
		}
		m.judged[key] = true
		c.oneJudge(m, key, v)
	}
	if v.Cause != fact.CauseTimeout {
		return
	}
	if strings.HasPrefix(v.Reason, "partition ") {
		c.partitionNotEarly(m, id, f.Instance, v.Actions[0].Attempt.Slot)
		return
	}
	c.notEarly(m, f.Instance, c.leastWait(v), "a time-out")
}

// partitionNotEarly checks the time-out of a slot's partition, which was written in a fact. Where it is early by the
// workflow, its author may have known amendments that made it shorter; that is seen when the step is over.
func (c *checks) partitionNotEarly(m *machine, id factID, in workflow.InstanceID, t workflow.TaskName) {
	if !c.early(m, in, c.partitionWait(m, c.w.bounds, t)) {
		return
	}
	c.w.at(c.w.now, func() {
		bounds := c.w.bounds
		c.w.guard(m, func() {
			if h := c.historyOn(m, in); h != nil {
				bounds = c.w.boundsOf(h.Known(id, func(factID) bool { return true }).Definition())
			}
		})
		c.notEarly(m, in, c.partitionWait(m, bounds, t), "a time-out")
	})
}

// leastWait is how long the time-out of attempts lasts at least before that verdict.
func (c *checks) leastWait(v *fact.Verdict) time.Duration {
	least := time.Duration(math.MaxInt64)
	for _, a := range v.Actions {
		waited := c.waited(a.Attempt)
		// A contingency's attempt does not name its task: it is one of the slot's
		// chain, or what undoes one of these.
		for _, t := range c.w.chain(a.Attempt.Slot) {
			least = min(least, t.Timeout-waited)
			if undo := c.w.def.CompensationOf(t); undo != nil && undo.Timeout > 0 {
				least = min(least, undo.Timeout)
			}
			if a.Attempt.Fact.IsZero() || t.Whole {
				break
			}
		}
	}
	return least
}

// waited is for how long an attempt's time-out had run when it was passed on.
func (c *checks) waited(id fact.AttemptID) time.Duration {
	if f := c.all[id.Fact]; f != nil && f.Body.Annex != nil {
		return f.Body.Annex.Waited
	}
	return 0
}

// partitionWait is how long a node that is not its holder waits at least for
// the answer of a slot's partition: a tenth longer than its holder, within
// bounds.
func (c *checks) partitionWait(m *machine, by *partition.Plan, t workflow.TaskName) time.Duration {
	d := by.Timeout(by.Home(t))
	if c.w.home[t] != m.i {
		d += min(max(d/10, time.Second), 15*time.Second)
	}
	return d
}

// amnesia reports whether some node lost its memory or was put back in time, so
// that facts of its own may not count any more (choreo/log/fork.go).
func (w *world) amnesia() bool {
	return slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.forgot })
}

// notEarly checks that a wait at a node is not over before it can have begun.
// A node that was rebooted has only its wall clock to go by.
func (c *checks) notEarly(m *machine, id workflow.InstanceID, wait time.Duration, what string) {
	if c.early(m, id, wait) {
		c.w.violate("time: at n%d %s is over %s after the instance came to be known there; it is %s", m.i, what,
			c.w.now-m.learned[id], wait)
	}
}

func (c *checks) early(m *machine, id workflow.InstanceID, wait time.Duration) bool {
	since, ok := m.learned[id]
	return ok && m.boots == 0 && c.w.now-since < wait
}

// learned notes that a node knows of an instance, and that the emergency tasks
// which it holds must have been started, or ended, by their worst case.
func (c *checks) learned(m *machine, id workflow.InstanceID) {
	if _, known := m.learned[id]; known {
		return
	}
	m.learned[id] = c.w.now
	c.clocked(m, id)
}

// clocked notes that the waits of an instance begin at a node: its emergency tasks must have
// been started, or ended, by their worst case from now.
func (c *checks) clocked(m *machine, id workflow.InstanceID) {
	m.clocked[id] = c.w.now
	for _, t := range c.w.def.Tasks {
		at, ok := c.w.home[t.Name]
		if t.TimeToWait == 0 || !ok || at != m.i || t.ContingencyOnly {
			continue
		}
		start, bounded := c.w.bounds.WaitStart(t.Name)
		if bounded {
			c.fires(m, id, t.Name, c.w.now,
				c.w.now+start+t.TimeToWait+moment.Grace(c.w.plan.ConnectionTime)+time.Minute)
		}
	}
}

// goesOn notes that an instance goes on at a node which held it to be cancelled: a fork may
// take a cancellation away. All waits begin again then (choreo/waits.go): in between nobody
// worked, so what a trigger waits for has its whole time once more, and so has the trigger.
// Else a task would take for an emergency that nobody did what had been called off. By when it
// is triggered is counted from there.
func (c *checks) goesOn(m *machine, f *fact.Fact) {
	if f.Body.Cancel != nil && m.cancelled[f.Instance] == nil {
		m.cancelled[f.Instance] = &cancelled{}
	}
	x := m.cancelled[f.Instance]
	if x == nil || x.looking {
		return
	}
	x.looking = true
	c.w.at(c.w.now, func() { // when its step is over
		x.looking = false
		if m.node != nil && m.paused == 0 {
			c.w.guard(m, func() { c.show(m, f.Instance) })
		}
	})
}

// show is how a node shows an instance; whether it goes on is noted.
func (c *checks) show(m *machine, id workflow.InstanceID) (*api.Instance, error) {
	in, err := m.node.Service().Show(context.Background(), id.String())
	if x := m.cancelled[id]; err == nil && x != nil {
		was := x.is
		if x.is = in.State == workflow.InstanceCancelled; was && !x.is {
			c.clocked(m, id)
		}
	}
	return in, err
}

// fires checks at a moment, or as soon as the node is well afterwards, that an
// emergency task of the node, whose instance is clocked there since some time, does not wait
// any more. Lost memory and reboots (whose clocks are wrong at times) excuse.
func (c *checks) fires(m *machine, id workflow.InstanceID, t workflow.TaskName, since, at time.Duration) {
	allowed := c.w.allowed()
	c.w.at(at, func() {
		switch more := c.w.allowed() - allowed; {
		case m.clocked[id] != since:
			return // that is for later
		case more > 0: // amended meanwhile
			c.fires(m, id, t, since, c.w.now+more)
			return
		case m.gone || m.forgot || m.boots > 0:
			return
		case m.node == nil || m.paused > 0 || m.disk.full || c.w.now-m.well < time.Minute:
			c.fires(m, id, t, since, c.w.now+2*time.Minute)
			return
		}
		c.w.guard(m, func() { c.fired(m, id, t) })
	})
}

// fired checks that an emergency task of a node does not wait any more.
func (c *checks) fired(m *machine, id workflow.InstanceID, t workflow.TaskName) {
	in, err := c.show(m, id)
	if err != nil || in.State != workflow.InstanceRunning || m.clocked[id] == c.w.now {
		return // or it goes on just now
	}
	i := slices.IndexFunc(in.Tasks, func(x api.Task) bool { return x.Name == t })
	if x := in.Tasks[i]; x.State == workflow.NotReady && x.ReplacedBy == nil {
		c.w.violate("emergency: n%d holds %s of %s, which should have been triggered by now", m.i, t, id.String()[:8])
	}
}
