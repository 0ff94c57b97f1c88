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

// Whoever looks up a kind of fact finds all that is particular to it in one file: the
// methods that the recipe in kinds.go names.
func TestKindsOfFactsAreEachInOneFile(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	recipe := []string{"kind", "validate", "enter", "tell", "appoints"}
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
	kinds := 0
	for kind, methods := range at {
		home, isKind := methods["kind"]
		if !isKind {
			continue
		}
		kinds++
		for method, file := range methods {
			if file != home {
				t.Errorf("%s.%s is in %s, the rest of that kind of fact in %s", kind, method, file, home)
			}
		}
	}
	if kinds < 11 {
		t.Errorf("%d kinds of facts were found, want 11 or more", kinds)
	}
}
