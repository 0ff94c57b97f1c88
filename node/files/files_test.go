package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// clock is that of a bubble.
type clock struct{ began time.Time }

func (c clock) Now() moment.Now {
	return moment.Now{Awake: time.Since(c.began), Boot: time.Since(c.began), Wall: time.Now()}
}
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// link carries what one node asks another. It counts, and it breaks.
type link struct {
	mu      sync.Mutex
	to      map[workflow.PartnerID]*files.Topic
	down    map[workflow.PartnerID]bool
	asked   map[int64]int  // pieces, by where they begin
	cutEach int            // every so many pieces the link breaks; 0: never
	hushed  bool           // requests are lost that say that a file is there
	loses   map[int64]bool // answers to requests for these pieces
	pieces  int
	forge   bool
	hangs   map[workflow.PartnerID]bool // takes requests and does not answer
	takes   time.Duration               // each answer
	fades   workflow.PartnerID          // says that it has files, and then nothing more
	heard   func() time.Duration        // when (Boot) anything was heard of partners last; nil: all the time
	rates   map[workflow.PartnerID]int  // of links that give so many bytes a second; 0: as many as there are
	on      map[workflow.PartnerID]int  // requests that share such a link now
	// quickSums: hashes come at once all the same.
	quickSums bool
	all       int // requests
	refused   []string
}

// answer is what the other side refused.
type answer struct{ text string }

func (a answer) Error() string  { return "asked in vain: " + a.text }
func (a answer) Answer() string { return a.text }

func (l *link) Request(
	ctx context.Context, p workflow.PartnerID, _ []string, _ string, req []byte, wait time.Duration,
) ([]byte, error) {
	a, err := wire.DecodeFileAsk(req)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.all++
	mute := l.hangs[p]
	l.mu.Unlock()
	if mute || l.fades == p && !a.Sums {
		select {
		case <-time.After(wait):
			return nil, errors.New("no answer")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	time.Sleep(l.takes)
	l.mu.Lock()
	if says(a) && l.hushed {
		l.mu.Unlock()
		return nil, errors.New("the request was lost")
	}
	if !a.Sums && !says(a) {
		if l.pieces++; l.cutEach > 0 && l.pieces%l.cutEach == 0 {
			l.mu.Unlock()
			return nil, errors.New("the link broke")
		}
		l.asked[a.Offset]++
	}
	other, forge := l.to[p], l.forge
	l.mu.Unlock()
	b, err := other.Answer("asker", req)
	if l.losing(a) {
		return nil, errors.New("the answer was lost")
	}
	if err != nil {
		return nil, answer{err.Error()}
	}
	if forge && !a.Sums && !says(a) {
		b = bytes.Repeat([]byte{7}, len(b))
	}
	if a.Sums && l.quickSums || says(a) {
		return b, nil
	}
	return b, l.trickle(ctx, p, len(b), wait)
}

// says reports whether a request says that all of a file is there, in place of asking for some of it.
func says(a wire.FileAsk) bool {
	f, err := workflow.ParseFile(a.File)
	return err == nil && !a.Sums && a.Offset == f.Size
}

func (l *link) losing(a wire.FileAsk) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !a.Sums && l.loses[a.Offset]
}

// knows has a partner be there.
func (l *link) knows(p workflow.PartnerID, at *files.Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to[p] = at
}

// lose has answers to requests for the pieces that begin there be lost, and no others.
func (l *link) lose(at ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loses = map[int64]bool{}
	for _, offset := range at {
		l.loses[offset] = true
	}
}

// drips has a partner be asked over a link that gives so many bytes a second.
func (l *link) drips(p workflow.PartnerID, asked *files.Topic, rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to[p], l.rates[p] = asked, rate
}

// speed has a link give so many bytes a second.
func (l *link) speed(p workflow.PartnerID, rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rates[p] = rate
}

// trickle is the time that an answer takes over a link of few bytes a second.
func (l *link) trickle(ctx context.Context, p workflow.PartnerID, size int, wait time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rates[p] == 0 {
		return nil
	}
	l.on[p]++
	defer func() { l.on[p]-- }()
	for began, left := time.Now(), float64(size); left > 0; {
		n := float64(l.rates[p]) / float64(l.on[p]) / 4
		l.mu.Unlock()
		select {
		case <-time.After(time.Second / 4):
			if some := int(left) - int(left-n); some > 0 {
				wire.Came(ctx)(min(some, int(left)))
			}
		case <-ctx.Done():
		}
		l.mu.Lock()
		left -= n
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > wait {
			return errors.New("it took too long")
		}
	}
	return nil
}

// hang has a partner take requests and answer none, or answer again.
// heardBy says when partners are heard.
func (l *link) heardBy(at func() time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = at
}

// Heard implements files.Requester.
func (l *link) Heard(workflow.PartnerID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard == nil {
		return math.MaxInt64
	}
	return l.heard()
}

func (l *link) hang(p workflow.PartnerID, mute bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hangs == nil {
		l.hangs = map[workflow.PartnerID]bool{}
	}
	l.hangs[p] = mute
}

// cut has a partner be out of reach, or in reach again.
func (l *link) cut(p workflow.PartnerID, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down[p] = down
}

func (l *link) Up(p workflow.PartnerID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.down[p]
}

func (l *link) Refuse(why string, _ workflow.PartnerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, why)
}

