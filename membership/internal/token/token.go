// Package token writes the secrets that people pass on as one word, and reads them again:
// invitations, and what users sign in with.
//
// Promises: what is read is what was written, or there is an error, which never includes
// the text, since most of it is a secret.
//
// It imports membership/trust; membership/invitation and membership/users import it.
package token

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"unicode"

	"github.com/mutirao-mesh/mutirao/membership/trust"
)

// Form is one kind of such words: the prefix, then in base32 the bytes and four bytes of
// their hash. The alphabet has no i, l, o, u, to be read out loud and typed; in capitals
// it makes the smallest QR code.
type Form struct {
	What   string // it is called, with its article
	Prefix string
	Domain string // of the check digits
	Max    int    // characters
	Bad    error  // wrapped by what is wrong with a text
}

// Digits are what a word is written with, after its prefix.
const Digits = "0123456789abcdefghjkmnpqrstvwxyz"

// check is how many bytes of the hash are added.
const check = 4

var (
	encoding = base32.NewEncoding(Digits).WithPadding(base32.NoPadding)
	mistyped = strings.NewReplacer("i", "1", "l", "1", "o", "0")
)

// Write is b as one word to copy.
func (f Form) Write(b []byte) string {
	return f.Prefix + encoding.EncodeToString(append(b, f.sum(b)...))
}

// Read reads what [Form.Write] wrote. Case, white space and hyphens do not matter, and i,
// l, o are read as 1, 1, 0.
func (f Form) Read(text string) ([]byte, error) {
	if len(text) > 2*f.Max {
		return nil, fmt.Errorf("text of %d characters, %s has at most %d: %w", len(text), f.What, f.Max, f.Bad)
	}
	word, found := strings.CutPrefix(bare(text), f.Prefix)
	if !found {
		return nil, fmt.Errorf("%s begins with %q: %w", f.What, f.Prefix, f.Bad)
	}
	word = mistyped.Replace(word)
	raw, err := encoding.DecodeString(word)
	if err != nil || len(raw) < check || encoding.EncodeToString(raw) != word {
		return nil, fmt.Errorf("a character is missing or mistyped: %w", f.Bad)
	}
	body, sum := raw[:len(raw)-check], raw[len(raw)-check:]
	if string(f.sum(body)) != string(sum) {
		return nil, fmt.Errorf("the check digits do not fit: %w", f.Bad)
	}
	return body, nil
}

// bare drops what copying and line breaks add.
func bare(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// sum is the check digits of b.
func (f Form) sum(b []byte) []byte {
	sum := sha256.Sum256(trust.InDomain(f.Domain, b))
	return sum[:check]
}
