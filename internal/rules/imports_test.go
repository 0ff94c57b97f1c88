package rules_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const (
	importsWhy = "the map of the packages is read in their comments"
	importsAs  = "end it with the paragraph %q"
	mostNamed  = 7 // importers; of more it says that they are many
)

// importComplaints finds packages whose comment does not end with what they import of ours,
// and which of ours import them. Tests do not count. Programs, and packages with nothing but
// tests, need not say it.
func importComplaints(t *tree) []string {
	imports, importers := map[string][]string{}, map[string][]string{}
	for _, f := range t.files {
		for _, im := range f.imports {
			if dir, ours := own(im.path); ours {
				imports[f.dir] = append(imports[f.dir], dir)
				importers[dir] = append(importers[dir], f.dir)
			}
		}
	}
	declares := map[string]bool{}
	for _, f := range t.files {
		declares[f.dir] = declares[f.dir] || slices.ContainsFunc(f.syntax.Decls, declared)
	}
	var out []string
	for _, f := range t.files {
		if f.syntax.Doc == nil || f.syntax.Name.Name == "main" || !declares[f.dir] {
			continue
		}
		want := importSentence(imports[f.dir], importers[f.dir])
		if got := strings.Join(strings.Fields(f.syntax.Doc.Text()), " "); !strings.HasSuffix(got, ". "+want) {
			out = append(out, t.complaint(f.syntax.Doc.Pos(),
				fmt.Sprintf("the package comment of %s does not say what is imported", f.dir),
				importsWhy, fmt.Sprintf(importsAs, want)))
		}
	}
	return out
}

// declared reports whether a declaration is more than an import.
func declared(d ast.Decl) bool {
	g, general := d.(*ast.GenDecl)
	return !general || g.Tok != token.IMPORT
}

// importSentence is what the comment of a package ends with.
func importSentence(imports, importers []string) string {
	of, by := "no other package of ours", "only tests import it"
	if len(imports) > 0 {
		of, _ = enumerate(imports)
	}
	if names, n := enumerate(importers); n == 1 {
		by = names + " imports it"
	} else if n > mostNamed {
		by = "many packages import it"
	} else if n > 1 {
		by = names + " import it"
	}
	return fmt.Sprintf("It imports %s; %s.", of, by)
}

// enumerate lists names once each, in order, and says how many there are.
func enumerate(names []string) (string, int) {
	slices.Sort(names)
	names = slices.Compact(names)
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1], n
	}
	return strings.Join(names, ""), len(names)
}
