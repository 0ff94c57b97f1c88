package show

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Needs are why an instance needs a person, as far as is known here.
func (vw *View) Needs(h *Held) []api.Need { return vw.NeedsAt(h, vw.Census()) }

// NeedsAt are Needs of one of several instances that are looked at together.
func (vw *View) NeedsAt(h *Held, c *Census) []api.Need { return vw.Now(vw.standingAt(h, c)) }

// Census is who can do people's tasks at one moment, as far as is asked.
type Census struct {
	partners    Partners
	now         moment.Now
	by          choreo.Reckoning
	roles       map[workflow.RoleName]bool // nil: not asked yet
	users       []workflow.RoleName
	askedOfUser bool
	people      map[worklist.User]bool // whether they are known; nil: nobody was asked about yet
}

// Census begins to ask who can do people's tasks now.
func (vw *View) Census() *Census {
	c := &Census{partners: vw.Partners, now: vw.Clock.Now(), by: vw.Reckoning()}
	c.by.Known = c.known
	return c
}

// known reports whether a user is known.
func (c *Census) known(u worklist.User) bool {
	known, asked := c.people[u]
	if asked {
		return known
	}
	if c.people == nil {
		c.people = map[worklist.User]bool{}
	}
	_, c.people[u] = c.partners.Person(u)
	return c.people[u]
}

// performed reports whether somebody has a role.
func (c *Census) performed(r workflow.RoleName) bool {
	if c.roles == nil {
		c.roles = map[workflow.RoleName]bool{}
		for _, r := range c.partners.Roles() {
			c.roles[r] = true
		}
	}
	return c.roles[r]
}

// byUser reports whether a user has a role.
func (c *Census) byUser(r workflow.RoleName) bool {
	if !c.askedOfUser {
		c.users, c.askedOfUser = c.partners.UserRoles(), true
	}
	return r != "" && slices.Contains(c.users, r)
}

// needs are Needs as if no holder were gone of what others presume to have failed.
func (vw *View) needs(h *Held, c *Census) []api.Need {
	out := []api.Need{}
	for _, x := range h.M.Needs(c.performed, c.byUser, c.answered(h)) {
		out = append(out, api.Need{
			Kind: string(x.Kind), Number: x.Number, Presumed: x.Presumed,
			Tasks: append([]workflow.TaskName{}, x.Tasks...),
		})
	}
	if n, is := vw.overdue(h, c); is {
		out = append([]api.Need{n}, out...)
	}
	for _, i := range vw.lost(h) {
		out = addIncidents(out, 1, i.Task)
	}
	for _, r := range h.M.KeptResults() {
		out = addIncidents(out, 1, r.Task) // also of what cannot be adopted: the instance shows it as an incident
	}
	if refused := len(h.Refused); refused > 0 {
		out = addIncidents(out, refused)
	}
	for i := range out {
		out[i].TaskLabels = workflow.LabelsOf[string](h.M.Definition(), out[i].Tasks)
	}
	return out
}

// Calm is until when nothing is needed in an instance, if nothing happens in it, and of which roles somebody must be there
// for that.
type Calm struct {
	roles []workflow.RoleName
	boot  time.Duration
	wall  time.Time // zero: for ever
}

// Calm says how long an instance that needs nothing now goes on so; nil: that may change with what others do, or with
// what is not its own, such as files.
func (vw *View) Calm(h *Held, needs []api.Need, c *Census) *Calm {
	roles, whole := h.M.RolesAwaited()
	if !whole || len(needs) > 0 || len(h.M.Holders()) > 0 || vw.Files.Concerns(h.Def) {
		return nil
	}
	calm := &Calm{roles: roles}
	for _, d := range h.M.Deadlines(choreo.Moment{Boot: c.now.Boot, Wall: c.now.Wall}, c.by) {
		if until := c.now.Boot + d.Left; d.Left > 0 && (calm.wall.IsZero() || until < calm.boot) {
			calm.boot, calm.wall = until, c.now.Wall.Add(d.Left)
		}
	}
	return calm
}

// Holds reports whether what was said is so still, at the moment of a census.
func (x *Calm) Holds(c *Census) bool {
	for _, r := range x.roles {
		if !c.performed(r) {
			return false
		}
	}
	return x.wall.IsZero() || c.now.Boot < x.boot && c.now.Wall.Before(x.wall)
}

