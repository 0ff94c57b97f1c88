package assignment

import (
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Partners are the partners as the machines of instances ask about them (choreo.Partners):
// who is here, who coordinates, and who can take what.
type Partners struct {
	Population
	Surroundings
	presence *presence
}

// Surroundings are what a choice is made from beside the partner list.
type Surroundings struct {
	Self    workflow.PartnerID
	Offices Offices
	Ledger  *Ledger
	Learned *Learned
	Users   Accounts
	Clock   timepiece
	// ClockWrong reports whether this node's wall clock is wrong, by what else it knows.
	ClockWrong func() bool
	// Told is when (Boot) a start is told that was made at a moment.
	Told func(since time.Duration) time.Duration
}

// New are those of a population.
func New(of Population, s Surroundings) *Partners {
	p := &Partners{Population: of, Surroundings: s, presence: newPresence(s.Clock)}
	p.SeeUsers()
	return p
}

// Population is what is known of the partners, and of this node among them: it implements
// of choreo.Partners what is not about people or work.
type Population interface {
	Gone(workflow.PartnerID) bool
	Absent(workflow.PartnerID) bool
	Reachable(workflow.PartnerID) bool
	Evicted(workflow.PartnerID) bool
	Eviction(workflow.PartnerID) []byte
	Credentials() []byte
	ConnectionTime(workflow.PartnerID) time.Duration
	HasRole(workflow.PartnerID, workflow.RoleName) bool
	// RolesOf are those of a partner's certificate.
	RolesOf(workflow.PartnerID) []workflow.RoleName
	All() []membership.Partner
	Get(workflow.PartnerID) (membership.Partner, bool)
	// Name is what people call a partner, Label the same where two may have one name.
	Name(workflow.PartnerID) string
	Label(workflow.PartnerID) string
}

// Accounts are the users who were not removed.
type Accounts interface {
	User(id users.ID, at time.Time) (users.User, error)
	// LacksByTime says of one who has no key at a moment whether a key is not valid yet then, or has ended.
	LacksByTime(id users.ID, at time.Time) (notYet, ended bool)
	// Users are all of them. RolesOfUsers are the roles that they have.
	Users(at time.Time) []users.User
	RolesOfUsers(at time.Time) []workflow.RoleName
	// Called is the name of a user, removed or not; empty: it is not known.
	Called(id users.ID) string
}

// Offices says who coordinates.
type Offices interface {
	Coordinator() workflow.PartnerID
	Holds() *fact.Office
}

// Office is the office that this node holds.
func (p *Partners) Office() *fact.Office { return p.Offices.Holds() }

// Coordinator is who holds the office of coordinator.
func (p *Partners) Coordinator() workflow.PartnerID { return p.Offices.Coordinator() }

// SomebodyHas reports whether a partner who is not gone, or a user, has a role.
func (p *Partners) SomebodyHas(r workflow.RoleName) bool {
	return slices.Contains(p.UserRoles(), r) || slices.ContainsFunc(p.All(), func(x membership.Partner) bool {
		return !x.State.Gone() && p.HasRole(x.Record.Partner, r)
	})
}

// TellStart is when partners are told of the start of what still runs then.
func (p *Partners) TellStart(since time.Duration) time.Duration { return p.Told(since) }

// Candidates are the partners as assignment by a mechanism sees them, and the work
// that costs them availability, by kind. Of this node's own, some is left out.
func (p *Partners) Candidates(
	def *workflow.Definition, m aptitude.Mechanism, without *choreo.Holding,
) ([]partition.Partner, map[partition.Kind]partition.InHand) {
	all := p.All()
	if m == partition.PlainRule {
		return p.plainly(all, without), nil
	}
	work := p.Ledger.inHand(all)
	if own := work[p.Self]; own != nil && without != nil {
		own.backlog = own.backlog.Minus(without.InHand())
		if h, costs := own.costs[without.Work]; costs {
			own.costs[without.Work] = h.Minus(without.InHand())
		}
	}
	var out []partition.Partner
	for _, x := range all {
		if x.State.Gone() {
			continue
		}
		c := p.candidate(x)
		other := p.besides(x)
		c.Load, c.Backlog = busy(other), partition.InHand{Ready: other, All: other}
		if w := work[c.ID]; w != nil {
			c.InHand, c.Backlog = w.costs, c.Backlog.Plus(w.backlog)
		}
		c.LastFlow, c.Learned = p.Ledger.lastFlow(c.ID), p.Learned.factors(c.ID, def)
		out = append(out, c)
	}
	return out, kinds(work)
}

// besides is the work of a partner that no mechanism gave it: this node's as it knows it, of others as they say.
func (p *Partners) besides(x membership.Partner) time.Duration {
	if x.Record.Partner == p.Self {
		return p.Ledger.besides()
	}
	return besidesSaid(x)
}

// plainly are the partners as the plain rule sees them: those that take nothing
// are none. A mechanism passes over them, and says so. Of what this node holds already
// (without) nothing is given to it, so it is one of them whatever it takes.
func (p *Partners) plainly(all []membership.Partner, without *choreo.Holding) (out []partition.Partner) {
	known := p.Ledger.inHand(all)
	for _, x := range all {
		holds := without != nil && x.Record.Partner == p.Self
		if x.State.Gone() || x.Record.Absence == membership.Whole && !holds {
			continue
		}
		c := p.candidate(x)
		if holds {
			c.Load = p.Ledger.loadWithout(without.Time).Share()
		}
		if w := known[c.ID]; w != nil && x.Record.Partner != p.Self {
			c.Load = max(c.Load, busy(w.backlog.All))
		}
		out = append(out, c)
	}
	return out
}

// Closed are those whom candidates leaves out, and why.
func (p *Partners) Closed(m aptitude.Mechanism) (out []partition.Closed) {
	for _, x := range p.All() {
		why := ""
		switch {
		case x.State == membership.Evicted:
			why = "was evicted"
		case x.State == membership.Left && x.ForGood():
			why = "left for good"
		case x.State == membership.Left:
			why = "left in good order"
		case x.State == membership.Expired:
			why = "has expired: nobody has heard of it for its connection time"
		case m == partition.PlainRule && x.Record.Absence == membership.Whole:
			why = partition.TakesNothing
		default:
			continue
		}
		out = append(out, partition.Closed{
			ID: x.Record.Partner, Name: x.Record.Name(), Label: p.Label(x.Record.Partner), Why: why,
		})
	}
	return out
}

// UserRoles are those that users have.
func (p *Partners) UserRoles() []workflow.RoleName { return p.Users.RolesOfUsers(p.Clock.Now().Wall) }

// Roles are those that partners who may be here again have, and users.
func (p *Partners) Roles() []workflow.RoleName { return append(p.OwnRoles(), p.UserRoles()...) }

// OwnRoles are those that partners have.
func (p *Partners) OwnRoles() (out []workflow.RoleName) {
	for _, x := range p.All() {
		if x.State != membership.Evicted && x.State != membership.Left {
			out = append(out, x.Record.Roles()...)
		}
	}
	return out
}

// candidate is a partner with what it says of itself.
func (p *Partners) candidate(x membership.Partner) partition.Partner {
	self := x.Record.Partner == p.Self
	out := partition.Partner{
		ID: x.Record.Partner, Name: x.Record.Name(), Label: p.Label(x.Record.Partner),
		Roles: x.Record.Roles(), Capabilities: x.Record.Capabilities, Applications: x.Record.Applications,
		Databases: x.Record.Databases,
		Load:      x.Load.Share(),
		Reachable: self || x.State == membership.Active, Down: !self && x.Down(),
		Rested: (membership.Whole - x.Record.Absence).Share(), Suitability: map[string]float64{},
	}
	if x.Absent() {
		out.Until = x.Until.String()
	}
	for _, s := range x.Record.Suitability {
		out.Suitability[s.For] = s.Of.Share()
	}
	return out
}

// Choose finds a partner that can take a piece of work now, rather not the one
// that failed it (choreo.Partners).
func (p *Partners) Choose(w choreo.Work) (partition.Choice, error) {
	one := &asOne{Partners: p}
	defer one.end()
	return one.Choose(w)
}

// Among has a machine decide among the partners, and enters what it says that it gave out.
// From the first choice until then nobody else chooses: of two choices at once the second
// sees the first.
func (p *Partners) Among(m *choreo.Machine, decide func(choreo.Partners) (given []choreo.Holding)) {
	one := &asOne{Partners: p}
	defer one.end()
	p.Ledger.add(m.Instance(), decide(one), m.Mechanism().Loads())
}

// asOne are the partners as one decision asks about them.
type asOne struct {
	*Partners
	done func() // nil: nothing was chosen
	// weighed are the partners with what the decision gave out, as far as it is in given: a
	// choice adds what came since the one before it. nil: nothing was given out.
	weighed *Partners
	given   []choreo.Holding
	// here are the people who are here, by role, as far as the decision asked about them.
	here map[workflow.RoleName][]partition.Partner
}

// Choose is that of the partners.
func (p *asOne) Choose(w choreo.Work) (partition.Choice, error) {
	if p.done == nil {
		p.done = p.Ledger.Choosing()
	}
	return p.weighing(w).choose(w)
}

// weighing are the partners with what the work's instance gave out just before.
func (p *asOne) weighing(w choreo.Work) *Partners {
	if len(w.Given) == 0 {
		return p.Partners
	}
	if n := len(p.given); p.weighed == nil || n > len(w.Given) || n > 0 && w.Given[n-1] != p.given[n-1] {
		// The first, or what the choice before was for was not recorded.
		out := *p.Partners
		out.Ledger, p.weighed, p.given = p.Ledger.snapshot(w.Instance), &out, nil
	}
	more := w.Given[len(p.given):]
	p.weighed.Ledger.weigh(w.Instance, more, w.Mechanism.Loads())
	p.given = append(p.given, more...)
	return p.weighed
}

func (p *asOne) end() {
	if p.done != nil {
		p.done()
	}
}

func (p *Partners) choose(w choreo.Work) (partition.Choice, error) {
	all, inHand := p.Candidates(w.Plan.Definition(), w.Mechanism, p.itself(w))
	s := partition.Situation{
		Self: p.Self, Mechanism: w.Mechanism, InHand: inHand, Data: w.Data, Instance: w.Instance.String(),
		Performers: p.performers(w), Rejected: w.Rejected, CanWait: w.CanWait, Rand: w.Rand(),
	}
	find := func() (partition.Choice, error) {
		if w.Holder != "" {
			s.OfUsers = p.UserRoles()
			return partition.FindPerformer(w.Plan, s, w.Tasks[0])
		}
		s.Awaited = partition.Awaited(w.Plan, p.OwnRoles())
		return partition.DistributeTasks(w.Plan, s, w.Tasks...)
	}
	s.Partners = slices.DeleteFunc(slices.Clone(all), func(x partition.Partner) bool {
		return x.ID == w.Not || w.Only != "" && x.ID != w.Only
	})
	if w.Only != "" {
		if x, known := p.Get(w.Only); known && x.State.Gone() {
			return partition.Choice{}, errors.New(WhyGone(x) + " (another can take it, or wait until that one is back)")
		}
		return find()
	}
	c, err := find()
	if err != nil && len(s.Partners) < len(all) {
		s.Partners = all
		c, err = find()
	}
	return c, err
}

// WhyGone says why a partner is out of the process.
func WhyGone(x membership.Partner) string {
	switch {
	case x.State == membership.Evicted:
		return "the partner was evicted"
	case x.State == membership.Left && x.ForGood():
		return "the partner has left for good"
	case x.State == membership.Left:
		return "the partner has left in good order"
	}
	return "the partner has expired: it was not heard of since " + x.Validated.Time().UTC().Format(time.RFC3339)
}

// itself is, of a person's task that is ready here, the partition with which this node
// holds it already: nobody is less apt for that. nil: other work.
func (p *Partners) itself(w choreo.Work) *choreo.Holding {
	if w.Holder == "" {
		return nil
	}
	home := w.Plan.Home(w.Tasks[0])
	for _, h := range p.Ledger.holdings(w.Instance) {
		if h.Partner == p.Self && h.Partition == home && home != "" {
			return &h.Holding
		}
	}
	return &choreo.Holding{Time: partition.Expected(w.Plan.Definition().Task(w.Tasks[0])), Ready: true}
}

// Entitled are the people who are here and have the role of a person's task, and who of them may see it by the
// mechanism of its instance (choreo.Partners).
func (p *Partners) Entitled(w choreo.Work, waiting partition.Waiting) (
	here []worklist.User, sight partition.Sight, err error,
) {
	return p.entitled(w, waiting, p.workers(w))
}

// Entitled is that of the partners, who are looked at once for each role: of the items that wait in one instance many
// may be due at once.
func (p *asOne) Entitled(w choreo.Work, waiting partition.Waiting) (
	here []worklist.User, sight partition.Sight, err error,
) {
	role := w.Plan.Definition().Task(w.Tasks[0]).Role
	of, known := p.here[role]
	if !known {
		if of = p.workers(w); p.here == nil {
			p.here = map[workflow.RoleName][]partition.Partner{}
		}
		p.here[role] = of
	}
	return p.entitled(w, waiting, of)
}

func (p *Partners) entitled(w choreo.Work, waiting partition.Waiting, workers []partition.Partner) (
	here []worklist.User, sight partition.Sight, err error,
) {
	for _, x := range workers {
		here = append(here, worklist.User(x.ID))
	}
	sight, err = partition.Entitled(w.Plan, partition.Situation{
		Self: p.Self, Mechanism: w.Mechanism, Data: w.Data, Instance: w.Instance.String(),
		Performers: p.performers(w), Rejected: w.Rejected, Partners: workers,
	}, w.Tasks[0], waiting)
	return here, sight, err
}

// workers are the people who are here and have the role of a person's task.
func (p *Partners) workers(w choreo.Work) (out []partition.Partner) {
	def := w.Plan.Definition()
	for _, who := range p.People(def.Task(w.Tasks[0]).Role) {
		if who.Active {
			out = append(out, p.worker(who, def))
		}
	}
	return out
}

// performers are those of the instance's tasks, as people call them.
func (p *Partners) performers(w choreo.Work) map[workflow.TaskName]string {
	out := map[workflow.TaskName]string{}
	for t, who := range w.Performers {
		out[t] = p.Called(who)
	}
	return out
}

// worker is a person as assignment by a mechanism sees a partner. A partner is what it says of itself. A user has what
// the nodes have at which the user works, but for those that are gone, and is as available as can be. What they have
// taken counts for neither, as in the study: whoever is entitled sees an item, busy or not.
func (p *Partners) worker(who worklist.Person, def *workflow.Definition) partition.Partner {
	id, err := users.ParseID(string(who.User))
	if err != nil {
		x, _ := p.Get(workflow.PartnerID(who.User))
		out := p.candidate(x)
		out.Load, out.Learned = busy(p.besides(x)), p.Learned.factors(out.ID, def)
		return out
	}
	out := partition.Partner{
		ID: workflow.PartnerID(who.User), Name: p.Called(who.User), Roles: who.Roles, Rested: 1, Reachable: true,
	}
	if u, err := p.Users.User(id, p.Clock.Now().Wall); err == nil {
		for _, at := range nodesOf(u) {
			x, known := p.Get(at)
			if !known || x.State.Gone() {
				continue
			}
			out.Capabilities = append(out.Capabilities, x.Record.Capabilities...)
			out.Applications = append(out.Applications, x.Record.Applications...)
			out.Databases = append(out.Databases, x.Record.Databases...)
		}
	}
	return out
}
