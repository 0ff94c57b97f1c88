package web

import (
	"slices"
	"strings"
	"testing"
)

// What the node words is said in Portuguese, with all that is in it; what the page does not know stays.
func TestReasons(t *testing.T) {
	en, pt := languages[0], languages[1]
	for text, want := range map[string]string{
		"instance created: engine at engine-7, station at station": "instância criada: engine at engine-7, station at station",
		"succeeded": "concluída", "succeeded: report = smoke": "concluída: report = smoke", "started, try 2, building upon a, b": "iniciada, tentativa 2, com base em a, b",
		"bia has procedure-1": "procedure-1 está com bia", "bia has weigh, not ana": "weigh está com bia, não com ana", "feed: bia has it": "feed: está com bia",
		"the result of weigh does not count, as the item was given back; it is kept": "o resultado de weigh não vale, porque a tarefa foi devolvida; está guardado",
		"a result of bia is kept and does not count, as the item was taken back":     "um resultado de bia está guardado e não vale, porque a tarefa foi retomada",
		"engine-7, who holds procedure-1, cannot be asked now":                       "engine-7, que tem procedure-1, não pode ser consultado agora",
		"procedure-1 failed, contingency (timeout)":                                  "procedure-1 falhou, contingency (tempo esgotado)",
		"weigh: it is for the role nurse, which you do not have":                     "weigh: é para o papel nurse, que você não tem",
		"try 1 failed: something => else":                                            "a tentativa 1 falhou: something => else", "failed: {1}": "não deu para fazer: {1}",
		"no water": "no water", "": "", "what nobody knows": "what nobody knows", "started twice": "started twice",
	} {
		if got := pt.reason(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if got := en.reason(text); got != text {
			t.Errorf("%q is %q in English", text, got)
		}
	}
	long := "failed: " + strings.Repeat("x", mostReason)
	if pt.reason(long) != long {
		t.Error("a long text is looked up")
	}
}

// Every row can be reached, and says in Portuguese all that is in the English one.
func TestEveryReasonCanBeReached(t *testing.T) {
	rows := languages[1].reasons
	if len(rows) < 70 {
		t.Fatalf("only %d rows", len(rows))
	}
	b, err := texts.ReadFile("strings/reasons.pt-BR.txt")
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		english, other, ok := strings.Cut(line, " => ")
		number := func(text string) (out []string) {
			for _, m := range blank.FindAllStringSubmatch(text, -1) {
				out = append(out, m[1])
			}
			slices.Sort(out)
			return out
		}
		if a, b := number(english), number(other); !ok || len(b) > len(a) || strings.Contains(other, "!}") {
			t.Errorf("%s: blanks %v and %v", line, a, b)
		}
		sample := blank.ReplaceAllString(english, "x${1}x")
		first := slices.IndexFunc(rows, func(r reasonRow) bool { return r.form.MatchString(sample) })
		if first != i {
			t.Errorf("%q is taken for row %d, and is row %d", sample, first, i)
		}
		i++
	}
}
