package study

import (
	"cmp"
	"fmt"
	"strings"
)

// Portuguese is the language of Brazil, for ChartsIn.
const Portuguese = "pt-BR"

// language is in what charts are worded, by the English words; nil: in English.
type language struct {
	words map[string]string
	comma string
}

// languages are those in which charts can be worded, besides English.
var languages = map[string]*language{Portuguese: {portuguese, ","}}

// portuguese are the words of charts.
var portuguese = map[string]string{
	"Time until the last instance finished":           "Tempo até o fim da última instância",
	"time units (less is better)":                     "unidades de tempo (menos é melhor)",
	"Time per instance":                               "Tempo por instância",
	"time units from arrival to end (less is better)": "unidades de tempo da chegada ao fim (menos é melhor)",
	"Quality of the allocation":                       "Qualidade da distribuição",
	"Q_total = Q_actual / Q_ideal (more is better)":   "Q_total = Q_actual / Q_ideal (mais é melhor)",

	"load": "carga", "instances": "instâncias", "all at once": "todas de uma vez", "by": "por", "over": "em",
	"%s, load %s":                       "%s, carga %s",
	"%s, all instances at once":         "%s, todas as instâncias de uma vez",
	"tasks %s, resources %s":            "tarefas %s, recursos %s",
	"%s, against the mean":              "%s, diante da média",
	"all conditions":                    "todas as condições",
	"mean of the five older mechanisms": "média dos cinco mecanismos mais antigos",
	"mean and 95 % confidence interval": "média e intervalo de confiança de 95 %",
	"; dashed: %s, %s":                  "; tracejado: %s, %s",
	"Scenario %s, seed %d, %d simulations. Means over all conditions:": "Cenário %s, semente %d, %d simulações. " +
		"Médias de todas as condições:",

	"%s, beside what was published": "%s, ao lado do que foi publicado",
	"Row against column: + significantly better, - worse, = no significant difference. In a frame: not as published.": "" +
		"Linha diante de coluna: + significativamente melhor, - pior, = sem diferença significativa. " +
		"Com moldura: não como publicado.",
	"not known here": "não se sabe aqui",
	"published: %s":  "publicado: %s",
	"Scenario %s, seed %d: %d of %d cells as published":   "Cenário %s, semente %d: %d de %d comparações como publicado",
	"; of %d more the published signs are not known here": "; de mais %d não se sabe aqui o que foi publicado",
	"%s against %s: %s, published %s":                     "%s diante de %s: %s, publicado %s",
	" Not as published: %s.":                              " Não como publicado: %s.",
}

// say words a text with its blanks filled.
func (l *language) say(text string, args ...any) string {
	if l != nil {
		text = cmp.Or(l.words[text], text)
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// number writes a number for people.
func (l *language) number(x float64) string {
	if l == nil {
		return number(x)
	}
	return strings.Replace(number(x), ".", l.comma, 1)
}
