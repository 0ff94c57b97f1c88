package choreo

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// mayIdle says why this node writes down no more words of a person that may end nothing; nil: it does.
func (d *decision) mayIdle(c *fact.Claim, u worklist.User) error {
	his := d.state.People().Idled[state.Idler{Holder: d.self, User: u}].Plus(state.Takes(c))
	all := d.state.People().Idled[state.Idler{Holder: d.self}].Plus(state.Takes(c))
	const next = "its holder can end the task itself (mutirao task complete, or task fail)"
	switch {
	case his.Facts > fact.MaxPersonIdleFacts || his.Bytes > fact.MaxPersonIdleBytes:
		return fmt.Errorf("%w: what you said in this instance and what ended nothing would come to %d facts and %d bytes, at most %d and %d: "+
			"somebody else can take the item, or %s", state.ErrNotNow, his.Facts, his.Bytes, fact.MaxPersonIdleFacts,
			fact.MaxPersonIdleBytes, next)
	case all.Facts > fact.MaxIdleFacts || all.Bytes > fact.MaxIdleBytes:
		return fmt.Errorf("%w: what people said in this instance and what ended nothing would come to %d facts and %d bytes, at most %d and %d: %s",
			state.ErrNotNow, all.Facts, all.Bytes, fact.MaxIdleFacts, fact.MaxIdleBytes, next)
	}
	return nil
}

// mayOrderMore says why this node writes down no more of what somebody decides; nil: it does. An order that
// cancels the instance is the last, and always has room.
func (d *decision) mayOrderMore(takes state.Idled, u worklist.User) error {
	his := d.state.People().Idled[state.Idler{Holder: d.self, User: u, Orders: true}].Plus(takes)
	all := d.state.People().Idled[state.Idler{Holder: d.self, Orders: true}].Plus(takes)
	const next = "its holder can end the task itself (mutirao task complete, or task fail)"
	switch {
	case his.Facts > fact.MaxPersonOrderFacts || his.Bytes > fact.MaxPersonOrderBytes:
		return fmt.Errorf("%w: what you ordered about what this partner holds of the instance, with what follows from it, would come to "+
			"%d facts and %d bytes, at most %d and %d: somebody else who decides can order it, or %s",
			state.ErrNotNow, his.Facts, his.Bytes, fact.MaxPersonOrderFacts, fact.MaxPersonOrderBytes, next)
	case all.Facts > fact.MaxOrderFacts || all.Bytes > fact.MaxOrderBytes:
		return fmt.Errorf("%w: orders about what this partner holds of the instance, with what follows from them, would come to "+
			"%d facts and %d bytes, at most %d and %d: %s", state.ErrNotNow, all.Facts, all.Bytes, fact.MaxOrderFacts,
			fact.MaxOrderBytes, next)
	}
	return nil
}

// words is how much people have said about an attempt.
func (d *decision) words(id fact.AttemptID) int {
	return len(d.state.People().Of[state.ClaimsOf{Attempt: id, People: true}])
}

// mayGrant says why an item is not given to a person once more; nil: it is.
func (d *decision) mayGrant(i worklist.Item, u worklist.User) error {
	if n := d.state.Work().Granted(i, u); n >= fact.MaxGrants {
		return fmt.Errorf("%w: %s was given to you %d times, at most %d: somebody else can take it", state.ErrNotNow,
			i.Slot,
			n, fact.MaxGrants)
	}
	return d.mayBeSaid(i, fact.MaxClaims)
}

// mayBeSaid says why no more is taken about an item; nil: it is.
func (d *decision) mayBeSaid(i worklist.Item, most int) error {
	if n := d.words(fact.AttemptIDOf(i)); n >= most {
		return fmt.Errorf("%w: people have said %d things about %s, at most %d are taken: its holder can end the task itself "+
			"(mutirao task complete, or task fail)", state.ErrNotNow, n, i.Slot, most)
	}
	return nil
}
