package files

import (
	"context"
	"encoding/hex"
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

// What lies in the folder, by root: the whole content, what there is of it so far, the
// hashes of its chunks, and for which instances it is kept. An upload has no root yet.
const (
	wholeFile = ".data"
	partFile  = ".part"
	sumsFile  = ".sums"
	usesFile  = ".uses"
	newFile   = "new-"
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

	mu   sync.Mutex // guards held
	held map[Root]*content
}

// content is what is known of one content.
type content struct {
	size  int64
	whole bool
	since time.Time       // when it came, or was last let go
	uses  map[string]use  // by instance
	given map[string]bool // to these partners, whole, since the node runs
	put   bool            // somebody at this node gave all of it, since the node runs
}

// use is that an instance has a content.
type use struct {
	by string // who began it; empty: this node
	// proved: the content was given at this node for it, or fetched for it. Otherwise the
	// instance only names what is here for another: who began it knows the hash, and need
	// not ever have had the content.
	proved bool
}

// Open opens the store in a folder, which it makes. What an upload left behind is removed.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir) // applications work elsewhere
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, o: o, held: map[Root]*content{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newFile) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
			continue
		}
		root, kind, known := parseName(e.Name())
		if !known {
			continue
		}
		err = errors.Join(err, s.find(root, kind, e))
	}
	return s, err
}

// parseName takes a file's name in the folder apart.
func parseName(name string) (root Root, kind string, ok bool) {
	kind = filepath.Ext(name)
	b, err := hex.DecodeString(strings.TrimSuffix(name, kind))
	if err != nil || len(b) != len(root) {
		return root, "", false
	}
	return Root(b), kind, true
}

