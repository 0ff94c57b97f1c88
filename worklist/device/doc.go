// Package device decides how a device of people goes out of reach as planned, and what it
// needs with it.
//
//	items, files, the link, the disk, what the user accepted ──▶ Leave ──▶ what is asked, fetched, or that it may go
//
// Purpose: the protocol of disconnecting as one function of what is so now, so that it can
// be asked again whenever something has changed, begins again by itself after a crash, and
// ends at any step. docs/worklists.md has the rules, by number.
//
// Promises: whatever is asked says what it is about and what to do. No device goes while
// something is asked, or while a file is missing that nobody said to go without.
//
// It imports workflow; node and node/worklists import it.
package device
