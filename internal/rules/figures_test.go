package rules_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	figuresIn   = "docs/architecture.md"
	figuresWhy  = "a figure that was true once misleads"
	figuresMend = "write what is counted now: go test ./internal/rules -run TestHouse/figures -rewrite"
)

// figures are those of docs/architecture.md that can be counted in the source: where each
// stands, as the group of a pattern, and what is counted. Only what is built counts, no
// tests.
var figures = []struct {
	at      string
	counted func(*tree) int
}{
	{"\\| fields of `Node` \\|.*\\| ([0-9,]+): ", fields("node", "Node")},
	{"\\| methods of `Node` \\|.*\\| ([0-9,]+), of which", methods("node", "Node")},
	{"\\| lines of package `node` itself.*\\| ([0-9,]+); ", lines("node")},
	{"\\| methods of the partner list \\|.*\\| ([0-9,]+), of the list alone", methods("node/roster", "List")},
	{" ([0-9,]+): `workflow`, and ", exported("workflow")},
	{" ([0-9,]+): `choreo`, ", exported("choreo")},
	{" ([0-9,]+) of `choreo/fact`, ", exported("choreo/fact")},
	{" ([0-9,]+) of `choreo/log` and ", exported("choreo/log")},
	{" ([0-9,]+) of `choreo/state`; ", exported("choreo/state")},
	{" ([0-9,]+): `node/api`, and ", exported("node/api")},
	{" ([0-9,]+): `membership`, beside ", exported("membership")},
	{" ([0-9,]+) of `membership/election`, ", exported("membership/election")},
	{" ([0-9,]+) of `membership/trust` and ", exported("membership/trust")},
	{" ([0-9,]+) of `membership/invitation` ", exported("membership/invitation")},
	{"\\| `Machine` \\|.*\\| ([0-9,]+), of which", methods("choreo", "Machine")},
	{"\\| `State` \\|.*\\| ([0-9,]+) \\|", methods("choreo/state", "State")},
	{"\\| `decision`, `outlook` \\|.*\\| ([0-9,]+), [0-9]+ \\|", methods("choreo", "decision")},
	{"\\| `decision`, `outlook` \\|.*\\| [0-9,]+, ([0-9]+) \\|", methods("choreo", "outlook")},
	{"\\| `door` \\|.*\\| ([0-9,]+) \\|", methods("choreo", "door")},
	{"\\| lines of more than 120 columns \\| 420 \\| ([0-9,]+) \\|", wide},
	{"\\| functions of more than 60 lines \\| 3 \\| ([0-9,]+) \\|", long},
}

// figureComplaints finds figures of the map of the code that are off by more than one in
// twenty.
func figureComplaints(t *tree) []string {
	src, err := fs.ReadFile(t.fsys, figuresIn)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, f := range figures {
		m := regexp.MustCompile(f.at).FindStringSubmatchIndex(string(src))
		if m == nil {
			out = append(out, fmt.Sprintf("%s: it has no figure as %s: %s; say it, or take it off the list of figures",
				figuresIn, f.at, figuresWhy))
			continue
		}
		text := string(src[m[2]:m[3]])
		said, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
		if n := f.counted(t); err != nil || 20*max(said-n, n-said) > max(n, said) {
			out = append(out, fmt.Sprintf("%s:%d: it says %s where there are %d: %s; %s",
				figuresIn, 1+strings.Count(string(src[:m[2]]), "\n"), text, n, figuresWhy, figuresMend))
		}
	}
	return out
}

// countFigures writes into the map of the code what is counted now, where it is off.
func countFigures(t *tree, file string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, f := range figures {
		m := regexp.MustCompile(f.at).FindSubmatchIndex(src)
		if m == nil {
			continue // figureComplaints says so
		}
		said, _ := strconv.Atoi(strings.ReplaceAll(string(src[m[2]:m[3]]), ",", ""))
		if n := f.counted(t); 20*max(said-n, n-said) > max(n, said) {
			src = slices.Replace(src, m[2], m[3], []byte(grouped(n))...)
		}
	}
	return os.WriteFile(file, src, 0o644)
}

// grouped is a number as the map writes it: 13,805.
func grouped(n int) string {
	if n < 1_000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1_000), n%1_000)
}

// in calls fn with each declaration of a package.
func (t *tree) in(dir string, fn func(ast.Decl)) {
	for _, f := range t.files {
		if f.dir == dir {
			for _, d := range f.syntax.Decls {
				fn(d)
			}
		}
	}
}

// methods counts the methods of a type.
func methods(dir, of string) func(*tree) int {
	return func(t *tree) (n int) {
		t.in(dir, func(d ast.Decl) {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				return
			}
			recv := fn.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if name, ok := recv.(*ast.Ident); ok && name.Name == of {
				n++
			}
		})
		return n
	}
}

// fields counts the fields of a struct, embedded ones too.
func fields(dir, of string) func(*tree) int {
	return func(t *tree) (n int) {
		t.in(dir, func(d ast.Decl) {
			ast.Inspect(d, func(x ast.Node) bool {
				spec, ok := x.(*ast.TypeSpec)
				if !ok || spec.Name.Name != of {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						n += max(1, len(f.Names))
					}
				}
				return false
			})
		})
		return n
	}
}

// exported counts the types, functions, constants and variables that a package exports.
func exported(dir string) func(*tree) int {
	return func(t *tree) (n int) {
		count := func(name *ast.Ident) {
			if name.IsExported() {
				n++
			}
		}
		t.in(dir, func(d ast.Decl) {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					count(d.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						count(s.Name)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							count(name)
						}
					}
				}
			}
		})
		return n
	}
}

// lines counts the lines of a package, of comments and empty ones too.
func lines(dir string) func(*tree) int {
	return func(t *tree) (n int) {
		for _, f := range t.files {
			if f.dir == dir {
				n += t.fset.File(f.syntax.FileStart).LineCount() - 1
			}
		}
		return n
	}
}

// wide counts the lines of more than 120 columns, with four for a tab.
func wide(t *tree) (n int) {
	for _, f := range t.files {
		src, err := fs.ReadFile(t.fsys, f.name)
		if err != nil {
			panic(err) // it was read before
		}
		for line := range strings.Lines(string(src)) {
			if utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")) > 120 {
				n++
			}
		}
	}
	return n
}

// long counts the functions of more than 60 lines, from their first to their last.
func long(t *tree) (n int) {
	for _, f := range t.files {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && t.fset.Position(fn.End()).Line-t.fset.Position(fn.Pos()).Line >= 60 {
				n++
			}
		}
	}
	return n
}