// everybody may read everything.
type everybody struct {
	denied error
	ended  *string // how the ID of the instance begins that is not here any more
}

func (e everybody) MayRead(
	context.Context, workflow.PartnerID, string, workflow.InstanceID, workflow.DataName, workflow.File,
) error {
	return e.denied
}
func (e everybody) Here(id string) bool { return e.ended == nil || !strings.HasPrefix(id, *e.ended) }

// site is a node's files.
type site struct {
	*files.Topic
	dir   string
	link  *link
	log   bytes.Buffer
	again func(workflow.InstanceID) // looks at an instance again
}

func newSite(t *testing.T, dir string, o files.Options, with files.Instances) *site {
	t.Helper()
	if o.Limit == 0 {
		o.Limit = 1 << 30
	}
	store, err := files.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{to: map[workflow.PartnerID]*files.Topic{}, down: map[workflow.PartnerID]bool{}, asked: map[int64]int{}}
	l.rates, l.on = map[workflow.PartnerID]int{}, map[workflow.PartnerID]int{}
	s := &site{dir: dir, link: l}
	s.Topic = files.New(store, files.Surroundings{
		Clock: clock{time.Now()}, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Partner: l, Instances: with,
		Label: func(p workflow.PartnerID) string { return string(p) },
		Gone:  func(p workflow.PartnerID) bool { return p == "gone" },
		Away:  func(p workflow.PartnerID) bool { return p == "away" },
		Again: func(_ context.Context, id workflow.InstanceID) {
			if s.again != nil {
				s.again(id)
			}
		},
	})
	t.Cleanup(func() {
		s.Stop()
		if err := store.Audit(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put keeps n bytes of chance at a site, for an instance.
func (s *site) put(t *testing.T, n int) (workflow.File, []byte) {
	t.Helper()
	f, b := s.upload(t, n)
	if err := s.Give(f, workflow.InstanceID{}.String(), "", time.Now()); err != nil {
		t.Fatal(err)
	}
	return f, b
}

// A file needs a name that people see in a list.
func TestANameOfBlanksIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, t.TempDir(), files.Options{}, everybody{})
		for _, name := range []string{" ", "   "} {
			if _, err := s.Put(t.Context(), name, strings.NewReader("a"), time.Now()); err == nil {
				t.Errorf("a file is called %q", name)
			}
		}
	})
}

