package workflow

import (
	"fmt"
	"strings"
)

// maxProblems bounds how many mistakes are collected; nobody mends more at once.
const maxProblems = 200

// problems collects the mistakes of one file.
type problems struct {
	file string
	list Errors
}

// full tells that no more mistakes are collected, so that none need be worded.
func (p *problems) full() bool { return len(p.list) >= maxProblems }

// at notes a mistake.
func (p *problems) at(line, col int, message, hint string) {
	if !p.full() {
		p.list = append(p.list, Problem{p.file, line, col, cut(message), cut(hint)})
	}
}

// hint gives the mistakes noted at a node that have one hint another, as more is known by now.
func (p *problems) hint(n *node, was, now string) {
	for i := range p.list {
		if x := &p.list[i]; x.Line == n.line && x.Col == n.col && x.Hint == was {
			x.Hint = now
		}
	}
}

// cut shortens what names too much to be read.
func cut(text string) string {
	const begin, end = 1500, 500 // bytes: the reason is often at the end
	if len(text) <= begin+end {
		return text
	}
	return strings.ToValidUTF8(text[:begin], "") + " … " + strings.ToValidUTF8(text[len(text)-end:], "")
}

// on notes a mistake where a node begins.
func (p *problems) on(n *node, hint, format string, args ...any) {
	if p.full() {
		return
	}
	p.at(n.line, n.col, fmt.Sprintf(format, args...), hint)
}

// within notes a mistake at a character of a text scalar.
func (p *problems) within(n *node, offset int, hint, message string) {
	if p.full() {
		return
	}
	if n.place == nil {
		p.at(n.line, n.col, message, hint)
		return
	}
	line, col := n.place.at(n.text, offset)
	p.at(line, col, message, hint)
}
