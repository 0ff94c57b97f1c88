package worklists

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file has a list at another node follow what changes here. A node hears nothing of an instance in which it takes
// no part, so whoever looks at a list there would see what it is only after the next question. Those that asked lately
// are told that their answer is another by now, and nothing more: they ask, if anybody still looks.

const (
	// toldFor is for how long a partner is told after it asked for a list. A page that somebody looks at asks more
	// often than that.
	toldFor = 45 * time.Second
	// tellEvery is the least time between two looks for what changed, so the most often that a partner is told.
	tellEvery = time.Second
	// maxTold bounds the lists of others that are followed, maxToldOne those of one partner.
	maxTold    = 256
	maxToldOne = 16
)

// tellRation is how often a partner may say that a list changed.
var tellRation = ration.Ration{Burst: 20, Each: tellEvery / 2}

// changes are the lists of users at other nodes that are followed.
type changes struct {
	mu      sync.Mutex // guards what follows; nothing else is done while it is held
	of      map[asker]*followed
	changed bool          // since the last look
	next    time.Duration // Awake: when it is looked again, at the earliest
	looking bool
}

// asker is a user at a partner's node.
type asker struct {
	at   workflow.PartnerID
	user string
}

func (a asker) compare(b asker) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.user, b.user))
}

// followed is a list that was asked for.
type followed struct {
	asked time.Duration // Awake
	said  [sha256.Size]byte
}

// follow notes what a partner was answered for one of its users. At the bound those go first that asked first.
func (c *changes) follow(of asker, rows []Row, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[asker]*followed{}
	}
	delete(c.of, of)
	oldest := func(among func(asker) bool) {
		var first asker
		for a, f := range c.of {
			if among(a) && (c.of[first] == nil || cmp.Or(cmp.Compare(f.asked, c.of[first].asked), a.compare(first)) < 0) {
				first = a
			}
		}
		delete(c.of, first)
	}
	one := 0
	for a := range c.of {
		if a.at == of.at {
			one++
		}
	}
	if one >= maxToldOne {
		oldest(func(a asker) bool { return a.at == of.at })
	}
	if len(c.of) >= maxTold {
		oldest(func(asker) bool { return true })
	}
	c.of[of] = &followed{asked: now, said: gist(rows)}
}

// gist tells two lists apart by what people see of them; what only passes with time is left out.
func gist(rows []Row) [sha256.Size]byte {
	h := sha256.New()
	for _, r := range rows {
		b, err := json.Marshal([]any{
			r.ID(), r.Mine, r.Grant, r.Other, r.Over, r.Handed, r.Lost, r.Role, r.Priority, r.Offline, r.WaitsFor,
			r.Shared, r.Awaits, r.HeldUp, r.PutOff, !r.Begun.IsZero(),
		})
		if err == nil {
			h.Write(b)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Changed is told that an instance changed here in which people have work.
func (d *Desk) Changed() {
	c := &d.changes
	c.mu.Lock()
	first := !c.changed && len(c.of) > 0
	c.changed = c.changed || len(c.of) > 0
	c.mu.Unlock()
	if first {
		d.in.Nudge()
	}
	d.loadsChanged()
}

// mindChanges has those told whose lists changed, and says in what time it is to be called again.
func (d *Desk) mindChanges(now moment.Now) time.Duration {
	next, look := d.changes.due(now)
	if look {
		d.in.Aside(d.lookForChanges)
	}
	return next
}

// due reports whether lists are to be looked at now, and says in what time it is to be asked again.
func (c *changes) due(now moment.Now) (next time.Duration, look bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, f := range c.of {
		if now.Awake-f.asked > toldFor {
			delete(c.of, a)
		}
	}
	switch {
	case !c.changed, c.looking, len(c.of) == 0:
		return moment.Never, false
	case now.Awake < c.next:
		return c.next - now.Awake, false
	}
	c.changed, c.looking, c.next = false, true, now.Awake+tellEvery
	return moment.Never, true
}

// lookForChanges has those told whose lists changed.
func (d *Desk) lookForChanges() {
	d.tellChanges()
	c := &d.changes
	c.mu.Lock()
	c.looking = false
	again := c.changed
	c.mu.Unlock()
	if again {
		d.in.Nudge() // nobody wakes for it any more
	}
}

// tellChanges tells each partner once in which a list that it asked for is another by now. It asks for it when somebody
// looks at it, and is followed from then on.
func (d *Desk) tellChanges() {
	c := &d.changes
	c.mu.Lock()
	of := make([]asker, 0, len(c.of))
	for a := range c.of {
		of = append(of, a)
	}
	c.mu.Unlock()
	slices.SortFunc(of, asker.compare)
	ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
	defer cancel()
	tell := map[workflow.PartnerID]bool{}
	for _, a := range of {
		if !d.in.Peers.Up(a.at) {
			continue // it asks when it is back
		}
		rows, err := d.itemsHere(ctx, a, everywhere, d.in.Instances.Items)
		if err != nil {
			continue
		}
		is := gist(rows)
		c.mu.Lock()
		if f := c.of[a]; f != nil && f.said != is {
			f.said = is
			tell[a.at] = true
		}
		c.mu.Unlock()
	}
	d.askEach(func(p workflow.PartnerID) error {
		if !tell[p] {
			return nil
		}
		_, err := d.in.Peers.Request(ctx, p, nil, ProtocolChanged, nil, listPatience)
		return err // it is of an earlier version, or just gone; its next question is answered all the same
	})
}

// itemsHere are the items that this node holds, of one instance or of all, for a person at a partner's node: those that
// the person has, and of the others those that have waited longest.
func (d *Desk) itemsHere(ctx context.Context, of asker, only workflow.InstanceID, list listing) ([]Row, error) {
	rows, err := list(ctx, worklist.User(of.user), of.at, only)
	if err != nil {
		return nil, err
	}
	return d.ours(rows), nil
}

// ours are the rows of what this node holds, as many as an answer has.
func (d *Desk) ours(rows []Row) []Row {
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.At != d.in.Self })
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.concern(), a.concern()), a.Since.Compare(b.Since))
	})
	return rows[:min(len(rows), maxRows)]
}

var errMalformed = errors.New("that a list changed is said without any more words")

// AnswerChanged is told by a partner that it would answer this node otherwise by now.
func (d *Desk) AnswerChanged(from workflow.PartnerID, req []byte) ([]byte, error) {
	now := d.in.Clock.Now()
	switch {
	case len(req) > 0:
		return nil, errMalformed
	case !d.tells.Spend(from, 1, now.Awake):
		d.in.Peers.Refuse("items-news-too-fast", from)
		return nil, errTooOften
	}
	d.in.Publish(api.Event{At: now.Wall, Kind: "worklist", Partner: d.in.Name(from), Text: "changed"})
	return nil, nil
}
