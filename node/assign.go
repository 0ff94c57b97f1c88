package node

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// enter brings the ledger up to date with an instance. A load that changed much
// is told at once.
func (x *instances) enter(h *held) {
	x.ledger.enter(h.m)
	if x.ledger.turns() {
		x.nudge()
	}
}

// learn has what is learned from an instance that has just ended taken in, and returns what
// is to be stored of it.
func (s *shard) learn(h *held) []kv.Write {
	writes, full := s.n.learned.take(s.number, h.m, h.def.Def)
	if full > 0 {
		s.n.count("learned.full", uint64(full))
	}
	return writes
}

// unlearn goes back to what is stored, after writes of learn that failed.
func (s *shard) unlearn(writes []kv.Write) {
	if err := s.n.learned.takeBack(s.number, writes); err != nil {
		s.log.Warn("what was learned of a partner cannot be read", "error", err)
	}
}

// partners are the partners as the machines of instances ask about them (choreo.Partners):
// who is here, who coordinates, and who can take what.
type partners struct {
	population
	self    workflow.PartnerID
	offices offices
	ledger  *ledger
	learned *learned
	// tellStart is when a start is told.
	tellStart func(time.Duration) time.Duration
	users     accounts
	clock     timepiece
	presence  *presence
}

// population is what is known of the partners, and of this node among them: it implements
// of choreo.Partners what is not about people or work.
type population interface {
	Gone(workflow.PartnerID) bool
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

// accounts are the users who were not removed.
type accounts interface {
	User(id users.ID, at time.Time) (users.User, error)
	// Users are all of them. RolesOfUsers are the roles that they have.
	Users(at time.Time) []users.User
	RolesOfUsers(at time.Time) []workflow.RoleName
	// Called is the name of a user, removed or not; empty: it is not known.
	Called(id users.ID) string
}

// offices says who coordinates.
type offices interface {
	Coordinator() workflow.PartnerID
	Holds() *choreo.Office
}

// Office is the office that this node holds.
func (p *partners) Office() *choreo.Office { return p.offices.Holds() }

// Coordinator is who holds the office of coordinator.
func (p *partners) Coordinator() workflow.PartnerID { return p.offices.Coordinator() }

// TellStart is when partners are told of the start of what still runs then.
func (p *partners) TellStart(since time.Duration) time.Duration { return p.tellStart(since) }

// situation is what the partitions of a new instance are distributed by, without
// what decides between equals.
func (k *desk) situation(
	def *workflow.Definition, m aptitude.Mechanism, input map[workflow.DataName]workflow.Value,
) partition.Situation {
	data := map[workflow.DataName]workflow.Value{}
	for _, d := range def.Data {
		data[d.Name] = d.Default
	}
	for k, v := range input {
		data[k] = v
	}
	partners, inHand := k.partners.candidates(def, m, nil)
	return partition.Situation{
		Partners: partners, Closed: k.partners.closed(m), Self: k.member.ID(), Mechanism: m, InHand: inHand, Data: data,
	}
}

// candidates are the partners as assignment by a mechanism sees them, and the work
// that costs them availability, by kind. Of this node's own, some is left out.
func (p *partners) candidates(
	def *workflow.Definition, m aptitude.Mechanism, without *choreo.Holding,
) ([]partition.Partner, map[partition.Kind]partition.InHand) {
	all := p.All()
	if m == partition.PlainRule {
		return p.plainly(all, without), nil
	}
	work := p.ledger.inHand(all)
	if own := work[p.self]; own != nil && without != nil {
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
		c.LastFlow, c.Learned = p.ledger.lastFlow(c.ID), p.learned.factors(c.ID, def)
		out = append(out, c)
	}
	return out, kinds(work)
}

// besides is the work of a partner that no mechanism gave it: this node's as it knows it, of others as they say.
func (p *partners) besides(x membership.Partner) time.Duration {
	if x.Record.Partner == p.self {
		return p.ledger.besides()
	}
	return besidesSaid(x)
}

// plainly are the partners as the plain rule sees them: those that take nothing
// are none. A mechanism passes over them, and says so. Of what this node holds already
// (without) nothing is given to it, so it is one of them whatever it takes.
func (p *partners) plainly(all []membership.Partner, without *choreo.Holding) (out []partition.Partner) {
	known := p.ledger.inHand(all)
	for _, x := range all {
		holds := without != nil && x.Record.Partner == p.self
		if x.State.Gone() || x.Record.Absence == membership.Whole && !holds {
			continue
		}
		c := p.candidate(x)
		if holds {
			c.Load = p.ledger.loadWithout(without.Time).Share()
		}
		if w := known[c.ID]; w != nil && x.Record.Partner != p.self {
			c.Load = max(c.Load, busy(w.backlog.All))
		}
		out = append(out, c)
	}
	return out
}

// closed are those whom candidates leaves out, and why.
func (p *partners) closed(m aptitude.Mechanism) (out []partition.Closed) {
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

// userRoles are those that users have.
func (p *partners) userRoles() []workflow.RoleName { return p.users.RolesOfUsers(p.clock.Now().Wall) }

// roles are those of all partners that may be here again.
func (p *partners) roles() []workflow.RoleName {
	var out []workflow.RoleName
	for _, x := range p.All() {
		if x.State != membership.Evicted && x.State != membership.Left {
			out = append(out, x.Record.Roles()...)
		}
	}
	return append(out, p.userRoles()...)
}

// candidate is a partner with what it says of itself.
func (p *partners) candidate(x membership.Partner) partition.Partner {
	self := x.Record.Partner == p.self
	out := partition.Partner{
		ID: x.Record.Partner, Name: x.Record.Name(), Label: p.Label(x.Record.Partner),
		Roles: x.Record.Roles(), Capabilities: x.Record.Capabilities, Applications: x.Record.Applications,
		Databases: x.Record.Databases,
		Load:      x.Load.Share(),
		Reachable: self || x.State == membership.Active, Down: !self && x.Down(),
		Rested: (membership.Whole - x.Record.Absence).Share(), Suitability: map[string]float64{},
	}
	for _, s := range x.Record.Suitability {
		out.Suitability[s.For] = s.Of.Share()
	}
	return out
}

// Choose finds a partner that can take a piece of work now, rather not the one
// that failed it (choreo.Partners).
func (p *partners) Choose(w choreo.Work) (partition.Choice, error) {
	one := &asOne{partners: p}
	defer one.end()
	return one.Choose(w)
}

// among has a machine decide among the partners, and enters what it says that it gave out.
// From the first choice until then nobody else chooses: of two choices at once the second
// sees the first.
func (p *partners) among(m *choreo.Machine, decide func(choreo.Partners) (given []choreo.Holding)) {
	one := &asOne{partners: p}
	defer one.end()
	p.ledger.add(m.Instance(), decide(one), m.Mechanism().Loads())
}

// asOne are the partners as one decision asks about them.
type asOne struct {
	*partners
	done func() // nil: nothing was chosen
	// weighed are the partners with what the decision gave out, as far as it is in given: a
	// choice adds what came since the one before it. nil: nothing was given out.
	weighed *partners
	given   []choreo.Holding
	// here are the people who are here, by role, as far as the decision asked about them.
	here map[workflow.RoleName][]partition.Partner
}

// Choose is that of the partners.
func (p *asOne) Choose(w choreo.Work) (partition.Choice, error) {
	if p.done == nil {
		p.done = p.ledger.choosing()
	}
	return p.weighing(w).choose(w)
}

// weighing are the partners with what the work's instance gave out just before.
func (p *asOne) weighing(w choreo.Work) *partners {
	if len(w.Given) == 0 {
		return p.partners
	}
	if n := len(p.given); p.weighed == nil || n > len(w.Given) || n > 0 && w.Given[n-1] != p.given[n-1] {
		// The first, or what the choice before was for was not recorded.
		out := *p.partners
		out.ledger, p.weighed, p.given = p.ledger.snapshot(w.Instance), &out, nil
	}
	more := w.Given[len(p.given):]
	p.weighed.ledger.weigh(w.Instance, more, w.Mechanism.Loads())
	p.given = append(p.given, more...)
	return p.weighed
}

func (p *asOne) end() {
	if p.done != nil {
		p.done()
	}
}

func (p *partners) choose(w choreo.Work) (partition.Choice, error) {
	all, inHand := p.candidates(w.Plan.Definition(), w.Mechanism, p.itself(w))
	s := partition.Situation{
		Self: p.self, Mechanism: w.Mechanism, InHand: inHand, Data: w.Data, Instance: w.Instance.String(),
		Performers: p.performers(w), Rejected: w.Rejected, CanWait: w.CanWait, Rand: w.Rand(),
	}
	find := func() (partition.Choice, error) {
		if w.Holder != "" {
			return partition.FindPerformer(w.Plan, s, w.Tasks[0])
		}
		return partition.DistributeTasks(w.Plan, s, w.Tasks...)
	}
	s.Partners = slices.DeleteFunc(slices.Clone(all), func(x partition.Partner) bool {
		return x.ID == w.Not || w.Only != "" && x.ID != w.Only
	})
	if w.Only != "" {
		return find()
	}
	c, err := find()
	if err != nil && len(s.Partners) < len(all) {
		s.Partners = all
		c, err = find()
	}
	return c, err
}

// itself is, of a person's task that is ready here, the partition with which this node
// holds it already: nobody is less apt for that. nil: other work.
func (p *partners) itself(w choreo.Work) *choreo.Holding {
	if w.Holder == "" {
		return nil
	}
	home := w.Plan.Home(w.Tasks[0])
	for _, h := range p.ledger.holdings(w.Instance) {
		if h.Partner == p.self && h.Partition == home && home != "" {
			return &h.Holding
		}
	}
	return &choreo.Holding{Time: partition.Expected(w.Plan.Definition().Task(w.Tasks[0])), Ready: true}
}

// rejectTask passes a task that this node holds, and has not started, on to
// another partner.
func (k *desk) rejectTask(ctx context.Context, r api.RejectRequest) (*api.Passed, error) {
	var out *api.Passed
	err := k.with(ctx, r.ID, func(s *shard, h *held) error {
		var c partition.Choice
		var err error
		k.partners.among(h.m, func(p choreo.Partners) []choreo.Holding {
			c, err = h.m.Reject(r.Task, r.Reason, s.moment(), p)
			return h.m.Given()
		})
		if err == nil {
			out = &api.Passed{Task: r.Task, Partner: k.people.name(c.Partner), Reason: c.Why}
		}
		s.touch(h)
		return err
	})
	return out, err
}

// rank is where a task of the instance stands among those with the same
// dispatching rule: the more urgent first, then by the rule (docs/language.md, distribution).
func (h *held) rank(t *workflow.Task) []float64 {
	def := h.def.Def
	started := float64(h.sum.Started)
	by := 0.0
	switch aptitude.Dispatching(def.Distribution.Dispatching) {
	case aptitude.AsReady:
		return nil
	case aptitude.FIFO:
		by = started
	case aptitude.SPT:
		for _, t := range def.Tasks {
			by += partition.Expected(t).Seconds()
		}
	case aptitude.EDD:
		by = math.Inf(1)
		if d, ok := h.def.Due(); ok {
			by = started + float64(d.Milliseconds())
		}
	}
	return []float64{-t.Urgency, by}
}

// Entitled are the people who are here and have the role of a person's task, and who of them may see it by the
// mechanism of its instance (choreo.Partners).
func (p *partners) Entitled(w choreo.Work, waiting partition.Waiting) (
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

func (p *partners) entitled(w choreo.Work, waiting partition.Waiting, workers []partition.Partner) (
	here []worklist.User, sight partition.Sight, err error,
) {
	for _, x := range workers {
		here = append(here, worklist.User(x.ID))
	}
	sight, err = partition.Entitled(w.Plan, partition.Situation{
		Self: p.self, Mechanism: w.Mechanism, Data: w.Data, Instance: w.Instance.String(),
		Performers: p.performers(w), Rejected: w.Rejected, Partners: workers,
	}, w.Tasks[0], waiting)
	return here, sight, err
}

// workers are the people who are here and have the role of a person's task.
func (p *partners) workers(w choreo.Work) (out []partition.Partner) {
	def := w.Plan.Definition()
	for _, who := range p.People(def.Task(w.Tasks[0]).Role) {
		if who.Active {
			out = append(out, p.worker(who, def))
		}
	}
	return out
}

// performers are those of the instance's tasks, as people call them.
func (p *partners) performers(w choreo.Work) map[workflow.TaskName]string {
	out := map[workflow.TaskName]string{}
	for t, who := range w.Performers {
		out[t] = p.called(who)
	}
	return out
}

// worker is a person as assignment by a mechanism sees a partner. A partner is what it says of itself. A user has what
// the nodes have at which the user works, but for those that are gone, and is as available as can be. What they have
// taken counts for neither, as in the study: whoever is entitled sees an item, busy or not.
func (p *partners) worker(who worklist.Person, def *workflow.Definition) partition.Partner {
	id, err := users.ParseID(string(who.User))
	if err != nil {
		x, _ := p.Get(workflow.PartnerID(who.User))
		out := p.candidate(x)
		out.Load, out.Learned = busy(p.besides(x)), p.learned.factors(out.ID, def)
		return out
	}
	out := partition.Partner{
		ID: workflow.PartnerID(who.User), Name: p.called(who.User), Roles: who.Roles, Rested: 1, Reachable: true,
	}
	if u, err := p.users.User(id, p.clock.Now().Wall); err == nil {
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
