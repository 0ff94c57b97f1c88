package membership

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

// Escapes are letters of Cyrillic (\u04..), Greek (\u03..) or Armenian (\u05..).
func TestLookalikes(t *testing.T) {
	for _, pair := range [][2]string{
		{"cop", "\u0441\u043e\u0440"}, {"HETA", "\u0397\u0395\u03a4\u0391"}, {"one", "\u0585\u0578\u0065"},
		{"KAPTA", "\u041a\u0410\u0420\u0422\u0410"}, {"\u03ba\u03b1\u03c5", "\u043a\u0430\u0446"}, {"crew-1", "crew-l"},
		{"\u0e19\u0e49\u0e33", "\u0e19\u0e49\u0e4d\u0e32"}, {"caf\u00e9", "\u0441\u0430f\u0435\u0301"},
	} {
		alike := Looks(pair[0]) == Looks(pair[1])
		if want := pair[1] != "\u043a\u0430\u0446"; alike != want {
			t.Errorf("%+q and %+q look the same: %v, want %v", pair[0], pair[1], alike, want)
		}
	}
	seen := map[rune]bool{}
	for _, r := range strings.Join(strings.Fields(lookalikes), "") {
		if seen[r] {
			t.Errorf("%+q is there twice", r)
		}
		seen[r] = true
	}
}

func TestLabelOfLookalikes(t *testing.T) {
	tm := trusttest.New(t)
	l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
	named := func(name string) func(*Record) {
		return func(r *Record) {
			r.Chain = tm.Issue(t, tm.Ana,
				trust.Certificate{Partner: r.Partner, Name: name, Serial: trusttest.Serial(name)})
		}
	}
	for who, name := range map[string]string{"bia": "cop", "caio": "\u0441\u043e\u0440", "eve": "cops"} {
		if _, err := l.Apply(recordOf(t, tm, who, 1, 1, named(name)), 0, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	for who, want := range map[string]string{"bia": "cop (" + trusttest.IDOf("bia").Short() + ")", "eve": "cops"} {
		if got := l.Label(trusttest.IDOf(who)); got != want {
			t.Errorf("Label = %q, want %q", got, want)
		}
	}
	if x, _ := l.Namesake("\u0441\u043e\u0440", trusttest.IDOf("caio")); x.Record.Partner != trusttest.IDOf("bia") {
		t.Errorf("it looks like %q, want cop", x.Record.Name())
	}
}
