package partition

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file hands out the parts of one instance by the mechanisms of package
// aptitude, as the study does, at the moment at which they must have a holder.
// So nothing waits in a queue: what the study would let wait goes, here, to the
// one of those entitled that has the least work in hand.

// PlainRule is the mechanism of a definition that says nothing about
// distribution: the rules of Assign.
const PlainRule aptitude.Mechanism = ""

// MechanismOf is by what the work of a definition's instances is distributed:
// as asked, else as the definition says, else by Sel-push where it says who is
// apt or who must not perform what, else by the plain rule.
func MechanismOf(def *workflow.Definition, asked string) (aptitude.Mechanism, error) {
	if name := cmp.Or(asked, def.Distribution.Mechanism); name != "" {
		return aptitude.ParseMechanism(name)
	}
	chooses := slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return len(t.Suitability) > 0 }) ||
		slices.ContainsFunc(def.Constraints, func(c workflow.Constraint) bool { return c.Violated != nil })
	if chooses {
		return aptitude.SelPush, nil
	}
	return PlainRule, nil
}

// Situation is what a distribution goes by, besides the plan.
type Situation struct {
	Partners  []Partner
	Closed    []Closed           // those who are known and not among Partners
	Self      workflow.PartnerID // who distributes: it reaches itself
	Mechanism aptitude.Mechanism
	// InHand is the unfinished work of each kind (WorkOf, WorkOfTasks) that costs
	// somebody availability, in all instances that are known here. An item of a kind
	// costs its share of that, which falls as more comes (FilaW, equation 4.1).
	InHand map[Kind]InHand
	// Data, Instance and Performers are what constraints may ask about.
	Data       map[workflow.DataName]workflow.Value
	Instance   string
	Performers map[workflow.TaskName]string
	// Awaited are roles that no partner has: for their tasks nobody is more or less apt to hold them.
	Awaited []workflow.RoleName
	// OfUsers are roles that people have who are no partners: they take their tasks from a worklist.
	OfUsers []workflow.RoleName
	// Rejected have turned the work down.
	Rejected []workflow.PartnerID
	// CanWait: nobody has to take the work now. What Sel-push-pull has offered waits on for whoever takes it from a
	// worklist where nobody has availability left.
	CanWait bool
	// Rand decides which partner is first where several are.
	Rand *rand.Rand

	offered bool // it was offered for as long as Sel-push-pull has patience
}

// Kind is a kind of work: items of one kind share a queue (FilaW). It is short,
// since nodes tell one another of it; two kinds that had the same number would share
// a queue.
type Kind uint32

// NoKind is work that costs nobody availability.
const NoKind Kind = 0

// WorkOf is the kind of work that a partition of a definition is.
func WorkOf(def workflow.Name, p workflow.PartitionName) Kind { return kindOf(def, string(p)) }

// WorkOfTasks is WorkOf for tasks that are assigned by themselves.
func WorkOfTasks(def workflow.Name, tasks ...workflow.TaskName) Kind {
	return kindOf(def, strings.Join(words(tasks), "+"))
}

func kindOf(def workflow.Name, what string) Kind {
	sum := sha256.Sum256([]byte(string(def) + "/" + what))
	return max(1, Kind(binary.BigEndian.Uint32(sum[:])))
}

// Distribute gives every partition of the plan to a partner, by the situation's
// mechanism. Pins bind as for Assign, but no hard constraint is ever broken.
// The most urgent partition chooses first, else the one that begins first.
func Distribute(
	plan *Plan, s Situation, pins map[workflow.PartitionName]workflow.PartnerID,
) (map[workflow.PartitionName]workflow.PartnerID, []Choice, error) {
	if s.Mechanism == PlainRule {
		return assignPlainly(plan, s, pins)
	}
	a := newAssignment(plan, s)
	d := newDistributor(plan, s, a.partners)
	d.schedule = plan.Schedule(func(workflow.TaskName) bool { return false })
	a.checkPins(pins)
	var free []*Partition
	for _, part := range plan.Partitions() {
		switch {
		case !a.pin(part, pins):
			free = append(free, part)
		default:
			d.pinned(a, part)
		}
	}
	place := map[workflow.TaskName]int{}
	for i, t := range plan.def.TopoOrder() {
		place[t] = i
	}
	slices.SortStableFunc(free, func(x, y *Partition) int {
		return cmp.Or(cmp.Compare(a.units[y.Name].urgency(), a.units[x.Name].urgency()),
			cmp.Compare(place[x.Tasks[0]], place[y.Tasks[0]]))
	})
	for _, part := range free {
		c, refusal := d.give(a.units[part.Name], WorkOf(plan.def.Name, part.Name))
		if refusal != nil {
			refusal.Partition = part.Name
			a.refusals[part.Name] = append(a.refusals[part.Name], *refusal)
			continue
		}
		c.Partition = part.Name
		a.take(c)
	}
	return a.result()
}

