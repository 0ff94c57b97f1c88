package node

import (
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance is named in lists by the words with which it was started, and not by its ID alone.

const (
	// subjectParts are how many values make a subject, subjectPart how many letters one may have at most.
	subjectParts = 2
	subjectPart  = 80
)

// subject is what an instance is about: the first data that had to be given at its start, texts before
// numbers. Empty: no such data are short enough.
func subject(h *held) string {
	if !h.said {
		h.said, h.about = true, subjectOf(h)
	}
	return h.about
}

func subjectOf(h *held) string {
	g := h.m.Genesis().Body.Genesis
	var texts, numbers []string
	for i := range h.def.Def.Data {
		d := &h.def.Def.Data[i]
		if !d.Required {
			continue
		}
		switch v := g.Input[d.Name].(type) {
		case string:
			if t := strings.TrimSpace(v); t != "" && d.Type == workflow.TypeString {
				texts = append(texts, short(t, subjectPart))
			}
		case int64, float64:
			numbers = append(numbers, fmt.Sprintf("%s %v", d.Name, v))
		}
	}
	all := append(texts, numbers...)
	return strings.Join(all[:min(len(all), subjectParts)], ", ")
}

// inOneLine is a text with its lines beside each other, or the beginning of it.
func inOneLine(text string, most int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return short(strings.Join(lines, "; "), most)
}

// short is the first line of a text, or the beginning of it.
func short(text string, most int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	letters := []rune(strings.TrimSpace(line))
	if len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return string(letters)
}
