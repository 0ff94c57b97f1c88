package workflow

import "fmt"

// maxProblems bounds how many mistakes are collected; nobody mends more at once.
const maxProblems = 200

// problems collects the mistakes of one file.
type problems struct {
	file string
	list Errors
}

// at notes a mistake.
func (p *problems) at(line, col int, message, hint string) {
	if len(p.list) < maxProblems {
		p.list = append(p.list, Problem{p.file, line, col, message, hint})
	}
}

// on notes a mistake where a node begins.
func (p *problems) on(n *node, hint, format string, args ...any) {
	p.at(n.line, n.col, fmt.Sprintf(format, args...), hint)
}

// within notes a mistake at a character of a text scalar.
func (p *problems) within(n *node, offset int, hint, message string) {
	if n.place == nil {
		p.at(n.line, n.col, message, hint)
		return
	}
	line, col := n.place.at(n.text, offset)
	p.at(line, col, message, hint)
}
