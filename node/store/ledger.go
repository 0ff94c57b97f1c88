package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

const (
	ledgerName = "ledger"
	// ledgerSync bounds how much of the ledger a power loss can take: it is synced so
	// often at most, beside the commits, and when it is written again.
	ledgerSync = 5 * time.Second
	// ledgerGrowth is how many bytes are appended before the ledger is written again,
	// or as many as it began with, if that is more.
	ledgerGrowth = 1 << 20
)

// tally says what a set of entries is: how many, and the sum of their digests, which
// is the same in whatever order they come and go.
type tally struct {
	count int64
	sum   uint64
}

func (t tally) plus(o tally) tally  { return tally{t.count + o.count, t.sum + o.sum} }
func (t tally) minus(o tally) tally { return tally{t.count - o.count, t.sum - o.sum} }

// one is the tally of one entry.
func one(key, value []byte) tally {
	const odd = 0x9e3779b97f4a7c15
	h := xxhash.Sum64(key) ^ bits.RotateLeft64(xxhash.Sum64(value)*odd, 31)
	return tally{1, (h ^ h>>29) * odd}
}

// books are what a store holds, or should hold: after which unit, in all, and by
// range.
type books struct {
	unit   uint64
	all    tally
	ranges map[string]tally
}

// set changes the tally of a range; none at all is not kept.
func (b *books) set(name string, t tally) {
	b.all = b.all.minus(b.ranges[name]).plus(t)
	if t == (tally{}) {
		delete(b.ranges, name)
	} else {
		b.ranges[name] = t
	}
}

