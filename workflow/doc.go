// Package workflow is the vocabulary of Mutirão: definitions, tasks, rules,
// states, data and the typed names of everything.
//
// Purpose: parse a definition (YAML, of which JSON is a part), check it with
// file, line, column and a hint for every mistake, give it a canonical form
// and a hash, compile its rules and expressions. Package workflow/diagram draws
// it.
//
// A definition passes through: tokens (tokens.go, what is refused outright),
// nodes with places (source.go), the tables of keys (parse*.go), expressions
// (exprparse.go, compile.go, operators.go, functions.go), rules (when.go),
// checks within a task and between tasks (check*.go, reach.go, waits.go), loops,
// whose rounds are written out as tasks (loops.go, rounds.go), and the seal
// (seal.go, canonical.go), after which nothing changes.
//
// Promises: no I/O, no clock, no goroutine, no randomness. A *Definition that
// Parse returned is complete, checked and immutable: it may be shared between
// goroutines. The order of keys, comments, style, defaults that are written out
// and models do not change its hash. What it costs to parse a text, and to
// evaluate an expression, is bounded by limits that stand in source.go,
// tokens.go and exprparse.go.
//
// It imports internal/once and internal/plain; many packages import it.
package workflow
