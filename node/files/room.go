package files

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Overhead is what each content counts besides its bytes: three files with their records and blocks, which
// are read at each start, and about 1 KiB of memory. So limits.files bounds also how many there are.
const Overhead = 32 << 10

// ledger is how much room is taken: in all, by others than this node, and by each member. It changes
// with each content, so that a new one costs the same among ten as among a million.
type ledger struct {
	all, others int64
	by          map[string]int64
	steps       int // contents that were weighed, for tests
}

// full is the room that a content takes which is whole, or is to be.
func (c *content) full() int64 { return c.name.size + Overhead }

// bytes is the room that a content takes, or is to take.
func (c *content) bytes() int64 {
	c.room.steps++
	if c.state == whole || len(c.uses) > 0 {
		return c.full()
	}
	return c.part + Overhead
}

// weigh brings the ledger up to date after a change of state, of part, or of whether there are uses.
func (c *content) weigh() {
	is := c.bytes()
	c.room.all += is - c.weighs
	c.weighs = is
}

// become changes the state.
func (c *content) become(st state) {
	c.state = st
	c.weigh()
}

// holds is how much more of the ledger's is a member's from now on (by = 1), or no more (by = -1).
func (l *ledger) holds(member string, bytes int64) {
	if l.by[member] += bytes; l.by[member] == 0 {
		delete(l.by, member)
	}
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
	if c.blocks[u.blockOf()] == nil {
		c.blocks[u.blockOf()] = map[string]bool{}
	}
	c.blocks[u.blockOf()][instance] = true
	c.change(u.blockOf())
	if c.by[u.by]++; c.by[u.by] == 1 {
		c.room.holds(u.by, c.full())
		if c.others() == 1 && u.by != "" {
			c.room.others += c.full()
		}
	}
	c.weigh()
}

// drop takes a use away.
func (c *content) drop(instance string) {
	u, known := c.uses[instance]
	if !known {
		return
	}
	delete(c.uses, instance)
	c.change(u.blockOf())
	if delete(c.blocks[u.blockOf()], instance); len(c.blocks[u.blockOf()]) == 0 {
		delete(c.blocks, u.blockOf())
	}
	if c.by[u.by]--; c.by[u.by] == 0 {
		delete(c.by, u.by)
		c.room.holds(u.by, -c.full())
		if c.others() == 0 && u.by != "" {
			c.room.others -= c.full()
		}
	}
	c.weigh()
}

// others is how many members besides this node have it.
func (c *content) others() int {
	if c.by[""] > 0 {
		return len(c.by) - 1
	}
	return len(c.by)
}

