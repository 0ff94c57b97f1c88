package fact

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Annex is what goes with a fact that assigns work: how that came about.
type Annex struct {
	// Mechanism is, in a genesis, the allocation mechanism of the instance; empty:
	// the plain rule.
	Mechanism aptitude.Mechanism `cbor:"1,keyasint,omitempty"`
	// Why explains the fact's assignments. It is for people, and for a node that
	// weighs later work against it; it has no part in what is true of the instance.
	Why []Why `cbor:"2,keyasint,omitempty"`
	// Rejected is, in an assignment by which a holder passes work on, its reason.
	Rejected string `cbor:"3,keyasint,omitempty"`
	// Dropped are, in a genesis, the tasks that are not needed.
	Dropped []Dropped `cbor:"4,keyasint,omitempty"`
	// Offered says, in an assignment by a task's holder, that it gives a person's
	// task to its performer, which is no rejection.
	Offered bool `cbor:"5,keyasint,omitempty"`
	// Waited is, in an assignment by which a holder passes work on, for how long
	// the task had been ready: its time-out goes on from there.
	Waited time.Duration `cbor:"6,keyasint,omitempty"`
	// Responsible is, in a genesis, the user who decides about the instance, by key; empty:
	// its initiator, as the user that every partner is (choreo/orders.go).
	Responsible worklist.User `cbor:"7,keyasint,omitempty"`
	// Order is, in an assignment by which a task that failed is done once more, the order that
	// asked for it; nil: none did.
	Order *ID `cbor:"8,keyasint,omitempty"`
	// Parent is, in a genesis, what the instance is for; nil: for itself. Uses are the
	// workflows that it and its children use, sorted by name (nested.go).
	Parent *Parent `cbor:"9,keyasint,omitempty"`
	Uses   []Pin   `cbor:"10,keyasint,omitempty"`
	// Warnings are, in a genesis, with how much time left people are warned of a deadline, the longest first;
	// empty: as the definition says. Transfer is with how much left people's tasks pass to the responsible
	// user; 0: as it says. Either is for all tasks, in place of what they say themselves.
	Warnings []time.Duration `cbor:"11,keyasint,omitempty"`
	Transfer time.Duration   `cbor:"12,keyasint,omitempty"`
	// Notify is, in a genesis, by which policy people's tasks are offered, as people write it; empty: as the
	// definition says (choreo/state/offers.go).
	Notify string `cbor:"13,keyasint,omitempty"`
	// Word is, in a genesis of a workflow with a creator role, that of the user who began the instance
	// (beginning.go); empty: its author did. Versions before 2026-11-29 do not read it.
	Word []byte `cbor:"14,keyasint,omitempty"`
}

// Dropped is a task whose only purpose, a data set, existed when the instance
// was created: its values are among the input. The task counts as succeeded as
// soon as its rule holds. What the definition needs for more (partition.Droppable)
// is never dropped, whatever a genesis says.
type Dropped struct {
	_       struct{} `cbor:",toarray"`
	Task    workflow.TaskName
	DataSet string
	Hash    [32]byte           // of the data set's content
	Holder  workflow.PartnerID // from whom its values came
}

// Why says how one assignment came about.
type Why struct {
	_ struct{} `cbor:",toarray"`
	// Partition is what was assigned; empty: Tasks.
	Partition workflow.PartitionName
	Tasks     []workflow.TaskName
	// Mechanism chose; empty: the plain rule, or a pin.
	Mechanism aptitude.Mechanism
	Reason    string // in words
	// Threshold is the abs_alloc that the chosen one had to reach, Share the part
	// of its availability that the work costs it until it is finished.
	Threshold, Share membership.PerMille
	// Candidates are the best of those who were weighed, the chosen one first, and the
	// most apt among them;
	// Others is how many more there were.
	Candidates []Weighed
	Others     int
}

// Weighed is a candidate with its factors.
type Weighed struct {
	_                                               struct{} `cbor:",toarray"`
	Partner                                         workflow.PartnerID
	Suitability, Urgency, Conformance, Availability membership.PerMille
	Verdict                                         aptitude.Verdict
}

// Factors are the candidate's factors as the metric has them.
func (w Weighed) Factors() aptitude.Factors {
	return aptitude.Factors{
		Suitability: w.Suitability.Share(), Urgency: w.Urgency.Share(), Conformance: w.Conformance.Share(),
		Availability: w.Availability.Share(),
	}
}

// maxWeighed bounds the candidates that are recorded.
const maxWeighed = 8

