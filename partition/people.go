package partition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Unperformed are refusals for the people's tasks of the plan whose role nobody
// has: their items can be offered to no one, unless somebody joins. Contingencies are not among
// them, since they may never be needed. roles are those of all who may come
// back, whether or not they are here now.
func Unperformed(plan *Plan, roles []workflow.RoleName) error {
	var out AssignError
	for _, t := range plan.unperformed(roles) {
		out = append(out, nobodyFor(t))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// NobodyFor is the refusal for a person's task whose role nobody has.
func NobodyFor(t *workflow.Task) error { return AssignError{nobodyFor(t)} }

func nobodyFor(t *workflow.Task) Refusal {
	return Refusal{Why: fmt.Sprintf("task %s: nobody has role %s", t.Name, t.Role), Change: JoinWith(t.Role)}
}

// unperformed are the people's tasks of the plan whose role is none of these.
func (p *Plan) unperformed(roles []workflow.RoleName) (out []*workflow.Task) {
	for _, name := range p.def.TopoOrder() {
		t := p.def.Task(name)
		if t.Role == "" || t.ContingencyOnly && t.Condition == nil || slices.Contains(p.dropped, name) ||
			slices.Contains(roles, t.Role) {
			continue
		}
		out = append(out, t)
	}
	return out
}

// Awaited are the roles of the plan's people's tasks that are none of these, which partners have: whoever is given such a
// task only holds it until somebody takes it from a worklist, or comes, who has its role.
func Awaited(plan *Plan, roles []workflow.RoleName) (out []workflow.RoleName) {
	for _, t := range plan.unperformed(roles) {
		if !slices.Contains(out, t.Role) {
			out = append(out, t.Role)
		}
	}
	return out
}

// Uncovered are notes about contingencies whose role nobody has, and that the plan may come to
// need: they would wait for somebody with it.
func Uncovered(plan *Plan, roles []workflow.RoleName) (out []string) {
	for _, name := range plan.def.TopoOrder() {
		t := plan.def.Task(name)
		if t.Role == "" || !t.ContingencyOnly || t.Condition != nil || slices.Contains(roles, t.Role) {
			continue
		}
		needed := slices.DeleteFunc(plan.standsFor(name),
			func(of workflow.TaskName) bool { return slices.Contains(plan.dropped, of) })
		if len(needed) > 0 {
			out = append(out, fmt.Sprintf("nobody has role %s, which the contingency %s of %s needs (%s)",
				t.Role, name, joined(needed, " and "), JoinWith(t.Role)))
		}
	}
	return out
}

// Person is a user of the mesh who is no partner: somebody with roles who takes tasks from worklists.
type Person struct {
	Name  string
	Roles []workflow.RoleName
}

// Unknown are warnings about names in a definition that mean nothing to anybody
// on the partner list, nor, where a person's task is meant, to a user: partners, users, roles,
// capabilities, applications and databases that nobody is or has. Who is or has them may
// still join.
func Unknown(def *workflow.Definition, partners []Partner, people []Person) []Warning {
	has := func(name string) bool {
		return slices.ContainsFunc(partners, func(p Partner) bool {
			return p.Name == name || string(p.ID) == name || slices.Contains(p.Roles, workflow.RoleName(name)) ||
				slices.Contains(p.Capabilities, workflow.Capability(name)) || p.runs(workflow.ApplicationName(name))
		})
	}
	person := func(is func(Person) bool) bool { return slices.ContainsFunc(people, is) }
	may := func(r workflow.RoleName) bool {
		return has(string(r)) || person(func(p Person) bool { return slices.Contains(p.Roles, r) })
	}
	var out []Warning
	if r := def.CreatorRole; r != "" && !may(r) {
		out = append(out, Warning{"", "", keyCreator, fmt.Sprintf("nobody has role %s, so nobody can start it", r), JoinWith(r)})
	}
	for _, t := range def.Written() { // what a flow needs as a whole is what its tasks need
		if t.Role != "" && !may(t.Role) {
			out = append(out, Warning{"", t.Name, "role", fmt.Sprintf("nobody has role %s", t.Role), JoinWith(t.Role)})
		}
		for _, n := range t.Needs {
			if !has(string(n)) {
				out = append(out, Warning{"", t.Name, "needs",
					fmt.Sprintf("nobody has capability or application %s", n),
					getCapability(n)})
			}
		}
		if t.Type == workflow.Automatic && !builtIn(t.Application) && !has(string(t.Application)) {
			out = append(out, Warning{"", t.Name, "application",
				fmt.Sprintf("nobody has application %s", t.Application),
				getApplication(t.Application)})
		}
		if c := t.Compensate; c != nil && c.Task == "" && !builtIn(c.Application) && !has(string(c.Application)) {
			out = append(out, Warning{"", t.Name, "compensate",
				fmt.Sprintf("nobody has application %s, which undoes it", c.Application),
				getApplication(c.Application)})
		}
		for _, q := range t.Queries {
			if !slices.ContainsFunc(partners, func(p Partner) bool { return slices.Contains(p.Databases, q.Database) }) {
				out = append(out, Warning{"", t.Name, "out",
					fmt.Sprintf("nobody has database %s, which it asks for %s", q.Database, q.Data),
					getDatabase})
			}
		}
		for _, key := range sortedKeys(t.Suitability) {
			user := t.ByRole() && person(func(p Person) bool { return p.Name == key })
			if !may(workflow.RoleName(key)) && !user {
				out = append(out, Warning{"", t.Name, "suitability",
					fmt.Sprintf("suitability names %s, which is no partner, user, role or capability here", key),
					"correct it, or have somebody join that it means"})
			}
		}
	}
	for _, p := range def.Partitions {
		for _, r := range p.Roles {
			switch {
			case has(string(r)):
			case may(r): // who takes tasks of the role, and holds no partition
				what, hint := onlyUsers(r, slices.ContainsFunc(p.Tasks, func(t workflow.TaskName) bool {
					return def.Task(t) != nil && startsChild(def.Task(t))
				}))
				out = append(out, Warning{p.Name, "", "roles", what, hint})
			default:
				out = append(out, Warning{p.Name, "", "roles", fmt.Sprintf("nobody has role %s", r), joinAs(r)})
			}
		}
		if p.Partner != "" && !has(p.Partner) {
			out = append(out, Warning{p.Name, "", "partner", fmt.Sprintf("there is no partner %s", p.Partner),
				"the partners are " + strings.Join(namesOf(partners), ", ")})
		}
	}
	return out
}

// onlyUsers says that a role which a partition lists is one of users alone, and what to do about that; child: whoever
// holds the partition starts other workflows, which may ask for the role.
func onlyUsers(r workflow.RoleName, child bool) (what, hint string) {
	what = fmt.Sprintf("only users have role %s, and partners hold partitions", r)
	if child {
		return what, joinAs(r) + "; leave this one out only where no workflow that its tasks start has it as creator-role"
	}
	return what, "whoever does a task is asked for the task's own role: leave this one out, or " + joinAs(r)
}

// startsChild reports whether whoever holds a task starts another workflow for it.
func startsChild(t *workflow.Task) bool { return t.Type == workflow.SubWorkflow }

// joinAs is the hint where no partner has a role that a partition lists, and getCapability, getApplication and
// getDatabase are those where none has what else is needed.
func joinAs(r workflow.RoleName) string {
	return fmt.Sprintf("have a partner join with it: mutirao invite --role %s", r)
}

func getCapability(n workflow.Capability) string {
	return fmt.Sprintf("a partner gets it: mutirao profile set --capability %s", n)
}

func getApplication(a workflow.ApplicationName) string {
	return fmt.Sprintf("a partner configures it, or announces a worker's: mutirao profile set --application %s", a)
}

const getDatabase = "a partner configures it: databases in its config.yaml"

// howToGet is how a partner gets what nobody has. What is gotten in one way is said once, with the names of the others: the
// name is the last word of each.
func howToGet(nowhere []demand) string {
	var ways []string
	names := map[string][]string{}
	for _, d := range nowhere {
		last := strings.LastIndexByte(d.get, ' ') + 1
		way, name := d.get[:last], d.get[last:]
		if names[way] == nil {
			ways = append(ways, way)
		}
		if !slices.Contains(names[way], name) {
			names[way] = append(names[way], name)
		}
	}
	for i, way := range ways {
		ways[i] = way + names[way][0]
		if more := names[way][1:]; len(more) > 0 {
			ways[i] += ", and so for " + strings.Join(more, ", ")
		}
	}
	return strings.Join(ways, "; ")
}

// JoinWith is the hint where nobody has the role of a task: a partner or a user may have it.
func JoinWith(r workflow.RoleName) string {
	return fmt.Sprintf("have somebody join with it: mutirao invite --role %s, or give it to a user: mutirao role grant USER %s", r, r)
}

// Barred are warnings about partitions that hard constraints leave nobody for,
// as far as the definition's own values of its data say. Input may say otherwise.
func Barred(plan *Plan, partners []Partner) []Warning {
	env := workflow.Env{Data: map[workflow.DataName]workflow.Value{}}
	for _, d := range plan.def.Data {
		env.Data[d.Name] = d.Default
	}
	var out []Warning
	for _, part := range plan.Partitions() {
		u, err := plan.unitOfTasks(part.Tasks)
		if err != nil {
			continue // a cut that is wrong is reported as such
		}
		by := map[string]bool{}
		allowed := slices.ContainsFunc(partners, func(p Partner) bool {
			violations, err := u.violations(plan.def, p, env)
			hard := slices.DeleteFunc(violations, func(v aptitude.Violation) bool { return !v.Hard() })
			for _, v := range hard {
				by[v.Constraint] = true
			}
			return err != nil || len(hard) == 0
		})
		if !allowed {
			out = append(out, Warning{part.Name, "", "",
				fmt.Sprintf("the hard constraint %s leaves nobody", strings.Join(slices.Sorted(maps.Keys(by)), ", ")),
				"lower its penalty below 1, change the data it speaks of, or have a partner join that it allows"})
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
