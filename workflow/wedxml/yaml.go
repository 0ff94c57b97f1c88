package wedxml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Names are those of the flows, in the order written.
func (d *Document) Names() []string {
	names := make([]string, len(d.Flows))
	for i, f := range d.Flows {
		names[i] = f.Name
	}
	return names
}

// Find is the flow of that name.
func (d *Document) Find(name string) (*Flow, bool) {
	i := slices.IndexFunc(d.Flows, func(f Flow) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &d.Flows[i], true
}

// ToYAML translates one of the document's flows to the native format, with the
// attributes, which all flows share, and the conditions and transitions that it uses.
func (d *Document) ToYAML(f *Flow) []byte {
	w := &writer{document: d, names: newData(d), tasks: native.NewNames(), applications: native.NewNames()}
	w.keep(f)
	w.line("# Translated from WED-tool. What transitions and compensations run is each node's own configuration, or its workers.")
	name := workflow.MakeName(f.Name)
	if name == "" {
		name = "flow"
	}
	w.line("workflow: %s", native.Scalar(name))
	if key, text := native.Kept(f.Name, name); key != "" {
		w.line("%s: %s", key, native.Quoted(text))
	}
	w.data()
	w.conditions(f)
	w.allTasks(f)
	if f.Final == "" {
		w.line("# No final condition was given: every instance ends in an exception, for a person to decide on.")
		w.line("final: 'false'")
	} else {
		w.line("final: %s", w.condition(f.Final))
	}
	w.constraints()
	return []byte(w.text.String())
}

// writer writes a native definition.
type writer struct {
	document *Document
	text     strings.Builder

	names               native.Names // of data and conditions
	tasks, applications native.Names
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) attribute(name string) string { return w.names.OfKind("attribute", name, "attribute") }

func (w *writer) condition(name string) string { return w.names.OfKind("condition", name, "condition") }

// application is the native name of a transition or compensation. Built-in
// applications mean something else.
func (w *writer) application(name string) string {
	if native.BuiltIn(name) {
		return w.applications.OfKind("built-in", name+"-transition", "transition")
	}
	return w.applications.Of(name, "transition")
}

// keep leaves names of triggers and applications that are valid as they are; newData does so with those of data.
func (w *writer) keep(f *Flow) {
	number := 0
	for _, t := range f.Triggers {
		if w.never(t.Condition) {
			continue
		}
		number++
		w.tasks.Keep(fmt.Sprint(number), t.Transition)
		w.keepApplication(t.Transition)
		if c := w.document.compensationOf(t.Transition); c != nil {
			w.keepApplication(c.Name)
		}
	}
}

func (w *writer) keepApplication(name string) {
	if !native.BuiltIn(name) {
		w.applications.Keep("", name)
	}
}

func (w *writer) list(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = w.attribute(n)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (w *writer) data() {
	if len(w.document.Attributes) == 0 {
		return
	}
	w.line("data:")
	var all []string
	for _, a := range w.document.Attributes {
		item := w.attribute(a.Name)
		kept := ""
		if key, text := native.Kept(a.Name, item); key != "" {
			kept = fmt.Sprintf(", %s: %s", key, native.Quoted(text))
		}
		w.line("  %s: {type: %s%s}", item, a.Type, kept)
		all = append(all, a.Name)
	}
	w.line("models:")
	w.line("  trigger: {repeat: true, in: %s}", w.list(all))
}

// conditions writes those that the flow and the constraints use.
func (w *writer) conditions(f *Flow) {
	used := map[string]bool{f.Final: true}
	for _, t := range f.Triggers {
		used[t.Condition] = true
	}
	for _, c := range w.document.Constraints {
		used[c.Condition] = true
	}
	head := false
	for _, c := range w.document.Conditions {
		if !used[c.Name] {
			continue
		}
		if !head {
			w.line("conditions:")
			head = true
		}
		if name := w.condition(c.Name); name != c.Name {
			w.line("  # %s", native.Quoted(c.Name))
		}
		w.line("  %s: %s", w.condition(c.Name), native.Expression(c.means.String()))
	}
}

func (w *writer) allTasks(f *Flow) {
	w.line("tasks:")
	written := 0
	for _, t := range f.Triggers {
		if w.never(t.Condition) {
			w.line("  # A trigger of %s was left out: its condition %s never holds.", native.Quoted(t.Transition),
				native.Quoted(t.Condition))
			continue
		}
		written++
		w.task(t, written)
	}
	if written == 0 {
		w.line("  nothing: {application: noop, enabled: false}")
	}
}

func (w *writer) never(condition string) bool {
	i := slices.IndexFunc(w.document.Conditions, func(c Condition) bool { return c.Name == condition })
	return i >= 0 && w.document.Conditions[i].means.Never()
}

// task writes a trigger: the first of a transition has its name.
func (w *writer) task(t Trigger, number int) {
	w.line("  %s:", native.Scalar(w.tasks.OfKind(fmt.Sprint(number), t.Transition, "trigger")))
	if key, text := native.Kept(t.Transition, w.application(t.Transition)); key != "" {
		w.line("    %s: %s", key, native.Quoted(text))
	}
	if len(w.document.Attributes) > 0 {
		w.line("    model: trigger")
	} else {
		w.line("    repeat: true")
	}
	w.line("    when: %s", w.condition(t.Condition))
	w.line("    application: %s", native.Scalar(w.application(t.Transition)))
	i := slices.IndexFunc(w.document.Transitions, func(u Transition) bool { return u.Name == t.Transition })
	updates := w.document.Transitions[i].Updates
	if len(updates) > 0 {
		w.line("    out: %s", w.list(updates))
	}
	if t.Period > 0 {
		w.line("    timeout: %s", workflow.FormatDuration(t.Period))
	}
	w.compensation(t.Transition, updates)
}

// compensationOf is what undoes a transition; nil: nothing does.
func (d *Document) compensationOf(transition string) *Transition {
	i := slices.IndexFunc(d.Compensations, func(c Transition) bool { return c.For == transition })
	if i < 0 {
		return nil
	}
	return &d.Compensations[i]
}

// compensation writes what undoes a transition: here it may set what the transition may.
func (w *writer) compensation(transition string, updates []string) {
	c := w.document.compensationOf(transition)
	if c == nil {
		return
	}
	var more []string
	for _, name := range c.Updates {
		if !slices.Contains(updates, name) {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		w.line("    # The compensation also sets %s: here it may set what is under out.", w.list(more))
	}
	name := w.application(c.Name)
	if name != c.Name {
		w.line("    # %s", native.Quoted(c.Name))
	}
	w.line("    compensate: {application: %s}", native.Scalar(name))
}

func (w *writer) constraints() {
	if len(w.document.Constraints) == 0 {
		return
	}
	w.line("constraints:")
	names := native.NewNames()
	for _, c := range w.document.Constraints {
		names.Keep("", c.Condition)
	}
	for _, c := range w.document.Constraints {
		strict := ""
		if c.Strict {
			strict = ", strict: true"
		}
		w.line("  - {name: %s, when: %s%s}", native.Scalar(names.Of(c.Condition, "constraint")),
			w.condition(c.Condition), strict)
	}
}
