package device

import (
	"fmt"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// Ask asks the holders for items. It is refused at once where the answer is certain: nobody
// can be reached, or the device is not to take such work.
func (d *Device) Ask(mode worklist.Mode, items ...worklist.Item) (Effects, error) {
	if !d.Link.reaches() {
		return Effects{}, &Refusal{worklist.NoHolder, fmt.Sprintf("nothing can be %sed while you are %s", mode, d.Link),
			"connect, and try again"}
	}
	for _, i := range items {
		j := d.Jobs[i]
		switch {
		case j == nil:
			return Effects{}, &Refusal{worklist.Unknown, fmt.Sprintf("%s is not on your list", i.Slot),
				"look at the list again"}
		case j.Taken != "":
			return Effects{}, &Refusal{worklist.Taken, fmt.Sprintf("%s: %s", i.Slot, j.Taken), "choose another item"}
		case mode == worklist.Lock && !j.Offline:
			return Effects{}, &Refusal{worklist.NotOffline, fmt.Sprintf("%s may not be done offline", i.Slot),
				"select it, and stay connected"}
		case mode == worklist.Lock && d.Low && d.Setting.SaveEnergy:
			return Effects{}, &Refusal{worklist.NoEnergy, "the battery is low",
				"charge the device, or select the item and stay connected"}
		}
	}
	var out Effects
	for _, i := range items {
		if j := d.Jobs[i]; j.Mode != mode {
			j.Asked = mode
			out.Ask = append(out.Ask, Asking{i, mode})
		}
	}
	return out, nil
}

// Granted takes in that an item is the user's, in a mode.
func (d *Device) Granted(i worklist.Item, mode worklist.Mode, grant worklist.ID, now worklist.Moment) Effects {
	j := d.Jobs[i]
	if j == nil {
		return Effects{}
	}
	j.Mode, j.Grant, j.Asked, j.Locked, j.Lease = mode, grant, "", now.Boot, worklist.DefaultLease(mode)
	out := Effects{Save: true}
	d.fetch(&out, j)
	return out
}

// Refused takes in that an item was not granted.
func (d *Device) Refused(i worklist.Item, why string) Effects {
	j := d.Jobs[i]
	if j == nil {
		return Effects{}
	}
	if j.Asked = ""; j.Mode == "" && j.Taken == "" {
		d.take(j, why)
	}
	return Effects{Save: true}
}

// Update takes in how the user's items stand by all facts that are known: in what order,
// which are new, which were taken from the user (Taken, see worklist.Board.Losses) and, with
// all, that there are no more. What others took is dropped; what the user has begun or done
// stays, with the reason, until the user has seen it.
func (d *Device) Update(items []Job, all bool) Effects {
	listed := map[worklist.Item]bool{}
	for n, is := range items {
		listed[is.Item] = true
		j := d.Jobs[is.Item]
		if j == nil {
			j = &Job{}
			d.Jobs[is.Item] = j
		}
		d.use(j, -1)
		d.merge(j, is)
		d.use(j, 1)
		j.Order = n
	}
	out := Effects{Save: true}
	for i, j := range d.Jobs {
		if !all || listed[i] {
			continue
		}
		if j.Run == Idle {
			d.forget(j)
		} else if j.Taken == "" && j.Run != Done {
			d.take(j, "it is no longer yours: what you did is kept, and the responsible user may adopt it")
		}
	}
	if all && d.Link == Returning {
		d.Agrees = true
	}
	d.settle(&out)
	d.fetchAll(&out)
	return out
}

// merge takes in what is known of an item. What the user did here counts before what the
// facts of others say.
func (d *Device) merge(j *Job, is Job) {
	run, failed, asked, locked, lease, grant := j.Run, j.Failed, j.Asked, j.Locked, j.Lease, j.Grant
	*j = is
	j.Run, j.Failed, j.Asked = run, failed, asked
	if j.Grant.IsZero() && j.Taken != "" { // under which the work was done
		j.Grant = grant
	}
	if j.Lease == 0 {
		j.Locked, j.Lease = locked, lease
	}
	if j.Mode != "" {
		j.Asked = ""
	}
}

func (d *Device) inOutbox(i worklist.Item) bool {
	return d.Outbox[ParcelID{i, "result"}] != nil || d.Outbox[ParcelID{i, "release"}] != nil
}

// settle drops what is not needed any more, and ends a return when all is in step.
func (d *Device) settle(out *Effects) {
	d.drop(out)
	if d.Link == Returning && d.Agrees && len(d.Outbox) == 0 {
		d.Link = Connected
	}
}

// Seen removes an item that is no longer the user's, when the user has seen that.
func (d *Device) Seen(i worklist.Item) Effects {
	j := d.Jobs[i]
	if j == nil || j.Taken == "" || d.inOutbox(i) {
		return Effects{}
	}
	d.forget(j)
	out := Effects{Save: true}
	d.drop(&out)
	return out
}

// Release gives an item back: at once, or when the device is connected again.
func (d *Device) Release(i worklist.Item, now worklist.Moment) (Effects, error) {
	j := d.Jobs[i]
	if j == nil || j.Mode == "" || j.Run == Done {
		return Effects{}, &Refusal{worklist.Unknown, fmt.Sprintf("%s is not yours to give back", i.Slot),
			"look at the list again"}
	}
	p := &Parcel{ParcelID: ParcelID{i, "release"}, Grant: j.Grant, Since: now.Wall}
	j.Mode, j.Grant, j.Run = "", worklist.ID{}, Idle
	out := Effects{Save: true}
	d.post(&out, p)
	d.drop(&out)
	if d.Plan != nil {
		d.advance(&out, now)
	}
	return out, nil
}