// differing are the ranges that are not the same in two books, in order.
func differing(a, b books) [][]byte {
	var out [][]byte
	for name, t := range a.ranges {
		if b.ranges[name] != t {
			out = append(out, []byte(name))
		}
	}
	for name := range b.ranges {
		if _, both := a.ranges[name]; !both {
			out = append(out, []byte(name))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// change is what one unit changes in the books.
type change struct {
	unit   uint64
	all    tally
	ranges map[string]tally
	names  []string // of the ranges, as they came up
}

// of is the tally of a range, with what the unit has changed so far.
func (c *change) of(l *ledger, name []byte) tally {
	if t, changed := c.ranges[string(name)]; changed {
		return t
	}
	return l.is.ranges[string(name)]
}

// replace notes that an entry of a range takes the place of another; the tally of none
// is 0.
func (c *change) replace(l *ledger, name []byte, was, is tally) {
	if _, changed := c.ranges[string(name)]; !changed {
		c.names = append(c.names, string(name))
	}
	c.ranges[string(name)] = c.of(l, name).minus(was).plus(is)
	c.all = c.all.minus(was).plus(is)
}

// unitRecord is what each transaction stores in the database itself: its number, and
// the tally of all that the database holds with it. So a database shows by itself
// whether anything is missing in the middle; that its end is missing, the ledger shows.
func (c *change) unitRecord() []byte { return encodeUnit(c.unit, c.all) }

func encodeUnit(unit uint64, all tally) []byte {
	b := binary.BigEndian.AppendUint64(nil, unit)
	b = binary.BigEndian.AppendUint64(b, uint64(all.count))
	return binary.BigEndian.AppendUint64(b, all.sum)
}

func decodeUnit(b []byte) (unit uint64, all tally, ok bool) {
	if len(b) != 24 {
		return 0, tally{}, false
	}
	return binary.BigEndian.Uint64(b), tally{int64(binary.BigEndian.Uint64(b[8:])), binary.BigEndian.Uint64(b[16:])},
		true
}

// ledger keeps the books of a store in a file of its own: as they were when the file
// was begun, and then each unit's changes. It is written with every unit and synced now
// and then: a process that is killed loses nothing of it, a power loss its last
// seconds, of which the unit's record in the database then vouches for itself.
type ledger struct {
	dir     string
	rangeOf func([]byte) []byte

	mu       sync.Mutex // guards what follows
	is       books
	underway bool      // a unit, between the books and the database
	damage   kv.Damage // found, and not settled
	f        *os.File  // nil: to be written again
	begun    int64     // bytes of the file when it was begun
	size     int64
	synced   time.Time
	busy     sync.WaitGroup // a sync beside the commits
}

// begin starts the change that the next unit makes.
func (l *ledger) begin() *change {
	return &change{unit: l.is.unit + 1, all: l.is.all, ranges: map[string]tally{}}
}

// enter makes a change that is durable in the database. An error of the file is none of
// the unit's: the ledger is written again at the next one.
func (l *ledger) enter(c *change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is.unit = c.unit
	for name, t := range c.ranges {
		l.is.set(name, t)
	}
	if l.f == nil || l.size-l.begun > max(ledgerGrowth, l.begun) {
		return l.rewrite()
	}
	b := frame(nil, unitFrame, l.is, c.names)
	n, err := l.f.Write(b)
	l.size += int64(n)
	if err != nil {
		l.drop()
		return fmt.Errorf("store: the ledger cannot be written: %w", noSpace(err))
	}
	l.syncNow()
	return nil
}

// syncNow syncs the file from time to time, while commits go on.
func (l *ledger) syncNow() {
	now := time.Now()
	if now.Sub(l.synced) < ledgerSync {
		return
	}
	l.synced = now
	f := l.f
	l.busy.Add(1)
	go func() {
		defer l.busy.Done()
		_ = f.Sync() // the next one, or the file's end, tells
	}()
}

func (l *ledger) drop() {
	if l.f != nil {
		l.busy.Wait()
		l.f.Close()
		l.f = nil
	}
}

// rewrite begins the file again with the books as they are, durably.
func (l *ledger) rewrite() error {
	l.drop()
	b, err := l.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, ledgerName)
	if err := writeSynced(path+".new", b); err != nil {
		return fmt.Errorf("store: the ledger cannot be written: %w", noSpace(err))
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := syncDir(l.dir); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	l.f, l.begun, l.size, l.synced = f, int64(len(b)), int64(len(b)), time.Now()
	return nil
}

// close writes the ledger a last time.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	l.busy.Wait()
	err := l.f.Sync()
	l.drop()
	return err
}

// snapshot is a copy of the books.
func (l *ledger) snapshot() books {
	l.mu.Lock()
	defer l.mu.Unlock()
	return books{l.is.unit, l.is.all, maps.Clone(l.is.ranges)}
}

// moment is how many entries a range should have after which unit, and whether no
// unit is on its way.
func (l *ledger) moment(name []byte) (unit uint64, quiet bool, count int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is.unit, !l.underway, l.is.ranges[string(name)].count
}

// setUnderway notes that a unit is on its way, or no longer.
func (l *ledger) setUnderway(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underway = yes
}

// Frames of the file: length, checksum (CRC-32C) and content. The first byte of
// the content is the kind; damage is JSON, the others are books.
const (
	damageFrame = 'd' // found and not settled
	partFrame   = 'p' // some ranges
	baseFrame   = 'b' // ends what the file was begun with
	unitFrame   = 'u' // the ranges that a unit changed
)

const frameHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealed(to, content []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(len(content)))
	to = binary.BigEndian.AppendUint32(to, crc32.Checksum(content, castagnoli))
	return append(to, content...)
}

// frame appends books as a frame, with these of their ranges.
func frame(to []byte, kind byte, b books, names []string) []byte {
	c := append([]byte{kind}, encodeUnit(b.unit, b.all)...)
	for _, name := range names {
		c = binary.AppendUvarint(c, uint64(len(name)))
		c = append(c, name...)
		t := b.ranges[name]
		c = binary.AppendVarint(c, t.count)
		c = binary.BigEndian.AppendUint64(c, t.sum)
	}
	return sealed(to, c)
}

// frameRanges is how many ranges one frame has: as many as one flipped bit takes along.
const frameRanges = 64

func (l *ledger) encode() (out []byte, err error) {
	if len(l.damage.Found) > 0 {
		b, err := json.Marshal(l.damage)
		if err != nil {
			return nil, err
		}
		out = sealed(out, append([]byte{damageFrame}, b...))
	}
	names := slices.Sorted(maps.Keys(l.is.ranges))
	for part := range slices.Chunk(names, frameRanges) {
		out = frame(out, partFrame, l.is, part)
	}
	return frame(out, baseFrame, l.is, nil), nil
}

// record is what a ledger's file says.
type record struct {
	books
	there  bool // it says up to which unit
	gaps   bool // some of it cannot be read, so that ranges may be missing or old
	damage kv.Damage
}

var errFrame = errors.New("it cannot be read")

// readLedger reads the ledger of a folder. An end that was not written wholly is no gap.
func readLedger(dir string) (r record, err error) {
	b, err := os.ReadFile(filepath.Join(dir, ledgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return record{gaps: true}, nil
	}
	if err != nil {
		return record{gaps: true}, err
	}
	return parseLedger(b), nil
}

func parseLedger(b []byte) (r record) {
	r.ranges = map[string]tally{}
	bad := false
	for len(b) >= frameHeader {
		n := int(binary.BigEndian.Uint32(b))
		if n <= 0 || n > len(b)-frameHeader {
			break
		}
		content := b[frameHeader : frameHeader+n]
		if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(b[4:]) || r.read(content) != nil {
			bad = true
		} else if bad {
			r.gaps = true
		}
		b = b[frameHeader+n:]
	}
	if !r.there {
		r.gaps = true
	}
	return r
}

// read takes in one frame.
func (r *record) read(c []byte) error {
	if c[0] == damageFrame {
		return json.Unmarshal(c[1:], &r.damage)
	}
	if len(c) < 25 {
		return errFrame
	}
	unit, all, _ := decodeUnit(c[1:25])
	part := map[string]tally{}
	for rest := c[25:]; len(rest) > 0; {
		n, k := binary.Uvarint(rest)
		if k <= 0 || n > uint64(len(rest)-k) {
			return errFrame
		}
		name := string(rest[k : k+int(n)])
		rest = rest[k+int(n):]
		count, k := binary.Varint(rest)
		if k <= 0 || len(rest)-k < 8 {
			return errFrame
		}
		part[name] = tally{count, binary.BigEndian.Uint64(rest[k:])}
		rest = rest[k+8:]
	}
	for name, t := range part {
		if t == (tally{}) {
			delete(r.ranges, name)
		} else {
			r.ranges[name] = t
		}
	}
	r.unit, r.all = unit, all
	r.there = r.there || c[0] != partFrame
	return nil
}
