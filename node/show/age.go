package show

import (
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a node shows of others' work is as old as their last word. This file says how
// old. Nobody is asked how old their own words are: what
// counts is when they came here from their author itself. Of what somebody else passed
// on it is the earlier one of when it came and when its author says it was written, so
// neither of the two can make it newer.

// Words are when a node last heard what each holder has of an instance.
type Words map[workflow.PartnerID]Word

// Word is when a node last heard what a holder has of one instance.
type Word struct {
	// Direct is when (Boot) it last said so itself, and had nothing that was not here;
	// 0: not since this node started.
	Direct time.Duration
	// Written is until when (ms, wall) the facts of its own go that are here.
	Written int64
}

// Heard notes that a partner said what it has of an instance.
func (w *Words) Heard(p workflow.PartnerID, at time.Duration) {
	w.note(p, func(w *Word) { w.Direct = at })
}

// Came notes that facts are here that came at a moment (ms).
func (w *Words) Came(facts []fact.Received, at int64) {
	for _, f := range facts {
		w.note(f.Fact.Chain.Author, func(w *Word) { w.Written = max(w.Written, min(f.Fact.At, at)) })
	}
}

func (w *Words) note(p workflow.PartnerID, fn func(*Word)) {
	if *w == nil {
		*w = Words{}
	}
	x := (*w)[p]
	fn(&x)
	(*w)[p] = x
}

// AsOf is when it was last known here what a partner has of an instance; the zero time:
// never. old tells that this is longer ago than its last contact explains: of its signs
// of life, of which there are three in a connectionTime, one was missed. Nothing is known as of
// before the instance began: there was nothing to tell.
func (vw *View) AsOf(h *Held, p workflow.PartnerID) (at time.Time, old bool) {
	now, w := vw.Clock.Now(), h.Words[p]
	ago := func(boot time.Duration) time.Time { return now.Wall.Add(boot - now.Boot) }
	if w.Direct > 0 {
		at = ago(w.Direct)
	}
	if t := wire.AtMilli(w.Written); w.Written > 0 && t.After(at) {
		at = t
	}
	c := vw.Contact(p)
	within, inTouch := vw.People.ConnectionTime(p)/2, false
	if c.Ever {
		told := ago(c.Heard - vw.TellsWithin)
		if c.Heard-c.Since >= vw.TellsWithin && !h.refused(p) && told.After(at) {
			at = told
		}
		inTouch = c.Up && now.Boot-c.Heard <= within
	}
	if began := wire.AtMilli(h.Started); !at.IsZero() && at.Before(began) {
		at = began
		if now.Wall.Before(began) { // by the clock of who began it
			at = now.Wall
		}
	}
	return at, !inTouch && now.Wall.Sub(at) > within
}

// known says in words how old something is; empty where it is not old.
func (vw *View) known(at time.Time, old bool) string {
	switch {
	case !old:
		return ""
	case at.IsZero():
		return "nothing was heard of it yet"
	}
	return "as known " + Ago(vw.Clock.Now().Wall.Sub(at))
}

// Ago is how long ago something was, in the greatest unit that says enough.
func Ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d d ago", int(d.Hours()/24))
}

// dateTasks says of tasks that others hold as of when they are known.
func (vw *View) dateTasks(h *Held, tasks []state.TaskView, out []api.Task) {
	type dated struct {
		at  *time.Time
		old string
	}
	self, of := vw.Self, map[workflow.PartnerID]dated{}
	for i, t := range tasks {
		if t.Partner == "" || t.Partner == self {
			continue
		}
		d, done := of[t.Partner]
		if !done {
			at, old := vw.AsOf(h, t.Partner)
			if !at.IsZero() {
				d.at = &at
			}
			d.old = vw.known(at, old)
			of[t.Partner] = d
		}
		if out[i].AsOf = d.at; !t.State.Done() && h.Ended == 0 {
			out[i].Known = d.old
		}
	}
}

// Oldest is as of when an instance is known, by the partner that holds what is not
// done and was not heard for longest, and of which partner that is said. Of those that are in touch that is
// not said in words, so those that are not go before them. No instant: nobody else holds anything.
func (vw *View) Oldest(h *Held) (at *time.Time, known string, of workflow.PartnerID) {
	var stale bool
	for _, p := range h.M.Holders() {
		t, old := vw.AsOf(h, p)
		if at == nil || old && !stale || old == stale && t.Before(*at) {
			at, stale, of = &t, old, p
		}
	}
	if at == nil {
		return nil, "", ""
	}
	if known = vw.known(*at, stale); known == "" {
		of = ""
	}
	if at.IsZero() {
		at = nil
	}
	return at, known, of
}
