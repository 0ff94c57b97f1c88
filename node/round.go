package node

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/jobs"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// This file has a shard's rounds: what is due, the events that wait, what the machines decide, the commit, and what is
// done once that is durable.

// run owns the shard until stop closes.
func (s *shard) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case e := <-s.events:
			s.local = append(s.local, e)
		case <-s.n.clock.After(s.pause()):
		}
		s.turn()
	}
}

// pause is how long the shard may sleep when nothing happens.
func (s *shard) pause() time.Duration {
	now := s.n.clock.Now()
	d := s.acks.pause(now.Awake, s.nextCompare-now.Awake)
	if len(s.underWay) > 0 || len(s.delayed) > 0 {
		d = min(d, s.nextTick-now.Awake)
	}
	if s.refuses {
		d = min(d, s.nextWeigh-now.Awake)
	}
	if s.ended && s.n.crowded() {
		d = min(d, s.nextEarly-now.Awake)
	}
	if s.wakeAt > 0 {
		d = min(d, s.wakeAt-now.Boot)
	}
	if in, ok := s.reportDue(now.Awake); ok {
		d = min(d, in)
	}
	return max(d, 0)
}

// turn does what is due: the events that wait, the waits that are over, what
// was not acknowledged, and the comparison with peers at intervals.
func (s *shard) turn() {
	s.readClock()
	s.mindGap()
	s.drain()
	now := s.now.Awake
	if now >= s.nextTick {
		s.nextTick = now + tick
		s.release(now)
		s.retry()
	}
	s.tellDue(now)
	if s.nextCompare == 0 {
		s.nextCompare = now + s.n.spread(antiEntropy)
	}
	if now >= s.nextWeigh {
		s.nextWeigh = now + weighEvery
		s.weighAgain()
	}
	if s.ended && now >= s.nextEarly && s.n.crowded() {
		s.nextEarly = now + endedEvery
		s.compareEnded()
	}
	if now >= s.nextCompare {
		s.nextCompare = now + antiEntropy
		s.compareAll()
	}
	s.wake()
	s.round()
	s.recall()
	s.report()
	s.expected = s.n.clock.Now().Boot + s.pause()
}

// recall notes when all goes on that was here before the node began: the first round has done that, but for what it
// could not make durable.
func (s *shard) recall() {
	if s.recalls && len(s.again) == 0 {
		s.recalls = false
		s.n.recall()
	}
}

// mindGap notices that this node did not run for a while. Nothing is judged
// then until it has heard what happened meanwhile, or a grace has passed
// (docs/design.md, idea 8).
func (s *shard) mindGap() {
	now := s.now.Boot
	if s.expected == 0 || now < s.expected+late {
		return
	}
	quiet := now + moment.Grace(s.n.config.ConnectionTime)
	s.each(func(_ workflow.InstanceID, h *held) { h.m.Gap(quiet) })
}

// drain takes the events that wait already.
func (s *shard) drain() {
	for len(s.local) < roundSize {
		select {
		case e := <-s.events:
			s.local = append(s.local, e)
		default:
			return
		}
	}
}

// round carries events out until there are none of our own making left.
func (s *shard) round() {
	for {
		events := s.local
		s.local, s.carried = s.carried, nil
		s.readClock()
		for _, e := range events {
			if e.look != nil {
				e.look(s)
			}
		}
		for _, e := range events {
			if e.apply == nil {
				continue
			}
			err := s.carryOut(e)
			if e.read != nil && err == nil {
				s.batch.reads = append(s.batch.reads, sight{e.of, e.read})
			}
			if e.after != nil {
				if err != nil {
					e.after(err)
				} else {
					s.batch.after = append(s.batch.after, ending{e.of, e.after})
				}
			}
		}
		s.flush()
		s.carried = emptied(events)
		if len(s.local) == 0 {
			return
		}
	}
}

