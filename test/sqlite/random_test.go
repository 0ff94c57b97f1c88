// Package sqlite_test compares what predicates of WED-SQL mean here with what a database
// says: for random predicates and rows, the condition that workflow/wedsql makes of a
// predicate comes to what SQLite comes to, in three values.
//
// The comparison is behind the build tag sqlite: .ci/sqlite runs it. CI takes a sample; all is
//
//	bash .ci/sqlite -pairs 100000
package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/wedsql"
)

// rows are so many for each predicate.
const rows = 10

// The attributes: their names, the types of their columns, and of the operands with
// which predicates compare them. SQLite writes truths as 0 and 1.
var attributes = []struct{ name, column, kind string }{
	{"i1", "INTEGER", "number"}, {"i2", "INTEGER", "number"}, {"r1", "REAL", "number"},
	{"t1", "TEXT", "text"}, {"t2", "TEXT", "text"}, {"b1", "INTEGER", "truth"}, {"b2", "INTEGER", "truth"},
}

// Every random predicate is read, and comes to a verdict on every row.
func TestRandomPredicatesAreRead(t *testing.T) {
	g := &generator{rand.New(rand.NewPCG(1, 0))}
	counted := map[string]int{}
	for range 100 {
		p := g.predicate(4)
		def, err := translated(p.ours)
		if err != nil {
			t.Fatalf("%s\n%v", p.ours, err)
		}
		for range rows {
			v, _ := verdict(t, def, g.state())
			counted[v]++
		}
	}
	for _, v := range []string{"true", "false", "null"} {
		if counted[v] < 20 {
			t.Errorf("only %d verdicts are %s: the predicates say too little", counted[v], v)
		}
	}
}

// state is a random row.
func (g *generator) state() map[string]any {
	out := map[string]any{}
	for _, a := range attributes {
		out[a.name] = g.value(a.column, a.kind)
	}
	return out
}

// types is a predicate that says which attribute has which type: in a random one of them
// may be compared with others only, or with null, and then be taken for a text.
const types = "i1 = 1 and i2 = 1 and r1 = 0.5 and b1 and b2"

// translated is the definition that a script with the predicate becomes.
func translated(predicate string) (*workflow.Definition, error) {
	var names []string
	for _, a := range attributes {
		names = append(names, "('"+a.name+"')")
	}
	doc, err := wedsql.Parse("random.sql", []byte("INSERT INTO wed_attr (aname) VALUES "+strings.Join(names, ", ")+
		"; INSERT INTO wed_trig (tgname, trname, cname, cpred) VALUES ('t', 'u', 'holds', $$"+predicate+
		"$$), ('r', 'u', 'types', '"+types+"');"))
	if err != nil {
		return nil, err
	}
	return workflow.Parse("translated.yaml", doc.ToYAML())
}

// verdict is what the condition comes to; "never": it was left out, since it never holds.
func verdict(t *testing.T, def *workflow.Definition, state map[string]any) (verdict, spelled string) {
	t.Helper()
	holds := def.Condition("holds")
	if holds == nil {
		return "never", ""
	}
	data := map[workflow.DataName]workflow.Value{}
	for _, decl := range def.Data {
		v := state[string(decl.Name)]
		if i, is := v.(int64); is && decl.Type == workflow.TypeNumber {
			v = float64(i)
		}
		checked, err := workflow.CheckValue(&decl, v)
		if err != nil {
			t.Fatal(err)
		}
		data[decl.Name] = checked
	}
	v, err := holds.Eval(workflow.Env{Data: data})
	if err != nil {
		t.Fatalf("%s: %v", holds, err)
	}
	if v == nil {
		return "null", holds.String()
	}
	return fmt.Sprint(v), holds.String()
}

// predicate is one predicate as WED-SQL has it, with no more brackets than PostgreSQL
// needs, and as SQLite understands it: with all of them, since its precedence is another.
type predicate struct {
	ours, theirs string
	binds        int
}

// How strongly operators bind in PostgreSQL.
const (
	or = iota
	and
	not
	is
	comparison
	ranged
	value
)

type generator struct{ *rand.Rand }

func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// within is a part with its brackets in place.
func (g *generator) within(p predicate, binds int) predicate {
	if p.binds < binds || p.binds != value && g.one(12) {
		p.ours = "(" + p.ours + ")"
	}
	return predicate{p.ours, "(" + p.theirs + ")", value}
}

// join puts an operator between two parts.
func (g *generator) join(op string, binds int, a, b predicate, left, right int) predicate {
	a, b = g.within(a, left), g.within(b, right)
	shown := op
	if g.one(2) {
		shown = strings.ToUpper(op)
	}
	return predicate{a.ours + " " + shown + " " + b.ours, a.theirs + " " + op + " " + b.theirs, binds}
}

// after puts words behind a part.
func (g *generator) after(a predicate, words string, binds, inner int) predicate {
	a = g.within(a, inner)
	return predicate{a.ours + " " + words, a.theirs + " " + words, binds}
}

