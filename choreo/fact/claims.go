package fact

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Claim says something about people's work.
type Claim struct {
	_ struct{} `cbor:",toarray"`
	// Says is what, as the package worklist writes it down.
	Says []byte
	// Nonce makes two words that say the same two.
	Nonce [16]byte
	// Word is the word of the person for Says and Nonce in this instance (SpokenOf), with
	// what proves who that is; empty: the holder itself says it.
	Word []byte

	body worklist.Body // what Says says, once it was read
}

// MaxClaims is how many words of people about one item there may be, as far as their author knew,
// when it is granted or passed on once more, and how much its holder says of itself. Nobody takes one item and
// gives it back so often; and so nobody makes one costly. Releases and results have as much again: whoever
// got the item at last can give it back, or end it.
const MaxClaims = 256

// MaxWord bounds a person's word with what proves it, in bytes.
const MaxWord = 24 << 10

// Speaker is who a person's word is by, as Trust finds.
type Speaker struct {
	User  worklist.User
	Roles []workflow.RoleName
	// At is the partner at whose node the person's key is.
	At workflow.PartnerID
}

var claimDomain = []byte("mutirao/claim/1\x00")

// SpokenOf is what a person signs: what is claimed, in that instance, once.
func SpokenOf(id workflow.InstanceID, says []byte, nonce [16]byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(claimDomain)
	h.Write(id[:])
	h.Write(nonce[:])
	h.Write(says)
	return [sha256.Size]byte(h.Sum(nil))
}

// Read is what a claim says.
func (c *Claim) Read() (worklist.Body, error) {
	if c.body == nil {
		body, err := worklist.Decode(c.Says)
		if err != nil {
			return nil, err
		}
		c.body = body
	}
	return c.body, nil
}

// Body is what a claim says; nil: it cannot be read.
func (c *Claim) Body() worklist.Body {
	body, _ := c.Read()
	return body
}

func (c *Claim) kind() string { return "claim" }

// places reports whether a claim is an amendment that says where partitions are.
func (c *Claim) places() bool {
	x, _ := c.Body().(worklist.Amend)
	return len(x.At) > 0
}

// appoints calls yield with those to whom an amendment gives a partition that it adds.
func (c *Claim) appoints(yield func(workflow.PartnerID) bool) {
	x, amends := c.Body().(worklist.Amend)
	if !amends {
		return
	}
	for _, p := range x.At {
		if !p.Moves && !yield(p.Partner) {
			return
		}
	}
}

func (c *Claim) Validate(workflow.PartnerID) error {
	body, err := c.Read()
	if err != nil {
		return err
	}
	if len(c.Word) > MaxWord {
		return fmt.Errorf("a person's word of %d bytes, at most %d", len(c.Word), MaxWord)
	}
	switch byPerson := len(c.Word) > 0; {
	case peopleSay(body) && !byPerson:
		return errors.New("it is said in nobody's name")
	case !peopleSay(body) && (byPerson || c.Nonce != [16]byte{}):
		return errors.New("only its author can say that")
	}
	return nil
}

// peopleSay reports whether something is the word of a person, and not that of its author alone.
func peopleSay(body worklist.Body) bool {
	switch x := body.(type) {
	case worklist.Grant, worklist.Release, worklist.Result, worklist.Order, worklist.Adopt, worklist.Extend,
		worklist.Notify, worklist.Amend:
		return true
	case worklist.Transfer:
		return x.Cause != worklist.ByDeadline
	}
	return false
}

// About are the attempts that a claim is about.
func (c *Claim) About() (out []AttemptID) {
	body, err := c.Read()
	if err != nil {
		return nil
	}
	for _, i := range worklist.About(body) {
		out = append(out, AttemptIDOf(i))
	}
	return out
}

// AttemptIDOf is the attempt that an item is of.
func AttemptIDOf(i worklist.Item) AttemptID {
	return AttemptID{Fact: ID(i.Assigned), Slot: i.Slot}
}

// WordOf names a person's word before anybody wrote it down: what is said, in that instance, once.
func WordOf(id workflow.InstanceID, says []byte, nonce [16]byte) worklist.ID {
	return worklist.ID(SpokenOf(id, says, nonce))
}

// IsOffer reports whether a claim says whom its author offers an item to.
func IsOffer(body worklist.Body) bool {
	_, is := body.(worklist.Offer)
	return is
}