// flush lets the touched machines decide, makes the outcome durable, and then
// acts in the order of choreo.Effects.
func (s *shard) flush() {
	b := s.batch
	s.batch = s.spent
	s.spent = batch{}
	defer func() { s.spent = b.emptied() }()
	for _, h := range b.touched {
		s.contained(h.id, func() { s.n.ledger.Enter(h.m) }) // what has ended takes nobody's time while others choose
	}
	for _, h := range b.touched {
		s.conclude(h, &b)
	}
	s.leaveOut(&b)
	if err := s.commit(b); err != nil {
		s.lose(b, err)
		return
	}
	out := s.n.newOutbox()
	for _, x := range b.ready {
		s.n.index.Put(x.h.id, x.h.sum) // what is started asks whether the instance is here
	}
	s.oweThose(&b)
	for _, k := range slices.SortedFunc(maps.Keys(b.heads), headsKey.compare) {
		s.tellHeads(out, k.to, b.heads[k], k.mode)
	}
	for _, x := range b.refusals {
		out.refusal(x.to, x.r)
	}
	for _, x := range each(b.supplies) {
		s.contained(x.h.id, func() { s.send(out, x.h, x.to) })
	}
	for _, x := range b.ready {
		s.contained(x.h.id, func() { s.tellOf(out, x) })
	}
	s.tellOwedNow(out, &b)
	out.flush()
	for _, x := range b.after {
		x.fn(nil)
	}
	for _, x := range b.ready {
		s.contained(x.h.id, func() {
			s.n.ledger.Keep(x.h.id)
			s.stop(x.h.id, x.r)
		})
	}
	for _, x := range b.starts() {
		s.contained(x.h.id, func() { s.start(x.h, x.j) })
	}
	for _, x := range b.ready {
		s.contained(x.h.id, func() { s.act(x.h, x.r) })
	}
}

// tellOf tells those of an instance who are to hear of what was decided.
func (s *shard) tellOf(out *outbox, x readied) {
	for _, p := range x.r.Tell {
		s.send(out, x.h, p)
	}
	for _, p := range x.r.Ask {
		if s.n.up(p) {
			s.tellHeads(out, p, []workflow.InstanceID{x.h.id}, wire.Ask)
		} else {
			x.h.m.Away(p)
		}
	}
}

// commit makes writes durable, in units of bounded size, one after the other: a machine's facts are written by their
// places, so what a crash or a failure leaves of them is causally closed, and something vouches for each of them. Whoever
// wants to see what was decided looks at it while the first is under way, and may tell nobody before all are durable.
func (s *shard) commit(b batch) error {
	defer s.readClock() // it may take long
	reads := b.reads
	for from := 0; from < len(b.writes); {
		to, written := b.unitEnd(from), make(chan error, 1)
		s.n.store.Commit(b.writes[from:to], func(err error) { written <- err })
		s.look(reads)
		if err := <-written; err != nil {
			s.lost++
			return err
		}
		s.lost = 0
		from, reads = to, nil
	}
	s.look(reads) // nothing was to be written
	return nil
}

// look has those look at instances who want to.
func (s *shard) look(reads []sight) {
	defer func() { s.reading = false }()
	for _, r := range reads {
		if h := s.held[r.of]; h != nil {
			s.reading = true
			s.contained(r.of, func() { r.fn(h) })
		}
	}
}

// conclude has a machine decide. If it panics, the batch is as before, but for those who
// wait for it: they are told when it is left out.
func (s *shard) conclude(h *held, b *batch) {
	writes := len(b.writes)
	if s.contained(h.id, func() { s.decide(h, b) }) {
		return
	}
	s.unlearn(b.writes[writes:])
	b.writes = b.writes[:writes]
	for i := range b.open {
		if i >= writes {
			delete(b.open, i)
		}
	}
}

// decide collects what a machine wants done.
func (s *shard) decide(h *held, b *batch) {
	var r choreo.Effects
	s.n.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
		r = h.m.Decide(s.moment(), p)
		return r.Given
	})
	id := h.m.Instance()
	for _, err := range r.Beyond {
		s.n.count("beyond-limit", 1)
		s.log.Warn("something that happened here cannot be recorded", "instance", id, "error", err)
	}
	for _, made := range r.Made {
		writes, registered := s.n.data.Register(made, s.saidBy(h, made.Task.Name, made.Task, makes).Hash)
		if b.writes = append(b.writes, writes...); registered != nil {
			b.after = append(b.after, ending{h.id, registered})
		}
	}
	b.storeFacts(id, r.Persist, s.now.Wall.UnixMilli())
	ended := false
	if sum := s.summarise(h); sum != h.sum {
		if ended = h.sum.Ended == 0 && sum.Ended != 0; ended {
			b.writes = append(b.writes, s.learn(h)...)
			s.ended = true
		}
		h.sum = sum
		if sum.Ended != 0 {
			s.noteNews(h, b) // before the summary, by which it need not be in memory after a start
		}
		b.writes = append(b.writes, kv.Write{Key: index.Key(id), Value: encode(sum)})
	}
	if r.Waits != nil {
		b.writes = append(b.writes, s.waitsWrite(id, *r.Waits))
	}
	s.n.enter(h)
	h.wake = r.Wake
	if r.Wake > 0 && (s.wakeAt == 0 || r.Wake < s.wakeAt) {
		s.wakeAt = r.Wake
	}
	b.ready = append(b.ready, readied{h, r, ended})
}

