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
//	mutirao file whole "plan.pdf"
//	INSTANCE MEMBER proved
//	sum HASH
//
// In place of whole there is another state; a * after it says that instances may be missing.
const (
	recordBegins = "mutirao file "
	recordEnds   = "sum "
	notSure      = "*"
)

// encode is the record of a content.
func (c *content) encode() []byte {
	more := ""
	if c.unsure {
		more = notSure
	}
	b := fmt.Appendf(nil, "%s%s%s %q\n", recordBegins, c.state, more, c.label)
	instances := slices.SortedFunc(maps.Keys(c.uses), func(x, y string) int {
		return cmp.Compare(c.uses[x].number, c.uses[y].number)
	})
	for _, instance := range instances {
		u, how := c.uses[instance], "named"
		if u.proved {
			how = "proved"
		}
		b = fmt.Appendf(b, "%s %s %s\n", instance, u.by, how)
	}
	sum := sha256.Sum256(b)
	return fmt.Appendf(b, "%s%x\n", recordEnds, sum)
}

var errRecord = errors.New("is damaged")

// decode takes in a record.
func (c *content) decode(b []byte) error {
	end := bytes.LastIndex(b, []byte("\n"+recordEnds)) + 1
	sum := sha256.Sum256(b[:end])
	if string(b[end:]) != fmt.Sprintf("%s%x\n", recordEnds, sum) {
		return errRecord
	}
	for line := range strings.Lines(string(b[:end])) {
		line = strings.TrimSuffix(line, "\n")
		if head, first := strings.CutPrefix(line, recordBegins); first {
			st, label, _ := strings.Cut(head, " ")
			label, err := strconv.Unquote(label)
			st, c.unsure = strings.CutSuffix(st, notSure)
			if c.state, c.label = state(st), label; err != nil {
				return errRecord
			}
		} else if words := strings.Split(line, " "); len(words) == 3 {
			c.enter(words[0], use{by: words[1], proved: words[2] == "proved"})
		} else {
			return errRecord
		}
	}
	switch c.state {
	case coming, whole, damaged, going:
		return nil
	}
	return errRecord
}

// record stores what is known of a content, durably. The caller holds s.mu.
func (s *Store) record(n name, c *content) error {
	return s.replace(s.path(n, recordFile), c.encode())
}

// load looks through a folder, and changes nothing there. What is in it is not read, but for
// the records.
func load(dir string) (*Store, error) {
	s := &Store{dir: dir, held: map[name]*content{}, stirred: make(chan struct{}, 1)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	sizes := map[name]map[string]int64{}
	for _, e := range entries {
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
	}
	return s, nil
}

// judge finds out what there is of a content, by the sizes of its files.
func (s *Store) judge(n name, have map[string]int64) error {
	c := s.of(n)
	c.part = have[partFile]
	b, err := os.ReadFile(s.path(n, recordFile))
	if err == nil {
		err = c.decode(b)
	}
	size, here := have[wholeFile]
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errRecord):
		lost := "is gone"
		if errors.Is(err, errRecord) {
			lost = errRecord.Error()
		}
		clear(c.uses)
		clear(c.by)
		c.state, c.unsure, c.label = coming, true, ""
		c.fault = "the record of which instances have it " + lost
	case err != nil:
		return err
	case c.state == going:
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