// DistributeTasks gives tasks, which one partner must take together, to a
// partner by the situation's mechanism: a contingency, a P′, or work that its
// holder passes on. What is driven by data goes to one of those that lack least of what its tasks and what undoes them
// ask of a partner: at the start nobody has it who lacks anything, but somebody must keep its states, for anything to
// be repaired.
func DistributeTasks(plan *Plan, s Situation, tasks ...workflow.TaskName) (Choice, error) {
	u, err := plan.unitToHold(tasks)
	if err != nil {
		return Choice{}, err
	}
	u.awaited = append(slices.Clone(s.Awaited), u.waits(s.Mechanism)...)
	if flow := plan.def.Flow(); flow != nil && slices.Contains(tasks, workflow.FlowTask) {
		for among := range plan.ablest(flow, s.Partners) {
			those := s
			those.Partners = among
			if c, err := distribute(plan, those, u, tasks); err == nil {
				return c, nil
			}
		}
	}
	return distribute(plan, s, u, tasks)
}

// ablest are those of partners that lack nothing of what a flow's tasks ask, then with them those that lack one thing,
// and so on: each with one partner more than before at least.
func (p *Plan) ablest(flow *workflow.Flow, partners []Partner) iter.Seq[[]Partner] {
	u := &unit{}
	for _, t := range flow.Triggers {
		u.addTasks(p, []workflow.TaskName{t.Name})
	}
	return func(yield func([]Partner) bool) {
		found := 0
		for most := range u.demands {
			among := slices.DeleteFunc(slices.Clone(partners), func(x Partner) bool { return len(u.lacks(x)) > most })
			if len(among) > found && !yield(among) {
				return
			}
			found = len(among)
		}
	}
}

// distribute gives a unit of tasks to a partner by the mechanism of the situation.
func distribute(plan *Plan, s Situation, u *unit, tasks []workflow.TaskName) (Choice, error) {
	if s.Mechanism == PlainRule {
		willing := slices.DeleteFunc(slices.Clone(s.Partners),
			func(p Partner) bool { return slices.Contains(s.Rejected, p.ID) })
		return u.assign(willing, s.Self)
	}
	c, refusal := newDistributor(plan, s, reachSelf(s.Partners, s.Self)).give(u, WorkOfTasks(plan.def.Name, tasks...))
	if refusal != nil {
		return Choice{}, AssignError{*refusal}
	}
	return c, nil
}

// FindPerformer gives a person's task, which is ready at the partner that
// distributes, to somebody who has its role and can be reached now: by the plain
// rule to that partner itself if it can, else as DistributeTasks does; but what the
// task's partition lists is asked of its holder, not of whoever performs the task.
func FindPerformer(plan *Plan, s Situation, task workflow.TaskName) (Choice, error) {
	role := plan.def.Task(task).Role
	u, err := plan.unitOfTasks([]workflow.TaskName{task})
	if err != nil {
		return Choice{}, err
	}
	s.offered = true
	with := slices.DeleteFunc(reachSelf(s.Partners, s.Self),
		func(p Partner) bool { return !slices.Contains(p.Roles, role) })
	s.Partners = slices.DeleteFunc(slices.Clone(with), func(p Partner) bool { return !p.Reachable })
	if len(s.Partners) == 0 {
		return Choice{}, AssignError{u.nobodyHere(role, with, slices.Contains(s.OfUsers, role))}
	}
	if !slices.ContainsFunc(s.Partners, func(p Partner) bool { return !slices.Contains(s.Rejected, p.ID) }) {
		return Choice{}, AssignError{u.passedOnByAll(role, s.Partners, slices.Contains(s.OfUsers, role))}
	}
	i := slices.IndexFunc(s.Partners, func(p Partner) bool { return p.ID == s.Self })
	if s.Mechanism == PlainRule && i >= 0 && len(u.lacks(s.Partners[i])) == 0 && !slices.Contains(s.Rejected, s.Self) {
		return Choice{
			Partner: s.Self, Name: s.Partners[i].String(), Why: "it holds the task, and has role " + string(role),
		}, nil
	}
	return distribute(plan, s, u, []workflow.TaskName{task}) // its performer need not have what the partition lists
}

