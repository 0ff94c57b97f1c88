package workflow

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// tokenize refuses, before the YAML library's parser sees it, what is not part
// of the language and what would cost that parser too much: it is recursive,
// and takes time in proportion to the square of the keys of a mapping, to the
// number of missing values times the length of the text, and to the square of
// the number of documents.
func tokenize(src []byte, pr *problems) (tokens token.Tokens, ok bool) {
	before := len(pr.list)
	tokens, err := YAMLTokens(src)
	if err != nil {
		p := notYAML(pr.file, src, err, entryHint)
		pr.at(p.Line, p.Col, p.Message, p.Hint)
	}
	g := gauge{}
	for _, tk := range tokens {
		line, col := tk.Position.Line, max(tk.Position.Column, 1)
		if refused, found := refusedTokens[tk.Type]; found {
			pr.at(line, col, refused.message, refused.hint)
			continue
		}
		g.add(tk)
		if message, hint := g.verdict(len(tokens)); message != "" {
			pr.at(line, col, message, hint)
			break
		}
	}
	return tokens, len(pr.list) == before
}

var refusedTokens = map[token.Type]struct{ message, hint string }{
	token.AnchorType:   {"anchors are not part of the language", "use models: and model:, or write it out"},
	token.AliasType:    {"aliases are not part of the language", "use models: and model:, or write it out"},
	token.MergeKeyType: {"the merge key << is not part of the language", "use models: and model:"},
	token.TagType: {"YAML tags are not part of the language",
		"put a text that begins with ! in quotes; for a negation write not"},
	token.MappingKeyType: {"a key introduced by ? is not part of the language", "write key: value"},
	token.DirectiveType:  {"YAML directives are not part of the language", "leave the line out"},
}

var tooDeep = fmt.Sprintf("lists and mappings lie more than %d deep in each other", MaxDepth)

// The most that reading a document may cost, in steps of the library's parser:
// enough for MaxTasks tasks, each without a value, in a text of MaxSource.
const (
	maxKeyCost  = MaxTasks * MaxTasks * 6 / 10
	maxNullCost = MaxTasks * MaxSource / 8
)

// gauge follows the tokens and estimates what they will cost.
type gauge struct {
	flow    []token.Type // the open [ and {
	line    int          // of the last - entries
	entries int          // - on that line
	keys    []keyCount   // of the open block mappings, by column
	keyCost int
	nulls   int
	texts   int // documents that have begun
	ended   bool
}

type keyCount struct{ column, count int }

func (g *gauge) add(tk *token.Token) {
	switch tk.Type {
	case token.DocumentHeaderType:
		g.texts++
		g.ended = false
		return
	case token.DocumentEndType:
		g.ended = true
		return
	case token.CommentType:
		return
	case token.SequenceStartType, token.MappingStartType:
		g.flow = append(g.flow, tk.Type)
	case token.SequenceEndType, token.MappingEndType:
		g.flow = g.flow[:max(len(g.flow)-1, 0)]
	case token.SequenceEntryType:
		g.entry(tk)
	case token.MappingValueType:
		g.key(tk)
	}
	if g.texts == 0 {
		g.texts = 1
	}
	if g.ended {
		g.texts++
	}
	if missingValue(tk, g.inMapping()) {
		g.nulls++
	}
}

func (g *gauge) inMapping() bool {
	return len(g.flow) > 0 && g.flow[len(g.flow)-1] == token.MappingStartType
}

func (g *gauge) entry(tk *token.Token) {
	if tk.Position.Line != g.line {
		g.entries, g.line = 0, tk.Position.Line
	}
	g.entries++
	g.close(tk.Position.Column)
}

// close ends the mappings to the right of a column.
func (g *gauge) close(column int) {
	for len(g.keys) > 0 && g.keys[len(g.keys)-1].column > column {
		g.keys = g.keys[:len(g.keys)-1]
	}
}

// key counts the keys of each block mapping.
func (g *gauge) key(colon *token.Token) {
	if len(g.flow) > 0 || colon.Prev == nil {
		return
	}
	column := colon.Prev.Position.Column
	g.close(column)
	if len(g.keys) == 0 || g.keys[len(g.keys)-1].column < column {
		g.keys = append(g.keys, keyCount{column: column})
	}
	last := &g.keys[len(g.keys)-1]
	last.count++
	g.keyCost += last.count
}

// missingValue reports whether the parser will have to invent a null after tk.
func missingValue(tk *token.Token, inFlowMapping bool) bool {
	next := tk.Next
	switch tk.Type {
	case token.MappingValueType:
		return next == nil || closes(next.Type) || next.Position.Line > tk.Position.Line && !indented(next, tk.Prev)
	case token.SequenceEntryType:
		return next == nil || next.Position.Line > tk.Position.Line && next.Position.Column <= tk.Position.Column
	}
	alone := tk.Prev != nil && (tk.Prev.Type == token.MappingStartType || tk.Prev.Type == token.CollectEntryType)
	return inFlowMapping && alone && next != nil && closes(next.Type)
}

// indented reports whether a token lies under a key. The - of its list may stand
// in the same column.
func indented(tk, key *token.Token) bool {
	if key == nil {
		return true
	}
	if tk.Type == token.SequenceEntryType {
		return tk.Position.Column >= key.Position.Column
	}
	return tk.Position.Column > key.Position.Column
}

func closes(t token.Type) bool {
	return t == token.CollectEntryType || t == token.MappingEndType || t == token.SequenceEndType
}

// verdict says what is too much, if anything is.
func (g *gauge) verdict(tokens int) (message, hint string) {
	switch {
	case len(g.flow) > MaxDepth || g.entries > MaxDepth:
		return tooDeep, ""
	case g.texts > 1:
		return "a file holds one definition, here a second document begins", "put it into a file of its own"
	case g.keyCost > maxKeyCost:
		return fmt.Sprintf("there are too many keys here: a definition has at most %d tasks", MaxTasks),
			"cut it into sub-workflows"
	case int64(g.nulls)*int64(tokens) > maxNullCost:
		return "there are too many keys without values", "write {} for a task without keys"
	}
	return "", ""
}
