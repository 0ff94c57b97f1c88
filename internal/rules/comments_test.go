package rules_test

import (
	"fmt"
	"go/token"
	"regexp"
	"strings"
)

const (
	commentWhy  = "a reader meets a package by its comment"
	commentMend = "say in doc.go what it is for, what it promises and who may import it"
)

// sentenceEnd is the end of a sentence, well enough to count them.
var sentenceEnd = regexp.MustCompile(`[.!?]["')]?(\s|$)`)

// commentComplaints finds packages that do not have one package comment of at
// least two sentences, in one file.
func commentComplaints(t *tree) []string {
	var out []string
	for _, dir := range t.dirs() {
		var first token.Pos
		var commented []file
		for _, f := range t.files {
			if f.dir != dir {
				continue
			}
			if !first.IsValid() {
				first = f.syntax.Package
			}
			if strings.TrimSpace(f.syntax.Doc.Text()) != "" {
				commented = append(commented, f)
			}
		}
		switch len(commented) {
		case 0:
			out = append(out, t.complaint(first, fmt.Sprintf("package %s has no package comment", dir), commentWhy,
				commentMend))
		case 1:
			out = append(out, t.checkComment(commented[0])...)
		default:
			out = append(out, t.complaint(commented[1].syntax.Package,
				fmt.Sprintf("package %s has a second package comment, besides that in %s", dir, commented[0].name),
				"go doc runs them together in the order of files",
				"move it to the other, or part it from the package clause by a blank line"))
		}
	}
	return out
}

// checkComment looks at the one package comment of a package.
func (t *tree) checkComment(f file) []string {
	text, opening := f.syntax.Doc.Text(), "Package "+f.syntax.Name.Name+" "
	var out []string
	if f.syntax.Name.Name != "main" && !strings.HasPrefix(text, opening) {
		out = append(out, t.complaint(f.syntax.Doc.Pos(),
			fmt.Sprintf("the package comment of %s does not begin with %q", f.dir, strings.TrimSpace(opening)),
			"go doc and its readers expect that", "rewrite its first sentence"))
	}
	if n := len(sentenceEnd.FindAllString(text, -1)); n < 2 {
		out = append(out, t.complaint(f.syntax.Doc.Pos(),
			fmt.Sprintf("the package comment of %s has fewer than two sentences", f.dir), commentWhy, commentMend))
	}
	return out
}