// nobodyHere says why a person's task goes to no partner now: of those with its role none can be reached.
func (u *unit) nobodyHere(role workflow.RoleName, away []Partner, users bool) Refusal {
	switch {
	case users:
		return Refusal{
			Why:    fmt.Sprintf("%s: it is for the users with role %s", u.name, role),
			Change: fmt.Sprintf("one who has it on the worklist takes it; mutirao role list says who has role %s", role),
		}
	case len(away) > 0:
		return Refusal{
			Why:    fmt.Sprintf("%s: nobody with role %s can be reached", u.name, role),
			Change: fmt.Sprintf("it goes to the first that comes back: %s", strings.Join(namesOf(away), ", ")),
		}
	}
	return Refusal{Why: fmt.Sprintf("%s: nobody has role %s", u.name, role), Change: JoinWith(role)}
}

// passedOnByAll says why a person's task goes to no partner now: all of those with its role who can be reached have
// passed it on. It is on their worklists all the same.
func (u *unit) passedOnByAll(role workflow.RoleName, here []Partner, users bool) Refusal {
	if users {
		return u.nobodyHere(role, nil, true)
	}
	return Refusal{
		Why: fmt.Sprintf("%s: all with role %s who can be reached have passed it on: %s", u.name, role,
			strings.Join(namesOf(here), ", ")),
		Change: "it is on their worklists all the same: one of them takes it, or another with that role joins",
	}
}

// distributor is the state of one distribution.
type distributor struct {
	plan       *Plan
	s          Situation
	partners   []Partner
	performers map[workflow.TaskName]string
	given      []given
	order      *order    // of the tasks; nil: nothing was given that could overlap
	schedule   *Schedule // of the instance, if it is about to start
}

// given is a unit that has been given to a partner just now.
type given struct {
	unit    *unit
	work    Kind
	partner int
}

func newDistributor(plan *Plan, s Situation, partners []Partner) *distributor {
	d := &distributor{plan: plan, s: s, partners: slices.Clone(partners), performers: map[workflow.TaskName]string{}}
	for t, who := range s.Performers {
		d.performers[t] = who
	}
	slices.SortFunc(d.partners, func(a, b Partner) int { return cmp.Compare(a.ID, b.ID) })
	return d
}

// pinned holds a pin against the hard constraints, and counts it.
func (d *distributor) pinned(a *assignment, part *Partition) {
	c, ok := a.choices[part.Name]
	if !ok {
		return // refused already
	}
	u, work := a.units[part.Name], WorkOf(d.plan.def.Name, part.Name)
	i := slices.IndexFunc(d.partners, func(p Partner) bool { return p.ID == c.Partner })
	d.face(u, work)
	if d.partners[i].Rested <= 0 {
		a.refusals[part.Name] = append(a.refusals[part.Name], Refusal{part.Name,
			fmt.Sprintf("%s: it is pinned to %s, which %s", u.name, c.Name, TakesNothing),
			"assign it to another partner, or have that one raise it: mutirao profile set --availability high"})
	}
	violations, err := u.violations(d.plan.def, d.partners[i], d.env())
	if err != nil {
		a.refusals[part.Name] = append(a.refusals[part.Name],
			Refusal{part.Name, fmt.Sprintf("%s: %v", u.name, err), "correct the constraint, or the input"})
		return
	}
	for _, v := range violations {
		if v.Hard() {
			a.refusals[part.Name] = append(a.refusals[part.Name], Refusal{part.Name,
				fmt.Sprintf("%s: it is pinned to %s, which constraint %s forbids", u.name, c.Name, v.Constraint),
				"assign it to another partner, or lower the constraint's penalty below 1"})
		}
	}
	d.count(given{u, work, i})
}

