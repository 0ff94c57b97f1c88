// Package rules holds the house rules as tests: which package may import which,
// what the pure core may not touch, that every package says what it is for, that
// comments and documents name what is there, and where a program may panic or print. Each ban states its reason, and each rule
// is shown to fail on a small synthetic tree in testdata.
//
// There is no production code here and nobody imports it. When a rule is in
// your way, read its reason first; if the reason no longer holds, change the
// table in the rule's own file and say why there.
package rules
