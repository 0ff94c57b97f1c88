package workflow

import (
	"fmt"
	"slices"
)

// Parse reads and checks a definition. File is its name in messages. A
// definition with mistakes gives Errors with all of them; the result is then
// nil.
func Parse(file string, src []byte) (*Definition, error) { return parse(file, src, nil, Kept{}) }

// Kept are parts that a definition does not need any more, since its instance was amended: facts may name them. Rounds
// that no loop has are written as tasks by themselves, with the data that stood beside them. StandIns are tasks that
// only stood in for others, none of which names them now: nothing begins them.
type Kept struct {
	Tasks    map[TaskName]Round
	Data     []DataName
	StandIns []TaskName
}

// ParseKept is Parse of a definition that has such parts.
func ParseKept(file string, src []byte, kept Kept) (*Definition, error) {
	d, err := parse(file, src, nil, kept)
	if err != nil {
		return nil, err
	}
	d.kept = kept
	gone := slices.DeleteFunc(slices.Clone(d.Tasks), func(t *Task) bool { _, is := kept.Tasks[t.Name]; return !is })
	slices.SortStableFunc(gone, func(a, b *Task) int {
		return slices.Compare(kept.Tasks[a.Name].Numbers, kept.Tasks[b.Name].Numbers)
	})
	d.Tasks = slices.DeleteFunc(d.Tasks, func(t *Task) bool { _, is := kept.Tasks[t.Name]; return is })
	for _, t := range gone { // they are shown behind the task of which they were rounds
		of, at := kept.Tasks[t.Name].Of, len(d.Tasks)
		for i, x := range d.Tasks {
			if round, is := d.Round(x.Name); x.Name == of || is && round.Of == of {
				at = i + 1
			}
		}
		d.Tasks = slices.Insert(d.Tasks, at, t)
	}
	return d, nil
}

// Kept are the parts that are there, and that the definition does not need any more. They must not be changed.
func (d *Definition) Kept() Kept { return d.kept }

// ParseWith is Parse of a file that somebody wrote. It may take pieces which it does not have: they are written out in
// it, so that its hash says what they were; so is what undoes a transition, at all triggers that share it, and where they
// say it unlike that is a mistake (transitions). What is stored, or partners have, may be from before that was asked.
func ParseWith(file string, src []byte, shared Shared) (*Definition, error) {
	return parse(file, src, func(r *reader) { r.shared, r.byHand = shared, true }, Kept{})
}

func parse(file string, src []byte, with func(*reader), kept Kept) (*Definition, error) {
	pr := &problems{file: file}
	r := newReader(pr)
	r.standIns = kept.StandIns
	if with != nil {
		with(r)
	}
	if root := readSource(src, pr); root != nil {
		r.definition(root)
	}
	if len(pr.list) > 0 {
		return nil, pr.list.sorted()
	}
	if err := r.def.seal(r); err != nil {
		return nil, Errors{{File: file, Line: 1, Col: 1, Message: err.Error()}}
	}
	return r.def, nil
}

func newReader(pr *problems) *reader {
	return &reader{
		problems: pr, def: &Definition{},
		places: map[any]map[string]*node{}, heads: map[any]*node{},
		scope: scope{memory: newMemory()},
	}
}