func (d *distributor) env() workflow.Env {
	return workflow.Env{Data: d.s.Data, Instance: d.s.Instance, Performers: d.performers}
}

// count notes that a partner has been given a unit.
func (d *distributor) count(g given) {
	d.given = append(d.given, g)
	if d.schedule != nil {
		d.schedule.give(g.unit, d.begins(g.unit)+d.partners[g.partner].faced.backlog)
	}
	d.partners[g.partner].LastFlow = g.unit.expected() // as long as it has not ended
	for _, t := range g.unit.tasks {
		d.performers[t.Name] = d.partners[g.partner].called()
	}
}

// face works out what a unit finds in its way: of a kind of work in hand, a partner's
// availability is taken up by its share of the time of all such work, the unit
// itself included (FilaW). A partner that is given a unit that is ready meets what is
// ready. One that is ready later meets what is expected to be in hand then (left), and
// what was given just now of the same instance as far as the two can overlap. It returns
// the time of the work of each kind, without the unit.
func (d *distributor) face(u *unit, work Kind) map[Kind]float64 {
	queue := make(map[Kind]float64, len(d.s.InHand))
	for kind, h := range d.s.InHand {
		queue[kind] = h.Ready.Seconds()
		if u.later {
			queue[kind] = h.All.Seconds()
		}
	}
	begins := d.begins(u)
	held := make([]map[Kind]float64, len(d.partners))
	for i, p := range d.partners {
		if u.later {
			held[i], d.partners[i].faced.backlog = p.left(begins)
			for kind, h := range p.InHand {
				queue[kind] -= h.All.Seconds() - held[i][kind]
			}
			continue
		}
		held[i] = make(map[Kind]float64, len(p.InHand))
		for kind, h := range p.InHand {
			held[i][kind] = h.Ready.Seconds()
		}
		d.partners[i].faced.backlog = p.Backlog.Ready
	}
	beside := d.beside(u)
	for i, g := range d.given {
		if d.s.Mechanism.Loads() {
			queue[g.work] += beside[i].Seconds()
			held[g.partner][g.work] += beside[i].Seconds()
		}
		d.partners[g.partner].faced.backlog += beside[i]
	}
	for i := range d.partners {
		taken := 0.0
		for _, kind := range slices.Sorted(maps.Keys(held[i])) { // sums of floats depend on the order
			has := held[i][kind]
			all := max(queue[kind], has)
			if kind == work {
				all += u.expected().Seconds()
			}
			if all > 0 {
				taken += has / all
			}
		}
		d.partners[i].faced.taken, d.partners[i].faced.alike = unit01(taken), held[i][work]
	}
	return queue
}

// give finds the partner that takes a unit.
func (d *distributor) give(u *unit, work Kind) (Choice, *Refusal) {
	queue := d.face(u, work)
	item, err := d.item(u)
	if err != nil {
		return Choice{}, &Refusal{
			Why: fmt.Sprintf("%s: %v", u.name, err), Change: "correct the constraint, or the input",
		}
	}
	resources := d.resources(u)
	as, why := d.allocate(item, resources, queue[work])
	if as.Err != nil {
		r := d.refusal(u, as.Err)
		return Choice{}, &r
	}
	i := slices.IndexFunc(d.partners, func(p Partner) bool { return p.ID == workflow.PartnerID(as.Resource) })
	p := d.partners[i]
	share := 0.0
	if r := rested(p); r > 0 {
		share = as.Load / r
	}
	begins := d.begins(u)
	d.count(given{u, work, i})
	return Choice{
		Partner: p.ID, Name: p.String(), Why: why + waiting(p), Mechanism: d.s.Mechanism, Share: share, Begins: begins,
		Assignment: &as,
	}, nil
}

