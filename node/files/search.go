package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says which partners are asked for a file, and who waits for their answers. Waiting takes
// no turn from others: a partner that takes requests and answers none costs those who have files that
// come next to nothing, and is asked last and more and more rarely.

const (
	// patience is how long an answer may take before another partner is asked beside, and others have
	// the turn meanwhile.
	patience = time.Second
	// atOnce is how many partners are asked at once whether they have a file.
	atOnce = 3
	// muteAfter is how long a partner must have been silent to be mute; firstMute and maxMute are for
	// how long it is not asked then. Twice as long each time, until it answers anything.
	muteAfter = 5 * time.Second
	firstMute = 30 * time.Second
	maxMute   = 10 * time.Minute
	// maxSooner is how often in a row one is asked sooner, as nothing at all was heard of it while it did not
	// answer, and something is again: the link was cut, most likely.
	maxSooner = 3
	// tries are how many that were mute are asked at once whether they still are.
	tries = 2
	// remembered is of how many partners it is known that they were mute.
	remembered = 4096

	// lendable are how many files wait for answers while others have their turn, with the shares that
	// turns have: each costs a goroutine, and what comes of it is a chunk.
	lendable     = 16
	memberLends  = lendable / 4
	othersLends  = lendable / 8 * 7
	vainTurns    = othersTurns / 2 // turns for lines of members whose last one waited for mute partners or slow ones only
	saidMuteText = "did not answer lately, it is asked again in %s"
)

// mute is what is known of a partner that did not answer.
type mute struct {
	until time.Duration // (Awake) it is not asked
	pause time.Duration // how long that was
	tried bool          // it is asked now whether it still is
	// deaf is when (Boot) nothing at all had been heard of it for a while; 0: something was. sooner is how often it was
	// asked sooner since it answered last.
	deaf   time.Duration
	sooner int
}

// search asks the partners of a file whether they have it.
type search struct {
	t       *Topic
	x       *wanted
	o       *order
	ctx     context.Context
	cancel  context.CancelCauseFunc
	left    []workflow.PartnerID
	asked   int
	more    bool // one more is asked beside these
	answers chan found
	ready   []found // of these, taken out already
}

// found is what a partner answered that was asked whether it has a file.
type found struct {
	from   workflow.PartnerID
	chunks sums
	err    error
}

