// Package workflow is the vocabulary of Mutirão: definitions, tasks, rules,
// states, data and the typed names of everything.
//
// Purpose: parse a definition (YAML, of which JSON is a part), check it with
// file, line, column and a hint for every mistake, give it a canonical form
// and a hash, compile its rules, and draw it.
//
// Promises: no I/O, no clock, no goroutine, no randomness. A *Definition that
// Parse returned is complete, checked and immutable: it may be shared between
// goroutines. Two definitions with the same meaning have the same hash.
//
// Everybody may import it; it imports nothing of Mutirão.
package workflow
