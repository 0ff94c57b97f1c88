package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxPenalties bounds the constraints that a resource breaks by one task.
const maxPenalties = 100

var resourceKeys = []string{"name", "roles", "role", "availability", "suitability", "violates"}

func (p *scenarioParser) takeResources(n ast.Node) {
	for _, node := range p.elements(n, "resources", maxNames) {
		p.takeResource(node)
	}
}

func (p *scenarioParser) takeResource(node ast.Node) {
	r := Resource{
		Availability: 1, Suitability: make(map[aptitude.TaskID]float64),
		Violations: make(map[aptitude.TaskID][]aptitude.Violation),
	}
	for _, e := range p.entries(node, "a resource") {
		switch e.name {
		case "name":
			name, _ := p.text(e.node, "a resource's name")
			r.Name = aptitude.ResourceID(name)
		case "roles", "role":
			r.Roles = append(r.Roles, names(p.texts(e.node, e.name))...)
		case "availability":
			p.set(&r.Availability, e.node, "availability", fraction)
		case "suitability":
			p.takeSuitability(&r, e.node)
		case "violates":
			p.takeViolations(&r, e.node)
		default:
			p.unknown(e, "a resource", resourceKeys)
		}
	}
	known := slices.ContainsFunc(p.scenario.Resources, func(o Resource) bool { return o.Name == r.Name })
	switch {
	case r.Name == "":
		p.fail(node, "", "a resource has no name")
	case known:
		p.fail(node, "give each resource its own name", "resource %q is defined twice", r.Name)
	}
	p.scenario.Resources = append(p.scenario.Resources, r)
}

func (p *scenarioParser) takeSuitability(r *Resource, n ast.Node) {
	for _, e := range p.entries(n, "suitability") {
		if p.full() {
			return
		}
		if p.task(e.name) < 0 {
			p.fail(e.key, p.nearestTask(e.name), "suitability for %q, which is not a task", e.name)
		} else if x, ok := p.number(e.node, fmt.Sprintf("suitability for %q", e.name), unit); ok {
			r.Suitability[aptitude.TaskID(e.name)] = x
		}
	}
}

// takeViolations takes the penalties of the constraints that a resource breaks
// by performing a task.
func (p *scenarioParser) takeViolations(r *Resource, n ast.Node) {
	for _, e := range p.entries(n, "violates") {
		if p.full() {
			return
		}
		if p.task(e.name) < 0 {
			p.fail(e.key, p.nearestTask(e.name), "violates names %q, which is not a task", e.name)
			continue
		}
		t := aptitude.TaskID(e.name)
		for _, node := range p.penalties(e) {
			if x, ok := p.number(node, fmt.Sprintf("penalty of %q", e.name), unit); ok {
				r.Violations[t] = append(r.Violations[t], aptitude.Violation{Penalty: x})
			}
		}
	}
}

// penalties are one number, or a list of them, in which the same may recur.
func (p *scenarioParser) penalties(e entry) []ast.Node {
	if _, list := e.node.(*ast.SequenceNode); list {
		return p.elements(e.node, fmt.Sprintf("penalties of %q", e.name), maxPenalties)
	}
	return []ast.Node{e.node}
}

// nearestTask is a hint for a name that is no task's.
func (p *scenarioParser) nearestTask(name string) string {
	known := make([]string, len(p.tasks))
	for i, t := range p.tasks {
		known[i] = t.name
	}
	if near := workflow.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "name a task of the scenario"
}

// checkPerformers makes sure that somebody can perform each task, and that a
// resource counts as suited only for tasks whose roles it has, and from which no
// hard constraint bars it.
func (p *scenarioParser) checkPerformers() {
	for _, t := range p.scenario.Tasks {
		p.checkPerformer(t)
	}
	for i := range p.scenario.Resources {
		r := &p.scenario.Resources[i]
		suited := make(map[aptitude.TaskID]float64)
		for _, t := range p.scenario.Tasks {
			if x := r.Suitability[t.Name]; x > 0 && r.mayPerform(t) && !r.barred(t) {
				suited[t.Name] = x
			}
		}
		r.Suitability = suited
	}
}

func (p *scenarioParser) checkPerformer(t Task) {
	node := p.tasks[p.task(string(t.Name))].node
	var entitled, barred []string
	for _, r := range p.scenario.Resources {
		switch {
		case !r.mayPerform(t):
			continue
		case r.Suitability[t.Name] > 0 && !r.barred(t):
			return
		case r.Suitability[t.Name] > 0:
			barred = append(barred, string(r.Name))
		}
		entitled = append(entitled, string(r.Name))
	}
	switch {
	case len(entitled) == 0:
		p.fail(node, "give the role to a resource, or open the task to another role",
			"nobody has role %s, which task %q needs", strings.Join(t.Roles, " or "), t.Name)
	case len(barred) > 0:
		p.fail(node, "lower a penalty below 1, or add a suited resource",
			"a hard constraint leaves nobody for task %q: %s would violate it", t.Name, strings.Join(barred, ", "))
	case len(entitled) == 1:
		p.fail(node, fmt.Sprintf("give %s a suitability above 0 for it", entitled[0]), "nobody is suited for task %q",
			t.Name)
	default:
		p.fail(node, fmt.Sprintf("give one of %s a suitability above 0 for it", strings.Join(entitled, ", ")),
			"nobody is suited for task %q", t.Name)
	}
}

// barred reports whether the resource would break a hard constraint.
func (r *Resource) barred(t Task) bool { return aptitude.Conformance(r.Violations[t.Name]) <= 0 }

// mayPerform reports whether the resource has a role that the task is open to.
func (r *Resource) mayPerform(t Task) bool {
	return slices.ContainsFunc(t.Roles, func(role string) bool { return slices.Contains(r.Roles, role) })
}

// resourcesPerRole is how many resources a role of the tasks has on average.
func (s *Scenario) resourcesPerRole() float64 {
	roles := make(map[string]bool)
	holders := 0
	for _, t := range s.Tasks {
		for _, role := range t.Roles {
			if roles[role] {
				continue
			}
			roles[role] = true
			for _, r := range s.Resources {
				if slices.Contains(r.Roles, role) {
					holders++
				}
			}
		}
	}
	return float64(holders) / float64(len(roles))
}
