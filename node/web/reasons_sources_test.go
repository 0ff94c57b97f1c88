package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A reason that people can be told on the page has a line in Portuguese. It is looked for in the sources, so that a new
// one is not forgotten: why something waits, why an item is not given, and what is refused for now.
func TestEveryReasonInTheSourcesIsSaid(t *testing.T) {
	pt := languages[1]
	found := map[string]string{}
	for _, dir := range []string{"../../choreo", "../../choreo/state", "../../worklist", "../../partition"} {
		collectReasons(t, dir, found)
	}
	if len(found) < 60 {
		t.Fatalf("only %d reasons were found: are they written in another way now?", len(found))
	}
	for text, at := range found {
		if letters(text) < 7 { // as in "x is x": what is told by so little would be told of the words of people, too
			continue
		}
		if pt.reason(text) == text {
			t.Errorf("%s: nothing in reasons.pt-BR.txt says %q", at, text)
		}
	}
}

// letters is how many letters of a sample are written in the source.
func letters(text string) (n int) {
	for word := range strings.FieldsSeq(strings.Trim(text, ".:")) {
		if word = strings.Trim(word, ",:;()"); word != "x" {
			n += len(word)
		}
	}
	return n
}

// collectReasons finds the reasons that the sources in a folder word, with a sample for what they leave blank.
func collectReasons(t *testing.T, dir string, found map[string]string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d sources: %v", dir, len(files), err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, text := range reasonsAt(n) {
				line := set.Position(n.Pos()).Line
				found[text] = filepath.Base(dir) + "/" + filepath.Base(name) + ":" + strconv.Itoa(line)
			}
			return true
		})
	}
}

// reasonsAt are the reasons that one piece of source words: an error of state.ErrNotNow, the text of a
// worklist.Refusal, why a task waits (Machine.nobody), and what stands against an assignment (partition.Refusal).
func reasonsAt(n ast.Node) (out []string) {
	switch x := n.(type) {
	case *ast.CallExpr:
		if called(x.Fun) == "fmt.Errorf" && len(x.Args) > 1 && strings.HasSuffix(called(x.Args[1]), "ErrNotNow") {
			if text := sampleOf(x.Args[0]); strings.HasPrefix(text, "x: ") {
				out = append(out, strings.TrimPrefix(text, "x: "))
			}
		}
	case *ast.CompositeLit:
		why, change := "", ""
		for i, e := range x.Elts {
			if called(x.Type) == "Refusal" && len(x.Elts) == 3 && i > 0 { // of an assignment, without keys
				why, change = change, sampleOf(e)
			}
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch kind, key := called(x.Type), called(kv.Key); {
			case (kind == "Refusal" || kind == "worklist.Refusal") && key == "Text":
				out = append(out, "x: "+sampleOf(kv.Value))
			case kind == "Refusal" && key == "Why":
				why = sampleOf(kv.Value)
			case kind == "Refusal" && key == "Change":
				change = sampleOf(kv.Value)
			}
		}
		if why != "" && change != "" {
			out = append(out, why+" ("+change+")")
		}
	case *ast.AssignStmt:
		for i, l := range x.Lhs {
			at, ok := l.(*ast.IndexExpr)
			if ok && i < len(x.Rhs) && slices.Contains([]string{"d.nobody", "d.unseen"}, called(at.X)) {
				if text := sampleOf(x.Rhs[i]); text != "x" {
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// called is an identifier, or one of another, as it is written.
func called(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return called(x.X) + "." + x.Sel.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%[a-z]|%\.?[0-9]*[a-z]`)

// sampleOf is a text as it may be read, with x for all that is not written in it.
func sampleOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		if err != nil {
			return "x"
		}
		return strings.ReplaceAll(verb.ReplaceAllString(text, "x"), "%%", "%")
	case *ast.BinaryExpr:
		return sampleOf(x.X) + sampleOf(x.Y)
	case *ast.CallExpr:
		if called(x.Fun) == "fmt.Sprintf" {
			return sampleOf(x.Args[0])
		}
	}
	return "x"
}
