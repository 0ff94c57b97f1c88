package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Want says which file is needed, and for what.
type Want struct {
	File     workflow.File
	Instance workflow.InstanceID
	Item     workflow.DataName
	// User is for whom; empty: this node.
	User string
	// By began the instance; empty: this node.
	By workflow.PartnerID
	// Again: what is here is read and verified, also if it was since the start.
	Again bool
	// Asked: somebody at this node waits for it.
	Asked bool
	// AtMost is how many bytes a second may come for it; 0: all that the link gives. Of several that
	// want a file the one that bounds it least counts.
	AtMost int64
	// Urgent: what partners have that are away (Surroundings.Away) is not waited for. It is lost, as what
	// those have is that are gone.
	Urgent bool
	// From are the partners that may have it, the likeliest first.
	From func(context.Context) ([]workflow.PartnerID, error)
}

// ErrLost: nobody that could have a file has it any more.
var ErrLost = errors.New("its content is lost")

// ErrNotWanted is what From returns when nobody needs a file any more.
var ErrNotWanted = errors.New("nobody needs it any more")

// interrupted: nobody waits for a file any more. It says what it was waited for.
type interrupted struct {
	why string
	err error // of the context
}

func (e *interrupted) Error() string { return e.why }
func (e *interrupted) Unwrap() error { return e.err }

// fetch is a file that is on its way.
type fetch struct {
	file    workflow.File
	orders  []*order             // of whom
	running *order               // has a turn; nil: none
	part    *part                // what is here of it, which only a turn uses; nil: not known yet
	have    int64                // bytes of that
	came    map[int]pieces       // of chunks that a break interrupted, from one partner
	gave    workflow.PartnerID   // that one
	from    workflow.PartnerID   // gives it just now; empty: nobody
	asked   []workflow.PartnerID // are asked whether they have it just now, those that were asked first come first
	trouble string               // why it does not go on
	own     bool                 // that is this node's own fault
	owed    *debt                // to the one that gives it, in this turn
}

// Fetch returns when all of a file is here, where Path finds it. Its partners are asked one
// after the other, again and again, until ctx ends, all have said that it is lost, or From says
// that nobody wants it any more.
func (t *Topic) Fetch(ctx context.Context, w Want) error {
	ended := make(chan error, 1)
	if over, err := t.Seek(ctx, w, func(err error) { ended <- err }); over {
		return err
	}
	return <-ended
}

var errStopped = errors.New("the node is stopping")

// Seek is Fetch that does not wait: it has done called once, in another goroutine. If there is
// nothing to wait for it says so, with the error that Fetch would return, and does not call it.
func (t *Topic) Seek(ctx context.Context, w Want, done func(error)) (over bool, err error) {
	if sound, err := t.Sound(ctx, w.File, w.Again); err != nil {
		return true, err
	} else if sound {
		return true, t.Use(w.File, w.Instance.String(), string(w.By), t.in.Clock.Now().Wall)
	}
	if ctx.Err() != nil {
		return true, &interrupted{"it was not asked for yet", ctx.Err()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return true, errStopped
	}
	x, me := t.add(w), &waiter{}
	x.waiters = append(x.waiters, me)
	unhook := context.AfterFunc(ctx, func() { t.leave(x, me, ctx.Err()) })
	me.done = func(err error) { unhook(); done(err) }
	t.rouse()
	return false, nil
}

// leave has somebody not wait any more, who is told what it was waited for.
func (t *Topic) leave(x *wanted, me *waiter, why error) {
	t.mu.Lock()
	i := slices.Index(x.waiters, me)
	if i < 0 { // it was told
		t.mu.Unlock()
		return
	}
	x.waiters = slices.Delete(x.waiters, i, i+1)
	words, ended := cmp.Or(x.in.of.trouble, "it waited for its turn"), (chan struct{})(nil)
	if x.in.cancel != nil {
		words = cmp.Or(x.in.of.trouble, "it was on its way")
	}
	if len(x.waiters) == 0 && !x.ahead {
		if x.in.cancel != nil && len(x.in.wants) == 1 {
			ended = x.in.ended
		}
		t.drop(x)
	}
	t.rouse()
	t.mu.Unlock()
	if ended != nil {
		<-ended // what nobody waits for is not worked at any more
	}
	me.done(&interrupted{words, why})
}

// The pauses between turns in which all partners were asked.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
	maxAsked   = 5 * time.Second // for what somebody waits for
	// lostAfter is for how long all must say that a file is not there, before it is lost.
	lostAfter = time.Minute
)

