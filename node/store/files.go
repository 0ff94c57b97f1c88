package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
)

// This file reads Badger's files without Badger, which trusts them: it passes over a
// table whose index is damaged, ends an iterator at a damaged block, cuts a log at the
// first record that it cannot read, deletes tables that its MANIFEST does not name, and
// panics, in goroutines of its own, on lengths that make no sense. Here every byte that
// means something is checked, and all that can still be read is found. (Formats:
// tables, memtables and the entries in them as of Badger v4, MANIFEST version 8;
// without compression and encryption.)

// record of an entry's flags, as Badger has them.
const (
	flagDelete = 1 << 0
	flagTxn    = 1 << 6
	flagFin    = 1 << 7
)

// entry is a version of a key in one of Badger's files.
type entry struct {
	key, value []byte
	version    uint64
	deleted    bool
}

var errDamagedTable = errors.New("checksums or lengths are wrong")

// readTable calls each for every entry of a table, in order; nil only checks. What is
// damaged is passed over, block by block, and is the error.
func readTable(path string, each func(entry) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	index, end := trailer(b, len(b))
	if index == nil {
		return errDamagedTable
	}
	t := fb.GetRootAsTableIndex(index, 0) // its checksum is right, so that its offsets are
	var damaged error
	at := 0
	for i := range t.OffsetsLength() {
		var o fb.BlockOffset
		if !t.Offsets(&o, i) || int(o.Offset()) != at || int(o.Offset())+int(o.Len()) > end {
			return errDamagedTable
		}
		at += int(o.Len())
		if err := readBlock(b[o.Offset():at], each); errors.Is(err, errDamagedTable) {
			damaged = fmt.Errorf("block %d of %d: %w", i, t.OffsetsLength(), err)
		} else if err != nil {
			return err
		}
	}
	if at != end {
		return errDamagedTable
	}
	return damaged
}

// trailer returns the index of a table that ends at end, and where it begins; nil if
// it is damaged.
func trailer(b []byte, end int) (index []byte, begin int) {
	sum, at := checksum(b, end)
	if at < 4 {
		return nil, 0
	}
	n := int(binary.BigEndian.Uint32(b[at-4:]))
	if begin = at - 4 - n; n <= 0 || begin < 0 {
		return nil, 0
	}
	if index = b[begin : at-4]; crc32.Checksum(index, castagnoli) != sum {
		return nil, 0
	}
	return index, begin
}

// checksum reads the checksum that ends at end: a message with the fields 1 (the
// algorithm; 0, CRC-32C, is left out) and 2 (the sum), and its length. at is where it
// begins, 0 if it cannot be right.
func checksum(b []byte, end int) (sum uint32, at int) {
	if end < 4 {
		return 0, 0
	}
	n := int(binary.BigEndian.Uint32(b[end-4:]))
	if at = end - 4 - n; n < 0 || n > 2*(1+binary.MaxVarintLen64) || at < 0 {
		return 0, 0
	}
	m := b[at : end-4]
	if len(m) == 0 {
		return 0, at // a sum of 0
	}
	v, k := binary.Uvarint(m[1:])
	if m[0] != 2<<3 || k != len(m)-1 || v > math.MaxUint32 {
		return 0, 0
	}
	return uint32(v), at
}

// readBlock calls each for every entry of a block.
func readBlock(b []byte, each func(entry) error) error {
	sum, end := checksum(b, len(b))
	if end < 4 || crc32.Checksum(b[:end], castagnoli) != sum {
		return errDamagedTable
	}
	n := int(binary.BigEndian.Uint32(b[end-4:]))
	offsets := end - 4 - 4*n
	if n <= 0 || offsets < 0 {
		return errDamagedTable
	}
	if each == nil {
		return nil
	}
	var base []byte
	for i := range n {
		from, to := int(binary.NativeEndian.Uint32(b[offsets+4*i:])), offsets
		if i+1 < n {
			to = int(binary.NativeEndian.Uint32(b[offsets+4*(i+1):]))
		}
		if from < 0 || to > offsets || to-from < 4 {
			return errDamagedTable
		}
		e := b[from:to]
		overlap, diff := int(binary.NativeEndian.Uint16(e)), int(binary.NativeEndian.Uint16(e[2:]))
		if overlap > len(base) || 4+diff > len(e) {
			return errDamagedTable
		}
		key := slices.Concat(base[:overlap], e[4:4+diff])
		if i == 0 {
			base = key
		}
		v := e[4+diff:]
		if len(key) < 8 || len(v) < 3 {
			return errDamagedTable
		}
		_, k := binary.Uvarint(v[2:]) // when it expires: never
		if k <= 0 {
			return errDamagedTable
		}
		if err := each(versioned(key, v[2+k:], v[0])); err != nil {
			return err
		}
	}
	return nil
}

// versioned is an entry, of a key that its version is appended to.
func versioned(key, value []byte, flags byte) entry {
	n := len(key) - 8
	return entry{
		key: key[:n], value: value, version: math.MaxUint64 - binary.BigEndian.Uint64(key[n:]),
		deleted: flags&flagDelete != 0,
	}
}

