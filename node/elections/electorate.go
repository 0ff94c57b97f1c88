package elections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// outcomeWait is the longest that an election or a handover is waited for;
// a candidate that gives up earlier says so.
const outcomeWait = 90 * time.Second

// officeView is how elections stand at one moment.
type officeView struct {
	mandate election.Mandate
	led     bool
	lapses  time.Duration // after which its holder is no longer taken for the coordinator, unless it is heard of
	term    uint64
	since   time.Time
	head    election.Electorate
	lineage election.Lineage
	lacks   error         // why this node, which stands for election, is not elected yet; nil: it does not stand
	left    time.Duration // for which it goes on asking
}

// standing says in words for people which votes this node lacks, which stands for election; empty: it does not.
func (o *Topic) standing(v officeView) string {
	if v.lacks == nil {
		return ""
	}
	left := v.left.Round(time.Second)
	return fmt.Sprintf("%s (this node goes on asking for %s)", o.in.Members.Say(v.lacks), left)
}

func (o *Topic) view() (officeView, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return officeView{}, errOffice
	}
	v := officeView{term: o.machine.HighestTerm(), since: o.since}
	now := o.in.Clock.Now()
	v.mandate, v.led = o.machine.Coordinator(now)
	v.lapses = o.machine.Presumed(now)
	v.head, v.lineage = o.machine.Electorate()
	v.left, v.lacks = o.machine.Standing(now)
	return v, nil
}

// Votes reports whether a partner may vote.
func (o *Topic) Votes(p workflow.PartnerID) (bool, error) {
	v, err := o.view()
	votes := slices.ContainsFunc(v.head.Voters, func(x election.Voter) bool { return x.Partner == p })
	return votes, err
}

// Status says who coordinates.
func (o *Topic) Status() (*api.Coordinator, error) {
	v, err := o.view()
	if err != nil {
		return nil, err
	}
	out := &api.Coordinator{Term: v.term, Votes: []string{}, Electorate: []string{}}
	for _, x := range v.head.Voters {
		out.Electorate = append(out.Electorate, o.in.Members.Name(x.Partner))
	}
	if len(v.head.Voters) > 0 {
		out.Majority = v.head.Majority()
	}
	out.Standing = o.standing(v)
	if !v.led {
		out.Nominees = o.nominees()
		return out, nil
	}
	name := o.in.Members.Name(v.mandate.Holder)
	out.Coordinator, out.Since, out.Term = &name, &v.since, v.mandate.Office.Term
	if o.silent(v) {
		lapses := o.in.Clock.Now().Wall.Add(v.lapses)
		out.Lapses = &lapses
	}
	for _, x := range v.mandate.Votes {
		out.Votes = append(out.Votes, o.in.Members.Name(x.Voter.Partner))
	}
	return out, nil
}

// silent reports whether the coordinator cannot be reached: it may be dead, and nobody else is elected all the same
// until its lease is over.
func (o *Topic) silent(v officeView) bool {
	return v.led && v.mandate.Holder != o.in.Self && !o.in.Peers.Up(v.mandate.Holder)
}

// Elect has a node stand for election, this one if none is named, and waits
// for the outcome.
func (o *Topic) Elect(ctx context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	who := o.in.Self
	if r.Candidate != "" {
		var err error
		if who, err = o.in.Members.Resolve(r.Candidate); err != nil {
			return nil, err
		}
	}
	events, done := o.listen()
	defer done()
	if err := o.nominate(who); err != nil {
		return nil, o.whose(err)
	}
	won := func(v officeView) bool { return v.led && v.mandate.Holder == who }
	lost := func(e election.Event) bool { return e.Kind == election.NotElected && e.Partner == who }
	if err := o.await(ctx, events, who, won, lost); err != nil {
		if v, unread := o.view(); unread == nil && v.led {
			err = o.whose(election.ErrHeld) // another was faster
		}
		return nil, err
	}
	return o.Status()
}

// nominate makes a partner stand.
func (o *Topic) nominate(who workflow.PartnerID) error {
	if p, _ := o.in.Members.Get(who); p.State == membership.Evicted {
		return api.Errorf(api.Refused, "%s was evicted and cannot be coordinator", o.in.Members.Label(who)).
			WithHint("mutirao partners shows who can be")
	}
	if who != o.in.Self && !o.in.Peers.Up(who) {
		return api.Errorf(api.Refused, "%s cannot be reached", o.in.Members.Label(who)).
			WithHint("mutirao partners shows who can be")
	}
	err := o.step(func(e *election.Election, now moment.Now) (election.Ready, error) {
		return e.Nominate(who, now)
	})
	o.in.Nudge()
	return err
}

