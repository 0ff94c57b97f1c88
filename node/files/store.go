package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	// step has tests have what is done to the folder fail; nil: nothing does.
	step func(what string) error
}

// Store is the folder in which content lies. Its methods may be called from any
// goroutine.
type Store struct {
	dir string
	o   Options

	mu       sync.Mutex // guards what follows
	held     map[name]*content
	room     *ledger
	news     []string // what was found lost
	said     int      // so much of it people were told
	reads    int      // how often a content was read and found right
	recorded int      // bytes of records that were stored, for tests
	recent   struct { // what sumsToGive remembers
		sync.Mutex
		of []namedSums
	}
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
	name   name
	room   *ledger // in which it counts
	label  string  // what the file is called; empty: not known
	state  state
	since  time.Time               // when it came, or was last let go
	uses   map[string]use          // by instance
	next   int                     // the number of the next use
	blocks map[int]map[string]bool // the instances by block of the record
	dirty  map[int]bool            // the blocks that are not on the disk as they are here
	stored string                  // the first line of the record on the disk
	by     map[string]int          // how many uses each member has
	given  map[string]bool         // these partners said since the node runs that they have it whole; nil: nobody did
	// elsewhere: some partner has said that all of it is on its disk.
	elsewhere bool
	owed      []debt // whom to tell when it is here whole
	part      int64  // bytes of what there was of it, if no instance has it
	weighs    int64  // bytes that it counts in the ledger
	// unsure: the record was lost, so that more instances may have it than uses says.
	unsure bool
	fault  string // what is wrong with it; empty: nothing is known to be
	// unrecorded: it is whole, and the record does not say so yet.
	unrecorded bool
	// arrived: the record says that it is whole, and all of it still has the name of what comes: the
	// node was stopped between the two.
	arrived bool
	read    int // when it was last read and found right, by Store.reads; 0: not since the start
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

func newContent(n name, room *ledger) *content {
	c := &content{
		name: n, room: room, state: coming, uses: map[string]use{}, by: map[string]int{},
		blocks: map[int]map[string]bool{}, dirty: map[int]bool{},
	}
	c.weigh()
	return c
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
	var trouble error
	for n, c := range s.held {
		switch {
		case c.state == going:
			trouble = errors.Join(trouble, s.remove(n))
			continue
		case c.arrived:
			trouble = errors.Join(trouble, s.arrive(n, c))
		case c.state == damaged:
			trouble = errors.Join(trouble, s.setAside(n))
		}
		if c.fault != "" {
			s.tell(n, c)
		}
	}
	if trouble != nil { // as on a full disk, on which a node must start all the same
		s.news = append(s.news, fmt.Sprintf("the folder of files could not be put in order: %v", trouble))
		s.stir()
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
		c = newContent(n, s.room)
		s.held[n] = c
	}
	return c
}

// Put keeps what r gives, under a name, and returns when it is durable. It is removed
// after a day if no instance has it by then. What is here of the same content is replaced: its
// user may give it because the disk damaged that. What says how much comes (Announced) is refused before it
// comes, if there is no room for that.
func (s *Store) Put(ctx context.Context, name string, r io.Reader, now time.Time) (f workflow.File, err error) {
	if rule := workflow.FileNameRule(name); rule != "" {
		return f, fmt.Errorf("%q cannot be what a file is called: want %s", name, rule)
	}
	if strings.TrimSpace(name) == "" {
		return f, fmt.Errorf("%q cannot be what a file is called: nobody would see it in a list", name)
	}
	most, err := s.roomOf("")
	if err != nil {
		return f, err
	}
	if of, is := r.(interface{ Announced() int64 }); is && of.Announced() > min(most, workflow.MaxFile) {
		return f, &tooLarge{min(most, workflow.MaxFile), of.Announced()} // before any of it came
	}
	tmp, err := os.CreateTemp(s.dir, newFile)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.unlink(tmp.Name())) }()
	size, chunks, err := copyIn(ctx, tmp, r, min(most, workflow.MaxFile), s.spare)
	if err == nil {
		err = s.sync(tmp)
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return f, err
	}
	f = workflow.File{Name: name, Size: size, Root: chunks.root(size)}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	if err := s.shareFor(f, ""); err != nil { // others came meanwhile
		return f, err
	}
	if s.held[n] == nil { // what comes has a record first, so that a record that is missing is lost
		c := s.of(n)
		c.label, c.since = f.Name, now
		if err := s.record(n, c); err != nil {
			s.forget(n, c)
			return f, err
		}
	}
	if err := s.writeSums(n, chunks); err != nil {
		return f, err
	}
	c := s.of(n)
	if err := s.settle(tmp.Name(), n); err != nil {
		return f, err
	}
	c.label, c.since, c.fault = f.Name, now, ""
	c.become(whole)
	s.justRead(c)
	c.unrecorded = true // until its record is there
	if err := s.record(n, c); err != nil {
		return f, err
	}
	c.unrecorded = false
	return f, nil
}

