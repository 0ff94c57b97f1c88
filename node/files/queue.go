package files

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which file comes when. What waits costs an entry and no goroutine. Whoever
// began the instances pays: each member has a line of its own, with a share of the entries
// and of the turns. A file has a turn only while partners are asked for it.

const (
	// turns are how many files come here at once, besides those that somebody asked for. Of
	// these each member has a quarter, all other members together seven eighths: one is
	// always left for what this node itself began.
	turns       = 8
	memberTurns = turns / 4
	othersTurns = turns / 8 * 7
	// askedTurns are for what somebody at this node waits for.
	askedTurns = 4
	// slice is how long a file has its turn while others wait for one.
	slice = 30 * time.Second

	// maxAhead is how many files wait here for tasks that are about to read them, with the
	// same shares.
	maxAhead    = 4096
	memberAhead = maxAhead / 4
	othersAhead = maxAhead / 8 * 7

	// pace is the least time between two turns of a line of which the first brought nothing.
	pace = time.Second / 16
	// wantsAtOnce is for how many instances a file is asked for in one turn.
	wantsAtOnce = 4
	// firstParked and maxParked are the pauses after which a file is tried again that had no
	// room, or was lost.
	firstParked = 5 * time.Minute
	maxParked   = time.Hour
	// lookCost is how long an instance's files are not looked at again, for each of them.
	lookCost = time.Millisecond
	// againAfter is when an instance is looked at again of which some files had no place.
	againAfter = 2 * time.Minute
	// sayEvery is the least time between two lines in the log about files without room.
	sayEvery = time.Minute
)

// payer is whose share a file is in while it comes.
type payer struct {
	by    workflow.PartnerID // began the instances; empty: this node, or a user of its
	asked bool               // somebody at this node waits for it; then by is empty
}

func payerOf(w Want) payer {
	if w.Asked || w.User != "" {
		return payer{asked: w.Asked}
	}
	return payer{by: w.By}
}

// line is what waits of one payer.
type line struct {
	of        payer
	orders    orders        // those that wait for a turn
	all       int           // orders, also those that have a turn or are blocked
	turns     int           // it has now
	served    uint64        // when it had a turn last, by Topic.served
	notBefore time.Duration // (Awake) it has no turn
	ahead     int           // wants of tasks that are about to begin
	lent      int           // turns that others have while these wait for answers
	vain      bool          // its last turn waited for mute partners, and nothing came, or for slow ones
}

// most is how many wants of tasks that are about to begin a line may have.
func (t *Topic) most(l *line) int {
	if l.of.by == "" {
		return l.ahead + maxAhead - t.ahead
	}
	return min(memberAhead, l.ahead+othersAhead-t.aheadOfOthers)
}

// order is that one payer wants one content.
type order struct {
	of     *fetch
	in     *line
	wants  []*wanted
	next   int           // of wants, whose turn is next
	due    time.Duration // (Awake) when it may have a turn
	number uint64        // of those that are due together, the least is first
	index  int           // in the heap; negative: not there
	pause  time.Duration // before its next turn
	parked time.Duration // how long it was put off when it had no room; 0: it was not
	// blocked: its content comes for another payer.
	blocked bool
	cancel  context.CancelFunc // ends its turn; nil: it has none
	ended   chan struct{}      // closed when its turn ended
	lent    bool               // others have its turn
	lentAt  time.Duration      // (Awake) since then
	own     bool               // this node could not keep what comes
	vain    bool               // its turn is one of those for lines that are vain
	slow    bool               // in its turn a chunk came slowly while others waited for a turn
}

// orders are a heap, the one that is due first at its top.
type orders []*order

func (h orders) Len() int { return len(h) }
func (h orders) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].due, h[j].due), cmp.Compare(h[i].number, h[j].number)) < 0
}
func (h orders) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *orders) Push(x any) {
	o := x.(*order)
	o.index = len(*h)
	*h = append(*h, o)
}
func (h *orders) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last], o.index = nil, -1
	*h = (*h)[:last]
	return o
}

// wanted is a want that waits.
type wanted struct {
	Want
	in      *order
	index   int // among the order's wants
	waiters []*waiter
	ahead   bool   // a task is about to read it
	look    uint64 // when that was seen last, by need.look
	used    bool   // the store knows that its instance has it
	refused bool   // it had no room, and that was counted
	lost    bool   // all partners that could have it say since lostSince that they do not
	since   time.Duration
	gone    *Loss  // it was lost when it was asked for last; nil: not
	trouble string // why it did not come when it was asked for last; empty: it was not yet
	atMost  int64  // how many bytes a second may come for it (Want.AtMost)
}

