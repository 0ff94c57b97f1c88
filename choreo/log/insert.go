package log

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Errors of Insert.
var (
	// ErrMissingPast is returned when a fact's past is not wholly here; ask for it.
	ErrMissingPast = errors.New("facts before it are missing")
	// ErrOtherInstance is returned for a fact of another instance.
	ErrOtherInstance = errors.New("fact of another instance")
)

// NewLog starts a replica from an instance's genesis.
func NewLog(genesis *fact.Fact, raw []byte, id fact.ID, att *fact.Attestation) (*Log, error) {
	if genesis.Body.Genesis == nil {
		return nil, fmt.Errorf("%w: an instance starts with its genesis, not a %s", fact.ErrInvalid,
			genesis.Body.Kind())
	}
	l := &Log{
		instance: fact.InstanceOf(id), byID: map[fact.ID]*Entry{}, index: map[fact.Chain]*Chain{},
		byAuthor: map[workflow.PartnerID][]*Chain{}, authored: map[workflow.PartnerID]Authored{},
		original: map[workflow.PartnerID]bool{}, forkers: map[workflow.PartnerID]bool{},
	}
	for _, p := range genesis.Body.Genesis.Succession {
		l.original[p] = true
	}
	l.add(&Entry{Fact: genesis, ID: id, Raw: raw, Att: att, Time: 1})
	l.genesis = l.order[0]
	return l, nil
}

// Insert adds a fact whose past is here. A fact that is here already returns
// nil and no error.
func (l *Log) Insert(f *fact.Fact, raw []byte, id fact.ID, att *fact.Attestation) (*Entry, error) {
	if old := l.byID[id]; old != nil {
		if old.Att == nil {
			old.Att = att
		}
		return nil, nil
	}
	if f.Body.Genesis != nil || f.Instance != l.instance {
		return nil, ErrOtherInstance
	}
	e := &Entry{Fact: f, ID: id, Raw: raw, Att: att}
	if err := l.link(e); err != nil {
		return nil, err
	}
	l.add(e)
	return e, nil
}

// link finds the fact's parents and checks that it goes on where they end.
func (l *Log) link(e *Entry) error {
	f := e.Fact
	e.Parents = make([]*Entry, 0, 1+len(f.Seen))
	if f.Seq > 1 {
		prev := l.byID[f.Prev]
		if prev == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, f.Seq-1, f.Chain.Author)
		}
		if err := f.Follows(prev.Fact); err != nil {
			return err
		}
		e.Parents = append(e.Parents, prev)
	}
	for _, h := range f.Seen {
		p := l.byID[h.ID]
		if p == nil {
			return said.Errorf("%w: number %d of %s", ErrMissingPast, h.Seq, h.Chain.Author)
		}
		if err := h.Names(p.Fact); err != nil {
			return err
		}
		e.Parents = append(e.Parents, p)
	}
	return nil
}

func (l *Log) add(e *Entry) {
	e.Strand = l.strandFor(e)
	e.Others = l.othersOf(e)
	for _, p := range e.Parents {
		e.Time = max(e.Time, p.Time+1)
	}
	e.Strand.Facts = append(e.Strand.Facts, e)
	l.all.set(e.Strand.Place, e.Fact.Seq)
	author := e.Fact.Chain.Author
	of := l.authored[author]
	l.authored[author] = Authored{Chains: len(l.byAuthor[author]), Facts: of.Facts + 1, Bytes: of.Bytes + len(e.Raw)}
	l.byID[e.ID] = e
	e.Index = len(l.order)
	l.order = append(l.order, e)
}

// strandFor is the strand that a fact goes on with, a new one where none ends in
// the fact before it.
func (l *Log) strandFor(e *Entry) *Strand {
	c := l.ChainOf(e.Fact.Chain)
	var prev *Entry
	if e.Fact.Seq > 1 {
		if prev = e.Parents[0]; prev.Strand.Last() == prev {
			return prev.Strand
		}
	}
	s := &Strand{Place: len(l.strands), Chain: c, from: prev}
	s.Good, s.Entered = s.Base(), s.Base()
	l.strands = append(l.strands, s)
	c.Strands = append(c.Strands, s)
	if len(c.Strands) > 1 {
		l.fork(c, e.Fact.Seq)
	}
	return s
}

// othersOf is what a fact's author knew of other strands than the fact's own.
func (l *Log) othersOf(e *Entry) (v Vector) {
	for i, p := range e.Parents {
		l.Steps++
		switch {
		case p.Strand != e.Strand:
			if v.At(p.Strand.Place) < p.Fact.Seq {
				v = v.Join(p.Past(), &l.Steps)
			}
		case i == 0:
			v = p.Others
		}
	}
	return v
}
