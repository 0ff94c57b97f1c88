package workflow

import (
	"fmt"
	"slices"
	"time"
)

// Expr is a checked expression over data, instance.id and instance.age. It has
// no side effects and bounded cost, and may be evaluated by many goroutines at
// once.
//
// The library github.com/expr-lang/expr reads the syntax. Checking and
// evaluating is done here, for three reasons: null must be a third truth value
// (what is not known is neither true nor false), results must be the same to
// the bit on 32 and 64 bit machines, since nodes compare their states, and the
// cost must be bounded by the text, so there are no loops and no clock.
type Expr struct {
	// Source is the expression as written.
	Source string

	spelling string // the one spelling of its meaning
	typ      valueType
	run      code
	names    []DataName
	ages     []time.Duration
	constant bool // its value does not depend on anything
	aged     bool // it mentions instance.age
	parts    int  // with those of the conditions that it names
}

// Env is what an expression is evaluated in.
type Env struct {
	Data     map[DataName]Value // absent: null
	Instance string             // instance.id
	Age      time.Duration      // instance.age

	// For the constraints of allocation only; nil: their members are null.
	Task       *Task
	Partner    *Candidate
	Performers map[TaskName]string // who performed a task; absent: nobody yet
}

// Candidate is what a constraint of allocation may ask of a partner or person.
type Candidate struct {
	Name         string
	ID           PartnerID
	Roles        []RoleName
	Capabilities []Capability
	Availability float64 // 0..1
}

// Eval evaluates the expression. A null result means that it is not known:
// some data item that matters is null. An error means that the values do not
// fit the expression, such as a division by zero or a list member of the wrong
// type.
func (e *Expr) Eval(env Env) (Value, error) {
	v, err := e.run(&env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Source, err)
	}
	return export(v), nil
}

// export turns the evaluator's own types into those of Value.
func export(v any) Value {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return FormatDuration(v)
	}
	return v
}

// Names are the data items that the expression mentions, sorted.
func (e *Expr) Names() []DataName { return slices.Clone(e.names) }

// Ages are the ages at which a boolean expression that compares instance.age
// may change its value, ascending; after the last it is decided by data alone.
// For instance.age > duration("1h") that is one nanosecond after the hour.
func (e *Expr) Ages() []time.Duration { return slices.Clone(e.ages) }

// String is the expression in its canonical spelling.
func (e *Expr) String() string { return e.spelling }
