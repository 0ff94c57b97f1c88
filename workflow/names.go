package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The names of things. Each has its own type so that a signature tells what it
// takes. For workflow, task, partition and role names see ValidName.
type (
	// Name names a workflow definition.
	Name string
	// TaskName names a task inside a definition.
	TaskName string
	// PartitionName names a partition inside a definition.
	PartitionName string
	// RoleName names a role that people and partners have.
	RoleName string
	// DataName names a data item of an instance: [A-Za-z_][A-Za-z0-9_]*.
	DataName string
	// ApplicationName names what an automatic task runs or a person opens.
	ApplicationName string
	// Capability is something a partner can do or has.
	Capability string
	// PartnerID identifies a partner: the text form of its libp2p peer ID.
	PartnerID string
	// UserName names a person.
	UserName string
)

var dataRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Short is the part of an ID that people see. Every Ed25519 peer ID begins alike, so
// it is what comes after; any unique prefix of it works where a partner is asked for.
func (id PartnerID) Short() string {
	rest := strings.TrimPrefix(string(id), CommonID)
	return rest[:min(shownID, len(rest))]
}

// CommonID is what all IDs of partners begin with.
const CommonID = "12D3KooW"

const shownID = 8

// MaxName is the greatest length of any name, in bytes.
const MaxName = 128

// ValidName reports whether s may name a workflow, task, partition, partner or
// role: letters of any alphabet, digits, and after the first one of _ . -
func ValidName(s string) bool { return NameRule(s) == "" }

// NameRule says what is allowed in place of s, which is no valid name; empty: it is
// one. Two names that look the same are the same: an accent and its letter are one
// character, and alphabets whose letters look alike are not mixed.
func NameRule(s string) string {
	switch {
	case len(s) > MaxName:
		return fmt.Sprintf("at most %d bytes", MaxName)
	case strings.IndexFunc(s, notInName) >= 0 || strings.IndexFunc(s, beginsName) != 0:
		return "letters, digits, _ . -, beginning with a letter or digit"
	case !plainForm(s):
		return "letters in their usual form, an accent and its letter as one character (Unicode NFKC)"
	case mixed(s):
		return "letters of one alphabet: those of others look like them"
	}
	return ""
}

func notInName(r rune) bool {
	return !beginsName(r) && !unicode.In(r, unicode.Mn, unicode.Mc) && !strings.ContainsRune("_.-", r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) // nobody sees them
}

func beginsName(r rune) bool { return r >= '0' && r <= '9' || unicode.IsLetter(r) }

// plainForm reports whether there is no other way to write what looks like s, as far
// as Unicode says. The ordinals of Portuguese are not what they are made of.
func plainForm(s string) bool {
	return norm.NFKC.IsNormalString(strings.NewReplacer("º", "", "ª", "").Replace(s))
}

// lookalikes are the alphabets with letters that look like others'.
var lookalikes = []*unicode.RangeTable{
	unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
}

func mixed(s string) bool {
	var first *unicode.RangeTable
	for _, r := range s {
		for _, alphabet := range lookalikes {
			if !unicode.Is(alphabet, r) {
				continue
			}
			if first != nil && first != alphabet {
				return true
			}
			first = alphabet
		}
	}
	return false
}

// ValidDataName reports whether s may name a data item.
func ValidDataName(s string) bool { return len(s) <= MaxName && dataRE.MatchString(s) }

// Hash identifies a definition: SHA-256 of its canonical form.
type Hash [sha256.Size]byte

func (h Hash) String() string { return string(hex.AppendEncode(make([]byte, 0, 2*len(h)), h[:])) }

// IsZero reports whether h is the zero hash, which identifies nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// InstanceID identifies an instance: the first half of the hash of the fact
// that created it, so that nobody can choose it or make two with one ID.
type InstanceID [16]byte

func (id InstanceID) String() string {
	return string(hex.AppendEncode(make([]byte, 0, 2*len(id)), id[:]))
}

// Short is the prefix of the ID that people see; any unique prefix works where
// an ID is asked for.
func (id InstanceID) Short() string { return hex.EncodeToString(id[:5]) }

// ParseInstanceID reads a complete instance ID.
func ParseInstanceID(s string) (InstanceID, error) {
	var id InstanceID
	b, err := hex.DecodeString(strings.TrimSpace(s))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not an instance ID: want %d hexadecimal digits", s, 2*len(id))
	}
	copy(id[:], b)
	return id, nil
}