// turn has partners asked for a file once.
func (t *Topic) turn(ctx context.Context, o *order) {
	r := t.round(ctx, o)
	if ctx.Err() != nil && len(r.ended) == 0 {
		r.yielded = true // whoever wants it meanwhile has another turn
	}
	for _, tell := range t.end(o, r) {
		tell()
	}
}

// round asks each partner once, for some of those who want the file.
func (t *Topic) round(ctx context.Context, o *order) (r result) {
	c := o.of
	if _, whole := t.Path(c.file); whole { // somebody gave it here meanwhile
		if err := gone(os.Remove(t.path(nameOf(c.file), partFile))); err != nil {
			t.in.Log.Warn("what came of a file that is here could not be removed", "file", c.file.Name, "error", err)
		}
		return t.useAll(c, r)
	}
	if err := own(t.reopen(ctx, c)); err != nil {
		if fault := (*ownFault)(nil); errors.As(err, &fault) {
			return t.failed(fault, r)
		}
		r.trouble = err.Error()
		return r
	}
	p := c.part
	before := p.bytes
	defer func() {
		r.moved = r.moved || p.bytes > before
		if err := p.close(); err != nil && r.trouble == "" {
			r.trouble = err.Error()
		}
	}()
	if p.complete() {
		return t.whole(o, nil, r)
	}
	if err := t.hasRoom(o); err != nil { // no partner can help
		if fault, full := (*ownFault)(nil), (*fullDisk)(nil); errors.As(err, &full) && errors.As(own(err), &fault) {
			return t.failed(fault, r)
		}
	}
	wants, all := t.some(o)
	var patient, urgent []string // of wants that wait for who is away, and of those that do not
	for _, x := range wants {
		err := t.roundFor(ctx, x, o, &r)
		switch fault := (*ownFault)(nil); {
		case err == nil:
			return t.whole(o, x, r)
		case errors.Is(err, errYield), ctx.Err() != nil:
			r.yielded = true
			return r
		case errors.As(err, &fault):
			return t.failed(fault, r)
		case t.over(x, err):
			r.end(x, err)
		}
		said, lost := err.Error(), (*notThere)(nil)
		if errors.As(err, &lost) {
			said = lost.said()
		}
		t.note(func() { x.trouble = said })
		of := &patient
		if x.Urgent {
			of = &urgent
		}
		if !slices.Contains(*of, said) {
			*of = append(*of, said)
		}
	}
	r.put = all && len(r.ended) == len(wants)
	if r.trouble = strings.Join(patient, "; "); r.trouble == "" {
		r.trouble = strings.Join(urgent, "; ")
	}
	return r
}

func (r *result) end(x *wanted, err error) {
	if r.ended == nil {
		r.ended = map[*wanted]error{}
	}
	r.ended[x] = err
}

// some are the wants of an order whose turn it is, and whether these are all.
func (t *Topic) some(o *order) (wants []*wanted, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(o.wants), wantsAtOnce)
	for i := range n {
		wants = append(wants, o.wants[(o.next+i)%len(o.wants)])
	}
	o.next += n
	return wants, n == len(o.wants)
}

