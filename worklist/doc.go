// Package worklist says what follows from the facts about people's work: who may do
// an item, who holds it, which result counts, and what is kept of those that do not.
//
//	facts ──Add──▶ Board ──▶ state of each item, lists, messages, what users lost
//	                 └──Decide──▶ what the holder of a partition writes next
//
// Purpose: a Board is all that is known of the people's work of one instance. It is the
// same for the same facts, in whatever order they came. It holds no file, no link and no
// clock: moments come in as values, and what is to be written or said goes out as data.
// docs/worklists.md has the ideas and the rules, by number; comments here name those.
//
// Promises: never do two grants of one item count. A result that its author signed under
// a grant is never dropped: it counts, or it is kept and shown with the reason. An item
// that waits for a person is held, offered, or waits for a moment that Decide names. What
// has no entitlement changes nothing and is shown. Bad facts never panic.
//
// Not all of it is wired in: docs/worklists.md says what is. This is what the core must
// offer for all of it:
//
//   - For each fact its name, the logical time, the author's partner, the person whose key
//     signed it with the roles that this person's certificate proves (both from the facts
//     alone), and whether one fact is in the past of another (New). Only facts that count
//     by the rules of chains and forks are added, each once, after its past.
//   - For each attempt at a person's task a Place: its holder, whether it is in charge of
//     its slot, whether its rule holds, and since when by the local clocks.
//   - The kinds of facts of fact.go, with a person's signature beside the partner's. A
//     Close is the success or the failure of an attempt, and names the result that it takes.
//   - Who is here, with roles, what they hold and when they connected (Person), and whom
//     the instance's mechanism lets see an item.
//   - It writes what Decide says, before anybody is told, and asks again when it says.
//
// It imports internal/canon and workflow; many packages import it.
package worklist