// await waits until enough is true, or an event says that it was in vain. Who is the partner that was asked to stand;
// empty: nobody was.
func (o *Topic) await(
	ctx context.Context, events <-chan election.Event, who workflow.PartnerID,
	enough func(officeView) bool, vain func(election.Event) bool,
) error {
	v, err := o.view()
	if err != nil || enough(v) || !o.in.Driver.Waits() {
		return err // nobody can answer before the next step
	}
	const attempts = 4 // a candidate gives up after so many leases
	wait := min(attempts*v.head.Lease+2*time.Second, outcomeWait)
	timeout := o.in.Clock.After(wait)
	for {
		select {
		case e := <-events:
			if vain(e) {
				return o.inVain(e)
			}
		case <-o.in.Clock.After(lookAgain): // a coordinator is heard of without an event
		case <-timeout:
			return o.noOutcome(v, who, wait)
		case <-ctx.Done():
			return ctx.Err()
		case <-o.in.Driver.Stopping():
			return errWentDown
		}
		if v, err = o.view(); err != nil || enough(v) {
			return err
		}
	}
}

// errWentDown is what those are told who wait for an outcome here.
var errWentDown = api.Errorf(api.NoNode, "this node went down before there was an outcome").
	WithHint("start it with mutirao up, then ask again")

// inVain says why what was waited for does not come.
func (o *Topic) inVain(e election.Event) error {
	if errors.Is(e.Reason, election.ErrGoesDown) {
		return errWentDown
	}
	why := o.in.Members.Say(e.Reason)
	if e.Kind == election.NotElected && e.Partner != o.in.Self {
		why = fmt.Sprintf("%s was not elected: %s", o.in.Members.Label(e.Partner), why)
	}
	return api.Errorf(api.Failed, "%s", why).
		WithHint("mutirao doctor and mutirao partners show who cannot be reached")
}

// noOutcome says why there is none yet. A lease is never cut short: its holder may act by it as long as it runs.
func (o *Topic) noOutcome(v officeView, who workflow.PartnerID, waited time.Duration) error {
	const shorter = "mutirao coordinator electorate --set VOTER,... --lease DURATION makes later waits shorter"
	if who == "" || who == o.in.Self {
		if why := o.standing(v); why != "" {
			return api.Errorf(api.Failed, "no outcome within %s: %s", waited, why).
				WithHint("voters that wait for a lease vote when it has run out (here a lease is %s): "+
					"mutirao coordinator status shows how it goes on; "+shorter, workflow.FormatDuration(v.head.Lease))
		}
		return api.Errorf(api.Failed, "no outcome within %s", waited).
			WithHint("mutirao coordinator status shows how it stands, mutirao partners who can be reached")
	}
	there := o.in.Members.Label(who)
	ago, left, lacks := o.nominee(who)
	if lacks == nil {
		return api.Errorf(api.Failed, "no outcome within %s: %s, which was asked to stand, said nothing", waited, there).
			WithHint("mutirao partners shows whether it can be reached; mutirao coordinator status there, what it lacks")
	}
	return api.Errorf(api.Failed, "no outcome within %s: %s", waited, o.asTold(there, ago, left, lacks)).
		WithHint("voters that wait for a lease vote when it has run out (here a lease is %s): "+
			"mutirao coordinator status, there, shows how it goes on; "+shorter, workflow.FormatDuration(v.head.Lease))
}

// nominee is what a partner lacked that was asked to stand, as far as it said so.
func (o *Topic) nominee(who workflow.PartnerID) (ago, left time.Duration, lacks error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.machine == nil {
		return 0, 0, nil
	}
	return o.machine.Nominee(who, o.in.Clock.Now())
}

// asTold says what a nominee lacked when it last said so.
func (o *Topic) asTold(there string, ago, left time.Duration, lacks error) string {
	return fmt.Sprintf("%s (as %s said %s ago; it goes on asking for %s)",
		o.in.Members.Say(lacks), there, ago.Round(time.Second), left.Round(time.Second))
}

// nominees say what partners lack that this node asked to stand.
func (o *Topic) nominees() (out []string) {
	o.mu.Lock()
	var who []workflow.PartnerID
	if o.machine != nil {
		who = o.machine.Nominees(o.in.Clock.Now())
	}
	o.mu.Unlock()
	for _, p := range who {
		if ago, left, lacks := o.nominee(p); lacks != nil {
			out = append(out, o.asTold(o.in.Members.Label(p), ago, left, lacks))
		}
	}
	return out
}

