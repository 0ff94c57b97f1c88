package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// What lies in the folder, by root and size: the whole content, what there is of it so far,
// the hashes of its chunks, and a record of what it is and for which instances it is kept.
// An upload has no root yet.
const (
	wholeFile  = ".data"
	partFile   = ".part"
	sumsFile   = ".sums"
	recordFile = ".uses"
	newFile    = "new-"
)

// Options are what a store is opened with.
type Options struct {
	// Limit is how many bytes it may hold.
	Limit int64
	// Space tells how many bytes of the disk are free; nil: nobody knows. Reserve of
	// them are left.
	Space   func() (free, total uint64, err error)
	Reserve uint64
}

// Store is the folder in which content lies. Its methods may be called from any
// goroutine.
type Store struct {
	dir string
	o   Options

	mu    sync.Mutex // guards what follows
	held  map[name]*content
	news  []string // what was found lost
	said  int      // so much of it people were told
	reads int      // how often a content was read and found right
	// reading is held while one is: one at a time costs the disk enough.
	reading sync.Mutex
	// mentioned are the contents here that instances have, as of the last time that these were
	// asked, each by one of them.
	mentioned map[name]Mention
	// stirred gets an element when there is something to be told or mended.
	stirred chan struct{}
}

// state is what there is of a content.
type state string

const (
	coming  state = "coming"  // it has never been here whole
	whole   state = "whole"   // all of it was here when it was looked at last
	damaged state = "damaged" // all of it was here, and the disk changed or lost some
	going   state = "going"   // it is being removed
)

// content is what is known of one content.
type content struct {
	label string // what the file is called; empty: not known
	state state
	since time.Time       // when it came, or was last let go
	uses  map[string]use  // by instance
	next  int             // the number of the next use
	by    map[string]int  // how many uses each member has
	given map[string]bool // to these partners, whole, since the node runs
	part  int64           // bytes of what there was of it, if no instance has it
	// unsure: the record was lost, so that more instances may have it than uses says.
	unsure bool
	fault  string // what is wrong with it; empty: nothing is known to be
	// unrecorded: it is whole, and the record does not say so yet.
	unrecorded bool
	read       int // when it was last read and found right, by Store.reads; 0: not since the start
}

// use is that an instance has a content.
type use struct {
	by string // who began it; empty: this node
	// proved: the content was given at this node for it, or fetched for it. Otherwise the
	// instance only names what is here for another: who began it knows the hash, and need
	// not ever have had the content.
	proved bool
	number int // of those of this content, in the order in which they came
}

func newContent() *content {
	return &content{state: coming, uses: map[string]use{}, by: map[string]int{}, given: map[string]bool{}}
}

// bytes is the room that a content takes, or is to take.
func (c *content) bytes(n name) int64 {
	if c.state == whole || len(c.uses) > 0 {
		return n.size
	}
	return c.part
}

// enter enters a use, or changes it.
func (c *content) enter(instance string, u use) {
	if old, known := c.uses[instance]; known {
		u.number = old.number
		c.drop(instance)
	} else {
		u.number = c.next
		c.next++
	}
	c.uses[instance] = u
	c.by[u.by]++
}

// drop takes a use away.
func (c *content) drop(instance string) {
	u, known := c.uses[instance]
	if !known {
		return
	}
	delete(c.uses, instance)
	if c.by[u.by]--; c.by[u.by] == 0 {
		delete(c.by, u.by)
	}
}

// Open opens the store in a folder, which it makes. What an upload left behind is removed. What
// the folder should hold and does not is noted, for Topic.Keep and Topic.Diagnose.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir) // applications work elsewhere
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := load(dir)
	if err != nil {
		return nil, err
	}
	s.o = o
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newFile) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	for n, c := range s.held {
		switch c.state {
		case going:
			err = errors.Join(err, s.remove(n))
			continue
		case damaged:
			err = errors.Join(err, s.setAside(n))
		}
		if c.fault != "" {
			s.tell(n, c)
		}
	}
	return s, err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *Store) path(n name, kind string) string {
	return filepath.Join(s.dir, n.String()+kind)
}

// of is what is known of a content. The caller holds s.mu, but for Open.
func (s *Store) of(n name) *content {
	c := s.held[n]
	if c == nil {
		c = newContent()
		s.held[n] = c
	}
	return c
}

