package workflow

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzParse: whatever the bytes, Parse ends, and what it accepts has a
// canonical form that means the same.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{
		"../configs/workflows/*.yaml", "testdata/mistakes/*.yaml", "testdata/canonical/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := Parse("fuzz", src)
		if err != nil {
			problems, ok := err.(Errors)
			if !ok || len(problems) == 0 {
				t.Fatalf("not Errors: %#v", err)
			}
			for _, p := range problems {
				if p.Line < 1 || p.Col < 1 || p.Message == "" {
					t.Fatalf("a problem without place or message: %+v", p)
				}
			}
			return
		}
		again, err := Parse("canonical", d.Canonical())
		if err != nil {
			t.Fatalf("%v\n%s", err, d.Canonical())
		}
		if !bytes.Equal(again.Canonical(), d.Canonical()) || !bytes.Equal(again.WrittenOut(), d.WrittenOut()) {
			t.Fatalf("the canonical form changed:\n%s\n%s", d.Canonical(), again.Canonical())
		}
	})
}

// FuzzExpression: whatever the text, checking and evaluating end without a
// panic, and an accepted expression keeps its meaning in its canonical spelling.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		`n > 5 and not (s == "a") or b`, `x / y + 1 >= 2.5`, `s in ["a", "b"] ? n : n * 2`,
		`len(l) == 0 and m.key == null`,
		`due - duration("2h") < date("2026-01-01")`, `instance.age > duration("1h30m")`, `s matches "^a+$" ?? false`,
		`l[0].name startsWith "x"`, `-n % 3 == -(n - 1)`, `(b ? b : b) ? 1 : 2`, `"\u00e9\x41\n" + 'it' + ` + "`raw`",
		`max(n, 3, x) - abs(-2)`, `a < b < c`, `not not b`, `m["a b"]`, `s not in m`, `[1, [2, "x"]][1]`,
		`b and (b or b) and b`, `(y ?? 4) + 1`, `1 + (n ?? 4) * 2 - (n ?? 1)`, `(b ?? false) and b`, `not (b ?? false) and b`,
		`(n ?? 1) in [1, 2] ? (n ?? 2) : -(n ?? 3)`, `(s ?? "a") startsWith "a" or (n ?? (n ?? 2)) < 3`,
	} {
		f.Add(s, int64(3), 2.5, "a", true)
	}
	s := testScope()
	f.Fuzz(func(t *testing.T, src string, n int64, x float64, text string, b bool) {
		e, ok := compileText(s, src)
		if !ok || !utf8.ValidString(src) { // Parse refuses what is not UTF-8
			return
		}
		again, ok := compileText(s, e.String())
		if !ok {
			t.Fatalf("%q is spelled %q, which is not an expression", src, e)
		}
		if again.String() != e.String() {
			t.Fatalf("%q is spelled %q, then %q", src, e, again)
		}
		env := Env{Instance: "i", Data: map[DataName]Value{
			"n": n, "x": x, "s": text, "b": b, "l": []any{n, text}, "m": map[string]any{"key": x},
			"due": "2026-07-01T08:00:00Z",
		}}
		for _, env := range []Env{env, {}} {
			v1, err1 := e.Eval(env)
			v2, err2 := again.Eval(env)
			if (err1 == nil) != (err2 == nil) || err1 == nil && !equal(v1, v2) {
				t.Fatalf("%q gives %v, %v; %q gives %v, %v", src, v1, err1, again, v2, err2)
			}
		}
	})
}

// testScope declares one item of each type.
func testScope() *scope {
	s := &scope{
		memory: newMemory(), data: map[DataName]*DataDecl{}, tasks: []string{"a", "b", "c", "long-name"},
		known: map[TaskName]bool{},
	}
	for _, t := range s.tasks {
		s.known[TaskName(t)] = true
	}
	for name, typ := range map[DataName]DataType{
		"n": TypeInteger, "x": TypeNumber, "y": TypeNumber, "s": TypeString, "b": TypeBoolean, "l": TypeList,
		"m":   TypeMap,
		"due": TypeTime, "f": TypeFile, "q": TypeQuery,
	} {
		s.data[name] = &DataDecl{Name: name, Type: typ}
	}
	s.data["color"] = &DataDecl{Name: "color", Type: TypeString, Enum: []Value{"red", "green"}}
	return s
}

func compileText(s *scope, src string) (*Expr, bool) {
	tree, err := parseExpr(src)
	if err != nil {
		return nil, false
	}
	ok := true
	e, _ := s.compile(src, tree, func(int, string, string) { ok = false })
	return e, ok
}
