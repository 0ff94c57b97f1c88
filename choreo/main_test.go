package choreo

import (
	"flag"
	"os"
	"testing"

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