// revive makes of a content that could not be removed what there still is of it. The caller holds s.mu.
func (s *Store) revive(n name, c *content) {
	c.read, c.since = 0, time.Time{}
	c.become(coming)
	if info, err := os.Stat(s.path(n, wholeFile)); err == nil && info.Size() == n.size {
		c.become(whole)
	}
}

// forget forgets what nothing is known of. The caller holds s.mu.
func (s *Store) forget(n name, c *content) {
	for instance := range c.uses {
		c.drop(instance)
	}
	s.room.all -= c.weighs
	delete(s.held, n)
}

// writeSums stores the hashes of chunks, durably.
func (s *Store) writeSums(n name, chunks sums) error {
	return s.replace(s.path(n, sumsFile), chunks.bytes())
}

// settle gives a file on disk, which is synced and fits its hash, the name of the whole content. After
// an error it has the name that it had. The caller holds s.mu.
func (s *Store) settle(from string, n name) error {
	if err := os.Chmod(from, 0o400); err != nil { // applications read it, and nobody writes into it
		return err
	}
	to := s.path(n, wholeFile)
	if err := s.rename(from, to); err != nil {
		return err
	}
	if err := s.syncFolder(); err != nil {
		return errors.Join(err, s.rename(to, from))
	}
	return nil
}

// arrive ends what was begun before the node was stopped: its record says that all of it came.
func (s *Store) arrive(n name, c *content) error {
	if err := s.settle(s.path(n, partFile), n); err != nil {
		return err
	}
	c.arrived = false
	c.become(whole) // it is read before anybody gets it
	return nil
}

// Have is how many bytes of a file are here, as far as its length on disk says, and
// whether all are.
func (s *Store) Have(f workflow.File) (bytes int64, whole bool) {
	if _, whole := s.Path(f); whole {
		return f.Size, true
	}
	bytes, _ = s.part(f)
	return bytes, false
}

// part is how many bytes are here of a file that comes, as far as its length on disk says.
func (s *Store) part(f workflow.File) (bytes int64, here bool) {
	info, err := os.Stat(s.path(nameOf(f), partFile))
	if err != nil {
		return 0, false
	}
	return min(info.Size(), f.Size), true
}

// Use notes, durably, that an instance has a file, so that its content stays. by began the
// instance; empty: this node. It refuses what there is no room for. It proves nothing:
// whoever began the instance may know no more than the hash.
func (s *Store) Use(f workflow.File, instance, by string, now time.Time) error {
	return s.use(f, instance, by, func(*content) bool { return false }, now)
}

// Give is Use of a file that this node's own user, or a program here, gives to an instance: if
// the content is here, the node gives it to others for that instance.
func (s *Store) Give(f workflow.File, instance, by string, now time.Time) error {
	return s.use(f, instance, by, func(c *content) bool { return c.state == whole }, now)
}

// came is Use of a file of which a chunk came for the instance: when all of it is here, the node gives it
// to others for that instance.
func (s *Store) came(f workflow.File, instance, by string, now time.Time) error {
	return s.use(f, instance, by, func(*content) bool { return true }, now)
}

