package web

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What the node words itself comes in English: reasons, facts, refusals. The page knows most of it by its form,
// and says it in the reader's language. What it does not know it shows as it is.

// reasonRow is a form of what the node says, and what that is in another language.
type reasonRow struct {
	form  func() *regexp.Regexp // made when it is asked for
	whole bool                  // it is of a text with all that is joined in it
	part  string                // the longest text that is in all of this form: most other texts are told from it by that
	says  []string              // texts, and between them blanks
	from  []int                 // which of the form's texts each blank is
	how   []string              // what is done with that: lookUp, asData, asTime, or nothing
}

var blank = regexp.MustCompile(`\{(\d)([!=~]?)\}`)

// What may follow the number of a blank: its text is looked up as well, or is data that a result set, or a size, or is a
// duration or a moment. Where nothing follows, a state of a task and a moment are still told by how they are written.
const (
	lookUp = "!"
	asData = "="
	asTime = "~"
)

// allForms is the language whose lines have every form of what the node says.
const allForms = "pt-BR"

// reasonRows reads what there is for a language. English says all other forms as they are, but for what their blanks
// are in words of the page.
func reasonRows(code string) (rows []reasonRow) {
	for _, line := range reasonLines(code) {
		english, other, _ := strings.Cut(line, " => ")
		rows = append(rows, reasonRowOf(english, other))
	}
	if code != "en" {
		return rows
	}
	for _, line := range reasonLines(allForms) {
		english, _, _ := strings.Cut(line, " => ")
		rows = append(rows, reasonRowOf(english, strings.TrimPrefix(english, asWhole)))
	}
	return rows
}

// asWhole begins a line of a text with all that is joined in it.
const asWhole = "whole: "

// reasonLines are the lines of a language's file, without remarks.
func reasonLines(code string) (lines []string) {
	b, err := texts.ReadFile("strings/reasons." + code + ".txt")
	must(err)
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// reasonRowOf is what a line says: a form in English, and the same in another language.
func reasonRowOf(english, other string) reasonRow {
	english, whole := strings.CutPrefix(english, asWhole)
	how := map[string]string{}
	form, part := "^", ""
	last := 0
	literal := func(text string) string {
		if len(text) > len(part) {
			part = text
		}
		return regexp.QuoteMeta(text)
	}
	for _, at := range blank.FindAllStringSubmatchIndex(english, -1) {
		form += literal(english[last:at[0]]) + "(.*)"
		how[english[at[2]:at[3]]] = english[at[4]:at[5]]
		last = at[1]
	}
	form = "(?s)" + form + literal(english[last:]) + "$"
	row := reasonRow{
		form: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) }), whole: whole, part: part,
	}
	last = 0
	for _, at := range blank.FindAllStringSubmatchIndex(other, -1) {
		n, err := strconv.Atoi(other[at[2]:at[3]])
		must(err)
		row.says, row.from = append(row.says, other[last:at[0]]), append(row.from, n)
		row.how = append(row.how, how[other[at[2]:at[3]]])
		last = at[1]
	}
	row.says = append(row.says, other[last:])
	return row
}

// mostReason is up to how many bytes a text is looked up.
const mostReason = 4 << 10

// reason is a text of the node in this language, as far as the page knows it.
func (l *language) reason(text string) string {
	if len(text) > mostReason {
		return text
	}
	if first, rest, more := strings.Cut(text, "\n"); more &&
		strings.HasSuffix(first, ")") { // several refusals, each with what would have to change
		return l.reason(first) + "\n" + l.reason(rest)
	}
	if said, is := l.said(text, true); is {
		return said
	}
	all := l.each(text)
	for i, one := range all {
		all[i] = l.one(one)
	}
	return strings.Join(all, "; ")
}

// each are the texts of which one consists that says several things one after the other. What is not known by itself
// belongs to what is before it, as the words of people do: of those, one word may be like one of the node.
func (l *language) each(text string) (out []string) {
	for i, one := range joined(text) {
		if i > 0 && (!strings.Contains(one, " ") || !l.knows(one)) {
			out[len(out)-1] += "; " + one
			continue
		}
		out = append(out, one)
	}
	return out
}

// knows reports whether a text is one of the node, as far as the page can tell.
func (l *language) knows(text string) bool {
	_, is := l.said(text, false)
	return is || l.one(text) != text
}

