package diagram

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mermaid writes a flowchart with one subgraph for each lane.
func mermaid(s *scene) []byte {
	var b bytes.Buffer
	b.WriteString("flowchart LR\n")
	fmt.Fprintf(&b, "  accTitle: %s\n", mermaidText(s.title))
	if s.doc != "" {
		fmt.Fprintf(&b, "  accDescr: %s\n", mermaidText(s.doc))
	}
	for i, l := range s.lanes {
		fmt.Fprintf(&b, "  subgraph p%d[\"%s\"]\n", i, mermaidText(laneTitle(l)))
		for _, j := range l.boxes {
			fmt.Fprintf(&b, "    %s\n", s.mermaidBox(j, s.boxes[j]))
		}
		b.WriteString("  end\n")
	}
	for _, e := range s.edges {
		arrow := "-->"
		if e.kind != success {
			arrow = fmt.Sprintf("-. %s .->", mermaidText(e.label))
		}
		fmt.Fprintf(&b, "  t%d %s t%d\n", e.from, arrow, e.to)
	}
	b.WriteString("  classDef people stroke-width:2px\n")
	for i, box := range s.boxes {
		if box.byPeople() {
			fmt.Fprintf(&b, "  class t%d people\n", i)
		}
	}
	for _, st := range statesOf(s) {
		fmt.Fprintf(&b, "  classDef %s fill:%s,color:#111\n", st, stateColor[st])
	}
	for i, box := range s.boxes {
		if stateColor[box.state] != "" {
			fmt.Fprintf(&b, "  class t%d %s\n", i, box.state)
		}
	}
	return b.Bytes()
}

func (s *scene) mermaidBox(i int, b box) string {
	lines := []string{mermaidText(b.task.Called()), mermaidText(s.detail(b))}
	if c := s.condition(b); c != "" {
		lines = append(lines, mermaidText(c))
	}
	if w := b.wait(); w != "" {
		lines = append(lines, "⏱ "+w)
	}
	if b.state != "" {
		lines = append(lines, mermaidText(string(b.state)))
	}
	if b.known != "" {
		lines = append(lines, mermaidText(b.known))
	}
	text := strings.Join(lines, "<br/>")
	switch {
	case b.byPeople():
		return fmt.Sprintf("t%d([\"%s\"])", i, text)
	case b.task.Type == workflow.SubWorkflow:
		return fmt.Sprintf("t%d[[\"%s\"]]", i, text)
	}
	return fmt.Sprintf("t%d[\"%s\"]", i, text)
}

// mermaidText keeps any text from being read as Mermaid.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range oneLine(s) {
		if strings.ContainsRune("\"#;<>&`", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// oneLine is a text without line breaks and without what cannot be seen.
func oneLine(s string) string { return plain.Line(strings.Join(strings.Fields(s), " ")) }

func laneTitle(l lane) string {
	if l.partner == "" {
		return l.name
	}
	return l.name + ": " + l.partner
}