// WhyOf records a choice: of a partition, or of tasks.
func WhyOf(c partition.Choice, tasks ...workflow.TaskName) Why {
	w := Why{Partition: c.Partition, Tasks: tasks, Reason: Clip(c.Why)}
	as := c.Assignment
	if as == nil {
		return w
	}
	w.Mechanism, w.Threshold, w.Share = c.Mechanism, perMille(as.Threshold), perMille(c.Share)
	ranked := slices.Clone(as.Candidates)
	slices.SortStableFunc(ranked, func(a, b aptitude.Candidate) int {
		switch {
		case (a.Resource == as.Resource) != (b.Resource == as.Resource):
			if a.Resource == as.Resource {
				return -1
			}
			return 1
		case a.AbsAlloc() > b.AbsAlloc():
			return -1
		case a.AbsAlloc() < b.AbsAlloc():
			return 1
		}
		return 0
	})
	w.Others = max(len(ranked)-maxWeighed, 0)
	// the partner that would have done it best is recorded, however busy: the choice is measured by it
	if w.Others > 0 {
		best := slices.MaxFunc(ranked, func(a, b aptitude.Candidate) int {
			return cmp.Compare(a.Quality(), b.Quality())
		})
		if !slices.ContainsFunc(ranked[:maxWeighed],
			func(c aptitude.Candidate) bool { return c.Quality() >= best.Quality() }) {
			ranked[maxWeighed-1] = best
		}
	}
	for _, c := range ranked[:len(ranked)-w.Others] {
		w.Candidates = append(w.Candidates, Weighed{
			Partner: workflow.PartnerID(c.Resource), Verdict: c.Verdict,
			Suitability: perMille(c.Suitability), Urgency: perMille(c.Urgency), Conformance: perMille(c.Conformance),
			Availability: perMille(c.Availability),
		})
	}
	return w
}

// A fact has room for so many candidates, over all its assignments, and for so
// many assignments with a reason.
const (
	maxCandidates = 512
	maxWhy        = 512
)

// Brief shortens the reasons of many assignments until a fact has room for them:
// first the candidates that were not chosen and the end of long reasons, then
// whole assignments go.
func Brief(why []Why) []Why {
	if len(why) == 0 {
		return nil
	}
	why = slices.Clone(why[:min(len(why), maxWhy)])
	each, room := max(1, maxCandidates/len(why)), max(64, maxReasons/len(why))
	for i := range why {
		w := &why[i]
		if len(w.Candidates) > each {
			w.Others += len(w.Candidates) - each
			w.Candidates = w.Candidates[:each]
		}
		w.Reason = plain.CutBytes(w.Reason, room)
	}
	return why
}

func perMille(x float64) membership.PerMille {
	return membership.PerMille(math.Round(1000 * min(max(x, 0), 1)))
}

// maxDates bounds the warnings that a genesis gives.
const maxDates = 100

// dates reports whether an annex says something of deadlines.
func (x *Annex) dates() bool { return len(x.Warnings) > 0 || x.Transfer != 0 }

func (x *Annex) validateDates() error {
	if len(x.Warnings) > maxDates {
		return fmt.Errorf("%d warnings, at most %d", len(x.Warnings), maxDates)
	}
	for i, w := range x.Warnings {
		if w <= 0 || w > worklist.MaxDue || i > 0 && w >= x.Warnings[i-1] {
			return fmt.Errorf("a warning %s before a deadline: want them between 0 and %s, the longest first", w,
				worklist.MaxDue)
		}
	}
	if x.Transfer < 0 || x.Transfer > worklist.MaxDue {
		return fmt.Errorf("work that passes on %s before its deadline: want 0 to %s", x.Transfer, worklist.MaxDue)
	}
	return nil
}

func (w *Why) validate() error {
	if len(w.Candidates) > maxWeighed || len(w.Tasks) > MaxCollection {
		return fmt.Errorf("a reason with %d candidates for %d tasks: at most %d and %d", len(w.Candidates),
			len(w.Tasks), maxWeighed, MaxCollection)
	}
	for _, c := range w.Candidates {
		if err := errors.Join(names(c.Partner), names(c.Verdict)); err != nil {
			return err
		}
	}
	return errors.Join(names(w.Partition), names(w.Mechanism), names(w.Tasks...), Reason(w.Reason))
}

// validateNotify checks the policy that a genesis gives.
func (x *Annex) validateNotify() error {
	if x.Notify == "" {
		return nil
	}
	p, err := worklist.ParsePolicy(x.Notify)
	if err == nil && p.String() != x.Notify {
		err = fmt.Errorf("the policy %q is not written in the one way: want %q", x.Notify, p)
	}
	return err
}

// Of finds why a partition, or a task by itself, came to its partner.
func (a *Annex) Of(p workflow.PartitionName, t workflow.TaskName) *Why {
	if a == nil {
		return nil
	}
	for i := range a.Why {
		if w := &a.Why[i]; (p != "" && w.Partition == p) || (p == "" && slices.Contains(w.Tasks, t)) {
			return w
		}
	}
	return nil
}
