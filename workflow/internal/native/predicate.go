package native

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Predicate is a part of a native expression in the making: a value or a truth. It is
// three-valued, as SQL is: with a null, a comparison is null. Constants are worked out
// as it is made, so that null, which SQL takes to be a truth, is left over only where a
// side of and or or can hold without it.
type Predicate struct {
	binds    int // how strongly, see binds
	text     string
	constant constant
	value    any // of isValue: a string, int64 or float64
	parts    int
	opposite *Predicate // what its negation is, if that has a shorter spelling
}

// constant is a predicate whose value is known.
type constant int

const (
	unknown constant = iota // its value is not known before it runs
	isTrue
	isFalse
	isNull
	isValue // neither of these: a number or a text
)

// How strongly operators bind, those of the native language put in order.
const (
	bindsOr = iota + 1
	bindsAnd
	bindsNot
	bindsCompare
	bindsAll
)

// Name is the value of a data item.
func Name(name string) Predicate { return Predicate{binds: bindsAll, text: name, parts: 1} }

// Text is a constant text.
func Text(s string) Predicate { return value(strconv.Quote(s), s) }

// Whole is a constant whole number. The native language writes those beyond 32 bits
// as a call.
func Whole(n int64) Predicate {
	text := strconv.FormatInt(n, 10)
	if n > math.MaxInt32 || n < -math.MaxInt32 {
		text = "int(" + strconv.Quote(text) + ")"
	}
	return value(text, n)
}

// Fraction is a constant number that need not be whole.
func Fraction(f float64) Predicate {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return value(text, f)
}

func value(text string, v any) Predicate {
	return Predicate{binds: bindsAll, text: text, constant: isValue, value: v, parts: 3}
}

// Null is what is not known.
func Null() Predicate { return Predicate{binds: bindsAll, text: "null", constant: isNull, parts: 1} }

// Bool is a constant truth.
func Bool(b bool) Predicate {
	if b {
		return Predicate{binds: bindsAll, text: "true", constant: isTrue, parts: 1}
	}
	return Predicate{binds: bindsAll, text: "false", constant: isFalse, parts: 1}
}

// String is the expression. A constant null is written as false: where a condition is
// asked whether it holds, both mean the same.
func (p Predicate) String() string {
	if p.constant == isNull {
		return "false"
	}
	return p.text
}

// Parts is how many parts the native parser counts, at most.
func (p Predicate) Parts() int { return p.parts }

// Never reports whether the predicate can be seen never to hold.
func (p Predicate) Never() bool { return p.constant == isFalse || p.constant == isNull }

// within is the text, in parentheses if it binds less than its surroundings.
func (p Predicate) within(binds int) string {
	if p.binds < binds {
		return "(" + p.text + ")"
	}
	return p.text
}

// joined is an operator with its sides. Each side that is not a single word of its own
// stands in parentheses unless it binds more.
func joined(binds int, op string, sides ...Predicate) Predicate {
	out := Predicate{binds: binds, parts: len(sides) - 1}
	words := make([]string, len(sides))
	for i, s := range sides {
		words[i] = s.within(binds + 1)
		out.parts += s.parts
	}
	out.text = strings.Join(words, " "+op+" ")
	return out
}

// Compare is one of the native comparisons of two values of one type: null if one of
// them is.
func Compare(op string, a, b Predicate) Predicate {
	switch {
	case a.constant == isNull || b.constant == isNull:
		return Null()
	case a.constant == unknown || b.constant == unknown:
		out := joined(bindsCompare, op, a, b)
		if opposite := joined(bindsCompare, opposites[op], a, b); opposites[op] != "" {
			out.opposite, opposite.opposite = &opposite,
				&Predicate{binds: out.binds, text: out.text, parts: out.parts, opposite: &opposite}
		}
		return out
	}
	order := a.compare(b)
	return Bool(map[string]bool{
		"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0,
	}[op])
}

// opposites hold exactly where the comparison does not, null apart.
var opposites = map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// compare orders two constants of one type.
func (p Predicate) compare(q Predicate) int {
	switch a := p.value.(type) {
	case string:
		b, _ := q.value.(string)
		return strings.Compare(a, b)
	case int64:
		if b, whole := q.value.(int64); whole {
			return cmp.Compare(a, b)
		}
	case nil: // truths: false before true
		return cmp.Compare(q.constant, p.constant)
	}
	return cmp.Compare(p.float(), q.float())
}

