package workflow

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mutirao-mesh/mutirao/internal/plain"
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
	// ResourceName names a resource inside a definition: a crane, a room.
	ResourceName string
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

// ValidName reports whether s may name a workflow, task, partition, partner, role,
// capability, application or data set: letters of any alphabet, digits, and after the
// first one of _ . -, and what stands between letters to join them ([joinsLetters]).
func ValidName(s string) bool { return NameRule(s) == "" }

// NameRule says what is allowed in place of s, which is no valid name; empty: it is
// one. Two names that look the same are the same: what looks the same is written in
// one way, and alphabets whose letters look alike are not mixed.
func NameRule(s string) string {
	switch {
	case len(s) > MaxName:
		return longName(s)
	case strings.IndexFunc(s, notInName) >= 0 || strings.IndexFunc(s, beginsName) != 0:
		return "letters, digits, _ . - (letters of any alphabet, no spaces), beginning with a letter or digit"
	case withoutStrays(s) != s:
		return "letters, digits, _ . -; a joiner (U+200C, U+200D) only where it changes how letters are joined, · only in l·l"
	}
	if usual := usualForm(s); usual != s {
		return cmp.Or(NameRule(usual), "these letters as Unicode NFKC writes them, which may look the same, in their usual form: "+usual)
	}
	if mixed(s) {
		return "letters of one alphabet, or Latin ones beside one that does not look like it"
	}
	return ""
}

func notInName(r rune) bool {
	return !beginsName(r) && !unicode.In(r, unicode.Mn, unicode.Mc) && !strings.ContainsRune("_.-", r) && !mayJoin(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) // nobody sees them
}

func beginsName(r rune) bool { return r >= '0' && r <= '9' || unicode.IsLetter(r) }

// mayJoin reports whether a character may join letters: a joiner, and the middle dot, as
// in "instal·lació".
func mayJoin(r rune) bool { return r == middleDot || r == plain.NonJoiner || r == plain.Joiner }

const middleDot = '·'

// joinsLetters reports whether such a character joins the letters between which it
// stands: a joiner by [plain.Joins], the middle dot between two l of Catalan (RFC 5892,
// A.3; Unicode Standard Annex 31, table 3a, has it for names).
func joinsLetters(before string, r rune, after string) bool {
	if r != middleDot {
		return plain.Joins(before, r, after)
	}
	return strings.HasSuffix(before, "l") && strings.HasPrefix(after, "l") ||
		strings.HasSuffix(before, "L") && strings.HasPrefix(after, "L")
}

// withoutStrays is s with a dash for middle dots that join no letters, and without the
// joiners that join none.
func withoutStrays(s string) string {
	if strings.IndexFunc(s, mayJoin) < 0 {
		return s
	}
	var out strings.Builder
	for i, r := range s {
		switch {
		case !mayJoin(r) || joinsLetters(out.String(), r, s[i+utf8.RuneLen(r):]):
			out.WriteRune(r)
		case r == middleDot:
			out.WriteByte('-')
		}
	}
	return out.String()
}

// MakeName makes a valid name out of any text, as near to it as may be: what cannot
// stand there becomes a dash. It is empty where nothing is left.
func MakeName(s string) string {
	name := strings.Map(func(r rune) rune {
		if !mayJoin(r) && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point,
			unicode.Variation_Selector) {
			return -1
		}
		return r
	}, s)
	name = dashed(usualForm(withoutStrays(usualForm(name))), notInName)
	if mixed(name) {
		i := strings.IndexFunc(name, unicode.IsLetter)
		first, _ := utf8.DecodeRuneInString(name[i:])
		alphabet := alphabetOf(first)
		name = dashed(name, func(r rune) bool { a := alphabetOf(r); return a != nil && a != alphabet })
	}
	if name = strings.TrimLeftFunc(name, func(r rune) bool { return !beginsName(r) }); len(name) > MaxName {
		name = strings.ToValidUTF8(name[:MaxName], "")
	}
	return strings.TrimRight(withoutStrays(name), "-")
}

// dashed is s with a dash for all that are no good, several in a row or one.
func dashed(s string, bad func(rune) bool) string {
	var out strings.Builder
	for rest := s; rest != ""; {
		i := strings.IndexFunc(rest, bad)
		if i < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:i] + "-")
		rest = strings.TrimLeftFunc(rest[i:], bad)
	}
	return out.String()
}

// UsualForm is what somebody typed in the one form in which names are written: keyboards and file systems make one
// letter of two characters, or two of one. IDs stay as they are.
func UsualForm(typed string) string { return usualForm(typed) }

