package partition

import (
	"math/rand/v2"
	"time"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says who may see a person's task that waits to be taken, by a mechanism that
// pulls (docs/distribution.md, People's tasks). Nobody is drawn: whoever sees it may take it.

// Waiting is how a person's task waits to be taken.
type Waiting struct {
	For     time.Duration // since it was ready
	Offered time.Duration // since it was first offered to somebody; 0: it was not
	Left    time.Duration // until its time-out or its deadline, whichever comes first
	Ends    bool          // it has one of them
}

// maxMore bounds in how long one more may see something: what comes later is found out then.
const maxMore = 365 * 24 * time.Hour

// Sight is who may see a person's task that waits to be taken.
type Sight struct {
	May []workflow.PartnerID
	// Weighed is how all of its role who are suited were weighed; nobody of them is chosen.
	Weighed aptitude.Assignment
	// More is in how long one more may see it by time alone; 0: nobody.
	More time.Duration
}

// Entitled are those among the partners of the situation, who stand for people here, that see a
// person's task which waits, as their abs_alloc exceeds the mechanism's threshold, busy or not.
// Where nobody here could exceed that even when idle, the next lower threshold counts
// ([aptitude.Allocate]), at last none: so nobody at all means that none of them is suited.
// Sel-push-pull shows it to all who are suited once its patience is over.
//
// The task's urgency grows, and the threshold relaxes, as the definition says. An error is that
// of a constraint which cannot be evaluated.
func Entitled(plan *Plan, s Situation, task workflow.TaskName, w Waiting) (out Sight, err error) {
	u, err := plan.unitOfTasks([]workflow.TaskName{task})
	if err != nil {
		return out, err
	}
	d := newDistributor(plan, s, s.Partners)
	d.face(u, NoKind)
	item, err := d.item(u)
	if err != nil {
		return out, err
	}
	rules := plan.def.Distribution
	item.Urgency.Growth = rules.UrgencyGrowth / time.Minute.Seconds()
	if w.Ends {
		item.Instance.Due = max((w.For + w.Left).Seconds(), time.Millisecond.Seconds()) // 0 is none
	}
	policy := aptitude.Policy{
		Mechanism: s.Mechanism, Compensate: rules.CompensateViolations, Relax: rules.Relax,
		Patience: w.For.Seconds() + 1, // it is offered as long as this is asked
	}
	if s.Mechanism == aptitude.SelPushPull && w.Offered >= PatienceOf(plan.def) {
		policy.Mechanism = aptitude.Pull
	}
	q := aptitude.Queue{Now: w.For.Seconds(), Waiting: []aptitude.Item{item}}
	as := aptitude.Allocate(q, d.resources(u), policy, rand.New(rand.NewPCG(0, 0)))[0] // who is drawn does not matter
	if in := aptitude.SeenIn(q, policy, &as); in > 0 && in < maxMore.Seconds() {
		out.More = time.Duration(in*float64(time.Second)) + time.Millisecond // it has to be above, and not at it
	}
	as.Resource = ""
	for i := range as.Candidates {
		switch c := &as.Candidates[i]; c.Verdict {
		case aptitude.Offered, aptitude.NotDrawn, aptitude.Chosen:
			out.May, c.Verdict = append(out.May, workflow.PartnerID(c.Resource)), aptitude.Entitled
		}
	}
	out.Weighed = as
	return out, nil
}

// waits are the roles of the unit's tasks that wait to be taken by a mechanism that pulls: whoever holds the unit only
// holds them.
func (u *unit) waits(m aptitude.Mechanism) (out []workflow.RoleName) {
	for _, t := range u.tasks {
		if m.Pulls() && t.ByRole() {
			out = append(out, t.Role)
		}
	}
	return out
}

// PatienceOf is for how long Sel-push-pull offers a person's task of a definition before it gives
// the task to somebody.
func PatienceOf(def *workflow.Definition) time.Duration {
	if def.Distribution.Patience > 0 {
		return def.Distribution.Patience
	}
	return workflow.DefaultPatience
}