// upload keeps n bytes of chance at a site, for no instance yet.
func (s *site) upload(t *testing.T, n int) (workflow.File, []byte) {
	t.Helper()
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	f, err := s.Put(t.Context(), "plan.pdf", bytes.NewReader(b), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return f, b
}

func want(f workflow.File, from ...workflow.PartnerID) files.Want {
	return files.Want{
		File: f, Item: "plan", By: "starter",
		From: func(context.Context) ([]workflow.PartnerID, error) { return from, nil },
	}
}

func (s *site) read(t *testing.T, f workflow.File) []byte {
	t.Helper()
	path, here := s.Path(f)
	if !here {
		t.Fatalf("%s is not here", f)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Files of every length come as they were, and the same content has one root.
func TestFilesComeWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, taker := newSite(t, t.TempDir(), files.Options{}, everybody{}),
			newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.knows("giver", giver.Topic)
		for _, n := range []int{0, 1, files.Piece, files.Piece + 1, files.Chunk, files.Chunk + 1, 3*files.Chunk + 5} {
			f, b := giver.put(t, n)
			if again, _ := giver.put(t, n); again != f || f.Size != int64(n) {
				t.Fatalf("%d bytes are %v, then %v", n, f, again)
			}
			if err := taker.Fetch(t.Context(), want(f, "giver")); err != nil {
				t.Fatal(err)
			}
			if got := taker.read(t, f); !bytes.Equal(got, b) {
				t.Fatalf("%d bytes came as %d others", n, len(got))
			}
			synctest.Wait() // it says that it has it
			if got := giver.GivenTo(f); !slices.Equal(got, []workflow.PartnerID{"asker"}) {
				t.Errorf("it was given to %v", got)
			}
		}
	})
}

// A link that is cut again and again, and a node that starts again in between, cost no
// byte twice beyond one chunk for each break, whether the link is fast or not.
func TestGoesOnWhereItBroke(t *testing.T) {
	for _, takes := range []time.Duration{0, 300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) { goesOnWhereItBroke(t, takes) })
	}
}

func goesOnWhereItBroke(t *testing.T, takes time.Duration) {
	giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
	f, b := giver.put(t, 12*files.Chunk+9)
	dir := t.TempDir()
	asked, cuts := 0, 0
	for cuts < 4 { // the node starts again after each
		taker := newSite(t, dir, files.Options{}, everybody{})
		taker.link.to["giver"], taker.link.cutEach, taker.link.takes = giver.Topic, 7, takes
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond+3*takes) // before it asks again
		err := taker.Fetch(ctx, want(f, "giver"))
		cancel()
		for _, n := range taker.link.asked {
			asked += n
		}
		if err == nil {
			break
		}
		cuts++
	}
	taker := newSite(t, dir, files.Options{}, everybody{})
	taker.link.to["giver"], taker.link.cutEach, taker.link.takes = giver.Topic, 7, takes
	if err := taker.Fetch(t.Context(), want(f, "giver")); err != nil {
		t.Fatal(err)
	}
	for _, n := range taker.link.asked {
		asked += n
	}
	if !bytes.Equal(taker.read(t, f), b) {
		t.Fatal("other bytes came")
	}
	pieces := 25 // of the file
	broke := cuts + taker.link.pieces/7
	if most := pieces + broke*files.Chunk/files.Piece; asked > most || cuts == 0 {
		t.Errorf("%d pieces were got for %d, with %d breaks: at most %d", asked, pieces, broke, most)
	}
}

// What the disk changed is given to nobody: whoever asks gets it from another.
func TestDamagedContentIsGivenToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := newSite(t, t.TempDir(), files.Options{}, everybody{}),
			newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.to["bad"], taker.link.to["good"] = bad.Topic, good.Topic
		f, b := bad.put(t, 2*files.Chunk)
		good.put(t, 2*files.Chunk)
		path, _ := bad.Path(f)
		spoilt := slices.Clone(b)
		spoilt[files.Chunk+3]++
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, spoilt, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := taker.Fetch(t.Context(), want(f, "bad", "good")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(taker.read(t, f), b) {
			t.Error("other bytes came")
		}
		if _, here := bad.Path(f); here {
			t.Error("what is damaged counts as whole")
		}
		// It is mended from others, and only what is wrong is fetched.
		bad.link.knows("good", good.Topic)
		if err := bad.Fetch(t.Context(), want(f, "good")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bad.read(t, f), b) || len(bad.link.asked) != 2 {
			t.Errorf("mended by %d pieces", len(bad.link.asked))
		}
	})
}

