package rules_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// In a package of many files a reader goes on from what a thing is to what is done about it. A file that
// mentions anything of another one, be it a type, a field, a function or a method, points at that: an arrow. The files
// are read in the order in which fewest arrows run back up.

// mostUpward is how many arrows between files of a package may run up.
var mostUpward = map[string]int{"node": 9, "choreo": 3, "choreo/state": 2, "choreo/log": 0, "choreo/fact": 1}

// Arrows between files of one package run down, but for a few.
func TestFilesStandInReadingOrder(t *testing.T) {
	for dir, most := range mostUpward {
		arrows := arrowsWithin(t, "./"+dir)
		order := readingOrder(arrows)
		up := upward(arrows, order)
		t.Logf("%s: %d of %d arrows between %d files run up", dir, len(up), count(arrows), len(order))
		if len(up) <= most {
			continue
		}
		t.Errorf("%d arrows between files of %s run up, where %d may: a reader of the files, one after the other, has to "+
			"turn back; put what is mentioned into a file that both may look down at, or say by an interface what is needed",
			len(up), dir, most)
		for _, a := range up {
			t.Logf("%s mentions of %s: %s", a.from, a.to, strings.Join(slices.Sorted(maps.Keys(arrows[a.from][a.to])), ", "))
		}
	}
}

// Two files that mention each other have an arrow up, whatever stands between them.
func TestAnArrowUpIsFound(t *testing.T) {
	some := map[string]bool{"x": true}
	arrows := mentions{
		"top.go": {"middle.go": some, "low.go": some}, "middle.go": {"low.go": some}, "low.go": {"middle.go": some},
	}
	if up := upward(arrows, readingOrder(arrows)); len(up) != 1 {
		t.Errorf("the arrows up are %v, want one between middle.go and low.go", up)
	}
	delete(arrows, "low.go")
	if order := readingOrder(arrows); !slices.Equal(order, []string{"top.go", "middle.go", "low.go"}) {
		t.Errorf("the order is %v", order)
	}
}

// mentions are what each file mentions of each other one.
type mentions map[string]map[string]map[string]bool

// arrow is between two files.
type arrow struct{ from, to string }

// count is how many arrows there are.
func count(arrows mentions) (n int) {
	for _, to := range arrows {
		n += len(to)
	}
	return n
}

// arrowsWithin are the arrows between the files of a package, with what is mentioned.
func arrowsWithin(t *testing.T, pattern string) mentions {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	loaded, err := packages.Load(&packages.Config{Dir: root, Mode: mode}, pattern)
	if err != nil || len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		t.Fatalf("%s cannot be read: %v, %v", pattern, loaded, err)
	}
	p := loaded[0]
	file := func(at types.Object) string {
		return filepath.Base(p.Fset.Position(at.Pos()).Filename)
	}
	arrows := mentions{}
	for _, f := range p.Syntax {
		from := filepath.Base(p.Fset.Position(f.Package).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || !shared(o, p.Types) {
				return true
			}
			to := file(o)
			if to == from {
				return true
			}
			if arrows[from] == nil {
				arrows[from] = map[string]map[string]bool{}
			}
			if arrows[from][to] == nil {
				arrows[from][to] = map[string]bool{}
			}
			arrows[from][to][o.Name()] = true
			return true
		})
	}
	return arrows
}

// shared reports whether files of a package can see something: what is declared in a function they cannot.
func shared(o types.Object, p *types.Package) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == p.Scope()
	case *types.Func:
		return true
	}
	return o.Parent() == p.Scope()
}

// readingOrder puts files into an order in which few arrows run up: from some orders by chance, each file goes where
// fewest do, until none can be put better; the best of these counts.
func readingOrder(arrows mentions) (best []string) {
	files := map[string]bool{}
	for from, to := range arrows {
		files[from] = true
		for f := range to {
			files[f] = true
		}
	}
	chance := rand.New(rand.NewPCG(1, 2)) // the same each time
	least := -1
	for range 60 {
		order := slices.Sorted(maps.Keys(files))
		chance.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for better := true; better; {
			better = false
			for i := range order {
				better = settle(arrows, order, i) || better
			}
		}
		if n := len(upward(arrows, order)); least < 0 || n < least {
			least, best = n, order
		}
	}
	return best
}

// settle puts one file of an order where fewest arrows run up, and reports whether that was elsewhere.
func settle(arrows mentions, order []string, at int) bool {
	f := order[at]
	points := func(from, to string) int { return min(len(arrows[from][to]), 1) }
	gain, where := 0, at
	for by, j := 0, at+1; j < len(order); j++ { // it goes down past that one
		if by += points(f, order[j]) - points(order[j], f); by < gain {
			gain, where = by, j
		}
	}
	for by, j := 0, at-1; j >= 0; j-- {
		if by += points(order[j], f) - points(f, order[j]); by < gain {
			gain, where = by, j
		}
	}
	if where == at {
		return false
	}
	copy(order, slices.Insert(slices.Delete(slices.Clone(order), at, at+1), where, f))
	return true
}

// upward are the arrows that run up in an order.
func upward(arrows mentions, order []string) (up []arrow) {
	for i, to := range order {
		for _, from := range order[i+1:] {
			if len(arrows[from][to]) > 0 {
				up = append(up, arrow{from, to})
			}
		}
	}
	return up
}

func (a arrow) String() string { return fmt.Sprintf("%s → %s", a.from, a.to) }
