package rules_test

import (
	"fmt"
	"go/ast"
	"iter"
)

// panicComplaints finds panics that are not permitted.
func panicComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		for name, body := range declarations(f) {
			ast.Inspect(body, func(n ast.Node) bool {
				if isCall(n, "panic") && !t.permits("panic", name) {
					out = append(out, t.complaint(n.Pos(), fmt.Sprintf("%s panics", name),
						"a panic stops every instance on the node, so it is only for bugs of ours",
						"return an error; if it can only be our bug, list it with the reason in internal/rules/permissions_test.go"))
				}
				return true
			})
		}
	}
	return out
}

// declarations yields the functions and variables of a file, in their order, by
// folder and name as godoc has it: stack.New, stack.Stack.Pop, stack.table.
func declarations(f file) iter.Seq2[string, ast.Node] {
	return func(yield func(string, ast.Node) bool) {
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				name := decl.Name.Name
				if decl.Recv != nil && len(decl.Recv.List) > 0 {
					name = receiver(decl.Recv.List[0].Type) + "." + name
				}
				if !yield(f.dir+"."+name, decl) {
					return
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && !yield(f.dir+"."+v.Names[0].Name, v) {
						return
					}
				}
			}
		}
	}
}

// receiver is the name of a receiver's type, without pointer and type parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// isCall reports whether a node calls a built-in function of that name.
func isCall(n ast.Node, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == name
}
