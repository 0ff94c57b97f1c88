package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Mention is that an instance here has a file among its data, now or before.
type Mention struct {
	File     workflow.File
	Instance workflow.InstanceID
	Item     workflow.DataName
	// By began the instance; empty: this node.
	By workflow.PartnerID
	// Gave: this node gave the file there, so that its content was here.
	Gave bool
}

// Findings takes what is found wrong.
type Findings interface {
	OK(check, format string, args ...any)
	Warn(check, what, mend string)
	Wrong(check, what, mend string)
}

// check is what this is called among the findings of doctor.
const check = "content"

// The pauses after which it is tried again to get what the disk lost.
const (
	firstMend = 5 * time.Second
	maxMend   = time.Hour
	// mendFor is how long one file is tried before another has its turn.
	mendFor = 10 * time.Minute
)

// Keep reads what is here once after the start, says what was lost, gets it from partners where
// an instance has it, and removes what no instance has any more. It returns when ctx ends.
func (t *Topic) Keep(ctx context.Context) {
	var mending sync.WaitGroup
	defer mending.Wait()
	busy := make(chan struct{}, 1)
	pause := firstMend
	for first := true; ctx.Err() == nil; first = false {
		t.tend(ctx, first)
		var again <-chan time.Time
		if t.anyDamaged() {
			select {
			case busy <- struct{}{}:
				mending.Go(func() { t.mend(ctx); <-busy })
			default:
			}
			again = t.in.Clock.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-t.stirred:
			pause = firstMend
		case <-again:
			pause = min(2*pause, maxMend)
		}
	}
}

// tend is one round of Keep.
func (t *Topic) tend(ctx context.Context, first bool) {
	t.say()
	now := t.in.Clock.Now().Wall
	if first || t.unsure(now) {
		if err := t.recall(ctx, now); err != nil {
			t.in.Log.Error("which instances have which files could not be stored", "error", err)
		}
	}
	for _, n := range t.readOrder(false) {
		if _, err := t.verify(ctx, n); err != nil && ctx.Err() == nil {
			t.in.Log.Error("a file could not be verified", "file", n, "error", err)
		}
	}
	t.say()
	if t.sweepDue.Swap(false) {
		removed, err := t.Sweep(t.in.Instances.Here, now)
		if err != nil {
			t.in.Log.Error("files could not be removed", "error", err)
		}
		if removed > 0 {
			t.in.Log.Info("files were removed that no instance has any more", "number", removed)
			t.roomFreed()
		}
	}
}

// say tells people what was found lost since it was called last.
func (t *Topic) say() {
	t.Store.mu.Lock()
	news := slices.Clone(t.news[t.said:])
	t.said = len(t.news)
	if t.said > maxNews {
		t.news, t.said = nil, 0
	}
	t.Store.mu.Unlock()
	for _, what := range news {
		if t.in.Lost != nil {
			t.in.Lost(what)
		}
	}
}

// maxNews is how much of what was lost is remembered, for a Diagnose that is under way.
const maxNews = 4096

// newsSince is what was found lost since there was so much of it.
func (s *Store) newsSince(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > len(s.news) {
		n = 0
	}
	return slices.Clone(s.news[n:])
}

// unsure reports whether something is about to be removed, or was recorded no more: then the
// instances are asked which files they have.
func (s *Store) unsure(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.held {
		if c.unsure || s.unused(c, now) {
			return true
		}
	}
	return false
}

