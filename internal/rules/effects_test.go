package rules_test

import (
	"fmt"
	"go/ast"
	"strings"
)

// effectComplaints finds effects that a reader of main would not see: printing
// below the command line, and code that runs because a package was imported.
func effectComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		out = append(out, t.hiddenImports(f)...)
		if !within(f.dir, "cmd") && f.syntax.Name.Name != "main" {
			out = append(out, t.prints(f)...)
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil &&
				!t.permits("init", f.dir) {
				out = append(out, t.complaint(fn.Pos(), fmt.Sprintf("%s has an init function", f.dir),
					"what happens at import happens in every program and test, in an order that nobody chose",
					"use a package variable without effects, or let the caller call a function; if it touches nothing else, list it in internal/rules/permissions_test.go"))
			}
		}
	}
	return out
}

// prints finds what writes to standard output or standard error.
func (t *tree) prints(f file) []string {
	const why, mend = "results on stdout are a contract of the command line alone",
		"return the text or an error, or write to an io.Writer that was passed in"
	var out []string
	f.selectors(func(im imported, sel *ast.SelectorExpr) {
		if im.path == "fmt" && strings.HasPrefix(sel.Sel.Name, "Print") {
			out = append(out, t.complaint(sel.Pos(), fmt.Sprintf("%s calls fmt.%s", f.dir, sel.Sel.Name), why, mend))
		}
	})
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if isCall(n, "println") {
			out = append(out, t.complaint(n.Pos(), fmt.Sprintf("%s calls the built-in println", f.dir), why, mend))
		}
		return true
	})
	return out
}

// hiddenImports finds imports for their side effects, and imports that hide
// where a name comes from (and would hide it from these rules).
func (t *tree) hiddenImports(f file) []string {
	var out []string
	for _, im := range f.imports {
		switch {
		case im.name == ".":
			out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s without a name", f.dir, im.path),
				"the reader cannot see where a name comes from", "import it by its name"))
		case im.name == "_" && im.path != "embed" && !within(f.dir, "cmd"):
			out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s for its side effects", f.dir, im.path),
				"a registry that imports fill differs from program to program", "pass the value, or import it in cmd"))
		}
	}
	return out
}
