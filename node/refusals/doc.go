// Package refusals counts what was refused of members since a node started, and says in words
// what that means and what to do about it.
//
// Promises: what it keeps is bounded whatever members do, and what is no member's is not counted
// here, so that whoever makes keys pushes nobody out. Reasons are few constants. Many goroutines
// may count at once.
//
// It imports node/api and workflow; node imports it.
package refusals
