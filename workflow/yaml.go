package workflow

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ErrYAMLLibrary is that the YAML library panics over a text.
var ErrYAMLLibrary = errors.New("the YAML library cannot read this")

// GuardYAML gives the error of call, which reads a text with the YAML library:
// whatever that stumbles over is a mistake in the text, never the end of a node. The
// configuration and the study's scenarios are read under it too.
func GuardYAML(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrYAMLLibrary, r)
		}
	}()
	return call()
}

// ParseYAML gives the documents of a text. See NotYAML for its errors.
func ParseYAML(src []byte) (file *ast.File, err error) {
	tokens, err := YAMLTokens(src)
	if err != nil {
		return nil, err
	}
	return parseTokens(tokens)
}

// YAMLTokens cuts a text into what YAML is made of.
func YAMLTokens(src []byte) (tokens token.Tokens, err error) {
	err = GuardYAML(func() error {
		tokens = lexer.Tokenize(string(src))
		return nil
	})
	return tokens, err
}

func parseTokens(tokens token.Tokens, opts ...parser.Option) (file *ast.File, err error) {
	err = GuardYAML(func() error {
		file, err = parser.Parse(tokens, 0, opts...)
		return err
	})
	return file, err
}
