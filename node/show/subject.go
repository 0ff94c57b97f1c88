package show

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// An instance is named in lists by the words with which it was started, and not by its ID alone.

const (
	// subjectParts are how many values make a subject, subjectPart how many letters one may have at most.
	subjectParts = 2
	subjectPart  = 80
)

// Subject is what an instance is about: the first data that had to be given at its start, texts before
// numbers. Empty: no such data are short enough.
func Subject(h *Held) string {
	g := h.M.Genesis().Body.Genesis
	var texts, numbers []string
	for i := range h.Def.Data {
		d := &h.Def.Data[i]
		if !d.Required {
			continue
		}
		switch v := g.Input[d.Name].(type) {
		case string:
			if t := strings.TrimSpace(v); t != "" && d.Type == workflow.TypeString {
				texts = append(texts, Short(t, subjectPart))
			}
		case int64, float64:
			numbers = append(numbers, fmt.Sprintf("%s %v", d.Name, v))
		}
	}
	all := append(texts, numbers...)
	return strings.Join(all[:min(len(all), subjectParts)], ", ")
}

// InOneLine is a text with its lines beside each other, or the beginning of it.
func InOneLine(text string, most int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return Short(strings.Join(lines, "; "), most)
}

// Short is the first line of a text, or the beginning of it.
func Short(text string, most int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line = strings.TrimSpace(line); len(line) <= most && utf8.ValidString(line) {
		return line // as most are: its letters need not be counted
	}
	letters := []rune(line)
	if len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return string(letters)
}
