package sim_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the module's folder, from here.
const root = "../.."

// shownBy are the names in the last column of docs/failures.md.
var shownBy = regexp.MustCompile("`([^`]+)`")

// Every row of docs/failures.md names what shows it, and all that it names
// exists.
func TestFailuresAreShown(t *testing.T) {
	doc := text(t, "docs/failures.md")
	rows := 0
	for line := range strings.Lines(doc) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			continue
		}
		last := strings.TrimSpace(cells[len(cells)-2])
		if last == "shown by" || strings.Trim(last, "-") == "" {
			continue
		}
		rows++
		names := shownBy.FindAllStringSubmatch(last, -1)
		if len(names) == 0 {
			t.Errorf("nothing shows: %s", line)
		}
		for _, n := range names {
			if err := exists(t, n[1]); err != nil {
				t.Errorf("%q in the row\n%s%v", n[1], line, err)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows were read of docs/failures.md: want its tables, each with a last column \"shown by\"", rows)
	}
}

// exists looks up one name, as docs/failures.md explains them.
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
		return contains(t, "internal/sim/mutants/mutants.go", fmt.Sprintf("{name: %q,", rest))
	case "seed":
		return contains(t, "internal/sim/testdata/failed-seeds.txt", "\n"+rest+" ")
	case "figures":
		_, err := os.Stat(filepath.Join(root, "test/figures/testdata", rest+".txtar"))
		return err
	case "list":
		_, err := os.Stat(filepath.Join(root, "membership/testdata/list", rest+".txt"))
		return err
	case "choreo", "contingency":
		_, err := os.Stat(filepath.Join(root, kind, "testdata/scenarios", rest+".txt"))
		return err
	}
	return fmt.Errorf("what is %q?", kind)
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