// definitionKeys are the keys at the top level.
var definitionKeys = []key[Definition]{
	{"workflow", func(r *reader, n *node, d *Definition) { d.Name = Name(r.name(n)) }},
	{"version", func(r *reader, n *node, d *Definition) { d.Version = int(r.integer(n, 0, 1<<31-1)) }},
	{"label", func(r *reader, n *node, d *Definition) { d.Label = r.label(n) }},
	{"doc", func(r *reader, n *node, d *Definition) { d.Doc = r.text(n) }},
	{"data", kept[Definition]},
	{"applications", kept[Definition]},
	{"models", kept[Definition]},
	{"tasks", kept[Definition]},
	{"partitions", kept[Definition]},
	{"resources", kept[Definition]},
	{"final", kept[Definition]},
	{"initial", kept[Definition]},
	{"constraints", kept[Definition]},
	{"conditions", kept[Definition]},
	{"creator-role", func(r *reader, n *node, d *Definition) { d.CreatorRole = RoleName(r.name(n)) }},
	{"responsible", func(r *reader, n *node, d *Definition) { d.Responsible = r.user(n) }},
	{"administrators", func(r *reader, n *node, d *Definition) { d.Administrators = RoleName(r.name(n)) }},
	{"coordination", func(r *reader, n *node, d *Definition) {
		d.Coordination = oneOf(r, n, Choreography, Orchestration)
	}},
	{"distribution", func(r *reader, n *node, d *Definition) { readMap(r, n, distributionKeys, &d.Distribution) }},
	{"warnings", func(r *reader, n *node, d *Definition) { d.Warnings = r.warnings(n) }},
	{"transfer", func(r *reader, n *node, d *Definition) { d.Transfer = r.span(n) }},
}

// definition reads everything, each part after those that it may mention.
func (r *reader) definition(root *node) {
	d := r.def
	d.Coordination = Choreography
	readMap(r, root, definitionKeys, d)
	if root.kind != mapNode {
		return
	}
	r.heads[d] = root
	if r.written(d, "workflow") == nil {
		r.on(root, "begin with workflow: NAME", "the definition has no name")
	}
	r.data()
	r.conditions()
	r.applications()
	r.tasks()
	r.queries()
	r.shareApplications()
	r.partitions()
	r.resources()
	if n := r.written(d, "final"); n != nil && !n.isNull() {
		d.Final = r.condition(n)
	}
	if n := r.written(d, "initial"); n != nil && !n.isNull() {
		d.Initial = r.condition(n)
	}
	r.constraints()
	loops := r.loops()
	r.check()
	if r.byHand {
		r.transitions()
	}
	r.expand(loops)
}

// applications reads what applications need.
func (r *reader) applications() {
	n := r.written(r.def, "applications")
	if n == nil || n.isNull() {
		return
	}
	for _, e := range r.named(n, "applications") {
		a := ApplicationDecl{Name: ApplicationName(e.key.text)}
		if builtIn(a.Name) {
			r.on(e.key, "choose another name", "%q is built in", a.Name)
		}
		readMap(r, e.value, applicationKeys, &a)
		r.def.Applications = append(r.def.Applications, a)
	}
}

func builtIn(a ApplicationName) bool {
	return a == AppNoop || a == AppSleep || a == AppSet || a == AppFail
}

var applicationKeys = []key[ApplicationDecl]{
	{"size", func(r *reader, n *node, a *ApplicationDecl) { a.Size = r.size(n) }},
	{"os", func(r *reader, n *node, a *ApplicationDecl) { a.OS = r.text(n) }},
	{"cpu", func(r *reader, n *node, a *ApplicationDecl) { a.CPU = r.text(n) }},
	{"installer", func(r *reader, n *node, a *ApplicationDecl) { a.Installer = r.text(n) }},
	{"hosts", func(r *reader, n *node, a *ApplicationDecl) { a.Hosts = names[string](r, n, (*reader).name) }},
}

// maxApplication bounds the size of an application: 1 TiB.
const maxApplication = 1 << 40

// size reads a number of bytes, or one with a unit: 12kB, 3MiB.
func (r *reader) size(n *node) int64 {
	if _, isInt := n.value.(int64); isInt {
		return r.integer(n, 0, maxApplication)
	}
	bytes, err := parseSize(n.text)
	if n.kind != scalarNode || err != nil {
		r.on(n, "write bytes, or for example 340kB, 12MB, 3MiB", "%q is not a size", n.text)
		return 0
	}
	return bytes
}

