package plain_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"Straße 3, 東京 – 🔥 é e\u0301 ½":      "Straße 3, 東京 – 🔥 é e\u0301 ½",
		"two\nlines\tand a tab":             "two\nlines\tand a tab",
		"red \x1b[31m":                      `red \x1b[31m`,
		"title \x1b]0;x\a":                  `title \x1b]0;x\x07`,
		"over\rwritten, gone\b\x7f":         `over\x0dwritten, gone\x08\x7f`,
		"8-bit \u009b31m":                   `8-bit \u009b31m`,
		"no UTF-8 \x9b31m \xff":             `no UTF-8 \x9b31m \xff`,
		"turned \u202eabc\u202c":            `turned \u202eabc\u202c`,
		"isolated \u2066a\u2069\u061c":      `isolated \u2066a\u2069\u061c`,
		"marks \u200e\u200f, zero \u200b":   `marks \u200e\u200f, zero \u200b`,
		"lines \u2028 \u2029 \ufeff":        `lines \u2028 \u2029 \ufeff`,
		"tags \U000e0041":                   `tags \U000e0041`,
		"unseen letters \u3164\u115f\u034f": `unseen letters \u3164\u115f\u034f`,
		"a family 👩\u200d🚒, a sign ⚠\ufe0f": "a family 👩🚒, a sign ⚠",
		"می\u200cشود, दा\u200cन, a\u200cb":  "می\u200cشود, दान, ab",
	} {
		if got := plain.Text(in); got != want {
			t.Errorf("%q:\n got: %s\nwant: %s", in, got, want)
		}
	}
	if got, want := plain.Line("a\r\nb\tc\x1bd"), `a b c\x1bd`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// joined is what a joiner may stand behind where another letter follows.
var joined = regexp.MustCompile(`([\p{L}\p{M}])[\x{200c}\x{200d}]`)

// Where a joiner changes how letters are joined, and where nobody would see it.
func TestJoins(t *testing.T) {
	for _, c := range []struct {
		before string
		joiner rune
		after  string
		want   bool
	}{
		{"می", plain.NonJoiner, "شود", true},          // Persian
		{"کتابها\u0650ه", plain.NonJoiner, "ا", true}, // behind an accent, too
		{"क्", plain.NonJoiner, "ष", true},            // Hindi: no conjunct
		{"क्", plain.Joiner, "ष", true},               // a half form
		{"ශ්", plain.Joiner, "රී", true},              // Sinhala
		{"র্", plain.NonJoiner, "য", true},            // Bengali
		{"دا", plain.NonJoiner, "ن", false},           // an alef is not joined to the next letter
		{"می", plain.Joiner, "شود", false},            // they are joined
		{"می", plain.NonJoiner, "", false},
		{"می", plain.NonJoiner, "-", false},
		{"می", plain.NonJoiner, "ء", false},
		{"می", plain.NonJoiner, "b", false},
		{"", plain.NonJoiner, "می", false},
		{"दा", plain.NonJoiner, "न", false},
		{"क्", plain.Joiner, "ि", false}, // a vowel sign
		{"क्", plain.Joiner, "ষ", false}, // of another alphabet
		{"a्", plain.Joiner, "ष", false},
		{"्", plain.Joiner, "ष", false},
		{"a", plain.Joiner, "b", false},
		{"می", '\u200b', "شود", false},
		{"می", '\u202e', "شود", false},
	} {
		if got := plain.Joins(c.before, c.joiner, c.after); got != c.want {
			t.Errorf("%q %q %q: %v, want %v", c.before, c.joiner, c.after, got, c.want)
		}
	}
}

// harmful are the characters that a terminal, or the reader of one line, must
// never get from somebody else. Written down apart from the code.
func harmful(r rune) bool {
	switch {
	case r < ' ' && r != '\n' && r != '\t', r >= 0x7f && r < 0xa0, r == utf8.RuneError:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// Whatever comes: nothing harmful is left, nothing visible is changed, and doing
// it twice changes nothing more. JSON stays JSON of the same value.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[2J\x1b]52;c;aGk=\a", "a\u202eb", "\xff\xfe", "\U000e0001\u009b",
		"a\rb\nc\td", `\u202e "q"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"Text": plain.Text(s), "Line": plain.Line(s)} {
			clean := strings.ReplaceAll(joined.ReplaceAllString(got, "$1"), "\ufffd",
				"") // it may have been there before
			if i := strings.IndexFunc(clean, harmful); i >= 0 || !utf8.ValidString(got) {
				t.Errorf("%s(%q) = %q", name, s, got)
			}
			if !plain.IsPlain(got) || plain.Text(got) != got {
				t.Errorf("%s(%q) = %q, which is not plain", name, s, got)
			}
		}
		if strings.ContainsAny(plain.Line(s), "\n\t") {
			t.Errorf("Line(%q) has several", s)
		}
		if plain.IsPlain(s) != (plain.Text(s) == s) {
			t.Errorf("IsPlain(%q) is %v", s, plain.IsPlain(s))
		}
		before, err := json.Marshal(map[string]string{"k" + s: s})
		if err != nil {
			t.Fatal(err)
		}
		after := plain.JSON(before)
		if !plain.IsPlain(string(after)) {
			t.Errorf("JSON(%s) = %s", before, after)
		}
		var was, is map[string]string
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
			t.Fatalf("%s became %s", before, after)
		}
		for k, v := range was {
			if is[k] != v {
				t.Errorf("%s became %s", before, after)
			}
		}
	})
}
