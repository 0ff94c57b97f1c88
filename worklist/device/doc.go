// Package device is what a user's device does about the user's items: while it is
// connected, on a weak link, on its way out of reach, and while nobody can be reached.
//
//	items, links, pieces, the user ──▶ Device ──▶ what the device is to do (Effects)
//
// Purpose: both protocols of disconnecting, planned and not, and the one of coming back, as
// states that ask for transfers. A Device holds no connection, no file and no clock. What
// happens is told to it by its methods; what is to be done comes out as data.
// docs/worklists.md has the rules, by number.
//
// Promises: what its user did is in the outbox until its receiver has acknowledged it, and
// no crash loses it (Save, Load: Effects.Save comes before all else). A transfer that breaks
// goes on where it stopped. Whatever cannot be done is refused with what to do about it. Only
// items that their holder granted can be worked on, and offline only those that are locked and
// all here.
//
// It is not wired in. The node must offer: what the facts say of the user's items (Update),
// the answers to requests, whether partners can be reached and how fast (Lost, Measure),
// pieces of content by their hashes with the places up to which they are here, free disk
// and energy. It carries the effects out in the order of their fields.
//
// It imports worklist; only tests import it.
package device
