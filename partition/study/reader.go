package study

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// reader takes values out of YAML and notes where each stood, so that every
// mistake can be reported with its place.
type reader struct {
	file     string
	problems workflow.Errors
}

// document gives the one node of a YAML document; nil after a problem.
func (r *reader) document(src []byte) ast.Node {
	f, err := workflow.ParseYAML(src)
	if err != nil {
		r.problems = append(r.problems, workflow.NotYAML(r.file, src, err))
		return nil
	}
	var bodies []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		r.at(nil, "a scenario has tasks and resources", "the file is empty")
		return nil
	case 1:
		return bodies[0]
	}
	r.fail(bodies[1], "put each scenario into a file of its own", "a second document begins here")
	return nil
}

// maxProblems is how many mistakes are reported at most.
const maxProblems = 50

// full reports whether more mistakes would go unreported.
func (r *reader) full() bool { return len(r.problems) >= maxProblems }

// fail notes a mistake where a node begins.
func (r *reader) fail(n ast.Node, hint, format string, args ...any) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // a block mapping's own token is its first colon
	}
	r.at(n.GetToken(), hint, format, args...)
}

// at notes a mistake at a token; without one, at the beginning of the file.
func (r *reader) at(t *token.Token, hint, format string, args ...any) {
	if r.full() {
		return
	}
	p := workflow.Problem{File: r.file, Line: 1, Col: 1, Message: fmt.Sprintf(format, args...), Hint: hint}
	if t != nil && t.Position != nil {
		p.Line, p.Col = t.Position.Line, t.Position.Column
	}
	r.problems = append(r.problems, p)
}

// entry is one key of a mapping with its value.
type entry struct {
	name string
	key  ast.Node
	node ast.Node
}

// entries gives the keys of a mapping, in the order written.
func (r *reader) entries(n ast.Node, what string) []entry {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, "", "%s must be a mapping, not %s", what, kind(n))
		return nil
	}
	var es []entry
	seen := make(map[string]bool)
	for it := m.MapRange(); it.Next(); {
		name, ok := r.text(it.Key(), "a key")
		if ok && seen[name] {
			r.fail(it.Key(), "remove one of them", "%q is given twice", name)
		} else if ok {
			seen[name] = true
			es = append(es, entry{name, it.Key(), it.Value()})
		}
	}
	return es
}

// elements gives the elements of a list that has 1 to most of them; none
// after a problem.
func (r *reader) elements(n ast.Node, what string, most int) []ast.Node {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "", "%s must be a list, not %s", what, kind(n))
		return nil
	}
	if len(s.Values) < 1 || len(s.Values) > most {
		r.fail(n, "", "%s has %d elements: it must have 1 to %d", what, len(s.Values), most)
		return nil
	}
	return s.Values
}

// scalar gives a single value as it was written.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// text gives a text; numbers and booleans count as what was written.
func (r *reader) text(n ast.Node, what string) (string, bool) {
	s, ok := scalar(n)
	if !ok {
		r.fail(n, "", "%s must be a text, not %s", what, kind(n))
	}
	return s, ok
}

// texts gives a list of texts; one text counts as a list of one.
func (r *reader) texts(n ast.Node, what string) []place {
	if _, list := n.(*ast.SequenceNode); !list {
		if s, ok := r.text(n, what); ok {
			return []place{{s, n}}
		}
		return nil
	}
	var ps []place
	for _, e := range r.elements(n, what, maxNames) {
		if s, ok := r.text(e, "an element of "+what); ok {
			ps = append(ps, place{s, e})
		}
	}
	return ps
}

// place is a text and where it was written.
type place struct {
	text string
	node ast.Node
}

// bounds are what a number may be.
type bounds struct {
	min, max float64
	open     bool // min itself is not allowed
	whole    bool
}

var (
	unit      = bounds{min: 0, max: 1}
	positive  = bounds{min: 0, max: 1e6, open: true}
	fraction  = bounds{min: 0, max: 1, open: true}
	variation = bounds{min: 0, max: 100}
	count     = bounds{min: 1, max: 10_000, whole: true}
)

func (b bounds) String() string {
	if b.open {
		return fmt.Sprintf("above %.10g, at most %.10g", b.min, b.max)
	}
	return fmt.Sprintf("in [%.10g, %.10g]", b.min, b.max)
}

// number gives a number within bounds.
func (r *reader) number(n ast.Node, what string, b bounds) (float64, bool) {
	s, ok := scalar(n)
	if !ok {
		r.fail(n, "", "%s must be a number, not %s", what, kind(n))
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	switch {
	case err != nil || math.IsNaN(x):
		r.fail(n, "", "%s is %q: it must be a number %v", what, s, b)
	case x < b.min || x > b.max || b.open && x == b.min:
		r.fail(n, "", "%s is %v: it must lie %v", what, x, b)
	case b.whole && x != math.Trunc(x):
		r.fail(n, "", "%s is %v: it must be a whole number", what, x)
	default:
		return x, true
	}
	return 0, false
}

// numbers gives a list of different numbers; one number counts as a list of one.
func (r *reader) numbers(n ast.Node, what string, b bounds) []float64 {
	nodes := []ast.Node{n}
	if _, list := n.(*ast.SequenceNode); list {
		nodes = r.elements(n, what, 100)
	}
	var xs []float64
	for _, e := range nodes {
		x, ok := r.number(e, what, b)
		if ok && slices.Contains(xs, x) {
			r.fail(e, "remove one of them", "%s has %v twice", what, x)
		} else if ok {
			xs = append(xs, x)
		}
	}
	return xs
}

func (r *reader) boolean(n ast.Node, what string) bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.fail(n, "", "%s must be true or false, not %s", what, kind(n))
		return false
	}
	return b.Value
}

// unknown reports a key that nobody knows, with the nearest one that is.
func (r *reader) unknown(e entry, where string, known []string) {
	hint := "it may have " + strings.Join(known, ", ")
	if near := workflow.Nearest(e.name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fail(e.key, cmp.Or(workflow.KeyHint(e.name), hint), "%s has no %q", where, e.name)
}

// kind names a node's kind for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tagged value"
	}
	return "a single value"
}
