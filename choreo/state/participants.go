package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// BroughtIn are those whom facts bring into the instance.
func (s *State) BroughtIn(facts []fact.Received) map[workflow.PartnerID]bool {
	in := map[workflow.PartnerID]bool{}
	for _, f := range facts {
		if by := f.Fact.Chain.Author; s.Participates(by) || in[by] {
			for who := range f.Fact.Body.Appoints() {
				in[who] = true
			}
		}
	}
	return in
}

// BroughtInBy are the facts through which somebody takes part, or did until a chain
// proved to be forked: the genesis, if it did from the start. It is not to be changed.
func (s *State) BroughtInBy(p workflow.PartnerID) []*log.Entry {
	if joined := s.joined[p]; len(joined) > 0 {
		return joined
	}
	if by := s.former[p]; by != nil {
		return []*log.Entry{by}
	}
	return nil
}

// tookPart reports whether p was a participant as far as e's author knew.
func (s *State) tookPart(p workflow.PartnerID, e *log.Entry) bool {
	return slices.ContainsFunc(s.joined[p], func(by *log.Entry) bool { return s.log.Knew(e, by) })
}

// Participants are all who take part, in the order of succession; those who
// joined later follow by the facts that brought them in. It is not to be changed.
func (s *State) Participants() []workflow.PartnerID {
	if s.unsorted { // they are sorted when somebody asks, not whenever somebody brings one in
		s.participants, s.unsorted = s.InSuccession(slices.Collect(maps.Keys(s.joined))), false
	}
	return s.participants
}

// Participates reports whether a partner takes part.
func (s *State) Participates(p workflow.PartnerID) bool { return s.joined[p] != nil }

// join enters that a partner takes part through a fact.
func (s *State) join(p workflow.PartnerID, e *log.Entry) {
	if _, first := s.rank[p]; first || slices.ContainsFunc(s.joined[p],
		func(by *log.Entry) bool { return by.Strand == e.Strand }) {
		return // an author that knows of this fact knows of the earlier one
	}
	if s.joined[p] == nil {
		s.newcomers = append(s.newcomers, p)
	}
	s.joined[p] = append(s.joined[p], e)
	s.log.Steps += len(s.joined[p])
	slices.SortFunc(s.joined[p], log.ByTime)
	s.unsorted = true
}

// TakeNewcomers are those who came to take part since it was last called.
func (s *State) TakeNewcomers() []workflow.PartnerID {
	came := s.newcomers
	s.newcomers = nil
	return came
}

// TakeUncounted is how many facts that do not count came since it was last called, by author.
func (s *State) TakeUncounted() map[workflow.PartnerID]int {
	came := s.uncountedOf
	s.uncountedOf = map[workflow.PartnerID]int{}
	return came
}

// InSuccession sorts participants by the order of succession.
func (s *State) InSuccession(ps []workflow.PartnerID) []workflow.PartnerID {
	slices.SortFunc(ps, s.bySuccession)
	return ps
}

// bySuccession orders participants as Participants does.
func (s *State) bySuccession(a, b workflow.PartnerID) int {
	s.log.Steps++
	ra, oka := s.rank[a]
	rb, okb := s.rank[b]
	switch {
	case oka && okb:
		return cmp.Compare(ra, rb)
	case oka != okb:
		return AsInt(okb) - AsInt(oka)
	}
	return cmp.Or(log.ByTime(s.joined[a][0], s.joined[b][0]), cmp.Compare(a, b))
}

// PlaceOf is where a participant stands among all.
func (s *State) PlaceOf(p workflow.PartnerID) int {
	if at, first := s.rank[p]; first {
		return at
	}
	at, _ := slices.BinarySearchFunc(s.Participants(), p, s.bySuccession)
	return at
}
