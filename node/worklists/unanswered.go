package worklists

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file finds locks that were asked for at this device and that it does not keep: their holder's answer was lost,
// or the device went down before it had them on its disk. Nothing is written down for that before a holder is asked, as
// that one says at which node a lock was asked for, and proves it by the word that was signed there. So each holder is
// asked once it is met after a start, after a lock that it did not answer, and where a list has such a lock.

const (
	// doubtSoon is after what time a holder is asked that did not answer, or whose list has such a lock: its answer may
	// just be on its way. doubtAgain is after what time it is asked once more: it may have carried out a lock after it
	// was asked about it. That doubles up to doubtMost where it does not answer, or this device cannot keep what it
	// gave.
	doubtSoon, doubtAgain, doubtMost = 5 * time.Second, time.Minute, time.Hour
	// doubtLooks is how often it has to say that there is nothing more.
	doubtLooks = 2
)

// doubt is that a partner may have given a user locks that this device does not keep.
type doubt struct {
	next  time.Duration // Awake: from when on it is asked
	pause time.Duration // after what time once more
	left  int           // how often it has to say yet that there is nothing more
}

// doubts has a partner be asked after a while for locks that a user got of it and that are not kept here.
func (d *Desk) doubts(p workflow.PartnerID, user string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unsure[asker{p, user}] = &doubt{next: d.in.Clock.Now().Awake + doubtSoon, pause: doubtAgain, left: doubtLooks}
	d.in.Nudge()
}

// doubtsMet has a partner that was just connected be asked, if it was not since this device was started, or is to be
// asked once more.
func (d *Desk) doubtsMet(p workflow.PartnerID) {
	here := d.in.People.Here()
	now := d.in.Clock.Now().Awake
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, who := range here {
		of := asker{p, who.ID}
		if !d.doubted[of] {
			d.doubted[of], d.unsure[of] = true, &doubt{left: doubtLooks}
		}
		if x := d.unsure[of]; x != nil {
			x.next, x.pause = now, doubtAgain
			d.in.Nudge()
		}
	}
}

// noticeLocks has a partner be asked again that lists a lock which is not kept here, unless its user takes something
// just now: that is kept in a moment.
func (d *Desk) noticeLocks(who users.Who, p workflow.PartnerID, rows []Row) {
	lost := func(r Row) bool { return d.lockedHere(&r) && d.keptFor(who.ID, r.ID()) == nil }
	if !slices.ContainsFunc(rows, lost) {
		return
	}
	d.mu.Lock()
	known := d.takes[who.ID] != 0 || d.unsure[asker{p, who.ID}] != nil
	d.mu.Unlock()
	if !known {
		d.doubts(p, who.ID)
	}
}

// lockedHere reports whether the holder of an item says that its user locked it at this device, where nothing gives it
// back by itself, as a joint lock is given back that came to nothing.
func (d *Desk) lockedHere(r *Row) bool {
	return r.Mine == worklist.Lock && r.From == d.in.Self && r.At != d.in.Self && !r.Joint && !r.PutOff
}

// mindDoubts has partners asked, and says after what time it is to be called again.
func (d *Desk) mindDoubts(now moment.Now) time.Duration {
	next, due := d.dueDoubts(now)
	if len(due) == 0 {
		return next
	}
	d.in.Aside(func() { // which may be done at once
		_ = d.askEach(func(p workflow.PartnerID) error {
			for _, of := range due[p] {
				d.doubtsLess(of, d.keepFound(of))
			}
			return nil
		})
		d.mu.Lock()
		d.doubting = false
		d.mu.Unlock()
		d.in.Nudge()
	})
	return next
}

// dueDoubts is who is to be asked now, none: nobody, and in what time it is to be looked again.
func (d *Desk) dueDoubts(now moment.Now) (next time.Duration, due map[workflow.PartnerID][]asker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if next = moment.Never; d.doubting {
		return next, nil // its end wakes the node
	}
	due = map[workflow.PartnerID][]asker{}
	for of, x := range d.unsure {
		switch {
		case !d.in.Peers.Up(of.at): // it is asked when it is connected
		case now.Awake >= x.next:
			due[of.at] = append(due[of.at], of)
		default:
			next = min(next, x.next-now.Awake)
		}
	}
	if d.doubting = len(due) > 0; !d.doubting {
		return next, nil
	}
	for _, of := range due {
		slices.SortFunc(of, asker.compare)
	}
	return moment.Never, due
}

