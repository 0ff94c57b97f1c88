package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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
	orders  []*order           // of whom
	running *order             // has a turn; nil: none
	part    *part              // what is here of it, which only a turn uses; nil: not known yet
	have    int64              // bytes of that
	from    workflow.PartnerID // gives it just now; empty: nobody
	trouble string             // why it does not go on
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
	if err := t.reopen(ctx, c); err != nil {
		r.trouble = err.Error()
		return r
	}
	before := c.part.bytes
	defer func() {
		r.moved = r.moved || c.part.bytes > before
		if err := c.part.close(); err != nil && r.trouble == "" {
			r.trouble = err.Error()
		}
	}()
	if c.part.complete() {
		return t.whole(o, nil, r)
	}
	wants, all := t.some(o)
	var troubles []string
	for _, x := range wants {
		err := t.roundFor(ctx, x, c)
		switch {
		case err == nil:
			return t.whole(o, x, r)
		case errors.Is(err, errYield), ctx.Err() != nil:
			r.yielded = true
			return r
		case t.over(x, err):
			r.end(x, err)
		}
		troubles = append(troubles, err.Error())
	}
	r.put = all && len(r.ended) == len(wants)
	r.trouble = strings.Join(troubles, "; ")
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
		return errors.As(err, &room) || errors.Is(err, ErrNotWanted)
	}
	now := t.in.Clock.Now().Awake
	if !x.lost {
		x.lost, x.since = true, now
	}
	lost.over = now-x.since >= lostAfter
	return lost.over
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
	return fmt.Sprintf("file %s: %v: %s", e.file, ErrLost, e.why)
}

func (e *notThere) Is(target error) bool { return e.over && target == ErrLost }

// whole makes what came, for one of its wants, the content of a file.
func (t *Topic) whole(o *order, given *wanted, r result) result {
	p, why := o.of.part, error(nil)
	var instances []string
	if given != nil {
		instances = append(instances, given.Instance.String())
	}
	if why = errors.Join(p.file.Sync(), p.close()); why == nil {
		why = t.fetched(p.name, p.of, instances, t.in.Clock.Now().Wall)
	}
	if why != nil {
		r.trouble = why.Error()
		return r
	}
	r.moved = true
	return t.useAll(o.of, r)
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
		r.end(x, t.Use(x.File, x.Instance.String(), string(x.By), t.in.Clock.Now().Wall))
	}
	return r
}

