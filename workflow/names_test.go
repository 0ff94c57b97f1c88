package workflow

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// nameRules are what may name a thing, and else what is allowed in its place. \u0301
// is an accent of its own, \u0430 and \u0441 are Cyrillic.
var nameRules = []struct{ name, rule string }{
	{"fire-call", ""},
	{"9.b_c", ""},
	{"incêndio", ""},
	{"2º-pelotão", ""},
	{"пожар", ""},
	{"救護", ""},
	{"サーバー-2", ""},
	{"अग्नि", ""},
	{"حريق", ""},
	{"救護-team", ""},
	{"Löschzug-Süd", ""},
	{strings.Repeat("é", MaxName/2), ""},

	{"", "letters, digits"},
	{"-dash", "letters, digits"},
	{"two words", "letters, digits"},
	{"a/b", "letters, digits"},
	{"a\"b", "letters, digits"},
	{"\u0301a", "letters, digits"},
	{"٣", "letters, digits"}, // 3, but not for everybody
	{"a\u202eb", "letters, digits"},
	{"a\u200db", "letters, digits"},
	{"a\u3164", "letters, digits"}, // a letter that nobody sees
	{"a\xff", "letters, digits"},
	{"🔥", "letters, digits"},
	{strings.Repeat("é", MaxName/2) + "x", "at most 128 bytes"},
	{"incendie-e\u0301teint", "usual form"},
	{"ｃrew", "usual form"},
	{"ﬁre", "usual form"},
	{"\u0441rew-2", "one alphabet"},
	{"\u0430nа-o", "one alphabet"},
}

func TestNames(t *testing.T) {
	for _, c := range nameRules {
		got := NameRule(c.name)
		if (got == "") != (c.rule == "") || !strings.Contains(got, c.rule) {
			t.Errorf("%q: %q, want …%s…", c.name, got, c.rule)
		}
	}
}

// Editors take every name that the parser takes.
func TestSchemaHasTheNames(t *testing.T) {
	src, err := os.ReadFile("../configs/workflow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Name struct{ Pattern string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(src, &schema); err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(schema.Defs.Name.Pattern)
	for _, c := range nameRules {
		switch matches := pattern.MatchString(c.name); {
		case c.rule == "" && !matches:
			t.Errorf("the schema does not take %q", c.name)
		case strings.HasPrefix(c.rule, "letters") && matches && !strings.Contains(c.name, "\u3164"):
			t.Errorf("the schema takes %q", c.name)
		}
	}
}

// Letters that are longer in lower case than in upper case fit too.
func TestNearestOfLongLetters(t *testing.T) {
	word := strings.Repeat("Ⱥ", MaxName/2)
	if got, want := Nearest(word, []string{word[:len(word)-2] + "b"}), word[:len(word)-2]+"b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Nearest("救護車", []string{"救護隊", "пожар"}); got != "救護隊" {
		t.Errorf("got %q", got)
	}
}
