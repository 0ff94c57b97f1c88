// Package golden compares what a test makes with a file that was looked at: a document,
// the text of a page, a picture. Only tests use it.
//
// Promises: nothing is written but under the flag -rewrite, which it gives to the test's
// program; then the file holds what the test makes. Read the difference before it is
// committed.
//
// It imports no other package of ours; only tests import it.
package golden

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what is made into the files that it is compared with")

// Compare fails the test where a file does not hold what was made; with -rewrite it writes
// it first. A failure shows the lines that differ.
func Compare[T string | []byte](t testing.TB, file string, made T) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(made)) {
		test, _, _ := strings.Cut(t.Name(), "/")
		t.Errorf("%s is out of date (-file +made): run go test -run %s -rewrite, and read the difference:\n%s",
			file, test, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(made), "\n")))
	}
}
