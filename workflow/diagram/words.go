package diagram

import (
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Languages of the words of people, for Options.Language: Portuguese is that of Brazil.
const (
	English    = "en"
	Portuguese = "pt-BR"
)

// english are the states of tasks in the words of people; all else of a picture is in such words.
var english = map[string]string{
	string(workflow.NotReady): "not ready", string(workflow.Ready): "ready", string(workflow.Running): "running",
	string(workflow.Succeeded): "succeeded", string(workflow.Failed): "failed", string(workflow.Aborted): "aborted",
	string(workflow.Blocked): "blocked", string(workflow.Skipped): "skipped",
}

// portuguese are the words of a picture that are not the definition's, by what they are in English.
var portuguese = map[string]string{
	string(workflow.NotReady): "ainda não pronta", string(workflow.Ready): "pronta",
	string(workflow.Running):   "em execução",
	string(workflow.Succeeded): "concluída", string(workflow.Failed): "falhou", string(workflow.Aborted): "abortada",
	string(workflow.Blocked): "bloqueada", string(workflow.Skipped): "dispensada",
	string(workflow.Manual): "manual", string(workflow.SemiAutomatic): "semiautomática",
	string(workflow.Automatic):               "automática",
	string(workflow.SubWorkflow):             "fluxo",
	"any available partner":                  "qualquer parceiro disponível",
	"anyone":                                 "qualquer pessoa",
	"workflow %s":                            "fluxo %s",
	"if %s":                                  "se %s",
	"not %s":                                 "não %s",
	"succeeded":                              "concluída",
	"failed":                                 "falhou",
	"ready":                                  "pronta",
	"running":                                "em execução",
	"contingency":                            "contingência",
	"undo":                                   "desfaz",
	"partition %s":                           "partição %s",
	"after %s":                               "depois de %s",
	"when %s":                                "quando %s",
	"timeout %s":                             "prazo %s",
	"starts by itself when undecided for %s": "começa sozinha se ficar indefinida por %s",
	"when undecided for %s":                  "se ficar indefinida por %s",
	"after success":                          "após sucesso",
	"on failure":                             "se falhar",
	"other":                                  "outro",
	"starts by itself":                       "começa sozinha",
	"%d tasks in %d partitions.":             "%d tarefas em %d partições.",
	"%d of %d arrows are left out, the longest ones: the format dot has them all": "%d de %d setas não aparecem, as mais longas: o formato dot tem todas",
	"%d tasks, from %s to %s":     "%d tarefas, de %s a %s",
	"as known %s ago":             "como se sabia há %s",
	"nothing was heard of it yet": "sem notícia ainda",
}

// say is a text of the picture, in its language.
func (s *scene) say(text string, args ...any) string {
	words := map[string]map[string]string{English: english, Portuguese: portuguese}[s.language]
	if t, ok := words[text]; ok {
		text = t
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// age is since when something is known, in the picture's language.
func (s *scene) age(known string) string {
	if rest, ok := strings.CutPrefix(known, "as known "); ok {
		if span, ok := strings.CutSuffix(rest, " ago"); ok {
			return s.say("as known %s ago", span)
		}
	}
	return s.say(known)
}
