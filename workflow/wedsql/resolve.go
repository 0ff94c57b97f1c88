package wedsql

import (
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// resolve finds the attributes that predicates mention and their types, and reads first
// values by these.
func (p *parser) resolve() {
	d := p.document
	if len(p.finals) > 0 {
		d.Final = p.finals[0]
	}
	if len(d.Triggers) == 0 && p.problems.Number() == 0 {
		p.fail(position{1, 1}, "write INSERT INTO wed_trig (tgname, trname, cname, cpred, timeout) VALUES …",
			"the script declares no trigger")
	}
	if p.problems.Number() > 0 {
		return // what is not understood would look as if it were not there
	}
	t := newTypes(p)
	for _, tr := range d.Triggers {
		t.truth(tr.Predicate.tree)
	}
	if d.Final != nil {
		t.truth(d.Final.tree)
	}
	t.settle()
	p.checkSizes()
}

// kindOf is a group of attributes that are compared with each other, and so have one type.
type group struct {
	parent     *group // nil: it is the group itself
	kind       string // opText, opNumber or opTruth; empty: no literal says it yet
	fractional bool
	at         position // of what said it
}

func (g *group) root() *group {
	for g.parent != nil {
		if g.parent.parent != nil {
			g.parent = g.parent.parent
		}
		g = g.parent
	}
	return g
}

// types finds the types of attributes.
type types struct {
	*parser
	groups   []*group       // of the attributes, in their order
	exact    map[string]int // the attribute of that name
	small    map[string]int // of that name in small letters; -1: there are several
	reported map[string]bool
}

func newTypes(p *parser) *types {
	t := &types{parser: p, exact: map[string]int{}, small: map[string]int{}, reported: map[string]bool{}}
	for i, a := range p.document.Attributes {
		t.groups = append(t.groups, &group{})
		t.exact[a.Name] = i
		lower := strings.ToLower(a.Name)
		if _, there := t.small[lower]; there {
			i = -1
		}
		t.small[lower] = i
	}
	return t
}

// attribute finds the attribute of a name: capitals count if it stands in quotes, or if
// small letters alone do not say which.
func (t *types) attribute(name string, quoted bool, at position) (int, bool) {
	if i, found := t.exact[name]; found {
		return i, true
	}
	i, found := t.small[strings.ToLower(name)]
	switch {
	case found && !quoted && i >= 0:
		return i, true
	case found && !quoted:
		t.fail(at, "write it in double quotes, with its capitals", "several attributes are called %q", shorten(name))
	case !t.reported[name]:
		t.reported[name] = true
		t.fail(at, t.known(), "there is no attribute %q", shorten(name))
	}
	return 0, false
}

// known says which attributes there are.
func (t *types) known() string {
	if len(t.document.Attributes) == 0 {
		return "declare it: INSERT INTO wed_attr (aname) VALUES ('name')"
	}
	var names []string
	for _, a := range t.document.Attributes {
		names = append(names, shorten(a.Name))
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return "a text stands between single quotes; the attributes are " + strings.Join(names, ", ")
}

// words name the kinds of literals.
var words = map[string]string{opText: "a text", opNumber: "a number", opTruth: "true or false"}

// truth looks at a part of a predicate that must be a truth.
func (t *types) truth(n *node) {
	switch n.op {
	case "and", "or", "not", "known", "unknown":
		for _, a := range n.args {
			t.truth(a)
		}
	case "in", "like", "null", "same", "=", "<>", "<", "<=", ">", ">=":
		t.compared(n)
	case opText, opNumber:
		t.fail(n.at, "compare it with something", "%s is neither true nor false", words[n.op])
	case opAttribute:
		if i, found := t.attribute(n.text, n.quoted, n.at); found {
			t.say(shorten(n.text)+": ", t.groups[i], &group{kind: opTruth, at: n.at}, n.at)
		}
	}
}

// compared looks at a comparison: all its sides have one type.
func (t *types) compared(n *node) {
	all := &group{}
	if n.op == "like" {
		all = &group{kind: opText, at: n.at}
	}
	what := ""
	for _, side := range n.args {
		if side.op == opAttribute && what == "" {
			what = shorten(side.text) + ": "
		}
	}
	for _, side := range n.args {
		t.say(what, all, t.value(side), side.at)
	}
}

// value is the group of a side of a comparison.
func (t *types) value(n *node) *group {
	switch n.op {
	case opNull:
		return &group{}
	case opAttribute:
		if i, found := t.attribute(n.text, n.quoted, n.at); found {
			return t.groups[i]
		}
		return &group{}
	case opText, opTruth:
		return &group{kind: n.op, at: n.at}
	case opNumber:
		if _, err := strconv.ParseFloat(n.text, 64); err != nil {
			t.fail(n.at, "", "the number %s is too great", shorten(n.text))
		}
		return &group{kind: n.op, at: n.at, fractional: !whole(n.text)}
	}
	t.truth(n)
	return &group{kind: opTruth, at: n.at}
}

// whole reports whether a number fits a whole one of 64 bits.
func whole(literal string) bool {
	_, good := value{kind: opNumber, text: literal}.convert(workflow.TypeInteger)
	return good
}

// say joins two groups: what they are compared with is of one type. what begins the
// message if it is not.
func (t *types) say(what string, a, b *group, at position) {
	a, b = a.root(), b.root()
	if a == b {
		return
	}
	if a.kind != "" && b.kind != "" && a.kind != b.kind {
		t.fail(at, "compare an attribute with literals of one type", "%stypes are mixed: %s here, %s on line %d",
			what, words[b.kind], words[a.kind], a.at.line)
		return
	}
	if a.kind == "" {
		a.kind, a.at = b.kind, b.at
	}
	a.fractional = a.fractional || b.fractional
	b.parent = a
}

// settle gives each attribute its type, and reads the values that are written for it.
func (t *types) settle() {
	d := t.document
	inputs := make([][]*Input, len(d.Attributes)) // of each attribute
	for i := range d.Starts {
		for j := range d.Starts[i].Input {
			in := &d.Starts[i].Input[j]
			if at, found := t.attribute(in.Attribute, false, in.at); found {
				inputs[at] = append(inputs[at], in)
				in.Attribute = d.Attributes[at].Name
			}
		}
	}
	for i := range d.Attributes {
		a, g := &d.Attributes[i], t.groups[i].root()
		for _, v := range append([]value{a.value}, values(inputs[i])...) {
			if _, good := v.convert(workflow.TypeInteger); !good && g.kind == opNumber {
				g.fractional = true
			}
		}
	}
	for i := range d.Attributes {
		a, g := &d.Attributes[i], t.groups[i].root()
		switch a.Type = workflowTypes[g.kind]; {
		case a.Type == "":
			a.Type = workflow.TypeString
		case a.Type == workflow.TypeInteger && g.fractional:
			a.Type = workflow.TypeNumber
		}
		a.Default = t.first(a, a.value, g)
		for _, in := range inputs[i] {
			in.Value = t.first(a, in.value, g)
		}
	}
}

func values(list []*Input) (out []value) {
	for _, in := range list {
		out = append(out, in.value)
	}
	return out
}

// first is a value that an attribute is given.
func (t *types) first(a *Attribute, v value, g *group) workflow.Value {
	out, good := v.convert(a.Type)
	if !good {
		t.fail(v.at, "", "%q does not fit %s, which is %s by line %d", shorten(v.text), shorten(a.Name), words[g.kind],
			g.at.line)
		return nil
	}
	if _, err := workflow.CheckValue(&workflow.DataDecl{Name: "value", Type: a.Type}, out); err != nil {
		t.fail(v.at, "", "%v", err)
	}
	return out
}

// checkSizes reports predicates that the native format has no room for, and too many of
// what it bounds.
func (p *parser) checkSizes() {
	d := p.document
	if n := len(d.Triggers); n > workflow.MaxTasks {
		p.fail(d.Triggers[workflow.MaxTasks].at, "split the flow", "there are %d triggers: at most %d are allowed", n,
			workflow.MaxTasks)
	}
	if p.problems.Number() > 0 {
		return
	}
	w := newWriter(d)
	check := func(pr *Predicate) {
		native := w.predicate(pr.tree)
		if len(native.String()) > workflow.MaxExpression || native.Parts() > maxParts {
			p.fail(pr.at, "have a transition work out a part of it into an attribute",
				"the predicate is too long: in the native language it may have %d bytes, and %d parts",
				workflow.MaxExpression, maxParts)
		}
	}
	for _, tr := range d.Triggers {
		check(tr.Predicate)
	}
	if d.Final != nil {
		check(d.Final)
	}
}

// maxParts is how many parts a native expression may have.
const maxParts = 1000
