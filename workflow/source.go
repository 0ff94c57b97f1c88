package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a definition's text. They keep what a partner sends from
// costing more than it is worth.
const (
	MaxSource = 1 << 20 // bytes
	MaxDepth  = 32      // mappings and lists inside each other
	MaxTasks  = 10_000
	MaxEnum   = 1_000 // values of a data item
	// MaxEvaluations is how often conditions about data have to be evaluated at most when
	// each task has run: of each item its writers times its different conditions.
	MaxEvaluations = 1 << 18
)

// node is a value of the document with its place. It is what the rest of the
// package sees of YAML.
type node struct {
	kind      nodeKind
	line, col int
	value     any    // scalar: nil, string, int64, float64 or bool
	text      string // scalar: as written, quotes and escapes undone
	items     []*node
	entries   []entry
	place     *textPlace // of a text scalar: where its characters are
}

type entry struct{ key, value *node }

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	listNode
	mapNode
)

// what names the kind of value for messages.
func (n *node) what() string {
	switch n.kind {
	case listNode:
		return "a list"
	case mapNode:
		return "a mapping"
	}
	switch n.value.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "a boolean"
	}
	return "a number"
}

func (n *node) isNull() bool { return n.kind == scalarNode && n.value == nil }

// get returns the value of a key of a mapping, or nil.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// source turns text into nodes. YAML features that let a short text stand for
// a long one, or mean different things to different readers (anchors, aliases,
// merge keys, tags, directives, complex keys), are refused.
type source struct {
	text     []string // lines
	problems *problems
}

// readSource reads the one document of src, or reports why it cannot.
func readSource(src []byte, pr *problems) *node {
	if !checkBytes(src, pr) {
		return nil
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if json.Valid(src) {
		return readJSON(src, pr)
	}
	tokens, ok := tokenize(src, pr)
	if !ok {
		return nil
	}
	file, err := parseTokens(tokens, parser.AllowDuplicateMapKey())
	if err != nil {
		p := notYAML(pr.file, src, err, entryHint)
		pr.at(p.Line, p.Col, p.Message, p.Hint)
		return nil
	}
	s := &source{text: strings.Split(string(src), "\n"), problems: pr}
	return s.document(file)
}

func checkBytes(src []byte, pr *problems) bool {
	if len(src) > MaxSource {
		pr.at(1, 1, fmt.Sprintf("the definition has more than %d bytes, which are the most that it may have", MaxSource),
			"cut it into sub-workflows")
		return false
	}
	for i, line := range bytes.Split(src, []byte("\n")) {
		if at := bytes.IndexByte(line, 0); at >= 0 {
			pr.at(i+1, utf8.RuneCount(line[:at])+1, "a NUL byte is not text", "save the file as UTF-8")
			return false
		}
		if !utf8.Valid(line) {
			pr.at(i+1, validPrefix(line)+1, "this is not valid UTF-8", "save the file as UTF-8")
			return false
		}
	}
	return true
}

// validPrefix counts the characters before the first invalid byte.
func validPrefix(line []byte) int {
	n := 0
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		if r == utf8.RuneError && size == 1 {
			break
		}
		line = line[size:]
		n++
	}
	return n
}

func (s *source) document(file *ast.File) *node {
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		line, col := place(doc.Body)
		if body != nil {
			s.problems.at(line, col, "a file holds one definition, here a second document begins",
				"put it into a file of its own")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		s.problems.at(1, 1, "the definition is empty", "begin with workflow: NAME")
		return nil
	}
	return s.node(body, 0)
}

// place is where a node begins. A block mapping's own token is the colon of
// its first entry.
func place(n ast.Node) (line, col int) {
	switch v := n.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return place(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(v.Key)
	}
	tk := n.GetToken()
	if tk == nil || tk.Position == nil {
		return 1, 1
	}
	return tk.Position.Line, max(tk.Position.Column, 1)
}

func (s *source) node(n ast.Node, depth int) *node {
	out := &node{}
	out.line, out.col = place(n)
	if _, isScalar := n.(ast.ScalarNode); depth >= MaxDepth && !isScalar {
		s.problems.at(out.line, out.col, tooDeep, "")
		return out
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		out.kind = mapNode
		for _, e := range v.Values {
			s.entry(out, e, depth)
		}
	case *ast.MappingValueNode:
		out.kind = mapNode
		s.entry(out, v, depth)
	case *ast.SequenceNode:
		out.kind = listNode
		for _, item := range v.Values {
			out.items = append(out.items, s.node(item, depth+1))
		}
	default:
		s.scalar(out, n)
	}
	return out
}

func (s *source) entry(out *node, e *ast.MappingValueNode, depth int) {
	key := &node{}
	key.line, key.col = place(e.Key)
	s.scalar(key, e.Key)
	if key.kind != scalarNode || key.isNull() {
		s.problems.at(key.line, key.col, "a key must be a name", "")
		return
	}
	out.entries = append(out.entries, entry{key, s.node(e.Value, depth+1)})
}

func (s *source) scalar(out *node, n ast.Node) {
	switch v := n.(type) {
	case *ast.StringNode:
		out.text, out.value = v.Value, v.Value
		if v.Token.Type == token.StringType {
			s.resolvePlain(out)
		}
		out.place = s.placeOf(v.Token)
	case *ast.LiteralNode:
		out.text, out.value = v.Value.Value, v.Value.Value
		out.place = s.placeOf(v.Start)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		s.number(out, n)
	case *ast.BoolNode:
		out.text, out.value = v.GetToken().Value, v.Value
	case *ast.NullNode:
		out.text = v.GetToken().Value
	default:
		s.refuse(out, "this kind of YAML is not part of the language", "")
	}
}

func (s *source) placeOf(tk *token.Token) *textPlace {
	return &textPlace{source: s, style: tk.Type, line: tk.Position.Line, col: max(tk.Position.Column, 1)}
}

func (s *source) refuse(out *node, message, hint string) {
	s.problems.at(out.line, out.col, message, hint)
	out.value = ""
}

// number reads a whole number of 64 bits, or else a number with a fraction.
func (s *source) number(out *node, n ast.Node) {
	out.text = n.GetToken().Value
	if v, ok := n.(*ast.IntegerNode); ok {
		switch i := v.Value.(type) {
		case int64:
			out.value = i
			return
		case uint64:
			if i <= math.MaxInt64 {
				out.value = int64(i)
				return
			}
		}
	}
	s.fraction(out)
}

func (s *source) fraction(out *node) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(out.text, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		s.problems.at(out.line, out.col, fmt.Sprintf("%s is not a number that can be counted with", out.text), "")
		f = 0
	}
	out.value = f
}

// numberRE are the numbers that the YAML library takes for text: those beyond
// 64 bits, and those with an exponent but no decimal point. JSON writers, ours
// among them, produce both.
var numberRE = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)

func (s *source) resolvePlain(out *node) {
	if numberRE.MatchString(out.text) {
		s.fraction(out)
	}
}
