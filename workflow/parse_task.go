package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The defaults of a task.
const (
	DefaultUrgency = 0.8
	DefaultBackoff = time.Second
	DefaultFactor  = 2.0
	DefaultMax     = time.Minute
	DefaultJitter  = 0.2
)

var taskKeys = []key[Task]{
	{"label", func(r *reader, n *node, t *Task) { t.Label = r.label(n) }},
	{"doc", func(r *reader, n *node, t *Task) { t.Doc = r.text(n) }},
	{"model", func(r *reader, n *node, t *Task) { t.Model = r.name(n) }},
	{"after", func(r *reader, n *node, t *Task) { t.After = names[TaskName](r, n, (*reader).name) }},
	{"when", func(r *reader, n *node, t *Task) { t.When = n.text }},
	{"type", func(r *reader, n *node, t *Task) { t.Type = oneOf(r, n, Automatic, SemiAutomatic, Manual, SubWorkflow) }},
	{"application", func(r *reader, n *node, t *Task) { t.Application = ApplicationName(r.name(n)) }},
	{"with", kept[Task]},
	{"uses", kept[Task]},
	{"role", func(r *reader, n *node, t *Task) { t.Role = RoleName(r.name(n)) }},
	{"needs", func(r *reader, n *node, t *Task) { t.Needs = names[Capability](r, n, (*reader).name) }},
	{"in", func(r *reader, n *node, t *Task) { t.In = r.dataNames(n) }},
	{"out", func(r *reader, n *node, t *Task) { t.Out = r.dataNames(n) }},
	{"form", func(r *reader, n *node, t *Task) { t.Form = r.dataNames(n) }},
	{"timeout", func(r *reader, n *node, t *Task) { t.Timeout = r.span(n) }},
	{"time-to-wait", func(r *reader, n *node, t *Task) { t.TimeToWait = r.duration(n) }},
	{"retries", func(r *reader, n *node, t *Task) { t.Retries = r.retries(n) }},
	{"on-failure", func(r *reader, n *node, t *Task) { r.onFailure(n, t) }},
	{"contingency", func(r *reader, n *node, t *Task) { t.Contingency = TaskName(r.name(n)) }},
	{"compensate", kept[Task]},
	{"reconcile", func(r *reader, n *node, t *Task) {
		t.Reconcile = oneOf(r, n, KeepFirst, KeepOriginal, KeepReplacement)
	}},
	{"deadline", kept[Task]},
	{"warnings", func(r *reader, n *node, t *Task) { t.Warnings = r.warnings(n) }},
	{"transfer", func(r *reader, n *node, t *Task) { t.Transfer = r.span(n) }},
	{"priority", func(r *reader, n *node, t *Task) { t.Priority = int(r.integer(n, -1_000_000, 1_000_000)) }},
	{"urgency", func(r *reader, n *node, t *Task) { t.Urgency = r.number(n, 0, 1) }},
	{"suitability", func(r *reader, n *node, t *Task) { t.Suitability = r.suitability(n) }},
	{"duration", func(r *reader, n *node, t *Task) { t.Duration = r.span(n) }},
	{"offline", func(r *reader, n *node, t *Task) { t.Offline = r.boolean(n) }},
	{"holds", func(r *reader, n *node, t *Task) { t.Holds = names[ResourceName](r, n, (*reader).name) }},
	{"enabled", func(r *reader, n *node, t *Task) { t.Disabled = !r.boolean(n) }},
	{"repeat", func(r *reader, n *node, t *Task) { r.repeat(n, t) }},
	{"on-conflict", func(r *reader, n *node, t *Task) { t.OnConflict = oneOf(r, n, ConflictApply, ConflictFail) }},
	{"produces", func(r *reader, n *node, t *Task) { t.Produces = r.produces(n) }},
}

