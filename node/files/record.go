package files

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// String is how what belongs to a content is called in the folder.
func (n name) String() string {
	return hex.EncodeToString(n.root[:]) + "-" + strconv.FormatInt(n.size, 10)
}

// parseName takes a file's name in the folder apart.
func parseName(file string) (n name, kind string, ok bool) {
	kind = filepath.Ext(file)
	root, size, _ := strings.Cut(strings.TrimSuffix(file, kind), "-")
	b, err := hex.DecodeString(root)
	if err != nil || len(b) != len(n.root) {
		return n, "", false
	}
	n.root = Root(b)
	n.size, err = strconv.ParseInt(size, 10, 64)
	return n, kind, err == nil && n.String()+kind == file
}

// A record of a content has a line that says what it is, one for each instance that has it, in
// the order in which they came, and one with the hash of these:
//
//	mutirao file whole "plan.pdf" 1 4
//	INSTANCE MEMBER proved
//	sum HASH
//
// In place of whole there is another state; a * after it says that instances may be missing. So that one
// instance more costs the same among ten as among a million, a record has blockUses of them at most: after them come
// others in blocks, files of their own (.uses1, .uses4) that the first line names. A block is there before the
// record names it, and goes after the record does not.
const (
	recordBegins = "mutirao file "
	recordEnds   = "sum "
	notSure      = "*"
	blockUses    = 128
)

// blockOf is the block of a use; 0: it is in the record itself.
func (u use) blockOf() int { return u.number / blockUses }

// blockFile is what the file of a block is called after the name of its content.
func blockFile(block int) string {
	if block == 0 {
		return recordFile
	}
	return recordFile + strconv.Itoa(block)
}

// isBlock reports whether a file is a block of the uses of a content.
func isBlock(kind string) (block int, is bool) {
	number, is := strings.CutPrefix(kind, recordFile)
	block, err := strconv.Atoi(number)
	return block, is && err == nil && block > 0
}

// named are the blocks that the record of a content names: those that have uses.
func (c *content) named() (out []int) {
	for block := range c.blocks {
		if block > 0 {
			out = append(out, block)
		}
	}
	slices.Sort(out)
	return out
}

// head is the first line of a record.
func (c *content) head() []byte {
	more := ""
	if c.unsure {
		more = notSure
	}
	b := fmt.Appendf(nil, "%s%s%s %q", recordBegins, c.state, more, c.label)
	for _, block := range c.named() {
		b = fmt.Appendf(b, " %d", block)
	}
	return append(b, '\n')
}

// encode is a block of the record of a content; 0: the record itself.
func (c *content) encode(block int) []byte {
	var b []byte
	if block == 0 {
		b = c.head()
	}
	instances := slices.SortedFunc(maps.Keys(c.blocks[block]), func(x, y string) int {
		return cmp.Compare(c.uses[x].number, c.uses[y].number)
	})
	for _, instance := range instances {
		u, how := c.uses[instance], "named"
		if u.proved {
			how = "proved"
		}
		b = fmt.Appendf(b, "%s %s %s\n", instance, u.by, how)
	}
	return fmt.Appendf(b, "%s%x\n", recordEnds, c.sum(block, b))
}

// sum is the hash of a block: of one that is a file of its own also of what that is called, so that it is not
// taken for another.
func (c *content) sum(block int, b []byte) [sha256.Size]byte {
	if block > 0 {
		b = append([]byte(c.name.String()+blockFile(block)+"\n"), b...)
	}
	return sha256.Sum256(b)
}

var errRecord = errors.New("is damaged")

// lines are those of a block whose hash fits.
func (c *content) lines(block int, b []byte) ([]string, error) {
	end := bytes.LastIndex(b, []byte("\n"+recordEnds)) + 1
	if string(b[end:]) != fmt.Sprintf("%s%x\n", recordEnds, c.sum(block, b[:end])) {
		return nil, errRecord
	}
	return slices.Collect(strings.Lines(string(b[:end]))), nil
}

// decodeUses takes in the uses of a block. An earlier version had all of them in the first: those beyond come into
// other blocks when it is stored next.
func (c *content) decodeUses(block int, lines []string) error {
	c.next = max(c.next, block*blockUses)
	if block > 0 && len(lines) > blockUses {
		return errRecord
	}
	for _, line := range lines {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(words) != 3 {
			return errRecord
		}
		c.enter(words[0], use{by: words[1], proved: words[2] == "proved"})
	}
	if len(lines) <= blockUses {
		delete(c.dirty, block) // it is as on the disk
	}
	return nil
}

