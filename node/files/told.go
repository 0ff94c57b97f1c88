package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has those be told who gave a content to this node when all of it is on this node's disk. They cannot know it
// before: their last answer may be lost, and what came may not be on the disk yet. They are told by a request for what
// follows the last byte, which versions before 2026-11-29 refuse; and told again until they have answered.

const (
	// tellAgain is how long it takes until those are told once more who could not be reached or did not answer.
	tellAgain = 30 * time.Second
	// mostGivers are told of one content.
	mostGivers = 16
)

// debt is that a partner which gave some of a content is to be told when all of it is here.
type debt struct {
	to  workflow.PartnerID
	ask string // what it is told by: a wire.FileAsk, encoded
}

// debtTo is the debt to a partner that gives a file for a want.
func debtTo(from workflow.PartnerID, w Want) *debt {
	ask, err := wire.EncodeFileAsk(wire.FileAsk{
		Instance: w.Instance, Item: w.Item, File: w.File.String(), User: w.User, Offset: w.File.Size,
	})
	if err != nil {
		return nil // nor can the file be asked for
	}
	return &debt{from, string(ask)}
}

// owe notes whom to tell of a content, of which something is known here.
func (s *Store) owe(f workflow.File, d *debt) {
	if d == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(f)
	c := s.held[n]
	if c == nil || slices.Contains(c.owed, *d) {
		return
	}
	c.owed = slices.DeleteFunc(c.owed, func(other debt) bool { return other.to == d.to })
	if len(c.owed) < mostGivers {
		c.owed = append(c.owed, *d)
	}
	s.noteOwed(n, c)
}

// told notes that a partner has answered.
func (s *Store) told(n name, d debt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.held[n]; c != nil {
		c.owed = slices.DeleteFunc(c.owed, func(other debt) bool { return other == d })
		s.noteOwed(n, c)
	}
}

// noteOwed stores whom to tell of a content, in a file that has a line for each. It is not synced: where it is lost, its
// giver says that the file is only there until somebody gets it once more. The caller holds s.mu.
func (s *Store) noteOwed(n name, c *content) {
	if len(c.owed) == 0 {
		_ = os.Remove(s.owedFile(n)) // else they are told once more after the next start
		return
	}
	var b []byte
	for _, d := range c.owed {
		b = fmt.Appendf(b, "%s %x\n", d.to, d.ask)
	}
	_ = os.WriteFile(s.owedFile(n), b, 0o600)
}

// owedFile is the file of noteOwed. As its name is none of a content, versions before 2026-11-29 pass it over.
func (s *Store) owedFile(n name) string { return filepath.Join(s.dir, owedBegins+n.String()) }

const owedBegins = "owed-"

// readOwed is whom to tell by such a file. What of it cannot be read is left out.
func readOwed(b []byte) (out []debt) {
	for line := range strings.Lines(string(b)) {
		to, ask, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text, err := hex.DecodeString(ask); err == nil && to != "" {
			out = append(out, debt{workflow.PartnerID(to), string(text)})
		}
	}
	return out
}

// due are those who are to be told now: of what is here whole.
func (s *Store) due() map[name][]debt {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[name][]debt{}
	for n, c := range s.held {
		if c.state == whole && len(c.owed) > 0 {
			out[n] = slices.Clone(c.owed)
		}
	}
	return out
}

// tellGivers has those be told who are to be, until they were, or the node stops.
func (t *Topic) tellGivers() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stopped:
	case !t.telling && len(t.due()) > 0:
		t.telling = true
		t.work.Go(t.tellAll)
	default:
		select {
		case t.tellNow <- struct{}{}:
		default:
		}
	}
}

func (t *Topic) tellAll() {
	for {
		t.tellOnce()
		t.mu.Lock()
		t.telling = t.ctx.Err() == nil && len(t.due()) > 0
		on := t.telling
		t.mu.Unlock()
		if !on {
			return
		}
		select {
		case <-t.in.Clock.After(tellAgain):
		case <-t.tellNow:
		case <-t.ctx.Done():
		}
	}
}

// tellOnce tells each who can be reached, one after the other.
func (t *Topic) tellOnce() {
	silent := map[workflow.PartnerID]bool{}
	for n, debts := range t.due() {
		for _, d := range debts {
			if t.in.Gone(d.to) {
				t.told(n, d)
				continue
			}
			if silent[d.to] || !t.in.Partner.Up(d.to) || t.ctx.Err() != nil {
				continue
			}
			if err := t.tellGiver(t.ctx, d); err != nil {
				silent[d.to] = true
				continue
			}
			t.told(n, d)
		}
	}
}

// tellGiver tells one. An error: it did not answer, or cannot say yet whether this node may read the file. Any other
// answer ends it: who says that this node may not read the file does not count it as somebody who has it.
func (t *Topic) tellGiver(ctx context.Context, d debt) error {
	_, err := t.in.Partner.Request(ctx, d.to, nil, Protocol, []byte(d.ask), askWait)
	a := answer(nil)
	if errors.As(err, &a) && !strings.Contains(a.Answer(), ErrNotNow.Error()) &&
		!strings.Contains(a.Answer(), errTooMuch.Error()) {
		return nil
	}
	return err
}
