package wedsql

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// ToYAML translates the flow to the native format. Names that it does not allow are
// changed, around those that stay; the old one of a trigger, and of the flow, is kept as label (as doc where it cannot be that), of others as a comment. The instances
// that the script makes are commands at the end, as comments: see [Document.Commands].
func (d *Document) ToYAML() []byte {
	w := newWriter(d)
	w.line("# Translated from WED-SQL. A transition there may set any attribute: name under out those that it does set.")
	for _, s := range d.skipped {
		w.line("# Line %d, %s: it declares nothing, and was left out.", s.line, s.what)
	}
	w.line("workflow: %s", native.Scalar(d.workflow()))
	if key, text := native.Kept(d.Name, d.workflow()); key != "" {
		w.line("%s: %s", key, native.Quoted(text))
	}
	w.data()
	w.conditions()
	if len(d.Attributes) > 0 {
		all := make([]string, len(d.Attributes))
		for i, a := range d.Attributes {
			all[i] = w.attribute(a.Name)
		}
		w.line("models:")
		w.line("  trigger: {repeat: true, in: [%s], out: [%[1]s]}", strings.Join(all, ", "))
	}
	w.tasks()
	w.final()
	w.instances()
	return []byte(w.text.String())
}

// workflow is the native name of the flow.
func (d *Document) workflow() string { return cmp.Or(workflow.MakeName(d.Name), "flow") }

