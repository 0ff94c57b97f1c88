package worklist

import (
	"fmt"
	"time"
)

// Due is a deadline: a span after the item became ready, or a point in time. The zero
// value: none. An expression over data was worked out by the core when the item became ready.
type Due struct {
	After time.Duration `json:"after,omitzero"`
	At    time.Time     `json:"at,omitzero"`
}

// IsZero reports whether there is no deadline.
func (d Due) IsZero() bool { return d.After == 0 && d.At.IsZero() }

// MaxDue is the longest span after which an item may be due.
const MaxDue = 100 * 365 * 24 * time.Hour

// number tells deadlines of one item apart.
func (d Due) number() int64 {
	if d.At.IsZero() {
		return int64(d.After)
	}
	return d.At.UnixNano()
}

// wrong says what is wrong with a deadline that somebody gives; "": nothing.
func (d Due) wrong() string {
	switch {
	case d.IsZero():
		return "it names no deadline"
	case d.After < 0:
		return "the deadline is before the item was ready"
	case d.After > 0 && !d.At.IsZero():
		return "it names two deadlines"
	case d.After > MaxDue:
		return fmt.Sprintf("a deadline %s after the item is ready: at most %s", d.After, MaxDue)
	case !d.At.IsZero() && (d.At.UnixMilli() <= 0 || d.At.Year() > 9999):
		return fmt.Sprintf("a deadline in the year %d: want one of the years 1970 to 9999", d.At.Year())
	}
	return ""
}

// deadline is the one that counts now.
func (it *item) deadline() Due {
	if it.due != nil {
		return *it.due
	}
	return it.Task.Due
}

// farAway is the most that a deadline leaves, and that it is over for.
const farAway = 200 * 365 * 24 * time.Hour

// Left is how much time a deadline leaves, of something that became ready at a moment
// (Boot); has: there is one. A span is clocked by the own clock, so that a device shows it
// when nobody can be reached; a point in time is compared with the own wall clock.
func (d Due) Left(since time.Duration, now Moment) (left time.Duration, has bool) {
	switch {
	case d.After > 0:
		return d.After - (now.Boot - since), true
	case !d.At.IsZero():
		return min(max(d.At.Sub(now.Wall), -farAway), farAway), true
	}
	return 0, false
}

// Extended is the deadline that somebody who may gave an item in place of its task's; false: nobody did.
func (b *Board) Extended(i Item) (Due, bool) {
	it := b.items[i]
	if it == nil || it.due == nil {
		return Due{}, false
	}
	return *it.due, true
}

func (d *deciding) left(it *item) (left time.Duration, has bool) {
	return it.deadline().Left(it.Since, d.now)
}
