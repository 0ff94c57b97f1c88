package pdl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// Find is the workflow of that name.
func (d *Document) Find(name string) (*Workflow, bool) {
	i := slices.IndexFunc(d.Workflows, func(w Workflow) bool { return w.Name == name })
	if i < 0 {
		return nil, false
	}
	return &d.Workflows[i], true
}

// Names are those of the workflows, in the order written.
func (d *Document) Names() []string {
	names := make([]string, len(d.Workflows))
	for i, w := range d.Workflows {
		names[i] = w.Name
	}
	return names
}

// ToYAML translates one of the document's workflows to the native format, with the
// models and applications that it uses. Names that the native format does not allow
// are changed, and the old one is kept as label, or as doc where it cannot be that. What the format has no place for stays as a comment.
func (d *Document) ToYAML(w *Workflow) []byte { return d.Translate(w).Native }

// Translation is what came out of a workflow.
type Translation struct {
	Native []byte
	Lines  []Place  // of the file, by lines of Native, from the first: what each came out of
	Apart  []string // workflows that are used and not in the file, as the native format names them
}

// Place is where something stands in the file; the zero value: it came out of no one place.
type Place struct{ Line, Col int }

// Translate is ToYAML, with what there is to say about it.
func (d *Document) Translate(w *Workflow) Translation {
	t := newWriter()
	for _, n := range d.Names() {
		t.workflows[n] = true
	}
	t.line("# Translated from PDL. What waits for a success that failed is BLOCKED here, and so is the instance;")
	t.line("# in PDL it never runs, and the process ends.")
	made := name(w.Name, "process")
	t.at = w.at
	t.line("workflow: %s", native.Scalar(made))
	if key, text := native.Kept(w.Name, made); key != "" {
		t.line("%s: %s", key, native.Quoted(text))
	}
	models := d.modelsOf(w)
	applications := d.applicationsOf(models)
	t.keep(w, models, applications)
	t.at = position{}
	t.allData(w)
	t.allApplications(applications)
	t.allModels(models)
	t.at = position{}
	t.line("tasks:")
	for _, a := range w.Activities {
		t.at = a.at
		t.activity(a)
	}
	t.at = position{}
	t.configuration(applications)
	return Translation{[]byte(t.text.String()), t.lines, t.apart}
}

// Pieces translates all models and applications of the document by themselves, of a file without a workflow:
// definitions that are added later take them.
func (d *Document) Pieces() Translation {
	t := newWriter()
	t.line("# Translated from PDL: models and applications by themselves, which definitions take that are added later.")
	t.keep(&Workflow{}, d.Models, d.Applications)
	t.allApplications(d.Applications)
	t.allModels(d.Models)
	t.at = position{}
	t.configuration(d.Applications)
	return Translation{Native: []byte(t.text.String()), Lines: t.lines}
}

func newWriter() *writer {
	return &writer{
		types: make(map[string]string), tasks: native.NewNames(), data: native.NewDataNames(), roles: native.NewNames(),
		models: native.NewNames(), applications: native.NewNames(), hosts: native.NewNames(),
		databases: native.NewNames(), queries: make(map[string]bool), workflows: make(map[string]bool),
	}
}

// name makes a name of the native format out of a name of PDL.
func name(s, fallback string) string {
	if made := workflow.MakeName(s); made != "" {
		return made
	}
	return fallback
}

// modelsOf are those that the workflow's tasks take, in the order of the file.
func (d *Document) modelsOf(w *Workflow) []Model {
	used := make(map[string]bool)
	for _, a := range w.Activities {
		used[a.Model] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Models), func(m Model) bool { return !used[m.Name] })
}

// applicationsOf are those that the models use, in the order of the file.
func (d *Document) applicationsOf(models []Model) []Application {
	used := make(map[string]bool)
	for _, m := range models {
		used[m.Application] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Applications), func(a Application) bool { return !used[a.Name] })
}

// writer writes a native definition.
type writer struct {
	text  strings.Builder
	at    position // of what is written
	lines []Place
	apart []string
	types map[string]string // of the models, by their names in PDL

	tasks, data, roles, models, applications, hosts, databases native.Names

	queries   map[string]bool // the data that are queries, by their names in PDL
	workflows map[string]bool // those of the file, by their names in PDL
}

func (w *writer) line(format string, args ...any) {
	text := fmt.Sprintf(format+"\n", args...)
	w.text.WriteString(text)
	for range strings.Count(text, "\n") {
		w.lines = append(w.lines, Place{w.at.line, w.at.column})
	}
}

