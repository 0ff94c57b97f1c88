package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is the execution manager: it clocks what this node waits for, and
// judges when a wait is over (docs/systems.md, Failure; docs/systems.md, Emergency
// triggers; docs/design.md, idea 4; docs/design.md, idea 8).
//
//	what            whose      clock runs                                     when it is over
//	timeout         own task   from ready, until it ends                      the holder's verdict, final
//	partition       own        while one of its tasks is ready or running,    the holder's verdict, final
//	                           here or where it passed it on                  (presumed of what it passed on)
//	untaken         own task   from when somebody may take it, or from when   nothing; more see it, or the task
//	and offered                it was first offered, until it ends, while     is given to somebody (pulling.go)
//	                           a mechanism that pulls goes by that
//	trigger         own task   from when a predecessor is known to be ready,  its rule counts as true
//	                           at the latest from the worst case
//	answer          another's  from when all that it waits for is known to    the guardian's verdict,
//	                partition  have ended, at the latest from the worst case, presumed
//	                           and was handed over; again whenever a task
//	                           joins those that may be judged
//	attempt         another's  from when it is known to be ready, and was     the guardian's verdict, presumed
//	                           handed over
//	its readiness   another's  from when its rule holds, or the wait of its   the same
//	                           trigger began, for all that is known here,
//	                           and was handed over, until it is ready; the
//	                           worst case, from when its holder took it, if
//	                           it was given that later
//	hand-over       another's  until its holder is known to have heard what   the three above begin all the same
//	                           made it ready, or had the wait of its trigger
//	                           begin, at most its connectionTime and an hour
//	                           from the newest of that
//	pending         nobody's   while a contingency waits and somebody can     the guardian gives it out
//	                           take it
//	gone            another's  from when the partner list says so             the guardian's verdict, presumed
//	keeper          another's  from when somebody waits for what a partner    the guardian keeps the resources
//	                           keeps who is gone, or absent as announced
//
// What may be judged of a partition are its unfinished tasks without those that
// are known to wait for what is clocked elsewhere (guardian.go). A task joins
// them when that is over, when a block is lifted, and when its trigger fires.
//
// Clocked as attempts, each by itself, are contingencies, what was passed on, and all
// that is at another in a partition which may be kept for ever: one of its tasks may
// take for ever, or it waits for what may never end, as tasks do that wait for data
// which they would write for each other. No moment is known at which the time of such
// a partition begins; that of each of its tasks does when the task can begin, and goes on
// when the partition may be kept for ever no more.
//
// A clock begins again only by a fact that came, or by the age of data that a rule asks for:
// that of an answer when a task joins, and when a lifted block has the partition kept for ever
// until what it waits for has ended once more; the wait for a hand-over as often, with each
// fact more that made something ready and that its holder may lack, and when what was clocked
// by itself is clocked with its partition; that of readiness when the rule
// holds no more; that of a partition of our own when all that was left of it was blocked, and a block
// lifts: nobody could work in it meanwhile; all of them when an instance goes on that had ended, as a block lifted, or
// that was cancelled, as a fork took the cancellation away: nobody worked in between. A block
// lifts at most once for each attempt that was presumed to have failed, or when a fork takes
// facts away, and there are not more of either than choreo/fact/limits.go allows. What one clock may
// judge depends on which others run, but a clock for what is ready or running stays until
// that ends, or until a fact comes: what joins by that joins once.
//
// A partner that acknowledges nothing, and does not expire, stalls nothing: it
// lives, so it has met somebody within the connectionTime that bounds the
// hand-over, and after that its time runs as if it had heard.
//
// The guardian is the partner that orchestrates, else the first of the succession who is
// neither gone nor absent as announced. The others clock the same waits and judge one
// guardian-timeout later for each living partner before them, so that a silent
// guardian is replaced without asking anybody.

// watch looks at all that this node waits for and judges what is over. It
// reports whether it added facts.
func (d *decision) watch() (added bool) {
	c := &d.clocks
	d.hearing = hearing{}
	c.calm = d.calm()
	running := d.state.Overall() == workflow.InstanceRunning
	every := d.watchEvery()
	next := c.watched + every
	all := !running || every == 0 || c.watched == 0 || d.now.Boot >= next
	if all {
		c.Pass()
		c.carefree = d.carefree()
	}
	goesOn := (running && !c.carefree) || (!running && d.timed && d.goesOn())
	age := time.Duration(0)
	if goesOn && d.timed {
		age = c.Run(waits.Key{Kind: waits.WorstCase}, true, d.now.Boot)
	}
	if d.watchSlots(age, (d.timed || d.pulls) && (running || d.goesOn())) {
		return true
	}
	if !all {
		d.out.wake(next)
		return false
	}
	if goesOn && running {
		added = d.watchPartitions() || d.watchOthers(age)
	}
	if !added {
		c.watched = max(d.now.Boot, 1) // 0 is never
		c.Sweep()
	}
	return added
}

