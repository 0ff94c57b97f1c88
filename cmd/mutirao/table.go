package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// style is an ANSI colour; empty: none.
type style string

const (
	unstyled style = ""
	bold     style = "1"
	dim      style = "2"
	red      style = "31"
	green    style = "32"
	yellow   style = "33"
	cyan     style = "36"
)

// paint colours s if the terminal wants it.
func (u *ui) paint(st style, s string) string {
	if !u.color || st == unstyled || s == "" {
		return s
	}
	return control("["+string(st)+"m") + s + control("[0m")
}

// styleOf is the colour of a state: of a task, an instance or a partner.
func styleOf(state string) style {
	switch strings.ToLower(state) {
	case "succeeded", "active":
		return green
	case "running", "ready":
		return cyan
	case "failed", "blocked", "expired", "evicted", "interrupted":
		return red
	case "aborted", "cancelled", "unreachable":
		return yellow
	case "not_ready", "skipped", "left":
		return dim
	}
	return unstyled
}

// table is printed with aligned columns.
type table struct {
	head   []string
	rows   [][]string
	states int // the column that is coloured as a state, from 1; 0: none
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table; indent goes before each line.
func (t *table) write(u *ui, w io.Writer, indent string) {
	widths, rows := make([]int, len(t.head)), append([][]string{t.head}, t.rows...)
	for _, row := range rows {
		for i, c := range row {
			row[i] = oneLine(c)
			widths[i] = max(widths[i], plain.Width(row[i]))
		}
	}
	var line []byte // its array serves all
	for n, row := range rows {
		line = append(line[:0], indent...)
		for i, c := range row {
			st := unstyled
			switch {
			case n == 0:
				st = bold
			case i == t.states-1:
				st = styleOf(c)
			}
			line = append(line, u.paint(st, c)...)
			if i < len(row)-1 {
				line = append(line, strings.Repeat(" ", widths[i]-plain.Width(c)+2)...)
			}
		}
		w.Write(append(bytes.TrimRight(line, " "), '\n'))
	}
}

// oneLine keeps a text on its line, with its times in this machine's zone.
func oneLine(s string) string { return localTimes(plain.Line(s)) }

// utcTime is a moment in the texts of nodes, which have no zone of their own.
var utcTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\b`)

// localTimes gives the moments in a text as clock gives them, so that people read
// one zone everywhere.
func localTimes(s string) string {
	if !strings.Contains(s, "Z") { // most of a long table
		return s
	}
	inZone := func(text string) string {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return text
		}
		return clock(t)
	}
	if len(s) == len("2006-01-02T15:04:05Z") { // of such a length is nearly always nothing but a moment: most of the rest
		return inZone(s)
	}
	return utcTime.ReplaceAllStringFunc(s, inZone)
}

// clock is a moment for people: RFC 3339, in local time.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}

func clockOf(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return clock(*t)
}

// ago is how long ago a moment was, in the greatest unit that says enough.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := max(now.Sub(t), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// orDash fills an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// id is an instance's ID: its short form where a person reads it. Any unique
// prefix works where an ID is asked for.
func (u *ui) id(s string) string {
	return u.short(s, 10)
}

// partnerID is a partner's ID: its short form where a person reads it. All IDs begin
// with the same eight characters, which say what kind of key it is.
func (u *ui) partnerID(p workflow.PartnerID) string {
	if u.terminal && !u.verbose {
		return p.Short() // as in logs and reasons
	}
	return string(p)
}

// span is a duration as definitions write it, which the API writes as Go does.
func span(s string) string {
	if d, err := time.ParseDuration(s); err == nil {
		return workflow.FormatDuration(d)
	}
	return s
}

// short cuts an identifier on a terminal; -v shows it whole, and programs get it so.
func (u *ui) short(s string, length int) string {
	if u.terminal && !u.verbose && len(s) > length {
		return s[:length]
	}
	return s
}