func (d *distributor) item(u *unit) (aptitude.Item, error) {
	it := aptitude.Item{
		ID: aptitude.ItemID(u.name), Task: aptitude.TaskID(u.name), Time: u.expected().Seconds(),
		Urgency:    aptitude.Urgency{Initial: u.urgency()},
		Violations: map[aptitude.ResourceID][]aptitude.Violation{},
	}
	for _, p := range d.partners {
		vs, err := u.violations(d.plan.def, p, d.env())
		if err != nil {
			return it, err
		}
		if len(vs) > 0 {
			it.Violations[aptitude.ResourceID(p.ID)] = vs
		}
	}
	for _, p := range d.s.Rejected {
		it.Rejected = append(it.Rejected, aptitude.ResourceID(p))
	}
	return it, nil
}

// resources are the partners as the metric sees them. A partner that cannot be
// reached now is absent, unless nobody suited can be; one that goes down always
// is.
func (d *distributor) resources(u *unit) []aptitude.Resource {
	here := slices.ContainsFunc(d.partners, func(p Partner) bool {
		return p.Reachable && rested(p) > 0 && u.suitability(p) > 0 && !slices.Contains(d.s.Rejected, p.ID)
	})
	out := make([]aptitude.Resource, len(d.partners))
	for i, p := range d.partners {
		r := aptitude.Resource{
			ID:          aptitude.ResourceID(p.ID),
			Suitability: map[aptitude.TaskID]float64{aptitude.TaskID(u.name): u.suitability(p)},
			Rested:      rested(p), Availability: available(p), Busy: p.faced.backlog > 0,
			LastFlow: p.LastFlow.Seconds(), InHand: map[aptitude.TaskID]float64{aptitude.TaskID(u.name): p.faced.alike},
		}
		if p.Down || here && !p.Reachable {
			r.Rested, r.Availability = 0, 0
		}
		out[i] = r
	}
	return out
}

// patience is how long Sel-push-pull offers at first what cannot wait for somebody to take
// it: a moment. Only people's tasks can wait (sight.go).
const patience = 1

// allocate asks the mechanism. What it would let wait goes to the one of those
// entitled that has the least in hand; of equals chance decides where idle partners
// would have taken it by themselves, else the most apt, the first.
func (d *distributor) allocate(
	item aptitude.Item, resources []aptitude.Resource, queued float64,
) (aptitude.Assignment, string) {
	policy := aptitude.Policy{
		Mechanism: d.s.Mechanism, Patience: patience, Compensate: d.plan.def.Distribution.CompensateViolations,
	}
	if d.s.offered {
		policy.Patience = 0
	}
	q := aptitude.Queue{Waiting: []aptitude.Item{item}, InHand: map[aptitude.TaskID]float64{item.Task: queued}}
	as := aptitude.Allocate(q, resources, policy, d.s.Rand)[0]
	if as.Resource == "" && as.Again > 0 {
		policy.Patience = 0
		as = aptitude.Allocate(q, resources, policy, d.s.Rand)[0]
	}
	if as.Err != nil {
		return as, ""
	}
	if as.Resource != "" {
		return as, fmt.Sprintf("chosen by %s", d.s.Mechanism)
	}
	if !d.leastInHand(&as) {
		as.Err = errAbsent
		if slices.ContainsFunc(as.Candidates, func(c aptitude.Candidate) bool { return c.Verdict == aptitude.NoCapacity }) {
			as.Err = errFull
		}
		return as, ""
	}
	return as, fmt.Sprintf("nobody is free for %s; it has the least work in hand of those entitled", d.s.Mechanism)
}

var (
	errAbsent = errors.New("all who are suited are absent")
	errFull   = errors.New("nobody who is suited has availability left")
)