// Who gives other content than the reference says is found out, and counted.
func TestForgedContentIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, taker := newSite(t, t.TempDir(), files.Options{}, everybody{}),
			newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.to["giver"], taker.link.forge = giver.Topic, true
		f, _ := giver.put(t, files.Chunk)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := taker.Fetch(ctx, want(f, "giver")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if _, here := taker.Path(f); here || !slices.Contains(taker.link.refused, "file-forged") {
			t.Errorf("refused: %v", taker.link.refused)
		}
	})
}

// A file is lost when all who could have it say that they do not, or are gone, for a
// minute; one that cannot be reached may still have it.
func TestLostFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, empty := newSite(t, t.TempDir(), files.Options{}, everybody{}),
			newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.to["giver"], taker.link.to["empty"] = giver.Topic, empty.Topic
		f, _ := giver.put(t, 10)
		taker.link.cut("giver", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := taker.Fetch(ctx, want(f, "giver", "empty")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the giver is away: %v", err)
		}
		began := time.Now()
		err := taker.Fetch(t.Context(), want(f, "gone", "empty"))
		if took := time.Since(began); !errors.Is(err, files.ErrLost) || took < time.Minute || took > 3*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		if !strings.Contains(fmt.Sprint(err), "file plan.pdf: its content is lost") {
			t.Errorf("it says %v", err)
		}
	})
}

// What a partner has that is away is waited for, but for an urgent want: there it is lost as what those
// have is that are gone. When the partner is back in time nothing is.
func TestFilesOfPartnersThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.knows("away", giver.Topic)
		f, _ := giver.put(t, 10)
		taker.link.cut("away", true)
		waits, urgent := want(f, "away", "gone"), want(f, "away", "gone")
		urgent.Urgent = true
		ended := make(chan error, 1)
		if _, err := taker.Seek(t.Context(), waits, func(err error) { ended <- err }); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(30*time.Second, func() {
			says := taker.Waits(waits.Instance, f) // one wants it that waits for who is away, and one that does not
			if !strings.Contains(says, "away: is away, and may come back with it") ||
				!strings.Contains(says, "gone: is gone for good") || strings.Count(says, "; ") != 1 {
				t.Errorf("while both want it, it says %q", says)
			}
			if says := taker.Waits(workflow.InstanceID{1}, f); strings.Contains(says, "away") {
				t.Errorf("of another instance it says %q", says)
			}
		})
		err := taker.Fetch(t.Context(), urgent)
		if took := time.Since(began); !errors.Is(err, files.ErrLost) || took < time.Minute || took > 3*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		if _, says, _ := taker.Progress(waits.Instance, f); !strings.Contains(says, "away: is away, and may come back with it") {
			t.Errorf("it says %q", says)
		}
		time.Sleep(3 * time.Hour)
		select {
		case err := <-ended:
			t.Fatalf("who waits was told %v", err)
		default:
		}
		time.AfterFunc(30*time.Second, func() { taker.link.cut("away", false) })
		if err := taker.Fetch(t.Context(), urgent); err != nil {
			t.Errorf("it came back within the minute: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("who waited was told %v", err)
		}
	})
}

// Whoever is asked for a file and does not answer yet is named.
func TestWhoIsAskedForAFileIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.knows("giver", giver.Topic)
		taker.link.hang("giver", true)
		f, _ := giver.put(t, 10)
		w := want(f, "giver")
		if _, err := taker.Seek(t.Context(), w, func(error) {}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := taker.Waits(w.Instance, f); got != "0 B of 10 B are here, and giver is asked for it" {
			t.Errorf("it says %q", got)
		}
	})
}

// Who may not read a file does not get it, and that is counted.
func TestWhoMayNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{denied: errors.New("only crew may read it")})
		taker := newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.knows("giver", giver.Topic)
		f, _ := giver.put(t, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := taker.Fetch(ctx, want(f, "giver")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if !slices.Contains(giver.link.refused, "file") {
			t.Errorf("refused: %v", giver.link.refused)
		}
	})
}