// tasks reads the tasks: first their names, which any of them may mention,
// then their keys, then what needs the whole task.
func (r *reader) tasks() {
	n := r.written(r.def, "tasks")
	if n == nil || n.isNull() {
		r.on(r.head(r.def), "write tasks: {a: {}}", "the definition has no tasks")
		return
	}
	entries := r.named(n, "tasks")
	if len(entries) > MaxTasks {
		r.on(n, "cut it into sub-workflows", "there are %d tasks: at most %d are allowed", len(entries), MaxTasks)
		return
	}
	if n.kind == mapNode && len(n.entries) == 0 {
		r.on(n, "write tasks: {a: {}}", "the definition has no tasks")
	}
	r.def.index = make(map[TaskName]*Task, len(entries))
	r.scope.known = make(map[TaskName]bool, len(entries))
	for _, e := range entries {
		t := &Task{
			Name: TaskName(e.key.text), Type: Automatic, OnFailure: FailBlock, Reconcile: KeepFirst,
			OnConflict: ConflictApply, Urgency: DefaultUrgency,
		}
		r.heads[t] = e.key
		r.def.Tasks = append(r.def.Tasks, t)
		r.def.index[t.Name] = t
		r.scope.tasks = append(r.scope.tasks, e.key.text)
		r.scope.known[t.Name] = true
	}
	models := r.models()
	r.shareModels(entries, models)
	written := r.writtenOut(entries, models)
	if written > MaxSource {
		r.on(n, "cut it into sub-workflows, or take less from models",
			"with its models written out the definition has more than %d bytes: at most %d are allowed", written,
			MaxSource)
		return
	}
	for i, e := range entries {
		t := r.def.Tasks[i]
		if i > 0 && e.value.kind == scalarNode && slices.Contains(keyList(taskKeys), e.key.text) &&
			entries[i-1].outdented() != "" {
			r.on(e.key, entries[i-1].outdented(), "%s is no task: want a mapping, have %s", e.key.text, e.value.what())
			continue
		}
		readMap(r, r.merged(e.value, models), taskKeys, t)
		r.finishTask(t)
	}
	r.markContingencies()
}

// models checks the models, each as a task of its own, so that also those that
// nobody takes are free of mistakes.
func (r *reader) models() map[string]*node {
	out := map[string]*node{}
	n := r.written(r.def, "models")
	if n == nil || n.isNull() {
		return out
	}
	for _, e := range r.named(n, "models") {
		out[e.key.text] = e.value
		if t := r.model(e); t != nil {
			r.taskExpressions(t)
		}
	}
	return out
}

// writtenOut is how many bytes tasks take from models, at least: a short text must
// not stand for a long one before that is known.
func (r *reader) writtenOut(tasks []entry, models map[string]*node) int {
	sizes := map[*node][]int{} // of each entry of a model
	sum := 0
	for _, e := range tasks {
		taken := e.value.get("model")
		if taken == nil {
			continue
		}
		model := models[taken.text]
		if model == nil {
			continue
		}
		if sizes[model] == nil {
			for _, part := range model.entries {
				sizes[model] = append(sizes[model], part.key.size()+part.value.size())
			}
		}
		own := map[string]bool{}
		for _, part := range e.value.entries {
			own[part.key.text] = true
		}
		for i, part := range model.entries {
			if sum > MaxSource {
				return sum
			}
			if !own[part.key.text] {
				sum += sizes[model][i]
			}
		}
	}
	return sum
}

// size is how many bytes a value takes at least.
func (n *node) size() int {
	sum := len(n.text) + 1
	for _, item := range n.items {
		sum += item.size()
	}
	for _, e := range n.entries {
		sum += e.key.size() + e.value.size()
	}
	return sum
}

// overrides are keys that together say one thing: a task that writes one of
// them takes none of them from its model.
var overrides = map[string]string{"contingency": "on-failure", "on-failure": "on-failure"}

// merged is what a task writes together with what its model writes.
func (r *reader) merged(n *node, models map[string]*node) *node {
	if n.isNull() {
		return &node{kind: mapNode, line: n.line, col: n.col}
	}
	taken := n.get("model")
	if n.kind != mapNode || taken == nil {
		return n
	}
	model, known := models[taken.text]
	if !known {
		var all []string
		for name := range models {
			all = append(all, name)
		}
		slices.Sort(all)
		r.on(taken, r.scope.memory.didYouMean(taken.text, all), "there is no model %q", taken.text)
		return n
	}
	own := map[string]bool{}
	for _, e := range n.entries {
		own[e.key.text], own[overrides[e.key.text]] = true, true
	}
	out := *n
	out.entries = slices.Clone(n.entries)
	for _, e := range model.entries {
		if group := overrides[e.key.text]; !own[e.key.text] && (group == "" || !own[group]) && e.key.text != "model" {
			out.entries = append(out.entries, e)
		}
	}
	return &out
}