// watchEvery is how often at most all partitions, participants and contingencies at others
// are looked at: where there are many not for each fact. What is over is judged so much later.
func (m *Machine) watchEvery() time.Duration {
	if n := len(m.state.Placements()) + len(m.state.Joined()) + len(m.look().others); n >= manySlots {
		return time.Duration(n) * lookPause
	}
	return 0
}

// carefree reports whether there is nothing to watch: no time-outs, no
// contingencies, and nobody with work is gone.
func (o outlook) carefree() bool {
	if o.timed || o.state.Contested() || o.clocks.LenOthers() > 0 || o.Waiting() {
		return false
	}
	for p := range o.look().unjudged {
		if o.log.Steps++; p != "" && o.partners.Gone(p) {
			return false
		}
	}
	return len(o.orphaned()) == 0
}

// watchPartitions clocks the partitions that this node holds and that have a
// time-out of their own.
func (d *decision) watchPartitions() bool {
	for _, g := range d.state.Placements() {
		if p := d.state.Plan().Partition(g.Partition); g.Partner == d.self && p.Declared &&
			d.watchPartition(g.Partition, p.Timeout) {
			return true
		}
	}
	return false
}

// watchPartition clocks a partition of our own with a time-out of its own.
func (d *decision) watchPartition(name workflow.PartitionName, total time.Duration) bool {
	part := d.look().part(name)
	active := part.active > 0
	if part.answers == 0 {
		return false
	}
	t := d.clocks.Run(waits.Key{Kind: waits.Partition, Name: string(name)}, active, d.now.Boot)
	if !active || !d.over(t, total, true) {
		return false
	}
	return d.judge(d.unfinishedIn(name), fact.CauseTimeout,
		"partition "+string(name)+" gave no result within "+workflow.FormatDuration(total))
}

// watchOthers clocks what others hold, as the guardian or in its place. What is over
// together is judged in one go, as long as the instance runs on.
func (d *decision) watchOthers(age time.Duration) (added bool) {
	later, made := d.judgesBefore()*waits.GuardianTimeout, d.state.Made()
	goesOn := func(judged bool) bool {
		d.log.Steps++
		if !judged {
			return true
		}
		added, d.hearing = true, hearing{}
		return d.state.Made() == made && d.state.Overall() == workflow.InstanceRunning
	}
	for _, p := range d.state.Participants() {
		gone := p != d.self && d.look().unjudged[p] > 0 && d.partners.Gone(p)
		if !goesOn(gone && d.watchGone(p, later)) {
			return true
		}
	}
	for _, part := range d.orphaned() {
		if !goesOn(d.watchKeeper(part, later)) {
			return true
		}
	}
	for _, g := range d.state.Placements() {
		if !goesOn(g.Partner != d.self && d.watchAnswer(g, later, age)) {
			return true
		}
	}
	for _, sl := range inOrder(d.look().others) {
		if !goesOn(d.watchSingle(sl, later, age)) {
			return true
		}
	}
	return added
}

// watchGone judges the unfinished work of a partner who is out of the process.
func (d *decision) watchGone(p workflow.PartnerID, later time.Duration) bool {
	t := d.clocks.Run(waits.Key{Kind: waits.Gone, Name: string(p)}, true, d.now.Boot)
	if !d.over(t, later, true) {
		return false
	}
	left := d.unfinishedOf(p)
	if d.partners.Evicted(p) {
		return d.judge(left, fact.CauseEvicted, "its holder was evicted")
	}
	return d.judge(left, fact.CauseExpired, "")
}

// watchAnswer judges a partition of another that gave no result in time.
func (d *decision) watchAnswer(g state.Placement, later, age time.Duration) bool {
	if d.keptForEver(g.Partition) {
		return false // its tasks are clocked one by one
	}
	key := waits.Key{Kind: waits.Answer, Name: string(g.Partition)}
	c, part := d.clocks.Get(key), d.look().part(g.Partition)
	switch {
	case part.answers == 0:
		return false
	case c == nil && !d.mayBegin(g.Partition, age):
		return false
	}
	var left []*state.Attempt // nil: all that the partition answers for, and nothing joined it
	total := d.state.Plan().Timeout(g.Partition) + part.waits
	mayWait := d.mayWait(g.Partition)
	if c == nil || mayWait || c.Note.of != nil || c.Note.joined != part.joined || c.Note.over != part.over {
		if next := part.looked + d.lookEvery(); part.looked > 0 && d.now.Boot < next {
			d.clocks.Keep(key)
			d.out.wake(next)
			return false
		}
		part.looked = max(d.now.Boot, 1) // 0 is never
		if left = d.unfinishedIn(g.Partition); c == nil || mayWait {
			left = d.mayJudge(g.Partition)
		}
		if total = d.state.AnswerTime(g.Partition, left); len(left) == 0 {
			return false
		}
		of := working(left)
		joined := c == nil || (c.Note.of == nil && c.Note.joined != part.joined) ||
			(c.Note.of != nil && !subset(of, c.Note.of))
		if joined || c.Note.over != part.over {
			d.clocks.Drop(key)
			if !d.handedOver(key, left, later) {
				return false
			}
			c = d.clocks.BeginAfter(key, 0, d.now.Boot)
			c.Note.of = of
		} else if c.Note.of = of; !mayWait {
			c.Note.of = nil
		}
		c.Note.joined, c.Note.over = part.joined, part.over
	}
	c.Known = d.log.Len()
	total += waits.Slack(total) + later
	t := d.clocks.Run(key, true, d.now.Boot)
	if !d.over(t, total, true) {
		return false
	}
	if left == nil {
		left = d.unfinishedIn(g.Partition)
	}
	return d.judge(left, fact.CauseTimeout, "partition "+string(g.Partition)+" gave no result in time")
}

