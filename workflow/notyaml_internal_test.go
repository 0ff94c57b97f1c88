package workflow

import "testing"

// Whoever writes an edge is told how to say it; what is hinted at is no mistake itself.
func TestKeyHintOfAnArrow(t *testing.T) {
	for text, want := range map[string]string{
		"a => b":        "write a: b, with a colon and a space; if b is to wait for a, write b: {after: a} under tasks",
		"a -> b":        "write a: b, with a colon and a space; if b is to wait for a, write b: {after: a} under tasks",
		"timeout => 5m": "write timeout: 5m, with a colon and a space",
		"a = b":         "write a: b, with a colon and a space",
		"in => [x]":     "write in: [x], with a colon and a space",
	} {
		if got := KeyHint(text); got != want {
			t.Errorf("of %q the hint is %q, want %q", text, got, want)
		}
	}
}