// decode takes in a record, and returns which blocks it names.
func (c *content) decode(b []byte) (blocks []int, err error) {
	all, err := c.lines(0, b)
	if err != nil || len(all) == 0 {
		return nil, errRecord
	}
	c.stored = all[0]
	head, first := strings.CutPrefix(strings.TrimSuffix(all[0], "\n"), recordBegins)
	st, head, _ := strings.Cut(head, " ")
	quoted, err := strconv.QuotedPrefix(head)
	if err != nil || !first {
		return nil, errRecord
	}
	for _, number := range strings.Fields(head[len(quoted):]) {
		block, err := strconv.Atoi(number)
		if err != nil || block <= 0 {
			return nil, errRecord
		}
		blocks = append(blocks, block)
	}
	st, c.unsure = strings.CutSuffix(st, notSure)
	if c.label, err = strconv.Unquote(quoted); err != nil {
		return nil, errRecord
	}
	switch c.state = state(st); c.state {
	case coming, whole, damaged, going:
		return blocks, c.decodeUses(0, all[1:])
	}
	return nil, errRecord
}

// read takes in the record of a content with its blocks. An error that is errRecord, or that there is none, says that
// it is lost; then c has what is left, and no use that comes takes a place in a block that is there: with a use in it
// that one would pass for whole.
func (s *Store) read(n name, c *content) error {
	b, err := os.ReadFile(s.path(n, recordFile))
	if err != nil {
		return err
	}
	blocks, err := c.decode(b)
	if c.state == going { // its blocks go before it does
		return err
	}
	for _, block := range blocks {
		if err != nil {
			break
		}
		var all []string
		if b, err = os.ReadFile(s.path(n, blockFile(block))); err == nil {
			if all, err = c.lines(block, b); err == nil {
				err = c.decodeUses(block, all)
			}
		}
	}
	if err != nil {
		for _, block := range blocks {
			c.next = max(c.next, (block+1)*blockUses)
		}
	}
	return err
}

// record stores what is known of a content, durably: of its blocks those that have changed. The caller holds s.mu.
func (s *Store) record(n name, c *content) error {
	for _, block := range slices.Sorted(maps.Keys(c.dirty)) {
		if block > 0 && len(c.blocks[block]) > 0 {
			if err := s.store(n, c, block); err != nil {
				return err
			}
			delete(c.dirty, block)
		}
	}
	if head := string(c.head()); c.dirty[0] || c.stored != head {
		c.stored = "" // after an error nobody knows which there is
		if err := s.store(n, c, 0); err != nil {
			return err
		}
		delete(c.dirty, 0)
		c.stored = head
	}
	for block := range c.dirty {
		if s.unlink(s.path(n, blockFile(block))) == nil { // else the next time: nobody reads it
			delete(c.dirty, block)
		}
	}
	return nil
}

// store stores a block of a record.
func (s *Store) store(n name, c *content, block int) error {
	b := c.encode(block)
	s.recorded += len(b)
	return s.replace(s.path(n, blockFile(block)), b)
}

// change notes that a block of the record is to be stored again.
func (c *content) change(block int) { c.dirty[block] = true }

