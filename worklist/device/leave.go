package device

import (
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// Question is what the user has to decide on the way out.
type Question string

// The questions, in the order in which they are asked.
const (
	NoQuestion Question = ""
	NotLocked  Question = "not-locked" // some items are selected, not locked
	TooSlow    Question = "too-slow"   // what is to come takes longer than the user waits
	NoSpace    Question = "no-space"
)

// Plan is a disconnection on its way (docs/worklists.md, The device).
type Plan struct {
	Within time.Duration // the longest wait that the user accepts
	Asks   Question
	// Items are those that a question is about.
	Items  []worklist.Item
	Volume int64         // bytes still to come
	Takes  time.Duration // for that, as far as the link was measured
	Lacks  int64         // bytes of disk
	Text   string

	warned, accepted bool
	missing          map[PieceID]bool // of what is to come
}

// Disconnect begins the protocol of disconnecting: within is the longest wait that the
// user accepts. The plan says what the user is asked; when it asks nothing and the link is
// Away, all is done.
func (d *Device) Disconnect(within time.Duration, now worklist.Moment) (Effects, error) {
	switch {
	case !d.Link.reaches():
		return Effects{}, &Refusal{worklist.NoHolder, "you are " + string(d.Link) + " already",
			"reconnect when you can"}
	case d.Link == Returning:
		return Effects{}, &Refusal{worklist.NotReady, "you are still coming back",
			"wait until the outbox is empty; it is shown by outbox"}
	case within < 0:
		return Effects{}, &Refusal{worklist.NotReady, fmt.Sprintf("a wait of %s", within), "give 0 or more"}
	}
	d.Link, d.Plan = Leaving, &Plan{Within: within, missing: map[PieceID]bool{}}
	out := Effects{Save: true}
	d.advance(&out, now)
	return out, nil
}

// Accept answers the question that the plan asks: the user accepts it.
func (d *Device) Accept(now worklist.Moment) (Effects, error) {
	if d.Plan == nil {
		return Effects{}, &Refusal{worklist.NotReady, "nothing is asked", "begin with disconnect"}
	}
	switch d.Plan.Asks {
	case NotLocked:
		d.Plan.warned = true
	case TooSlow:
		d.Plan.accepted = true
	case NoSpace:
		return Effects{}, &Refusal{worklist.NotReady, fmt.Sprintf("the disk lacks %d bytes", d.Plan.Lacks),
			"free space, or give items back"}
	}
	out := Effects{Save: true}
	d.advance(&out, now)
	return out, nil
}

// Freed takes in how much disk is free now.
func (d *Device) Freed(bytes int64, now worklist.Moment) Effects {
	d.Free = bytes
	var out Effects
	if d.Plan != nil {
		d.advance(&out, now)
	} else {
		d.fetchAll(&out)
	}
	return out
}

// Stay ends the protocol: the user does not leave after all.
func (d *Device) Stay() Effects {
	if d.Link != Leaving {
		return Effects{}
	}
	d.Link, d.Plan = Connected, nil
	out := Effects{Save: true}
	d.active(&out, true)
	d.fetchAll(&out)
	return out
}

// active tells partners that the user is here, or is not, unless they know.
func (d *Device) active(out *Effects, here bool) {
	if d.Told != !here {
		d.Told, out.Active = !here, &here
	}
}

// advance goes through the steps of the protocol as far as it can.
func (d *Device) advance(out *Effects, now worklist.Moment) {
	p := d.Plan
	p.Asks, p.Items, p.Text = NoQuestion, nil, ""
	if open := d.notLocked(); len(open) > 0 && !p.warned { // step 2
		p.Asks, p.Items = NotLocked, open
		p.Text = "these items are selected, not locked, and cannot be done until you return: " +
			"lock them, give them back, or accept that"
		return
	}
	d.active(out, false) // step 3
	pieces := d.wanted(d.inOrder(), true)
	p.Volume = d.volume(pieces) // step 4
	p.Takes = d.takes(p.Volume)
	p.Lacks = max(0, p.Volume-d.Free)
	switch {
	case p.Takes > p.Within && !p.accepted: // step 5
		p.Asks, p.Items, p.Text = TooSlow, d.needing(), d.slow()
	case p.Lacks > 0: // step 6
		p.Asks, p.Items = NoSpace, d.needing()
		p.Text = fmt.Sprintf("%d bytes more are needed on the disk: free space, or give items back", p.Lacks)
	case p.Volume > 0: // step 7
		for _, id := range pieces {
			p.missing[id] = true
		}
		d.fetchAll(out)
	default: // steps 8 and 9: what is not locked is disabled by being away (Enabled)
		d.Link, d.Plan = Away, nil
		d.pause()
		out.Save, out.Cut = true, true
	}
}

// slow says how long what is still to come takes.
func (d *Device) slow() string {
	if d.Rate == 0 {
		return fmt.Sprintf("%d bytes are still to come, and the link was not measured yet: accept that, or give items back",
			d.Plan.Volume)
	}
	return fmt.Sprintf("%d bytes are still to come, which takes %s: accept that, or give items back",
		d.Plan.Volume, d.Plan.Takes)
}

// notLocked are the items that the user selected and has not done.
func (d *Device) notLocked() (out []worklist.Item) {
	for _, j := range d.inOrder() {
		if j.Mode == worklist.Select && j.Run != Done && j.Taken == "" {
			out = append(out, j.Item)
		}
	}
	return out
}

// needing are the locked items of which not all is here.
func (d *Device) needing() (out []worklist.Item) {
	for _, j := range d.inOrder() {
		if j.Mode == worklist.Lock && j.Run != Done && !d.here(j) {
			out = append(out, j.Item)
		}
	}
	return out
}

// Lost takes in that nobody can be reached any more, unplanned: at whatever step that is.
// What was asked for may have been granted: that is found out after the return. Work on
// local data goes on, work on remote data pauses, and an application that ran elsewhere has ended.
func (d *Device) Lost() Effects {
	if !d.Link.reaches() {
		return Effects{}
	}
	d.Link, d.Plan = Cut, nil
	d.pause()
	return Effects{Save: true}
}

func (d *Device) pause() {
	for _, j := range d.Jobs {
		if j.Run != Remote {
			continue
		}
		if j.Run = Paused; j.RemoteApp {
			j.Run = Ended
		}
	}
}

// Return begins the protocol of coming back: it marks the user as active, asks how the items
// stand, and sends what is in the outbox from where it stopped. The link is Connected when
// all of it was acknowledged.
func (d *Device) Return(now worklist.Moment) (Effects, error) {
	if d.Link.reaches() {
		return Effects{}, &Refusal{worklist.NotReady, "you are " + string(d.Link), "nothing is to be done"}
	}
	d.Link, d.Agrees = Returning, false
	out := Effects{Save: true, Sync: true}
	yes := true
	d.Told, out.Active = false, &yes
	for _, j := range d.Jobs {
		if j.Run == Paused {
			j.Run = Remote
		}
	}
	for _, j := range d.inOrder() {
		if j.Asked != "" {
			out.Ask = append(out.Ask, Asking{j.Item, j.Asked})
		}
	}
	d.resend(&out)
	return out, nil
}

// Slow takes in that the link is weak, or, if not, that it is good again.
func (d *Device) Slow(weak bool) Effects {
	switch {
	case weak && d.Link == Connected:
		d.Link = Weak
	case !weak && d.Link == Weak:
		d.Link = Connected
	default:
		return Effects{}
	}
	out := Effects{Save: true}
	d.fetchAll(&out)
	return out
}

// Waits are the items whose data are not all here, for people who are about to leave.
func (d *Device) Waits() []worklist.Item { return slices.Clip(d.needing()) }
