package lxpdl

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Unit is what a time unit of LXPDL stands for in the native format, where
// times are durations.
const Unit = time.Minute

// ToYAML translates the process to the native format. Names that the native
// format does not allow are changed, and kept as doc. A native task has one
// role: of several the first is taken, and a comment names the others.
func (p *Process) ToYAML() []byte {
	w := &writer{before: p.Predecessors(), tasks: newNames(), roles: newNames()}
	w.line("# Translated from LXPDL. One time unit became %v; order comes from the transitions.", workflow.FormatDuration(Unit))
	w.line("workflow: %s", scalar(validName(p.Name, "process")))
	w.line("tasks:")
	for _, t := range p.Tasks {
		w.task(t)
	}
	return []byte(w.text.String())
}

// writer writes a native definition.
type writer struct {
	text         strings.Builder
	before       map[string][]string
	tasks, roles names
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.text, format+"\n", args...)
}

func (w *writer) task(t Task) {
	w.line("  %s:", scalar(w.tasks.valid(t.Name, "task")))
	if doc := w.doc(t); doc != "" {
		w.line("    doc: %q", doc)
	}
	if len(t.Roles) > 0 {
		w.line("    type: manual")
		if len(t.Roles) > 1 {
			w.line("    # LXPDL opens it to %q: a native task has one role, give it to all of them.", t.Roles)
		}
		w.line("    role: %s", scalar(w.roles.valid(t.Roles[0], "role")))
	}
	if before := w.before[t.Name]; len(before) > 0 {
		after := make([]string, len(before))
		for i, b := range before {
			after[i] = scalar(w.tasks.valid(b, "task"))
		}
		w.line("    after: [%s]", strings.Join(after, ", "))
	}
	if t.Time > 0 {
		w.line("    duration: %s", workflow.FormatDuration(duration(t.Time)))
	}
	if len(t.Roles) == 0 && t.Time == 0 && len(w.before[t.Name]) == 0 {
		w.line("    application: noop")
	}
}

// doc keeps what has no place of its own.
func (w *writer) doc(t Task) string {
	var parts []string
	if w.tasks.valid(t.Name, "task") != t.Name {
		parts = append(parts, t.Name)
	}
	if t.Precond != "" {
		parts = append(parts, "Precondition: "+t.Precond)
	}
	if t.Postcond != "" {
		parts = append(parts, "Postcondition: "+t.Postcond)
	}
	return strings.Join(parts, ". ")
}

// names gives each LXPDL name a native one, no two the same.
type names struct {
	native map[string]string // by LXPDL name
	taken  map[string]bool
	last   map[string]int // the last number that was given to a name that many want
}

func newNames() names {
	return names{native: make(map[string]string), taken: make(map[string]bool), last: make(map[string]int)}
}

func (ns names) valid(name, fallback string) string {
	if v, ok := ns.native[name]; ok {
		return v
	}
	base := validName(name, fallback)
	v := base
	for i := max(ns.last[base], 1) + 1; ns.taken[v]; i++ {
		suffix := fmt.Sprint("-", i)
		v = strings.ToValidUTF8(base[:min(len(base), workflow.MaxName-len(suffix))], "") + suffix
		ns.last[base] = i
	}
	ns.native[name], ns.taken[v] = v, true
	return v
}

// validName makes a name of the native format out of any text.
func validName(s, fallback string) string { return cmp.Or(workflow.MakeName(s), fallback) }

var (
	unquoted = regexp.MustCompile(`^\pL[\pL\pM0-9_.-]*$`)
	reserved = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n)$`)
)

// scalar writes a valid name so that YAML reads it as text.
func scalar(name string) string {
	if unquoted.MatchString(name) && !reserved.MatchString(name) {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// duration is a time above 0 as a duration, to the second.
func duration(units float64) time.Duration {
	return max(time.Second, time.Duration(units*float64(Unit)).Round(time.Second))
}
