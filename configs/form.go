package configs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says all that is wrong with the form of a configuration: keys that there are
// not, a text in place of a number. The YAML library stops at the first of it. So what has
// it is left out, and the rest is read again.

// slip is a mistake of form; without a place, where the text is no YAML at all.
type slip struct {
	line, col int
	what      string
}

// formless are the mistakes of form in a source, the first of which is err, if that is not nil. What is wrong
// with values comes after them, except where what was left out may be why.
func formless(name string, src []byte, err error) error {
	var body ast.Node
	if file, bad := workflow.ParseYAML(src); bad == nil && len(file.Docs) > 0 {
		body = file.Docs[0].Body
	}
	var slips []slip
	var without []string
	var rest Config
	again := func() {
		rest, err = parse(src, func(into any, opts ...yaml.DecodeOption) error {
			return workflow.GuardYAML(func() error { return yaml.NodeToValue(body, into, opts...) })
		})
	}
	for _, s := range fractions(body, reflect.TypeFor[Config](), "") {
		slips = append(slips, s)
		key, ok := leaveOut(body, s.line, s.col)
		if !ok {
			return &Error{[]string{fmt.Sprintf("%s:%d:%d: %s", name, s.line, s.col, s.what)}}
		}
		without = append(without, key)
		again()
	}
	for err != nil {
		s := locate(src, body, err)
		if s.line == 0 {
			return &Error{[]string{workflow.NotYAML(name, src, err).String()}}
		}
		slips = append(slips, s)
		key, ok := leaveOut(body, s.line, s.col)
		if !ok {
			break
		}
		without = append(without, key)
		again()
	}
	slices.SortStableFunc(slips, func(a, b slip) int { return cmp.Or(a.line-b.line, a.col-b.col) })
	e := &Error{}
	for _, s := range slips {
		e.what = append(e.what, fmt.Sprintf("%s:%d:%d: %s", name, s.line, s.col, s.what))
	}
	if err == nil {
		apart := slices.DeleteFunc(rest.mistakes(), func(m error) bool { return follows(m, without) })
		e.what = append(e.what, placed(name, src, apart).what...)
	}
	return e
}

// fractions are the numbers with a fraction where a key of a type has a whole one: the YAML
// library takes 1.9 for 1 and says nothing.
func fractions(n ast.Node, t reflect.Type, key string) (out []slip) {
	if _, is := n.(*ast.FloatNode); is && (t.Kind() == reflect.Int || t.Kind() == reflect.Int64) &&
		t != reflect.TypeFor[time.Duration]() {
		tk := n.GetToken()
		return []slip{{tk.Position.Line, tk.Position.Column,
			fmt.Sprintf("%s: %q: want %s", key, tk.Value, wanted(t.Kind())+rangeOf(key))}}
	}
	for _, v := range valuesOf(n) {
		name := v.Key.GetToken().Value
		switch t.Kind() {
		case reflect.Map:
			out = append(out, fractions(v.Value, t.Elem(), strings.TrimPrefix(key+"."+name, "."))...)
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); yamlKey(f) == name {
					out = append(out, fractions(v.Value, f.Type, strings.TrimPrefix(key+"."+name, "."))...)
				}
			}
		}
	}
	return out
}

// hasFraction reports whether a source has a number with a fraction where it cannot be.
func hasFraction(src []byte) bool {
	file, err := workflow.ParseYAML(src)
	return err == nil && len(file.Docs) > 0 && len(fractions(file.Docs[0].Body, reflect.TypeFor[Config](), "")) > 0
}

// locate says in our words what the YAML library found in what is left of a source, and
// where; no place: it is not known, and the source is no YAML.
func locate(src []byte, body ast.Node, err error) slip {
	var y yaml.Error
	if errors.As(err, &y) {
		if what := inWords(y, keyAt(src, y.GetToken())); what != "" {
			p := y.GetToken().Position
			return slip{p.Line, p.Column, what}
		}
	}
	var d *durationError
	if errors.As(err, &d) {
		if found, ok := d.in(body, ""); ok {
			return found
		}
	}
	if errors.Is(err, workflow.ErrYAMLLibrary) {
		tokens, _ := workflow.YAMLTokens(src) // none, if it cannot even cut the text
		for _, tk := range tokens {
			if tk.Type == token.TagType {
				return slip{tk.Position.Line, tk.Position.Column, noTags}
			}
		}
	}
	return slip{}
}

// leaveOut takes the innermost key with its value out of a mapping that has a place in it,
// and says which key that was, as a path.
func leaveOut(n ast.Node, line, col int) (key string, ok bool) {
	m, isMap := n.(*ast.MappingNode)
	if !isMap {
		return "", false
	}
	at := -1
	for i, v := range m.Values {
		if p := v.Key.GetToken().Position; cmp.Or(p.Line-line, p.Column-col) <= 0 {
			at = i
		}
	}
	if at < 0 {
		return "", false
	}
	v := m.Values[at]
	key = v.Key.GetToken().Value
	if inner, ok := leaveOut(v.Value, line, col); ok {
		return key + "." + inner, true
	}
	m.Values = slices.Delete(m.Values, at, at+1)
	return key, true
}

// follows reports whether a mistake may be there only because a key was left out: it is
// about that key, or about the mapping which it stood in as a whole.
func follows(m error, without []string) bool {
	var about *mistake
	return errors.As(m, &about) && slices.ContainsFunc(without, func(key string) bool {
		dot := max(strings.LastIndex(key, "."), 0)
		return about.key == key || about.key == key[:dot]
	})
}