// finishTask reads what needs the whole task.
func (r *reader) finishTask(t *Task) {
	if t.Type == "" {
		t.Type = Automatic // its mistake is reported
	}
	if t.Application == "" && t.Type == Automatic {
		t.Application = AppNoop
	}
	r.settleFailure(t)
	for _, key := range []string{"after", "on-failure", "contingency"} {
		r.taskNames(t, key)
	}
	r.taskExpressions(t)
	r.checkTask(t)
}

// settleFailure brings on-failure and contingency together: two ways to say one
// thing.
func (r *reader) settleFailure(t *Task) {
	short, long := r.written(t, "contingency"), r.written(t, "on-failure")
	if short != nil && long != nil && !long.isNull() {
		if inner := long.get("contingency"); inner == nil || inner.text != short.text {
			r.on(short, "leave out one of the two", "contingency and on-failure say different things")
		}
	}
	if t.Contingency != "" {
		t.OnFailure = FailContingency
	}
}

// taskNames reports names of tasks that are not there.
func (r *reader) taskNames(t *Task, key string) {
	n := r.written(t, key)
	if n == nil {
		return
	}
	if key == "on-failure" {
		if n = n.get("contingency"); n == nil {
			return
		}
	}
	for _, item := range n.list() {
		if item.kind == scalarNode && !item.isNull() && ValidName(item.text) && r.def.Task(TaskName(item.text)) == nil {
			r.on(item, r.scope.memory.didYouMean(item.text, r.scope.tasks), "there is no task %q", item.text)
		}
	}
}

// taskExpressions reads the parts of a task that mention data or tasks.
func (r *reader) taskExpressions(t *Task) {
	t.Rule = r.taskRule(t)
	if n := r.written(t, "with"); n != nil && !n.isNull() {
		t.With = r.with(n, t.Application)
	}
	if n := r.written(t, "uses"); n != nil && !n.isNull() {
		t.Uses = r.uses(n)
	}
	if n := r.written(t, "compensate"); n != nil && !n.isNull() {
		t.Compensate = r.compensate(n)
	}
	if n := r.written(t, "deadline"); n != nil && !n.isNull() {
		t.Deadline = r.deadline(n)
	}
}

// taskRule is nil also when the rule has a mistake: no further ones follow.
func (r *reader) taskRule(t *Task) *Rule {
	var after []TaskName
	for _, name := range t.After {
		if r.def.Task(name) != nil {
			after = append(after, name)
		}
	}
	n := r.written(t, "when")
	if n == nil || n.isNull() {
		return allOf(after, nil)
	}
	before := len(r.list)
	var when *Rule
	if tree := r.syntax(n); tree != nil {
		s := r.scope
		s.decides = true
		when = newRuler(&s, tree, r.inside(n)).rule(tree, false)
		t.when = spell(tree)
	}
	if len(r.list) > before {
		return nil
	}
	return allOf(after, when)
}

func (r *reader) dataNames(n *node) []DataName {
	out := names[DataName](r, n, (*reader).dataName)
	for _, item := range n.list() {
		if item.kind == scalarNode && !item.isNull() && !r.apart && r.scope.data[DataName(item.text)] == nil {
			r.on(item, r.nearData(item.text), "there is no data %q", item.text)
		}
	}
	return out
}

func (r *reader) nearData(name string) string {
	if hint := r.scope.memory.didYouMean(name, r.scope.dataNames()); hint != "" {
		return hint
	}
	return "declare it under data:"
}

func (r *reader) warnings(n *node) []time.Duration {
	var out []time.Duration
	seen := map[time.Duration]bool{}
	for _, item := range n.list() {
		d := r.span(item)
		if seen[d] {
			r.on(item, "", "%s is there twice", item.text)
			continue
		}
		seen[d] = true
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b time.Duration) int { return int(min(1, max(-1, b-a))) })
	return out
}

// maxRetries bounds what one attempt may try.
const maxRetries = 1000

