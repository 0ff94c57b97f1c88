package pdl

import (
	"iter"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/internal/native"
)

// resolve checks that each name is known and given once, that models and
// applications fit together, and that nothing waits for itself.
func (p *parser) resolve() {
	d := p.document
	models := index(p, "task model", d.Models, func(m Model) (string, position) { return m.Name, m.at })
	applications := index(p, "application", d.Applications,
		func(a Application) (string, position) { return a.Name, a.at })
	workflows := index(p, "workflow", d.Workflows, func(w Workflow) (string, position) { return w.Name, w.at })
	for _, m := range d.Models {
		p.checkModel(m, applications)
	}
	for _, w := range d.Workflows {
		p.checkWorkflow(w, models)
	}
	p.checkNesting(workflows)
}

// index finds things by name; a second one of the same name is reported.
func index[T any](p *parser, what string, all []T, name func(T) (string, position)) map[string]int {
	found := make(map[string]int, len(all))
	for i, one := range all {
		n, at := name(one)
		if _, twice := found[n]; twice && n != "" {
			p.fail(at, "give each its own name", "%s %q is defined twice", what, shorten(n))
		}
		found[n] = i
	}
	return found
}

func (p *parser) checkModel(m Model, applications map[string]int) {
	_, known := applications[m.Application]
	switch {
	case m.Type == "" && m.Name != "":
		p.fail(m.at, "write TYPE AUTOMATIC, SEMI_AUTOMATIC or MANUAL",
			"task model %q has no valid type", shorten(m.Name))
	case m.Type == "manual" && m.Application != "":
		p.fail(m.application, "make it SEMI_AUTOMATIC, or leave the application out",
			"manual tasks have no application")
	case m.Type == "automatic" && m.Application == "":
		p.fail(m.at, "write APPLICATION name", "task model %q is automatic and has no application", shorten(m.Name))
	case m.Application != "" && !known:
		p.fail(m.application, "define it with APPLICATION, or correct the name",
			"application %q is not defined", shorten(m.Application))
	}
}

func (p *parser) checkWorkflow(w Workflow, models map[string]int) {
	data := index(p, "data item", w.Data, func(d Data) (string, position) { return d.Name, d.at })
	activities := index(p, "activity", w.Activities, func(a Activity) (string, position) { return a.Name, a.at })
	free, before := false, p.problems.Number()
	for _, a := range w.Activities {
		free = free || a.Depends == nil
		if _, known := models[a.Model]; !known && a.Model != "" {
			p.fail(a.of, "define it with TASK outside of the workflow, or correct the name",
				"task model %q is not defined", shorten(a.Model))
		}
		p.checkData(data, a.In, a.in)
		p.checkData(data, a.Out, a.out)
		p.checkRule(a.Depends, activities)
	}
	for _, d := range w.Data {
		if d.Kind == Query && (d.Database == "" || d.Expression == "") {
			p.fail(d.at, `write DATABASE "name"; EXPRESSION "select …";`,
				"query %q does not say where to ask, or what", shorten(d.Name))
		} else if d.Kind == Query {
			p.checkQuery(d, data, w.Data)
		}
	}
	switch {
	case p.problems.Number() > before: // what has a mistake may not have been read whole
	case len(w.Activities) == 0:
		p.fail(w.at, "write TASK name : model { … }", "workflow %q has no activity", shorten(w.Name))
	case !free: // then each waits for another, and some in a circle
		p.fail(w.at, "leave DEPENDS of the first one out",
			"workflow %q has no activity without dependencies: nothing could begin", shorten(w.Name))
	}
	p.checkCycle(w, activities)
}

// checkQuery checks what a query asks: what is no statement that reads can be asked nowhere. Its parameters are data here,
// too.
func (p *parser) checkQuery(d Data, known map[string]int, all []Data) {
	s, hint, err := workflow.ParseStatement(d.Expression)
	if err != nil {
		p.fail(d.at, hint, "query %q: %v", shorten(d.Name), err)
		return
	}
	for _, name := range s.Parameters() {
		i, ok := known[string(name)]
		if !ok || all[i].Kind != String && all[i].Kind != Number {
			p.fail(d.at, "declare it with STRING or NUMBER, or write it in quotes if it is text",
				"query %q mentions :%s, which is no string or number of the workflow", shorten(d.Name), name)
		}
	}
}

func (p *parser) checkData(known map[string]int, names []string, at []position) {
	for i, n := range names {
		if _, ok := known[n]; !ok {
			p.fail(at[i], "declare it with FILE, QUERY, STRING or NUMBER, or correct the name",
				"data item %q is not declared", shorten(n))
		}
	}
}

func (p *parser) checkRule(r *Rule, activities map[string]int) {
	for t := range r.terms {
		if _, known := activities[t.Activity]; !known {
			p.fail(t.at, "define it with TASK or SUB-WORKFLOW, or correct the name",
				"activity %q is not in this workflow", shorten(t.Activity))
		}
	}
}

// terms goes through the terms of a rule, also of one that is nil.
func (r *Rule) terms(yield func(*Rule) bool) { r.each(yield) }

func (r *Rule) each(yield func(*Rule) bool) bool {
	switch {
	case r == nil:
		return true
	case r.Operator == "":
		return yield(r)
	}
	for _, part := range r.Parts {
		if !part.each(yield) {
			return false
		}
	}
	return true
}

// checkCycle reports activities that wait for themselves.
func (p *parser) checkCycle(w Workflow, number map[string]int) {
	before := make([][]int, len(w.Activities))
	for i, a := range w.Activities {
		for t := range a.Depends.terms {
			if n, known := number[t.Activity]; known {
				before[i] = append(before[i], n)
			}
		}
	}
	for cycle := range cycles(before) {
		p.fail(w.Activities[cycle[0]].at, "leave one of these dependencies out",
			"the activities wait for each other: %s",
			path(cycle, " → ", func(i int) string { return w.Activities[i].Name }))
	}
}

// cycles goes through cycles of which no two have a node in common. It changes what comes before what.
func cycles(before [][]int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for cycle := native.Cycle(before); cycle != nil && yield(cycle); cycle = native.Cycle(before) {
			for _, n := range cycle {
				before[n] = nil
			}
		}
	}
}

// checkNesting reports workflows that are part of themselves, where the sub-workflow is that makes one so.
func (p *parser) checkNesting(number map[string]int) {
	d := p.document
	inside := make([][]int, len(d.Workflows))
	for i, w := range d.Workflows {
		for _, a := range w.Activities {
			if n, here := number[a.SubWorkflow]; here && a.SubWorkflow != "" {
				inside[i] = append(inside[i], n)
			}
		}
	}
	for cycle := range cycles(inside) {
		in := d.Workflows[cycle[1]] // the first is in it
		i := slices.IndexFunc(in.Activities,
			func(a Activity) bool { return a.SubWorkflow == d.Workflows[cycle[0]].Name })
		p.fail(in.Activities[i].at, "leave one of these sub-workflows out", "the workflow is part of itself: %s",
			path(cycle, " in ", func(i int) string { return d.Workflows[i].Name }))
	}
}

func path(numbers []int, between string, name func(int) string) string {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = shorten(name(n))
	}
	return strings.Join(names, between)
}