// Of the room, others have their shares, and this node's own user has what is left.
func TestRoomForFiles(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{
		Limit: 16 * files.Chunk, Space: func() (uint64, uint64, error) { return 64 * files.Chunk, 0, nil }, Reserve: 1,
	}, everybody{})
	now := time.Now()
	file := func(n byte, chunks int64) workflow.File {
		return workflow.File{Name: "f", Size: chunks*files.Chunk - files.Overhead, Root: [32]byte{n}}
	}
	for _, c := range []struct {
		n      byte
		chunks int64
		by     string
		fits   bool
	}{
		{1, 4, "mal", true}, {2, 1, "mal", false}, {3, 4, "bo", true}, {4, 4, "ce", true}, {5, 2, "di", true},
		{6, 1, "ed", false},
		{7, 2, "", true}, {8, 1, "", false},
	} {
		err := s.Use(file(c.n, c.chunks), fmt.Sprint("i", c.n), c.by, now)
		if (err == nil) != c.fits {
			t.Errorf("%d chunks for %q: %v", c.chunks, c.by, err)
		}
	}
	if _, err := s.Put(t.Context(), "f", io.LimitReader(zeros{}, 1), now); err == nil ||
		!strings.Contains(err.Error(), "there is room for 0 B") {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(s.dir, "new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A disk that is nearly full takes no file.
func TestFullDiskTakesNoFile(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{
		Space: func() (uint64, uint64, error) { return 100, 200, nil }, Reserve: 90,
	}, everybody{})
	if _, err := s.Put(t.Context(), "f", io.LimitReader(zeros{}, 11), time.Now()); err == nil ||
		!strings.Contains(err.Error(), "room for 10 B") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Put(t.Context(), "f", io.LimitReader(zeros{}, 10), time.Now()); err != nil {
		t.Error(err)
	}
}

// announced says beforehand how much comes, and fails a test that reads it.
type announced struct {
	t    *testing.T
	size int64
}

func (a announced) Announced() int64 { return a.size }

func (a announced) Read([]byte) (int, error) {
	a.t.Error("it was read")
	return 0, io.EOF
}

// What is known to have no room is refused before it comes, and what broke off is not kept as if that were its end.
func TestWhatCannotBeKeptIsSaidAtOnce(t *testing.T) {
	s := newSite(t, t.TempDir(), files.Options{
		Space: func() (uint64, uint64, error) { return 100, 200, nil }, Reserve: 90,
	}, everybody{})
	if _, err := s.Put(t.Context(), "f", announced{t, 11}, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "it has 11 B, and there is room for 10 B here") {
		t.Errorf("got %v", err)
	}
	broken := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := s.Put(t.Context(), "f", broken, time.Now()); err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("what broke off: %v", err)
	}
}

// Content stays while an instance that is here has it, also over a restart, and a day
// longer; an upload that nobody uses stays a day.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir, files.Options{}, everybody{})
	now := time.Now()
	used, _ := s.upload(t, 10)
	unused, _ := s.upload(t, 11)
	if err := s.Use(used, "abc", "mal", now); err != nil {
		t.Fatal(err)
	}
	s = newSite(t, dir, files.Options{}, everybody{})
	here := true
	sweep := func(after time.Duration) (out []bool) {
		if _, err := s.Sweep(func(i string) bool { return here && i == "abc" }, now.Add(after)); err != nil {
			t.Fatal(err)
		}
		for _, f := range []workflow.File{used, unused} {
			_, is := s.Path(f)
			out = append(out, is)
		}
		return out
	}
	day := 24 * time.Hour
	for _, c := range []struct {
		after time.Duration
		here  bool
		want  []bool
	}{
		{time.Hour, true, []bool{true, true}}, {2 * day, true, []bool{true, false}},
		{30 * day, false, []bool{true, false}},
		{30*day + time.Hour, false, []bool{true, false}}, {32 * day, false, []bool{false, false}},
	} {
		here = c.here
		if got := sweep(c.after); !slices.Equal(got, c.want) {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A partner that reads again and again has its ration.
func TestReadingIsRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := newSite(t, t.TempDir(), files.Options{}, everybody{})
		f, _ := giver.put(t, 10)
		req, err := wire.EncodeFileAsk(wire.FileAsk{Item: "plan", File: f.String()})
		if err != nil {
			t.Fatal(err)
		}
		given := func() (n int) {
			for range 3000 {
				if _, err := giver.Answer("mal", req); err == nil {
					n++
				}
			}
			return n
		}
		if n := given(); n != 2048-64 { // to find out whether it may read counts as 64
			t.Errorf("%d pieces were given at once, want 1,984", n)
		}
		time.Sleep(time.Second)
		if n := given(); n < 250 || n > 260 {
			t.Errorf("%d pieces were given after a second, want about 256", n)
		}
		if _, err := giver.Answer("another", req); err != nil {
			t.Errorf("another partner: %v", err)
		}
	})
}

