package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Choice says who takes a partition, or the tasks given to AssignTasks, and why.
type Choice struct {
	Partition workflow.PartitionName // empty for AssignTasks
	Partner   workflow.PartnerID
	Name      string
	Why       string
	// Mechanism is what chose; empty: a pin, or the plain rule.
	Mechanism aptitude.Mechanism
	// Share of what its partner has to give is what the work takes up until it is finished.
	Share float64
	// Begins is how long it takes until the work is expected to be ready, where a mechanism
	// chose and what its tasks wait for, and the work in hand of those who do that, tell.
	Begins time.Duration
	// Assignment are the candidates with their factors, where a mechanism chose.
	Assignment *aptitude.Assignment
}

// Refusal says why a partition, or tasks, could not be assigned.
type Refusal struct {
	Partition workflow.PartitionName // empty if it is not about one
	Why       string                 // a whole sentence without its full stop
	Change    string                 // what would have to change
}

// AssignError is returned by Assign and AssignTasks when nobody can take
// something: all that stands in the way, by partition.
type AssignError []Refusal

// Error prints one line for each refusal: why (what would have to change).
func (e AssignError) Error() string {
	lines := make([]string, len(e))
	for i, r := range e {
		lines[i] = fmt.Sprintf("%s (%s)", r.Why, r.Change)
	}
	return strings.Join(lines, "\n")
}

// contender is a partner that is looked at for a unit.
type contender struct {
	Partner
	lacks []demand
	suits int // people's tasks whose role it has
	holds int // partitions of this instance that it has been given
}

func (c contender) able() bool { return len(c.lacks) == 0 && !c.Down }

