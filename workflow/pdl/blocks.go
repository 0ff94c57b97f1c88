package pdl

import (
	"math"
	"strconv"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// ended reports whether the clause ends here, so that what could follow is left out.
func (p *parser) ended() bool {
	t := p.peek()
	return t.kind == end || t.is(";") || t.is("}")
}

// workflow reads a block after its keyword.
func (p *parser) workflow() {
	w := Workflow{}
	w.Name, w.at = p.identifier("a workflow")
	p.clauses("workflow "+shorten(w.Name), map[string]func(position){
		"FILE":         func(position) { w.Data = append(w.Data, p.data(File)) },
		"QUERY":        func(position) { w.Data = append(w.Data, p.data(Query)) },
		"STRING":       func(position) { w.Data = append(w.Data, p.data(String)) },
		"NUMBER":       func(position) { w.Data = append(w.Data, p.data(Number)) },
		"TASK":         func(position) { w.Activities = append(w.Activities, p.task()) },
		"SUB_WORKFLOW": func(position) { w.Activities = append(w.Activities, p.subWorkflow()) },
	})
	p.document.Workflows = append(p.document.Workflows, w)
}

// data reads the declaration of a data item after its keyword.
func (p *parser) data(kind Kind) Data {
	d := Data{Kind: kind}
	d.Name, d.at = p.identifier("a data item")
	clauses := map[Kind]map[string]func(position){
		File: {"NAME": func(position) { d.File = p.fileName() }},
		Query: {
			"DATABASE":   func(position) { d.Database = p.text("DATABASE") },
			"EXPRESSION": func(position) { d.Expression = p.text("EXPRESSION") },
		},
		String: {"VALUE": func(position) {
			if !p.ended() {
				v := p.text("VALUE")
				d.Text = &v
			}
		}},
		Number: {"VALUE": func(position) { d.Number = p.number() }},
	}
	p.clauses("data item "+shorten(d.Name), clauses[kind])
	return d
}

// activity reads NAME : TYPE of an activity of that kind. False: it is not, which is reported,
// and the block is passed over.
func (p *parser) activity(kind, typed string) (a Activity, of string, ok bool) {
	a.Name, a.at = p.identifier("a " + kind)
	if !p.expect(":", kind+" "+shorten(a.Name)) {
		p.skipBlock()
		return a, "", false
	}
	of, a.of = p.identifier(typed)
	return a, of, true
}

// task reads a task of a workflow after its keyword.
func (p *parser) task() Activity {
	a, of, ok := p.activity("task", "a task model")
	if a.Model = of; !ok {
		return a
	}
	p.clauses("task "+shorten(a.Name), map[string]func(position){
		"DEPENDS":     func(position) { a.Depends = p.depends() },
		"IN_CONTEXT":  func(position) { a.In, a.in = p.identifiers("a data item") },
		"OUT_CONTEXT": func(position) { a.Out, a.out = p.identifiers("a data item") },
		"ROLE": func(position) {
			if !p.ended() {
				a.Role, a.role = p.identifier("a role")
			}
		},
		"DESCRIPTION": func(position) { a.Description = p.text("DESCRIPTION") },
	})
	return a
}

// subWorkflow reads a sub-workflow after its keyword.
func (p *parser) subWorkflow() Activity {
	a, of, ok := p.activity("sub-workflow", "a workflow")
	if a.SubWorkflow = of; !ok {
		return a
	}
	p.clauses("sub-workflow "+shorten(a.Name), map[string]func(position){
		"DEPENDS":     func(position) { a.Depends = p.depends() },
		"DESCRIPTION": func(position) { a.Description = p.text("DESCRIPTION") },
	})
	return a
}

// depends reads the rule of an activity; nil: it is empty.
func (p *parser) depends() *Rule {
	if p.ended() {
		return nil
	}
	return p.rule(0)
}

// rule reads a term, or rules that and or or joins. nil: it is none, which is reported.
func (p *parser) rule(depth int) *Rule {
	t := p.peek()
	operator := map[string]string{"AND": "and", "OR": "or"}[t.keyword()]
	if operator == "" || !p.tokens[1].is("(") {
		return p.term()
	}
	if depth == maxDepth {
		p.fail(t.at, "", "the rule is too deep: at most %d operators in each other", maxDepth)
		p.skipClause()
		return nil
	}
	p.next()
	p.next()
	r := &Rule{Operator: operator, at: t.at}
	for {
		part := p.rule(depth + 1)
		if part == nil {
			return nil
		}
		r.Parts = append(r.Parts, part)
		if p.accept(",") {
			continue
		}
		if !p.expect(")", "the parts of "+operator) {
			p.skipClause()
			return nil
		}
		return r
	}
}

// states are the native names of states, by what may be written.
var states = map[string]string{
	"READY": "ready", "RUNNING": "running", "SUCCEEDED": "succeeded", "FAILED": "failed", "FAIL": "failed",
}

// term reads ACTIVITY -> STATE.
func (p *parser) term() *Rule {
	r := &Rule{}
	r.Activity, r.at = p.identifier("an activity, or and(…), or(…)")
	if r.Activity == "" || !p.expect("->", shorten(r.Activity)) {
		p.skipClause()
		return nil
	}
	t := p.next()
	if r.State = states[t.keyword()]; r.State == "" {
		p.fail(t.at, "a state is READY, RUNNING, SUCCEEDED or FAILED", "%s is no state that can be waited for",
			t.what())
	}
	return r
}

// model reads a task model after its keyword.
func (p *parser) model() {
	m := Model{}
	m.Name, m.at = p.identifier("a task model")
	p.clauses("task model "+shorten(m.Name), map[string]func(position){
		"TYPE": func(position) { m.Type = p.taskType() },
		"APPLICATION": func(position) {
			if !p.ended() {
				m.Application, m.application = p.identifier("an application")
			}
		},
		"PRIORITY": func(position) {
			if n, ok := p.whole("PRIORITY", -1_000_000, 1_000_000); ok {
				priority := int(n)
				m.Priority = &priority
			}
		},
		"DEADLINE":               func(position) { m.Deadline, m.NoDeadline = p.deadline() },
		"DISCONNECTED_OPERATION": func(position) { m.Offline = p.boolean() },
		"RETRIES": func(position) {
			n, _ := p.whole("RETRIES", 0, maxRetries)
			m.Retries = int(n)
		},
	})
	p.document.Models = append(p.document.Models, m)
}

// maxRetries is what the native format allows.
const maxRetries = 1000

// types are the native names of task types, by what may be written.
var types = map[string]string{"AUTOMATIC": "automatic", "SEMI_AUTOMATIC": "semi-automatic", "MANUAL": "manual"}

func (p *parser) taskType() string {
	t := p.next()
	if types[t.keyword()] == "" {
		p.fail(t.at, "a type is AUTOMATIC, SEMI_AUTOMATIC or MANUAL", "%s is no type of task", t.what())
	}
	return types[t.keyword()]
}

// application reads an application after its keyword.
func (p *parser) application() {
	a := Application{}
	a.Name, a.at = p.identifier("an application")
	file := func(position) { a.FileName = p.text("FILENAME") }
	p.clauses("application "+shorten(a.Name), map[string]func(position){
		"FILENAME": file, "NAME": file,
		"SIZE": func(position) {
			if !p.ended() {
				a.KB = p.size()
			}
		},
		"OS":        func(position) { a.OS = p.text("OS") },
		"CPU":       func(position) { a.CPU = p.text("CPU") },
		"INSTALLER": func(position) { a.Installer = p.text("INSTALLER") },
		"HOSTS": func(at position) {
			if a.Hosts = p.texts("HOSTS"); len(a.Hosts) == 0 {
				p.fail(at, `name one, as in HOSTS "office", or leave HOSTS out`, "HOSTS names no host")
			}
		},
	})
	p.document.Applications = append(p.document.Applications, a)
}

// identifiers reads names with commas between them; none is allowed.
func (p *parser) identifiers(of string) (names []string, at []position) {
	for !p.ended() {
		name, where := p.identifier(of)
		if name == "" {
			p.skipClause()
			break
		}
		names, at = append(names, name), append(at, where)
		if !p.accept(",") {
			break
		}
	}
	return names, at
}

// text reads a string, which may be missing: then it is empty.
func (p *parser) text(of string) string {
	if p.ended() {
		return ""
	}
	t := p.next()
	if t.kind != text {
		p.fail(t.at, `write it between double quotes`, "%s wants a text, have %s", of, t.what())
	}
	return t.value
}

// fileName reads what a file is called, by the rule of the native format.
func (p *parser) fileName() string {
	if p.ended() {
		return ""
	}
	at := p.peek().at
	name := p.text("NAME")
	if rule := workflow.FileNameRule(name); rule != "" && name != "" {
		p.fail(at, "the file itself is given at the start: mutirao start … --file NAME=PATH",
			"the file is called %q: want %s", shorten(name), rule)
		return ""
	}
	return name
}

// texts reads strings with commas between them.
func (p *parser) texts(of string) []string {
	var all []string
	for !p.ended() {
		all = append(all, p.text(of))
		if !p.accept(",") {
			break
		}
	}
	return all
}

// whole reads a whole number within bounds.
func (p *parser) whole(of string, least, most int64) (int64, bool) {
	if p.ended() {
		return 0, false
	}
	t := p.next()
	n, err := strconv.ParseInt(t.value, 10, 64)
	if t.kind != word || err != nil || n < least || n > most {
		p.fail(t.at, "", "%s is %s: want a whole number from %d to %d", of, t.what(), least, most)
		return 0, false
	}
	return n, true
}

// number reads a number; nil: there is none.
func (p *parser) number() *float64 {
	if p.ended() {
		return nil
	}
	t := p.next()
	n, err := strconv.ParseFloat(t.value, 64)
	if t.kind != word || err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		p.fail(t.at, "write for example 12 or 0.5", "%s is no number", t.what())
		return nil
	}
	return &n
}