// load looks through a folder, and changes nothing there. What is in it is not read, but for
// the records.
func load(dir string) (*Store, error) {
	s := &Store{
		dir: dir, held: map[name]*content{}, room: &ledger{by: map[string]int64{}}, stirred: make(chan struct{}, 1),
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := map[name]map[string]int64{}
	elsewhere, owed := map[string]bool{}, map[string][]debt{}
	for _, e := range entries {
		if of, is := strings.CutPrefix(e.Name(), markBegins); is {
			elsewhere[of] = true
			continue
		}
		if of, is := strings.CutPrefix(e.Name(), owedBegins); is {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				continue // as if it were lost
			}
			owed[of] = readOwed(b)
			continue
		}
		n, kind, known := parseName(e.Name())
		if !known {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if sizes[n] == nil {
			sizes[n] = map[string]int64{}
		}
		sizes[n][kind] = info.Size()
		c := s.of(n)
		c.since = later(c.since, info.ModTime())
	}
	for n, have := range sizes {
		if err := s.judge(n, have); err != nil {
			return nil, err
		}
		c := s.of(n)
		c.elsewhere, c.owed = elsewhere[n.String()], owed[n.String()]
	}
	return s, nil
}

// judge finds out what there is of a content, by the sizes of its files.
func (s *Store) judge(n name, have map[string]int64) error {
	c := s.of(n)
	defer c.weigh()
	part, isPart := have[partFile]
	c.part = part
	err := s.read(n, c)
	for kind := range have { // of a block that the record does not name nobody was told
		block, is := isBlock(kind)
		if is && c.blocks[block] == nil {
			c.change(block)
		}
		if is && err != nil {
			c.next = max(c.next, (block+1)*blockUses)
		}
	}
	size, here := have[wholeFile]
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errRecord):
		lost := "is gone"
		if errors.Is(err, errRecord) {
			lost = errRecord.Error()
		}
		for instance := range c.uses {
			c.drop(instance)
		}
		c.stored = ""
		c.state, c.unsure, c.label = coming, true, ""
		c.fault = "the record of which instances have it " + lost
	case err != nil:
		return err
	case c.state == going:
		return nil
	case c.state == whole && !here && isPart && c.part == n.size:
		c.state, c.arrived = coming, true
		return nil
	case c.state == whole && !here:
		c.state, c.fault = damaged, "its content is gone"
		return nil
	case c.state == damaged && !here:
		c.fault = wasDamaged
		return nil
	}
	switch _, sums := have[sumsFile]; {
	case here && size != n.size:
		c.state, c.fault = damaged, also(c.fault, fmt.Sprintf("its content has %d bytes of %d", size, n.size))
	case here:
		c.unrecorded = c.state != whole // the node was stopped before that
		c.state = whole
		if !sums || have[sumsFile] != int64(32*chunksOf(n.size)) {
			c.fault = also(c.fault, noSums)
		}
	}
	return nil
}

// What may be wrong with a content.
const (
	noSums         = "the hashes of its chunks are gone or damaged; they are made again of the content"
	wasDamaged     = "its content was found damaged or gone before, and has not come back"
	notWhatWasKept = "its content is not what was kept"
)

func also(fault, more string) string {
	if fault == "" {
		return more
	}
	return fault + "; " + more
}

// Fault is something that the folder does not hold as it should.
type Fault struct {
	// Lost: the content, or some of it, is not here; else it is, and the rest is made again.
	Lost bool
	// What names the file and its instances, and says what is wrong.
	What string
}

// faults are what is known to be wrong. The caller holds s.mu.
func (s *Store) faults() (out []Fault) {
	for n, c := range s.held {
		if c.fault != "" {
			out = append(out, Fault{c.state == damaged, describe(n, c)})
		}
	}
	slices.SortFunc(out, func(a, b Fault) int { return strings.Compare(a.What, b.What) })
	return out
}

// shownInstances are named of those that have a file.
const shownInstances = 4

// describe says for people what is wrong with which file of which instances.
func describe(n name, c *content) string { return describeAs(n, c, c.fault) }

func describeAs(n name, c *content, fault string) string {
	label := c.label
	if label == "" {
		label = n.String()[:12] + "…"
	}
	of := "no instance that is known of"
	if ids := slices.Sorted(maps.Keys(c.uses)); len(ids) > 0 {
		of = "instance " + strings.Join(ids[:min(len(ids), shownInstances)], ", ")
		if more := len(ids) - shownInstances; more > 0 {
			of += fmt.Sprintf(" and %d more", more)
		}
	}
	return fmt.Sprintf("file %s (%s) of %s: %s", label, workflow.FormatSize(n.size), of, fault)
}

// tell notes that people are to be told what is wrong with a content. The caller holds s.mu,
// but for Open.
func (s *Store) tell(n name, c *content) {
	if c.fault != wasDamaged { // that was told when it was found
		s.news = append(s.news, describe(n, c))
	}
	s.stir()
}

// stir has Topic.Keep look at what there is to do.
func (s *Store) stir() {
	select {
	case s.stirred <- struct{}{}:
	default:
	}
}
