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
	EventJoined      EventKind = "joined"      // heard of for the first time
	EventUnreachable EventKind = "unreachable" // a carrier cannot reach it, or it is silent
	EventGoingDown   EventKind = "going-down"  // it said so
	EventBack        EventKind = "back"        // active again, whatever it was
	EventMoved       EventKind = "moved"       // its addresses changed
	EventChanged     EventKind = "changed"     // its certificate or profile changed
	EventExpired     EventKind = "expired"     // silent for its whole connectionTime
	EventLeft        EventKind = "left"        // it left in good order
	EventEvicted     EventKind = "evicted"     // its certificate or key was evicted
	// EventOutrun is about this very node: somebody holds a newer record of it,
	// so its store went back in time. It raises its boot counter above Version.
	EventOutrun EventKind = "outrun"

	noEvent EventKind = ""
)

// Event is one change of the list.
type Event struct {
	Kind    EventKind
	Partner workflow.PartnerID
	Version Version // of EventOutrun
}

// joined is what a first record brings. One who had left before it was heard
// of joins nobody's list as a partner to work with, but is known.
func joined(r Record) []Event {
	events := []Event{{Kind: EventJoined, Partner: r.Partner}}
	switch r.Going {
	case Leaves, LeavesForGood:
		events = append(events, Event{Kind: EventLeft, Partner: r.Partner})
	case GoesDown:
		events = append(events, Event{Kind: EventGoingDown, Partner: r.Partner})
	}
	return events
}

// changes lists what happened to a partner between was and is.
func changes(was, is Partner) []Event {
	var events []Event
	add := func(kind EventKind) { events = append(events, Event{Kind: kind, Partner: is.Record.Partner}) }
	switch kind := transition(was.State, is.State); {
	case is.Down() && is.State == Unreachable && (!was.Down() || is.Until != was.Until):
		add(EventGoingDown)
	case kind != noEvent:
		add(kind)
	}
	if !slices.Equal(was.Record.Addresses, is.Record.Addresses) {
		add(EventMoved)
	}
	if !was.Record.sameProfile(is.Record) {
		add(EventChanged)
	}
	return events
}

// transition names the change from one state to another.
func transition(was, is State) EventKind {
	if was == is {
		return noEvent
	}
	switch is {
	case Active:
		return EventBack
	case Unreachable:
		return EventUnreachable
	case Expired:
		return EventExpired
	case Left:
		return EventLeft
	default:
		return EventEvicted
	}
}
