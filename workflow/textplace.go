package workflow

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// textPlace finds the place in the file of a character of a text scalar, so
// that a mistake inside an expression is shown where it was written. It works
// only when it is asked: most texts have no mistakes.
type textPlace struct {
	source *source
	style  token.Type // plain, quoted, literal or folded
	line   int        // of the token
	col    int
	from   string // what the file has from the token on; empty: look for it by line and col
}

// at gives the place of the character at offset (in characters) of the text.
// Where several lines became one, only the beginning is known.
func (p *textPlace) at(text string, offset int) (line, col int) {
	offset = min(max(offset, 0), utf8.RuneCountInString(text))
	switch p.style {
	case token.LiteralType:
		return p.inBlock(text, offset)
	case token.FoldedType:
		return p.inBlock(text, 0)
	case token.SingleQuoteType:
		return p.line, p.inQuotes(text, offset, '\'')
	case token.DoubleQuoteType:
		return p.line, p.inQuotes(text, offset, '"')
	}
	if strings.HasPrefix(string(p.rest(text)), text) {
		return p.line, p.col + offset
	}
	return p.line, p.col
}

// rest is what the file has on the token's line, from the token on, as far as the
// text can reach.
func (p *textPlace) rest(text string) []rune {
	line := p.from
	if line == "" && p.line <= len(p.source.text) {
		line = p.source.text[p.line-1]
		for range p.col - 1 {
			_, size := utf8.DecodeRuneInString(line)
			line = line[size:]
		}
	}
	const longest = 12 // bytes for a character: two escapes of four digits
	return []rune(line[:min(len(line), longest*(len(text)+1))])
}

func (p *textPlace) inQuotes(text string, offset int, quote rune) int {
	columns := quotedColumns(p.rest(text), p.col, quote)
	if len(columns) != utf8.RuneCountInString(text)+1 {
		return p.col
	}
	return columns[offset]
}

// inBlock counts lines below the token, which is the | or >.
func (p *textPlace) inBlock(text string, offset int) (line, col int) {
	indent := 0
	for _, below := range p.source.text[min(p.line, len(p.source.text)):] {
		if strings.TrimSpace(below) != "" {
			indent = len(below) - len(strings.TrimLeft(below, " "))
			break
		}
	}
	line, col = p.line+1, indent+1
	for _, c := range []rune(text)[:offset] {
		if col++; c == '\n' {
			line, col = line+1, indent+1
		}
	}
	return line, col
}

// quotedColumns gives the column of each character between quotes, and of the
// closing quote.
func quotedColumns(runes []rune, col int, quote rune) []int {
	var out []int
	for i := 1; i < len(runes); {
		out = append(out, col+i)
		switch {
		case runes[i] == quote && quote == '\'' && i+1 < len(runes) && runes[i+1] == quote:
			i += 2
		case runes[i] == quote:
			return out
		case runes[i] == '\\' && quote == '"':
			i += escapeLength(runes[i:])
		default:
			i++
		}
	}
	return nil
}

func escapeLength(runes []rune) int {
	if len(runes) < 2 {
		return 1
	}
	switch runes[1] {
	case 'x':
		return 4
	case 'u':
		return 6
	case 'U':
		return 10
	}
	return 2
}
