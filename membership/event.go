package membership

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// EventKind says what happened to a partner.
type EventKind string

// What can happen. One call may bring several: a partner can be back, moved
// and changed.
const (
	Joined        EventKind = "joined"      // heard of for the first time
	LostSight     EventKind = "unreachable" // a carrier cannot reach it
	Back          EventKind = "back"        // active again, whatever it was
	Moved         EventKind = "moved"       // its addresses changed
	Changed       EventKind = "changed"     // its certificate or profile changed
	WentOut       EventKind = "expired"     // silent for its whole connectionTime
	Departed      EventKind = "left"        // left in good order
	WasEvicted    EventKind = "evicted"     // its certificate or key was evicted
	Outrun        EventKind = "outrun"      // somebody holds a newer record of this very node: raise the boot counter above Version
	eventOfNobody EventKind = ""
)

// Event is one change of the list.
type Event struct {
	Kind    EventKind
	Partner workflow.PartnerID
	Version Version // of Outrun
}

// joined is what a first record brings. One who had left before it was heard
// of joins nobody's list as a partner to work with, but is known.
func joined(r Record) []Event {
	events := []Event{{Kind: Joined, Partner: r.Partner}}
	if r.Left {
		events = append(events, Event{Kind: Departed, Partner: r.Partner})
	}
	return events
}

// changes lists what happened to a partner between was and is.
func changes(was, is Partner) []Event {
	var events []Event
	add := func(kind EventKind) { events = append(events, Event{Kind: kind, Partner: is.Record.Partner}) }
	if kind := transition(was.State, is.State); kind != eventOfNobody {
		add(kind)
	}
	if !slices.Equal(was.Record.Addresses, is.Record.Addresses) {
		add(Moved)
	}
	if !was.Record.sameProfile(is.Record) {
		add(Changed)
	}
	return events
}

// transition names the change from one state to another.
func transition(was, is State) EventKind {
	if was == is {
		return eventOfNobody
	}
	switch is {
	case Active:
		return Back
	case Unreachable:
		return LostSight
	case Expired:
		return WentOut
	case Left:
		return Departed
	default:
		return WasEvicted
	}
}
