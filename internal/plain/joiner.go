package plain

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The two joiners of Unicode: they say how the letters beside them are joined.
const (
	NonJoiner = '\u200c'
	Joiner    = '\u200d'
)

// Joins reports whether a joiner between two parts of a text changes how letters are
// joined, so that people see it and their languages need it. It follows the contexts A1,
// A2 and B of Unicode Standard Annex 31, 2.3.1 (Unicode Technical Standard 39, 3.1.1, and
// RFC 5892, A.1 and A.2, have the same), for letters of one alphabet:
//
//   - A1: a non-joiner parts two letters that would be joined, of the Arabic block:
//     Persian, Urdu, Kurdish;
//   - A2, B: either stands between a virama, which follows a letter, and the next letter,
//     in place of the usual conjunct: Hindi, Bengali, Sinhala and others of India.
func Joins(before string, r rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	if r != NonJoiner && r != Joiner || !unicode.IsLetter(next) {
		return false
	}
	mark, n := utf8.DecodeLastRuneInString(before)
	virama := n > 0 && norm.NFC.PropertiesString(before[len(before)-n:]).CCC() == classVirama
	last := mark
	for unicode.In(last, unicode.Mn, unicode.Mc) {
		before = before[:len(before)-n]
		last, n = utf8.DecodeLastRuneInString(before)
	}
	if !virama {
		return r == NonJoiner && unicode.Is(joinsNext, last) && unicode.In(next, joinsNext, joinsLast)
	}
	if !unicode.IsLetter(last) {
		return false
	}
	for _, alphabet := range unicode.Scripts {
		if unicode.Is(alphabet, next) {
			return unicode.Is(alphabet, last) && unicode.Is(alphabet, mark)
		}
	}
	return false
}

const classVirama = 9 // the combining class of a virama

// The letters of the Arabic block that are joined to the next one as well as to the last
// (Dual_Joining), and those that are joined to the last one alone (Right_Joining).
var (
	joinsNext = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x620, Hi: 0x620, Stride: 1}, {Lo: 0x626, Hi: 0x628, Stride: 2}, {Lo: 0x62a, Hi: 0x62e, Stride: 1},
		{Lo: 0x633, Hi: 0x63f, Stride: 1}, {Lo: 0x641, Hi: 0x647, Stride: 1}, {Lo: 0x649, Hi: 0x64a, Stride: 1},
		{Lo: 0x66e, Hi: 0x66f, Stride: 1}, {Lo: 0x678, Hi: 0x687, Stride: 1}, {Lo: 0x69a, Hi: 0x6bf, Stride: 1},
		{Lo: 0x6c1, Hi: 0x6c2, Stride: 1}, {Lo: 0x6cc, Hi: 0x6ce, Stride: 2}, {Lo: 0x6d0, Hi: 0x6d1, Stride: 1},
		{Lo: 0x6fa, Hi: 0x6fc, Stride: 1}, {Lo: 0x6ff, Hi: 0x6ff, Stride: 1},
	}}
	joinsLast = &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x622, Hi: 0x625, Stride: 1}, {Lo: 0x627, Hi: 0x629, Stride: 2}, {Lo: 0x62f, Hi: 0x632, Stride: 1},
		{Lo: 0x648, Hi: 0x648, Stride: 1}, {Lo: 0x671, Hi: 0x673, Stride: 1}, {Lo: 0x675, Hi: 0x677, Stride: 1},
		{Lo: 0x688, Hi: 0x699, Stride: 1}, {Lo: 0x6c0, Hi: 0x6c0, Stride: 1}, {Lo: 0x6c3, Hi: 0x6cb, Stride: 1},
		{Lo: 0x6cd, Hi: 0x6cf, Stride: 2}, {Lo: 0x6d2, Hi: 0x6d3, Stride: 1}, {Lo: 0x6d5, Hi: 0x6d5, Stride: 1},
		{Lo: 0x6ee, Hi: 0x6ef, Stride: 1},
	}}
)
