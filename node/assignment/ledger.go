package assignment

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Ledger is the unfinished work that is known here, by its holders: what new
// work is weighed against, beside what partners say of themselves. It follows
// from the instances in memory. An assignment counts at once, and is taken back where
// what assigned it could not be made durable.
type Ledger struct {
	self  workflow.PartnerID
	clock timepiece
	// people is what people have of their work.
	people *Loads
	// assigning is held while somebody is chosen and, by a decision and for a new instance,
	// until the choice is entered: of two choices at once the second sees the first.
	assigning sync.Mutex

	mu      sync.Mutex // guards what follows
	entries map[workflow.InstanceID]entry
	own     time.Duration    // of this node's own
	lots    map[lot]lotSum   // what mechanisms gave out
	given   partition.InHand // of that, to this node
	flows   map[workflow.PartnerID]flow
	open    map[workflow.InstanceID]*before // the instances with changes that are not durable yet
	told    told                            // what partners were last told
	asked   bool                            // to tell it early
}

// timepiece says what time it is.
type timepiece interface{ Now() moment.Now }

// before is what changes of one instance, which are not durable yet, have changed.
type before struct {
	entry entry
	flows map[workflow.PartnerID]change
}

type change struct{ was, is flow }

// entry is what one instance adds up to.
type entry struct {
	own      time.Duration
	costs    bool      // its mechanism takes the work off its holder's availability
	holdings []holding // of instances that a mechanism distributes
}

// holding is a holding with what is expected of it.
type holding struct {
	choreo.Holding
	// begins is, of what is not ready, when it is expected to be (Awake): as it was when this
	// node first knew of it.
	begins time.Duration
}

// lot is work of one kind, given to one partner by one.
type lot struct {
	partner, giver workflow.PartnerID
	kind           partition.Kind // NoKind: it costs no availability
}

// lotSum is how much work that is.
type lotSum struct {
	ready, all time.Duration
	// begun adds up when what is not ready is expected to be (Awake), in seconds, each
	// counted once for each second of its time.
	begun int64
}

// plus has a holding more, or, with sign -1, less.
func (s lotSum) plus(h holding, sign int64) lotSum {
	of := h.InHand()
	s.ready += time.Duration(sign) * of.Ready
	s.all += time.Duration(sign) * of.All
	if !h.Ready {
		s.begun += sign * int64(inSeconds(h.Time)) * int64(h.begins/time.Second)
	}
	return s
}

// inHand is the work as it is weighed at a moment.
func (s lotSum) inHand(awake time.Duration) partition.InHand {
	h := partition.InHand{Ready: s.ready, All: s.all}
	if later := s.all - s.ready; later > 0 {
		begins := float64(s.begun) / later.Seconds() * float64(time.Second)
		h.Wait = max(0, time.Duration(begins)-awake)
	}
	return h
}

// flow is the work that a partner was given last, with its flow time: as long as it
// is not finished, the time expected.
type flow struct {
	instance workflow.InstanceID
	work     choreo.Holding
	time     time.Duration
	since    time.Duration // Awake when it was given
}

// told is what partners are told of this node's work in hand.
type told struct {
	load  membership.PerMille
	given partition.InHand
	work  []membership.Work
}

func NewLedger(self workflow.PartnerID, clock timepiece) *Ledger {
	return &Ledger{
		self: self, clock: clock, people: newLoads(self), entries: map[workflow.InstanceID]entry{},
		lots: map[lot]lotSum{}, flows: map[workflow.PartnerID]flow{}, open: map[workflow.InstanceID]*before{},
	}
}

