package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Error is a configuration that cannot be used. It does not mend itself: a
// supervisor that starts the node again and again should stop.
type Error struct{ what []string }

// Error gives one line for each mistake, with file, line, column and key.
func (e *Error) Error() string { return strings.Join(e.what, "\n") }

// placed puts its place in the source before each mistake.
func placed(name string, src []byte, wrong mistakes) *Error {
	e := &Error{}
	var body ast.Node
	if file, err := workflow.ParseYAML(src); err == nil && len(file.Docs) > 0 {
		body = file.Docs[0].Body
	}
	for _, err := range wrong {
		at := name
		var m *mistake
		if errors.As(err, &m) {
			if n := lookUp(body, m.key); n != nil {
				p := n.GetToken().Position
				at = fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
			}
		}
		e.what = append(e.what, at+": "+err.Error())
	}
	return e
}

// Place says where a key has its value in the configuration of a folder, as " (FILE:LINE:COL)"; empty:
// it is not there.
func Place(dir, key string) string {
	path := filepath.Join(dir, File)
	src, err := readFile(path)
	if err != nil {
		return ""
	}
	file, err := workflow.ParseYAML(src)
	if err != nil || len(file.Docs) == 0 {
		return ""
	}
	n := lookUp(file.Docs[0].Body, key)
	if n == nil {
		return ""
	}
	p := n.GetToken().Position
	return fmt.Sprintf(" (%s:%d:%d)", path, p.Line, p.Column)
}

// lookUp is the value at a key such as limits.facts or listen[1], or the innermost
// part of the way there that the source has; nil: nothing of it.
func lookUp(n ast.Node, key string) ast.Node {
	if n == nil {
		return nil
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		var i int
		if _, err := fmt.Sscanf(key, "[%d]", &i); err != nil || i < 0 || i >= len(list.Values) {
			return nil
		}
		_, rest, _ := strings.Cut(key, "]")
		return below(list.Values[i], rest)
	}
	for _, v := range valuesOf(n) {
		// A key of the file may have dots of its own.
		rest, ok := strings.CutPrefix(key, v.Key.GetToken().Value)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return below(v.Value, strings.TrimPrefix(rest, "."))
		}
	}
	return nil
}

// below is what the rest of a key names below n, else n.
func below(n ast.Node, rest string) ast.Node {
	if rest == "" {
		return n
	}
	if deeper := lookUp(n, rest); deeper != nil {
		return deeper
	}
	return n
}

func valuesOf(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}

// keyAt is the key whose value a token of a source is, such as limits.facts; empty: of none.
func keyAt(src []byte, tk *token.Token) string {
	if tk == nil {
		return ""
	}
	return keyAtPlace(src, tk.Position.Line, tk.Position.Column)
}

// keyAtPlace is the key whose value begins at a place of a source; empty: none does.
func keyAtPlace(src []byte, line, col int) string {
	file, err := workflow.ParseYAML(src)
	if err != nil || len(file.Docs) == 0 {
		return ""
	}
	var find func(n ast.Node, above string) string
	find = func(n ast.Node, above string) string {
		for _, v := range valuesOf(n) {
			key := above + v.Key.GetToken().Value
			if p := v.Value.GetToken().Position; p.Line == line && p.Column == col {
				return key
			}
			if found := find(v.Value, key+"."); found != "" {
				return found
			}
		}
		return ""
	}
	return find(file.Docs[0].Body, "")
}

// inWords is a mistake of form in the value of a key, without the words of a programming
// language; empty for what is not YAML at all.
func inWords(y yaml.Error, key string) string {
	if y.GetToken() == nil {
		return ""
	}
	value := y.GetToken().Value
	var unknown *yaml.UnknownFieldError
	var mistyped *yaml.TypeError
	var large *yaml.OverflowError
	var kind *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(y, &unknown):
		text := fmt.Sprintf("there is no key %q", value)
		if near := workflow.Nearest(value, keys); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return text + written(value)
	case errors.As(y, &mistyped):
		if key == "" && mistyped.StructFieldName != nil {
			key = keyOf(*mistyped.StructFieldName)
		}
		want := wanted(mistyped.DstType.Kind()) + rangeOf(key)
		text := fmt.Sprintf("%q: want %s", value, want)
		if made := structure(y.GetToken()); made != "" {
			text = fmt.Sprintf("want %s, and not %s", want, made)
		}
		if key != "" {
			text = key + ": " + text
		}
		return text
	case errors.As(y, &large):
		text := fmt.Sprintf("%s is beyond the numbers that fit here: want a whole number%s", large.SrcNum, rangeOf(key))
		if key != "" {
			text = key + ": " + text
		}
		return text
	case errors.As(y, &kind):
		text := fmt.Sprintf("%q: want %s", value, wanted(kinds[kind.Expected]))
		if made := structure(y.GetToken()); made != "" {
			text = fmt.Sprintf("want %s, and not %s", wanted(kinds[kind.Expected]), made)
		}
		if colon := y.GetToken().Prev; colon != nil && colon.Value == ":" && colon.Prev != nil {
			text = colon.Prev.Value + ": " + text
		}
		return text + written(value)
	}
	return ""
}

// structure is what a token begins that is made of several values; empty: nothing.
func structure(tk *token.Token) string {
	switch tk.Type {
	case token.SequenceStartType, token.SequenceEntryType:
		return "a list"
	case token.MappingStartType, token.MappingValueType:
		return "keys with values"
	}
	return ""
}

// written is how a key has to be written that has its value in another way.
func written(value string) string {
	if hint := workflow.KeyHint(value); hint != "" {
		return "; " + hint
	}
	return ""
}

// kinds are what a configuration has for what YAML is made of.
var kinds = map[ast.NodeType]reflect.Kind{
	ast.SequenceType: reflect.Slice, ast.MappingType: reflect.Map, ast.StringType: reflect.String,
	ast.IntegerType: reflect.Int, ast.BoolType: reflect.Bool,
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list, e.g. [a, b]"
	case reflect.Map, reflect.Struct:
		return "keys with values, e.g. {key: value}"
	}
	return "a text"
}

// keys are all keys that a configuration can have.
var keys = func() (out []string) {
	for _, t := range structs {
		for i := range t.NumField() {
			out = append(out, yamlKey(t.Field(i)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}()

// structs are what a configuration is made of.
var structs = []reflect.Type{
	reflect.TypeFor[Config](), reflect.TypeFor[Limits](), reflect.TypeFor[TLS](), reflect.TypeFor[Application](),
	reflect.TypeFor[Database](),
}

// keyOf is the key of a field, which the YAML library names as Limits.Facts.
func keyOf(field string) string {
	_, name, ok := strings.Cut(field, ".")
	if !ok {
		name = field
	}
	for _, t := range structs {
		if f, ok := t.FieldByName(name); ok {
			return yamlKey(f)
		}
	}
	return name
}

func yamlKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}
