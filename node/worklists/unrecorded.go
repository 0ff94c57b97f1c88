package worklists

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about items that were locked at this device and of which their holder has no record any more, as where
// it was put back from an older copy. It gives no reason then why their users lost them, so the device does.

// unexplains notes that a partner does not list an item any more that is kept here as locked: it is asked about the
// instance, since of one that has ended it says nothing else.
func (d *Desk) unexplains(user string, r Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unexplained[user] == nil {
		d.unexplained[user] = map[string]Row{}
	}
	d.unexplained[user][r.ID()] = r
}

// explain asks a partner about items of which it did not say why their user has them no more.
func (d *Desk) explain(ctx context.Context, who users.Who, p workflow.PartnerID) error {
	of := map[workflow.InstanceID][]Row{}
	d.mu.Lock()
	for _, r := range d.unexplained[who.ID] {
		if r.At == p {
			of[r.Instance] = append(of[r.Instance], r)
		}
	}
	d.mu.Unlock()
	for id, lost := range of {
		rows, err := d.askOne(ctx, who, p, id)
		if err != nil {
			return err
		}
		for _, r := range lost {
			if i := rowOf(rows, r.ID()); i < 0 || rows[i].unrecorded() {
				d.noteUnrecorded(who, r)
			}
			d.mu.Lock()
			delete(d.unexplained[who.ID], r.ID())
			d.mu.Unlock()
		}
	}
	return nil
}

// unrecorded reports whether the holder of an item has no record that the person ever had it.
func (r *Row) unrecorded() bool { return r.Mine == "" && r.Grant.IsZero() }

// noteUnrecorded notes, durably, that a user lost an item which was taken from here, and that its holder does not know
// why.
func (d *Desk) noteUnrecorded(who users.Who, r Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken[who.ID][r.ID()] != r.At || d.losses[string(takenKey(who.ID, r.ID()))] != "" {
		return
	}
	r.Mine, r.Lost, r.LostAt = "", worklist.Unrecorded, d.in.Clock.Now().Wall.Truncate(time.Millisecond)
	r.Unneeded = r.LostAt
	d.writeTaken(who.ID, &r)
	d.setUnrecorded(who.ID, r)
}

func (d *Desk) setUnrecorded(user string, r Row) {
	if d.unrecorded[user] == nil {
		d.unrecorded[user] = map[string]Row{}
	}
	d.unrecorded[user][r.ID()] = r
}

// withUnrecorded adds to what a partner lists for a user, and lists no more, what it has no record of. The caller holds
// d.mu.
func (d *Desk) withUnrecorded(user string, p workflow.PartnerID, listed, gone []Row) ([]Row, []Row) {
	for item, r := range d.unrecorded[user] {
		if r.At != p {
			continue
		}
		i, g := rowOf(listed, item), rowOf(gone, item)
		switch {
		case i >= 0 && listed[i].unrecorded():
			listed[i].Lost, listed[i].LostAt, listed[i].Unneeded = r.Lost, r.LostAt, r.Unneeded
		case i >= 0: // it knows of it again
		case g < 0:
			gone = append(gone, r)
		case gone[g].Lost == "":
			gone[g] = r
		}
	}
	return listed, gone
}