// Resign gives this node's office up.
func (o *Topic) Resign() error {
	err := o.step((*election.Election).Resign)
	o.in.Nudge()
	return o.whose(err)
}

// Held is the error of what can be done only while nobody coordinates.
type Held struct {
	By workflow.PartnerID
	// Evicted: it was, so it cannot resign; its office ends with the lease, which is at most Lease long.
	Evicted bool
	Lease   time.Duration
	// Silent: it cannot be reached, and is taken for the coordinator for Lapses more, unless it is heard of.
	Silent bool
	Lapses time.Duration
}

func (e *Held) Error() string { return e.By.Short() + " is the coordinator" }

// Is makes errors.Is(err, election.ErrHeld) hold.
func (e *Held) Is(target error) bool { return target == election.ErrHeld }

// whose adds to an error about the office who holds it.
func (o *Topic) whose(err error) error {
	m, known := o.Known()
	switch {
	case known && errors.Is(err, election.ErrHeld):
		held := &Held{By: m.Holder}
		v, unread := o.view()
		if unread != nil {
			return held
		}
		if p, _ := o.in.Members.Get(m.Holder); p.State == membership.Evicted {
			held.Evicted, held.Lease = true, v.head.Lease
		} else if o.silent(v) {
			held.Silent, held.Lapses = true, v.lapses
		}
		return held
	case known && errors.Is(err, election.ErrNotCoordinator):
		return fmt.Errorf("%w: %s is", err, o.in.Members.Label(m.Holder))
	case errors.Is(err, election.ErrNotCoordinator):
		return fmt.Errorf("%w: nobody is", err)
	}
	return err
}

// Electorate says who may vote.
func (o *Topic) Electorate() (*api.Electorate, error) {
	v, err := o.view()
	if err != nil {
		return nil, err
	}
	out := &api.Electorate{Number: v.head.Number, Voters: []api.Voter{}, Lease: v.head.Lease.String()}
	if len(v.lineage) > 0 {
		out.Majority, out.Override = v.head.Majority(), v.lineage[0].Number > 1
	}
	for _, x := range v.head.Voters {
		voter := api.Voter{Name: o.in.Members.Name(x.Partner), ID: x.Partner, State: "unknown"}
		if p, ok := o.in.Members.Get(x.Partner); ok {
			voter.State = string(p.State)
			voter.Current = o.current(p, x)
		}
		out.Voters = append(out.Voters, voter)
	}
	return out, nil
}

// overrideWarning says what an override risks.
const overrideWarning = "Override: the voters before were not asked. " +
	"If a majority of them lives and is only out of sight, " +
	"it may keep or elect a coordinator of its own until it hears of this list; then the two sides have a coordinator each, for that long."

// maxLineageBytes keeps the proof of an electorate within a frame.
const maxLineageBytes = wire.MaxFrame / 2

// SetElectorate changes who may vote.
func (o *Topic) SetElectorate(ctx context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	find := o.in.Members.Resolve
	if r.Override { // nobody can take that back
		find = o.in.Members.ResolveWhole
	}
	voters, err := o.voters(r.Set, find)
	if err != nil {
		return nil, err
	}
	v, err := o.view()
	if err != nil {
		return nil, err
	}
	lease := cmp.Or(time.Duration(r.Lease), v.head.Lease, o.in.ConnectionTime())
	if lease < election.MinLease || lease > election.MaxLease {
		return nil, api.Errorf(api.Invalid, "lease %s: want %s to %s", lease, election.MinLease, election.MaxLease)
	}
	if err := o.maySet(r.Override); err != nil {
		return nil, err
	}
	if is, err := o.Electorate(); err == nil && sameVoters(v.head, voters, lease) && (is.Override || !r.Override) {
		is.Already = true
		return is, nil
	}
	if r.Override {
		err = o.override(v, voters, lease)
	} else {
		err = o.handOver(ctx, v, voters, lease)
	}
	if err != nil {
		return nil, o.whose(err)
	}
	out, err := o.Electorate()
	if err == nil && r.Override {
		out.Warning = overrideWarning
	}
	return out, err
}