var retriesKeys = []key[Retries]{
	{"times", func(r *reader, n *node, t *Retries) { t.Times = int(r.integer(n, 0, maxRetries)) }},
	{"backoff", func(r *reader, n *node, t *Retries) { t.Backoff = r.duration(n) }},
	{"factor", func(r *reader, n *node, t *Retries) { t.Factor = r.number(n, 1, 100) }},
	{"max", func(r *reader, n *node, t *Retries) { t.Max = r.duration(n) }},
	{"jitter", func(r *reader, n *node, t *Retries) { t.Jitter = r.number(n, 0, 1) }},
}

func (r *reader) retries(n *node) Retries {
	t := &Retries{Backoff: DefaultBackoff, Factor: DefaultFactor, Max: DefaultMax, Jitter: DefaultJitter}
	said := len(r.list)
	switch {
	case n.kind == mapNode:
		if readMap(r, n, retriesKeys, t) && r.written(t, "times") == nil {
			r.on(n, "write times: N", "retries does not say how often")
		}
	default:
		t.Times = int(r.integer(n, 0, maxRetries))
	}
	if t.Backoff > t.Max && len(r.list) == said { // else one of them may not be what is written
		r.on(n, "raise max or lower backoff", "the backoff %s is longer than its max %s", FormatDuration(t.Backoff),
			FormatDuration(t.Max))
	}
	if t.Times == 0 {
		return Retries{}
	}
	return *t
}

// MaxReaders bounds who may read a data set or a file: partners tell one another of them.
const MaxReaders = 16

var producesKeys = []key[Produces]{
	{"name", func(r *reader, n *node, p *Produces) { p.Name = r.name(n) }},
	{"valid", func(r *reader, n *node, p *Produces) { p.Valid = r.span(n) }},
	{"readers", func(r *reader, n *node, p *Produces) { p.Readers = r.readers(n) }},
}

// produces reads the name of a data set, or a mapping that says more of it.
func (r *reader) produces(n *node) Produces {
	if n.kind != mapNode {
		return Produces{Name: r.name(n)}
	}
	p := &Produces{}
	if readMap(r, n, producesKeys, p) && r.written(p, "name") == nil {
		r.on(n, "write name: NAME", "produces does not name the data set")
	}
	return *p
}

var onFailureKeys = []key[Task]{
	{"contingency", func(r *reader, n *node, t *Task) { t.Contingency = TaskName(r.name(n)) }},
}

func (r *reader) onFailure(n *node, t *Task) {
	if n.kind != mapNode {
		t.OnFailure = oneOf(r, n, FailBlock, FailRelease)
		return
	}
	inner := &Task{}
	known := readMap(r, n, onFailureKeys, inner)
	if known && r.written(inner, "contingency") == nil {
		r.on(n, "write on-failure: {contingency: TASK}", "on-failure names no contingency")
	}
	t.Contingency = inner.Contingency
}

func (r *reader) suitability(n *node) map[string]float64 {
	if n.kind != mapNode {
		r.on(n, "write suitability: {role, capability or partner: 0..1}", "want a mapping, have %s", n.what())
		return nil
	}
	out := map[string]float64{}
	for _, e := range r.unique(n) {
		if who := r.name(e.key); who != "" {
			out[who] = r.number(e.value, 0, 1)
		}
	}
	return out
}

