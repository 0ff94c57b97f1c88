package lxpdl

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Unit is what a time unit of LXPDL stands for in the native format, where
// times are durations.
const Unit = time.Minute

// ToYAML translates the process to the native format. Names that the native
// format does not allow are changed, and kept as labels, or as doc where they cannot be that. A native task has one
// role: of several the first is taken, and a comment names the others.
func (p *Process) ToYAML() []byte {
	w := &writer{before: p.Predecessors(), tasks: native.NewNames(), roles: native.NewNames(),
		back: map[string]Loop{}, again: map[string]string{}}
	w.line("# Translated from LXPDL. One time unit became %v; order comes from the transitions.",
		workflow.FormatDuration(Unit))
	name := cmp.Or(workflow.MakeName(p.Name), "process")
	w.line("workflow: %s", native.Scalar(name))
	if key, text := native.Kept(p.Name, name); key != "" {
		w.line("%s: %s", key, native.Quoted(text))
	}
	for _, t := range p.Tasks { // what is valid stays as it is
		w.tasks.Keep("", t.Name)
		w.roles.Keep("", t.Roles...)
	}
	w.loops(p.Loops)
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
	tasks, roles native.Names
	back         map[string]Loop   // by its last task
	again        map[string]string // by the last task of a loop, the data item that says whether there is another
}

// loops writes the data that say whether a loop goes on: LXPDL does not say by what that is decided.
func (w *writer) loops(loops []Loop) {
	if len(loops) == 0 {
		return
	}
	w.line("# LXPDL says neither how often a process goes back nor when. Review each repeat: it has %d rounds at most, and",
		Rounds)
	w.line("# there is another one if the last task of the loop has set the data item that its while asks for to true.")
	w.line("data:")
	taken := map[string]bool{}
	for _, l := range loops {
		name := workflow.MakeDataName("again_" + w.tasks.Of(l.Last, "task"))
		name = name[:min(len(name), workflow.MaxName-10)]
		for base, n := name, 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		taken[name] = true
		w.back[l.Last], w.again[l.Last] = l, name
		w.line("  %s: {type: boolean}", name)
	}
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.text, format+"\n", args...)
}

func (w *writer) task(t Task) {
	w.line("  %s:", native.Scalar(w.tasks.Of(t.Name, "task")))
	if key, text := native.Kept(t.Name, w.tasks.Of(t.Name, "task")); key == "label" {
		w.line("    label: %s", native.Quoted(text))
	}
	if doc := w.doc(t); doc != "" {
		w.line("    doc: %q", doc)
	}
	if len(t.Roles) > 0 {
		w.line("    type: manual")
		if len(t.Roles) > 1 {
			w.line("    # LXPDL opens it to %q: a native task has one role, give it to all of them.", t.Roles)
		}
		w.line("    role: %s", native.Scalar(w.roles.Of(t.Roles[0], "role")))
	}
	if before := w.before[t.Name]; len(before) > 0 {
		after := make([]string, len(before))
		for i, b := range before {
			after[i] = native.Scalar(w.tasks.Of(b, "task"))
		}
		w.line("    after: [%s]", strings.Join(after, ", "))
	}
	if t.Time > 0 {
		w.line("    duration: %s", workflow.FormatDuration(duration(t.Time)))
	}
	if l, ends := w.back[t.Name]; ends {
		w.line("    out: [%s]", w.again[t.Name])
		w.line("    repeat: {times: %d, from: %s, while: %s}", Rounds, native.Scalar(w.tasks.Of(l.First, "task")),
			w.again[t.Name])
	}
	if len(t.Roles) == 0 && t.Time == 0 && len(w.before[t.Name]) == 0 {
		w.line("    application: noop")
	}
}

// doc keeps what has no place of its own.
func (w *writer) doc(t Task) string {
	var parts []string
	if key, _ := native.Kept(t.Name, w.tasks.Of(t.Name, "task")); key == "doc" {
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

// duration is a time above 0 as a duration, to the second.
func duration(units float64) time.Duration {
	return max(time.Second, time.Duration(units*float64(Unit)).Round(time.Second))
}