// preferences order the contenders for a unit: the first in which two of them
// differ decides, and is the reason that is given.
var preferences = []struct {
	reason string
	order  func(a, b contender) int
}{
	{"it lacks less", func(a, b contender) int { return cmp.Compare(len(a.lacks), len(b.lacks)) }},
	{"it does not go down", func(a, b contender) int { return yesFirst(!a.Down, !b.Down) }},
	{"it can be reached", func(a, b contender) int { return yesFirst(a.Reachable, b.Reachable) }},
	{"it has the roles of more of the people's tasks",
		func(a, b contender) int { return cmp.Compare(b.suits, a.suits) }},
	{"it holds fewer partitions of this instance", func(a, b contender) int { return cmp.Compare(a.holds, b.holds) }},
	{"it is less loaded", func(a, b contender) int { return cmp.Compare(a.Load, b.Load) }},
	{"its ID comes first", func(a, b contender) int { return cmp.Compare(a.ID, b.ID) }},
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// prefer compares two contenders and says what decided.
func prefer(a, b contender) (order int, reason string) {
	for _, p := range preferences {
		if c := p.order(a, b); c != 0 {
			return c, p.reason
		}
	}
	return 0, ""
}

// contenders orders the partners by preference for the unit.
func (u *unit) contenders(partners []Partner, holds map[workflow.PartnerID]int) []contender {
	out := make([]contender, len(partners))
	for i, p := range partners {
		out[i] = contender{p, u.lacks(p), u.suits(p), holds[p.ID]}
	}
	slices.SortStableFunc(out, func(a, b contender) int {
		order, _ := prefer(a, b)
		return order
	})
	return out
}

// Assign gives every partition of the plan to a partner.
//
// A pin binds: one in pins (start --assign), else the partner that the author
// named. A pinned partner need not be reachable now, but it must be able. Every
// other partition goes to a partner that can take it: one that can be reached
// before others, then the one that has the roles of more of its people's tasks
// (who completes them there), then the one that holds fewest partitions of this
// instance, the least loaded, the first ID. Partitions that fewest partners can
// take choose first. self is the partner that assigns: it reaches itself.
//
// The choices come by the names of the partitions. If one cannot be assigned
// the error is an AssignError, and nothing is assigned.
func Assign(
	plan *Plan, partners []Partner, pins map[workflow.PartitionName]workflow.PartnerID, self workflow.PartnerID,
) (map[workflow.PartitionName]workflow.PartnerID, []Choice, error) {
	return assignPlainly(plan, Situation{Partners: partners, Self: self}, pins)
}

// assignPlainly is Assign, with what is known of those who take no work.
func assignPlainly(
	plan *Plan, s Situation, pins map[workflow.PartitionName]workflow.PartnerID,
) (map[workflow.PartitionName]workflow.PartnerID, []Choice, error) {
	a := newAssignment(plan, s)
	a.checkPins(pins)
	a.assign(pins, func(*Partition) bool { return true })
	return a.result()
}

// Place gives some partitions of a plan to partners by the rules of Assign, where others are held already: held has who
// holds them, once for each. What of them nobody can have is refused, and the others are placed.
func Place(
	plan *Plan, s Situation, held []workflow.PartnerID, names ...workflow.PartitionName,
) (out []Choice, refused []Refusal) {
	a := newAssignment(plan, s)
	for _, p := range held {
		a.holds[p]++
	}
	a.assign(nil, func(p *Partition) bool { return slices.Contains(names, p.Name) })
	for _, part := range plan.Partitions() {
		refused = append(refused, a.refusals[part.Name]...)
		if c, ok := a.choices[part.Name]; ok {
			out = append(out, c)
		}
	}
	return out, refused
}

// AssignTasks gives tasks, which one partner must take together, to one of
// partners by the rules of Assign: a contingency that is placed nowhere, or the
// tasks of a contingency partition P′. It must have what the partitions list in which
// these tasks are. The caller leaves out the partners that
// must not get it, such as the one that failed.
func AssignTasks(plan *Plan, partners []Partner, self workflow.PartnerID, tasks ...workflow.TaskName) (Choice, error) {
	u, err := plan.unitToHold(tasks)
	if err != nil {
		return Choice{}, err
	}
	return u.assign(partners, self)
}

// assign gives the unit to one of partners by the rules of Assign.
func (u *unit) assign(partners []Partner, self workflow.PartnerID) (Choice, error) {
	ranked := u.contenders(reachSelf(partners, self), nil)
	if len(ranked) == 0 || !ranked[0].able() {
		return Choice{}, AssignError{u.refuse("", ranked)}
	}
	return choiceOf("", ranked), nil
}

// unitToHold is the unit of tasks that one partner is to hold by themselves: like the
// holder of their partitions it has what these list.
func (p *Plan) unitToHold(tasks []workflow.TaskName) (*unit, error) {
	u, err := p.unitOfTasks(tasks)
	if err != nil {
		return nil, err
	}
	for _, part := range p.partitions {
		if slices.ContainsFunc(tasks, func(t workflow.TaskName) bool { return p.Home(t) == part.Name }) {
			u.addListed(part)
		}
	}
	return u, nil
}

// Lacks is what a partner lacks to hold tasks by themselves, for people; empty: nothing.
func (p *Plan) Lacks(at Partner, tasks ...workflow.TaskName) string {
	u, err := p.unitToHold(tasks)
	if err != nil {
		return ""
	}
	return list(u.lacks(at))
}

// MayWork reports whether the work of a task may be done beside a partner that does not hold it: that one has what the
// task needs and what its partition lists, as a holder must. Applications are not asked for: whoever does such work there
// asks for its own by name, and does not undo what it did, which is work by itself.
func (p *Plan) MayWork(at Partner, t workflow.TaskName) bool {
	i, known := p.graph.index[t]
	if !known {
		return false
	}
	u := &unit{}
	for _, n := range p.graph.tasks[i].Needs {
		u.need(n, string(t))
	}
	if part := p.Partition(p.Home(t)); part != nil {
		u.addListed(part)
	}
	return len(u.lacks(at)) == 0
}

// unitOfTasks is the unit of tasks that are assigned by themselves.
func (p *Plan) unitOfTasks(tasks []workflow.TaskName) (*unit, error) {
	u := &unit{name: fmt.Sprintf("tasks %v", tasks)}
	if len(tasks) == 1 {
		u.name = fmt.Sprintf("task %s", tasks[0])
	}
	if slices.Equal(tasks, []workflow.TaskName{workflow.FlowTask}) {
		u.name = "what is driven by data"
	}
	for _, t := range tasks {
		if _, ok := p.graph.index[t]; !ok {
			return nil, AssignError{{Why: fmt.Sprintf("there is no task %s to assign", t),
				Change: "name tasks of the definition"}}
		}
	}
	u.addTasks(p, tasks)
	return u, nil
}

// assignment is an Assign under way.
type assignment struct {
	plan     *Plan
	partners []Partner
	closed   []Closed
	units    map[workflow.PartitionName]*unit
	holds    map[workflow.PartnerID]int
	choices  map[workflow.PartitionName]Choice
	refusals map[workflow.PartitionName][]Refusal
	unknown  []Refusal // pins of partitions that do not exist
}

func newAssignment(plan *Plan, s Situation) *assignment {
	a := &assignment{
		plan: plan, partners: reachSelf(s.Partners, s.Self), closed: s.Closed,
		units:    make(map[workflow.PartitionName]*unit),
		holds:    make(map[workflow.PartnerID]int),
		choices:  make(map[workflow.PartitionName]Choice),
		refusals: make(map[workflow.PartitionName][]Refusal),
	}
	for _, part := range plan.Partitions() {
		u := plan.unitOf(part)
		u.awaited, u.ofUsers = append(slices.Clone(s.Awaited), u.waits(s.Mechanism)...), s.OfUsers
		a.units[part.Name] = u
	}
	return a
}

func reachSelf(partners []Partner, self workflow.PartnerID) []Partner {
	out := slices.Clone(partners)
	for i := range out {
		out[i].Reachable = out[i].Reachable || out[i].ID == self
	}
	return out
}

// checkPins refuses pins of partitions that the plan does not have.
func (a *assignment) checkPins(pins map[workflow.PartitionName]workflow.PartnerID) {
	for name := range pins {
		if a.plan.Partition(name) == nil {
			a.unknown = append(a.unknown, Refusal{
				Why:    fmt.Sprintf("partition %s: there is none of that name to assign to %s", name, pins[name]),
				Change: "the partitions are " + a.partitionNames(),
			})
		}
	}
	slices.SortFunc(a.unknown, func(x, y Refusal) int { return cmp.Compare(x.Why, y.Why) })
}

func (a *assignment) partitionNames() string {
	var names []string
	for _, part := range a.plan.Partitions() {
		names = append(names, string(part.Name))
	}
	return strings.Join(names, ", ")
}

// pin gives a partition to the partner that it is pinned to; false if to none.
func (a *assignment) pin(part *Partition, pins map[workflow.PartitionName]workflow.PartnerID) bool {
	wanted, why := part.Partner, "its definition names this partner"
	if id, ok := pins[part.Name]; ok {
		wanted, why = string(id), "assigned by hand"
		if part.Partner != "" {
			why = fmt.Sprintf("assigned by hand (the definition names %s)", part.Partner)
		}
	}
	if wanted == "" {
		return false
	}
	p, refusal := a.find(part, wanted)
	if refusal != nil {
		a.refusals[part.Name] = append(a.refusals[part.Name], *refusal)
		return true
	}
	if lacks := a.units[part.Name].lacks(p); len(lacks) > 0 {
		a.refusals[part.Name] = append(a.refusals[part.Name], Refusal{
			Partition: part.Name,
			Why:       fmt.Sprintf("partition %s: it is pinned to %s, which lacks %s", part.Name, p, list(lacks)),
			Change:    fmt.Sprintf("give %s what it lacks, or assign the partition to another partner", p),
		})
		return true
	}
	a.take(Choice{Partition: part.Name, Partner: p.ID, Name: p.String(), Why: why + waiting(p)})
	return true
}

// find returns the partner of that ID or name.
func (a *assignment) find(part *Partition, wanted string) (Partner, *Refusal) {
	var named []Partner
	for _, p := range a.partners {
		if string(p.ID) == wanted {
			return p, nil
		}
		if p.Name == wanted {
			named = append(named, p)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		name, why := wanted, "is not on the partner list"
		for _, c := range a.closed {
			if string(c.ID) == wanted || c.Name == wanted {
				name, why = cmp.Or(c.Label, c.Name), c.Why
			}
		}
		return Partner{}, &Refusal{
			Partition: part.Name,
			Why:       fmt.Sprintf("partition %s: it is pinned to %s, which %s", part.Name, name, why),
			Change:    "assign the partition to another partner: mutirao partners shows who is here",
		}
	}
	return Partner{}, &Refusal{
		Partition: part.Name,
		Why: fmt.Sprintf("partition %s: it is pinned to %s, which %d partners are called", part.Name, wanted,
			len(named)),
		Change: "name the partner by its ID",
	}
}

// waiting is what a choice adds about a partner that cannot be reached now.
func waiting(p Partner) string {
	if p.Reachable {
		return ""
	}
	if p.Until != "" {
		return "; it is away until about " + p.Until + ", as it announced, and gets its part then"
	}
	return "; it cannot be reached now and gets its part when it is back"
}

func (a *assignment) ableFor(part *Partition) int {
	n := 0
	for _, p := range a.partners {
		if len(a.units[part.Name].lacks(p)) == 0 {
			n++
		}
	}
	return n
}

// choose gives a partition to the best partner for it.
func (a *assignment) choose(part *Partition) {
	u := a.units[part.Name]
	ranked := u.contenders(a.partners, a.holds)
	if len(ranked) == 0 || !ranked[0].able() {
		a.refusals[part.Name] = append(a.refusals[part.Name], u.refuse(part.Name, ranked))
		return
	}
	a.take(choiceOf(part.Name, ranked))
}

// assign gives some partitions to partners: the pinned ones first, then those that fewest can take.
func (a *assignment) assign(pins map[workflow.PartitionName]workflow.PartnerID, some func(*Partition) bool) {
	var free []*Partition
	for _, part := range a.plan.Partitions() {
		if some(part) && !a.pin(part, pins) {
			free = append(free, part)
		}
	}
	slices.SortStableFunc(free, func(x, y *Partition) int {
		return cmp.Compare(a.ableFor(x), a.ableFor(y))
	})
	for _, part := range free {
		a.choose(part)
	}
}

func (a *assignment) take(c Choice) {
	a.choices[c.Partition] = c
	a.holds[c.Partner]++
}

// choiceOf takes the first of the contenders and says what set it before the second.
func choiceOf(name workflow.PartitionName, ranked []contender) Choice {
	best, why := ranked[0], "the only one able"
	if len(ranked) > 1 && ranked[1].able() {
		_, reason := prefer(best, ranked[1])
		why = fmt.Sprintf("able, and before %s because %s", ranked[1].Partner, reason)
	}
	return Choice{Partition: name, Partner: best.ID, Name: best.String(), Why: why + waiting(best.Partner)}
}

// refuse says why nobody can take a unit: what each demand lacks if nobody
// meets it, else which partner comes nearest.
func (u *unit) refuse(name workflow.PartitionName, ranked []contender) Refusal {
	if len(ranked) == 0 {
		return Refusal{
			name, u.name + ": there is no partner to take it",
			"start another partner, or have one that takes nothing raise its availability: mutirao profile set --availability high",
		}
	}
	if nearest := ranked[0]; len(nearest.lacks) == 0 {
		if nearest.Until != "" {
			return Refusal{name,
				fmt.Sprintf("%s: nobody can take it but %s, which is away until about %s", u.name, nearest.Partner,
					nearest.Until),
				fmt.Sprintf("wait until it is back, or name it by hand (start --assign, or partner: in the definition): %s gets it then", nearest.Partner)}
		}
		return Refusal{name, fmt.Sprintf("%s: nobody can take it but %s, which is going down", u.name, nearest.Partner),
			fmt.Sprintf("wait until it is back, or name it by hand (start --assign, or partner: in the definition): %s gets it then", nearest.Partner)}
	}
	var nowhere []demand
	for _, d := range u.demands {
		if !slices.ContainsFunc(ranked, func(c contender) bool { return d.met(c.Partner) }) {
			nowhere = append(nowhere, d)
		}
	}
	nearest := ranked[0]
	r := Refusal{
		Partition: name,
		Why: fmt.Sprintf("%s: no partner has all that it needs; %s comes nearest and lacks %s", u.name,
			nearest.Partner, list(nearest.lacks)),
		Change: fmt.Sprintf("give %s what it lacks, or cut the workflow so that no partner needs all of it",
			nearest.Partner),
	}
	for _, role := range u.ofUsers {
		if len(nowhere) == 1 && nowhere[0].what == roleDemand(role) {
			what, hint := onlyUsers(role, slices.ContainsFunc(u.tasks, startsChild))
			return Refusal{name, fmt.Sprintf("%s: %s", u.name, what), hint}
		}
	}
	if len(nowhere) > 0 {
		r.Why = fmt.Sprintf("%s: no partner has %s", u.name, list(nowhere))
		r.Change = fmt.Sprintf("%s; %s comes nearest and lacks %s", howToGet(nowhere), nearest.Partner, list(nearest.lacks))
	}
	return r
}

// result hands out what was decided, by the names of the partitions.
func (a *assignment) result() (map[workflow.PartitionName]workflow.PartnerID, []Choice, error) {
	err := AssignError(a.unknown)
	holders := make(map[workflow.PartitionName]workflow.PartnerID)
	var choices []Choice
	for _, part := range a.plan.Partitions() {
		err = append(err, a.refusals[part.Name]...)
		if c, ok := a.choices[part.Name]; ok {
			holders[part.Name] = c.Partner
			choices = append(choices, c)
		}
	}
	if len(err) > 0 {
		return nil, nil, err
	}
	return holders, choices, nil
}