// Put keeps what r gives, under a name, and returns when it is durable. It is removed
// after a day if no instance has it by then. What is here of the same content is replaced: its
// user may give it because the disk damaged that.
func (s *Store) Put(ctx context.Context, name string, r io.Reader, now time.Time) (f workflow.File, err error) {
	if rule := workflow.FileNameRule(name); rule != "" {
		return f, fmt.Errorf("%q cannot be what a file is called: want %s", name, rule)
	}
	most, err := s.roomOf("")
	if err != nil {
		return f, err
	}
	tmp, err := os.CreateTemp(s.dir, newFile)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, gone(os.Remove(tmp.Name()))) }()
	size, chunks, err := copyIn(ctx, tmp, r, min(most, workflow.MaxFile))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return f, err
	}
	f = workflow.File{Name: name, Size: size, Root: chunks.root(size)}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	if s.held[n] == nil { // what comes has a record first, so that a record that is missing is lost
		c := s.of(n)
		c.label, c.since = f.Name, now
		if err := s.record(n, c); err != nil {
			delete(s.held, n)
			return f, err
		}
	}
	if err := s.writeSums(n, chunks); err != nil {
		return f, err
	}
	c := s.of(n)
	if err := s.settle(tmp.Name(), f, now); err != nil {
		return f, err
	}
	s.justRead(c)
	return f, s.record(n, c)
}

// gone is err, unless the file was not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// replace stores a small file in the folder, durably, in place of what it held.
func (s *Store) replace(path string, b []byte) error {
	tmp, err := os.CreateTemp(s.dir, newFile)
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return errors.Join(os.Rename(tmp.Name(), path), syncFolder(s.dir))
}

// writeSums stores the hashes of chunks, durably.
func (s *Store) writeSums(n name, chunks sums) error {
	return s.replace(s.path(n, sumsFile), chunks.bytes())
}

// settle makes a file on disk, which is synced and fits its hash, the whole content of f. The
// caller holds s.mu, and stores the record.
func (s *Store) settle(from string, f workflow.File, now time.Time) error {
	n := nameOf(f)
	if err := os.Chmod(from, 0o400); err != nil { // applications read it, and nobody writes into it
		return err
	}
	if err := os.Rename(from, s.path(n, wholeFile)); err != nil {
		return err
	}
	if err := syncFolder(s.dir); err != nil {
		return err
	}
	c := s.of(n)
	c.label, c.state, c.since, c.fault, c.read = f.Name, whole, now, "", 0
	return nil
}

// within is most, or what is free on the disk if that is less.
func (s *Store) within(most int64) (int64, error) {
	if s.o.Space != nil {
		free, _, err := s.o.Space()
		if err != nil {
			return 0, err
		}
		most = min(most, int64(free)-int64(s.o.Reserve))
	}
	return max(most, 0), nil
}

// Coming is a file that is to come, and who began its instance; empty: this node.
type Coming struct {
	File workflow.File
	By   string
}

// Have is how many bytes of a file are here, as far as its length on disk says, and
// whether all are.
func (s *Store) Have(f workflow.File) (bytes int64, whole bool) {
	if _, whole := s.Path(f); whole {
		return f.Size, true
	}
	info, err := os.Stat(s.path(nameOf(f), partFile))
	if err != nil {
		return 0, false
	}
	return min(info.Size(), f.Size), false
}

// Lacks is how many bytes of room there lack for all of these files.
func (s *Store) Lacks(files []Coming) (most int64, err error) {
	var disk int64
	shares := map[string]int64{}
	for _, c := range files {
		have, _ := s.Have(c.File)
		disk += c.File.Size - have
		s.mu.Lock()
		if s.held[nameOf(c.File)] == nil {
			shares[c.By] += c.File.Size
		}
		s.mu.Unlock()
	}
	if s.o.Space != nil {
		free, _, err := s.o.Space()
		if err != nil {
			return 0, err
		}
		most = max(disk-max(int64(free)-int64(s.o.Reserve), 0), 0)
	}
	for by, size := range shares {
		room, err := s.roomOf(by)
		if err != nil {
			return 0, err
		}
		most = max(most, size-room)
	}
	return most, nil
}

