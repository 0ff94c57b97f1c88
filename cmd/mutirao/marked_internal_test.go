package main

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What of an amendment has no effect is marked where it stands.
func TestWhatHasNoEffectIsMarked(t *testing.T) {
	const mark = " (without effect, as another was made side by side)"
	lines := []string{"condition high: a >= 5", "condition low: a < 0"}
	for _, tt := range []struct {
		made api.AmendmentMade
		want string
	}{
		{api.AmendmentMade{Lines: lines}, "condition high: a >= 5; condition low: a < 0"},
		{api.AmendmentMade{Lines: lines, Lost: lines[:1]}, "condition high: a >= 5" + mark + "; condition low: a < 0"},
		{api.AmendmentMade{Lines: lines, Lost: lines}, "condition high: a >= 5" + mark + "; condition low: a < 0" + mark},
		{api.AmendmentMade{Lines: lines[:1], Lost: []string{"task x is new"}},
			"condition high: a >= 5; task x is new" + mark},
		{api.AmendmentMade{Lines: lines, Lost: lines, Late: true}, "condition high: a >= 5; condition low: a < 0"},
	} {
		if got := strings.Join(marked(tt.made), "; "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.made, got, tt.want)
		}
	}
}
