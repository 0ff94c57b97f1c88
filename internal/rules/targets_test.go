package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CI builds each system that the README and docs/operating.md name, and they name each that it builds.
func TestTargets(t *testing.T) {
	script, err := os.ReadFile("../../.ci/cross")
	if err != nil {
		t.Fatal(err)
	}
	loop := regexp.MustCompile(`(?m)^for target in (.*); do$`).FindSubmatch(script)
	if loop == nil {
		t.Fatal(".ci/cross has no list of targets")
	}
	built := strings.Fields(string(loop[1]))
	slices.Sort(built)
	target := regexp.MustCompile(`\b(linux|windows|darwin|android|freebsd)/[a-z0-9]+\b`)
	for _, name := range []string{"../../README.md", "../../docs/operating.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		named := target.FindAllString(string(text), -1)
		slices.Sort(named)
		if named = slices.Compact(named); !slices.Equal(named, built) {
			t.Errorf("%s names %v, and .ci/cross builds %v", strings.TrimPrefix(name, "../../"), named, built)
		}
	}
}