// doubtsLess notes that a partner was asked: whether it said all, and all of it is kept.
func (d *Desk) doubtsLess(of asker, whole bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.unsure[of]
	if x == nil {
		return
	}
	if whole {
		x.left, x.pause = x.left-1, doubtAgain
	}
	x.next = d.in.Clock.Now().Awake + x.pause
	if x.pause = min(2*x.pause, doubtMost); x.left <= 0 {
		delete(d.unsure, of)
	}
}

// keepFound keeps the locks that a partner gave a user here and that are not kept. It reports whether the partner said
// all, and all of it is kept.
func (d *Desk) keepFound(of asker) bool {
	who, err := d.in.People.Who(of.user)
	if err != nil {
		return true // nobody here can do anything of it any more
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
	defer cancel()
	rows, err := d.askOne(ctx, who, of.at, everywhere)
	if err != nil {
		return false
	}
	whole := true
	for i := range rows {
		if r := &rows[i]; d.lockedHere(r) && !d.keepsWhole(who, r) {
			if err := d.keepLost(ctx, who, r); err != nil {
				d.in.Log.Warn("a lock that was not answered cannot be kept", "task", r.Task, "holder", r.At, "error", err)
				whole = false
			}
		}
	}
	return whole
}

// keepsWhole reports whether a lock is kept with what is needed to do it, or with what was done of it.
func (d *Desk) keepsWhole(who users.Who, r *Row) bool {
	k := d.keptFor(who.ID, r.ID())
	return k != nil && (len(k.Word) > 0 || k.more().Sheet != nil)
}

// keepLost keeps one of them, as it stands now: it may have been given back or done since its holder listed it.
func (d *Desk) keepLost(ctx context.Context, who users.Who, r *Row) error {
	over, err := d.turn(ctx, who, r)
	if err != nil {
		return err
	}
	defer over()
	rows, err := d.askOne(ctx, who, r.At, r.Instance)
	if err != nil {
		return err
	}
	i := rowOf(rows, r.ID())
	if i < 0 || !d.lockedHere(&rows[i]) || d.keepsWhole(who, &rows[i]) || d.isElsewhere(ctx, who, &rows[i]) {
		return nil
	}
	r = &rows[i]
	s, word := d.askSheetOf(ctx, who, r)
	if s == nil {
		return errNoAnswer
	}
	if !d.askedHere(who, r, word) {
		return nil // nobody has to be believed that this device asked for it
	}
	return d.keepOne(ctx, who, r, s)
}

// isElsewhere reports whether another partner holds an item, as is known here.
func (d *Desk) isElsewhere(ctx context.Context, who users.Who, r *Row) bool {
	if r.At == d.in.Self || !d.in.Instances.Here(r.Instance) {
		return false
	}
	rows, err := d.in.Instances.Items(ctx, worklist.User(who.ID), d.in.Self, r.Instance)
	return err != nil || slices.ContainsFunc(rows, func(x Row) bool { return x.ID() == r.ID() && x.At != r.At })
}

// askedHere reports whether a word is one by which its user asked for a lock of an item at this device.
func (d *Desk) askedHere(who users.Who, r *Row, word []byte) bool {
	c, err := wire.DecodeSpoken(word)
	if err != nil {
		return false
	}
	body, err := worklist.Decode(c.Says)
	g, is := body.(worklist.Grant)
	signed := fact.SpokenOf(c.Instance, c.Says, c.Nonce)
	return err == nil && is && g.Mode == worklist.Lock && c.Instance == r.Instance && slices.Contains(g.Items, r.Item) &&
		d.in.People.Speaker(c.Word, signed) == who.ID && d.in.People.MaySpeak(c.Word, signed, d.in.Self) == nil
}