// waiter is told once how it ended.
type waiter struct{ done func(error) }

// need is what one instance wants.
type need struct {
	of      map[key]*wanted
	refs    int           // files that its tasks were about to read when it was looked at last
	look    uint64        // counts that
	until   time.Duration // (Awake) it is not looked at again
	turned  int           // files that had no place
	counted int           // of these, as refused
	again   bool          // it is among Topic.again
}

// key is a want of an instance.
type key struct {
	name
	item  workflow.DataName
	payer payer
	user  string // whose right it is; empty: this node's
	// urgent: it is given up where others wait.
	urgent bool
}

func keyOf(x *wanted) key { return key{nameOf(x.File), x.Item, x.in.in.of, x.User, x.Urgent} }

// revisit is when to look at an instance again.
type revisit struct {
	at       time.Duration
	instance workflow.InstanceID
	by       workflow.PartnerID
}

type revisits []revisit

func (h revisits) Len() int           { return len(h) }
func (h revisits) Less(i, j int) bool { return h[i].at < h[j].at }
func (h revisits) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *revisits) Push(x any)        { *h = append(*h, x.(revisit)) }
func (h *revisits) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// add enters a want, which waits from now on. The caller holds t.mu.
func (t *Topic) add(w Want) *wanted {
	n := t.needOf(w.Instance)
	k := key{nameOf(w.File), w.Item, payerOf(w), w.User, w.Urgent}
	if x := n.of[k]; x != nil {
		if x.atMost > 0 && w.AtMost > 0 {
			x.atMost = max(x.atMost, w.AtMost)
		} else {
			x.atMost = 0
		}
		return x
	}
	c := t.coming[k.name]
	if c == nil {
		c = &fetch{file: w.File}
		t.coming[k.name] = c
	}
	o := t.orderOf(c, k.payer)
	x := &wanted{Want: w, in: o, index: len(o.wants), atMost: w.AtMost}
	o.wants = append(o.wants, x)
	n.of[k] = x
	return x
}

func (t *Topic) needOf(id workflow.InstanceID) *need {
	n := t.needs[id]
	if n == nil {
		n = &need{of: map[key]*wanted{}}
		t.needs[id] = n
	}
	return n
}

// orderOf is the order of a content by a payer; a new one is due.
func (t *Topic) orderOf(c *fetch, by payer) *order {
	for _, o := range c.orders {
		if o.in.of == by {
			return o
		}
	}
	l := t.lines[by]
	if l == nil {
		l = &line{of: by}
		t.lines[by] = l
	}
	o := &order{of: c, in: l, index: -1, pause: firstPause}
	c.orders = append(c.orders, o)
	l.all++
	t.putIn(o, t.in.Clock.Now().Awake)
	return o
}

// putIn has an order wait in its line until it is due. The caller holds t.mu.
func (t *Topic) putIn(o *order, due time.Duration) {
	t.numbered++
	o.due, o.number, o.blocked = due, t.numbered, false
	if o.index >= 0 {
		heap.Fix(&o.in.orders, o.index)
		return
	}
	heap.Push(&o.in.orders, o)
}

// drop takes a want away that nobody has any more. The caller holds t.mu.
func (t *Topic) drop(x *wanted) {
	n, o := t.needs[x.Instance], x.in
	delete(n.of, keyOf(x))
	t.forget(x.Instance, n)
	t.uncount(x)
	last := o.wants[len(o.wants)-1]
	o.wants[x.index], last.index = last, x.index
	o.wants[len(o.wants)-1] = nil
	o.wants = o.wants[:len(o.wants)-1]
	if len(o.wants) > 0 {
		return
	}
	if o.cancel != nil {
		o.cancel() // and what its turn came to is taken up by whoever has it
		return
	}
	t.remove(o)
}

// forget forgets an instance that wants nothing. The caller holds t.mu.
func (t *Topic) forget(id workflow.InstanceID, n *need) {
	if len(n.of)+n.refs == 0 && !n.again {
		delete(t.needs, id)
	}
}

// remove takes an order away that has no turn. The caller holds t.mu.
func (t *Topic) remove(o *order) {
	c, l := o.of, o.in
	i := slices.Index(c.orders, o)
	if i < 0 {
		return
	}
	c.orders = slices.Delete(c.orders, i, i+1)
	delete(t.promised, o)
	if o.index >= 0 {
		heap.Remove(&l.orders, o.index)
	}
	if len(c.orders) == 0 {
		delete(t.coming, nameOf(c.file))
	}
	if l.all--; l.all == 0 {
		delete(t.lines, l.of)
	}
}

