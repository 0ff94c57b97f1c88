package choreo

import (
	"flag"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
)

// Of what rapid draws a sample is checked, unless -rapid.checks says how many.
func TestMain(m *testing.M) {
	if !sample.Whole() {
		if err := flag.Set("rapid.checks", "40"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// checkUntil checks what is drawn, and draws more until each of these was counted: of what is rare a sample may have none.
func checkUntil(t *testing.T, prop func(*rapid.T), counted ...*int) {
	t.Helper()
	lacks := func(n *int) bool { return *n == 0 }
	for range 12 {
		rapid.Check(t, prop)
		if t.Failed() || !slices.ContainsFunc(counted, lacks) {
			return
		}
	}
	t.Error("want some of each of what is counted")
}
