package log

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// All is what is here, of each strand.
func (l *Log) All() Vector { return l.all }

// Authored is how much is here of each author.
func (l *Log) Authored() map[workflow.PartnerID]Authored { return l.authored }

// ByAuthor are the chains of each author.
func (l *Log) ByAuthor() map[workflow.PartnerID][]*Chain { return l.byAuthor }

// ByID are the entries by what names their fact. Like all maps and lists that a log gives, they are not
// to be changed.
func (l *Log) ByID() map[fact.ID]*Entry { return l.byID }

// Chains are the chains, in the order in which they came.
func (l *Log) Chains() []*Chain { return l.chains }

// Cuts counts how often what counts of a chain by itself became less.
func (l *Log) Cuts() int { return l.cuts }

// Forked counts the chains that are forked.
func (l *Log) Forked() int { return l.forks }

// Forkers are the partners that forked a chain.
func (l *Log) Forkers() map[workflow.PartnerID]bool { return l.forkers }

// Genesis is the fact that the instance started with.
func (l *Log) Genesis() *Entry { return l.genesis }

// Index are the chains by what names them.
func (l *Log) Index() map[fact.Chain]*Chain { return l.index }

// Order are the entries as they were put in: causes before effects.
func (l *Log) Order() []*Entry { return l.order }

// Original are the partners of the genesis: the first of the succession.
func (l *Log) Original() map[workflow.PartnerID]bool { return l.original }

// Strands are all strands, each at its place.
func (l *Log) Strands() []*Strand { return l.strands }
