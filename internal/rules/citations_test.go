package rules_test

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	citationWhy = "a reader must be able to look it up here"
	fileMend    = "name a file of this repository, by its path from the root, or by its name alone in its own folder"
	sectionMend = "after the document and a comma stands one of its headings, or the part of one before its colon"
)

// cited is a file that a comment names.
var cited = regexp.MustCompile(`(?:[\w.-]+/)*[\w-]+\.(?:md|go|py)\b`)

// citationComplaints finds files, and sections of documents, that comments name
// and that are not there. Comments are those of Go, tests included, and lines of
// other texts that begin with #. A section follows its document and a comma:
//
//	(docs/design.md, idea 8)
func citationComplaints(t *tree) []string {
	var out []string
	for _, name := range t.texts() {
		src, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		comments := hashComments
		if path.Ext(name) == ".go" {
			comments = goComments
		}
		for _, c := range comments(src) {
			out = append(out, t.citations(name, c)...)
		}
	}
	return out
}

// texts are the files of the tree that have comments, in the order of paths.
func (t *tree) texts() (names []string) {
	t.walk(func(name string) {
		switch path.Ext(name) {
		case ".go", ".yaml", ".txt", ".service", ".py":
			names = append(names, name)
		}
		if path.Base(name) == "Makefile" {
			names = append(names, name)
		}
	})
	return names
}

// walk calls fn for every file that is part of the repository.
func (t *tree) walk(fn func(name string)) {
	_ = fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir():
			fn(name)
		}
		return nil
	})
}

// remark is a comment: its lines, and the number of the first.
type remark struct {
	line int
	text []string
}

// add puts a line to the last remark, or begins another if it does not follow on it.
func add(to []remark, line int, text string) []remark {
	if n := len(to); n > 0 && to[n-1].line+len(to[n-1].text) == line {
		to[n-1].text = append(to[n-1].text, text)
		return to
	}
	return append(to, remark{line, []string{text}})
}

// goComments are the comments of a Go file. Those on lines that follow each other
// are one.
func goComments(src []byte) (out []remark) {
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(f, src, nil, scanner.ScanComments)
	for {
		pos, kind, text := s.Scan()
		switch kind {
		case token.EOF:
			return out
		case token.COMMENT:
			line := f.Line(pos)
			for i, part := range strings.Split(text, "\n") {
				out = add(out, line+i, strings.Trim(part, "/* \t"))
			}
		}
	}
}

// hashComments are the lines of a text that begin with #.
func hashComments(src []byte) (out []remark) {
	for i, line := range bytes.Split(src, []byte("\n")) {
		if text, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("#")); ok {
			out = add(out, i+1, strings.TrimSpace(string(text)))
		}
	}
	return out
}

// citations looks up what one comment of a file names.
func (t *tree) citations(file string, c remark) (out []string) {
	text := strings.Join(c.text, " ")
	for _, at := range cited.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		found := t.lookUp(path.Dir(file), name)
		what, mend := "", ""
		switch section, named := strings.CutPrefix(text[at[1]:], ", "); {
		case found == "":
			what, mend = fmt.Sprintf("it names %s, which is not there", name), fileMend
		case path.Ext(name) == ".md" && named && !t.hasSection(found, section):
			what, mend = fmt.Sprintf("%s has no section %.40q", found, section), sectionMend
		default:
			continue
		}
		line := c.line
		for n := at[0]; line < c.line+len(c.text)-1 && n > len(c.text[line-c.line]); line++ {
			n -= len(c.text[line-c.line]) + 1
		}
		out = append(out, fmt.Sprintf("%s:%d: %s: %s; %s", file, line, what, citationWhy, mend))
	}
	return out
}

// lookUp finds a file by its path from the root, or from the folder in which it is
// named. Empty: there is none.
func (t *tree) lookUp(dir, name string) string {
	for _, p := range []string{path.Clean(name), path.Join(dir, name)} {
		if _, err := fs.Stat(t.fsys, p); err == nil {
			return p
		}
	}
	return ""
}

// hasSection reports whether a text goes on with the name of one of the
// document's sections.
func (t *tree) hasSection(document, text string) bool {
	for _, h := range t.headings(document) {
		short, _, _ := strings.Cut(h, ":")
		if beginsWith(text, h) || beginsWith(text, short) {
			return true
		}
	}
	return false
}

// beginsWith reports whether a text begins with these words, in whatever case.
func beginsWith(text, words string) bool {
	if len(text) < len(words) || !strings.EqualFold(text[:len(words)], words) {
		return false
	}
	return !regexp.MustCompile(`^\w`).MatchString(text[len(words):])
}

// headings are those of a document, without marks for code.
func (t *tree) headings(document string) (out []string) {
	src, err := fs.ReadFile(t.fsys, document)
	if err != nil {
		return nil
	}
	code := false
	for line := range strings.Lines(string(src)) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if title := strings.TrimLeft(line, "#"); !code && title != line && strings.HasPrefix(title, " ") {
			out = append(out, strings.ReplaceAll(strings.TrimSpace(title), "`", ""))
		}
	}
	return out
}