// count counts that a task is about to read what is wanted; uncount, that it is not any more.
func (t *Topic) count(x *wanted) {
	if x.ahead {
		return
	}
	x.ahead = true
	x.in.in.ahead++
	t.ahead++
	if x.in.in.of.by != "" {
		t.aheadOfOthers++
	}
}

func (t *Topic) uncount(x *wanted) {
	if !x.ahead {
		return
	}
	l := x.in.in
	before, most := l.ahead, t.most(l)
	x.ahead = false
	l.ahead--
	t.ahead--
	if l.of.by != "" {
		t.aheadOfOthers--
	}
	if before > most/2 && l.ahead <= most/2 { // there is room for many: whoever had no place may have one
		now := t.in.Clock.Now().Awake
		for i := range t.again {
			if t.again[i].by == l.of.by {
				t.again[i].at = min(t.again[i].at, now)
			}
		}
		heap.Init(&t.again)
	}
}

// Ref is a file that a task is about to read.
type Ref struct {
	Item workflow.DataName
	File workflow.File
}

// Look reports whether an instance's tasks are to be looked at for files that they are about
// to read (Ahead). If not, Surroundings.Again does it later: a change of an instance with many
// files costs no more than that of one with few.
func (t *Topic) Look(id workflow.InstanceID, by workflow.PartnerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.needs[id]
	if n == nil || t.in.Clock.Now().Awake >= n.until {
		return true
	}
	t.revisit(id, by, n, n.until)
	return false
}

// revisit has an instance looked at again. The caller holds t.mu.
func (t *Topic) revisit(id workflow.InstanceID, by workflow.PartnerID, n *need, at time.Duration) {
	if t.stopped || t.in.Again == nil {
		return
	}
	if n.again {
		for i := range t.again {
			if t.again[i].instance == id && at < t.again[i].at {
				t.again[i].at = at
				heap.Fix(&t.again, i)
				t.rouse()
				return
			}
		}
		return
	}
	n.again = true
	heap.Push(&t.again, revisit{at, id, by})
	t.rouse()
}

// Ahead has come what the tasks of an instance are about to read: these files and no others.
// by began it; empty: this node. want makes a want of one that has to come.
func (t *Topic) Ahead(id workflow.InstanceID, by workflow.PartnerID, refs []Ref, want func(Ref) Want) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || len(refs) == 0 && t.needs[id] == nil {
		return
	}
	n, p, now := t.needOf(id), payer{by: by}, t.in.Clock.Now().Awake
	n.look++
	n.refs, n.turned, n.until = len(refs), 0, now+time.Duration(len(refs))*lookCost
	for _, r := range refs {
		t.steps++
		x := n.of[key{name: nameOf(r.File), item: r.Item, payer: p}]
		if x == nil || !x.ahead {
			if t.noted(r.File, id.String()) { // and it is here
				continue
			}
			l := t.lines[p]
			if l == nil {
				l = &line{of: p}
			}
			if l.ahead >= t.most(l) {
				n.turned++
				continue
			}
			x = t.add(want(r))
			t.count(x)
		}
		x.look = n.look
	}
	for _, x := range n.of {
		if x.ahead && x.look != n.look { // no task reads it any more
			t.uncount(x)
			if len(x.waiters) == 0 {
				t.drop(x)
			}
		}
	}
	if n.turned > 0 {
		if by != "" {
			t.refuse("files-beyond-places", by, max(n.turned-n.counted, 0),
				"they wait for a place among the files that are to come")
		}
		n.counted = max(n.counted, n.turned)
		t.revisit(id, by, n, now+againAfter)
	}
	t.forget(id, n)
	t.rouse()
}

// refuse counts what was refused of a member, and says so in one line for many. The caller
// holds t.mu.
func (t *Topic) refuse(reason string, of workflow.PartnerID, times int, why string) {
	if times == 0 {
		return
	}
	if of != "" {
		for range times {
			t.in.Partner.Refuse(reason, of)
		}
	}
	t.unsaid += times
	now := t.in.Clock.Now().Awake
	if t.saidAt != 0 && now-t.saidAt < sayEvery {
		return
	}
	t.in.Log.Warn("files that tasks read do not come", "number", t.unsaid, "instances of", t.in.Label(of), "why", why)
	t.unsaid, t.saidAt = 0, max(now, 1)
}

