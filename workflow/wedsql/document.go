package wedsql

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Document is the flow that a script declares, in the order written.
type Document struct {
	Name       string // the file's, without folder and extension
	Attributes []Attribute
	Triggers   []Trigger
	Final      *Predicate // nil: every instance ends in an exception
	Starts     []Start

	skipped []skipped
}

// Attribute is an attribute of data states.
type Attribute struct {
	Name    string
	Type    workflow.DataType // string, integer, number or boolean
	Default workflow.Value    // nil: null

	at    position
	value value // of the default, as written
}

// Trigger fires a transition at each state that satisfies its condition.
type Trigger struct {
	Name       string
	Transition string
	Condition  string // its name; empty: it has none
	Predicate  *Predicate
	Timeout    time.Duration // of the transition; 0: none
	Disabled   bool

	at position
}

// Predicate is a condition over attributes.
type Predicate struct {
	Source string // as written
	tree   *node
	at     position
}

// Start is a row that the script inserts into the flow: an instance.
type Start struct {
	Input []Input // in the order written; Value is nil where it is NULL, or DEFAULT
	at    position
}

// Input is an attribute's first value.
type Input struct {
	Attribute string
	Value     workflow.Value

	at    position
	value value
}

// skipped is a statement that declares nothing.
type skipped struct {
	what string
	line int
}
