package sim_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, from here.
const root = "../.."

// shownBy are the names in the last column of the tables.
var shownBy = regexp.MustCompile("`([^`]+)`")

// unshown is what a row of docs/security.md says that names nothing.
const unshown = "not shown by a test"

// Every row of docs/failures.md names what shows it, and all that it names
// exists.
func TestFailuresAreShown(t *testing.T) {
	rows, without := shown(t, "docs/failures.md")
	for _, line := range without {
		t.Errorf("nothing shows: %s", line)
	}
	if rows < 30 {
		t.Errorf("%d rows were read of docs/failures.md: want its tables, each with a last column \"shown by\"", rows)
	}
}

// Every row of docs/security.md about what an attacker can do names what shows
// it, or says that nothing does.
func TestSecurityIsShown(t *testing.T) {
	rows, without := shown(t, "docs/security.md")
	for _, line := range without {
		if !strings.Contains(line, unshown) {
			t.Errorf("nothing shows, and it does not say %q: %s", unshown, line)
		}
	}
	if rows < 90 {
		t.Errorf("%d rows were read of docs/security.md: want its tables, each with a last column \"shown by\"", rows)
	}
	attacked := strings.SplitAfter(text(t, "internal/test/testliar/attacks.go"), "var Attacks = ")[1]
	list, _, _ := strings.Cut(attacked, "\n}\n")
	for _, a := range regexp.MustCompile(`\t\{"([a-z-]+)", "`).FindAllStringSubmatch(list, -1) {
		if err := contains(t, "docs/security.md", "\n| `"+a[1]+"`: "); err != nil {
			t.Errorf("the figures lack an attack: %v", err)
		}
	}
}

// Every row of docs/tests.md names a test that there is.
func TestPromisesAreShown(t *testing.T) {
	rows, without := shown(t, "docs/tests.md")
	for _, line := range without {
		t.Errorf("nothing shows: %s", line)
	}
	if rows < 20 {
		t.Errorf("%d rows were read of docs/tests.md: want its tables, each with a last column \"shown by\"", rows)
	}
}

// shown reads the tables of a document whose last column is headed "shown by", and
// checks that what their rows name exists. It returns how many rows there are, and
// those that name nothing.
func shown(t *testing.T, file string) (rows int, without []string) {
	in := false
	for line := range strings.Lines(text(t, file)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			in = false
			continue
		}
		last := strings.TrimSpace(cells[len(cells)-2])
		if last == "shown by" {
			in = true
			continue
		}
		if !in || strings.Trim(last, "-") == "" {
			continue
		}
		rows++
		names := shownBy.FindAllStringSubmatch(last, -1)
		if len(names) == 0 {
			without = append(without, line)
		}
		for _, n := range names {
			if err := exists(t, n[1]); err != nil {
				t.Errorf("%q in the row\n%s%v", n[1], line, err)
			}
		}
	}
	return rows, without
}

// exists looks up one name, as docs/failures.md and docs/security.md explain them.
func exists(t *testing.T, name string) error {
	kind, rest, ok := strings.Cut(name, ":")
	if !ok {
		return testExists(t, name)
	}
	switch kind {
	case "sim":
		return contains(t, "internal/sim/plan.go", fmt.Sprintf("FaultKind = %q", rest))
	case "chaos":
		return contains(t, "test/chaos/faults_test.go", fmt.Sprintf("{%q, ", rest))
	case "mutant":
		return errors.Join(contains(t, "internal/sim/mutants/mutants.go", fmt.Sprintf("{name: %q,", rest)),
			caught(t, rest))
	case "seed":
		return contains(t, "internal/sim/testdata/failed-seeds.txt", "\n"+rest+" ")
	case "figures":
		_, err := os.Stat(filepath.Join(root, "test/figures/testdata", rest+".txtar"))
		return err
	case "cmd":
		_, err := os.Stat(filepath.Join(root, "cmd/mutirao/testdata", rest+".txtar"))
		return err
	case "liar":
		return contains(t, "internal/test/testliar/attacks.go", fmt.Sprintf("\t{%q, ", rest))
	case "list":
		_, err := os.Stat(filepath.Join(root, "membership/testdata/list", rest+".txt"))
		return err
	case "choreo", "contingency":
		_, err := os.Stat(filepath.Join(root, kind, "testdata/scenarios", rest+".txt"))
		return err
	}
	return fmt.Errorf("what is %q?", kind)
}

// caught looks a mutant up in the table of docs/reliability.md: what is not caught by the
// simulator shows nothing.
func caught(t *testing.T, mutant string) error {
	t.Helper()
	_, table, _ := strings.Cut(text(t, "docs/reliability.md"), "\n### Mutants\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !slices.Contains(strings.Split(strings.TrimSpace(cells[1]), ", "), mutant) {
			continue
		}
		if by := strings.TrimSpace(cells[3]); strings.HasPrefix(by, "not ") {
			return fmt.Errorf("by docs/reliability.md it is caught %s: name the test that fails with it", by)
		}
		return nil
	}
	return fmt.Errorf("docs/reliability.md does not say whether it is caught")
}

// testExists finds a test by its folder and name.
func testExists(t *testing.T, name string) error {
	dir, test, ok := strings.Cut(name, ".")
	if !ok {
		dir, test = "internal/sim", name
	}
	files, err := fs.Glob(os.DirFS(filepath.Join(root, dir)), "*_test.go")
	if err != nil {
		return err
	}
	for _, f := range files {
		if contains(t, filepath.Join(dir, f), "func "+test+"(") == nil {
			return nil
		}
	}
	return fmt.Errorf("no such test in %s", dir)
}

func contains(t *testing.T, file, what string) error {
	if !strings.Contains("\n"+text(t, file), what) {
		return fmt.Errorf("%s has no %q", file, strings.TrimSpace(what))
	}
	return nil
}

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