func (p Predicate) float() float64 {
	switch v := p.value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// IsNull reports whether a value, or a truth, is not known. It is never null itself.
func IsNull(a Predicate) Predicate {
	if a.constant != unknown {
		return Bool(a.constant == isNull)
	}
	out, opposite := joined(bindsCompare, "==", a, Null()), joined(bindsCompare, "!=", a, Null())
	out.opposite = &opposite
	return out
}

// Known is what a truth comes to when null counts as otherwise.
func Known(a Predicate, otherwise bool) Predicate {
	switch a.constant {
	case isNull:
		return Bool(otherwise)
	case isTrue, isFalse:
		return a
	}
	out := joined(bindsCompare, "??", a, Bool(otherwise))
	out.text, out.binds = "("+out.text+")", bindsAll
	return out
}

// Not is the negation.
func Not(a Predicate) Predicate {
	switch a.constant {
	case isNull:
		return a
	case isTrue, isFalse:
		return Bool(a.constant == isFalse)
	}
	if a.opposite != nil {
		return *a.opposite
	}
	return Predicate{binds: bindsNot, text: "not " + a.within(bindsAll), parts: a.parts + 1, opposite: &a}
}

// And holds if all parts do.
func And(all ...Predicate) Predicate { return junction(bindsAnd, "and", isTrue, isFalse, all) }

// Or holds if one part does.
func Or(all ...Predicate) Predicate { return junction(bindsOr, "or", isFalse, isTrue, all) }

// junction leaves out what changes nothing (idle); one part that decides is the result.
func junction(binds int, op string, idle, decides constant, all []Predicate) Predicate {
	var kept []Predicate
	null := false
	for _, p := range all {
		switch p.constant {
		case decides:
			return p
		case idle:
		case isNull:
			null = true
		default:
			kept = append(kept, p)
		}
	}
	switch {
	case len(kept) == 0 && null:
		return Null()
	case len(kept) == 0:
		return Bool(idle == isTrue)
	case null:
		kept = append(kept, Null())
	}
	if len(kept) == 1 {
		return kept[0]
	}
	out := joined(binds, op, kept...)
	// A chain of one operator needs no parentheses, of both it has them for the reader's sake.
	words := make([]string, len(kept))
	for i, p := range kept {
		words[i] = p.text
		if p.binds != binds && (p.binds == bindsAnd || p.binds == bindsOr) {
			words[i] = "(" + p.text + ")"
		}
	}
	out.text = strings.Join(words, " "+op+" ")
	return out
}

// In holds if a value equals one of a list of constants; if it does not, and one of
// them is null, it is null.
func In(a Predicate, list []Predicate) Predicate {
	var kept []Predicate
	null := a.constant == isNull
	for _, item := range list {
		switch {
		case item.constant == isNull:
			null = true
		case !slices.ContainsFunc(kept, func(k Predicate) bool { return k.text == item.text }):
			kept = append(kept, item)
		}
	}
	if a.constant != unknown || len(kept) < 2 {
		var one []Predicate
		for _, item := range list {
			one = append(one, Compare("==", a, item))
		}
		return Or(one...)
	}
	out := Predicate{binds: bindsCompare, parts: a.parts + 2}
	words := make([]string, len(kept))
	for i, item := range kept {
		words[i] = item.text
		out.parts += item.parts
	}
	out.text = a.within(bindsCompare+1) + " in [" + strings.Join(words, ", ") + "]"
	if null {
		return Or(out, Null())
	}
	return out
}

// Wildcard is a part of a pattern of Like that is no character.
type Wildcard int

// The wildcards.
const (
	AnyText Wildcard = iota + 1 // any number of characters
	AnyCharacter
)

// Like holds if a text as a whole is like a pattern, which consists of characters
// (rune) and Wildcards. Fold: capitals and small letters are alike.
func Like(a Predicate, pattern []any, fold bool) Predicate {
	if a.constant == isNull {
		return a
	}
	var re, plain strings.Builder
	wild := 0
	for _, p := range pattern {
		switch p := p.(type) {
		case rune:
			plain.WriteRune(p)
			re.WriteString(regexp.QuoteMeta(string(p)))
		case Wildcard:
			wild++
			re.WriteString(map[Wildcard]string{AnyText: ".*", AnyCharacter: "."}[p])
		}
	}
	flags := "(?s)"
	if fold {
		flags = "(?is)"
	}
	whole := "^" + flags + re.String() + "$"
	if text, known := a.value.(string); known {
		matched, err := regexp.MatchString(whole, text)
		return Bool(err == nil && matched)
	}
	first, last := len(pattern) > 0 && pattern[0] == AnyText, len(pattern) > 0 && pattern[len(pattern)-1] == AnyText
	op, operand := "matches", whole
	switch {
	case fold:
	case wild == 0:
		op, operand = "==", plain.String()
	case wild == 1 && last:
		op, operand = "startsWith", plain.String()
	case wild == 1 && first:
		op, operand = "endsWith", plain.String()
	case wild == 2 && first && last:
		op, operand = "contains", plain.String()
	}
	return joined(bindsCompare, op, a, Text(operand))
}

// Constant reports whether the value is known.
func (p Predicate) Constant() bool { return p.constant != unknown }

// Number is a truth as 1 or 0, so that truths can be put in order.
func Number(a Predicate) Predicate {
	switch a.constant {
	case isTrue:
		return Whole(1)
	case isFalse:
		return Whole(0)
	case isNull:
		return a
	}
	return Predicate{binds: bindsAll, text: "(" + a.within(bindsAll) + " ? 1 : 0)", parts: a.parts + 3}
}

// Expression writes a predicate as a scalar of YAML.
func Expression(text string) string {
	if plainExpression.MatchString(text) && !reserved.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
