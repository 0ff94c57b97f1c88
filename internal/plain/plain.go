// Package plain makes texts of others harmless for their readers: on a terminal,
// in a drawing, on a page. A name, a reason or a value may hold control characters
// and escape sequences, which steer a terminal, and characters that turn the
// direction of writing, which make a line read as what it is not. Here they become
// visible; everything that can be seen stays as it is.
//
// It also measures and cuts texts, whoever wrote them.
//
// It imports no other package of ours; many packages import it.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with all that cannot be seen written out, e.g. \x1b or \u202e,
// but for line breaks and tabs. Bytes that are no UTF-8 are written out too.
// Variation selectors, which only choose between forms of a visible character, are left
// out, and so are joiners where they join no letters. Text(Text(s)) is Text(s).
func Text(s string) string { return replace(s, "\n\t", show) }

// lineBreaks makes spaces of line breaks and tabs.
var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ")

// Line is Text in one line: line breaks and tabs become spaces.
func Line(s string) string {
	if first(s, "") < 0 { // most cells of a long table
		return s
	}
	s = lineBreaks.Replace(s)
	return replace(s, "", show)
}

// JSON does the same for a document that encoding/json has written: there, what
// cannot be seen becomes an escape, and the document means what it meant.
func JSON(b []byte) []byte {
	s := string(b)
	if IsPlain(s) { // most of what is long
		return b
	}
	return []byte(replace(s, "\n\t", escape))
}

// IsPlain reports whether Text leaves s as it is.
func IsPlain(s string) bool { return first(s, "\n\t") < 0 }

// replace writes out what is neither visible nor in layout.
func replace(s, layout string, write func(b *strings.Builder, r rune, raw string)) string {
	at := first(s, layout)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:at])
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if visible(r, n, layout) || Joins(s[:at], r, s[at+n:]) {
			b.WriteString(s[at : at+n])
		} else {
			write(&b, r, s[at:at+n])
		}
		at += n
	}
	return b.String()
}

// first is the place of the first character that is neither visible nor in
// layout, -1 if there is none.
func first(s, layout string) int {
	for at := 0; at < len(s); {
		if c := s[at]; ' ' <= c && c < 0x7f {
			at++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[at:])
		if !visible(r, n, layout) && !Joins(s[:at], r, s[at+n:]) {
			return at
		}
		at += n
	}
	return -1
}

// visible reports whether a character, n bytes long, shows as what it is.
// Letters, marks, numbers, punctuation, symbols and spaces do, but for those of
// them that Unicode wants ignored where they cannot be displayed (UAX 44,
// Other_Default_Ignorable_Code_Point): they are letters that nobody sees.
func visible(r rune, n int, layout string) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7f || strings.ContainsRune(layout, r)
	case r == utf8.RuneError && n == 1:
		return false
	}
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}

// show writes a character out for people.
func show(b *strings.Builder, r rune, raw string) {
	switch {
	case r == utf8.RuneError && len(raw) == 1, r < utf8.RuneSelf:
		fmt.Fprintf(b, `\x%02x`, raw[0])
	case r == NonJoiner || r == Joiner || unicode.Is(unicode.Variation_Selector, r):
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// escape writes a character out inside a JSON string (RFC 8259, 7).
func escape(b *strings.Builder, r rune, _ string) {
	if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
		fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}