// usualForm is the one way to write what looks like s. It is NFKC but for letters
// that people write as one, though Unicode makes them of others.
func usualForm(s string) string {
	if isASCII(s) {
		return s
	}
	var out []byte
	from := 0
	for i, r := range s {
		if ofItsOwn(r) {
			out = utf8.AppendRune(norm.NFKC.AppendString(out, s[from:i]), r)
			from = i + utf8.RuneLen(r)
		}
	}
	usual := string(norm.NFKC.AppendString(out, s[from:]))
	return chillus.Replace(laoAM.ReplaceAllString(thaiAM.ReplaceAllString(usual, "${1}\u0e33"), "${1}\u0eb3"))
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// ofItsOwn reports whether a letter is not what NFKC makes of it: it looks different,
// and people have a key for it.
func ofItsOwn(r rune) bool {
	switch {
	case r >= 0xff00 && r <= 0xffef, r == 0x37a: // of half width; an accent with a space
		return false
	case r >= 0x3131 && r <= 0x318e: // Korean
		return true
	}
	return unicode.Is(unicode.Lm, r) || strings.ContainsRune("ªºև\u0e33\u0eb3\u0edc\u0edd", r)
}

// Letters of Malayalam that have a character of their own, and were written with a joiner
// before there was one.
var chillus = strings.NewReplacer(
	"ണ്\u200d", "ൺ", "ന്\u200d", "ൻ", "ര്\u200d", "ർ", "ല്\u200d", "ൽ", "ള്\u200d", "ൾ", "ക്\u200d", "ൿ",
)

// The vowel AM of Thai and Lao, written as its two parts: a tone mark stands before
// it, but may be typed between them.
var (
	thaiAM = regexp.MustCompile(`\x{0e4d}([\x{0e48}-\x{0e4b}]?)\x{0e32}`)
	laoAM  = regexp.MustCompile(`\x{0ecd}([\x{0ec8}-\x{0ecb}]?)\x{0eb2}`)
)

// lookalikes are the alphabets with letters that look like those of Latin.
var lookalikes = []*unicode.RangeTable{
	unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
}

// mixed reports whether s has letters of two alphabets, and not of Latin and another
// that looks different (Unicode Technical Standard 39, moderately restrictive).
func mixed(s string) bool {
	if isASCII(s) {
		return false
	}
	latin, other := false, (*unicode.RangeTable)(nil)
	for _, r := range s {
		if other != nil && unicode.Is(other, r) {
			continue
		}
		switch a := alphabetOf(r); {
		case a == unicode.Latin:
			latin = true
		case a == nil: // digits, signs and accents belong to all
		case other != nil && a != other:
			return true
		default:
			other = a
		}
	}
	return latin && slices.Contains(lookalikes, other)
}

// alphabetOf is the alphabet of a letter; nil: it is of none, or of all. Those that
// are written together, as Japanese writes three, count as one.
func alphabetOf(r rune) *unicode.RangeTable {
	switch {
	case unicode.Is(unicode.Latin, r):
		return unicode.Latin
	case unicode.In(r, unicode.Common, unicode.Inherited):
		return nil
	case unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo):
		return unicode.Han
	}
	for _, alphabet := range unicode.Scripts {
		if unicode.Is(alphabet, r) {
			return alphabet
		}
	}
	return nil
}

// ValidDataName reports whether s may name a data item.
func ValidDataName(s string) bool { return dataRule(s) == "" }

// dataRule says what is allowed in place of s, which is no valid name for data; empty:
// it is one. Expressions have these names, and know no other letters.
func dataRule(s string) string {
	switch {
	case len(s) > MaxName:
		return longName(s)
	case !dataRE.MatchString(s):
		return "letters a to z and A to Z, digits and _, beginning with a letter or _"
	}
	return ""
}

func longName(s string) string {
	return fmt.Sprintf("at most %d bytes (this has %d; a letter has 1 to 4)", MaxName, len(s))
}

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

// Compare orders instances by their IDs.
func (id InstanceID) Compare(o InstanceID) int { return bytes.Compare(id[:], o[:]) }

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

// MakeDataName makes a name for data out of any text: what cannot stay becomes an
// underscore. Empty: nothing can stay.
func MakeDataName(s string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, s), "_")
	if name == "" {
		return ""
	}
	if name = name[:min(len(name), MaxName-1)]; reserved[name] || !ValidDataName(name) {
		name = "_" + name
	}
	return name
}