// find takes in what a file in the folder says.
func (s *Store) find(root Root, kind string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	c := s.of(root)
	c.since = later(c.since, info.ModTime())
	switch kind {
	case wholeFile:
		c.size, c.whole = info.Size(), true
	case partFile:
		if !c.whole {
			c.size = info.Size()
		}
	case usesFile:
		b, err := os.ReadFile(s.path(root, usesFile))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if words := strings.Split(strings.TrimSuffix(line, "\n"), " "); len(words) == 3 {
				c.uses[words[0]] = use{words[1], words[2] == "proved"}
			}
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *Store) path(root Root, kind string) string {
	return filepath.Join(s.dir, hex.EncodeToString(root[:])+kind)
}

// of is what is known of a content. The caller holds s.mu, but for Open.
func (s *Store) of(root Root) *content {
	c := s.held[root]
	if c == nil {
		c = &content{uses: map[string]use{}, given: map[string]bool{}}
		s.held[root] = c
	}
	return c
}

// Put keeps what r gives, under a name, and returns when it is durable. It is removed
// after a day if no instance has it by then.
func (s *Store) Put(ctx context.Context, name string, r io.Reader, now time.Time) (f workflow.File, err error) {
	if rule := workflow.FileNameRule(name); rule != "" {
		return f, fmt.Errorf("%q cannot be what a file is called: want %s", name, rule)
	}
	most, err := s.room("", nil)
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
	if err := s.writeSums(f.Root, chunks); err != nil {
		return f, err
	}
	if c := s.of(f.Root); c.whole { // the same is here already
		c.since, c.put = now, true
		return f, nil
	}
	err = s.settle(tmp.Name(), f, now)
	s.of(f.Root).put = err == nil
	return f, err
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
func (s *Store) writeSums(root Root, chunks sums) error {
	return s.replace(s.path(root, sumsFile), chunks.bytes())
}

// settle makes a file on disk, which is synced, the whole content of f. The caller holds s.mu.
func (s *Store) settle(from string, f workflow.File, now time.Time) error {
	if err := os.Chmod(from, 0o400); err != nil { // applications read it, and nobody writes into it
		return err
	}
	if err := os.Rename(from, s.path(f.Root, wholeFile)); err != nil {
		return err
	}
	if err := syncFolder(s.dir); err != nil {
		return err
	}
	c := s.of(f.Root)
	c.size, c.whole, c.since = f.Size, true, now
	return nil
}

// room is how many bytes more may be kept for an instance that by began (empty: this
// node), and what is free on the disk. What is kept of except does not count.
func (s *Store) room(by string, except *Root) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, others, own int64
	for root, c := range s.held {
		if except != nil && root == *except {
			continue
		}
		all += c.size
		if payer := c.payer(); payer != "" {
			others += c.size
			if payer == by {
				own += c.size
			}
		}
	}
	most := s.o.Limit - all
	if by != "" { // of others, each a quarter, and all together seven eighths
		most = min(most, s.o.Limit/4-own, s.o.Limit/8*7-others)
	}
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
// whether all are, verified.
func (s *Store) Have(f workflow.File) (bytes int64, whole bool) {
	if _, whole := s.Path(f); whole {
		return f.Size, true
	}
	info, err := os.Stat(s.path(f.Root, partFile))
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
		if s.held[c.File.Root] == nil {
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
		room, err := s.room(by, nil)
		if err != nil {
			return 0, err
		}
		most = max(most, size-room)
	}
	return most, nil
}

// payer is whose share a content is in: this node's, if any of its instances has it.
func (c *content) payer() string {
	if len(c.uses) == 0 {
		return ""
	}
	return slices.MinFunc(slices.Collect(maps.Values(c.uses)), func(a, b use) int { return strings.Compare(a.by, b.by) }).by
}

// Use notes, durably, that an instance has a file, so that its content stays. by began the
// instance; empty: this node. It refuses what there is no room for.
func (s *Store) Use(f workflow.File, instance, by string, now time.Time) error {
	s.mu.Lock()
	c := s.held[f.Root]
	if c != nil {
		if u, known := c.uses[instance]; known && (c.whole || c.size == f.Size) && (u.proved || !c.put) {
			s.mu.Unlock()
			return nil
		}
	}
	here := c != nil && c.whole
	s.mu.Unlock()
	switch most, err := s.room(by, &f.Root); {
	case err != nil:
		return err
	case !here && f.Size > most:
		return &noRoom{f, most}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.of(f.Root)
	if !c.whole {
		c.size = f.Size
	}
	before, known := c.uses[instance]
	c.uses[instance], c.since = use{by, before.proved || c.whole && c.put}, now
	err := s.writeUses(f.Root, c)
	if err != nil && known {
		c.uses[instance] = before
	} else if err != nil {
		delete(c.uses, instance)
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
	c := s.of(f.Root)
	for _, i := range instances {
		if u, known := c.uses[i]; known {
			c.uses[i] = use{u.by, true}
		}
	}
	return s.writeUses(f.Root, c)
}

// proved reports whether an instance does not only name a content.
func (s *Store) proved(f workflow.File, instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[f.Root]
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

// writeUses stores for which instances a content is kept. The caller holds s.mu.
func (s *Store) writeUses(root Root, c *content) error {
	if len(c.uses) == 0 {
		return gone(os.Remove(s.path(root, usesFile)))
	}
	var b []byte
	for _, instance := range slices.Sorted(maps.Keys(c.uses)) {
		u, how := c.uses[instance], "named"
		if u.proved {
			how = "proved"
		}
		b = fmt.Appendf(b, "%s %s %s\n", instance, u.by, how)
	}
	return s.replace(s.path(root, usesFile), b)
}

// unusedFor is how long a content stays that no instance has: who uploads it, begins the
// instance or ends the task only afterwards.
const unusedFor = 24 * time.Hour

// Sweep lets go of instances that are not here any more, and removes what no instance has
// had for a day.
func (s *Store) Sweep(here func(instance string) bool, now time.Time) (removed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for root, c := range s.held {
		old := now.Sub(c.since) > unusedFor
		before := len(c.uses)
		for instance := range c.uses {
			if !here(instance) && old {
				delete(c.uses, instance)
			}
		}
		if len(c.uses) < before {
			c.since = now
			err = errors.Join(err, s.writeUses(root, c))
			continue
		}
		if len(c.uses) == 0 && old {
			err = errors.Join(err, s.remove(root))
			removed++
		}
	}
	return removed, err
}

// remove removes a content. The caller holds s.mu.
func (s *Store) remove(root Root) (err error) {
	for _, kind := range []string{wholeFile, partFile, sumsFile, usesFile} {
		err = errors.Join(err, gone(os.Remove(s.path(root, kind))))
	}
	delete(s.held, root)
	return err
}

// Path is where the whole content of a file lies; false: it is not here.
func (s *Store) Path(f workflow.File) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[f.Root]
	return s.path(f.Root, wholeFile), c != nil && c.whole && c.size == f.Size
}

// sums are the hashes of a file's chunks, if they are here.
func (s *Store) sums(f workflow.File) (sums, error) {
	b, err := os.ReadFile(s.path(f.Root, sumsFile))
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
	r, err := os.Open(s.path(f.Root, wholeFile))
	if err != nil {
		return nil, err
	}
	defer r.Close() // it was only read
	b := make([]byte, chunkSize(f, n))
	switch ok, err := good(r, f, chunks, n, b); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.Join(ErrNotHere, s.damaged(f))
	}
	return b, nil
}

// damaged makes of a content that the disk changed what there is so far of one: what is
// right of it need not be fetched again.
func (s *Store) damaged(f workflow.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.held[f.Root]; c != nil {
		c.whole = false
	}
	part := s.path(f.Root, partFile)
	return errors.Join(gone(os.Rename(s.path(f.Root, wholeFile), part)), gone(os.Chmod(part, 0o600)))
}

// gave notes that a partner has got all of a file.
func (s *Store) gave(f workflow.File, to workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(f.Root).given[string(to)] = true
}

// GivenTo are the partners that got all of a file since this node runs.
func (s *Store) GivenTo(f workflow.File) (out []workflow.PartnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.held[f.Root]; c != nil {
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