func parseSize(s string) (int64, error) {
	var number float64
	var unit string
	if _, err := fmt.Sscanf(s, "%g%s", &number, &unit); err != nil {
		return 0, err
	}
	factor, ok := map[string]float64{
		"B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	}[unit]
	if bytes := number * factor; ok && bytes >= 0 && bytes <= maxApplication {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size", s)
}

// constraints reads the rules of integrity and of allocation.
func (r *reader) constraints() {
	n := r.written(r.def, "constraints")
	if n == nil || n.isNull() {
		return
	}
	if n.kind != listNode {
		r.on(n, "write constraints: [{name: …, when: …}]", "want a list, have %s", n.what())
		return
	}
	seen := map[string]bool{}
	for _, item := range n.items {
		c := &Constraint{}
		r.heads[c] = item
		if readMap(r, item, constraintKeys, c) {
			r.checkConstraint(c)
		}
		if seen[c.Name] && c.Name != "" {
			r.on(r.where(c, "name"), "", "there are two constraints named %q", c.Name)
		}
		seen[c.Name] = true
		r.def.Constraints = append(r.def.Constraints, *c)
	}
}

var constraintKeys = []key[Constraint]{
	{"name", func(r *reader, n *node, c *Constraint) { c.Name = r.name(n) }},
	{"when", func(r *reader, n *node, c *Constraint) { c.When = r.condition(n) }},
	{"strict", func(r *reader, n *node, c *Constraint) { c.Strict = r.boolean(n) }},
	{"violated", func(r *reader, n *node, c *Constraint) {
		s := r.scope
		s.decides, s.allocation = true, true
		c.Violated = r.expression(n, s, boolType)
	}},
	{"penalty", func(r *reader, n *node, c *Constraint) { c.Penalty = r.number(n, 0, 1) }},
}

func (r *reader) checkConstraint(c *Constraint) {
	has := func(key string) bool { return r.written(c, key) != nil }
	switch {
	case !has("name"):
		r.on(r.head(c), "write name: NAME", "the constraint has no name")
	case has("when") == has("violated"):
		r.on(r.head(c), "when: for integrity of data, violated: for allocation",
			"a constraint has either when or violated")
	case has("violated") && !has("penalty"):
		r.on(r.head(c), "write penalty: 0..1; 1 forbids", "a constraint of allocation needs a penalty")
	case has("when") && has("penalty"):
		r.on(r.written(c, "penalty"), "leave it out", "penalty belongs to violated")
	case has("violated") && has("strict"):
		r.on(r.written(c, "strict"), "write penalty: 1", "strict belongs to when")
	}
}

// Mechanisms of distribution (docs/systems.md, Mechanisms), as they are spelled.
var Mechanisms = []string{
	"Push", "Pull", "Typical", "Receptive", "Selective", "Sel-push", "Sel-push-10", "Sel-push-flowtime",
	"Sel-push-pull",
}

var distributionKeys = []key[Distribution]{
	{"mechanism", func(r *reader, n *node, d *Distribution) { d.Mechanism = oneOf(r, n, Mechanisms...) }},
	{"dispatching", func(r *reader, n *node, d *Distribution) { d.Dispatching = oneOf(r, n, "fifo", "spt", "edd") }},
	{"compensate-violations", func(r *reader, n *node, d *Distribution) { d.CompensateViolations = r.boolean(n) }},
	{"learning", func(r *reader, n *node, d *Distribution) { d.NoLearning = !r.boolean(n) }},
	{"notify", func(r *reader, n *node, d *Distribution) {
		var err error
		if d.Notify, d.NotifyN, err = ParseNotify(n.text); err != nil {
			r.on(n, "", "%v", err)
		}
	}},
	{"patience", func(r *reader, n *node, d *Distribution) { d.Patience = r.span(n) }},
	{"relax", func(r *reader, n *node, d *Distribution) { d.Relax = r.boolean(n) }},
	{"urgency-growth", func(r *reader, n *node, d *Distribution) { d.UrgencyGrowth = r.number(n, 0, 1) }},
}