func (t *Topic) search(ctx context.Context, x *wanted, o *order, from []workflow.PartnerID) *search {
	s := &search{t: t, x: x, o: o, left: t.sorted(from), answers: make(chan found, atOnce)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// errSilent is why partners are not waited for any longer: they do not answer, and others wait for the turn.
var errSilent = errors.New("did not answer at once, and others wait for their turn")

// next is what the next partner answers; false: there is no other. While none does, others are
// asked beside it, and the order's turn is lent, or given up if as many as may wait for answers already.
// What was lent is taken back when a partner has the file, and not before: to hear that one has not,
// and to ask the next, takes no turn.
func (s *search) next() (found, bool) {
	if len(s.ready) > 0 {
		a := s.ready[0]
		s.ready = s.ready[1:]
		return a, true
	}
	for {
		for (s.more || s.asked == 0) && s.asked < atOnce && len(s.left) > 0 {
			p := s.left[0]
			s.left = s.left[1:]
			if why := s.t.passedOver(p, s.x.Urgent); why != nil {
				return found{from: p, err: why}, true
			}
			s.ask(p)
			s.more = false
		}
		if s.asked == 0 {
			return found{}, false
		}
		select {
		case a := <-s.answers:
			if s.asked--; a.err == nil {
				s.t.takeBack(s.o)
			}
			return a, true
		case <-s.t.in.Clock.After(patience):
			s.more = true
			if !s.t.lend(s.o) {
				s.cancel(errSilent)
				return found{err: errSilent}, true
			}
		}
	}
}

// ask asks a partner for the hashes of the chunks: whoever has a file has these, and they are short.
func (s *search) ask(p workflow.PartnerID) {
	s.asked++
	c := s.o.of
	s.t.note(func() { c.asked = append(c.asked, p) })
	s.t.work.Go(func() {
		in, end := s.t.takeIn(p)
		b, err := s.t.ask(s.ctx, p, in, s.x.Want, true, 0)
		end()
		s.t.note(func() {
			if i := slices.Index(c.asked, p); i >= 0 {
				c.asked = slices.Delete(c.asked, i, i+1)
			}
		})
		a := found{from: p, err: err}
		if err == nil {
			a.chunks, a.err = readSums(b, s.x.File)
		}
		s.answers <- a
	})
}

// passedOver is why a partner is not asked now, of which an urgent want is not to wait for those that are
// away; nil: it is.
func (t *Topic) passedOver(p workflow.PartnerID, urgent bool) error {
	if t.in.Gone(p) {
		return errGone
	}
	if !t.in.Partner.Up(p) {
		switch {
		case !t.in.Away(p):
			return errors.New("cannot be reached")
		case urgent:
			return errAway
		}
		return errors.New("is away, and may come back with it")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.mutes[p]
	if m == nil {
		return nil
	}
	if m.deaf > 0 && m.sooner < maxSooner && t.in.Partner.Heard(p) > m.deaf {
		m.until, m.deaf = 0, 0
		m.sooner++
	}
	if wait := m.until - t.in.Clock.Now().Awake; wait > 0 || m.tried || t.tried >= tries {
		return fmt.Errorf(saidMuteText, workflow.FormatDuration(max(wait, time.Second).Round(time.Second)))
	}
	m.tried = true
	t.tried++
	return nil
}

// Why a partner is not asked that will not be back, or is not waited for.
var (
	errGone = errors.New("is gone for good")
	errAway = errors.New("is away, and is not waited for")
)

// heard notes whether a partner answered a request, after such a time.
func (t *Topic) heard(p workflow.PartnerID, answered bool, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, now := t.mutes[p], t.in.Clock.Now()
	before := m != nil && !m.tried && m.until > now.Awake // that it is mute: this was asked before that was known
	if m != nil && m.tried {
		m.tried = false
		t.tried--
	}
	switch {
	case answered:
		delete(t.mutes, p)
		return
	case took < muteAfter, before: // the link broke, or nobody wants it any more
		return
	case m == nil:
		if t.forgetMutes(); len(t.mutes) >= remembered {
			return
		}
		m = &mute{}
		t.mutes[p] = m
	}
	m.pause = min(max(2*m.pause, firstMute), maxMute)
	if m.until, m.deaf = now.Awake+m.pause, 0; now.Boot-t.in.Partner.Heard(p) >= muteAfter {
		m.deaf = now.Boot
	}
}

// forgetMutes makes room for another partner that is mute, if there is none. The caller holds t.mu.
func (t *Topic) forgetMutes() {
	if len(t.mutes) < remembered {
		return
	}
	now := t.in.Clock.Now().Awake
	maps.DeleteFunc(t.mutes, func(_ workflow.PartnerID, m *mute) bool { return !m.tried && m.until <= now })
}

// isMute reports whether a partner did not answer lately.
func (t *Topic) isMute(p workflow.PartnerID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mutes[p] != nil
}

// sorted are the partners in the order in which they are asked: those that are connected first, and
// of these those late that gave a file slowly lately, and those last that did not answer.
func (t *Topic) sorted(from []workflow.PartnerID) []workflow.PartnerID {
	var ranks [4][]workflow.PartnerID
	for _, p := range from {
		rank := 3
		if t.in.Partner.Up(p) {
			rank = 0
		}
		ranks[rank] = append(ranks[rank], p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mutes)+len(t.slow) > 0 {
		ranks[0] = slices.DeleteFunc(ranks[0], func(p workflow.PartnerID) bool {
			switch {
			case t.mutes[p] != nil:
				ranks[2] = append(ranks[2], p)
			case t.isSlow(p):
				ranks[1] = append(ranks[1], p)
			default:
				return false
			}
			return true
		})
	}
	return slices.Concat(ranks[:]...)
}

// lend gives the turn of an order that waits for answers to others. It reports whether the order may go on
// to wait: if as many as may wait already, and others have no turn, it may not for long.
func (t *Topic) lend(o *order) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, now := o.in, t.in.Clock.Now().Awake
	full := t.lent >= lendable || l.of.by != "" && (t.lentOfOthers >= othersLends || l.lent >= memberLends)
	if o.lent || full {
		return !full || !t.crowded || o.lent && now-o.lentAt < slice
	}
	o.lent, o.lentAt = true, now
	t.countLent(o, 1)
	t.takes(o, -1)
	t.rouse()
	return true
}

// takeBack has an order go on in its turn, also if there is one too many now: it yields to another
// after the next chunk.
func (t *Topic) takeBack(o *order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !o.lent {
		return
	}
	o.lent = false
	t.countLent(o, -1)
	t.takes(o, 1)
}

// giveUp has an order have no turn any more, which it may have lent. The caller holds t.mu.
func (t *Topic) giveUp(o *order) {
	if !o.lent {
		t.takes(o, -1)
		return
	}
	o.lent = false
	t.countLent(o, -1)
}

// countLent counts turns that are lent. The caller holds t.mu.
func (t *Topic) countLent(o *order, by int) {
	t.lent += by
	o.in.lent += by
	if o.in.of.by != "" {
		t.lentOfOthers += by
	}
}
