package choreo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cases are the types that the cases of a function's switch name.
func cases(t *testing.T, file, function string) (kinds []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == function {
			ast.Inspect(fn, func(n ast.Node) bool {
				c, ok := n.(*ast.CaseClause)
				if !ok {
					return true
				}
				for _, of := range c.List {
					if p, ok := of.(*ast.StarExpr); ok {
						kinds = append(kinds, p.X.(*ast.SelectorExpr).Sel.Name)
					}
				}
				return true
			})
		}
	}
	return kinds
}

// A reader who looks up a kind of fact finds what is particular to it by itself in one file: the
// methods that the recipe in choreo/fact/kinds.go names. What it changes is a case of State.enterFact, of each
// kind; who is told of it, one of decision.tellFact, unless all are.
func TestKindsOfFactsAreEachInOneFile(t *testing.T) {
	files, err := filepath.Glob("fact/*.go")
	if err != nil {
		t.Fatal(err)
	}
	recipe := []string{"kind", "Validate", "appoints"}
	at := map[string]map[string]string{} // by type, then by method
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !slices.Contains(recipe, fn.Name.Name) {
				continue
			}
			of, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			kind := of.X.(*ast.Ident).Name
			if at[kind] == nil {
				at[kind] = map[string]string{}
			}
			at[kind][fn.Name.Name] = name
		}
	}
	entered, told := cases(t, "state/fold.go", "enterFact"), cases(t, "route.go", "tellFact")
	kinds := 0
	for kind, methods := range at {
		home, isKind := methods["kind"]
		if !isKind {
			continue
		}
		kinds++
		if !slices.Contains(entered, kind) {
			t.Errorf("State.enterFact has no case for %s: such facts would change nothing", kind)
		}
		for method, file := range methods {
			if file != home {
				t.Errorf("%s.%s is in %s, the rest of that kind of fact in %s", kind, method, file, home)
			}
		}
	}
	if kinds < 16 || len(told) < 8 {
		t.Errorf("%d kinds of facts and %d cases of who is told were found, want 16 and 8 or more", kinds, len(told))
	}
	for _, kind := range told {
		if at[kind] == nil {
			t.Errorf("decision.tellFact has a case for %s, which is no kind of fact", kind)
		}
	}
}
