package node

import (
	"math"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// enter brings the ledger up to date with an instance. A load that changed much
// is told at once.
func (x *instances) enter(h *held) {
	x.ledger.Enter(h.m)
	if x.ledger.Turns() {
		x.nudge()
	}
}

// learn has what is learned from an instance that has just ended taken in, and returns what
// is to be stored of it.
func (s *shard) learn(h *held) []kv.Write {
	writes, full := s.n.learned.Take(s.number, h.m, h.def.Def)
	if full > 0 {
		s.n.count("learned.full", uint64(full))
	}
	return writes
}

// unlearn goes back to what is stored, after writes of learn that failed.
func (s *shard) unlearn(writes []kv.Write) {
	if err := s.n.learned.TakeBack(s.number, writes); err != nil {
		s.log.Warn("what was learned of a partner cannot be read", "error", err)
	}
}

// rank is where a task of the instance stands among those with the same
// dispatching rule: the more urgent first, then by the rule (docs/language.md, distribution).
func (h *held) rank(t *workflow.Task) []float64 {
	def := h.m.Definition()
	started := float64(h.sum.Started)
	by := 0.0
	switch aptitude.Dispatching(def.Distribution.Dispatching) {
	case aptitude.AsReady:
		return nil
	case aptitude.FIFO:
		by = started
	case aptitude.SPT:
		for _, t := range def.Tasks {
			by += partition.Expected(t).Seconds()
		}
	case aptitude.EDD:
		by = math.Inf(1)
		if d, ok := h.def.Due(); ok {
			by = started + float64(d.Milliseconds())
		}
	}
	return []float64{-t.Urgency, by}
}

// situation is what the partitions of a new instance are distributed by, without
// what decides between equals.
func (k *desk) situation(
	def *workflow.Definition, m aptitude.Mechanism, input map[workflow.DataName]workflow.Value,
) partition.Situation {
	data := map[workflow.DataName]workflow.Value{}
	for _, d := range def.Data {
		data[d.Name] = d.Default
	}
	for k, v := range input {
		data[k] = v
	}
	partners, inHand := k.partners.Candidates(def, m, nil)
	return partition.Situation{
		Partners: partners, Closed: k.partners.Closed(m), Self: k.member.ID(), Mechanism: m, InHand: inHand, Data: data,
		OfUsers: k.partners.UserRoles(),
	}
}
