package workflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

// key is one key of a mapping of the language: the tables of keys are the
// language's vocabulary, and the JSON Schema for editors is tested against them.
type key[T any] struct {
	name string
	read func(r *reader, n *node, into *T)
}

// kept is for keys that are read once more is known; see reader.written.
func kept[T any](*reader, *node, *T) {}

// reader reads a document into a definition and collects the mistakes.
type reader struct {
	*problems
	def      *Definition
	scope    scope
	places   map[any]map[string]*node // what was written, by the thing it belongs to
	heads    map[any]*node            // where the thing's name, or else the thing, stands
	apart    bool                     // models are read by themselves: which data there are is not known
	byHand   bool                     // the text is a file that somebody wrote, and nothing that is stored
	doubting bool
	doubts   []Doubt    // of loops, before their rounds are written out, if doubting
	shared   Shared     // nil: a definition takes nothing that it has not
	standIns []TaskName // only stood in for others, and are kept (Kept)
}

// written is the value of a key of a thing, or nil when it was not written.
func (r *reader) written(of any, key string) *node { return r.places[of][key] }

// head is where a thing is declared.
func (r *reader) head(of any) *node {
	if n := r.heads[of]; n != nil {
		return n
	}
	return &node{line: 1, col: 1}
}

// where is the value of a thing's key, or its head when that was not written.
func (r *reader) where(of any, key string) *node {
	return cmp.Or(r.written(of, key), r.head(of))
}

// readMap reads a mapping by its table of keys. Unknown and repeated keys are
// mistakes.
//
// It reports whether all keys were known, so that what seems to be missing is not
// reported beside its misspelling.
func readMap[T any](r *reader, n *node, keys []key[T], into *T) (known bool) {
	if n.kind != mapNode {
		r.on(n, cmp.Or(entryHint(n.text), "its keys are "+keyNames(keys)), "want a mapping, have %s", n.what())
		return false
	}
	known = true
	written := map[string]*node{}
	r.places[into] = written
	var before entry
	for _, e := range r.unique(n) {
		i := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == e.key.text })
		if i < 0 {
			r.unknownKey(e.key, before.outdented(), keyList(keys))
			known = false
			continue
		}
		before = e
		written[e.key.text] = e.value
		if e.value.isNull() {
			r.on(e.value, "write a value, or leave the key out", "%s has no value", e.key.text)
			continue
		}
		keys[i].read(r, e.value, into)
	}
	return known
}

// outdented is a hint to an author who forgot to indent what belongs to an entry:
// nothing is under it, and what follows is of no use where it is.
func (e entry) outdented() string {
	if e.key == nil || !e.value.isNull() {
		return ""
	}
	return fmt.Sprintf("what belongs to %s is indented more than it", e.key.text)
}

func (r *reader) unknownKey(n *node, outdented string, known []string) {
	hint := cmp.Or(entryHint(n.text), outdented, r.scope.memory.didYouMean(n.text, known),
		"the keys here are "+strings.Join(known, ", "))
	r.on(n, hint, "unknown key %q", n.text)
}

func keyList[T any](keys []key[T]) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func keyNames[T any](keys []key[T]) string { return strings.Join(keyList(keys), ", ") }

// unique gives a mapping's entries and reports keys that are there twice.
func (r *reader) unique(n *node) []entry {
	seen := map[string]*node{}
	var out []entry
	for _, e := range n.entries {
		if first := seen[e.key.text]; first != nil {
			r.on(e.key, fmt.Sprintf("the first is on line %d", first.line), "%q is there twice", e.key.text)
			continue
		}
		seen[e.key.text] = e.key
		out = append(out, e)
	}
	return out
}

// named gives the entries of a mapping whose keys are names, without those
// whose names are not valid.
func (r *reader) named(n *node, what string) []entry {
	if n.kind != mapNode {
		r.on(n, cmp.Or(entryHint(n.text), "write "+what+": {name: …}"), "want a mapping of names, have %s", n.what())
		return nil
	}
	return slices.DeleteFunc(r.unique(n), func(e entry) bool { return !r.validName(e.key) })
}

func (r *reader) validName(key *node) bool { return r.ruled(key, entryHint(key.text)) }

// ruled reports whether a text may be a name. hint, if there is one, says more than the rule.
func (r *reader) ruled(n *node, hint string) bool {
	rule := NameRule(n.text)
	if rule != "" {
		r.on(n, cmp.Or(hint, rule), "%s is not a valid name", excerpt(n.text))
	}
	return rule == ""
}

// user reads the name of a user, which is taken in its usual form: so it is found however it was typed.
func (r *reader) user(n *node) UserName {
	if n.kind == scalarNode {
		n.text = UsualForm(n.text)
	}
	return UserName(r.name(n))
}

// name reads a name; a number or boolean, unquoted, is the name it looks like.
func (r *reader) name(n *node) string {
	if n.kind != scalarNode || n.isNull() {
		r.on(n, "", "want a name, have %s", n.what())
		return ""
	}
	hint := ""
	if strings.Contains(n.text, "=>") ||
		strings.Contains(n.text, "->") { // an edge; else it is no entry, since it has its key
		hint = entryHint(n.text)
	}
	if !r.ruled(n, hint) {
		return ""
	}
	return n.text
}

// dataName reads the name of a data item; whether there is one is for the caller.
func (r *reader) dataName(n *node) string {
	if n.kind != scalarNode || n.isNull() {
		r.on(n, "", "want a name, have %s", n.what())
		return ""
	}
	return n.text
}

// text reads free text.
func (r *reader) text(n *node) string {
	if s, ok := n.value.(string); ok && n.kind == scalarNode {
		return s
	}
	hint := ""
	if n.kind == scalarNode {
		hint = fmt.Sprintf("put it in quotes: %q", n.text)
	}
	r.on(n, hint, "want text, have %s", n.what())
	return ""
}