// keep leaves names that are valid as they are.
func (w *writer) keep(of *Workflow, models []Model, applications []Application) {
	for _, d := range of.Data {
		w.data.Keep("", d.Name)
	}
	for _, a := range of.Activities {
		w.tasks.Keep("", a.Name)
		w.roles.Keep("", a.Role)
	}
	for _, m := range models {
		w.models.Keep("", m.Name)
	}
	for _, a := range applications {
		if !native.BuiltIn(a.Name) {
			w.applications.Keep("", a.Name)
		}
	}
}

func (w *writer) dataName(s string) string { return w.data.Of(s, "item") }

// application is the native name of an application. Built-in ones mean something else.
func (w *writer) application(s string) string {
	if native.BuiltIn(s) {
		return w.applications.OfKind("built-in", s+"-application", "application")
	}
	return w.applications.Of(s, "application")
}

func (w *writer) allData(of *Workflow) {
	if len(of.Data) > 0 {
		w.line("data:")
	}
	for _, d := range of.Data { // before statements mention them
		w.dataName(d.Name)
		w.queries[d.Name] = d.Kind == Query
	}
	for _, d := range of.Data {
		w.at = d.at
		item := w.dataName(d.Name)
		parts := []string{"type: " + string(d.Kind)}
		add := func(key, value string) {
			if value != "" {
				parts = append(parts, key+": "+native.Quoted(value))
			}
		}
		add("name", d.File)
		if d.Kind == Query {
			add("database", w.databases.Of(d.Database, "database"))
			add("expression", w.statement(d.Expression))
		}
		if d.Text != nil {
			parts = append(parts, "default: "+native.Quoted(*d.Text))
		}
		if d.Number != nil {
			parts = append(parts, "default: "+strconv.FormatFloat(*d.Number, 'g', -1, 64))
		}
		add(native.Kept(d.Name, item))
		w.line("  %s: {%s}", item, strings.Join(parts, ", "))
	}
}

// statement is SQL with the native names of the data that it mentions. The parser has read it before.
func (w *writer) statement(sql string) string {
	s, _, err := workflow.ParseStatement(sql)
	if err != nil {
		return sql
	}
	return s.Text(func(_ int, name workflow.DataName) string { return ":" + w.dataName(string(name)) })
}

func (w *writer) allApplications(all []Application) {
	if w.at = (position{}); len(all) > 0 {
		w.line("applications:")
	}
	for _, a := range all {
		w.at = a.at
		var parts []string
		if a.KB > 0 {
			parts = append(parts, fmt.Sprintf("size: %dKB", a.KB))
		}
		for _, p := range []struct{ key, value string }{{"os", a.OS}, {"cpu", a.CPU}, {"installer", a.Installer}} {
			if p.value != "" {
				parts = append(parts, p.key+": "+native.Quoted(p.value))
			}
		}
		if len(a.Hosts) > 0 {
			hosts := make([]string, len(a.Hosts))
			for i, h := range a.Hosts {
				hosts[i] = w.hosts.Of(h, "host")
			}
			parts = append(parts, "hosts: "+native.List(slices.Compact(hosts)))
		}
		w.line("  %s: {%s}", native.Scalar(w.application(a.Name)), strings.Join(parts, ", "))
	}
}

func (w *writer) allModels(all []Model) {
	if w.at = (position{}); len(all) > 0 {
		w.line("models:")
	}
	for _, m := range all {
		w.at = m.at
		w.types[m.Name] = m.Type
		w.line("  %s:", native.Scalar(w.models.Of(m.Name, "model")))
		w.line("    type: %s", m.Type)
		if m.Application != "" {
			w.line("    application: %s", native.Scalar(w.application(m.Application)))
		}
		if m.Priority != nil {
			w.line("    priority: %d", *m.Priority)
		}
		switch {
		case m.Deadline > 0:
			w.line("    deadline: %s", workflow.FormatDuration(m.Deadline))
		case m.NoDeadline:
			w.line("    # DEADLINE 0: there is no deadline.")
		}
		switch automatic := m.Type == "automatic"; {
		case automatic && m.Offline:
			w.line("    # DISCONNECTED_OPERATION TRUE: nobody takes an automatic task along, so it means nothing.")
		case m.Offline:
			w.line("    offline: true")
		}
		switch automatic := m.Type == "automatic"; {
		case m.Retries > 0 && automatic:
			w.line("    retries: %d", m.Retries)
		case m.Retries > 0:
			w.line("    # RETRIES %d: only automatic tasks are tried again by themselves.", m.Retries)
		}
	}
}

