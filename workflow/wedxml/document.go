package wedxml

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Document is what a file holds, in the order written.
type Document struct {
	Attributes    []Attribute
	Conditions    []Condition
	Transitions   []Transition
	Compensations []Transition
	Flows         []Flow
	Constraints   []Constraint
}

// Attribute is an attribute of data states.
type Attribute struct {
	Name string
	Type workflow.DataType

	at position
}

// Condition joins comparisons of attributes.
type Condition struct {
	Name string

	predicates []text // with their identifiers
	expression *text
	tree       *node
	means      native.Predicate
	at         position
}

// Transition is a transition, or a compensation of one.
type Transition struct {
	Name    string
	For     string // of a compensation: the transition
	Updates []string

	at position
}

// Flow is a flow over the attributes that all share.
type Flow struct {
	Name     string
	Final    string // the condition; empty: none
	Triggers []Trigger

	at position
}

// Trigger fires a transition at each state that satisfies a condition.
type Trigger struct {
	Condition, Transition string
	Period                time.Duration // the transition's time limit; 0: none

	at position
}

// Constraint names a condition that states should satisfy.
type Constraint struct {
	Condition string
	Strict    bool

	at position
}

// position is a place in the file, from 1; the column in characters.
type position struct{ line, column int }

// text is what stands between tags.
type text struct {
	id    string // of a predicate
	chars []char
	at    position // of the element
}

// char is a character and where it stands.
type char struct {
	r  rune
	at position
}