// recall asks the instances here which files they have: what the records have lost is entered
// again, and what was given here and is not held at all was lost.
func (t *Topic) recall(ctx context.Context, now time.Time) (err error) {
	if t.in.Mentions == nil {
		return nil
	}
	mentioned := map[name]Mention{}
	complete := t.in.Mentions(ctx, func(m Mention) {
		noRoom, trouble := t.remember(m, now)
		if noRoom != nil {
			t.in.Partner.Refuse("files-beyond-room", m.By)
			t.in.Log.Warn("a file is let go of that an instance has", "instance", m.Instance, "error", noRoom)
		}
		err = errors.Join(err, trouble)
		if t.holds(m.File) {
			mentioned[nameOf(m.File)] = m
		}
	})
	t.Store.mu.Lock()
	defer t.Store.mu.Unlock()
	t.mentioned = mentioned
	if !complete || ctx.Err() != nil {
		return err
	}
	for n, c := range t.held {
		if c.unsure && len(c.uses) > 0 { // else a user may keep it, of an instance elsewhere
			c.unsure = false
			if c.state != damaged {
				c.fault = ""
			}
			err = errors.Join(err, t.record(n, c))
		}
	}
	return err
}

// holds reports whether anything is known of a content.
func (s *Store) holds(f workflow.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[nameOf(f)] != nil
}

// remember enters what an instance has, where the records do not know it and that matters. It
// returns why it did not for want of room.
func (s *Store) remember(m Mention, now time.Time) (noRoom, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, instance := nameOf(m.File), m.Instance.String()
	c := s.held[n]
	switch {
	case c == nil && !m.Gave:
		return nil, nil
	case c == nil:
		c = s.of(n)
		c.since, c.unsure = now, true
	case !c.unsure && !s.unused(c, now):
		return nil, nil
	case c.state == going:
		s.revive(n, c)
	}
	if _, known := c.uses[instance]; known {
		return nil, nil
	}
	if !c.unsure {
		if err := s.shareFor(m.File, string(m.By)); err != nil {
			return err, nil
		}
	}
	if c.label == "" {
		c.label = m.File.Name
	}
	c.enter(instance, use{by: string(m.By), proved: m.Gave})
	if m.Gave && c.state == coming {
		c.fault = "its content is gone"
		c.become(damaged)
		s.tell(n, c)
	}
	if err = s.record(n, c); err != nil {
		c.drop(instance)
	}
	return nil, err
}

func (s *Store) anyDamaged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.held {
		if c.state == damaged && len(c.uses) > 0 {
			return true
		}
	}
	return false
}

// mend gets what was lost from partners that are in reach, where an instance here has it.
func (t *Topic) mend(ctx context.Context) {
	t.Store.mu.Lock()
	var lost []Mention
	asked := false
	for n, c := range t.held {
		if c.state != damaged || len(c.uses) == 0 {
			continue
		}
		m, known := t.mentioned[n]
		if !known {
			asked = true
			continue
		}
		m.File.Name = c.label
		lost = append(lost, m)
	}
	t.Store.mu.Unlock()
	if asked { // the instance came after the last time
		if err := t.recall(ctx, t.in.Clock.Now().Wall); err != nil {
			t.in.Log.Error("which instances have which files could not be stored", "error", err)
		}
	}
	for _, m := range lost {
		if ctx.Err() != nil || t.in.Want == nil {
			return
		}
		w := t.in.Want(m)
		from, err := w.From(ctx)
		if err != nil || !slices.ContainsFunc(from, t.in.Partner.Up) {
			continue
		}
		within, cancel := context.WithTimeout(ctx, mendFor)
		err = t.Fetch(within, w)
		cancel()
		if err != nil && ctx.Err() == nil {
			t.in.Log.Warn("a file that the disk lost could not be fetched again", "file", m.File.Name,
				"instance", m.Instance, "error", err)
		} else if err == nil {
			t.in.Log.Info("a file that the disk lost was fetched again", "file", m.File.Name, "instance", m.Instance)
		}
	}
}

// examineFor is for how long Diagnose reads at most: people wait for it.
const examineFor = 15 * time.Second

