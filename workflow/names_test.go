package workflow

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
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
	{"น้ำ-2", ""},
	{"ກຳລັງ", ""},
	{"ໜອງ-ໝາ", ""},
	{"և-խումբ", ""},
	{"ㄱ-조", ""},
	{"instal·lació", ""},
	{"INSTAL·LACIÓ", ""},
	{"instaŀlació", "usual form: instal·lació"},
	{"a·b", "· only in l·l"},
	{"l·", "· only in l·l"},
	{"می\u200cشود", ""},
	{"دا\u200cن", "a joiner"},
	{"می\u200c", "a joiner"},
	{"क्\u200cष", ""},
	{"क्\u200dष-2", ""},
	{"ශ්\u200dරී", ""},
	{"അവന്\u200dമ", "usual form: അവൻമ"},
	{"kʷən", ""},
	{"क\u093cलम", ""},
	{"टीम-A", ""},
	{"サーバー室", ""},
	{strings.Repeat("é", MaxName/2), ""},

	{"", "letters, digits"},
	{"-dash", "letters, digits"},
	{"two words", "letters, digits"},
	{"a/b", "letters, digits"},
	{"a\"b", "letters, digits"},
	{"\u0301a", "letters, digits"},
	{"٣", "letters, digits"}, // 3, but not for everybody
	{"a\u202eb", "letters, digits"},
	{"a\u200db", "a joiner"},
	{"می\u2067شود", "letters, digits"},
	{"a\u3164", "letters, digits"}, // a letter that nobody sees
	{"a\xff", "letters, digits"},
	{"🔥", "letters, digits"},
	{strings.Repeat("é", MaxName/2) + "x", "at most 128 bytes"},
	{"incendie-e\u0301teint", "usual form: incendie-éteint"},
	{"ｃrew", "usual form: crew"},
	{"ﬁre", "usual form: fire"},
	{"\u0958लम", "usual form: क\u093cलम"},
	{"น\u0e49\u0e4d\u0e32", "usual form: น้ำ"},
	{"น\u0e4d\u0e49\u0e32", "usual form: น้ำ"},
	{strings.Repeat("\u0958", MaxName/3), "at most 128 bytes"},
	{"µ-lab", "one alphabet"},
	{"טיםא-टीम", "one alphabet"},
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

// The name of the responsible user is taken in the form in which users are found; it may have been typed in another.
func TestTheResponsibleIsNamedInTheUsualForm(t *testing.T) {
	d, err := Parse("zoe.yaml", []byte("workflow: w\nresponsible: Zoe\u0308\ntasks: {a: {type: manual}}\n"))
	if err != nil || d.Responsible != "Zo\u00eb" {
		t.Errorf("the responsible user is %v, %v", d, err)
	}
}

// Every letter may stand in a name, or the rule says which others may in its place;
// but for those that are words with spaces, an accent that is no letter, and ŀ, which
// stands before another l alone.
func TestEveryLetterHasAName(t *testing.T) {
	var none []rune
	for r := range rune(unicode.MaxRune) {
		if !unicode.IsLetter(r) || notInName(r) {
			continue
		}
		name := string(r)
		rule := NameRule(name)
		_, usual, found := strings.Cut(rule, "usual form: ")
		switch {
		case rule == "":
		case !found:
			none = append(none, r)
		case NameRule(usual) != "":
			t.Errorf("%q: write %q, which is refused: %s", name, usual, NameRule(usual))
		}
	}
	if words := 21; len(none) > words {
		t.Errorf("no form of these is a name: %q", none)
	}
}

// Whatever the text: what is made of it is a name, and a name stays what it is.
func FuzzMakeName(f *testing.F) {
	for _, c := range nameRules {
		f.Add(c.name)
	}
	for _, s := range []string{
		"Médico de guardia", "Оператор A", "e\u0301 \u0301", "\u200d", "น\u0e4d x \u0e32", strings.Repeat("ﷺ", 20),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := MakeName(s)
		if name != "" && !ValidName(name) {
			t.Errorf("%q: %q is no name: %s", s, name, NameRule(name))
		}
		if ValidName(s) && strings.TrimRight(s, "-") != name {
			t.Errorf("%q became %q", s, name)
		}
		if usual := usualForm(s); usualForm(usual) != usual {
			t.Errorf("%q: its usual form is %q, whose usual form is %q", s, usual, usualForm(usual))
		}
	})
}

// Editors take every name that the parser takes.
func TestSchemaHasTheNames(t *testing.T) {
	src, err := os.ReadFile("../configs/workflow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Name struct {
				Pattern   string
				MaxLength int
			}
			Produces struct {
				Properties struct {
					Readers struct {
						OneOf []struct{ MaxItems int }
					}
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(src, &schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Defs.Name.MaxLength; got != MaxName {
		t.Errorf("names of the schema have at most %d letters, want %d", got, MaxName)
	}
	if lists := schema.Defs.Produces.Properties.Readers.OneOf; len(lists) != 2 || lists[1].MaxItems != MaxReaders {
		t.Errorf("the readers of the schema are %v, want at most %d", lists, MaxReaders)
	}
	pattern := regexp.MustCompile(schema.Defs.Name.Pattern)
	for _, c := range nameRules {
		switch matches := pattern.MatchString(c.name); {
		case c.rule == "" && !matches:
			t.Errorf("the schema does not take %q", c.name)
		case strings.HasPrefix(c.rule, "letters, digits") && matches && !strings.Contains(c.name, "\u3164"):
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

// A label is what people read, and so what they type: it means the task that has it, however it is written.
func TestLabelsMeanNames(t *testing.T) {
	names := []string{"look", "tell", "tell-2", "bare"}
	labels := []string{"Olhar o rio", "Avisar", "AVISAR", ""}
	for text, want := range map[string]string{
		"Olhar o rio": "look", " olhar  o RIO": "look", "Olhar o rip": "look", "lok": "look", "avisar": "tell or tell-2",
		"LOOK": "look", "": "", "etwas ganz anderes": "", strings.Repeat("o", 2*MaxName): "",
	} {
		if got := Meant(text, names, labels); got != want {
			t.Errorf("%q means %q, want %q", text, got, want)
		}
	}
}
