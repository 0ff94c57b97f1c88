package workflow

import "testing"

// Whoever writes an edge is told how to say it; what is hinted at is no mistake itself.
func TestKeyHintOfAnArrow(t *testing.T) {
	for text, want := range map[string]string{
		"a => b":        "write a: b, with a colon and a space; if b is to wait for a, write b: {after: a} under tasks",
		"a -> b":        "write a: b, with a colon and a space; if b is to wait for a, write b: {after: a} under tasks",
		"timeout => 5m": "write timeout: 5m, with a colon and a space",
		"a = b":         "write a: b, with a colon and a space",
		"a -> b -> c":   "if b is to wait for a, write b: {after: a} under tasks",
		"a => b => c":   "if b is to wait for a, write b: {after: a} under tasks",
		"a => b c => d": "write a: b, with a colon and a space, and so each of these lines; if b is to wait for a, write b: {after: a} under tasks",
		"a = b c = d":   "write a: b, with a colon and a space, and so each of these lines",
		"x = 1 y = 2":   "write x: 1, with a colon and a space, and so each of these lines",
		"a == b":        "",
		"=> b":          "write KEY: b, with a colon and a space, without =>",
		"=":             "write KEY:, with a colon and a space, without =",
		"in => [x]":     "write in: [x], with a colon and a space",
		"<lxpdl>":       "this is XML: mutirao workflow import --from lxpdl, pdl or wed-xml translates such definitions",
	} {
		if got := entryHint(text); got != want {
			t.Errorf("of %q the hint is %q, want %q", text, got, want)
		}
	}
}

// Beside definitions nobody has tasks to put anything under.
func TestKeyHintElsewhere(t *testing.T) {
	for text, want := range map[string]string{
		"a => b":                "write a: b, with a colon and a space",
		"shards = 2 preset = x": "write shards: 2, with a colon and a space, and so each of these lines",
		"a => b => c":           "",
		"a == b":                "",
		"one two = three":       "",
	} {
		if got := KeyHint(text); got != want {
			t.Errorf("of %q the hint is %q, want %q", text, got, want)
		}
	}
}
