package partition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Unperformed are refusals for the people's tasks of the plan whose role nobody
// has: their items can be offered to no one, unless somebody joins. Contingencies are not among
// them, since they may never be needed. roles are those of all who may come
// back, whether or not they are here now.
func Unperformed(plan *Plan, roles []workflow.RoleName) error {
	var out AssignError
	for _, name := range plan.def.TopoOrder() {
		t := plan.def.Task(name)
		if t.Role == "" || t.ContingencyOnly || slices.Contains(plan.dropped, name) || slices.Contains(roles, t.Role) {
			continue
		}
		out = append(out, Refusal{
			Why:    fmt.Sprintf("task %s: nobody has role %s", name, t.Role),
			Change: fmt.Sprintf("have somebody join with it: mutirao invite --role %s", t.Role),
		})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Unknown are warnings about names in a definition that mean nothing to anybody
// on the partner list: partners, roles, capabilities and applications that
// nobody is or has. Somebody may still join who does.
func Unknown(def *workflow.Definition, partners []Partner) []string {
	has := func(name string) bool {
		return slices.ContainsFunc(partners, func(p Partner) bool {
			return p.Name == name || string(p.ID) == name || slices.Contains(p.Roles, workflow.RoleName(name)) ||
				slices.Contains(p.Capabilities, workflow.Capability(name)) || p.runs(workflow.ApplicationName(name))
		})
	}
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, t := range def.Tasks {
		if t.Role != "" && !has(string(t.Role)) {
			note("task %s: nobody has role %s (have somebody join with it: mutirao invite --role %s)", t.Name, t.Role, t.Role)
		}
		for _, n := range t.Needs {
			if !has(string(n)) {
				note("task %s: nobody has capability or application %s (a partner gets it: mutirao profile set --capability %s)", t.Name, n, n)
			}
		}
		if t.Type == workflow.Automatic && !builtIn(t.Application) && !has(string(t.Application)) {
			note("task %s: nobody has application %s (a partner configures it, or announces a worker's: mutirao profile set --application %s)", t.Name, t.Application, t.Application)
		}
		for _, key := range sortedKeys(t.Suitability) {
			if !has(key) {
				note("task %s: suitability names %s, which is no partner, role or capability here (correct it, or have a partner join that it means)", t.Name, key)
			}
		}
	}
	for _, p := range def.Partitions {
		for _, r := range p.Roles {
			if !has(string(r)) {
				note("partition %s: nobody has role %s (have somebody join with it: mutirao invite --role %s)", p.Name, r, r)
			}
		}
		if p.Partner != "" && !has(p.Partner) {
			note("partition %s: there is no partner %s (the partners are %s)", p.Name, p.Partner, strings.Join(namesOf(partners), ", "))
		}
	}
	return out
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func namesOf(partners []Partner) []string {
	out := make([]string, len(partners))
	for i, p := range partners {
		out[i] = p.String()
	}
	slices.Sort(out)
	return out
}
