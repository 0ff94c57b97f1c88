package workflow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// function is one that expressions may call. Its cost is at most in proportion
// to its arguments; it knows no clock and no chance.
type function struct {
	params   []string // for each the types it takes, as in "string list map"
	variadic bool     // the last parameter may be repeated
	result   valueType
	same     bool // the result has the type of the arguments
	run      func(args []any) (any, error)
}

var functions = map[string]function{
	"len":    {params: []string{"string list map"}, result: intType, run: length},
	"abs":    {params: []string{"integer number"}, same: true, run: absolute},
	"ceil":   {params: []string{"integer number"}, result: numberType, run: rounded(math.Ceil)},
	"floor":  {params: []string{"integer number"}, result: numberType, run: rounded(math.Floor)},
	"round":  {params: []string{"integer number"}, result: numberType, run: rounded(math.Round)},
	"min":    {params: []string{"integer number"}, variadic: true, same: true, run: extreme(-1)},
	"max":    {params: []string{"integer number"}, variadic: true, same: true, run: extreme(1)},
	"int":    {params: []string{"integer number string"}, result: intType, run: toInt},
	"float":  {params: []string{"integer number string"}, result: numberType, run: toFloat},
	"string": {params: []string{"boolean integer number string time duration"}, result: stringType, run: toString},
	"trim":   {params: []string{"string"}, result: stringType, run: onText(strings.TrimSpace)},
	"upper":  {params: []string{"string"}, result: stringType, run: onText(strings.ToUpper)},
	"lower":  {params: []string{"string"}, result: stringType, run: onText(strings.ToLower)},
	"trimPrefix": {params: []string{"string", "string"}, result: stringType,
		run: onTexts(func(s, t string) any { return strings.TrimPrefix(s, t) })},
	"trimSuffix": {params: []string{"string", "string"}, result: stringType,
		run: onTexts(func(s, t string) any { return strings.TrimSuffix(s, t) })},
	"indexOf":  {params: []string{"string", "string"}, result: intType, run: onTexts(indexOf)},
	"date":     {params: []string{"string"}, result: timeType, run: toTime},
	"duration": {params: []string{"string"}, result: durationType, run: toDuration},
}

func functionNames() string {
	return strings.Join(slices.Sorted(maps.Keys(functions)), ", ")
}

// call compiles a call of a function, or of performer in a rule of allocation.
func (c *compiler) call(n ast.Node, name string, args []ast.Node) operand {
	if name == "performer" && c.scope.allocation {
		return c.performer(n, args)
	}
	if transitions[name] != "" {
		return c.errorf(n, "write it as a side of and, or or not, in the when of a task", "%s() cannot stand here",
			name)
	}
	f, known := functions[name]
	if !known {
		return c.unknownFunction(n, name)
	}
	if len(args) != len(f.params) && (!f.variadic || len(args) < len(f.params)) {
		return c.errorf(n, "", "%s wants %d argument(s), not %d", name, len(f.params), len(args))
	}
	parts := make([]operand, len(args))
	out := operand{typ: f.result, constant: true}
	for i, a := range args {
		parts[i] = c.node(a)
		takes := f.params[min(i, len(f.params)-1)]
		if !parts[i].typ.open() && !slices.Contains(strings.Fields(takes), string(parts[i].typ)) {
			return c.errorf(a, "it takes "+strings.ReplaceAll(takes, " ", ", "), "%s does not take %s", name,
				parts[i].typ.a())
		}
		out.constant = out.constant && parts[i].constant
		switch {
		case !f.same:
		case i == 0 || out.typ == parts[i].typ:
			out.typ = parts[i].typ
		default:
			out.typ = numberType
		}
	}
	out.run = func(env *Env) (any, error) { return f.apply(name, parts, env) }
	return out
}

// apply evaluates the arguments; null if one is null.
func (f function) apply(name string, parts []operand, env *Env) (any, error) {
	values := make([]any, len(parts))
	for i, p := range parts {
		v, err := p.run(env)
		if v == nil || err != nil {
			return nil, err
		}
		takes := f.params[min(i, len(f.params)-1)]
		if !slices.Contains(strings.Fields(takes), string(typeOf(v))) {
			return nil, fmt.Errorf("%s does not take %s", name, typeOf(v).a())
		}
		values[i] = v
	}
	return f.run(values)
}

func (c *compiler) unknownFunction(n ast.Node, name string) operand {
	hint := c.scope.memory.didYouMean(name, slices.Sorted(maps.Keys(functions)))
	switch name {
	case "now":
		hint = `clocks of partners are never compared: use instance.age, as in instance.age > duration("1h")`
	case "performer":
		hint = "it is known in violated: of constraints only"
	case "":
	}
	if hint == "" {
		hint = "the functions are " + functionNames()
	}
	return c.errorf(n, hint, "unknown function %q", name)
}

func length(args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), nil
	case []any:
		return int64(len(v)), nil
	}
	return int64(len(args[0].(map[string]any))), nil
}

func absolute(args []any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		return math.Abs(v), nil
	case int64:
		if v < 0 {
			return subtract(int64(0), v)
		}
	}
	return args[0], nil
}

func rounded(how func(float64) float64) func([]any) (any, error) {
	return func(args []any) (any, error) {
		f, _ := float(args[0])
		return how(f), nil
	}
}

func extreme(sign int) func([]any) (any, error) {
	return func(args []any) (any, error) {
		best, whole := args[0], true
		for _, v := range args {
			if i, err := compare(v, best); err == nil && i*sign > 0 {
				best = v
			}
			_, isInt := v.(int64)
			whole = whole && isInt
		}
		if !whole {
			best, _ = float(best)
		}
		return best, nil
	}
}

func toInt(args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("int: %q is not a whole number", v)
		}
		return i, nil
	case float64:
		if t := math.Trunc(v); t >= -(1<<63) && t < 1<<63 {
			return int64(t), nil
		}
		return nil, errOverflow
	}
	return args[0], nil
}

func toFloat(args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, fmt.Errorf("float: %q is not a number", s)
		}
		return finite(f)
	}
	f, _ := float(args[0])
	return f, nil
}

func toString(args []any) (any, error) {
	switch v := export(args[0]).(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		return fmt.Sprint(v), nil
	}
}

func onText(f func(string) string) func([]any) (any, error) {
	return func(args []any) (any, error) { return f(args[0].(string)), nil }
}

func onTexts(f func(s, t string) any) func([]any) (any, error) {
	return func(args []any) (any, error) { return f(args[0].(string), args[1].(string)), nil }
}

// indexOf counts in characters from 0; -1 when s has no such part.
func indexOf(s, part string) any {
	i := strings.Index(s, part)
	if i < 0 {
		return int64(-1)
	}
	return int64(utf8.RuneCountInString(s[:i]))
}

func toTime(args []any) (any, error) {
	t, err := parseTime(args[0].(string))
	if err != nil {
		return nil, err
	}
	return t, nil
}

func toDuration(args []any) (any, error) {
	d, err := ParseDuration(args[0].(string))
	if err != nil {
		return nil, err
	}
	return d, nil
}