// maySet returns an *api.Error unless this node may set who votes, in this way.
func (o *Topic) maySet(override bool) error {
	if override && o.in.Self != o.in.Mesh.Founder {
		return api.Errorf(api.NotAllowed, "only the founder of mesh %s overrides the electorate", o.in.Mesh.Name).
			WithHint("run it on %s", o.in.Members.Label(o.in.Mesh.Founder))
	}
	if override {
		return nil
	}
	return o.in.MayAdminister("change who may vote")
}

// sameVoters reports whether an electorate has these voters, in their present incarnations, and that lease: another
// with the same would only make its proof longer.
func sameVoters(e election.Electorate, voters []election.Voter, lease time.Duration) bool {
	return e.Lease == lease && len(e.Voters) == len(voters) &&
		!slices.ContainsFunc(voters, func(v election.Voter) bool { return !slices.Contains(e.Voters, v) })
}

// voters finds the partners that are to vote, in their present incarnations.
func (o *Topic) voters(names []string, find func(ref string) (workflow.PartnerID, error)) ([]election.Voter, error) {
	if len(names) == 0 || len(names) > election.MaxVoters {
		return nil, api.Errorf(api.Invalid, "%d voters: want 1 to %d partners", len(names), election.MaxVoters)
	}
	var out []election.Voter
	for _, name := range names {
		id, err := find(name)
		if err != nil {
			return nil, err
		}
		p, _ := o.in.Members.Get(id)
		switch {
		case p.State == membership.Evicted:
			return nil, api.Errorf(api.Refused, "%s was evicted and cannot vote", o.in.Members.Label(id))
		case slices.ContainsFunc(out, func(v election.Voter) bool { return v.Partner == id }):
			return nil, api.Errorf(api.Invalid, "%s is named twice", o.in.Members.Label(id))
		}
		out = append(out, election.Voter{Partner: id, Incarnation: o.lifeOf(p)})
	}
	return out, nil
}

// lifeOf is the incarnation that a partner has as a voter. What this node itself
// says of its own may be older than what is so.
func (o *Topic) lifeOf(p membership.Partner) trust.Incarnation {
	if p.Record.Partner == o.in.Self {
		return o.in.Incarnation()
	}
	return p.Record.Incarnation
}

// override sets the electorate on the founder's word alone.
func (o *Topic) override(v officeView, voters []election.Voter, lease time.Duration) error {
	lineage, err := election.FoundElectorate(o.in.Mesh, o.in.Key, voters, lease, v.lineage, v.term)
	if err != nil {
		return api.Judge(api.Invalid, err)
	}
	o.in.Peers.Count("election.overrides", 1)
	err = o.step(func(e *election.Election, now moment.Now) (election.Ready, error) {
		return e.Adopt(lineage, now)
	})
	o.in.Nudge()
	return err
}

// mayConsent is how many of the present voters can consent to others, now or when they are
// in reach again.
func (o *Topic) mayConsent(v officeView) (left int) {
	for _, x := range v.head.Voters {
		p, listed := o.in.Members.Get(x.Partner)
		if !listed || o.current(p, x) {
			left++
		}
	}
	return left
}

// current reports whether a partner is still the voter that was named.
func (o *Topic) current(p membership.Partner, x election.Voter) bool {
	return p.State != membership.Evicted && !p.ForGood() && o.lifeOf(p) == x.Incarnation
}

// handOver asks the present voters to be succeeded by others.
func (o *Topic) handOver(ctx context.Context, v officeView, voters []election.Voter, lease time.Duration) error {
	if len(election.EncodeLineage(v.lineage)) > maxLineageBytes {
		return api.Errorf(api.Refused,
			"the electorate was handed over %d times, so that its proof became too long", len(v.lineage)-1).
			WithHint("the founder signs the next: mutirao coordinator electorate --set … --override")
	}
	if left := o.mayConsent(v); left < v.head.Majority() {
		return api.Errorf(api.Refused, "%d of the %d present voters are left, and %d would have to consent: the others were evicted or left for good, or their stores were lost",
			left, len(v.head.Voters), v.head.Majority()).
			WithHint("the founder sets the list without them: mutirao coordinator electorate --set … --override")
	}
	events, done := o.listen()
	defer done()
	err := o.step(func(e *election.Election, now moment.Now) (election.Ready, error) {
		return e.Propose(voters, lease, now)
	})
	if err != nil {
		return err
	}
	o.in.Nudge()
	changed := func(now officeView) bool { return now.head.Number > v.head.Number }
	failed := func(e election.Event) bool { return e.Kind == election.ProposalFailed }
	return o.await(ctx, events, "", changed, failed)
}
