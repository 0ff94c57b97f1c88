package workflow

import (
	"errors"
	"testing"
)

func TestGuardYAML(t *testing.T) {
	var none []int
	err := GuardYAML(func() error { none[0] = 1; return nil })
	if !errors.Is(err, ErrYAMLLibrary) {
		t.Errorf("a panic of the library gives %v", err)
	}
	if err := GuardYAML(func() error { return errors.ErrUnsupported }); err != errors.ErrUnsupported {
		t.Errorf("an error of the library became %v", err)
	}
}

func TestWithoutComment(t *testing.T) {
	for line, want := range map[string]string{
		"a: b # c: d": "a: b", "# a": "", "a#b: c": "a#b: c", "a: 'b # c' # d": "a: 'b # c'",
		`- "a # b": c`: `- "a # b": c`,
		`a: it's # b`:  "a: it's", `a: say "b # c"`: `a: say "b`, `a: {b: "# c", d: ' #'} #e`: `a: {b: "# c", d: ' #'}`,
	} {
		if got := withoutComment(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