// String is the ledger in words, for whoever looks for a fault: what mechanisms gave to each
// partner, and what each was given last.
func (l *Ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for x, sum := range l.lots {
		out = append(out, fmt.Sprintf("%s has %s\n", x.partner, sum.all))
	}
	for p, f := range l.flows {
		out = append(out, fmt.Sprintf("%s was given %s last: %s\n", p, f.work.Task, f.time))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// People is what people have of their work.
func (l *Ledger) People() *Loads { return l.people }

// Choosing has work given out by one choice at a time: each sees those before it. It ends
// with what it returns.
func (l *Ledger) Choosing() (end func()) {
	l.assigning.Lock()
	return l.assigning.Unlock
}

// Enter brings an instance's work up to date.
func (l *Ledger) Enter(m *choreo.Machine) {
	l.enterAs(m, m.Begins)
}

// enterAs is enter, with what is expected of work that was not known here before.
func (l *Ledger) enterAs(m *choreo.Machine, begins func() func(choreo.Holding) time.Duration) {
	id := m.Instance()
	l.people.enter(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := entry{own: m.InHand()}
	if m.Mechanism() != partition.PlainRule {
		e.costs, e.holdings = m.Mechanism().Loads(), l.expect(l.entries[id].holdings, m.Holdings(), begins)
	}
	for _, h := range l.entries[id].holdings {
		still := func(o holding) bool { return o.Same(h.Holding) }
		if f := l.flows[h.Partner]; f.instance == id && f.work.Same(h.Holding) &&
			!slices.ContainsFunc(e.holdings, still) {
			if f.time = m.Took(h.Holding); f.time == 0 { // of a person's task nobody says when it was begun
				f.time = l.clock.Now().Awake - f.since
			}
			l.setFlow(h.Partner, f)
		}
	}
	l.set(id, e)
}

// expect says of what is not ready when it is expected to be: of what was known before, as
// it was then.
func (l *Ledger) expect(
	known []holding, now []choreo.Holding, begins func() func(choreo.Holding) time.Duration,
) []holding {
	out := make([]holding, len(now))
	for i, h := range now {
		out[i].Holding = h
	}
	if !slices.ContainsFunc(now, func(h choreo.Holding) bool { return !h.Ready }) {
		return out
	}
	type work struct {
		partner   workflow.PartnerID
		partition workflow.PartitionName
		task      workflow.TaskName
	}
	was := make(map[work]time.Duration, len(known))
	for _, h := range known {
		was[work{h.Partner, h.Partition, h.Task}] = h.begins
	}
	awake := l.clock.Now().Awake
	var wait func(choreo.Holding) time.Duration
	for i, h := range now {
		if h.Ready {
			continue
		}
		at, before := was[work{h.Partner, h.Partition, h.Task}]
		if !before {
			if wait == nil {
				wait = begins()
			}
			at = awake + wait(h)
		}
		out[i].begins = at
	}
	return out
}

// Give enters an instance all of whose work was given out just now, by choices that tell
// when it is expected to be ready.
func (l *Ledger) Give(m *choreo.Machine, choices []partition.Choice) {
	begins := map[workflow.PartitionName]time.Duration{}
	for _, c := range choices {
		begins[c.Partition] = c.Begins
	}
	l.enterAs(m, func() func(choreo.Holding) time.Duration {
		return func(h choreo.Holding) time.Duration { return begins[h.Partition] }
	})
	for _, h := range l.holdings(m.Instance()) {
		l.renew(m.Instance(), h.Holding)
	}
}

// ready are holdings of which nothing is expected to begin later.
func ready(hs []choreo.Holding) []holding {
	out := make([]holding, len(hs))
	for i, h := range hs {
		out[i].Holding = h
	}
	return out
}

// add enters work that was given just now, until the instance is entered again.
func (l *Ledger) add(id workflow.InstanceID, given []choreo.Holding, costs bool) {
	if len(given) == 0 {
		return
	}
	l.mu.Lock()
	e := l.entries[id]
	e.costs, e.holdings = costs, slices.Concat(e.holdings, ready(given))
	l.set(id, e)
	l.mu.Unlock()
	for _, h := range given {
		l.renew(id, h)
	}
}

// snapshot is the ledger as one decision about an instance sees it, which changes nothing here.
// It knows of other instances only what they add up to.
func (l *Ledger) snapshot(id workflow.InstanceID) *Ledger {
	out := NewLedger(l.self, l.clock)
	l.mu.Lock()
	defer l.mu.Unlock()
	out.entries[id] = l.entries[id]
	out.own, out.given = l.own, l.given
	out.lots, out.flows, out.people = maps.Clone(l.lots), maps.Clone(l.flows), l.people
	return out
}

// weigh counts more work that the decision gave out, as add will when it is made.
func (l *Ledger) weigh(id workflow.InstanceID, given []choreo.Holding, costs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(entry{costs: costs, holdings: ready(given)}, 1)
	for _, h := range given {
		l.flows[h.Partner] = flow{id, h, h.Time, l.clock.Now().Awake}
	}
}

// renew notes what a partner was given last.
func (l *Ledger) renew(id workflow.InstanceID, h choreo.Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setFlow(h.Partner, flow{id, h, h.Time, l.clock.Now().Awake})
}

// lastFlow is the flow time of what a partner was given last; 0: nothing yet.
func (l *Ledger) lastFlow(p workflow.PartnerID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flows[p].time
}

// Drop forgets an instance.
func (l *Ledger) Drop(id workflow.InstanceID) {
	l.people.drop(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(id, entry{})
	delete(l.open, id)
}

// Keep says that what changed of an instance is durable.
func (l *Ledger) Keep(id workflow.InstanceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, id)
}

// TakeBack undoes what changed of an instance since that was durable.
func (l *Ledger) TakeBack(id workflow.InstanceID) {
	l.people.drop(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.open[id]
	if b == nil {
		return
	}
	l.set(id, b.entry)
	for p, x := range b.flows {
		switch {
		case l.flows[p] != x.is: // another instance gave it something since
		case x.was == flow{}:
			delete(l.flows, p)
		default:
			l.flows[p] = x.was
		}
	}
	delete(l.open, id)
}

// changing is what an instance's changes are noted in that are not durable yet.
func (l *Ledger) changing(id workflow.InstanceID) *before {
	b := l.open[id]
	if b == nil {
		b = &before{entry: l.entries[id], flows: map[workflow.PartnerID]change{}}
		l.open[id] = b
	}
	return b
}

func (l *Ledger) setFlow(p workflow.PartnerID, f flow) {
	flows := l.changing(f.instance).flows
	x, known := flows[p]
	if !known {
		x.was = l.flows[p]
	}
	x.is = f
	flows[p], l.flows[p] = x, f
}

func (l *Ledger) set(id workflow.InstanceID, e entry) {
	was := l.entries[id]
	if was.own == e.own && was.costs == e.costs && slices.Equal(was.holdings, e.holdings) {
		return
	}
	l.changing(id)
	l.count(was, -1)
	l.count(e, 1)
	if l.entries[id] = e; e.own == 0 && len(e.holdings) == 0 {
		delete(l.entries, id)
	}
}

func (l *Ledger) count(e entry, sign time.Duration) {
	l.own += sign * e.own
	for _, h := range e.holdings {
		x := lot{h.Partner, h.Giver, h.Work}
		if !e.costs {
			x.kind = partition.NoKind
		}
		if l.lots[x] = l.lots[x].plus(h, int64(sign)); l.lots[x] == (lotSum{}) {
			delete(l.lots, x)
		}
		if h.Partner == l.self {
			of := h.InHand()
			l.given.Ready, l.given.All = l.given.Ready+sign*of.Ready, l.given.All+sign*of.All
		}
	}
}

// holdings are what one instance's work is known to be.
func (l *Ledger) holdings(id workflow.InstanceID) []holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[id].holdings
}

// workOf is what one partner holds of the work that mechanisms gave out.
type workOf struct {
	costs   map[partition.Kind]partition.InHand
	known   map[partition.Kind]partition.InHand // of these what is known here, and not only said
	backlog partition.InHand
}

// add adds work of which so much is known here.
func (w *workOf) add(k partition.Kind, h, known partition.InHand) {
	w.backlog = w.backlog.Plus(h)
	if k != partition.NoKind {
		if w.costs == nil {
			w.costs, w.known = map[partition.Kind]partition.InHand{}, map[partition.Kind]partition.InHand{}
		}
		w.costs[k], w.known[k] = w.costs[k].Plus(h), w.known[k].Plus(known)
	}
}

// inHand is what each of the partners holds: what this node gave out, as it knows
// best itself; what others gave to partners, as those say or as is known here,
// whichever is more.
func (l *Ledger) inHand(partners []membership.Partner) map[workflow.PartnerID]*workOf {
	type account struct {
		partner workflow.PartnerID
		giver   uint32
		kind    partition.Kind
	}
	others := map[account]partition.InHand{}
	out := map[workflow.PartnerID]*workOf{}
	of := func(p workflow.PartnerID) *workOf {
		if out[p] == nil {
			out[p] = &workOf{}
		}
		return out[p]
	}
	self := shortName(l.self)
	for _, p := range partners {
		if p.Record.Partner == l.self {
			continue
		}
		for _, w := range membership.DecodeWork(p.Work) {
			if w.Giver != self {
				a := account{p.Record.Partner, w.Giver, partition.Kind(w.Kind)}
				others[a] = others[a].Plus(partition.InHand{Ready: seconds(w.Ready), All: seconds(w.All)})
			}
		}
	}
	awake := l.clock.Now().Awake
	l.mu.Lock()
	known := map[account]partition.InHand{}
	for x, sum := range l.lots {
		h := sum.inHand(awake)
		if x.giver == l.self || x.partner == l.self {
			of(x.partner).add(x.kind, h, h)
			continue
		}
		a := account{x.partner, shortName(x.giver), x.kind}
		known[a] = known[a].Plus(h)
	}
	l.mu.Unlock()
	for a, h := range known {
		others[a] = partition.InHand{
			Ready: max(h.Ready, others[a].Ready), All: max(h.All, others[a].All), Wait: h.Wait,
		}
	}
	for a, h := range others {
		of(a.partner).add(a.kind, h, known[a])
	}
	return out
}

// kinds adds up what all partners hold of each kind that costs them availability. What
// one only says counts up to what all others hold: the more of a kind there is, the less
// of it costs the partner that it was given to, and nobody is to make that nothing by a
// word.
func kinds(work map[workflow.PartnerID]*workOf) map[partition.Kind]partition.InHand {
	all := map[partition.Kind]partition.InHand{}
	for _, w := range work {
		for k, h := range w.costs {
			all[k] = all[k].Plus(h)
		}
	}
	out := maps.Clone(all)
	for _, w := range work {
		for k, h := range w.costs {
			others := partition.InHand{Ready: all[k].Ready - h.Ready, All: all[k].All - h.All}
			most := partition.InHand{Ready: max(w.known[k].Ready, others.Ready), All: max(w.known[k].All, others.All)}
			out[k] = out[k].Minus(h.Minus(most))
		}
	}
	return out
}

// shortName is what a partner is called where few bytes must do.
func shortName(p workflow.PartnerID) uint32 {
	sum := sha256.Sum256([]byte(p))
	return max(1, binary.BigEndian.Uint32(sum[:]))
}

func seconds(n uint16) time.Duration { return time.Duration(n) * time.Second }

// inSeconds rounds up, so that no work is nothing, to what there is room for.
func inSeconds(d time.Duration) uint16 {
	return uint16(min((d+time.Second-1)/time.Second, math.MaxUint16))
}

// halfBusy is the expected work in hand at which a partner is half busy.
const halfBusy = time.Hour

// busy is how busy so much expected work makes a partner: half by an hour of
// it, three quarters by three, never wholly.
func busy(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(d) / float64(d+halfBusy)
}

// workAt is the expected work that makes a partner so busy.
func workAt(busy float64) time.Duration {
	if busy <= 0 {
		return 0
	}
	return time.Duration(min(busy/(1-min(busy, 0.9999)), 1e4) * float64(halfBusy))
}

// Load is how busy this node is, any work at all counting.
func (l *Ledger) Load() membership.PerMille {
	l.mu.Lock()
	defer l.mu.Unlock()
	return loadOf(l.own)
}

// loadWithout is load as if this node had less to do by d.
func (l *Ledger) loadWithout(d time.Duration) membership.PerMille {
	l.mu.Lock()
	defer l.mu.Unlock()
	return loadOf(l.own - d)
}

// besides is the work of this node that no mechanism gave it.
func (l *Ledger) besides() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.own-l.given.All)
}

func loadOf(own time.Duration) membership.PerMille {
	if own <= 0 {
		return 0
	}
	return membership.PerMille(max(1, busy(own)*1000))
}

// besidesSaid is the work of a partner that no mechanism gave it, by what it says. The
// least load that it can say may stand for less than a second.
func besidesSaid(p membership.Partner) time.Duration {
	rest := workAt(p.Load.Share())
	for _, w := range membership.DecodeWork(p.Work) {
		rest -= seconds(w.All)
	}
	if rest <= workAt(0.001) {
		return 0
	}
	return rest
}

// now is what partners would be told now, but for the work itself.
func (l *Ledger) now() told { return told{load: loadOf(l.own), given: l.given} }

// withWork is now, whole.
func (l *Ledger) withWork() told {
	t := l.now()
	t.work = l.work()
	return t
}

// Tell is what partners are told; news tells that they were not told the same work before.
func (l *Ledger) Tell() (load membership.PerMille, work []membership.Work, news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.withWork()
	news = !slices.Equal(t.work, l.told.work)
	l.told, l.asked = t, false
	return t.load, t.work, news
}

// Say is what a partner is told that was just met.
func (l *Ledger) Say() (load membership.PerMille, work []membership.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.withWork()
	return t.load, t.work
}

// work is what mechanisms gave this node, the most first; what there is no room for
// is added up in the last.
func (l *Ledger) work() []membership.Work {
	by := map[membership.Work]partition.InHand{}
	for x, sum := range l.lots {
		if x.partner == l.self {
			key := membership.Work{Giver: shortName(x.giver), Kind: uint32(x.kind)}
			by[key] = by[key].Plus(partition.InHand{Ready: sum.ready, All: sum.all})
		}
	}
	var out []membership.Work
	for key, h := range by {
		key.Ready, key.All = inSeconds(h.Ready), inSeconds(h.All)
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b membership.Work) int {
		return cmp.Or(cmp.Compare(b.All, a.All), cmp.Compare(a.Giver, b.Giver), cmp.Compare(a.Kind, b.Kind))
	})
	if len(out) > membership.MaxWork {
		var rest partition.InHand
		for _, w := range out[membership.MaxWork-1:] {
			rest = rest.Plus(partition.InHand{Ready: seconds(w.Ready), All: seconds(w.All)})
		}
		out = append(out[:membership.MaxWork-1:membership.MaxWork-1],
			membership.Work{Ready: inSeconds(rest.Ready), All: inSeconds(rest.All)})
	}
	return out
}

// turn is how much the load must have changed to be told before it is due.
const turn = 100

// Turned reports whether partners should hear early of the load, or of work that
// mechanisms gave: when there is some or none any more, or twice or half as much.
func (l *Ledger) Turned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turnedNow()
}

func (l *Ledger) turnedNow() bool {
	now, was := l.now(), l.told
	less, more := min(now.given.Ready, was.given.Ready), max(now.given.Ready, was.given.Ready)
	return now.load >= was.load+turn || was.load >= now.load+turn || more > 0 && more >= 2*less
}

// Turns is Turned, once until it was told.
func (l *Ledger) Turns() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked || !l.turnedNow() {
		return false
	}
	l.asked = true
	return true
}
