package worklists

import (
	"context"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about items that were locked at this device by grants of which their holder has no record any more, as
// where it was put back from an older copy. It gives no reason then why their users lost them, so the device does. What
// the holder says may be about an earlier grant of the same item to the same user, so grants are compared.

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
			if i := rowOf(rows, r.ID()); i < 0 || rows[i].unrecorded {
				d.noteUnrecorded(who, r)
			}
			d.mu.Lock()
			delete(d.unexplained[who.ID], r.ID())
			d.mu.Unlock()
		}
	}
	return nil
}

// compareGrants finds, in what a partner says of a user's items, those that were taken from here by a grant of which it
// does not know. What it says of how the user had and lost them is about another grant. The caller holds d.mu.
func (d *Desk) compareGrants(user string, rows []Row) {
	for i := range rows {
		r := &rows[i]
		grant := d.grantHere(user, r)
		if grant.IsZero() || r.knows(grant) {
			continue
		}
		if is, noted := d.unrecorded[user][r.ID()]; r.Mine == "" {
			r.unrecorded, r.Grant = true, grant
			r.lose(&is)
		} else if noted { // the user has it once more, and not from here
			d.dropTaken(user, r.ID())
			delete(d.taken[user], r.ID())
		}
	}
}

// grantHere is the grant by which a user took an item from here last, of the partner that says how it stands; zero: the
// user did not. The caller holds d.mu.
func (d *Desk) grantHere(user string, r *Row) worklist.ID {
	if k := d.kept[string(Prefix)+user+" "+r.ID()]; k != nil && workflow.PartnerID(k.At) == r.At {
		return k.Grant
	}
	if t := d.taken[user][r.ID()]; t.at == r.At {
		return t.grant
	}
	return worklist.ID{}
}

// knows reports whether the holder of an item, which says how it stands, knows of a grant of it to the person, as far as
// it says so.
func (r *Row) knows(grant worklist.ID) bool {
	if len(r.Grants) == 0 { // a version that does not say names the last
		return !r.Grant.IsZero()
	}
	return len(r.Grants) >= choreo.MaxGrants || slices.Contains(r.Grants, grant)
}

// lose has the person have lost an item as another row of it says.
func (r *Row) lose(as *Row) {
	r.Lost, r.LostBy, r.LostAt, r.Unneeded, r.Made = as.Lost, as.LostBy, as.LostAt, as.Unneeded, as.Made
	r.Adoptable, r.undated = false, false
}

// noteUnrecorded notes, durably, that a user lost an item which was taken from here, and that its holder does not know
// why.
func (d *Desk) noteUnrecorded(who users.Who, r Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken[who.ID][r.ID()] != (took{r.At, r.Grant}) || d.losses[string(takenKey(who.ID, r.ID()))] != "" {
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
		case i >= 0 && listed[i].unrecorded:
			listed[i].lose(&r)
		case i >= 0: // it knows of it again
		case g < 0:
			gone = append(gone, r)
		case gone[g].Lost == "":
			gone[g] = r
		}
	}
	return listed, gone
}