// over reports whether an error ends a want, at least for now.
func (t *Topic) over(x *wanted, err error) bool {
	room, lost := (*noRoom)(nil), (*notThere)(nil)
	if !errors.As(err, &lost) {
		x.lost = false
		t.note(func() { x.gone = nil })
		return errors.As(err, &room) || errors.Is(err, ErrNotWanted)
	}
	now := t.in.Clock.Now()
	if !x.lost {
		x.lost, x.since = true, now.Awake
	}
	lost.over = now.Awake-x.since >= lostAfter
	t.note(func() {
		switch {
		case !lost.over:
			x.gone = nil
		case x.gone == nil:
			x.gone = &Loss{Why: lost.Error(), At: now.Wall}
		}
	})
	return lost.over
}

// Loss is that nobody has a file any more: why, for people, and when this node came to know of it.
type Loss struct {
	Why string
	At  time.Time
}

// Lost says of a file that a task of an instance is about to read, or reads, that nobody has it any more; nil:
// that is not known.
func (t *Topic) Lost(id workflow.InstanceID, f workflow.File) *Loss {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.needs[id]
	if n == nil {
		return nil
	}
	for k, x := range n.of {
		if k.name == nameOf(f) && x.ahead && x.gone != nil {
			return x.gone
		}
	}
	return nil
}

// notThere says that no partner that could have a file has it.
type notThere struct {
	file string
	why  string
	over bool // they have said so for long enough
}

func (e *notThere) Error() string {
	if !e.over {
		return e.why
	}
	return fmt.Sprintf("file %s: %s", e.file, e.said())
}

// said is Error where people are told which file it is.
func (e *notThere) said() string {
	if !e.over {
		return e.why
	}
	return fmt.Sprintf("%v: %s", ErrLost, e.why)
}

func (e *notThere) Is(target error) bool { return e.over && target == ErrLost }

// failed is a round in which this node could not keep what came.
func (t *Topic) failed(fault *ownFault, r result) result {
	t.fails()
	r.own, r.trouble = true, fault.Error()
	return r
}

// whole makes what came, for one of its wants, the content of a file.
func (t *Topic) whole(o *order, given *wanted, r result) result {
	c := o.of
	p := c.part
	var instances []string
	if given != nil {
		instances = append(instances, given.Instance.String())
	}
	if p.file == nil { // it is empty, so that no chunk of it came
		if why := t.begun(p, given); why != nil {
			return t.failed(&ownFault{why}, r)
		}
	}
	if why := errors.Join(t.sync(p.file), p.close()); why != nil {
		// What could not be synced can be read, and may be on no disk: it has to come again.
		c.part = nil
		return t.failed(&ownFault{errors.Join(why, t.unlink(p.name))}, r)
	}
	t.owe(p.of, c.owed) // of an empty file
	if why := t.fetched(p.name, p.of, instances, t.in.Clock.Now().Wall); why != nil {
		c.part = nil // look what is there
		return t.failed(&ownFault{why}, r)
	}
	r.moved = true
	return t.useAll(c, r)
}

// begun has an empty file be there, which came for one of its wants.
func (t *Topic) begun(p *part, given *wanted) error {
	if given != nil {
		if err := t.came(given.File, given.Instance.String(), string(given.By), t.in.Clock.Now().Wall); err != nil {
			return err
		}
	}
	return t.ready(p)
}

// useAll notes that all instances that want a content have it, which is here.
func (t *Topic) useAll(c *fetch, r result) result {
	t.mu.Lock()
	var all []*wanted
	for _, o := range c.orders {
		all = append(all, o.wants...)
	}
	t.mu.Unlock()
	for _, x := range all {
		err := own(t.Use(x.File, x.Instance.String(), string(x.By), t.in.Clock.Now().Wall))
		if fault := (*ownFault)(nil); errors.As(err, &fault) {
			return t.failed(fault, r)
		}
		r.end(x, err)
	}
	t.tellGivers()
	return r
}

