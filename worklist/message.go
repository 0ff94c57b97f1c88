package worklist

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// MessageType is what a message is about.
type MessageType string

// The four types of messages.
const (
	Started    MessageType = "started"
	Ended      MessageType = "ended"
	TaskFailed MessageType = "failed"
	Deadline   MessageType = "deadline"
)

// MessageID names a message: by it a user's devices know that one of them showed it.
type MessageID struct {
	Instance workflow.InstanceID
	Type     MessageType
	Item     Item
	By       ID            // the fact that it is about
	Due      int64         // of a deadline: which, if it was changed (Due.number)
	Warning  time.Duration // with so much left
}

// Message is what a user is told about an instance. Nobody sends it: every device works it
// out from the facts it has and its own clock (docs/worklists.md, The ideas).
type Message struct {
	ID       MessageID
	At       time.Time
	Workflow workflow.Name
	Text     string
	// Asks is set where the responsible user is to decide.
	Asks bool
}

// Course is how an instance began and ended, as the core concludes.
type Course struct {
	Started, Ended time.Time // by the clocks of those who wrote it; zero: not yet
	State          workflow.InstanceState
}

// SetCourse takes in how the instance began and ended.
func (b *Board) SetCourse(c Course) { b.course = c }

// Messages are all that a user is to be told about the instance until a moment, the oldest
// first. Next is when there may be one more though nothing happens (Boot); 0: never.
func (b *Board) Messages(u User, now Moment) (out []Message, next time.Duration) {
	answers := u == b.terms.Responsible
	if answers && !b.course.Started.IsZero() {
		out = append(out, b.message(Started, Item{}, b.course.Started, "it has started"))
	}
	if answers && !b.course.Ended.IsZero() {
		out = append(out, b.message(Ended, Item{}, b.course.Ended, "it has ended: "+string(b.course.State)))
	}
	for _, it := range b.items {
		b.steps++
		if !it.placed || !it.InCharge {
			continue
		}
		if answers {
			out = append(out, b.failure(it)...)
		}
		if !answers && (it.open == nil || it.open.User != u) {
			continue
		}
		more, at := b.reminders(it, now, answers)
		out = append(out, more...)
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	slices.SortFunc(out, func(x, y Message) int {
		return cmp.Or(x.At.Compare(y.At), x.ID.Item.Compare(y.ID.Item),
			cmp.Compare(x.ID.Type, y.ID.Type), cmp.Compare(y.ID.Warning, x.ID.Warning))
	})
	return out, next
}

func (b *Board) message(t MessageType, i Item, at time.Time, text string) Message {
	id := MessageID{Instance: b.terms.Instance, Type: t, Item: i}
	return Message{ID: id, At: at, Workflow: b.terms.Workflow, Text: text}
}

// failure is the message that an item failed, if it did.
func (b *Board) failure(it *item) []Message {
	e := it.end()
	if e == nil || !e.Failed {
		return nil
	}
	text := "by order"
	if e.work != nil {
		text = cmp.Or(e.work.Reason, "no reason was given")
	}
	m := b.message(TaskFailed, it.Item, b.facts[e.By].At, fmt.Sprintf("%s has failed: %s", it.Item.Slot, text))
	m.ID.By, m.Asks = e.By, b.asks(it)
	return []Message{m}
}

// reminders are the messages about an item's deadline.
func (b *Board) reminders(it *item, now Moment, answers bool) (out []Message, next time.Duration) {
	if !it.Ready || it.Over || it.end() != nil {
		return nil, 0
	}
	due := it.deadline()
	alerts, next := Alerts(due, it.Since, it.Task.Warnings, now)
	for _, a := range alerts {
		m := b.message(Deadline, it.Item, a.At, a.text(it.Item.Slot))
		m.ID.Due, m.ID.Warning = due.number(), a.Left
		if m.Asks = answers && a.Left == 0 && !b.goesOn(it); m.Asks {
			m.Text += ": let it go on, or stop it"
		}
		out = append(out, m)
	}
	return out, next
}

// goesOn reports whether somebody has decided that an item goes on beyond its deadline.
func (b *Board) goesOn(it *item) bool {
	return slices.ContainsFunc(it.orders, func(o *Fact) bool { return o.Body.(Order).What == Continue })
}

// GoesOn reports whether somebody has decided that an item goes on beyond its deadline.
func (b *Board) GoesOn(i Item) bool {
	it := b.items[i]
	return it != nil && b.goesOn(it)
}

// Alert is a warning that a deadline is near, or over (Left 0).
type Alert struct {
	Left time.Duration
	At   time.Time // by the own clock
}

func (a Alert) text(slot workflow.TaskName) string {
	if a.Left == 0 {
		return fmt.Sprintf("the deadline of %s is over", slot)
	}
	return fmt.Sprintf("%s is due in %s", slot, a.Left)
}

// Alerts are the warnings that are due by a moment, of something that became ready at another
// (Boot), and when the next will be (Boot; 0: never). They need nothing but the own clock.
func Alerts(due Due, since time.Duration, warnings []time.Duration, now Moment) (out []Alert, next time.Duration) {
	left, has := due.Left(since, now)
	if !has {
		return nil, 0
	}
	for _, w := range append(slices.Clone(warnings), 0) {
		if left <= w {
			out = append(out, Alert{w, now.Wall.Add(left - w)})
		} else if at := now.Boot + left - w; next == 0 || at < next {
			next = at
		}
	}
	return out, next
}