// lose handles a failed commit: nothing of the round happened. The machines
// have facts that are not durable, so they are dropped and loaded again.
func (s *shard) lose(b batch, err error) {
	s.log.Error("could not make facts durable; the instances are loaded again", "instances", len(b.touched),
		"error", err)
	s.unlearn(b.writes)
	for _, w := range b.writes {
		if w.Key[0] == prefixQuarantine && !w.Delete {
			s.broken = append(s.broken, workflow.InstanceID(w.Key[1:])) // to be noted with the next round
		}
	}
	for _, h := range slices.Backward(b.touched) {
		s.n.ledger.TakeBack(h.id)
	}
	for _, h := range b.touched {
		id := h.id
		s.unload(id)
		if h.was != nil {
			s.n.index.Forget(id)
			s.aside[id] = *h.was // it was to come back, and partners will be asked again
			s.n.call(s.n.lineup.End(id))
			continue
		}
		if !s.again[id] { // one that waits for the store already is enough
			s.loadAgain(id)
		}
	}
	for _, x := range b.after {
		x.fn(err)
	}
}

// release takes up what was put off until now.
func (s *shard) release(now time.Duration) {
	s.delayed = slices.DeleteFunc(s.delayed, func(d delayed) bool {
		if now < d.due {
			return false
		}
		s.local = append(s.local, event{of: d.of, apply: d.fn})
		return true
	})
}

// stop stops the tasks of an instance that are not to go on.
func (s *shard) stop(id workflow.InstanceID, r choreo.Effects) {
	for _, a := range r.Stop {
		s.n.runner.Cancel(jobKey(id, a))
	}
}

// act does what follows from what was decided of an instance, once its tasks are started.
func (s *shard) act(h *held, r choreo.Effects) {
	id := h.m.Instance()
	switch {
	case len(r.Persist) == 0:
	case s.n.events.watched():
		s.n.events.publish(api.Event{
			At: s.now.Wall, Kind: "instance", Instance: id.String(), Text: string(h.sum.State),
		})
		h.unshared = h.m.Definition().ForPeople() && len(h.m.Unshared()) > 0
	default:
		s.n.events.unwatched()
	}
	h.tellElsewhere()
	if h.news != nil {
		s.n.index.Tell(id, *h.news)
		h.news = nil
	}
	if len(r.Persist) > 0 && h.m.Definition().ForPeople() {
		s.n.followed()
	}
	s.readmitted(h)
	s.changed(h)
	if h.sum.Of != "" || len(h.m.Pins()) > 0 {
		s.nestedChanged(h)
	}
	if s.n.filing.Concerns(h.m.Definition()) {
		s.n.filing.FetchAhead(h.filed())
	}
	if h.sum.Settled {
		s.unload(id)
		s.n.call(s.n.lineup.End(id))
	}
}

// jobKey names an attempt among all attempts of all instances.
func jobKey(id workflow.InstanceID, a fact.AttemptID) string {
	return id.String() + "/" + string(a.Slot) + "/" + a.Fact.String()
}

// idempotency names what a job does, where it is not the attempt that does it.
func idempotency(id workflow.InstanceID, j state.Job) string {
	if j.Key == (fact.AttemptID{}) {
		return ""
	}
	return "state " + jobKey(id, j.Key)
}

