package workflow

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// The limits of one expression. There are no loops, so they bound its cost.
const (
	MaxExpression = 4096 // bytes
	maxExprNodes  = 1000
)

// exprError is a mistake at a character of an expression.
type exprError struct {
	offset  int
	message string
	hint    string
}

// parseExpr reads the syntax of an expression with the library's parser.
func parseExpr(src string) (ast.Node, *exprError) {
	if len(src) > MaxExpression {
		return nil, &exprError{message: fmt.Sprintf("the expression has %d bytes: at most %d are allowed", len(src), MaxExpression), hint: "compute a part of it into a data item"}
	}
	config := conf.CreateNew()
	config.MaxNodes = maxExprNodes
	tree, err := parser.ParseWithConfig(src, config)
	if err == nil {
		return tree.Node, checkSpelling(tree.Node)
	}
	var at *file.Error
	if !errors.As(err, &at) {
		return nil, &exprError{message: "not an expression: " + err.Error()}
	}
	return nil, &exprError{offset: at.From, message: "not an expression: " + at.Message}
}

// checkSpelling keeps the canonical spelling, which may have more spaces and
// parentheses than what was written, within the same limit.
func checkSpelling(n ast.Node) *exprError {
	if size := len(spell(n)); size > MaxExpression {
		return &exprError{message: fmt.Sprintf("the expression, with a space around each operator, has %d bytes: at most %d are allowed", size, MaxExpression), hint: "compute a part of it into a data item"}
	}
	return nil
}
