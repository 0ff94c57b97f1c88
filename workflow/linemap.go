package workflow

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// lineMap finds the place in the file of a character of a text scalar, so that
// a mistake inside an expression is shown where it was written.
type lineMap struct {
	line   int   // of the text's first line
	col    int   // of the first character of each line, unless columns is set
	column []int // of each character, for one line of quoted text
	block  bool  // line by line, as in a literal block
	folded bool  // several lines became one: only the beginning is known
}

// quotedLines maps plain and quoted scalars on one line.
func (s *source) quotedLines(v *ast.StringNode) *lineMap {
	pos := v.Token.Position
	m := &lineMap{line: pos.Line, col: max(pos.Column, 1)}
	raw := s.rawFrom(pos)
	switch v.Token.Type {
	case token.SingleQuoteType:
		m.column = quotedColumns(raw, m.col, '\'')
	case token.DoubleQuoteType:
		m.column = quotedColumns(raw, m.col, '"')
	default:
		m.folded = !strings.HasPrefix(raw, v.Value)
		return m
	}
	m.folded = len(m.column) != utf8.RuneCountInString(v.Value)+1
	return m
}

// rawFrom is the rest of the file's line that begins at a token.
func (s *source) rawFrom(pos *token.Position) string {
	if pos.Line < 1 || pos.Line > len(s.text) {
		return ""
	}
	runes := []rune(s.text[pos.Line-1])
	if pos.Column < 1 || pos.Column > len(runes) {
		return ""
	}
	return string(runes[pos.Column-1:])
}

// quotedColumns gives the column of each character between quotes, and of the
// closing quote.
func quotedColumns(raw string, col int, quote rune) []int {
	var out []int
	runes := []rune(raw)
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

// blockLines maps | blocks line by line; the lines of a > block are joined, so
// only its beginning is known.
func (s *source) blockLines(v *ast.LiteralNode) *lineMap {
	m := &lineMap{line: v.Start.Position.Line + 1, col: 1, block: true, folded: v.Start.Type == token.FoldedType}
	for i := v.Start.Position.Line; i < len(s.text); i++ {
		if text := s.text[i]; strings.TrimSpace(text) != "" {
			m.col = 1 + len(text) - len(strings.TrimLeft(text, " "))
			break
		}
	}
	return m
}

// at gives the place of the character at offset (in characters) of text.
func (m *lineMap) at(text string, offset int) (line, col int) {
	runes := []rune(text)
	offset = min(max(offset, 0), len(runes))
	switch {
	case m.folded:
		return m.line, m.col
	case m.column != nil:
		return m.line, m.column[offset]
	case !m.block:
		return m.line, m.col + offset
	}
	line, col = m.line, m.col
	for _, r := range runes[:offset] {
		if col++; r == '\n' {
			line, col = line+1, m.col
		}
	}
	return line, col
}