func (r *reader) boolean(n *node) bool {
	b, ok := n.value.(bool)
	if !ok {
		r.on(n, "write true or false", "want a boolean, have %s", n.what())
	}
	return b
}

func (r *reader) integer(n *node, low, high int64) int64 {
	i, ok := n.value.(int64)
	f, isNumber := n.value.(float64)
	switch {
	case isNumber && f == math.Trunc(f):
		r.on(n, fmt.Sprintf("from %d to %d", low, high), "%s is out of range", n.text)
	case isNumber:
		r.on(n, fmt.Sprintf("from %d to %d", low, high), "%s is not a whole number", n.text)
	case !ok:
		r.on(n, fmt.Sprintf("from %d to %d", low, high), "want a whole number, have %s", n.what())
	case i < low || i > high:
		r.on(n, fmt.Sprintf("from %d to %d", low, high), "%d is out of range", i)
	}
	return i
}

func (r *reader) number(n *node, low, high float64) float64 {
	f, ok := float(n.value)
	switch {
	case !ok:
		r.on(n, fmt.Sprintf("from %v to %v", low, high), "want a number, have %s", n.what())
		return high // so that no second mistake is found in it
	case f < low || f > high:
		r.on(n, fmt.Sprintf("from %v to %v", low, high), "%v is out of range", f)
	}
	return f
}

// anyNumber reads a number without bounds.
func (r *reader) anyNumber(n *node) *float64 {
	f, ok := float(n.value)
	if !ok {
		r.on(n, "", "want a number, have %s", n.what())
	}
	return &f
}

func (r *reader) duration(n *node) time.Duration {
	if n.kind != scalarNode {
		r.on(n, "write for example 90s, 15m, 1h30m or 3d", "want a duration, have %s", n.what())
		return 0
	}
	d, err := ParseDuration(n.text)
	if err != nil {
		hint := ""
		if _, isNumber := float(n.value); isNumber {
			hint = fmt.Sprintf("say the unit: %ss or %sm", n.text, n.text)
		}
		r.on(n, hint, "%v", err)
	}
	return d
}

// span is a duration that must be there: zero is a mistake.
func (r *reader) span(n *node) time.Duration {
	before := len(r.list)
	d := r.duration(n)
	if d == 0 && len(r.list) == before {
		r.on(n, "leave the key out for none", "the duration must be more than zero")
	}
	return d
}

// oneOf reads one of several words.
func oneOf[S ~string](r *reader, n *node, choices ...S) S {
	words := make([]string, len(choices))
	for i, c := range choices {
		words[i] = string(c)
	}
	if n.kind == scalarNode && slices.Contains(words, n.text) {
		return S(n.text)
	}
	hint := r.scope.memory.didYouMean(n.text, words)
	if hint == "" {
		hint = "one of " + strings.Join(words, ", ")
	}
	if n.kind != scalarNode {
		r.on(n, hint, "want a word, have %s", n.what())
		return ""
	}
	r.on(n, hint, "%q is not known here", n.text)
	return ""
}

// list gives the items of a list; a single value is a list of one.
func (n *node) list() []*node {
	if n.kind == listNode {
		return n.items
	}
	return []*node{n}
}

// names reads a name or a list of names and reports repetitions.
func names[S ~string](r *reader, n *node, read func(*reader, *node) string) []S {
	var out []S
	seen := map[S]bool{}
	for _, item := range n.list() {
		s := S(read(r, item))
		switch {
		case s == "":
		case seen[s]:
			r.on(item, "", "%q is there twice", s)
		default:
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// value reads any value of YAML as plain data.
func (r *reader) value(n *node) Value {
	switch n.kind {
	case listNode:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = r.value(item)
		}
		return out
	case mapNode:
		out := map[string]any{}
		for _, e := range r.unique(n) {
			out[e.key.text] = r.value(e.value)
		}
		return out
	}
	v, err := plainValue(n.value, 0)
	if err != nil {
		r.on(n, "", "%v", err)
	}
	return v
}

// syntax reads the syntax tree of an expression, or reports why it cannot.
func (r *reader) syntax(n *node) ast.Node {
	if n.kind != scalarNode || n.isNull() && n.text != "null" {
		r.on(n, "put an expression with : or # in quotes", "want an expression, have %s", n.what())
		return nil
	}
	tree, err := parseExpr(n.text)
	if err != nil {
		r.within(n, err.offset, err.hint, err.message)
		return nil
	}
	return tree
}

// expression reads and checks an expression of one of the given types; null
// fits none of them unless it is among them.
func (r *reader) expression(n *node, s scope, want ...valueType) *Expr {
	tree := r.syntax(n)
	if tree == nil {
		return nil
	}
	e, op := s.compile(n.text, tree, r.inside(n))
	if op.typ != anyType && !slices.Contains(want, op.typ) {
		r.within(n, 0, "", fmt.Sprintf("want %s, this is %s", wanted(want), op.typ.a()))
	}
	return e
}

func wanted(types []valueType) string {
	var words []string
	for _, t := range types {
		if t != nullType {
			words = append(words, t.a())
		}
	}
	return strings.Join(words, " or ")
}

// inside reports mistakes at characters of a text scalar.
func (r *reader) inside(n *node) func(offset int, hint, message string) {
	return func(offset int, hint, message string) { r.within(n, offset, hint, message) }
}

// condition reads a boolean expression whose ages must be foreseeable.
func (r *reader) condition(n *node) *Expr {
	s := r.scope
	s.decides = true
	return r.expression(n, s, boolType)
}
