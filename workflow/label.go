package workflow

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// A label is what people call a thing that rules and commands know by its name. It may say
// anything in any script, on one line.

// MaxLabel is the greatest length of a label, in characters.
const MaxLabel = 80

// LabelRule says what keeps a text from being a label; empty: it may be one.
func LabelRule(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case strings.TrimSpace(s) == "":
		return "a label has at least one character that can be seen"
	case n > MaxLabel:
		return fmt.Sprintf("a label has at most %d characters, this one has %d", MaxLabel, n)
	case strings.TrimSpace(s) != s:
		return "a label does not begin or end with a space"
	case !utf8.ValidString(s), plain.Line(unjoined(s)) != unjoined(s):
		return "a label is one line of characters that can be seen: no line breaks, no control characters, " +
			"none that turn the direction of writing"
	}
	return ""
}

// unjoined is a text without what only chooses how its neighbours look, as in an emoji or in Persian.
func unjoined(s string) string {
	return strings.Map(func(r rune) rune {
		if r == plain.Joiner || r == plain.NonJoiner || unicode.Is(unicode.Variation_Selector, r) {
			return -1
		}
		return r
	}, s)
}

// label reads a label.
func (r *reader) label(n *node) string {
	s := r.text(n)
	if s == "" && n.value != "" {
		return "" // that it is no text was said
	}
	if rule := LabelRule(s); rule != "" {
		r.on(n, rule, "%s is not a valid label", excerpt(s))
		return ""
	}
	return s
}

// Called is what people call the workflow: its label, or else its name.
func (d *Definition) Called() string { return cmp.Or(d.Label, string(d.Name)) }

// Called is what people call the task: its label, or else its name.
func (t *Task) Called() string { return cmp.Or(t.Label, string(t.Name)) }

// WithLabel is a name, and in parentheses what people call it where that is something else.
func WithLabel(name, label string) string {
	if label == "" {
		return name
	}
	return name + " (" + label + ")"
}

// WithLabel is the task's name with its label.
func (t *Task) WithLabel() string { return WithLabel(string(t.Name), t.Label) }

// WithLabel is a task's name with its label; of what is no task, the name.
func (d *Definition) WithLabel(t TaskName) string {
	if x := d.Task(t); x != nil {
		return x.WithLabel()
	}
	return string(t)
}

// LabelOf is the label of a task; empty: it has none, or is no task.
func (d *Definition) LabelOf(t TaskName) string {
	if x := d.Task(t); x != nil {
		return x.Label
	}
	return ""
}

// LabelsOf are what a definition calls tasks, of those that it calls by something else than their names; nil: of none.
func LabelsOf[N ~string](d *Definition, names []TaskName) (out map[N]string) {
	for _, name := range names {
		if label := d.LabelOf(name); label != "" {
			if out == nil {
				out = map[N]string{}
			}
			out[N(name)] = label
		}
	}
	return out
}

// Partition returns the declaration of the partition of that name, or nil.
func (d *Definition) Partition(n PartitionName) *PartitionDecl {
	for i := range d.Partitions {
		if d.Partitions[i].Name == n {
			return &d.Partitions[i]
		}
	}
	return nil
}
