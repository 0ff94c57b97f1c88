package node

import (
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// While somebody holds the office of coordinator, every other node reports to it
// the instances that it takes part in: all of them on contact and when another
// takes office, then those that changed, in bunches. Nothing depends on a report:
// one that is lost with its connection is sent again on the next contact.

const (
	// reportEvery is the least time between two bunches of a shard.
	reportEvery = time.Second
	// reportEnded is how many settled instances are reported at first.
	reportEnded = 256
)

// due is after what time something is to be sent; never, if ok is false.
func (s *shard) reportDue(now time.Duration) (in time.Duration, ok bool) {
	r := &s.reports
	return r.next - now, len(r.queue) > 0 && s.n.up(r.to.Partner)
}

// reportAll begins again, for a coordinator that may know nothing of us.
func (s *shard) reportAll(to overview.Chief) {
	s.reports = reports{to: to, queued: map[workflow.InstanceID]bool{}, next: s.reports.next}
	if to.Partner == "" {
		return
	}
	s.each(func(id workflow.InstanceID, _ *held) { s.reports.add(id) })
	for _, id := range s.n.index.Settled(reportEnded) {
		if s.n.shardOf(id) == s {
			s.reports.add(id)
		}
	}
}

// changed has an instance reported that has other facts than when it was
// reported last.
func (s *shard) changed(h *held) {
	if facts := h.m.Len(); facts != h.reported {
		h.reported = facts
		s.reports.add(h.m.Instance())
	}
}

// report sends what is due.
func (s *shard) report() {
	r := &s.reports
	to := s.n.chief()
	if to.Partner == s.n.member.ID() {
		to = overview.Chief{} // it knows
	}
	if to != r.to {
		s.reportAll(to)
	}
	now := s.n.clock.Now().Awake
	if in, ok := s.reportDue(now); !ok || in > 0 {
		return
	}
	r.next = now + reportEvery
	m, n := s.bunch()
	if len(m.Reports) == 0 || s.n.send(r.to.Partner, m) == nil {
		s.n.count("sent.reports", uint64(len(m.Reports)))
		r.done(n)
	}
}

// bunch is as much of the queue as goes into one message, and how many of the
// queue that are: some are left out.
func (s *shard) bunch() (m *wire.Message, n int) {
	m = &wire.Message{}
	size := 0
	for _, id := range s.reports.queue {
		var rep wire.Report
		ok := false
		s.contained(id, func() { rep, ok = s.reportOf(id) })
		if size += rep.Size(); ok && (len(m.Reports) == wire.MaxReports || size > wire.MaxReportBytes) {
			return m, n
		}
		n++
		if ok {
			m.Reports = append(m.Reports, rep)
		}
	}
	return m, n
}

// reportOf says how an instance stands. Not ok: the coordinator takes part in it
// and knows, or it is being loaded again and will be reported then.
func (s *shard) reportOf(id workflow.InstanceID) (rep wire.Report, ok bool) {
	sum, known := s.n.index.Get(id)
	rep = wire.Report{
		Instance: id, Definition: sum.Definition, Workflow: sum.Workflow, Version: sum.Version, State: sum.State,
		Started: sum.Started, Ended: sum.Ended,
	}
	h := s.held[id]
	if h == nil {
		rep.Done, rep.Tasks = uint32(sum.Done), uint32(sum.Tasks)
		rep.Needs = reportNeeds(s.n.view.Now(index.ReadNeeds(sum.Needs), index.ReadHolders(sum.Holders)))
		return rep, known && sum.Settled
	}
	done, tasks, at := h.m.Progress()
	all := h.m.Participants()
	rep.Facts, rep.Done, rep.Tasks = uint64(h.m.Len()), uint32(done), uint32(tasks)
	rep.Needs = reportNeeds(s.n.view.Needs(h.shown()))
	rep.At, rep.Participants = at[:min(len(at), wire.MaxReported)], all[:min(len(all), wire.MaxReported)]
	return rep, known && !h.m.Participates(s.reports.to.Partner)
}

// reportNeeds are needs as they are reported to the coordinator.
func reportNeeds(needs []api.Need) (out []wire.Need) {
	for _, x := range needs {
		out = append(out, wire.Need{
			Kind: x.Kind, Number: uint32(min(x.Number, math.MaxInt32)), Tasks: x.Tasks,
			Presumed: uint32(min(x.Presumed, math.MaxInt32)),
		})
	}
	return out
}