// taken is the room that is taken but for one content: in all, by others than this node, and by
// a member. The caller holds s.mu.
func (s *Store) taken(but *content, by string) (all, others, its int64) {
	for n, o := range s.held {
		if o == but {
			continue
		}
		size := o.bytes(n)
		all += size
		if o.by[by] > 0 {
			its += size
		}
		if len(o.by) > 1 || len(o.by) == 1 && o.by[""] == 0 {
			others += size
		}
	}
	return all, others, its
}

// share is what others leave to a member of most: each has a quarter of the limit, and all
// together seven eighths.
func (s *Store) share(most, others, its int64) int64 {
	return min(most, max(s.o.Limit/4-its, 0), max(s.o.Limit/8*7-others, 0))
}

// roomOf is how many bytes more may be kept of new files for instances that a member began
// (empty: this node).
func (s *Store) roomOf(by string) (int64, error) {
	s.mu.Lock()
	all, others, its := s.taken(nil, by)
	s.mu.Unlock()
	most, err := s.within(s.o.Limit - all)
	if by != "" {
		most = s.share(most, others, its)
	}
	return most, err
}

// roomFor returns an error if an instance that by began (empty: this node) cannot have a file
// for want of room. A content takes room once, and counts for each member whose instances have
// it: so nobody has more than a share when another lets go of it. The caller holds s.mu.
func (s *Store) roomFor(f workflow.File, by string) error {
	c := s.held[nameOf(f)]
	most, here := f.Size, c != nil && (c.state == whole || len(c.uses) > 0)
	all, others, its := s.taken(c, by)
	if !here {
		var err error
		if most, err = s.within(s.o.Limit - all); err != nil {
			return err
		}
	}
	if by != "" && (c == nil || c.by[by] == 0) {
		most = s.share(most, others, its)
	}
	if f.Size > most {
		return &noRoom{f, most}
	}
	return nil
}

// Use notes, durably, that an instance has a file, so that its content stays. by began the
// instance; empty: this node. It refuses what there is no room for. It proves nothing:
// whoever began the instance may know no more than the hash.
func (s *Store) Use(f workflow.File, instance, by string, now time.Time) error {
	return s.use(f, instance, by, false, now)
}

// Give is Use of a file that this node's own user, or a program here, gives to an instance: if
// the content is here, the node gives it to others for that instance.
func (s *Store) Give(f workflow.File, instance, by string, now time.Time) error {
	return s.use(f, instance, by, true, now)
}

func (s *Store) use(f workflow.File, instance, by string, gives bool, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	var before use
	known := false
	if c := s.held[n]; c != nil {
		if before, known = c.uses[instance]; known && (before.proved || !gives) {
			return nil
		}
	}
	if !known {
		if err := s.roomFor(f, by); err != nil {
			return err
		}
	}
	c := s.of(n)
	c.since = now
	if c.label == "" {
		c.label = f.Name
	}
	c.enter(instance, use{by: by, proved: before.proved || gives && c.state == whole})
	err := s.record(n, c)
	if err != nil {
		c.drop(instance)
		if known {
			c.enter(instance, before)
		}
	}
	return err
}

// fetched makes what was fetched for instances the whole content of f: it is proved for these.
func (s *Store) fetched(from string, f workflow.File, instances []string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(from, f, now); err != nil {
		return err
	}
	n := nameOf(f)
	c := s.of(n)
	for _, i := range instances {
		if u, known := c.uses[i]; known {
			u.proved = true
			c.enter(i, u)
		}
	}
	return s.record(n, c)
}

// proved reports whether an instance does not only name a content.
func (s *Store) proved(f workflow.File, instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	return c != nil && c.uses[instance].proved
}

// noRoom says that a file is not kept for want of room.
type noRoom struct {
	file workflow.File
	most int64
}

func (e *noRoom) Error() string {
	size, most := workflow.FormatSize(e.file.Size), workflow.FormatSize(e.most)
	return fmt.Sprintf("file %s has %s, and there is room for %s here", e.file.Name, size, most)
}

// unusedFor is how long a content stays that no instance has: who uploads it, begins the
// instance or ends the task only afterwards.
const unusedFor = 24 * time.Hour

