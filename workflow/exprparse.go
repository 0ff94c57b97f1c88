package workflow

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

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
		return nil, &exprError{
			message: fmt.Sprintf("the expression has %d bytes: at most %d are allowed", len(src), MaxExpression),
			hint:    "compute a part of it into a data item",
		}
	}
	config := conf.CreateNew()
	config.MaxNodes = maxExprNodes
	tree, err := parser.ParseWithConfig(src, config)
	if err == nil {
		return tree.Node, checkSpelling(tree.Node)
	}
	var at *file.Error
	if !errors.As(err, &at) {
		return nil, &exprError{message: "this is not an expression", hint: exprHint}
	}
	message, hint := exprWords(src, at)
	return nil, &exprError{offset: at.From, message: "not an expression: " + message, hint: hint}
}

const exprHint = `write for example succeeded("a") and n > 5`

// exprWords says in our words what the library found wrong.
func exprWords(src string, at *file.Error) (message, hint string) {
	runes := []rune(src)
	from := min(max(at.From, 0), len(runes))
	text := string(runes[from:min(max(at.To, from), len(runes))])
	has := func(words string) bool { return strings.Contains(at.Message, words) }
	switch {
	case has("EOF"), has("unexpected end"):
		return "it ends too early", "something is missing at its end, or a bracket is not closed"
	case text == "=":
		return "= does not compare", "write == for is equal, >= for at least"
	case has("unexpected token"):
		return fmt.Sprintf("%s does not fit here", excerpt(text)),
			"an operator such as and or ==, a comma or a bracket may be missing before it"
	case has("not terminated"):
		return "a text in it is not closed", "close it with the quote that opens it"
	case has("escape"):
		return `a \ and what follows it mean nothing in a text`, `write \\ for a backslash`
	case has("unrecognized character"):
		return fmt.Sprintf("%s means nothing in an expression", excerpt(string(runes[from:min(from+1, len(runes))]))),
			exprHint
	case has("number"), has("literal"):
		if word := wordAt(runes, from); isDuration(word) {
			return word + " is no number", fmt.Sprintf("write a duration as duration(%q)", word)
		}
		return "a number in it cannot be read", "write for example 12 or 0.5"
	case has("cannot be mixed"):
		return "?? does not say whether it comes before or after the operator beside it",
			"put one of them in parentheses"
	case has("maximum allowed nodes"):
		return fmt.Sprintf("it has more than %d parts", maxExprNodes), "compute a part of it into a data item"
	}
	return "it cannot be read from here on", exprHint
}

// wordAt is the word of letters, digits and points in which a character stands.
func wordAt(runes []rune, at int) string {
	in := func(r rune) bool { return r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	from, to := at, at
	for from > 0 && in(runes[from-1]) {
		from--
	}
	for to < len(runes) && in(runes[to]) {
		to++
	}
	return string(runes[from:to])
}

func isDuration(word string) bool {
	_, err := ParseDuration(word)
	return err == nil
}

// checkSpelling keeps the canonical spelling, which may have more spaces and
// parentheses than what was written, within the same limit.
func checkSpelling(n ast.Node) *exprError {
	if size := len(spell(n)); size > MaxExpression {
		return &exprError{message: fmt.Sprintf("the expression, with a space around each operator, has %d bytes: at most %d are allowed", size, MaxExpression), hint: "compute a part of it into a data item"}
	}
	return nil
}