// predicate is a truth.
func (g *generator) predicate(depth int) predicate {
	if depth == 0 {
		return g.compared(0)
	}
	switch g.IntN(10) {
	case 0, 1:
		return g.join("or", or, g.predicate(depth-1), g.predicate(depth-1), or, and)
	case 2, 3:
		return g.join("and", and, g.predicate(depth-1), g.predicate(depth-1), and, not)
	case 4:
		p := g.within(g.predicate(depth-1), not)
		return predicate{"not " + p.ours, "NOT " + p.theirs, not}
	case 5:
		word := pick(g, "is true", "is not true", "is false", "is not false", "is unknown", "is not unknown", "is null",
			"is not null", "isnull", "notnull")
		p := g.within(g.predicate(depth-1), comparison)
		theirs := strings.NewReplacer("unknown", "null", "isnull", "is null", "notnull", "is not null").Replace(word)
		return predicate{p.ours + " " + word, p.theirs + " " + theirs, is}
	}
	return g.compared(depth - 1)
}

// compared is a comparison of operands of one type.
func (g *generator) compared(depth int) predicate {
	kind := pick(g, "number", "number", "text", "text", "truth")
	a := g.operand(kind, depth)
	switch g.IntN(9) {
	case 0:
		return g.between(a, kind, depth)
	case 1:
		return g.in(a, kind, depth)
	case 2:
		if kind == "text" {
			return g.like(a)
		}
	case 3:
		word := pick(g, "is null", "is not null")
		return g.after(a, word, is, comparison)
	case 4:
		word := pick(g, "is distinct from", "is not distinct from")
		return g.join(word, is, a, g.operand(kind, depth), comparison, comparison)
	case 5:
		if kind == "truth" {
			return a
		}
	}
	op := pick(g, "=", "<>", "!=", "<", "<=", ">", ">=")
	return g.join(op, comparison, a, g.operand(kind, depth), ranged, ranged)
}

func (g *generator) between(a predicate, kind string, depth int) predicate {
	a = g.within(a, value)
	low, high := g.within(g.operand(kind, depth), value), g.within(g.operand(kind, depth), value)
	word := pick(g, "between", "not between")
	if g.one(4) { // SQLite has no symmetric
		ours := a.ours + " " + word + " symmetric " + low.ours + " and " + high.ours
		theirs := fmt.Sprintf("(%s BETWEEN %s AND %s OR %[1]s BETWEEN %[3]s AND %[2]s)", a.theirs, low.theirs,
			high.theirs)
		if word == "not between" {
			theirs = "NOT " + theirs
		}
		return predicate{ours, theirs, ranged}
	}
	return predicate{
		a.ours + " " + word + " " + low.ours + " and " + high.ours,
		a.theirs + " " + word + " " + low.theirs + " and " + high.theirs, ranged,
	}
}

func (g *generator) in(a predicate, kind string, depth int) predicate {
	a = g.within(a, value)
	var ours, theirs []string
	for range 1 + g.IntN(4) {
		item := g.literal(kind)
		if g.one(6) {
			item = g.operand(kind, depth)
		}
		ours, theirs = append(ours, item.ours), append(theirs, item.theirs)
	}
	word := pick(g, " in (", " not in (")
	return predicate{
		a.ours + word + strings.Join(ours, ", ") + ")", a.theirs + word + strings.Join(theirs, ", ") + ")", ranged,
	}
}

func (g *generator) like(a predicate) predicate {
	a = g.within(a, value)
	var pattern strings.Builder
	for range g.IntN(5) {
		pattern.WriteString(pick(g, "%", "%", "_", "a", "A", "b", "é", ".", "\n", `\%`, `\_`, `\\`, `\a`))
	}
	word := pick(g, " like ", " not like ")
	return predicate{
		a.ours + word + quoted(pattern.String()),
		a.theirs + word + quoted(pattern.String()) + ` ESCAPE '\'`, ranged,
	}
}

// operand is an attribute, a literal, or of truths another predicate.
func (g *generator) operand(kind string, depth int) predicate {
	if kind == "truth" && depth > 0 && g.one(3) {
		return g.predicate(depth - 1)
	}
	if g.one(3) {
		return g.literal(kind)
	}
	for {
		if a := pick(g, attributes...); a.kind == kind {
			return predicate{a.name, a.name, value}
		}
	}
}

func (g *generator) literal(kind string) predicate {
	if g.one(9) {
		return predicate{"null", "NULL", value}
	}
	switch kind {
	case "text":
		s := quoted(pick(g, texts...))
		return predicate{s, s, value}
	case "truth":
		s := pick(g, "true", "false")
		return predicate{s, s, value}
	}
	s := pick(g, "0", "1", "2", "-1", "-3", "0.5", "1.0", "-2.5", "12345678901", "1e1", "+2", ".5")
	return predicate{s, s, value}
}

var texts = []string{
	"", "a", "A", "ab", "b", "a%", "a_b", `a\`, "é", "aé", "a\nb", "it's", "B", "\u2028", "ba", "bab", "z", "日本",
}

// value is what a row has in a column.
func (g *generator) value(column, kind string) any {
	switch {
	case g.one(4):
		return nil
	case kind == "truth":
		return g.one(2)
	case column == "REAL":
		return pick(g, -2.5, 0.0, 0.5, 1.0, 2.0, 10.0, 1e12)
	case column == "INTEGER":
		return pick(g, int64(-3), -1, 0, 1, 2, 10, 12345678901, 1<<53)
	}
	return pick(g, texts...)
}

// quoted writes a text as a literal of both.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
