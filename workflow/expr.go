package workflow

import "time"

// Expr is a checked expression over data, instance.id and instance.age. It has
// no side effects and bounded cost.
type Expr struct {
	// Source is the expression as written.
	Source string
}

// Env is what an expression is evaluated in.
type Env struct {
	Data     map[DataName]Value // absent: null
	Instance string             // instance.id
	Age      time.Duration      // instance.age
}

// Eval evaluates the expression.
func (e *Expr) Eval(env Env) (Value, error) { panic("not yet") }

// Names are the data items that the expression mentions, sorted.
func (e *Expr) Names() []DataName { return nil }

// Ages are the ages at which a boolean expression that compares instance.age
// may change its value, ascending; after the last it is decided by data alone.
func (e *Expr) Ages() []time.Duration { return nil }