func (s *Store) use(f workflow.File, instance, by string, proof func(*content) bool, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	var before use
	known := false
	if c := s.held[n]; c != nil {
		if c.state == going {
			s.revive(n, c)
		} else if before, known = c.uses[instance]; known && (before.proved || !proof(c)) {
			return nil
		}
	}
	if !known {
		if err := s.roomFor(f, by); err != nil {
			return err
		}
	}
	isNew := s.held[n] == nil
	c := s.of(n)
	since, label := c.since, c.label
	c.since, c.label = now, cmp.Or(c.label, f.Name)
	c.enter(instance, use{by: by, proved: before.proved || proof(c)})
	err := s.record(n, c)
	switch {
	case err == nil:
	case isNew:
		s.forget(n, c)
	default:
		if c.since, c.label = since, label; known {
			c.enter(instance, before)
		} else {
			c.drop(instance)
		}
	}
	return err
}

// fetched makes what was fetched for instances, all of which is in a file that is synced, the whole
// content of f: it is proved for these. That is recorded first, so that it holds if the node is
// stopped before the file has its name (arrive). After an error nothing has changed.
func (s *Store) fetched(from string, f workflow.File, instances []string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	c := s.of(n)
	was := *c
	var proved []string
	for _, i := range instances {
		if u, known := c.uses[i]; known && !u.proved {
			u.proved = true
			c.uses[i] = u
			c.change(u.blockOf())
			proved = append(proved, i)
		}
	}
	c.label, c.since, c.fault, c.read, c.unrecorded = f.Name, now, "", 0, false
	c.become(whole)
	recorded := s.record(n, c)
	err := recorded
	if err == nil {
		err = s.settle(from, n)
	}
	if err == nil {
		return nil
	}
	for _, i := range proved {
		u := c.uses[i]
		u.proved = false
		c.uses[i] = u
		c.change(u.blockOf())
	}
	c.label, c.since, c.fault, c.read, c.unrecorded = was.label, was.since, was.fault, was.read, was.unrecorded
	c.become(was.state)
	if recorded == nil {
		err = errors.Join(err, s.record(n, c))
	}
	return err
}

// proved reports whether an instance does not only name a content.
func (s *Store) proved(f workflow.File, instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	return c != nil && c.uses[instance].proved
}

// unusedFor is how long a content stays that no instance has: who uploads it, begins the
// instance or ends the task only afterwards.
const unusedFor = 24 * time.Hour

// Sweep lets go of instances that are not here any more, and removes what no instance has
// had for a day. What may be had by instances of which the record was lost stays.
func (s *Store) Sweep(here func(instance string) bool, now time.Time) (removed int, err error) {
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	troubles := 0
	for _, n := range names { // others go on in between: each that is let go costs the disk some time
		went, trouble := s.sweep(n, here, now)
		if went {
			removed++
		}
		if trouble == nil {
			continue
		}
		err = errors.Join(err, trouble)
		if troubles++; troubles == mostTroubles { // the disk is ill
			break
		}
	}
	return removed, err
}

// mostTroubles is after how many that could not be removed Sweep waits for its next time.
const mostTroubles = 8

