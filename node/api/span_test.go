package api

import (
	"encoding/json"
	"testing"
	"time"
)

// A duration is a text in JSON, and a number of nanoseconds is read as before.
func TestSpansInJSON(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"2h"`: 2 * time.Hour, `"2d"`: 48 * time.Hour, `"1h30m"`: 90 * time.Minute, `""`: 0, `0`: 0,
		`7200000000000`: 2 * time.Hour, `-1`: -1, `null`: 0,
	} {
		var s Span
		if err := json.Unmarshal([]byte(text), &s); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %s, %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{`"2 hours"`, `"-2h"`, `1.5`, `true`, `"1e99d"`, `{}`} {
		var s Span
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s is read as %s", text, s)
		}
	}
	for d, want := range map[time.Duration]string{0: `""`, 36 * time.Hour: `"1d12h"`, 90 * time.Second: `"1m30s"`} {
		if b, err := json.Marshal(Span(d)); err != nil || string(b) != want {
			t.Errorf("%s is written as %s, %v, want %s", d, b, err, want)
		}
	}
}
