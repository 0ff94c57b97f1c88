package web

import (
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// What the node words itself comes in English: reasons, facts, refusals. The page knows most of it by its form,
// and says it in the reader's language. What it does not know it shows as it is.

// reasonRow is a form of what the node says, and what that is in another language.
type reasonRow struct {
	form func() *regexp.Regexp // made when it is asked for
	part string                // the longest text that is in all of this form: most other texts are told from it by that
	says []string              // texts, and between them blanks
	from []int                 // which of the form's texts each blank is
	how  []string              // what is done with that: lookUp, asData, or nothing
}

var blank = regexp.MustCompile(`\{(\d)([!=]?)\}`)

// What may follow the number of a blank: its text is looked up as well, or is data that a result set.
const (
	lookUp = "!"
	asData = "="
)

// reasonRows reads what there is for a language: English has what the node says in words of the command line.
func reasonRows(code string) (rows []reasonRow) {
	b, err := texts.ReadFile("strings/reasons." + code + ".txt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(err)
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		english, other, _ := strings.Cut(line, " => ")
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
		row := reasonRow{form: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) }), part: part}
		last = 0
		for _, at := range blank.FindAllStringSubmatchIndex(other, -1) {
			n, err := strconv.Atoi(other[at[2]:at[3]])
			must(err)
			row.says, row.from = append(row.says, other[last:at[0]]), append(row.from, n)
			row.how = append(row.how, how[other[at[2]:at[3]]])
			last = at[1]
		}
		row.says = append(row.says, other[last:])
		rows = append(rows, row)
	}
	return rows
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
	for _, row := range l.reasons {
		if !strings.Contains(text, row.part) {
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
				b.WriteString(l.reason(text))
			case asData:
				b.WriteString(l.data(text))
			default:
				b.WriteString(text)
			}
		}
		return b.String()
	}
	return l.withData(text)
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

var decimals = regexp.MustCompile(`^([^ ]+ = -?[0-9]+)\.([0-9]+)$`)

// data are what a result set, as "a = 1.5, b = x", with numbers as this language writes them.
func (l *language) data(text string) string {
	each := strings.Split(text, ", ")
	for i, one := range each {
		each[i] = decimals.ReplaceAllString(one, "${1}"+l.comma+"${2}")
	}
	return strings.Join(each, ", ")
}
