// Package sample says how much of a large check a run of the tests takes. Its purpose: `go test ./...` is to end within
// minutes, so of what repeats itself many times it does a part, and the whole before a release (docs/tests.md). It
// promises that a run without the environment variable MUTIRAO_WHOLE always does the same.
//
// It imports no other package of ours; only tests import it.
package sample

import "os"

// Whole reports whether checks are to be done whole: MUTIRAO_WHOLE is set and not empty.
func Whole() bool { return os.Getenv("MUTIRAO_WHOLE") != "" }

// Of is how often a check is done: part, or all of it where it is to be done whole.
func Of(part, all int) int {
	if Whole() {
		return all
	}
	return part
}