// note changes what is shown of fetches.
func (t *Topic) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// roundFor asks each partner once that could have a file for one instance.
func (t *Topic) roundFor(ctx context.Context, x *wanted, o *order, r *result) error {
	from, err := x.From(ctx)
	if err != nil {
		return err
	}
	var troubles []string
	lost := true
	s := t.search(ctx, x, o, from)
	defer s.cancel(nil)
	for {
		a, more := s.next()
		if !more {
			break
		}
		err := a.err
		if err == nil {
			err = t.fetchFrom(ctx, a, x, o, s.others)
		}
		room, fault := (*noRoom)(nil), (*ownFault)(nil)
		if err == nil || ctx.Err() != nil || errors.Is(err, errYield) || errors.As(err, &room) ||
			errors.As(err, &fault) {
			return err
		}
		if errors.Is(err, errSilent) {
			r.mute = true
			return err
		}
		lost = lost && (errors.Is(err, errGone) || errors.Is(err, errAway) || saysNotHere(err))
		r.mute = r.mute || t.isMute(a.from)
		if len(troubles) < maxTroubles {
			troubles = append(troubles, t.in.Label(a.from)+": "+inWords(err))
		}
	}
	why := cmp.Or(strings.Join(troubles, "; "), "nobody else could have it")
	if lost {
		return &notThere{file: x.File.Name, why: why}
	}
	return errors.New(why)
}

// maxTroubles is of how many partners people are told why they do not give a file.
const maxTroubles = 8

// answer is what a partner answered that does not give what it was asked for.
type answer interface {
	error
	Answer() string
}

// inWords says for people why a partner does not give a file: as that one says it, if it answered.
func inWords(err error) string {
	if a := answer(nil); errors.As(err, &a) {
		return a.Answer()
	}
	if no := (*noAnswer)(nil); errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

// noAnswer is why a partner did not answer, as the network says it, which tells people nothing.
type noAnswer struct{ err error }

// Error implements error.
func (*noAnswer) Error() string   { return "it did not answer, or the link to it broke" }
func (e *noAnswer) Unwrap() error { return e.err }

// saysNotHere reports whether a partner answered that it does not have a file.
func saysNotHere(err error) bool {
	a := answer(nil)
	return errors.As(err, &a) && strings.HasPrefix(a.Answer(), ErrNotHere.Error())
}

// errYield: others have their turn.
var errYield = errors.New("others have their turn")

// fetchFrom gets what is missing of a file from one partner, which has said that it has it. Others reports
// whether another may have it, too.
func (t *Topic) fetchFrom(ctx context.Context, a found, x *wanted, o *order, others func() bool) error {
	c, from := o.of, a.from
	p, w, since := c.part, x.Want, t.in.Clock.Now().Awake
	if err := own(t.claim(ctx, x, p, a.chunks)); err != nil {
		return err
	}
	t.note(func() { c.from, c.have = from, p.bytes })
	defer t.note(func() { c.from = "" })
	c.owed = debtTo(from, w)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in, end := t.takeIn(from)
	defer end()
	f := newFlight(t, from, w, p.missing())
	f.in, f.others, f.before = in, others, t.takeUp(c, from)
	defer func() {
		cancel(nil)
		t.putAside(c, f)
	}()
	f.ask(ctx, 1)
	for last := t.in.Clock.Now().Awake; len(f.asked) > 0; {
		coming := f.asked[0]
		if why := t.answered(o, f, coming.done); why != nil {
			cancel(why)
			<-coming.done
			return why
		}
		if coming.err != nil {
			return coming.err
		}
		size, took := int64(chunkSize(w.File, coming.n)), t.in.Clock.Now().Awake-last
		if err := t.hold(ctx, x.in, size, took, since); err != nil {
			return err
		}
		last = t.in.Clock.Now().Awake
		f.asked = f.asked[1:]
		if f.yields = f.yields || len(f.left) > 0 && t.mustYield(x.in, since); !f.yields {
			f.ask(ctx, together(took))
		}
		if !coming.fits(w.File, p.chunks) {
			t.in.Partner.Refuse("file-forged", from)
			return fmt.Errorf("gives other content than that of file %s", w.File.Name)
		}
		if err := own(t.keep(x, p, coming)); err != nil {
			return err
		}
		t.owe(w.File, c.owed)
		t.paced(f, took)
		t.note(func() {
			c.have = p.bytes
			t.rates.note(from, size, took, last)
		})
	}
	if f.yields {
		return errYield
	}
	return nil
}

// hasRoom returns an error if the disk has no room for what is missing of an order's file.
func (t *Topic) hasRoom(o *order) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fits(o.of.file, t.promisedBefore(o))
}

