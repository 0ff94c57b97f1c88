package files

import (
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
	done    chan struct{} // closed when it ends, either way
	wants   []Want
	given   workflow.InstanceID // for which of these it came
	have    int64
	from    workflow.PartnerID // gives it just now; empty: nobody
	trouble string             // why it does not go on
}

// Fetch returns when all of a file is here, where Path finds it. It asks one partner after
// the other, again and again, until ctx ends, everybody has said that it is lost, or From
// says that nobody wants it any more.
func (t *Topic) Fetch(ctx context.Context, w Want) error {
	for {
		if _, whole := t.Path(w.File); whole {
			return t.Use(w.File, w.Instance.String(), string(w.By), t.in.Clock.Now().Wall)
		}
		t.mu.Lock()
		other := t.coming[nameOf(w.File)]
		if other == nil {
			c := &fetch{file: w.File, done: make(chan struct{}), wants: []Want{w}}
			t.coming[nameOf(w.File)] = c
			t.mu.Unlock()
			return t.get(ctx, w, c)
		}
		other.wants = append(other.wants, w) // it comes from whoever gives it for either
		t.mu.Unlock()
		select {
		case <-other.done: // it is here, or this one tries in its turn
		case <-ctx.Done():
			_, why, _ := t.Progress(w.File)
			return &interrupted{why, ctx.Err()}
		}
	}
}

// The pauses between rounds in which all partners were asked.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// lostAfter is for how long all must say that a file is not there, before it is lost.
	lostAfter = time.Minute
)

// get is Fetch for the one who does it.
func (t *Topic) get(ctx context.Context, w Want, c *fetch) error {
	defer func() {
		t.mu.Lock()
		delete(t.coming, nameOf(w.File))
		t.mu.Unlock()
		close(c.done)
	}()
	if err := t.Use(w.File, w.Instance.String(), string(w.By), t.in.Clock.Now().Wall); err != nil {
		return err
	}
	select {
	case t.turns <- struct{}{}:
		defer func() { <-t.turns }()
	case <-ctx.Done():
		return &interrupted{"it waited for its turn", ctx.Err()}
	}
	p, err := t.open(ctx, w.File)
	if err != nil {
		return err
	}
	defer p.close()
	lostSince, why := time.Duration(-1), "it was on its way"
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if _, whole := t.Path(w.File); whole { // somebody gave it here meanwhile
			return gone(os.Remove(p.name))
		}
		before := p.bytes
		err, lost := t.round(ctx, c, p)
		if err == nil {
			return t.whole(c, p)
		}
		if errors.Is(err, ErrNotWanted) {
			return err
		}
		now := t.in.Clock.Now().Awake
		switch {
		case !lost:
			lostSince = -1
		case lostSince < 0:
			lostSince = now
		case now-lostSince >= lostAfter:
			return fmt.Errorf("file %s: %w: %w", w.File.Name, ErrLost, err)
		}
		if ctx.Err() == nil {
			why = err.Error()
		}
		t.note(func() { c.from, c.trouble = "", why })
		if p.bytes > before {
			pause = firstPause
		}
		select {
		case <-t.in.Clock.After(pause):
		case <-ctx.Done():
			return &interrupted{why, ctx.Err()}
		}
	}
}

// whole makes what came the content of a file.
func (t *Topic) whole(c *fetch, p *part) error {
	if err := errors.Join(p.file.Sync(), p.close()); err != nil {
		return err
	}
	t.mu.Lock()
	var instances []string
	for _, w := range c.wants {
		if w.Instance == c.given {
			instances = append(instances, w.Instance.String())
		}
	}
	t.mu.Unlock()
	return t.fetched(p.name, p.of, instances, t.in.Clock.Now().Wall)
}

// note changes what is shown of fetches.
func (t *Topic) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// round asks each partner once, for each of those who want the file. lost: all of them said
// that they do not have it, or are gone for good.
func (t *Topic) round(ctx context.Context, c *fetch, p *part) (err error, lost bool) {
	if p.complete() {
		return nil, false
	}
	t.mu.Lock()
	wants := slices.Clone(c.wants)
	t.mu.Unlock()
	var troubles []string
	lost, wanted := true, false
	for _, w := range wants {
		from, err := w.From(ctx)
		if errors.Is(err, ErrNotWanted) {
			continue
		}
		wanted = true
		if err != nil {
			troubles, lost = append(troubles, err.Error()), false
			continue
		}
		for _, partner := range t.sorted(from) {
			if t.in.Gone(partner) {
				troubles = append(troubles, t.in.Label(partner)+" is gone")
				continue
			}
			err := t.fetchFrom(ctx, partner, w, c, p)
			if err == nil {
				t.note(func() { c.given = w.Instance })
				return nil, false
			}
			if ctx.Err() != nil {
				return ctx.Err(), false
			}
			lost = lost && saysNotHere(err)
			troubles = append(troubles, fmt.Sprintf("%s: %v", t.in.Label(partner), err))
		}
	}
	switch {
	case !wanted:
		return ErrNotWanted, false
	case len(troubles) == 0:
		return errors.New("nobody else could have it"), lost
	}
	return errors.New(strings.Join(troubles, "; ")), lost
}

// saysNotHere reports whether a partner answered that it does not have a file.
func saysNotHere(err error) bool {
	var answer interface {
		error
		Answer() string
	}
	return errors.As(err, &answer) && strings.HasPrefix(answer.Answer(), ErrNotHere.Error())
}

// fetchFrom gets what is missing of a file from one partner.
func (t *Topic) fetchFrom(ctx context.Context, from workflow.PartnerID, w Want, c *fetch, p *part) error {
	if !t.in.Partner.Up(from) {
		return errors.New("cannot be reached")
	}
	if p.chunks == nil {
		b, err := t.ask(ctx, from, w, true, 0)
		if err != nil {
			return err
		}
		chunks, err := readSums(b, w.File)
		if err != nil {
			return err
		}
		if err := p.expect(ctx, t.Store, chunks); err != nil {
			return err
		}
	}
	t.note(func() { c.from, c.have = from, p.bytes })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	missing := p.missing()
	for i, coming := 0, t.begin(ctx, from, w, missing); i < len(missing); i++ {
		n := missing[i]
		b, err := coming()
		if err != nil {
			return err
		}
		coming = t.begin(ctx, from, w, missing[i+1:])
		if sha256.Sum256(b) != p.chunks[n] {
			t.in.Partner.Refuse("file-forged", from)
			return fmt.Errorf("gives other content than that of file %s", w.File.Name)
		}
		if err := p.write(n, b); err != nil {
			return err
		}
		t.note(func() { c.have = p.bytes })
	}
	return nil
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
	file   *os.File
	chunks sums   // nil: not known yet
	got    []bool // by chunk: it is here, and as it should be
	bytes  int64  // of those
}

// open goes on with what is here of a file, or begins.
func (t *Topic) open(ctx context.Context, f workflow.File) (*part, error) {
	p := &part{of: f, name: t.path(f.Root, partFile)}
	var err error
	if p.file, err = os.OpenFile(p.name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if chunks, err := t.sums(f); err == nil {
		if err := p.know(ctx, chunks); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// close closes the file; what counts was synced.
func (p *part) close() error {
	if err := p.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// complete reports whether all of the file is here.
func (p *part) complete() bool { return p.chunks != nil && p.bytes == p.of.Size }

// expect notes, durably, which chunks there are.
func (p *part) expect(ctx context.Context, s *Store, chunks sums) error {
	if err := s.writeSums(p.of.Root, chunks); err != nil {
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