// lookEvery is how often at most all tasks of a partition are looked at, to find those
// that joined what may be judged: in a large instance not for each fact. What joins is
// clocked so much later.
func (m *Machine) lookEvery() time.Duration {
	if n := len(m.state.Slots()); n >= manySlots {
		return time.Duration(n) * lookPause
	}
	return 0
}

const lookPause = 100 * time.Microsecond // for each: a second for the largest instance

// mayBegin reports whether a partition's answer may be waited for: all that it
// waits for is known to have ended, or must have by now. If not yet it asks to be
// woken.
func (d *decision) mayBegin(p workflow.PartitionName, age time.Duration) bool {
	part := d.before(p)
	if part.before == 0 {
		return true
	}
	if age < part.worst {
		d.out.wake(d.now.Boot + part.worst - age)
	}
	return age >= part.worst
}

func subset(a, b map[workflow.TaskName]bool) bool {
	for t := range a {
		if !b[t] {
			return false
		}
	}
	return true
}

// watchSingle judges what is clocked by itself at another: it gave no result in time, or
// no word that it is ready. It finds somebody for a contingency that nobody could take.
func (d *decision) watchSingle(sl *state.Slot, later, age time.Duration) bool {
	a := sl.Current
	if sl.Pending != nil && sl.Pick == nil {
		return d.watchPending(sl, later)
	}
	total := d.single(sl)
	if a.Partner == d.self || !sl.Unjudged() || !d.state.Wanted(a) || total == 0 {
		return false
	}
	key := waits.Key{Kind: waits.Attempt, Name: a.ID.String()}
	active, from, reason := sl.State != workflow.NotReady, a.WaitedBefore(), "no result in time"
	if !active && d.shouldBeReady(sl, later, age) {
		key.Kind, active, from = waits.Readiness, true, 0
		total, reason = total+sl.Task.TimeToWait, "no word in time that it is ready"
	}
	total += waits.Slack(total) + later
	if d.clocks.Get(key) == nil {
		if !active || !d.handedOver(key, []*state.Attempt{a}, later) {
			return false
		}
		d.clocks.BeginAfter(key, from, d.now.Boot)
	}
	t := d.clocks.Run(key, active, d.now.Boot)
	return d.over(t, total, active) && d.judge([]*state.Attempt{a}, fact.CauseTimeout, reason)
}

// shouldBeReady reports whether, for all that is known here, the holder of a slot that is
// not ready has something to say: its rule holds, or the wait of its trigger has begun. If
// that will begin it asks to be woken.
func (d *decision) shouldBeReady(sl *state.Slot, later, age time.Duration) bool {
	switch {
	case sl.RuleHolds():
		return true
	case sl.Task.TimeToWait == 0:
		return false
	case d.state.PredecessorReady(sl):
		return true
	}
	start, _ := d.state.Plan().WaitStart(sl.Task.Name)
	if age = d.sinceTaken(sl.Current, later, age); age < start {
		d.out.wake(d.now.Boot + start - age)
	}
	return age >= start
}

// sinceTaken is for how long an attempt's holder has known the instance at least, whose age
// is what this node counts: who was given the attempt later may know it since then.
func (d *decision) sinceTaken(a *state.Attempt, later, age time.Duration) time.Duration {
	if a.Assigned == d.log.Genesis() {
		return age
	}
	key := waits.Key{Kind: waits.Taken, Name: a.ID.String()}
	if d.clocks.Get(key) == nil {
		if !d.handedOver(key, []*state.Attempt{a}, later) {
			return 0
		}
		d.clocks.BeginAfter(key, 0, d.now.Boot)
	}
	return min(d.clocks.Run(key, true, d.now.Boot), age)
}

// watchPending gives a contingency that waits for somebody to a partner that can
// take it now: the guardian at once, the next in its place later.
func (d *decision) watchPending(sl *state.Slot, later time.Duration) bool {
	if d.movedOften(sl) {
		return false // others may
	}
	task := sl.Pending.Action.Task
	c, err := d.whoTakes([]workflow.TaskName{task}, "")
	if err != nil {
		return false
	}
	t := d.clocks.Run(waits.Key{Kind: waits.Pending, Name: sl.Current.ID.String()}, true, d.now.Boot)
	if !d.over(t, later, true) {
		return false
	}
	to := fact.Assign{After: sl.Current.ID, Verdict: sl.Pending.At.ID, Task: task, Partner: c.Partner}
	return d.assign(to, reasoned(fact.WhyOf(c, task))) == nil
}
