package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

var resourceKeys = []string{"name", "roles", "role", "availability", "suitability"}

func (p *scenarioParser) takeResources(n ast.Node) {
	for _, node := range p.elements(n, "resources", maxNames) {
		p.takeResource(node)
	}
}

func (p *scenarioParser) takeResource(node ast.Node) {
	r := Resource{Availability: 1, Suitability: make(map[aptitude.TaskID]float64)}
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

// nearestTask is a hint for a name that is no task's.
func (p *scenarioParser) nearestTask(name string) string {
	known := make([]string, len(p.tasks))
	for i, t := range p.tasks {
		known[i] = t.name
	}
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "name a task of the scenario"
}

// checkPerformers makes sure that somebody can perform each task, and that a
// resource counts as suited only for tasks whose roles it has.
func (p *scenarioParser) checkPerformers() {
	for i := range p.scenario.Resources {
		r := &p.scenario.Resources[i]
		suited := make(map[aptitude.TaskID]float64)
		for _, t := range p.scenario.Tasks {
			if x := r.Suitability[t.Name]; x > 0 && r.mayPerform(t) {
				suited[t.Name] = x
			}
		}
		r.Suitability = suited
	}
	for _, t := range p.scenario.Tasks {
		p.checkPerformer(t)
	}
}

func (p *scenarioParser) checkPerformer(t Task) {
	node := p.tasks[p.task(string(t.Name))].node
	var entitled []string
	for _, r := range p.scenario.Resources {
		if r.Suitability[t.Name] > 0 {
			return
		}
		if r.mayPerform(t) {
			entitled = append(entitled, string(r.Name))
		}
	}
	if len(entitled) == 0 {
		p.fail(node, "give the role to a resource, or open the task to another role",
			"nobody has role %s, which task %q needs", strings.Join(t.Roles, " or "), t.Name)
		return
	}
	p.fail(node, fmt.Sprintf("give one of %s a suitability above 0 for it", strings.Join(entitled, ", ")),
		"nobody is suited for task %q", t.Name)
}

// mayPerform tells whether the resource has a role that the task is open to.
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