// Commands start the instances that the script makes, for a shell.
func (d *Document) Commands() []string {
	w := newWriter(d)
	var out []string
	for _, s := range d.Starts {
		words := []string{"mutirao", "start", shellWord(d.workflow())}
		for _, in := range s.Input {
			switch a := d.attributeOf(in.Attribute); {
			case in.Value == nil && in.value.kind == opNull && a != nil && a.Default != nil:
				words = append(words, "--null", shellWord(w.attribute(in.Attribute)))
			case in.Value != nil:
				words = append(words, "--input", shellWord(w.attribute(in.Attribute)+"="+plainText(in.Value)))
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// attributeOf is the attribute of a name; nil: there is none.
func (d *Document) attributeOf(name string) *Attribute {
	i := slices.IndexFunc(d.Attributes, func(a Attribute) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Attributes[i]
}

// plainText writes a value as a command line has it.
func plainText(v workflow.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// shellWord writes a word so that a shell takes it as it is, on one line.
func shellWord(s string) string {
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(plainLetters, r) }) < 0:
		return s
	case strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case !unicode.IsPrint(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return "$'" + b.String() + "'"
}

const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.=/:,@%+"

// writer writes a native definition.
type writer struct {
	document *Document
	text     strings.Builder

	types                 map[string]workflow.DataType
	exact, small          map[string]string // attributes by the names that predicates use
	names                 native.Names      // of data and conditions
	triggers, transitions native.Names
	conditionOf           map[*Predicate]string // empty: the predicate stands in the rule itself
}

func newWriter(d *Document) *writer {
	w := &writer{
		document: d, types: map[string]workflow.DataType{}, exact: map[string]string{}, small: map[string]string{},
		names: native.NewDataNames(), triggers: native.NewNames(), transitions: native.NewNames(),
		conditionOf: map[*Predicate]string{},
	}
	w.keep()
	for _, a := range d.Attributes {
		w.types[a.Name] = a.Type
		w.exact[a.Name], w.small[strings.ToLower(a.Name)] = a.Name, a.Name
		w.attribute(a.Name) // data get their names before conditions
	}
	return w
}

// keep leaves names that are valid as they are: those of data before those of conditions.
func (w *writer) keep() {
	for _, a := range w.document.Attributes {
		w.names.Keep("attribute", a.Name)
	}
	for _, t := range w.document.Triggers {
		w.names.Keep("condition", t.Condition)
		w.triggers.Keep("", t.Name)
		if !native.BuiltIn(t.Transition) {
			w.transitions.Keep("", t.Transition)
		}
	}
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) attribute(name string) string { return w.names.OfKind("attribute", name, "attribute") }

func (w *writer) data() {
	if len(w.document.Attributes) > 0 {
		w.line("data:")
	}
	for _, a := range w.document.Attributes {
		item := w.attribute(a.Name)
		parts := []string{"type: " + string(a.Type)}
		switch v := a.Default.(type) {
		case nil:
		case string:
			parts = append(parts, "default: "+native.Quoted(v))
		default:
			b, _ := json.Marshal(v) //nolint:errcheck // a number or a boolean
			parts = append(parts, "default: "+string(b))
		}
		if item != a.Name {
			parts = append(parts, "doc: "+native.Quoted(a.Name))
		}
		w.line("  %s: {%s}", item, strings.Join(parts, ", "))
	}
}

// conditions writes the conditions that have a name. Where triggers name different
// predicates alike, each gets a name.
func (w *writer) conditions() {
	written := map[string]string{} // the expression of a name of the script
	head := false
	for _, t := range w.document.Triggers {
		expr := w.predicate(t.Predicate.tree)
		if strings.TrimSpace(t.Condition) == "" || expr.Never() {
			continue
		}
		first, seen := written[t.Condition]
		key := t.Condition
		if seen && first != expr.String() {
			key += "\x00" + expr.String()
		}
		name := w.names.OfKind("condition", key, "condition")
		w.conditionOf[t.Predicate] = name
		if seen && first == expr.String() || written[key] != "" {
			continue
		}
		written[key] = expr.String()
		if !head {
			w.line("conditions:")
			head = true
		}
		if name != t.Condition {
			w.line("  # %s", native.Quoted(t.Condition))
		}
		w.line("  %s: %s", name, native.Expression(expr.String()))
	}
}

func (w *writer) tasks() {
	w.line("tasks:")
	written := 0
	for _, t := range w.document.Triggers {
		expr := w.predicate(t.Predicate.tree)
		if expr.Never() {
			w.line("  # The trigger %s of line %d was left out: its condition never holds.", native.Quoted(t.Name),
				t.at.line)
			continue
		}
		written++
		task := w.triggers.Of(t.Name, "trigger")
		w.line("  %s:", native.Scalar(task))
		if key, text := native.Kept(t.Name, task); key != "" {
			w.line("    %s: %s", key, native.Quoted(text))
		}
		if len(w.document.Attributes) > 0 {
			w.line("    model: trigger")
		} else {
			w.line("    repeat: true")
		}
		w.line("    when: %s", native.Expression(cmp.Or(w.conditionOf[t.Predicate], expr.String())))
		transition := w.transition(t.Transition)
		if transition != t.Transition {
			w.line("    # %s", native.Quoted(t.Transition))
		}
		w.line("    application: %s", native.Scalar(transition))
		if t.Timeout > 0 {
			w.line("    timeout: %s", workflow.FormatDuration(t.Timeout))
		}
		if t.Disabled {
			w.line("    enabled: false")
		}
	}
	if written == 0 {
		w.line("  nothing: {application: noop, enabled: false}")
	}
}

// transition is the native name of a transition. Built-in applications mean something else.
func (w *writer) transition(s string) string {
	if native.BuiltIn(s) {
		return w.transitions.OfKind("built-in", s+"-transition", "transition")
	}
	return w.transitions.Of(s, "transition")
}

func (w *writer) final() {
	if w.document.Final == nil {
		w.line("# No final condition was given: every instance ends in an exception, for a person to decide on.")
		w.line("final: 'false'")
		return
	}
	w.line("final: %s", native.Expression(w.predicate(w.document.Final.tree).String()))
}

// instances writes the commands that start what the script starts.
func (w *writer) instances() {
	commands := w.document.Commands()
	if len(commands) == 0 {
		return
	}
	w.line("# The script makes %d, by:", len(commands))
	for _, c := range commands {
		w.line("# %s", c)
	}
}

// predicate translates a predicate, which has been checked.
func (w *writer) predicate(n *node) native.Predicate {
	args := make([]native.Predicate, len(n.args))
	for i, a := range n.args {
		args[i] = w.predicate(a)
	}
	switch n.op {
	case "and":
		return native.And(args...)
	case "or":
		return native.Or(args...)
	case "not":
		return native.Not(args[0])
	case "null", "unknown":
		return native.IsNull(args[0])
	case "known":
		return native.Known(args[0], n.holds)
	case "same":
		return same(args[0], args[1])
	case "in":
		return w.in(n, args)
	case "like":
		if n.args[1].op == opNull {
			return native.Null()
		}
		return native.Like(args[0], n.pattern(native.AnyText, native.AnyCharacter), n.capital)
	case "=":
		return native.Compare("==", args[0], args[1])
	case "<>":
		return native.Compare("!=", args[0], args[1])
	case "<", "<=", ">", ">=":
		if w.isTruth(n.args[0]) || w.isTruth(n.args[1]) {
			args[0], args[1] = native.Number(args[0]), native.Number(args[1])
		}
		return native.Compare(n.op, args[0], args[1])
	}
	return w.leaf(n)
}

func (w *writer) leaf(n *node) native.Predicate {
	switch n.op {
	case opText:
		return native.Text(n.text)
	case opTruth:
		return native.Bool(n.holds)
	case opNumber:
		if i, good := (value{kind: opNumber, text: n.text}).convert(workflow.TypeInteger); good {
			return native.Whole(i.(int64))
		}
		return native.Fraction(float(n.text))
	case opAttribute:
		return native.Name(w.attribute(w.named(n)))
	}
	return native.Null()
}

// float is a number that has been checked.
func float(literal string) float64 {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0
	}
	return f
}

// named is the attribute that a name means.
func (w *writer) named(n *node) string {
	if name, found := w.exact[n.text]; found {
		return name
	}
	return w.small[strings.ToLower(n.text)]
}

// isTruth reports whether a side of a comparison is true or false rather than a value.
func (w *writer) isTruth(n *node) bool {
	switch n.op {
	case opText, opNumber, opNull:
		return false
	case opAttribute:
		return w.types[w.named(n)] == workflow.TypeBoolean
	}
	return true
}

// in holds if the first equals one of the others. Where all of these are literals, the
// native in says that.
func (w *writer) in(n *node, args []native.Predicate) native.Predicate {
	literals := true
	for _, a := range args[1:] {
		literals = literals && a.Constant()
	}
	if literals {
		return native.In(args[0], args[1:])
	}
	var one []native.Predicate
	for _, a := range args[1:] {
		one = append(one, native.Compare("==", args[0], a))
	}
	return native.Or(one...)
}

// same holds if two values are equal or both null. It is never null.
func same(a, b native.Predicate) native.Predicate {
	return native.Or(
		native.Known(native.Compare("==", a, b), false),
		native.And(native.IsNull(a), native.IsNull(b)),
	)
}
