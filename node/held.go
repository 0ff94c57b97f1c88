package node

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// held is an instance in memory.
type held struct {
	id      workflow.InstanceID
	place   int // its place in the order in which they came into memory (shard.came)
	m       *choreo.Machine
	def     *library.Definition
	sum     index.Summary
	wake    time.Duration
	pending map[workflow.PartnerID]*inflight
	// settledAt is how many facts an instance had that was loaded as settled: it
	// stays so until there are more.
	settledAt int
	expected  expected // what others are to write into it (weighing.go)
	about     string   // the instance in words, once said
	said      bool
	reported  int // how many facts it had when it was last to be reported
	weighed   weighed
	digested  int // how many facts it had when its summary's Facts, With and Sizes were last worked out
	// doubts is when (Awake) partners were asked for facts of ours that they named
	// and that are not here.
	doubts map[workflow.PartnerID]time.Duration
	// silent is for how long participants have not answered about an ended instance
	// (mindSilence), excused how many are not waited for.
	silent  map[workflow.PartnerID]time.Duration
	excused int
	// closedBy are the partners that keep only its summary.
	closedBy map[workflow.PartnerID]closings.Closing
	// refused are the partners that have no room for it.
	refused map[workflow.PartnerID]refusedAt
	words   show.Words
	// came is when (ms) those facts of others came here by which an order was followed, or after which it came to
	// nothing.
	came map[fact.ID]int64
	// asked is when (Boot) people here last wanted to see what a holder has, and it was asked.
	asked   map[workflow.PartnerID]time.Duration
	failing failing     // whether a failure in it waits for an order
	news    *index.News // what is noted of it with its end in this round; nil: nothing
	// early is how often it was looked at since it ended, to compare it before its turn
	// (compareEnded).
	early int
	// Of an instance that comes out of quarantine: what was noted, until that is
	// durable, and saved facts that lack their past.
	was  *index.SetAside
	kept []fact.Received
	// elsewhere says, and is nil then, that another participant is known to have made it durable, or
	// that all others refused it (desk.heldOnlyHere); nil: nobody waits for that.
	elsewhere chan bool
	// Of a child (nested.go): its parent was looked at since it is in memory, and was told
	// how it ended.
	tended, handedOn bool
	// unshared: people did something here that nobody else was known to have, and somebody watches (tellShared).
	unshared bool
	glance   *glance // nil: a list asks the machine
}

// failing says whether a failure waits for an order, as of so many facts.
type failing struct {
	facts int
	asks  bool
}

// inflight is what was sent to a peer. It is sent again when no acknowledgement comes in
// time, and where the peer says that it lacks something, but not at once each time: its
// word may cost about as much as its silence.
type inflight struct {
	due      time.Duration // Awake at which to send again
	pause    time.Duration // from sending until then
	askDue   time.Duration // Awake from which on its word has all sent again
	askPause time.Duration // from sending until then
	more     bool          // not all fitted that it lacks
	idle     bool          // it needs no acknowledgement any more
	asked    bool          // the peer said since that it lacks something
	next     bool          // it was the instance's turn there (lineup)
}

// refusedAt is that a partner did not take an instance in: when it said so, since when for that reason, and until
// when (Awake) it is not sent again. The pause is how long that is, without its spread.
type refusedAt struct {
	why          wire.RefusedWhy
	at, since    time.Time
	pause, until time.Duration
}

// shown is an instance for those who show it to people.
func (h *held) shown() *show.Held {
	out := &show.Held{M: h.m, Def: h.m.Definition(), Started: h.sum.Started, Ended: h.sum.Ended, Words: h.words}
	if len(h.refused) == 0 || h.sum.Ended > 0 { // once it has ended nothing is to be done about who did not take it in
		return out
	}
	for _, p := range slices.Sorted(maps.Keys(h.refused)) {
		r := h.refused[p]
		out.Refused = append(out.Refused, show.Refusal{
			By: p, Why: quota.There(r.why), At: r.at, OfBeginner: r.why == wire.RefusedBeginner,
			Unfit: r.why == wire.RefusedUnfit, Since: r.since,
		})
	}
	return out
}

// filed is an instance for those who see to its files.
func (h *held) filed() *filing.Held {
	return &filing.Held{M: h.m, Def: h.m.Definition(), By: h.sum.By, Ended: h.sum.Ended}
}

// ask notes that a holder was asked what it has, as people wanted to see that.
func (h *held) ask(p workflow.PartnerID, at time.Duration) {
	if h.asked == nil {
		h.asked = map[workflow.PartnerID]time.Duration{}
	}
	h.asked[p] = at
}

// subject is what an instance is about, in words.
func (h *held) subject() string {
	if !h.said {
		h.said, h.about = true, show.Subject(h.shown())
	}
	return h.about
}

// isElsewhere reports whether another participant has made the instance durable.
func (h *held) isElsewhere() bool { return h.sum.Settled || h.m.HeldElsewhere() }

// refusedByAll reports whether all others that take part have refused the instance.
func (h *held) refusedByAll() bool {
	return len(h.refused) > 0 && len(h.refused) >= len(h.m.Participants())-1
}

// tellElsewhere tells whoever waits for that, or that there is nobody left to wait for.
func (h *held) tellElsewhere() {
	if h.elsewhere != nil && (h.isElsewhere() || h.refusedByAll()) {
		h.elsewhere <- h.isElsewhere() // there is room for one
		h.elsewhere = nil
	}
}

// unacknowledged reports whether something of an instance is due to be sent again, and
// whether an acknowledgement, or its time, is waited for. Of one that is not held nothing is.
func (h *held) unacknowledged(now time.Duration) (isDue, waits bool) {
	if h == nil {
		return false, false
	}
	for _, f := range h.pending {
		overdue, asked := f.over(now)
		isDue = isDue || overdue || asked
		waits = waits || !f.idle || f.asked
	}
	return isDue, waits
}

// over reports whether an acknowledgement is overdue, and whether it is time for what the
// peer asked for.
func (f *inflight) over(now time.Duration) (overdue, asked bool) {
	return !f.idle && now >= f.due, f.asked && now >= f.askDue
}

// running reports whether an instance has not ended, as was known in the last round.
func (h *held) running() bool { return h.sum.State == "" || h.sum.State == workflow.InstanceRunning }

// expected is what others that take part in an instance from its start are to write, by
// partner and in all.
type expected struct {
	of  map[workflow.PartnerID]int64
	all int64
}

// weighed is what an instance was weighed with.
type weighed struct {
	facts int
	runs  bool
}

// wantsNoMore reports whether a partner said that it keeps only an instance's summary, or
// lately that it has no room for it.
func (h *held) wantsNoMore(p workflow.PartnerID, now time.Duration) bool {
	if _, closed := h.closedBy[p]; closed {
		return true
	}
	return len(h.refused) > 0 && now < h.refused[p].until
}

// cameAt notes that facts are here that came at a moment (ms; 0: they are our own).
func (h *held) cameAt(facts []fact.Received, at int64) {
	h.words.Came(facts, at)
	if at == 0 || !h.m.OrderedInStead() {
		return
	}
	for _, f := range facts {
		b := f.Fact.Body
		if follows := b.Annex != nil && b.Annex.Order != nil; b.Success == nil && !follows || h.came[f.ID] != 0 {
			continue
		}
		if h.came == nil {
			h.came = map[fact.ID]int64{}
		}
		h.came[f.ID] = at
	}
}

// knownAt is since when (ms) such a fact is known here; where that is not noted, when it was written.
func (h *held) knownAt(e *log.Entry) int64 { return cmp.Or(h.came[e.ID], e.Fact.At) }