// logHeader is what a log begins with: the number of the encryption key, which is 0
// here, and random bytes.
const logHeader = 20

// logState is what a log was found to be.
type logState struct {
	unit   uint64 // the last unit that is whole and before any damage; 0: none
	behind int    // bytes that are not zero behind it: what was being written, or what damage hides
	key    uint64 // the number of its encryption key: 0, or it is damaged
}

// readLog calls each for every entry of every whole transaction of a log, also of those
// behind damage, and of those that damage took only a part of.
func readLog(path string, each func(entry) error) (s logState, err error) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < logHeader {
		return s, err
	}
	s.key = binary.BigEndian.Uint64(b)
	at := logHeader
	var txn []entry
	for hidden := false; at < len(b); {
		e, flags, n := logEntry(b[at:])
		switch {
		case n == 0:
			if !hidden {
				hidden, s.behind = true, notZero(b[at:])
			}
			if s.behind == 0 || each == nil {
				return s, nil
			}
			at++
			continue
		case flags&flagFin == 0:
			txn = append(txn, e)
		default:
			for _, e := range txn {
				if string(e.key) == unitKey && !hidden {
					s.unit, _, _ = decodeUnit(e.value)
				}
				if each != nil {
					if err := each(e); err != nil {
						return s, err
					}
				}
			}
			txn = txn[:0]
		}
		at += n
	}
	return s, nil
}

// logEntry reads the entry that b begins with, and its length; 0 if there is none.
func logEntry(b []byte) (e entry, flags byte, n int) {
	if len(b) < 9 || b[0] == 0 || b[0]&^(flagDelete|flagTxn|flagFin) != 0 || b[1] != 0 {
		return e, 0, 0
	}
	at := 2
	var lengths [3]uint64 // of key and value, and when it expires: never
	for i := range lengths {
		v, k := binary.Uvarint(b[at:])
		if k <= 0 {
			return e, 0, 0
		}
		lengths[i], at = v, at+k
	}
	if lengths[0] < 8 || lengths[0] > MaxKey+8 || lengths[1] > MaxValue || lengths[2] != 0 {
		return e, 0, 0
	}
	end := at + int(lengths[0]+lengths[1])
	if end+4 > len(b) || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return e, 0, 0
	}
	return versioned(b[at:at+int(lengths[0])], b[at+int(lengths[0]):end], b[0]), b[0], end + 4
}

// notZero counts the bytes that are not zero.
func notZero(b []byte) (n int) {
	for _, x := range b {
		if x != 0 {
			n++
		}
	}
	return n
}

// inspection is what a look at Badger's files gives before Badger sees them.
type inspection struct {
	wrong   []string // what is damaged or missing, for people
	orphans []string // tables that MANIFEST does not name
	unit    uint64   // the last unit in the logs; 0: none
	behind  int      // bytes behind what the logs are readable to
	some    bool     // there is data
}

// inspect looks at the files of a folder of Badger's, and reads all of them.
func inspect(dir string) (in inspection, err error) {
	tables, err := numbered(dir, ".sst")
	if err != nil {
		return in, err
	}
	logs, err := numbered(dir, ".mem")
	if err != nil {
		return in, err
	}
	in.some = len(tables)+len(logs) > 0
	named, err := manifest(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if in.some {
			in.wrong = append(in.wrong, "MANIFEST is missing")
		}
	case err != nil:
		why, _, _ := strings.Cut(err.Error(), "\n")
		in.wrong = append(in.wrong, fmt.Sprintf("MANIFEST is damaged (%s)", why))
	}
	for _, n := range named {
		if tables[n] == "" {
			in.wrong = append(in.wrong, fmt.Sprintf("table %06d.sst is missing", n))
		}
	}
	for n, path := range tables {
		if !slices.Contains(named, n) {
			in.orphans = append(in.orphans, path)
			continue
		}
		if err := readTable(path, nil); err != nil {
			in.wrong = append(in.wrong, fmt.Sprintf("table %s is damaged (%v)", filepath.Base(path), err))
		}
	}
	for _, path := range logs {
		s, err := readLog(path, nil)
		if err != nil {
			in.wrong = append(in.wrong, fmt.Sprintf("log %s cannot be read (%v)", filepath.Base(path), err))
		}
		if s.key != 0 {
			in.wrong = append(in.wrong, fmt.Sprintf("log %s is damaged (its first bytes)", filepath.Base(path)))
		}
		in.unit, in.behind = max(in.unit, s.unit), in.behind+s.behind
	}
	slices.Sort(in.wrong)
	slices.Sort(in.orphans)
	return in, nil
}

// numbered are the files of a kind, by their numbers.
func numbered(dir, ext string) (map[uint64]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ext))
	out := map[uint64]string{}
	for _, path := range paths {
		if n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), ext), 10, 64); err == nil {
			out[n] = path
		}
	}
	return out, err
}

// manifest are the tables that MANIFEST names.
func manifest(dir string) (tables []uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badger.Options{})
	for n := range m.Tables {
		tables = append(tables, n)
	}
	return tables, err
}