// Somebody who knows only the hash of what is here for another instance gets nothing by naming it in
// one of its own, also when that has the file "come" here.
func TestAHashIsNotEnough(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { aHashIsNotEnough(t, restart) })
	}
}

// A file that was uploaded before a restart, and is named after it, is given all the same.
func TestGivenAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f, _ := newSite(t, dir, files.Options{}, everybody{}).upload(t, 10)
		giver := newSite(t, dir, files.Options{}, everybody{})
		if err := giver.Give(f, workflow.InstanceID{}.String(), "", time.Now()); err != nil {
			t.Fatal(err)
		}
		req, err := wire.EncodeFileAsk(wire.FileAsk{Item: "plan", File: f.String()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := giver.Answer("asker", req); err != nil {
			t.Errorf("it is not given: %v", err)
		}
	})
}

func aHashIsNotEnough(t *testing.T, restart bool) {
	dir := t.TempDir()
	giver := newSite(t, dir, files.Options{}, everybody{})
	f, _ := giver.put(t, 10)
	if restart {
		giver = newSite(t, dir, files.Options{}, everybody{})
	}
	mals := want(f, "mal")
	mals.Instance = workflow.InstanceID{7}
	if err := giver.Fetch(t.Context(), mals); err != nil { // a task here reads it
		t.Fatal(err)
	}
	ask := func(id workflow.InstanceID) error {
		req, err := wire.EncodeFileAsk(wire.FileAsk{Instance: id, Item: "plan", File: f.String()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = giver.Answer("mal", req)
		return err
	}
	if err := ask(mals.Instance); !errors.Is(err, files.ErrNotHere) {
		t.Errorf("for an instance that only names it: %v", err)
	}
	if err := ask(workflow.InstanceID{}); err != nil {
		t.Errorf("for the instance that it was given for: %v", err)
	}
}

// What is kept for a file whose note could not be stored is not said to be kept.
func TestAUseThatIsNotStoredIsNone(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t, dir, files.Options{}, everybody{})
	f, _ := s.upload(t, 10)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Use(f, "abc", "", time.Now()); err == nil {
			t.Error("it was noted, they say")
		}
	}
}

// A fetch that nobody wants any more ends; one that waits for nobody's answer does not hold
// up another of the same content.
func TestFetchesOfOneContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, taker := newSite(t, t.TempDir(), files.Options{}, everybody{}),
			newSite(t, t.TempDir(), files.Options{}, everybody{})
		taker.link.to["giver"], taker.link.down["away"] = giver.Topic, true
		f, _ := giver.put(t, 10)
		hopeless := want(f, "away")
		hopeless.Instance = workflow.InstanceID{9}
		first := make(chan error, 1)
		go func() { first <- taker.Fetch(t.Context(), hopeless) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := taker.Fetch(ctx, want(f, "giver")); err != nil {
			t.Errorf("the second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first: %v", err)
		}
		g, _ := giver.put(t, 11)
		nobodys := want(g, "away")
		nobodys.From = func(context.Context) ([]workflow.PartnerID, error) { return nil, files.ErrNotWanted }
		if err := taker.Fetch(t.Context(), nobodys); !errors.Is(err, files.ErrNotWanted) {
			t.Errorf("got %v", err)
		}
	})
}