// Sweep lets go of instances that are not here any more, and removes what no instance has
// had for a day. What may be had by instances of which the record was lost stays.
func (s *Store) Sweep(here func(instance string) bool, now time.Time) (removed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.held {
		old := now.Sub(c.since) > unusedFor
		before := len(c.uses)
		for instance := range c.uses {
			if !here(instance) && old {
				c.drop(instance)
			}
		}
		if len(c.uses) < before {
			c.since = now
			if info, err := os.Stat(s.path(n, partFile)); err == nil {
				c.part = info.Size()
			}
			err = errors.Join(err, s.record(n, c))
			continue
		}
		if s.unused(c, now) {
			err = errors.Join(err, s.remove(n))
			removed++
		}
	}
	return removed, err
}

// unused reports whether no instance is known to have had a content for a day. The caller
// holds s.mu.
func (s *Store) unused(c *content, now time.Time) bool {
	return len(c.uses) == 0 && !c.unsure && now.Sub(c.since) > unusedFor
}

// remove removes a content, and first notes that, so that a half of it is not taken for lost.
// The caller holds s.mu.
func (s *Store) remove(n name) (err error) {
	c := s.of(n)
	c.state = going
	if err := s.record(n, c); err != nil {
		return err
	}
	for _, kind := range []string{wholeFile, partFile, sumsFile} {
		err = errors.Join(err, gone(os.Remove(s.path(n, kind))))
	}
	if err == nil {
		err = errors.Join(syncFolder(s.dir), gone(os.Remove(s.path(n, recordFile))))
	}
	delete(s.held, n)
	return err
}

// Path is where the whole content of a file lies; false: it is not here.
func (s *Store) Path(f workflow.File) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	return s.path(nameOf(f), wholeFile), c != nil && c.state == whole
}

// sums are the hashes of a file's chunks, if they are here. If they were lost they are made
// again of the content, if that fits.
func (s *Store) sums(f workflow.File) (sums, error) {
	chunks, err := s.storedSums(f)
	if err == nil {
		return chunks, nil
	}
	if _, whole := s.Path(f); !whole {
		return nil, err
	}
	if ok, err := s.verify(context.Background(), nameOf(f)); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrNotHere
	}
	return s.storedSums(f)
}

func (s *Store) storedSums(f workflow.File) (sums, error) {
	b, err := os.ReadFile(s.path(nameOf(f), sumsFile))
	if err != nil {
		return nil, err
	}
	return readSums(b, f)
}

// ErrNotHere is the answer to who asks for what is not here.
var ErrNotHere = errors.New("it is not here")

// piece reads a piece of a content that is here whole. The first piece of each chunk is
// given only if all of the chunk is as it should be.
func (s *Store) piece(f workflow.File, offset int64) ([]byte, error) {
	path, whole := s.Path(f)
	if !whole {
		return nil, ErrNotHere
	}
	if offset < 0 || offset >= f.Size || offset%Piece != 0 {
		return nil, fmt.Errorf("no piece begins at byte %d of %d", offset, f.Size)
	}
	if offset%Chunk == 0 {
		b, err := s.chunk(f, int(offset/Chunk))
		return b[:min(len(b), Piece)], err
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it was only read
	b := make([]byte, min(f.Size-offset, Piece))
	if _, err := r.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// chunk is a chunk of a content that is here whole, as it should be.
func (s *Store) chunk(f workflow.File, n int) ([]byte, error) {
	chunks, err := s.sums(f)
	if err != nil {
		return nil, err // perhaps it can be read the next time
	}
	r, err := os.Open(s.path(nameOf(f), wholeFile))
	if err != nil {
		return nil, errors.Join(err, s.missed(f, err))
	}
	defer r.Close() // it was only read
	b := make([]byte, chunkSize(f, n))
	switch ok, err := good(r, f, chunks, n, b); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.Join(ErrNotHere, s.damaged(nameOf(f), r, notWhatWasKept))
	}
	return b, nil
}

// gave notes that a partner has got all of a file.
func (s *Store) gave(f workflow.File, to workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(nameOf(f)).given[string(to)] = true
}

// GivenTo are the partners that got all of a file since this node runs.
func (s *Store) GivenTo(f workflow.File) (out []workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.held[nameOf(f)]; c != nil {
		for _, p := range slices.Sorted(maps.Keys(c.given)) {
			out = append(out, workflow.PartnerID(p))
		}
	}
	return out
}

// NewFolder makes a folder for what an application writes, which is removed at the next
// start at the latest.
func (s *Store) NewFolder() (string, error) { return os.MkdirTemp(s.dir, newFile) }

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || os.IsPermission(err) { // not all systems can
		err = nil
	}
	return errors.Join(err, d.Close())
}
