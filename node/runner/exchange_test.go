package runner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerptIsOneShortLine(t *testing.T) {
	for in, want := range map[string]string{
		"  a\n\tb  ":   "a b",
		"abcdefghijkl": "abcdefg…",
		"ááááááá":      "ááá…",
		"\xff":         "�",
		"":             "",
	} {
		if got := excerpt([]byte(in), 10); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	tl := &tail{max: 20}
	for i := range 100 {
		fmt.Fprintf(tl, "line %d\n\n", i)
	}
	if got := tl.lastLines(2); got != "line 98\nline 99" {
		t.Errorf("got %q", got)
	}
	fmt.Fprint(tl, strings.Repeat("x", 100), "\xffend")
	if got := tl.lastLines(5); got != strings.Repeat("x", 16)+"�end" {
		t.Errorf("got %q", got)
	}
}

// Whatever an application answers: no crash, and outputs hold only what a
// workflow.Value may be.
func FuzzDecodeOutputs(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"a": [1, 2.5, null, {"b": "c"}]}`, `{"n": 1e400}`, "null", "[1]", "{} {}", "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		outputs, err := DecodeOutputs(answer)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("reason is not valid text: %q", err)
			}
			return
		}
		for name, v := range outputs {
			checkValue(t, string(name), v)
		}
	})
}

func checkValue(t *testing.T, name string, v any) {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
	case []any:
		for _, e := range v {
			checkValue(t, name, e)
		}
	case map[string]any:
		for k, e := range v {
			checkValue(t, k, e)
		}
	case json.Number:
		t.Errorf("%s: a number was left undecided: %s", name, v)
	default:
		t.Errorf("%s: %T is no workflow.Value", name, v)
	}
}
