package rules_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	documentWhy  = "a reader follows it"
	documentMend = "name what is there now"
)

var (
	// link is a link to a file of ours, or to a heading.
	link = regexp.MustCompile(`\]\(([^)#\s:]*)(?:#([^)\s]*))?\)`)
	// inCode is what a document marks as code.
	inCode = regexp.MustCompile("`([^`]+)`")
	// source is a path to a file that a document names.
	source = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+\.(go|md|py|yaml|yml|json|txt|service)$`)
	// stop is a row of a walk: a number, a file, a function, what happens there.
	stop = regexp.MustCompile("^\\| (\\d+) \\| `([^`]+)` \\| `([^`]+)` \\|")
)

// documentComplaints finds links that lead nowhere and files that are not there in
// the documents, and walks (tables of files and functions) that lead to what is not
// there, or back into a file that they have left.
func documentComplaints(t *tree) []string {
	var out []string
	t.walk(func(name string) {
		if path.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			return
		}
		src, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			out = append(out, err.Error())
			return
		}
		code, been := false, map[string]bool{}
		for i, line := range strings.Split(string(src), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code {
				continue
			}
			var found []string
			found = append(found, t.deadLinks(name, line)...)
			found = append(found, t.noSources(line)...)
			if m := stop.FindStringSubmatch(line); m != nil {
				if m[1] == "1" {
					clear(been)
				}
				if been[m[2]] {
					found = append(found, "the walk comes back to "+m[2])
				}
				been[m[2]] = true
				found = append(found, t.noFunction(m[2], m[3])...)
			}
			for _, what := range found {
				out = append(out, fmt.Sprintf("%s:%d: %s: %s; %s", name, i+1, what, documentWhy, documentMend))
			}
		}
	})
	return out
}

// deadLinks are the links in a line of a document to what is not there.
func (t *tree) deadLinks(document, line string) (out []string) {
	for _, m := range link.FindAllStringSubmatch(line, -1) {
		to := document
		if m[1] != "" {
			to = path.Join(path.Dir(document), m[1])
		}
		switch _, err := fs.Stat(t.fsys, to); {
		case err != nil:
			out = append(out, "a link leads to "+to+", which is not there")
		case m[2] != "" && !slices.Contains(t.anchors(to), m[2]):
			out = append(out, fmt.Sprintf("a link leads to #%s, which %s does not have", m[2], to))
		}
	}
	return out
}

// noSources are the files that a line names, in one of our folders, and that are
// not there.
func (t *tree) noSources(line string) (out []string) {
	for _, m := range inCode.FindAllStringSubmatch(line, -1) {
		top, _, _ := strings.Cut(m[1], "/")
		if _, err := fs.Stat(t.fsys, top); err != nil || !source.MatchString(m[1]) {
			continue
		}
		if _, err := fs.Stat(t.fsys, m[1]); err != nil {
			out = append(out, "it names "+m[1]+", which is not there")
		}
	}
	return out
}

// noFunction says that a file does not declare a function.
func (t *tree) noFunction(name, function string) []string {
	for _, f := range t.files {
		if f.name != name {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == function {
				return nil
			}
		}
	}
	return []string{fmt.Sprintf("the walk stops at %s in %s, which does not declare it", function, name)}
}

// marks are what an anchor leaves out of its heading.
var marks = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors are the names by which links reach the headings of a document.
func (t *tree) anchors(document string) (out []string) {
	for _, h := range t.headings(document) {
		out = append(out, strings.ReplaceAll(strings.ToLower(marks.ReplaceAllString(h, "")), " ", "-"))
	}
	return out
}
