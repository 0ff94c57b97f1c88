package plain_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "incêndio": 8, "e\u0301": 1, "救護": 4, "救護-2": 6, "🔥": 2} {
		if got := plain.Width(s); got != want {
			t.Errorf("%q: %d columns, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abcd", 4, "abcd"}, {"abcde", 4, "abc…"}, {"救護車", 6, "救護車"}, {"救護車", 5, "救護…"}, {"救護車", 4, "救…"}} {
		if got := plain.Cut(c.s, c.n); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.s, c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abcd", 4, "abcd"}, {"abcde", 4, "a…"}, {"救護車", 9, "救護車"}, {"救護車の", 9, "救護…"}, {"救護車の", 8, "救…"},
		{"abc", 3, "abc"}, {"abcd", 3, "…"}, {"a\xff", 5, "a\ufffd"}} {
		if got := plain.CutBytes(c.s, c.n); got != c.want {
			t.Errorf("%q in %d bytes: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