// leastInHand chooses for an item that would wait; false when nobody is there.
func (d *distributor) leastInHand(as *aptitude.Assignment) bool {
	backlog := func(c *aptitude.Candidate) time.Duration {
		i := slices.IndexFunc(d.partners, func(p Partner) bool { return p.ID == workflow.PartnerID(c.Resource) })
		return d.partners[i].faced.backlog
	}
	entitled := func(v aptitude.Verdict) bool {
		return v == aptitude.NoCapacity || v == aptitude.Offered ||
			v == aptitude.BelowThreshold && len(as.Visible()) == 0
	}
	var best []*aptitude.Candidate
	for i := range as.Candidates {
		c := &as.Candidates[i]
		full := d.s.CanWait && d.s.Mechanism == aptitude.SelPushPull && c.Availability < 1e-9
		if !entitled(c.Verdict) || full {
			continue
		}
		order := -1
		if len(best) > 0 {
			order = cmp.Compare(backlog(c), backlog(best[0]))
			if order == 0 && !d.s.Mechanism.Pulls() {
				order = cmp.Compare(best[0].Quality(), c.Quality())
			}
		}
		switch {
		case order < 0:
			best = append(best[:0], c)
		case order == 0:
			best = append(best, c)
		}
	}
	if len(best) == 0 {
		return false
	}
	chosen := best[0]
	if d.s.Mechanism.Pulls() {
		chosen = best[d.s.Rand.IntN(len(best))]
	}
	chosen.Verdict, as.Resource = aptitude.Chosen, chosen.Resource
	return true
}

// refusal says why nobody can take a unit, and what would have to change.
func (d *distributor) refusal(u *unit, err error) Refusal {
	ranked := u.contenders(d.partners, nil)
	if len(ranked) == 0 || !ranked[0].able() {
		return u.refuse("", ranked)
	}
	var nobody *aptitude.NobodyError
	switch {
	case errors.Is(err, errFull):
		return Refusal{
			Why:    fmt.Sprintf("%s: %v", u.name, err),
			Change: "it goes to the first that has, and whoever is suited may take it from the worklist",
		}
	case !errors.As(err, &nobody):
		return Refusal{
			Why:    fmt.Sprintf("%s: %v", u.name, err),
			Change: "have one of them raise its availability: mutirao profile set --availability",
		}
	case len(nobody.Forbidden) > 0:
		return Refusal{
			Why: fmt.Sprintf("%s: the hard constraint %s leaves nobody (it forbids %s)", u.name,
				strings.Join(nobody.Constraints, ", "), d.names(nobody.Forbidden)),
			Change: "lower its penalty below 1, change the data it speaks of, or have a partner join that it allows",
		}
	case len(nobody.Rejected) > 0:
		return Refusal{
			Why:    fmt.Sprintf("%s: all who are suited have rejected it: %s", u.name, d.names(nobody.Rejected)),
			Change: "have another suited partner join",
		}
	}
	return u.unsuited(d.partners)
}

// unsuited says which task keeps partners that are able from taking the unit.
func (u *unit) unsuited(partners []Partner) Refusal {
	roles := map[workflow.RoleName]bool{}
	for _, p := range partners {
		for _, r := range p.Roles {
			roles[r] = true
		}
	}
	for _, t := range u.tasks {
		if t.Role != "" && !roles[t.Role] {
			return Refusal{
				Why:    fmt.Sprintf("%s: nobody has role %s, which task %s needs", u.name, t.Role, t.Name),
				Change: JoinWith(t.Role),
			}
		}
		suited := func(p Partner) bool { return len(u.lacks(p)) == 0 && Suitability(t, p) > 0 }
		if !slices.ContainsFunc(partners, suited) {
			return Refusal{
				Why:    fmt.Sprintf("%s: no partner that can take it is suited for task %s", u.name, t.Name),
				Change: fmt.Sprintf("give one a suitability above 0: under suitability: of the task, by name, role or capability, or there with mutirao profile set --suitability %s=0.8", t.Name),
			}
		}
	}
	return Refusal{
		Why:    u.name + ": no partner is suited for all of its tasks",
		Change: "give one a suitability above 0 for each of them, or cut the workflow so that no partner needs all",
	}
}

func (d *distributor) names(ids []aptitude.ResourceID) string {
	var out []string
	for _, id := range ids {
		i := slices.IndexFunc(d.partners, func(p Partner) bool { return p.ID == workflow.PartnerID(id) })
		out = append(out, d.partners[i].String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