// joined are the parts of a text between its semicolons, those in brackets left aside.
func joined(text string) (out []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		case ';':
			if depth == 0 && strings.HasPrefix(text[i:], "; ") {
				out, from = append(out, text[from:i]), i+len("; ")
			}
		}
	}
	return append(out, text[from:])
}

// one is one of these.
func (l *language) one(text string) string {
	if said, is := l.said(text, false); is {
		return said
	}
	if name, rest, more := strings.Cut(text, ": "); more && !strings.Contains(name, " ") && strings.Contains(rest, " ") {
		if said := l.one(rest); said != rest { // of a partner, a task or a datum
			return name + ": " + said
		}
	}
	return l.withData(text)
}

// said is a text by the first line that fits; false: none does. Of a whole text, only those that are of such.
func (l *language) said(text string, whole bool) (string, bool) {
	for _, row := range l.reasons {
		if whole && !row.whole || !strings.Contains(text, row.part) {
			continue
		}
		found := row.form().FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var b strings.Builder
		for i, says := range row.says {
			b.WriteString(says)
			if i == len(row.from) {
				break
			}
			switch text := found[row.from[i]]; row.how[i] {
			case lookUp:
				b.WriteString(l.lookedUp(text))
			case asData:
				b.WriteString(l.data(text))
			case asTime:
				b.WriteString(l.time(text))
			default:
				b.WriteString(l.plain(text))
			}
		}
		return b.String(), true
	}
	return "", false
}

// lookedUp is what stands in a text of the node and is one itself, or the state of an instance.
func (l *language) lookedUp(text string) string {
	if state := l.word("instance", text); state != text {
		return state
	}
	return l.reason(text)
}

// plain is what stands in a text of the node: the state of a task and a moment in the words of the page, all else as
// it is.
func (l *language) plain(text string) string {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return l.moment(t, time.Now())
	}
	return unasked.ReplaceAllStringFunc(l.word("task", text), l.whyUnasked)
}

// unasked is why a partner cannot be asked, as it stands behind its name.
var unasked = regexp.MustCompile(
	`\((does not answer|gone for good|(?:not heard of since|away as announced until about) [0-9TZ:-]+)\)`)

// whyUnasked is that in this language, with the moment as a clock.
func (l *language) whyUnasked(text string) string {
	why := strings.Trim(text, "()")
	since, unheard := strings.CutPrefix(why, "not heard of since ")
	until, away := strings.CutPrefix(why, "away as announced until about ")
	at := func(moment string) string {
		if t, err := time.Parse(time.RFC3339, moment); err == nil {
			return l.moment(t, time.Now())
		}
		return moment
	}
	switch {
	case unheard:
		why = l.say("unasked.unheard", at(since))
	case away:
		why = l.say("unasked.away", at(until))
	case why == "gone for good":
		why = l.say("unasked.gone")
	default:
		why = l.say("unasked.silent")
	}
	return "(" + why + ")"
}

// withData is why a result does not count, in this language, with the data of the result, which follow.
func (l *language) withData(text string) string {
	why, data, more := strings.Cut(text, ": ")
	if !more || !strings.HasPrefix(why, "as ") && why != "by order" {
		return text
	}
	if said := l.reason(why); said != why {
		return said + ": " + l.data(data)
	}
	return text
}

var (
	decimals = regexp.MustCompile(`^([^ ]+ = -?[0-9]+)\.([0-9]+)$`)
	sizes    = regexp.MustCompile(`^((?:.* \()?[0-9]+)\.([0-9]+ [kMGTPE]?B\)?)$`) // alone, or after a file's name
)

// data are what a result set, as "a = 1.5, b = x", with numbers as this language writes them; or a size, as "1.5 MB".
func (l *language) data(text string) string {
	each := strings.Split(text, ", ")
	for i := range each {
		for _, form := range []*regexp.Regexp{decimals, sizes} {
			each[i] = form.ReplaceAllString(each[i], "${1}"+l.comma+"${2}")
		}
	}
	return strings.Join(each, ", ")
}

// time is a duration or a moment, as this language writes it.
func (l *language) time(text string) string {
	if said := l.plain(text); said != text {
		return said
	}
	return left(text)
}