// taken is the room that is taken but for one content (nil: by all): in all, by others than this node,
// and by a member. The caller holds s.mu.
func (s *Store) taken(but *content, by string) (all, others, its int64) {
	all, others, its = s.room.all, s.room.others, s.room.by[by]
	if but == nil {
		return all, others, its
	}
	all -= but.weighs
	if but.by[by] > 0 {
		its -= but.full()
	}
	if but.others() > 0 {
		others -= but.full()
	}
	return all, others, its
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

// share is what others leave to a member of most: each has a quarter of the limit, and all
// together seven eighths. Of both a content takes more than its bytes.
func (s *Store) share(most, others, its int64) int64 {
	return min(most, max(s.o.Limit/4-its-Overhead, 0), max(s.o.Limit/8*7-others-Overhead, 0))
}

// roomOf is how many bytes one new file may have that is kept for instances that a member began
// (empty: this node).
func (s *Store) roomOf(by string) (int64, error) {
	s.mu.Lock()
	all, others, its := s.taken(nil, by)
	s.mu.Unlock()
	most, err := s.within(s.o.Limit - all - Overhead)
	if by != "" {
		most = s.share(most, others, its)
	}
	return most, err
}

// ByLimit reports whether it is the limit, and not the disk, that leaves no more room for one file of this node.
func (s *Store) ByLimit() bool {
	s.mu.Lock()
	most := s.o.Limit - s.room.all - Overhead
	s.mu.Unlock()
	left, err := s.within(most)
	return err == nil && left == max(most, 0)
}

// mayHave returns an error if there is no room for a file, as Use would.
func (s *Store) mayHave(f workflow.File, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomFor(f, by)
}

// roomFor returns an error if an instance that by began (empty: this node) cannot have a file
// for want of room. A content takes room once, and counts for each member whose instances have
// it: so nobody has more than a share when another lets go of it. The caller holds s.mu.
func (s *Store) roomFor(f workflow.File, by string) error {
	if err := s.shareFor(f, by); err != nil {
		return err
	}
	if c := s.held[nameOf(f)]; c != nil && (c.state == whole || len(c.uses) > 0) {
		return nil
	}
	return s.fits(f, 0)
}

// shareFor is roomFor but for the room that the disk has.
func (s *Store) shareFor(f workflow.File, by string) error {
	c := s.held[nameOf(f)]
	most, here := f.Size, c != nil && (c.state == whole || len(c.uses) > 0)
	all, others, its := s.taken(c, by)
	fits := true
	if !here {
		most = s.o.Limit - all - Overhead
		fits = most >= 0
	}
	if by != "" && (c == nil || c.by[by] == 0) {
		most = s.share(most, others, its)
		fits = fits && its+Overhead <= s.o.Limit/4 && others+Overhead <= s.o.Limit/8*7
	}
	if f.Size > most || !fits {
		return &noRoom{file: f, most: max(most, 0)}
	}
	return nil
}

// fits returns an error if the disk has no room for a file, beside what is promised to others: for now, or, if the disk
// is too small for it, for good.
func (s *Store) fits(f workflow.File, promised int64) error {
	if s.o.Space == nil {
		return nil
	}
	free, total, err := s.o.Space()
	if err != nil {
		return err
	}
	left := max(int64(free)-int64(s.o.Reserve), 0)
	switch have, _ := s.part(f); {
	case f.Size-have <= left-promised:
		return nil
	case total > 0 && f.Size > int64(total)-int64(s.o.Reserve):
		return &noRoom{file: f, most: max(int64(total)-int64(s.o.Reserve), 0), disk: true}
	default:
		return &fullDisk{file: f, free: left, promised: promised, needs: f.Size - have}
	}
}

// promise has room on the disk be kept for all that is missing of an order's file, for as long as it comes, if there is
// as much beside what is promised to others: of two for which there is not room enough one comes whole, and not half of
// each. In the limit a file counts whole from its first chunk on. The caller holds t.mu.
func (t *Topic) promise(o *order) error {
	err := t.fits(o.of.file, t.promisedBefore(o))
	if err == nil {
		t.promised[o] = true
	}
	return err
}

// promisedBefore is how much room is promised to others that an order leaves to them: those of the same payer, and
// those that go before its payer's, so that no member's files hold up another's. The caller holds t.mu.
func (t *Topic) promisedBefore(o *order) (bytes int64) {
	for other := range t.promised {
		if other.of == o.of || other.in.of != o.in.of && other.in.of.standing() >= o.in.of.standing() {
			continue
		}
		have, _ := t.part(other.of.file)
		bytes += other.of.file.Size - have
	}
	return bytes
}

// standing is whose files have room before others': less before more.
func (p payer) standing() int {
	switch {
	case p.asked:
		return 0
	case p.by == "":
		return 1
	}
	return 2
}

// noRoom says that a file is not kept for want of room.
type noRoom struct {
	file workflow.File
	most int64
	disk bool // that is too small: nobody's share is used up
}

func (e *noRoom) Error() string {
	size, most := workflow.FormatSize(e.file.Size), workflow.FormatSize(e.most)
	if e.disk {
		return fmt.Sprintf("file %s has %s, and the disk of the node's folder holds %s beside its reserve", e.file.Name, size, most)
	}
	if e.file.Size <= e.most {
		return fmt.Sprintf("file %s cannot be kept: there are as many files as there is room for, each counts %s besides its bytes",
			e.file.Name, workflow.FormatSize(Overhead))
	}
	return fmt.Sprintf("file %s has %s, and there is room for %s here", e.file.Name, size, most)
}

// Coming is a file that is to come, and who began its instance; empty: this node.
type Coming struct {
	File workflow.File
	By   string
}

// Lacks is how many bytes of room there lack for all of these files; limit: where that is so in the limit, or in a
// member's share of it, and not on the disk, the least limit that would do. 0: it is the disk.
func (s *Store) Lacks(files []Coming) (most, limit int64, err error) {
	var disk, fromLimit int64
	shares := map[string]int64{}
	for _, c := range files {
		have, _ := s.Have(c.File)
		disk += c.File.Size - have
		s.mu.Lock()
		if s.held[nameOf(c.File)] == nil {
			shares[c.By] += c.File.Size + Overhead
		}
		s.mu.Unlock()
	}
	if s.o.Space != nil {
		free, _, err := s.o.Space()
		switch {
		case err != nil:
			return 0, 0, err
		case disk > 0: // what the reserve lacks is to be there as well
			most = max(disk+int64(s.o.Reserve)-int64(free), 0)
		}
	}
	for by, size := range shares {
		s.mu.Lock()
		all, others, its := s.taken(nil, by)
		s.mu.Unlock()
		room := max(s.o.Limit-all-Overhead, 0)
		if by != "" {
			room = s.share(room, others, its)
		}
		lacks := size - Overhead - room
		if lacks <= 0 {
			continue
		}
		limit = max(limit, size+all)
		if by != "" { // as share has it
			limit = max(limit, 4*(size+its), (size+others+6)/7*8)
		}
		fromLimit = max(fromLimit, lacks)
	}
	if fromLimit <= most {
		return most, 0, nil
	}
	return fromLimit, limit, nil
}
