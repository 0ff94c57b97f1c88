package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// Open has the user begin, or go on, with an item: on local data or, while connected, on
// remote data.
func (d *Device) Open(i worklist.Item, local bool) (Effects, error) {
	if ok, why := d.Enabled(i); !ok {
		return Effects{}, &Refusal{worklist.NotReady, fmt.Sprintf("%s cannot be opened", i.Slot), why}
	}
	j := d.Jobs[i]
	switch {
	case local && !d.here(j):
		return Effects{}, &Refusal{worklist.NotReady, fmt.Sprintf("not all data of %s are here", i.Slot),
			"open it on remote data, or wait until they are"}
	case local:
		j.Run = Local
	default:
		j.Run = Remote
		if !d.Link.reaches() {
			j.Run = Local // Enabled: all of it is here
		}
	}
	return Effects{Save: true}, nil
}

// Finish takes the user's result of an item. It works offline; the result waits in the
// outbox until its receiver has it on its disk.
func (d *Device) Finish(i worklist.Item, failed bool, size int64, now worklist.Moment) (Effects, error) {
	if ok, why := d.Enabled(i); !ok && !d.begun(i) {
		return Effects{}, &Refusal{worklist.NotReady, fmt.Sprintf("%s cannot be completed", i.Slot), why}
	}
	if size > d.Free {
		what := fmt.Sprintf("the result of %s needs %d bytes, %d are free", i.Slot, size, d.Free)
		return Effects{}, &Refusal{worklist.NotReady, what, "free space, and complete it again"}
	}
	j := d.Jobs[i]
	j.Run, j.Failed = Done, failed
	out := Effects{Save: true}
	d.Free -= size
	d.post(&out, &Parcel{ParcelID: ParcelID{i, "result"}, Grant: j.Grant, Size: size, Since: now.Wall, Failed: failed})
	return out, nil
}

// begun reports whether the user had begun an item that was taken away since: what was done
// is handed in all the same, to be kept.
func (d *Device) begun(i worklist.Item) bool {
	j := d.Jobs[i]
	return j != nil && j.Taken != "" && j.Run != Idle && j.Run != Done && !j.Grant.IsZero()
}

// post puts something into the outbox, and sends it if it can.
func (d *Device) post(out *Effects, p *Parcel) {
	d.Parcels++
	p.Number = d.Parcels
	d.Outbox[p.ParcelID] = p
	if d.Link.reaches() {
		out.Send = append(out.Send, Sending{p, 0})
	}
}

// InOutbox is what is in the outbox, in the order in which it was done.
func (d *Device) InOutbox() []*Parcel {
	return slices.SortedFunc(maps.Values(d.Outbox), func(x, y *Parcel) int { return cmp.Compare(x.Number, y.Number) })
}

// resend sends all that is in the outbox, from where its receivers have it: what was made
// from another result comes after that.
func (d *Device) resend(out *Effects) {
	for _, p := range d.InOutbox() {
		out.Send = append(out.Send, Sending{p, p.Sent})
	}
}

// Sent notes up to where the receiver has a parcel durably.
func (d *Device) Sent(id ParcelID, upTo int64) Effects {
	p := d.Outbox[id]
	if p == nil {
		return Effects{}
	}
	p.Sent = max(p.Sent, min(upTo, p.Size))
	return Effects{Save: true}
}

// Acknowledged takes in that the holder has a parcel as a fact on its disk. A done item
// leaves the list.
func (d *Device) Acknowledged(id ParcelID) Effects {
	p := d.Outbox[id]
	if p == nil {
		return Effects{}
	}
	d.Free += p.Size
	delete(d.Outbox, id)
	if j := d.Jobs[id.Item]; j != nil && j.Run == Done && j.Taken == "" {
		d.forget(j)
	}
	out, was := Effects{Save: true}, d.Link
	if d.settle(&out); d.cramped && len(out.Remove) > 0 || d.Link != was { // there is room for more, or time
		d.fetchAll(&out)
	}
	return out
}

// Advice says on which data an item is better opened on a weak link, as far as is known.
type Advice struct {
	Local bool
	// Here is how long it takes until its data are here and, when it is done, its result there;
	// Known is set where the link was measured.
	Here  time.Duration
	Known bool
	Text  string
}

// Advise weighs the time that local data still need, with the result to be sent afterwards,
// against working on the link: an output that is larger than the data left is better made there.
func (d *Device) Advise(i worklist.Item) (Advice, error) {
	j := d.Jobs[i]
	if j == nil {
		return Advice{}, &Refusal{worklist.Unknown, fmt.Sprintf("%s is not on your list", i.Slot),
			"look at the list again"}
	}
	left := d.lacking(j)
	a := Advice{Local: left == 0 || left <= j.Output, Known: d.Rate > 0}
	if a.Known {
		a.Here = d.takes(left + j.Output)
	}
	switch {
	case left == 0:
		a.Text = "all is here: work on local data"
	case !a.Known:
		a.Text = "the link was not measured yet"
	case a.Local:
		a.Text = fmt.Sprintf("work on local data: %d bytes are still to come, %s with the result", left, a.Here)
	default:
		a.Text = fmt.Sprintf("work on remote data: %d bytes would have to come first, %s with the result", left, a.Here)
	}
	return a, nil
}
