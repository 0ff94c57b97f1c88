package worklist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Request is what somebody asks the holder for: these items, all or none.
type Request struct {
	Items []Item
	Mode  Mode
	// With are items that other holders keep for the same user, to be locked together (Joint).
	With []Item
	// Word names the request (Fact.Word), and Anew the words by which User has the items, as whoever asks knew
	// (Grant.Anew).
	Word ID
	Anew []ID
	Person
}

// Reason says in one word why a request is refused.
type Reason string

// The reasons.
const (
	Unknown     Reason = "unknown"
	Elsewhere   Reason = "elsewhere"
	Taken       Reason = "taken"
	Kept        Reason = "kept" // for By, to take
	Done        Reason = "done"
	Replaced    Reason = "replaced"
	NotReady    Reason = "not-ready"
	NotEntitled Reason = "not-entitled"
	NotDeciding Reason = "not-deciding" // By is who answers for the instance
	NotPassing  Reason = "not-passing"  // likewise
	NotForThem  Reason = "not-for-them" // By is who cannot be handed it
	Changed     Reason = "changed"
	NotOffered  Reason = "not-offered"
	NotOffline  Reason = "not-offline"
	NoHolder    Reason = "no-holder"
)

// Refusal is the error of a request that is not granted: of which item, why, and what to do.
type Refusal struct {
	Item Item
	Why  Reason
	By   User               // who has it
	At   workflow.PartnerID // who may grant it
	Text string
}

func (r *Refusal) Error() string {
	return strings.TrimPrefix(fmt.Sprintf("%s: %s", r.Item.Slot, r.Text), ": ")
}

// Ask is the grant with which the holder answers a request: the fact that it writes,
// signed by the user's request. It names what is not held so already; nothing: all is. It is
// all or none: with the first item that cannot be granted nothing is (rule 5). Nobody waits for a
// grant while holding another, so requests cannot block each other.
func (b *Board) Ask(self workflow.PartnerID, r Request) (Grant, error) {
	g := Grant{Mode: r.Mode, Lease: DefaultLease(r.Mode), With: r.With, Anew: r.Anew}
	for _, i := range r.Items {
		if slices.Contains(g.Items, i) {
			continue
		}
		it := b.items[i]
		if it == nil || !it.placed {
			return Grant{}, &Refusal{
				Item: i, Why: Unknown, Text: "there is no such item here: look at the worklist again",
			}
		}
		if no := b.refuses(self, it, r); no != nil {
			no.Item = i
			return Grant{}, no
		}
		if it.open == nil || it.open.Mode != r.Mode && r.Mode != Handed || slices.Contains(r.Anew, b.heldBy(it)) {
			g.Items = append(g.Items, i)
		}
	}
	return g, nil
}

// refuses says why an item cannot be granted; nil: it can.
func (b *Board) refuses(self workflow.PartnerID, it *item, r Request) *Refusal {
	if no := b.unavailable(self, it); no != nil {
		return no
	}
	switch mine := it.open != nil && it.open.User == r.User; {
	case it.open != nil && !mine && it.open.Mode == Handed:
		return &Refusal{Why: Kept, By: it.open.User, Text: fmt.Sprintf(
			"it is kept for %s, who may take it within %s: choose another item", it.open.User, it.open.lease.Lease)}
	case it.open != nil && !mine:
		return &Refusal{Why: Taken, By: it.open.User,
			Text: fmt.Sprintf("%s has it: choose another item, or ask the responsible user to hand it to you",
				it.open.User)}
	case mine && len(r.Anew) > 0 && b.heldBy(it) != r.Word && !slices.Contains(r.Anew, b.heldBy(it)):
		return &Refusal{Why: Changed, Text: "you have asked for it anew meanwhile, and have it: look at the worklist again"}
	case !it.maydo(b, r.User, r.Roles):
		return &Refusal{
			Why: NotEntitled, Text: fmt.Sprintf("it is for the role %s, which you do not have", it.roleNow()),
		}
	case (r.Mode == Lock || len(r.With) > 0) && !it.Task.Offline:
		return &Refusal{Why: NotOffline, Text: "the task may not be done offline: select it, and stay connected"}
	case it.Ready && len(b.lacks(it)) > 0:
		return &Refusal{Why: NotReady, Text: "it waits for " + Lacking(b.lacks(it))}
	case !it.Ready && !mine && !b.Policy().All() && !it.visible(b, r.User), !it.Ready && !mine && it.Task.Limited:
		return &Refusal{Why: NotOffered, Text: "to whom it is offered is decided when it is ready: wait until then"}
	case !it.Ready:
		return b.waitsFor(it, r)
	case !mine && !it.visible(b, r.User):
		return &Refusal{Why: NotOffered,
			Text: "it is offered to others of the role: wait until it is offered to you, or ask the responsible user"}
	}
	return nil
}