// note changes what is shown of fetches.
func (t *Topic) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// roundFor asks each partner once that could have a file for one instance.
func (t *Topic) roundFor(ctx context.Context, x *wanted, c *fetch) error {
	from, err := x.From(ctx)
	if err != nil {
		return err
	}
	var troubles []string
	lost := true
	for _, partner := range t.sorted(from) {
		if t.in.Gone(partner) {
			troubles = append(troubles, t.in.Label(partner)+" is gone")
			continue
		}
		err := t.fetchFrom(ctx, partner, x, c)
		if room := (*noRoom)(nil); err == nil || ctx.Err() != nil || errors.Is(err, errYield) || errors.As(err, &room) {
			return err
		}
		lost = lost && saysNotHere(err)
		if len(troubles) < maxTroubles {
			troubles = append(troubles, fmt.Sprintf("%s: %v", t.in.Label(partner), err))
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

// saysNotHere reports whether a partner answered that it does not have a file.
func saysNotHere(err error) bool {
	var answer interface {
		error
		Answer() string
	}
	return errors.As(err, &answer) && strings.HasPrefix(answer.Answer(), ErrNotHere.Error())
}

// errYield: others have their turn.
var errYield = errors.New("others have their turn")

// fetchFrom gets what is missing of a file from one partner.
func (t *Topic) fetchFrom(ctx context.Context, from workflow.PartnerID, x *wanted, c *fetch) error {
	if !t.in.Partner.Up(from) {
		return errors.New("cannot be reached")
	}
	p, w, since := c.part, x.Want, t.in.Clock.Now().Awake
	chunks := p.chunks
	if chunks == nil {
		b, err := t.ask(ctx, from, w, true, 0)
		if err != nil {
			return err
		}
		if chunks, err = readSums(b, w.File); err != nil {
			return err
		}
	}
	if err := t.claim(ctx, x, p, chunks); err != nil {
		return err
	}
	t.note(func() { c.from, c.have = from, p.bytes })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	missing, last := p.missing(), t.in.Clock.Now().Awake
	for i, coming := 0, t.begin(ctx, from, w, missing); i < len(missing); i++ {
		n := missing[i]
		b, err := coming()
		if err != nil {
			return err
		}
		took := t.in.Clock.Now().Awake - last
		if err := t.hold(ctx, x.in, int64(len(b)), took, since); err != nil {
			return err
		}
		last = t.in.Clock.Now().Awake
		yields := i+1 < len(missing) && t.mustYield(x.in, since)
		if !yields {
			coming = t.begin(ctx, from, w, missing[i+1:])
		}
		if sha256.Sum256(b) != p.chunks[n] {
			t.in.Partner.Refuse("file-forged", from)
			return fmt.Errorf("gives other content than that of file %s", w.File.Name)
		}
		if err := p.write(n, b); err != nil {
			return err
		}
		t.note(func() { c.have, t.rate = p.bytes, measured(t.rate, int64(len(b)), took) })
		if yields {
			return errYield
		}
	}
	return nil
}

// claim has room kept for a file of which somebody has said that it is there: what nobody has
// costs the disk nothing.
func (t *Topic) claim(ctx context.Context, x *wanted, p *part, chunks sums) error {
	if !x.used {
		if err := t.Use(x.File, x.Instance.String(), string(x.By), t.in.Clock.Now().Wall); err != nil {
			return err
		}
		x.used = true
	}
	if p.file == nil {
		if err := p.open(os.O_RDWR | os.O_CREATE); err != nil {
			return err
		}
	}
	if p.chunks != nil {
		return nil
	}
	return p.expect(ctx, t.Store, chunks)
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

// begin has the first of the missing chunks of a file come, while the one before it is verified
// and written: what a break costs is still no more than one chunk. It returns what waits for it.
func (t *Topic) begin(ctx context.Context, from workflow.PartnerID, w Want, missing []int) func() ([]byte, error) {
	if len(missing) == 0 {
		return nil
	}
	var b []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err = t.chunk(ctx, from, w, missing[0])
	}()
	return func() ([]byte, error) { <-done; return b, err }
}

// chunk gets one chunk of a file, its pieces at once.
func (t *Topic) chunk(ctx context.Context, from workflow.PartnerID, w Want, n int) ([]byte, error) {
	size := chunkSize(w.File, n)
	var pieces [together][]byte
	var errs [together]error
	var all sync.WaitGroup
	for i := range pieces {
		if i*Piece < size {
			all.Go(func() { pieces[i], errs[i] = t.ask(ctx, from, w, false, int64(n)*Chunk+int64(i)*Piece) })
		}
	}
	all.Wait()
	b := make([]byte, 0, size)
	for i, piece := range pieces {
		if errs[i] != nil {
			return nil, errs[i]
		}
		b = append(b, piece...)
	}
	return b, nil
}

func (t *Topic) ask(ctx context.Context, from workflow.PartnerID, w Want, sums bool, offset int64) ([]byte, error) {
	req, err := wire.EncodeFileAsk(wire.FileAsk{
		Instance: w.Instance, Item: w.Item, File: w.File.String(), User: w.User, Sums: sums, Offset: offset,
	})
	if err != nil {
		return nil, err
	}
	return t.in.Partner.Request(ctx, from, nil, Protocol, req, askWait)
}

// part is what is here of a file that is on its way.
type part struct {
	of     workflow.File
	name   string
	file   *os.File    // nil: there is none yet
	was    os.FileInfo // when it was closed
	chunks sums        // nil: not known yet
	got    []bool      // by chunk: it is here, and as it should be
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
		}
	}
	c.part = p
	return nil
}

// open opens the file, which must be as it was closed.
func (p *part) open(how int) (err error) {
	f, err := os.OpenFile(p.name, how, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && p.was != nil && (!os.SameFile(info, p.was) || info.Size() != p.was.Size() || !info.ModTime().Equal(p.was.ModTime())) {
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

// expect notes, durably, which chunks there are.
func (p *part) expect(ctx context.Context, s *Store, chunks sums) error {
	if err := s.writeSums(nameOf(p.of), chunks); err != nil {
		return err
	}
	return p.know(ctx, chunks)
}

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

func (p *part) write(n int, b []byte) error {
	if _, err := p.file.WriteAt(b, int64(n)*Chunk); err != nil {
		return err
	}
	p.got[n] = true
	p.bytes += int64(len(b))
	return nil
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