// saidBy is the definition that says of a task what alike compares: what it has a program do or asks of a database, or
// which data set it makes. That is the one with which the instance was started, or one that amendments have made of
// that. Whoever may amend an instance does not speak for those who listed its workflow. So what an added task does
// counts as the word of who listed a definition by which the instance has run since then: a program that is there for a
// workflow of one author is not for what others had it do. A round of a loop does what its task says. That goes for one as
// well which only amendments have stand in for the task of a slot.
func (s *shard) saidBy(
	h *held, slot workflow.TaskName, t *workflow.Task,
	alike func(of *workflow.Definition, said, does *workflow.Task) bool,
) *library.Definition {
	of := t.Name
	if r, is := h.m.Definition().Round(of); is {
		of = r.Of
	}
	added := h.m.StandsInBy(slot, t.Name)
	says := func(d *workflow.Definition) bool {
		x := d.Task(of)
		return x != nil && alike(d, x, t) && (!added || d.StandsIn(slot, t.Name))
	}
	if says(h.m.Original()) {
		return h.def
	}
	for d := range h.m.Editions() {
		if says(d) {
			if l := s.n.definitions.ListedAs(d, amendments.Alike); l != nil {
				return l
			}
		}
	}
	now := amendments.Written(h.m.Definition())
	return &library.Definition{Def: now, Hash: now.Hash()}
}

// does reports whether a task, or what undoes it, has a program do what is done.
func does(of *workflow.Definition, said, done *workflow.Task) bool {
	same := func(x *workflow.Task) bool {
		return x != nil && x.Application == done.Application && slices.Equal(x.In, done.In) &&
			reflect.DeepEqual(x.With.Args, done.With.Args) && asksAll(x, done)
	}
	return same(said) || same(of.CompensationOf(said))
}

// asksAll reports whether a task asks databases all that is asked.
func asksAll(said, done *workflow.Task) bool {
	return !slices.ContainsFunc(done.Queries, func(q workflow.Query) bool {
		return !slices.ContainsFunc(said.Queries, func(x workflow.Query) bool { return reflect.DeepEqual(x, q) })
	})
}

// makes reports whether a task makes the data set that is made.
func makes(of *workflow.Definition, said, made *workflow.Task) bool {
	return does(of, said, made) && slices.Equal(said.Out, made.Out) && reflect.DeepEqual(said.Produces, made.Produces)
}

func (s *shard) start(h *held, j state.Job) {
	id := h.m.Instance()
	if j.Task.Type == workflow.SubWorkflow {
		s.nest(h, j)
		return
	}
	origin := configs.Origin{}
	if !runner.BuiltIn(j.Task.Application) || len(j.Task.Queries) > 0 {
		origin = s.n.library.OriginOf(s.saidBy(h, j.Attempt.Slot, j.Task, does))
	}
	done := func(res runner.Result) {
		if res.Cancelled {
			return
		}
		e := event{of: id, after: res.Answer, apply: func(s *shard) error {
			h, err := s.find(id)
			if err != nil {
				return err
			}
			s.n.partners.Among(h.m, func(p choreo.Partners) []choreo.Holding {
				err = h.m.TaskEnded(j.Attempt, j.Try,
					choreo.Result{Outputs: res.Outputs, Failed: res.Failed, Reason: res.Reason, Lost: res.Lost},
					s.moment(), p)
				return h.m.Given()
			})
			s.touch(h)
			return err
		}}
		s.n.postOwn(s, e)
	}
	reads, makes := filing.FilesOf(h.m.Definition(), j.Task, j.Input)
	s.n.runner.Start(runner.Job{
		Files: reads, Makes: makes, Replaceable: filing.Replaceable(j.Task), Asks: asks(j.Task, j.Input),
		Ref: jobs.Ref{Instance: id, Attempt: j.Attempt, Lease: j.Lease, Plan: h.m.Plan()},
		Key: jobKey(id, j.Attempt), Idempotency: idempotency(id, j), Instance: id.String(), Origin: origin,
		Task: j.Task.Name, Attempt: j.Attempt.String(), Try: j.Try,
		Application: j.Task.Application, With: j.Task.With, Input: j.Input,
		Dispatching: h.def.Def.Distribution.Dispatching, Rank: h.rank(j.Task), Priority: j.Task.Priority,
		AgeOfInstance: max(s.now.Wall.Sub(time.UnixMilli(h.m.Genesis().At)), 0), // people's time: it decides nothing
	}, done)
}

// wake touches the machines that wanted to be woken by now.
func (s *shard) wake() {
	now := s.now.Boot
	if s.wakeAt == 0 || now < s.wakeAt {
		return
	}
	s.wakeAt = 0
	due := func(h *held) bool {
		if h.wake > now && (s.wakeAt == 0 || h.wake < s.wakeAt) {
			s.wakeAt = h.wake
		}
		return h.wake > 0 && h.wake <= now
	}
	s.only(due, func(_ workflow.InstanceID, h *held) { s.touch(h) })
}
