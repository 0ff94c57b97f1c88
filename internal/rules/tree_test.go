package rules_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path that the import paths of our own packages begin with.
const module = "github.com/mutirao-mesh/mutirao"

// file is one Go source file that is not a test.
type file struct {
	name    string // path from the root of the module
	dir     string // its folder, "." for the root
	syntax  *ast.File
	imports []imported
}

// imported is one import of a file.
type imported struct {
	path string
	name string // what the file calls it: "_", "." or an identifier
	pos  token.Pos
}

// tree is the source of a module, in the order of paths.
type tree struct {
	fsys        fs.FS
	fset        *token.FileSet
	files       []file
	permissions []permission
	used        map[int]bool // permissions that a rule has asked for
}

// readTree parses every Go file of the module that is not a test, for whatever
// system it is built.
func readTree(fsys fs.FS, permissions []permission) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet(), permissions: permissions, used: make(map[int]bool)}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return t.add(name, src)
	})
	return t, err
}

// ignored are the folders that the go command does not look into either.
func ignored(dir string) bool {
	return dir == "testdata" || dir == "vendor" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func (t *tree) add(name string, src []byte) error {
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := file{name: name, dir: path.Dir(name), syntax: syntax}
	for _, spec := range syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		im := imported{path: p, name: baseName(p), pos: spec.Pos()}
		if spec.Name != nil {
			im.name = spec.Name.Name
		}
		f.imports = append(f.imports, im)
	}
	t.files = append(t.files, f)
	return nil
}

// baseName is what a package is called that is imported without a name of its
// own: the last element of its path that is not a version.
func baseName(p string) string {
	base := path.Base(p)
	if _, err := strconv.Atoi(strings.TrimPrefix(base, "v")); err == nil && strings.HasPrefix(base, "v") {
		base = path.Base(path.Dir(p))
	}
	return base
}

// dirs lists the folders that hold packages, sorted.
func (t *tree) dirs() []string {
	var dirs []string
	for _, f := range t.files {
		dirs = append(dirs, f.dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// complaint says what breaks a rule, why that is a rule, and what to do.
func (t *tree) complaint(pos token.Pos, what, why, mend string) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s: %s; %s", p.Filename, p.Line, what, why, mend)
}

// selectors calls fn for every pkg.Name in a file where pkg is an import of it.
func (f file) selectors(fn func(im imported, sel *ast.SelectorExpr)) {
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			for _, im := range f.imports {
				if im.name == x.Name {
					fn(im, sel)
				}
			}
		}
		return true
	})
}

// within reports whether a folder or import path is root or lies below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// own is the folder of one of our packages, by its import path.
func own(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func TestBaseName(t *testing.T) {
	for p, want := range map[string]string{
		"time": "time", "math/rand/v2": "rand", "log/slog": "slog", "a/vector": "vector",
	} {
		if got := baseName(p); got != want {
			t.Errorf("%s is called %s, want %s", p, got, want)
		}
	}
}