func (w *writer) activity(a Activity) {
	a = w.asked(a)
	task := w.tasks.Of(a.Name, "task")
	w.line("  %s:", native.Scalar(task))
	doc := a.Description
	switch key, text := native.Kept(a.Name, task); key {
	case "label":
		w.line("    label: %s", native.Quoted(text))
	case "doc":
		doc = strings.TrimPrefix(doc+". "+text, ". ")
	}
	if doc != "" {
		w.line("    doc: %s", native.Quoted(doc))
	}
	switch {
	case a.SubWorkflow != "":
		uses := name(a.SubWorkflow, "process")
		if w.line("    type: workflow"); !w.workflows[a.SubWorkflow] {
			w.apart = append(w.apart, uses)
			w.line("    # %s is no workflow of the file: add it as well, before this one is started.", a.SubWorkflow)
		}
		w.line("    uses: %s", native.Scalar(uses))
	default:
		w.line("    model: %s", native.Scalar(w.models.Of(a.Model, "model")))
	}
	switch {
	case a.Role != "" && w.types[a.Model] == "automatic":
		w.line("    # ROLE %s: an automatic task has none.", a.Role)
	case a.Role != "":
		w.line("    role: %s", native.Scalar(w.roles.Of(a.Role, "role")))
	}
	w.rule(a.Depends)
	if a.before != "" {
		w.line("    after: %s", native.Scalar(a.before))
	}
	w.items("in", a.In)
	w.items("out", a.Out)
}

// asked is an activity with its queries where the native format has them. In PDL each activity that reads a query has
// it asked; here an automatic task asks what it has under out. So a task of a person has one before it that asks.
func (w *writer) asked(a Activity) Activity {
	asks := slices.DeleteFunc(slices.Concat(a.In, a.Out), func(n string) bool { return !w.queries[n] })
	if len(asks) == 0 {
		return a
	}
	a.Out = slices.DeleteFunc(slices.Clone(a.Out), func(n string) bool { return w.queries[n] })
	if w.types[a.Model] == "automatic" {
		a.Out = append(a.Out, asks...)
		return a
	}
	before := Activity{Name: w.tasks.OfKind("asks", a.Name+"-asks", "asks"), Depends: a.Depends}
	w.line("  %s: # asks what %s reads; if that fails, %s is BLOCKED.", native.Scalar(before.Name),
		w.tasks.Of(a.Name, "task"), w.tasks.Of(a.Name, "task"))
	w.rule(before.Depends)
	w.items("out", asks)
	a.Depends, a.before = nil, before.Name
	return a
}

func (w *writer) items(key string, names []string) {
	var given []string
	for _, n := range names {
		if made := w.dataName(n); !slices.Contains(given, made) {
			given = append(given, made)
		}
	}
	if len(given) > 0 {
		w.line("    %s: [%s]", key, strings.Join(given, ", "))
	}
}

// rule writes what an activity waits for: successes alone as after, the rest as when.
func (w *writer) rule(r *Rule) {
	if r == nil {
		return
	}
	if after := w.successes(r); after != nil {
		w.line("    after: %s", native.List(after))
		return
	}
	w.line("    when: '%s'", w.expression(r, ""))
}

// successes are the activities that must all succeed; nil: the rule says more.
func (w *writer) successes(r *Rule) []string {
	if r.Operator == "or" && len(r.Parts) > 1 {
		return nil
	}
	var names []string
	for t := range r.terms {
		if t.State != "succeeded" {
			return nil
		}
		if made := w.tasks.Of(t.Activity, "task"); !slices.Contains(names, made) {
			names = append(names, made)
		}
	}
	for _, part := range r.Parts {
		if w.successes(part) == nil {
			return nil
		}
	}
	return names
}

// expression writes a rule as one of the native language, in parentheses if it
// stands within another operator.
func (w *writer) expression(r *Rule, within string) string {
	if r.Operator == "" {
		return fmt.Sprintf("%s(%q)", r.State, w.tasks.Of(r.Activity, "task"))
	}
	parts := make([]string, len(r.Parts))
	inner := r.Operator
	if len(r.Parts) == 1 {
		inner = within
	}
	for i, part := range r.Parts {
		parts[i] = w.expression(part, inner)
	}
	joined := strings.Join(parts, " "+r.Operator+" ")
	if len(parts) > 1 && within != "" && within != r.Operator {
		return "(" + joined + ")"
	}
	return joined
}

// configuration writes, as a comment, what each node that has the applications
// would say in its own configuration, for its operator to look at.
func (w *writer) configuration(all []Application) {
	if len(all) == 0 {
		return
	}
	w.line("# What the applications run is each node's own affair. Where they are installed, config.yaml says so:")
	w.line("# applications:")
	for _, a := range all {
		file := a.FileName
		if file == "" {
			file = a.Name
		}
		w.line("#   %s: {command: [%s]}", native.Scalar(w.application(a.Name)), native.Quoted(file))
	}
}