// claim looks whether there is room for a file of which somebody has said that it is there, and what
// of it is here.
func (t *Topic) claim(ctx context.Context, x *wanted, p *part, chunks sums) error {
	if !x.used {
		if err := t.mayHave(x.File, string(x.By)); err != nil {
			return err
		}
	}
	t.mu.Lock()
	err := t.promise(x.in)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	if p.chunks != nil {
		return nil
	}
	return p.know(ctx, chunks)
}

// keep writes a chunk that came for an instance. Before the first of these it notes durably that this
// instance has the file, and that somebody gave it for it; so what nobody has costs the disk nothing,
// and what is here is known to be proved for whom, whenever the node is stopped.
func (t *Topic) keep(x *wanted, p *part, a *arrival) error {
	size := int64(chunkSize(p.of, a.n))
	if err := t.spare(size); err != nil {
		return err
	}
	if !x.used {
		if err := t.came(x.File, x.Instance.String(), string(x.By), t.in.Clock.Now().Wall); err != nil {
			return err
		}
		x.used = true
	}
	if err := t.ready(p); err != nil {
		return err
	}
	at := int64(a.n) * Chunk
	for _, b := range a.pieces {
		if len(b) == 0 {
			break
		}
		if err := t.writeAt(p.file, b, at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	p.got[a.n] = true
	p.bytes += size
	return nil
}

// ready has a file be there into which chunks are written, and beside it their hashes.
func (t *Topic) ready(p *part) error {
	if !p.noted {
		if err := t.writeSums(nameOf(p.of), p.chunks); err != nil {
			return err
		}
		p.noted = true
	}
	if p.file != nil {
		return nil
	}
	return p.open(os.O_RDWR | os.O_CREATE)
}

// hold waits until so many bytes may have come, where all who want a file bound that, or until
// others have their turn.
func (t *Topic) hold(ctx context.Context, o *order, bytes int64, took, began time.Duration) error {
	for since := t.in.Clock.Now().Awake; ; {
		atMost := t.bound(o.of)
		left := time.Duration(0)
		if atMost > 0 {
			left = time.Duration(float64(bytes)/float64(atMost)*float64(time.Second)) - took - (t.in.Clock.Now().Awake - since)
		}
		if left <= 0 || t.mustYield(o, began) {
			return nil
		}
		select {
		case <-t.in.Clock.After(min(left, time.Second)): // somebody else may want it sooner
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// bound is how many bytes a second may come of a file, by the one who wants it that bounds it
// least; 0: all that the link gives.
func (t *Topic) bound(c *fetch) (most int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range c.orders {
		for _, x := range o.wants {
			if x.atMost == 0 {
				return 0
			}
			most = max(most, x.atMost)
		}
	}
	return most
}

// flight is what of a file comes from one partner. What a break costs is what is under way then, one chunk at most:
// while the pieces of one come, those that follow are asked for as places get free, in their order.
type flight struct {
	t      *Topic
	from   workflow.PartnerID
	want   Want
	left   []int      // chunks that were not asked for yet
	asked  []*arrival // that were, in this order
	yields bool       // no more are, as others have their turn
	in     *intake
	others func() bool // another partner may have the file

	before map[int]pieces // came from it before a break
	places chan struct{}  // for pieces that are under way
	turn   chan struct{}  // closed once all pieces of the chunks so far were asked for
	broke  chan struct{}  // closed once one did not come: no more are asked for
	breaks sync.Once
}

func newFlight(t *Topic, from workflow.PartnerID, w Want, left []int) *flight {
	f := &flight{
		t: t, from: from, want: w, left: left,
		places: make(chan struct{}, Chunk/Piece), turn: make(chan struct{}), broke: make(chan struct{}),
	}
	close(f.turn)
	return f
}

// pieces are those of a chunk; nil: it did not come.
type pieces [Chunk / Piece][]byte

// arrival is a chunk that was asked for.
type arrival struct {
	n      int
	done   chan struct{}
	pieces // they are hashed and written as they came, not copied together
	err    error
}

// fits reports whether a chunk is what it should be.
func (a *arrival) fits(f workflow.File, chunks sums) bool {
	h, size := sha256.New(), 0
	for _, b := range a.pieces {
		h.Write(b) // a hash never fails to be written to
		size += len(b)
	}
	return size == chunkSize(f, a.n) && [32]byte(h.Sum(nil)) == chunks[a.n]
}

// quick is how long a chunk takes at most where the next one is asked for before it is here.
const quick = 250 * time.Millisecond

// together is how many chunks are asked for at once, after one took so long.
func together(took time.Duration) int {
	if took <= quick {
		return 2
	}
	return 1
}

// ask asks for chunks until so many are on their way, while those before are verified and written.
func (f *flight) ask(ctx context.Context, most int) {
	for len(f.asked) < most && len(f.left) > 0 {
		a := &arrival{n: f.left[0], done: make(chan struct{})}
		a.pieces = f.before[a.n]
		f.left, f.asked = f.left[1:], append(f.asked, a)
		before, next := f.turn, make(chan struct{})
		f.turn = next
		go func() {
			defer close(a.done)
			<-before
			a.err = f.chunk(ctx, a, next)
		}()
	}
}

// chunk gets what is missing of a chunk. It closes asked when all of its pieces were asked for.
func (f *flight) chunk(ctx context.Context, a *arrival, asked chan<- struct{}) error {
	var errs [len(a.pieces)]error
	var all sync.WaitGroup
	for i := range a.pieces {
		if i*Piece >= chunkSize(f.want.File, a.n) || a.pieces[i] != nil {
			continue
		}
		if errs[i] = f.place(ctx); errs[i] != nil {
			break
		}
		at := int64(a.n)*Chunk + int64(i)*Piece
		all.Go(func() {
			if a.pieces[i], errs[i] = f.t.ask(ctx, f.from, f.in, f.want, false, at); errs[i] != nil {
				a.pieces[i] = nil
				f.breaks.Do(func() { close(f.broke) })
			}
			<-f.places
		})
	}
	close(asked)
	all.Wait()
	return cmp.Or(errs[:]...)
}

// errBroke: what was asked for before did not come.
var errBroke = errors.New("did not give what was asked for before")

// place waits until a piece may be under way.
func (f *flight) place(ctx context.Context) error {
	select {
	case f.places <- struct{}{}:
	case <-f.broke:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-f.broke:
		return errBroke
	default:
		return nil
	}
}

// maxAside is of how many files pieces are kept that came before a break, so that what is in memory is bounded.
const maxAside = 16

// takeUp returns what came of a file from a partner before a break.
func (t *Topic) takeUp(c *fetch, from workflow.PartnerID) map[int]pieces {
	t.mu.Lock()
	defer t.mu.Unlock()
	came := c.came
	if c.came = nil; c.gave != from {
		return nil // its pieces would be blamed on another
	}
	return came
}

// putAside keeps what came of chunks that a break interrupted, for when their partner is asked again.
func (t *Topic) putAside(c *fetch, f *flight) {
	came := map[int]pieces{}
	for _, a := range f.asked {
		<-a.done
		if slices.ContainsFunc(a.pieces[:], func(b []byte) bool { return b != nil }) {
			came[a.n] = a.pieces
		}
	}
	if len(came) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	aside := 0
	for _, other := range t.coming {
		if other.came != nil {
			aside++
		}
	}
	if aside < maxAside {
		c.came, c.gave = came, f.from
	}
}

// ask asks a partner for the hashes of a file's chunks, or for a piece of it.
func (t *Topic) ask(
	ctx context.Context, from workflow.PartnerID, in *intake, w Want, sums bool, offset int64,
) ([]byte, error) {
	req, err := wire.EncodeFileAsk(wire.FileAsk{
		Instance: w.Instance, Item: w.Item, File: w.File.String(), User: w.User, Sums: sums, Offset: offset,
	})
	if err != nil {
		return nil, &ownFault{err}
	}
	wait := askWait + time.Duration(chunksOf(w.File.Size))*32*time.Second/slowest // for the hashes
	if !sums {
		back, err := t.place(ctx, in)
		if err != nil {
			return nil, err
		}
		defer back()
		wait = pieceWait
	}
	began := t.in.Clock.Now().Awake
	b, err := t.in.Partner.Request(t.watched(ctx, in), from, nil, Protocol, req, wait)
	a := answer(nil)
	answered := err == nil || errors.As(err, &a)
	t.heard(from, answered, t.silent(ctx, in, began))
	if !answered {
		err = &noAnswer{err}
	}
	return b, err
}

// part is what is here of a file that is on its way.
type part struct {
	of     workflow.File
	name   string
	file   *os.File    // nil: there is none yet
	was    os.FileInfo // when it was closed
	chunks sums        // nil: not known yet
	got    []bool      // by chunk: it is here, and as it should be
	noted  bool        // chunks are on disk
	bytes  int64       // of those
}

// reopen goes on with what is here of a file. Where nothing is, it makes no file: nobody has
// given any of it yet.
func (t *Topic) reopen(ctx context.Context, c *fetch) error {
	if p := c.part; p != nil && p.file != nil {
		if p.open(os.O_RDWR) == nil {
			return nil
		}
		c.part = nil // somebody else was at it: look what is there
	}
	p := &part{of: c.file, name: t.path(nameOf(c.file), partFile)}
	switch err := p.open(os.O_RDWR); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if chunks, err := t.sums(c.file); err == nil {
			if err := p.know(ctx, chunks); err != nil {
				return errors.Join(err, p.close())
			}
			p.noted = true
		}
	}
	c.part = p
	return nil
}

// open opens the file, which must be as it was closed.
func (p *part) open(how int) (err error) {
	f, err := os.OpenFile(p.name, how, 0o600)
	if errors.Is(err, fs.ErrPermission) { // it was about to be the whole content, which nobody writes into
		if err = os.Chmod(p.name, 0o600); err == nil {
			f, err = os.OpenFile(p.name, how, 0o600)
		}
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && p.was != nil && (!os.SameFile(info, p.was) || info.Size() != p.was.Size() ||
		!info.ModTime().Equal(p.was.ModTime())) {
		err = errors.New("it was changed meanwhile")
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	p.file = f
	return nil
}

// close closes the file; what counts was synced.
func (p *part) close() error {
	if p.file == nil {
		return nil
	}
	if info, err := p.file.Stat(); err == nil {
		p.was = info
	}
	if err := p.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// complete reports whether all of the file is here.
func (p *part) complete() bool { return p.chunks != nil && p.bytes == p.of.Size }

// know looks which chunks are here already.
func (p *part) know(ctx context.Context, chunks sums) error {
	p.chunks, p.got, p.bytes = chunks, make([]bool, len(chunks)), 0
	buffer := make([]byte, Chunk)
	for n := range chunks {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if ok, err := good(p.file, p.of, chunks, n, buffer); ok && err == nil {
			p.got[n] = true
			p.bytes += int64(chunkSize(p.of, n))
		}
	}
	return nil
}

// missing are the chunks that are not here.
func (p *part) missing() (out []int) {
	for n := range p.chunks {
		if !p.got[n] {
			out = append(out, n)
		}
	}
	return out
}

// noted reports whether a file is here whole, and the store knows that an instance has it.
func (s *Store) noted(f workflow.File, instance string) bool {
	if _, whole := s.Path(f); !whole {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	if c == nil {
		return false
	}
	_, known := c.uses[instance]
	return known
}