// answered reports whether who answers for an instance is known.
func (c *Census) answered(h *Held) func() bool {
	return func() bool { return c.known(h.M.Responsible()) }
}

// overdue are the tasks of people whose deadline is over, while nobody has done anything about that; false: none is.
func (vw *View) overdue(h *Held, c *Census) (n api.Need, is bool) {
	for x := range vw.eachOverdue(h, c) {
		if n.Number++; n.Since == nil || x.Since.Before(*n.Since) {
			n.Since = &x.Since
		}
		if len(n.Tasks) < choreo.MaxNeedTasks && !slices.Contains(n.Tasks, x.Task) {
			n.Tasks = append(n.Tasks, x.Task)
		}
	}
	n.Kind = string(choreo.NeedOverdue)
	return n, n.Number > 0
}

// Overdue are these tasks, with the commands by which those who decide say what becomes of that.
func (vw *View) Overdue(h *Held) (out []api.Overdue) {
	for x := range vw.eachOverdue(h, vw.Census()) {
		x.Label = h.M.Definition().LabelOf(x.Task)
		for _, command := range []string{"task continue %s %s", "task stop %s %s", "task extend %s %s --by SPAN"} {
			x.Commands = append(x.Commands, "mutirao "+fmt.Sprintf(command, h.M.Instance(), x.Task))
		}
		out = append(out, x)
	}
	return out
}

func (vw *View) eachOverdue(h *Held, c *Census) iter.Seq[api.Overdue] {
	return func(yield func(api.Overdue) bool) {
		for _, d := range h.M.Overdue(choreo.Moment{Boot: c.now.Boot, Wall: c.now.Wall}, c.by) {
			x := api.Overdue{
				Task: d.Task.Name, Partner: vw.People.Name(d.Partner), Item: worklists.ItemID(h.M.Instance(), d.Item),
				Since: c.now.Wall.Add(d.Left).Round(time.Second).UTC(),
			}
			if !yield(x) {
				return
			}
		}
	}
}

// Standing is what a summary keeps of needs, so that it says the truth later as well: holders are, by task, those of tasks
// which others presume to have failed (Now).
func (vw *View) Standing(h *Held) (needs []api.Need, holders []workflow.PartnerID) {
	return vw.standingAt(h, vw.Census())
}

func (vw *View) standingAt(h *Held, c *Census) (needs []api.Need, holders []workflow.PartnerID) {
	needs = vw.needs(h, c)
	i := failedIn(needs)
	if i < 0 {
		return needs, nil
	}
	for _, a := range h.M.Asks() {
		if a.Presumed && slices.Contains(needs[i].Tasks, a.Task) {
			holders = append(holders, a.Partner)
		}
	}
	return needs, holders
}

// Now has needs say what is so now: about a task which others presume to have failed something can be ordered as soon as
// its holder is gone, as another does it, and no more when that is back.
func (vw *View) Now(needs []api.Need, holders []workflow.PartnerID) []api.Need {
	if i := failedIn(needs); i >= 0 {
		for _, p := range holders {
			if vw.Partners.Gone(p) {
				needs[i].Presumed = max(needs[i].Presumed-1, 0)
			}
		}
	}
	return needs
}

// failedIn finds the need of tasks that failed; negative: there is none.
func failedIn(needs []api.Need) int {
	return slices.IndexFunc(needs, func(n api.Need) bool { return n.Kind == api.NeedFailed })
}

// addIncidents adds incidents that are this node's to know, of these tasks.
func addIncidents(needs []api.Need, number int, tasks ...workflow.TaskName) []api.Need {
	is := func(n api.Need) bool { return n.Kind == string(choreo.NeedIncident) }
	i := slices.IndexFunc(needs, is)
	if i < 0 {
		i, needs = len(needs), append(needs, api.Need{Kind: string(choreo.NeedIncident), Tasks: []workflow.TaskName{}})
	}
	n := &needs[i]
	n.Number += number
	for _, t := range tasks {
		if len(n.Tasks) < choreo.MaxNeedTasks && !slices.Contains(n.Tasks, t) {
			n.Tasks = append(n.Tasks, t)
		}
	}
	return needs
}