func (p *parser) boolean() bool {
	t := p.next()
	switch t.keyword() {
	case "TRUE":
		return true
	case "FALSE":
	default:
		p.fail(t.at, "write TRUE or FALSE", "%s is neither true nor false", t.what())
	}
	return false
}

// deadline reads a number of hours or days; none: of 0, which is as if there were none.
func (p *parser) deadline() (d time.Duration, none bool) {
	n, ok := p.whole("DEADLINE", 0, int64(workflow.MaxDuration/time.Hour))
	if p.ended() {
		if ok {
			p.fail(p.peek().at, "write for example 48 HOURS or 2 DAYS", "the deadline has no unit")
		}
		return 0, false
	}
	t := p.next()
	unit := deadlineUnits[t.keyword()]
	switch {
	case !ok: // reported
		return 0, false
	case unit == 0:
		p.fail(t.at, "write for example 48 HOURS or 2 DAYS", "%s is no unit of a deadline", t.what())
		return 0, false
	case n > int64(workflow.MaxDuration/unit):
		p.fail(t.at, "", "a deadline of %d days is too long: at most %d", n, workflow.MaxDuration/(24*time.Hour))
		return 0, false
	}
	return time.Duration(n) * unit, n == 0
}

var deadlineUnits = map[string]time.Duration{
	"HOUR": time.Hour, "HOURS": time.Hour, "DAY": 24 * time.Hour, "DAYS": 24 * time.Hour,
}

// size reads a number of kilobytes, with or without a space before the unit. Without a unit it is KB: the language says
// that a size is a whole number of these.
func (p *parser) size() int64 {
	t := p.next()
	digits := 0
	for digits < len(t.value) && t.value[digits] >= '0' && t.value[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(t.value[:digits], 10, 64)
	unit := token{kind: t.kind, value: t.value[digits:], at: t.at}
	if unit.value == "" && p.peek().kind == word {
		unit = p.next()
	}
	factor := map[string]int64{"KB": 1, "MB": 1000, "GB": 1_000_000}[unit.keyword()]
	if unit.value == "" && t.kind == word {
		factor = 1
	}
	switch {
	case err == nil && factor == 0:
		p.fail(unit.at, "write KB, MB or GB, as in 340 KB", "%s is no unit of a size", unit.what())
		return 0
	case err != nil || n > maxKB/factor:
		p.fail(t.at, "write for example 340 KB", "the size is %s: want a whole number of KB, from 0 to %d", t.what(), maxKB)
		return 0
	}
	return n * factor
}

// maxKB is what the native format allows for an application.
const maxKB = 1 << 30
