package log

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Gave is what a success brought.
func (e *Entry) Gave() map[workflow.DataName]workflow.Value {
	if ok := e.Fact.Body.Success; ok != nil {
		return ok.Outputs
	}
	return e.Word.Adopted
}

// Voiced is whose word a claim has in it; or why it is nobody's.
type Voiced struct {
	By     fact.Speaker
	Untrue error
	// Adopted are the data that an adoption takes, once it counted (choreo/state/adopting.go).
	Adopted map[workflow.DataName]workflow.Value
}

// Speaker is who spoke in a fact, as far as that was checked; a zero one: nobody.
func (e *Entry) Speaker() fact.Speaker {
	if e.Word == nil {
		return fact.Speaker{}
	}
	return e.Word.By
}

// Bears reports whether a fact bears upon what counts: it counts, or vouches for others that
// a fork took away, or proves a fork (fork.go). One that only sets aside says nothing: else
// honest nodes would set each other's words aside without end.
func (e *Entry) Bears() bool {
	if c := e.Strand.Chain; c.ForkedAt > 0 && (e.Fact.Seq == e.Strand.Base()+1 || e.Fact.Seq == c.ForkedAt) {
		return true
	}
	seen := e.Fact.Body.Seen
	return len(e.Fact.Seen) > 0 || e.Counted && (seen == nil || len(seen.Aside) == 0)
}

// Weight is about how many bytes a fact takes in a bundle.
func (e *Entry) Weight() int {
	n := len(e.Raw) + 16
	if e.Att != nil {
		n += e.Att.Size()
	}
	return n
}
