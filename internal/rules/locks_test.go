package rules_test

import (
	"fmt"
	"go/ast"
	"slices"
)

// topics are the folders of the node itself and of its topics.
var topics = words("node node/assignment node/certificates node/clocks node/closings node/datasets node/doctor node/elections node/evictions node/index node/jobs node/joining node/library node/lineup node/overview node/profile node/ration node/refusals node/roster")

// lockComplaints finds where the node takes a lock that belongs to another part of it.
// What a part guards only its own methods touch, so that each can be read alone.
func lockComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		if !slices.Contains(topics, f.dir) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if lock, taken := takenLock(n); taken && !isOwn(fn, lock) {
					out = append(out, t.complaint(n.Pos(), fmt.Sprintf("%s takes the lock of another", fn.Name.Name),
						"who guards something decides alone what happens to it meanwhile",
						"give the owner of the lock a method that does it"))
				}
				return true
			})
		}
	}
	return out
}

// takenLock is what a call of Lock or RLock locks.
func takenLock(n ast.Node) (lock ast.Expr, taken bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return nil, false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Lock" && sel.Sel.Name != "RLock" {
		return nil, false
	}
	return sel.X, true
}

// isOwn reports whether a lock is a field of the method's receiver; in a function, of
// what it makes.
func isOwn(fn *ast.FuncDecl, lock ast.Expr) bool {
	sel, ok := lock.(*ast.SelectorExpr)
	if !ok {
		return true // a variable of its own
	}
	of, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	if fn.Recv == nil {
		return true
	}
	return len(fn.Recv.List[0].Names) > 0 && fn.Recv.List[0].Names[0].Name == of.Name
}