// Diagnose looks for everything that should be here, and reads it again, as far as there is
// time: first what was read longest ago.
func (t *Topic) Diagnose(ctx context.Context, to Findings) {
	before := len(t.newsSince(0))
	if err := t.lookAtAll(); err != nil {
		to.Wrong(check, "the folder of files cannot be read or written: "+err.Error(),
			"look at the disk of the node's folder")
	}
	within, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	var read, size, unread int64
	kept := t.readOrder(true)
	for _, n := range kept {
		ok, err := t.verify(within, n)
		switch {
		case within.Err() != nil:
			unread += n.size
		case err != nil:
			to.Wrong(check, fmt.Sprintf("the content %s cannot be verified: %v", n, err),
				"look at the disk of the node's folder")
		case ok:
			read, size = read+1, size+n.size
		}
	}
	t.Store.mu.Lock()
	wrong := t.faults()
	t.Store.mu.Unlock()
	t.say()
	mended := slices.DeleteFunc(t.newsSince(before), func(what string) bool {
		return slices.ContainsFunc(wrong, func(f Fault) bool { return f.What == what })
	})
	for _, what := range mended {
		to.Warn(check, what, "nothing: it was mended. Look at the disk, which may be failing")
	}
	if why := t.Unkept(); why != "" {
		to.Wrong(check, why, "free room on the disk of the node's folder (or mend it): files go on to come by themselves")
	}
	tellFaults(to, wrong, "a partner that has it is asked as soon as it can be reached (mutirao data list INSTANCE shows how it comes)")
	if unread > 0 {
		to.Warn(check, fmt.Sprintf("%s of files were read, and %s could not be in %s", workflow.FormatSize(size),
			workflow.FormatSize(unread), workflow.FormatDuration(examineFor)),
			"ask again: it goes on with those. Each is verified in any case before anybody gets it")
	} else if len(wrong)+len(mended) == 0 && t.Unkept() == "" {
		to.OK(check, "%d files among the data of instances were read (%s) and are what was kept", read,
			workflow.FormatSize(size))
	}
}

// tellFaults says what is wrong, and what to do.
func tellFaults(to Findings, wrong []Fault, then string) {
	for _, f := range wrong {
		if !f.Lost {
			to.Warn(check, f.What, "nothing: it is made again. Look at the disk, which may be failing")
			continue
		}
		to.Wrong(check, f.What, then+". If nobody has it any more, give the same file again, with --file of any command; look at the disk, which may be failing")
	}
}

// Report says what Examine found.
func Report(to Findings, wrong []Fault, kept int) {
	tellFaults(to, wrong, "start the node: partners that have it are asked for it")
	if len(wrong) == 0 {
		to.OK(check, "%d files among the data of instances can be read and are what was kept", kept)
	}
}

// lookAtAll looks, without reading content, whether all that should be here is.
func (t *Topic) lookAtAll() (err error) {
	t.Store.mu.Lock()
	names := make([]name, 0, len(t.held))
	for n := range t.held {
		names = append(names, n)
	}
	t.Store.mu.Unlock()
	for _, n := range names {
		err = errors.Join(err, t.look(n))
	}
	return err
}

// look looks whether the record and the content of one are there.
func (s *Store) look(n name) error {
	s.mu.Lock()
	c := s.held[n]
	if c == nil { // it was removed
		s.mu.Unlock()
		return nil
	}
	err := s.read(n, newContent(n, &ledger{by: map[string]int64{}}))
	if errors.Is(err, errRecord) || errors.Is(err, fs.ErrNotExist) { // what it said is known here
		s.news = append(s.news, describeAs(n, c,
			"the record of which instances have it was gone or damaged, and was written again"))
		for block := range c.blocks {
			c.change(block)
		}
		c.stored = ""
		err = s.record(n, c)
	}
	isWhole := c.state == whole
	s.mu.Unlock()
	if !isWhole || err != nil {
		return err
	}
	r, err := os.Open(s.path(n, wholeFile))
	if err != nil {
		return s.missed(n.file(), err)
	}
	defer r.Close() // it was only read
	if info, err := r.Stat(); err == nil && info.Size() != n.size {
		return s.damaged(n, r, fmt.Sprintf("its content has %d bytes of %d", info.Size(), n.size))
	}
	return nil
}
