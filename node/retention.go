package node

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// An ended instance is kept with all its facts for a time (limits.keep), and no more
// of them than limits.ended; after that a signed summary is kept in their place.
// Nothing is given up that somebody may lack, that is disputed, or that awaits
// compensation. An instance whose summary is here is never taken in again: a partner
// that sends facts of it is answered with the summary.
//
// There are as many summaries as limits.ended. Of more only the IDs are kept, and when
// there are too many of those, the initiator of most of them loses its oldest. Then no
// instance is taken in any more that it began before: so none comes back, even if its ID
// is gone. That costs only a partner that ended so many.
//
// A partner that can be spoken to and does not answer cannot hold that up for ever: one
// that was connected for an hour in all, and was sent an ended instance again and
// again, and has not acknowledged it, is not waited for. Nor is one that is not on the
// partner list: a participant can pass work on to keys that are nobody's. A partner out
// of reach is waited for, as long as it is not evicted.

// retention is what is kept of instances that have ended: which ones partners have as
// well, and for how long their facts stay.
type retention struct {
	*contacts
	crew        *crew
	index       *index.List
	people      holders
	definitions sweeping
	comparing   *ration.Budgets

	closings *closings.Book
	next     time.Duration // Awake: when to look again for what need not be kept

	mu   sync.Mutex // guards late
	late map[workflow.InstanceID]string
}

// sweeping forgets definitions that nothing uses any more.
type sweeping interface {
	Sweep(uses func() func(workflow.Hash) bool) error
}

// holders is what retention asks of the partner list.
type holders interface {
	name(workflow.PartnerID) string
	label(workflow.PartnerID) string
	names([]workflow.PartnerID) []string
}

func newRetention(c *contacts, w *crew, x *index.List, p holders, d sweeping, b *closings.Book) *retention {
	return &retention{
		contacts: c, crew: w, index: x, people: p, definitions: d, closings: b, comparing: ration.New(comparingRation),
		late: map[workflow.InstanceID]string{},
	}
}

// tooManyLives tells people that a partner takes in nothing that this node says of an
// instance since its store was made or restored for the last time.
func (t *retention) tooManyLives(h *held, by workflow.PartnerID) {
	id, name := h.m.Instance(), t.people.label(by)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.late) < maxLate {
		t.late[id] = fmt.Sprintf("instance %s of %s: %s takes in nothing more that this node does in it, since this node's store was made or restored more than %d times while it ran: have it cancelled by another who takes part, and started again",
			id, h.def.Def.Name, name, fact.MaxChains)
	}
}

// lateOnes says in which instances partners do not take in what is here.
func (t *retention) lateOnes() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), workflow.InstanceID.Compare) {
		out = append(out, t.late[id])
	}
	return out
}

// CheckLate tells of the instances in which partners do not take in what is here.
func (t *retention) CheckLate(warn func(check, what, mend string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(t.late), workflow.InstanceID.Compare) {
		warn("facts", t.late[id], "mutirao show "+id.Short()+" shows what is here; its initiator decides")
	}
}

// tooLate tells people that facts of this node's reach a partner too late.
func (t *retention) tooLate(h *held, by workflow.PartnerID, c closings.Closing) {
	id, name := h.m.Instance(), t.people.label(by)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.late) < maxLate {
		t.late[id] = fmt.Sprintf("instance %s of %s: %s had all of it when it deleted its facts, on %s, and takes no more: what came later is known here, and not there",
			id, h.def.Def.Name, name, time.UnixMilli(c.Closed).UTC().Format(time.DateOnly))
	}
}

// late reports whether this node has facts that a partner that is not gone takes no
// more. Such an instance is kept for limits.keep once more from when that is known.
func (h *held) late(gone func(workflow.PartnerID) bool) bool {
	for p, c := range h.closedBy {
		if c.Signer != "" && c.Number < uint64(h.m.Len()) && !gone(p) {
			return true
		}
	}
	return false
}

// maxLate bounds of how many instances status says that facts came too late.
const maxLate = 64

// onlySummary is the error of what is asked of an instance whose facts were deleted.
type onlySummary struct {
	err     *api.Error
	closing closings.Closing
}

func (e *onlySummary) Error() string { return e.err.Error() }

func (e *onlySummary) Unwrap() error { return e.err }

// findClosed finds the instance, of which only the summary is kept, whose ID begins so;
// nil: there is none.
func (t *retention) findClosed(prefix string) error {
	if prefix == "" {
		return nil
	}
	found, err := t.closings.List(prefix)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case len(found) > 1:
		return api.Errorf(api.Invalid, "%q begins the IDs of %d instances", prefix, len(found)).
			WithHint("give more of the ID")
	}
	c := found[0]
	what := "ended so long ago that only its ID is known"
	if c.Signer != "" {
		what = fmt.Sprintf("ended (%s) on %s, and only its summary is kept", c.State,
			time.UnixMilli(c.Ended).UTC().Format(time.DateOnly))
	}
	return &onlySummary{api.Errorf(api.Refused, "instance %s %s", c.Instance, what).
		WithHint("mutirao show %s shows the summary; limits.keep in config.yaml says for how long the rest is kept",
			c.Instance.Short()), c}
}

// listedClosing is a summary as lists show it.
func listedClosing(c closings.Closing) api.InstanceSummary {
	return api.InstanceSummary{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State,
		Started: wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Closed: wire.Instant(c.Closed),
	}
}

// shownClosing is an instance of which only the summary is left, for people.
func (t *retention) shownClosing(c closings.Closing) *api.Instance {
	in := &api.Instance{
		ID: c.Instance.String(), Workflow: c.Workflow, Version: c.Version, State: c.State, Incidents: []api.Incident{},
		Conflicts: []api.Conflict{},
		Started:   wire.AtMilli(c.Started), Ended: wire.Instant(c.Ended), Partitions: []api.Partition{},
		Tasks: []api.Task{}, Data: map[string]any{},
	}
	in.Closed = t.closedFor(c)
	return in
}

func (t *retention) closedFor(c closings.Closing) *api.Closing {
	return &api.Closing{
		At: wire.AtMilli(c.Closed), By: t.people.name(c.Signer), Initiator: t.people.name(c.By), Facts: c.Number,
		Digest:       hex.EncodeToString(c.Digest[:]),
		Participants: t.people.names(c.With), Others: c.Others, Definition: c.Definition.String(),
		Signature: hex.EncodeToString(c.Sig),
	}
}

// maxCompared bounds how many ended instances one contact has compared.
const maxCompared = 256

// mayCompare reports whether a partner may have an ended instance read now.
func (t *retention) mayCompare(p workflow.PartnerID, sum index.Summary) bool {
	much := min(1+int(sum.Number/comparingFacts), maxCompared)
	if t.comparing.Spend(p, much, t.clock.Now().Awake) {
		return true
	}
	t.refuse("comparisons-too-fast", p)
	return false
}

// comparingRation is in ended instances, and in facts of them by comparingFacts.
var comparingRation = ration.Ration{Burst: 4 * maxCompared, Each: 100 * time.Millisecond}

// comparingFacts is how many facts of an ended instance are one more to be paid.
const comparingFacts = 64

// closedHere is the error of an instance that is not taken in again.
type closedHere struct{ closing closings.Closing }

func (e *closedHere) Error() string { return "of this instance only the summary is kept" }
