package diagram

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// dot writes a graph for Graphviz with one cluster for each lane.
func dot(s *scene) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph %s {\n", dotText(s.title))
	b.WriteString("  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", style=filled, fillcolor=white];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	if s.doc != "" {
		fmt.Fprintf(&b, "  tooltip=%s;\n", dotText(s.doc))
	}
	for i, l := range s.lanes {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", i, dotText(laneTitle(l)))
		for _, j := range l.boxes {
			fmt.Fprintf(&b, "    t%d [%s];\n", j, dotBox(s, j))
		}
		b.WriteString("  }\n")
	}
	for _, e := range s.edges {
		look := ""
		if e.kind != success {
			look = fmt.Sprintf(" [style=dashed, label=%s]", dotText(e.label))
		}
		fmt.Fprintf(&b, "  t%d -> t%d%s;\n", e.from, e.to, look)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func dotBox(s *scene, i int) string {
	b := s.boxes[i]
	lines := []string{b.task.Called(), s.detail(b)}
	if c := s.condition(b); c != "" {
		lines = append(lines, c)
	}
	if w := b.wait(); w != "" {
		lines = append(lines, "⏱ "+w)
	}
	if b.state != "" {
		lines = append(lines, string(b.state))
	}
	if b.known != "" {
		lines = append(lines, b.known)
	}
	look := "label=" + dotText(strings.Join(lines, "\n")) + ", tooltip=" + dotText(s.description(i))
	switch {
	case b.byPeople():
		look += `, style="rounded,filled"`
	case b.task.Type == workflow.SubWorkflow:
		look += ", peripheries=2"
	}
	if c := stateColor[b.state]; c != "" {
		look += fmt.Sprintf(", fillcolor=%q", c)
	}
	return look
}

// dotText quotes a text; a line break becomes one in the label.
func dotText(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", `\n`)
	return `"` + r.Replace(plain.Text(s)) + `"`
}