// rouse has the queue looked at. The caller holds t.mu.
func (t *Topic) rouse() {
	if t.stopped {
		return
	}
	if !t.watching {
		if len(t.coming)+len(t.again) > 0 {
			t.watching = true
			t.work.Go(t.watch)
		}
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// watch gives turns until nothing waits any more.
func (t *Topic) watch() {
	for {
		t.mu.Lock()
		wait := t.dispatch()
		if len(t.coming)+len(t.again) == 0 || t.stopped {
			t.watching = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		var after <-chan time.Time
		if wait >= 0 {
			after = t.in.Clock.After(wait)
		}
		select {
		case <-after:
		case <-t.wake:
		case <-t.ctx.Done():
		}
	}
}

// dispatch gives turns to those that are due, and returns how long nobody else is; negative:
// until a turn ends or something comes. The caller holds t.mu.
func (t *Topic) dispatch() time.Duration {
	now := t.in.Clock.Now().Awake
	if t.ill.why != nil && now >= t.ill.until && !t.ill.trying && len(t.lines) > 0 {
		t.tryAgain()
	}
	for t.ill.why == nil {
		l := t.choose(now)
		if l == nil {
			break
		}
		o := heap.Pop(&l.orders).(*order)
		if o.of.running != nil {
			o.blocked = true
			continue
		}
		t.start(o)
	}
	if len(t.again) > 0 && t.again[0].at <= now && !t.looking {
		t.lookAgain(heap.Pop(&t.again).(revisit))
	}
	wait := time.Duration(-1)
	sooner := func(at time.Duration) {
		if wait < 0 || at-now < wait {
			wait = max(at-now, 0)
		}
	}
	t.crowded = false
	if t.ill.why != nil {
		if !t.ill.trying {
			sooner(t.ill.until)
		}
		return wait
	}
	for _, l := range t.lines {
		if len(l.orders) == 0 {
			continue
		}
		at := max(l.orders[0].due, l.notBefore)
		if t.mayHaveTurn(l) {
			sooner(at)
		} else if at <= now {
			t.crowded = true
		}
	}
	if len(t.again) > 0 && !t.looking {
		sooner(t.again[0].at)
	}
	return wait
}

// choose is the line that has the next turn: one that somebody waits for, or the one that had
// none for longest; nil: none is due.
func (t *Topic) choose(now time.Duration) (next *line) {
	for _, l := range t.lines {
		if len(l.orders) == 0 || l.orders[0].due > now || l.notBefore > now || !t.mayHaveTurn(l) {
			continue
		}
		if next == nil || l.rank() < next.rank() || l.rank() == next.rank() && l.served < next.served {
			next = l
		}
	}
	return next
}

// rank is which lines go before others: less before more.
func (l *line) rank() int {
	switch {
	case l.of.asked:
		return 0
	case !l.vain:
		return 1
	}
	return 2
}

// mayHaveTurn reports whether there is a turn for a line.
func (t *Topic) mayHaveTurn(l *line) bool {
	switch {
	case l.of.asked:
		return l.turns < askedTurns
	case l.of.by == "":
		return t.running < turns
	}
	return t.running < turns && t.others < othersTurns && l.turns < memberTurns && (!l.vain || t.vain < vainTurns)
}

// tooMany reports whether more have turns than there are, since somebody took back what it had lent.
func (t *Topic) tooMany(l *line) bool {
	switch {
	case l.of.asked:
		return l.turns > askedTurns
	case l.of.by == "":
		return t.running > turns
	}
	return t.running > turns || t.others > othersTurns || l.turns > memberTurns
}

// lookAgain looks at an instance beside what goes on.
func (t *Topic) lookAgain(r revisit) {
	t.looking = true
	t.needs[r.instance].again = false
	t.work.Go(func() {
		t.in.Again(t.ctx, r.instance)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.looking = false
		if n := t.needs[r.instance]; n != nil {
			t.forget(r.instance, n)
		}
		t.rouse()
	})
}

// start gives an order its turn. The caller holds t.mu.
func (t *Topic) start(o *order) {
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(t.ctx)
	o.ended, o.of.running = make(chan struct{}), o
	t.served++
	o.in.served = t.served
	o.slow, o.vain = false, o.in.vain && o.in.of.by != ""
	if o.of.trouble == "" { // what did not come when it had its turn last has room promised when somebody has it
		_ = t.promise(o) // its turn says why there is none
	}
	t.takes(o, 1)
	t.work.Go(func() { t.turn(ctx, o) })
}

// takes counts turns that are taken. The caller holds t.mu.
func (t *Topic) takes(o *order, by int) {
	l := o.in
	l.turns += by
	if o.vain {
		t.vain += by
	}
	switch {
	case l.of.asked:
		return
	case l.of.by != "":
		t.others += by
	}
	t.running += by
}

// mustYield reports whether a file that has had its turn since a moment lets others go on.
func (t *Topic) mustYield(o *order, since time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tooMany(o.in) {
		return true
	}
	over := t.in.Clock.Now().Awake-since >= slice
	for _, other := range o.of.orders {
		if other.blocked && (over || other.in.of.asked && !o.in.of.asked) {
			return true
		}
	}
	return over && t.crowded
}

// result is what a turn came to.
type result struct {
	ended   map[*wanted]error // for these it is over: how
	moved   bool              // something came
	put     bool              // for all that was wanted it is over for now
	yielded bool              // it goes on at its next turn
	mute    bool              // a partner did not answer
	own     bool              // this node cannot keep what comes
	trouble string            // why it does not go on
}

// end takes up how an order's turn ended, and returns whom to tell.
func (t *Topic) end(o *order, r result) (tell []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, c := t.in.Clock.Now().Awake, o.of
	o.cancel()
	o.cancel, c.running, c.from = nil, nil, ""
	close(o.ended)
	if !r.yielded {
		delete(t.promised, o)
	}
	t.giveUp(o)
	if r.moved || r.mute {
		o.in.vain = !r.moved || o.slow
	}
	for x, err := range r.ended {
		if noRoom := (*noRoom)(nil); errors.As(err, &noRoom) && !x.refused {
			x.refused = true
			of := x.By
			if noRoom.disk { // which is nobody's fault
				of = ""
			}
			t.refuse("files-beyond-room", of, 1, err.Error())
		}
		for _, w := range x.waiters {
			tell = append(tell, func() { w.done(err) })
		}
		x.waiters = nil
		if n := t.needs[x.Instance]; n == nil || n.of[keyOf(x)] != x {
			continue // nobody wanted it any more meanwhile
		}
		if err == nil || !x.ahead || errors.Is(err, ErrNotWanted) {
			t.drop(x)
		}
	}
	for _, other := range c.orders {
		if other.blocked {
			t.putIn(other, now)
		}
	}
	if len(o.wants) == 0 {
		t.remove(o)
	} else {
		t.putIn(o, t.after(o, r, now))
	}
	if !r.moved && !r.yielded && !o.in.of.asked {
		o.in.notBefore = now + pace
	}
	t.rouse()
	return tell
}

// after is when an order is due again.
func (t *Topic) after(o *order, r result, now time.Duration) time.Duration {
	c, l := o.of, o.in
	if r.yielded {
		return now
	}
	c.trouble, c.own = r.trouble, r.own
	if o.own = r.own; r.own && t.ill.why == nil { // others can be kept
		o.parked = min(max(2*o.parked, firstTry), maxTry)
		return now + o.parked
	}
	if r.own {
		return now // as soon as anything can be kept
	}
	if r.moved {
		o.pause = firstPause
	}
	if r.put {
		o.parked = min(max(2*o.parked, firstParked), maxParked)
		return now + o.parked
	}
	// A long line has pauses in which new orders are served.
	pause := max(o.pause, 2*time.Duration(len(l.orders))*pace)
	most := maxPause
	if l.of.asked {
		most = maxAsked
	}
	o.pause, o.parked = min(2*o.pause, most), 0
	return now + pause
}

// roomFreed has what had no room tried again.
func (t *Topic) roomFreed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.in.Clock.Now().Awake
	for _, l := range t.lines {
		for _, o := range l.orders {
			if o.parked > 0 {
				o.due, o.parked = now, 0
			}
		}
		heap.Init(&l.orders)
	}
	t.ill.until = now
	t.rouse()
}

// Stop ends all that comes, and waits for that.
func (t *Topic) Stop() {
	t.mu.Lock()
	t.stopped = true
	t.cancel()
	var waiters []*waiter
	for _, n := range t.needs {
		for _, x := range n.of {
			waiters = append(waiters, x.waiters...)
			x.waiters = nil
		}
	}
	t.mu.Unlock()
	t.work.Wait()
	for _, w := range waiters {
		w.done(errStopped)
	}
}