// heldBy is the word by which whoever has an item was given it last.
func (b *Board) heldBy(it *item) ID {
	if f := b.facts[it.open.leased]; f != nil {
		return f.word()
	}
	return it.open.leased
}

// unavailable says why nobody can have an item from this node.
func (b *Board) unavailable(self workflow.PartnerID, it *item) *Refusal {
	switch e := it.end(); {
	case !it.InCharge:
		why := cmp.Or(it.Why, "the task was given to another partner meanwhile")
		return &Refusal{Why: Replaced, Text: why + ": look at the worklist again"}
	case e != nil && e.work != nil:
		return &Refusal{Why: Done, By: e.work.fact.User, Text: fmt.Sprintf("%s has done it", e.work.fact.User)}
	case e != nil || it.Over:
		return &Refusal{Why: Done, Text: "it is over: nothing is to be done any more"}
	case it.Holder != self:
		return &Refusal{Why: Elsewhere, At: it.Holder, Text: "another partner holds it: ask there"}
	}
	return nil
}

// waitsFor says why an item that is not ready cannot be locked: all that it waits for has
// to be locked with it, or by the same user before.
func (b *Board) waitsFor(it *item, r Request) *Refusal {
	if r.Mode != Lock && len(r.With) == 0 {
		return &Refusal{Why: NotReady,
			Text: "it is not ready: only a lock can be had before, together with what it waits for"}
	}
	if len(it.Waits) == 0 || it.ByProgram {
		return &Refusal{Why: NotReady, Text: "it is not ready, and no item that you could lock makes it so"}
	}
	var lacks []string
	for _, t := range it.Waits {
		has, other := b.heldAhead(t, r)
		if other != "" {
			return &Refusal{Why: NotReady, Text: fmt.Sprintf("it waits for %s, which %s has", t, other), By: other}
		}
		if !has {
			lacks = append(lacks, string(t))
		}
	}
	if len(lacks) > 0 {
		return &Refusal{Why: NotReady, Text: fmt.Sprintf("it waits for %s: lock that with it", strings.Join(lacks, ", "))}
	}
	return nil
}

// heldAhead reports whether whoever asks has the item of a task that another waits for, or asks for it as well;
// other is somebody else who has it, as far as is known here.
func (b *Board) heldAhead(t workflow.TaskName, r Request) (has bool, other User) {
	of := func(i Item) bool { return i.Slot == t }
	for _, o := range b.slots[t] {
		switch {
		case !o.InCharge || o.open == nil:
		case o.open.User != r.User:
			return false, o.open.User
		case o.open.Mode == Lock:
			has = true
		}
	}
	return has || slices.ContainsFunc(r.Items, of) || slices.ContainsFunc(r.With, of), ""
}

// visible reports whether somebody sees an item that nobody holds.
func (it *item) visible(b *Board, u User) bool {
	switch {
	case b.opens(it), b.Spent(it.Holder), u == b.terms.Responsible:
		return true
	}
	return it.under == b.policyFact() && (it.all || it.to[u])
}

// Visible reports whether somebody who may do an item sees it while nobody has it (rule 4).
func (b *Board) Visible(i Item, u User) bool {
	it := b.items[i]
	if it == nil {
		it = &item{}
	}
	return it.visible(b, u)
}

// WasOffered reports whether an item was offered to anybody, by whatever policy.
func (b *Board) WasOffered(i Item) bool {
	it := b.items[i]
	return it != nil && it.offered
}

// Offered are those to whom an item is offered by name, sorted; to all: it is for all who have its role.
func (b *Board) Offered(i Item) (to []User, all bool) {
	it := b.items[i]
	if it == nil {
		it = &item{}
	}
	if !b.named(it) {
		return nil, b.opens(it) || b.Spent(it.Holder) || it.all && it.under == b.policyFact()
	}
	return slices.Sorted(maps.Keys(it.to)), false
}
