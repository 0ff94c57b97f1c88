package study

import (
	"strings"
	"testing"
)

// Letters that take two columns are cut to the room that there is, and counted as two.
func TestWideNamesInCharts(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("救", 20): strings.Repeat("救", 9) + "…", strings.Repeat("é", 20): strings.Repeat("é", 18) + "…",
		"e\u0301é": "e\u0301é",
	} {
		if got := fit(text, 19*digit); got != want {
			t.Errorf("%s in 19 columns: %s, want %s", text, got, want)
		}
	}
	f := figure{series: []string{"救護", "b"}}
	d := newDrawing(100, 100, "", "")
	f.drawLegend(d)
	if second := px(16 + 16 + 28 + 4*digit + 10); !strings.Contains(d.String(), `<text x="`+second+`" y="56" >b<`) {
		t.Errorf("the second mark does not begin at %s:\n%s", second, d)
	}
}
