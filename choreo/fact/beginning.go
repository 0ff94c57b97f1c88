package fact

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// This file is about who begins an instance whose workflow wants a role of its creator.
//
// A partner that begins it in its own name shows its certificates with the genesis. A user who
// begins it at a partner's node has its own roles, whatever those of the partner are: the genesis
// carries the user's word for it, with what proves who the user is and which roles it has. It is
// the word for that genesis and no other: its author, its values, its partitions, its date and its
// nonce are signed. And it counts only from the partner at whose node the user's key is, so nobody
// begins anything by a word that was given elsewhere.

var beginningDomain = []byte("mutirao/beginning/1\x00")

// Beginning is what a person signs who begins an instance: its genesis as it is without that word.
func (f *Fact) Beginning() ([sha256.Size]byte, error) {
	if f.Body.Genesis == nil {
		return [sha256.Size]byte{}, errors.New("only a genesis begins an instance")
	}
	bare := *f
	if a := f.Body.Annex; a != nil {
		annex := *a
		annex.Word = nil
		bare.Body.Annex = &annex
	}
	raw, err := EncMode.Marshal(&bare)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode the beginning of an instance: %w", err)
	}
	h := sha256.New()
	h.Write(beginningDomain)
	h.Write(raw)
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// BegunWord is the word of the person who began the instance; empty: its author did, as the partner that it is.
func (f *Fact) BegunWord() []byte {
	if f.Body.Genesis == nil || f.Body.Annex == nil {
		return nil
	}
	return f.Body.Annex.Word
}