// calendar is how a point in time begins.
var calendar = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-`)

// deadline is a span, a point in time, or an expression that gives one.
func (r *reader) deadline(n *node) *Deadline {
	if d, err := ParseDuration(n.text); n.kind == scalarNode && err == nil {
		if d == 0 {
			r.on(n, "leave the key out for none", "the deadline must be more than zero")
		}
		return &Deadline{After: d}
	}
	at, err := parseTime(n.text)
	switch {
	case n.kind != scalarNode:
	case err == nil:
		point := *n
		point.text = "date(" + strconv.Quote(at.Format(time.RFC3339Nano)) + ")"
		return &Deadline{Expr: r.expression(&point, r.scope, timeType)}
	case calendar.MatchString(n.text):
		r.on(n, "or a span, such as 48h", "%v", err)
		return nil
	}
	if n.kind == scalarNode && (negative(n.text) ||
		strings.IndexFunc(n.text, func(c rune) bool { return c < '0' || c > '9' }) != 0) {
		r.duration(n)
		return nil
	}
	e := r.expression(n, r.scope, timeType)
	if e != nil && e.aged {
		r.within(n, 0, "write a span, such as 48h", "a deadline is no age: instance.age has no place in it")
	}
	return &Deadline{Expr: e}
}

// Fields are the data that the task may write, as a person is asked for them: those under form in the author's order, then
// the others in the order of out.
func (t *Task) Fields() []DataName {
	return append(slices.Clone(t.Form), slices.DeleteFunc(slices.Clone(t.Out), func(n DataName) bool {
		return slices.Contains(t.Form, n)
	})...)
}

// checkForm reports what a form of a task asks for that the task does not write.
func (r *reader) checkForm(t *Task) {
	if t.Type != Manual && t.Type != SemiAutomatic {
		r.refuse(t, "form", "leave it out, or write type: manual", "only manual and semi-automatic tasks have a form")
		return
	}
	n := r.written(t, "form")
	if n == nil {
		return
	}
	for _, item := range n.list() {
		if item.kind == scalarNode && !item.isNull() && r.scope.data[DataName(item.text)] != nil &&
			!slices.Contains(t.Out, DataName(item.text)) {
			r.on(item, "add it to out, or leave it out of form", "%s is not among the data that %s writes (out)", item.text,
				t.Name)
		}
	}
}

// checkWarnings reports warnings of a task that nobody would ever see.
func (r *reader) checkWarnings(t *Task) {
	n := r.written(t, "warnings")
	switch {
	case n == nil || n.isNull():
	case t.Deadline == nil && r.written(t, "deadline") == nil:
		r.on(n, "write deadline: 48h, or leave them out", "there is no deadline to warn of")
	case t.Deadline != nil && t.Deadline.After > 0:
		for _, item := range n.list() {
			if w, err := ParseDuration(item.text); err == nil && w >= t.Deadline.After {
				r.on(item, "a warning comes before the deadline: it is shorter",
					"the deadline is %s after the task is ready, so nobody can be warned %s before it",
					FormatDuration(t.Deadline.After), FormatDuration(w))
			}
		}
	}
}

// checkTransfer reports a transfer by which a task would never pass on, or would at once.
func (r *reader) checkTransfer(t *Task) {
	n := r.written(t, "transfer")
	switch {
	case n == nil || n.isNull() || t.Transfer == 0:
	case t.Type == Automatic || t.Type == SubWorkflow:
		r.on(n, "it is for tasks of type manual and semi-automatic", "no person has this task, so it passes to nobody")
	case t.Deadline == nil && r.written(t, "deadline") == nil:
		r.on(n, "write deadline: 48h, or leave it out", "there is no deadline before which it would pass on")
	case t.Deadline != nil && t.Deadline.After > 0 && t.Transfer >= t.Deadline.After:
		r.on(n, "want less than the deadline",
			"the deadline is %s after the task is ready, so it would pass on at once", FormatDuration(t.Deadline.After))
	}
}

// markContingencies finds the tasks that are only a contingency or only a
// compensation: nothing but a failure or a reversal starts them.
func (r *reader) markContingencies() {
	for _, t := range r.def.Tasks {
		names := []TaskName{t.Contingency}
		if t.Compensate != nil {
			names = append(names, t.Compensate.Task)
		}
		for _, name := range names {
			if c := r.def.Task(name); c != nil && r.written(c, "after") == nil && r.written(c, "when") == nil {
				c.ContingencyOnly = true
			}
		}
	}
	for _, name := range r.standIns {
		if c := r.def.Task(name); c != nil {
			c.ContingencyOnly = true
		}
	}
}

func joined[S ~string](words []S, sep string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprint(w)
	}
	return strings.Join(out, sep)
}

// readers are roles, and partners by name or ID, who may read something.
func (r *reader) readers(n *node) []string {
	all := names[string](r, n, (*reader).name)
	if len(all) > MaxReaders {
		r.on(n, "give them a role in common, and name that", "there are %d readers: at most %d are allowed", len(all),
			MaxReaders)
	}
	return all
}
