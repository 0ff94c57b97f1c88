package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Width is how many columns s takes on a terminal, and about how many letters of
// Latin width in a drawing: letters of Chinese, Japanese and Korean take two, accents
// of their own none.
func Width(s string) int {
	n := 0
	for _, r := range s {
		if ' ' <= r && r < 0x7f {
			n++
		} else {
			n += runeWidth(r)
		}
	}
	return n
}

// Cut is s where it takes at most n columns, else its beginning with an ellipsis.
func Cut(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	taken := 0
	for i, r := range s {
		if taken += runeWidth(r); taken > n-1 && i > 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// CutBytes is s, as text, where it has at most n bytes, else its beginning with an
// ellipsis: n bytes at most, and at least 3. What may not get larger is cut so, whatever
// it would take on a terminal.
func CutBytes(s string, n int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= n {
		return s
	}
	end := n - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func runeWidth(r rune) int {
	if r < utf8.RuneSelf { // most are: the tables take a while
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