// sweep is Sweep of one content.
func (s *Store) sweep(n name, here func(instance string) bool, now time.Time) (removed bool, err error) {
	if over := s.over(n, here, now); len(over) > 0 {
		return false, s.letGo(n, over, here, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[n]
	if c == nil || !s.unused(c, now) {
		return false, nil
	}
	return true, s.remove(n)
}

// over are the instances of a content that are not here any more, in the order in which they came, if it is old enough.
func (s *Store) over(n name, here func(instance string) bool, now time.Time) (over []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[n]
	if c == nil || now.Sub(c.since) <= unusedFor {
		return nil
	}
	for instance := range c.uses {
		if !here(instance) {
			over = append(over, instance)
		}
	}
	slices.SortFunc(over, func(x, y string) int { return cmp.Compare(c.uses[x].number, c.uses[y].number) })
	return over
}

// blocksAtOnce is of how many blocks of a record instances are let go while nobody else gets at the files.
const blocksAtOnce = 8

// letGo lets go of instances.
func (s *Store) letGo(n name, over []string, here func(instance string) bool, now time.Time) error {
	some := func() (more bool, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := s.held[n]
		if c == nil {
			return false, nil
		}
		for blocks := map[int]bool{}; len(over) > 0; over = over[1:] {
			u, known := c.uses[over[0]]
			if !known || here(over[0]) {
				continue
			}
			if blocks[u.blockOf()] = true; len(blocks) > blocksAtOnce {
				break
			}
			c.drop(over[0])
		}
		c.since = now
		if info, err := os.Stat(s.path(n, partFile)); err == nil {
			c.part = info.Size()
			c.weigh()
		}
		return len(over) > 0, s.record(n, c) // after an error they are let go once more at the next start
	}
	for {
		if more, err := some(); err != nil || !more {
			return err
		}
	}
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
	was := c.state
	c.become(going)
	if err := s.record(n, c); err != nil { // a full disk may have no room for that but what this content takes
		if err := errors.Join(s.unlink(s.path(n, wholeFile)), s.unlink(s.path(n, partFile))); err != nil {
			c.become(was)
			return err
		}
		if err := s.record(n, c); err != nil {
			return err
		}
	}
	for _, kind := range []string{wholeFile, partFile, sumsFile} {
		err = errors.Join(err, s.unlink(s.path(n, kind)))
	}
	if c.elsewhere {
		err = errors.Join(err, gone(os.Remove(s.mark(n))))
	}
	if len(c.owed) > 0 {
		err = errors.Join(err, gone(os.Remove(s.owedFile(n))))
	}
	for block := range c.dirty { // without the record it would look as if that were lost
		err = errors.Join(err, s.unlink(s.path(n, blockFile(block))))
	}
	if err == nil {
		err = s.syncFolder()
	}
	if err == nil {
		err = s.unlink(s.path(n, recordFile))
	}
	if err != nil {
		return err // it is tried again: unused, and removed at the next start
	}
	s.forget(n, c)
	return nil
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

// recentSums are of how many files the hashes of the chunks are remembered while these are given, each of half a MiB
// at most: else each chunk of a large file would have all of its hashes read and verified.
const recentSums = 4

// sumsToGive are the hashes of the chunks of a file of which a chunk is given.
func (s *Store) sumsToGive(f workflow.File) (sums, error) {
	n := nameOf(f)
	s.recent.Lock()
	for _, r := range s.recent.of {
		if r.name == n {
			s.recent.Unlock()
			return r.chunks, nil
		}
	}
	s.recent.Unlock()
	chunks, err := s.sums(f)
	if err != nil {
		return nil, err
	}
	s.recent.Lock()
	defer s.recent.Unlock()
	if len(s.recent.of) == recentSums {
		s.recent.of = slices.Delete(s.recent.of, 0, 1)
	}
	s.recent.of = append(s.recent.of, namedSums{n, chunks})
	return chunks, nil
}

// namedSums are the hashes of the chunks of a content. They are right whatever becomes of the disk: they fit the
// content's name.
type namedSums struct {
	name   name
	chunks sums
}

// ErrNotHere is the answer to who asks for what is not here.
var ErrNotHere = errors.New("it is not here")

// ErrNotNow is why nobody can say now whether somebody may read a file that may be here.
var ErrNotNow = errors.New("it cannot be said now who may read it")

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
	chunks, err := s.sumsToGive(f)
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

// Gave notes that a partner says that it has all of a file on its disk.
func (s *Store) Gave(f workflow.File, to workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	if c == nil { // it was removed meanwhile
		return
	}
	if c.given == nil {
		c.given = map[string]bool{}
	}
	c.given[string(to)] = true
	if c.elsewhere {
		return
	}
	c.elsewhere = true
	// Not synced: where it is lost, the file is said to be only here until somebody gets it once more.
	_ = os.WriteFile(s.mark(nameOf(f)), nil, 0o600)
}

// mark is the empty file which says that a partner has all of a content. Its name is none of a content, so that
// versions before 2026-11-29, which do not know it, pass it over.
func (s *Store) mark(n name) string { return filepath.Join(s.dir, markBegins+n.String()) }

const markBegins = "elsewhere-"

// Elsewhere reports whether a partner has said that it has all of a file on its disk, also before this node was started again.
func (s *Store) Elsewhere(f workflow.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[nameOf(f)]
	return c != nil && c.elsewhere
}

// NewFolder makes a folder for what an application writes, which is removed at the next
// start at the latest.
func (s *Store) NewFolder() (string, error) { return os.MkdirTemp(s.dir, newFile) }
