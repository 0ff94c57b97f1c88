package rules_test

import (
	"flag"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// rules are the house rules. Each looks at a tree and lists its complaints;
// testdata/NAME.txtar shows what it complains about.
var rules = []struct {
	name  string
	check func(*tree) []string
}{
	{"layers", layerComplaints},
	{"libraries", libraryComplaints},
	{"pure-imports", pureImportComplaints},
	{"pure-code", pureCodeComplaints},
	{"comments", commentComplaints},
	{"imports", importComplaints},
	{"citations", citationComplaints},
	{"documents", documentComplaints},
	{"dependencies", dependencyComplaints},
	{"panics", panicComplaints},
	{"programs", programComplaints},
	{"effects", effectComplaints},
	{"locks", lockComplaints},
	{"figures", figureComplaints},
	{"idle-permissions", idleComplaints},
}

// rewrite records what the rules say of the synthetic trees, as the flag of the
// same name does for scenarios elsewhere. Review the difference.
var rewrite = flag.Bool("rewrite", false, "record the complaints in testdata/*.txtar, and the figures of "+figuresIn)

// root is the folder of the module, from here.
const root = "../.."

// The house keeps its rules.
func TestHouse(t *testing.T) {
	if _, err := os.Stat(path.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	ours, err := readTree(os.DirFS(root), house)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(ours.dirs(), "workflow") {
		t.Fatalf("package workflow is not among the packages found: %v", ours.dirs())
	}
	if *rewrite {
		if err := countFigures(ours, path.Join(root, figuresIn)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, complaint := range r.check(ours) {
				t.Error(complaint)
			}
		})
	}
}

// Each rule can fail: its synthetic tree breaks it in every way, and the file
// "want" in it holds what the rule says. What the tree does besides is allowed.
// The permissions of the tree are in its file "permissions".
func TestEachRuleCanFail(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			name := "testdata/" + r.name + ".txtar"
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			complaints := r.check(readArchive(t, archive))
			if len(complaints) == 0 {
				t.Fatal("the rule finds nothing wrong with its synthetic tree")
			}
			got, want := strings.Join(complaints, "\n")+"\n", wanted(t, archive)
			if *rewrite {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(want.Data), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("complaints differ (-want +got):\n%s", diff)
			}
		})
	}
}

// readArchive makes a tree of the files in an archive.
func readArchive(t *testing.T, archive *txtar.Archive) *tree {
	t.Helper()
	files := make(fstest.MapFS)
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	var permissions []permission
	if f := files["permissions"]; f != nil {
		for line := range strings.Lines(string(f.Data)) {
			words := strings.SplitN(strings.TrimSpace(line), " ", 3)
			permissions = append(permissions, permission{words[0], words[1], words[2]})
		}
	}
	synthetic, err := readTree(files, permissions)
	if err != nil {
		t.Fatal(err)
	}
	return synthetic
}

// wanted is the file of an archive that holds the expected complaints.
func wanted(t *testing.T, archive *txtar.Archive) *txtar.File {
	t.Helper()
	for i := range archive.Files {
		if archive.Files[i].Name == "want" {
			return &archive.Files[i]
		}
	}
	t.Fatal("there is no file named want")
	return nil
}
