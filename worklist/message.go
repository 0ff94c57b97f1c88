package worklist

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// MessageType is what a message is about.
type MessageType string

// The types of messages.
const (
	Started    MessageType = "started"
	Ended      MessageType = "ended"
	TaskFailed MessageType = "failed"
	Deadline   MessageType = "deadline"
	// Adopted: a result that its user brought, and that did not count by itself, counts now: it was adopted, or what it
	// was made from was.
	Adopted MessageType = "adopted"
	// Lost: the item that its user had is not needed any more, is over, or was passed on by somebody else.
	Lost MessageType = "lost"
	// Untaken: a partner does not take the instance in, and will not until somebody does something about it.
	Untaken MessageType = "untaken"
)

// MessageID names a message: by it a user's devices know that one of them showed it.
type MessageID struct {
	Instance workflow.InstanceID
	Type     MessageType
	Item     Item
	By       ID            // the fact that it is about
	Due      int64         // of a deadline: which, if it was changed (Due.number)
	Warning  time.Duration // with so much left
	// Round is, of an end, which, as an order may have an instance go on; of a deadline, "waits" before its
	// task is ready, and "passes" where the item passes on; of what others only presume to have failed or ended that it
	// is so, as it is told again when it becomes certain; of a lost item "presumed" while its user has it still, and of
	// one that was passed on when, as that may happen again; of what is not taken in by whom, and why in one word.
	Round string
}

// passes is the round of a deadline at which the item passes on.
const passes = "passes"

// String is the name as it is written down: the same on all devices.
func (m MessageID) String() string {
	h := sha256.New()
	fmt.Fprintf(h, "mutirao/message/1\x00%x %s %x %s %x %d %d %s", m.Instance, m.Type, m.Item.Assigned, m.Item.Slot,
		m.By, m.Due, m.Warning, m.Round)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Message is what a user is told about an instance. Nobody sends it: every device works it
// out from the facts it has and its own clock (docs/worklists.md, The ideas).
type Message struct {
	ID MessageID
	// Task is what it is about, which may stand in for that of its item; empty: the instance.
	Task     workflow.TaskName
	At       time.Time
	Workflow workflow.Name
	Text     string
	// Asks is set where the responsible user is to decide.
	Asks bool
	// Past: it is about an item that its user had then and others took from the user since. It stays until it is read.
	Past bool
}

// Before are those of some messages that came until a moment, when their user lost the item for a reason: each as of what
// the user had then (Past). That it passes on, if that is the reason, is none of them: that it did is told (Unneeded).
func Before(all []Message, end time.Time, why string) (out []Message) {
	for _, m := range all {
		if !m.At.After(end) && (why != string(ByDeadline) || m.ID.Round != passes) {
			m.Past, m.Asks = true, false
			out = append(out, m)
		}
	}
	return out
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
		out = append(out, b.source().Began(b.course.Started))
	}
	if answers && !b.course.Ended.IsZero() {
		out = append(out, b.source().Finished(b.course.Ended, b.course.State, 0, false, false))
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

func (b *Board) source() Source { return Source{b.terms.Instance, b.terms.Workflow} }

// Source is the instance that messages are about.
type Source struct {
	Instance workflow.InstanceID
	Workflow workflow.Name
}

// Message is one about the instance, or about one of its items.
func (s Source) Message(t MessageType, i Item, task workflow.TaskName, at time.Time, text string) Message {
	return Message{
		ID: MessageID{Instance: s.Instance, Type: t, Item: i}, Task: task, At: at, Workflow: s.Workflow, Text: text,
	}
}

// Began is the message that it has started.
func (s Source) Began(at time.Time) Message {
	return s.Message(Started, Item{}, "", at, "it has started")
}

// Finished is the message that it has ended; round tells its ends apart. presumed: that is so only as others presume of
// what its holder may go on with; goesOn: and what goes on here.
func (s Source) Finished(at time.Time, state workflow.InstanceState, round int, presumed, goesOn bool) Message {
	m := s.Message(Ended, Item{}, "", at, "it has ended: "+string(state))
	m.ID.Round = fmt.Sprintf("%s %d", state, round)
	switch {
	case goesOn:
		m.Text = fmt.Sprintf("it has ended as others presume (%s), and goes on here", state)
	case presumed:
		m.Text = fmt.Sprintf("it has ended as others presume (%s), and may go on", state)
	}
	if presumed {
		m.ID.Round += presumedRound
	}
	return m
}

// Untaken is the message that a partner does not take it in, since when; why tells reasons apart, text says it.
func (s Source) Untaken(by workflow.PartnerID, why string, at time.Time, text string) Message {
	m := s.Message(Untaken, Item{}, "", at, text)
	m.ID.Round = why + " " + string(by)
	return m
}

// WrongState begins the reason of what interrupts an instance although its task succeeded: the state that it brought.
const WrongState = "the instance is interrupted by its state: "

// GoesOnHere begins the reason of what others presume to have failed, where its holder goes on with it.
const GoesOnHere = "it goes on here all the same: "

// Presumes begins the reason of what others presume to have failed, where its holder has not said so, and may be back.
const Presumes = "its holder has not said so: "

// presumedRound ends the round of a message about what is only presumed: it is told again when that becomes certain.
const presumedRound = " presumed"

// leftOut begins the reason of the end of a task that somebody ordered to leave out.
const leftOut = "left out by order: "

// Failed is the message that a task failed, by a fact. asks: somebody is to decide what becomes of it.
func (s Source) Failed(i Item, task workflow.TaskName, by ID, at time.Time, reason string, asks bool) Message {
	text := fmt.Sprintf("%s has failed: %s", task, cmp.Or(reason, "no reason was given"))
	if task == "" { // no task did it: what interrupts the instance was there before, or came by a time or by people
		text = reason
	}
	if strings.HasPrefix(reason, leftOut) {
		text = fmt.Sprintf("%s was %s", task, reason)
	}
	if why, wrong := strings.CutPrefix(reason, WrongState); wrong {
		text = fmt.Sprintf("%s brought a state that interrupts the instance: %s", task, why)
	}
	m := s.Message(TaskFailed, i, task, at, text)
	m.ID.By, m.Asks = by, asks
	if why, goesOn := strings.CutPrefix(reason, GoesOnHere); goesOn {
		m.Text, m.ID.Round = fmt.Sprintf("others presume that %s has failed, and it goes on here: %s", task, why), presumedRound
	}
	if why, presumed := strings.CutPrefix(reason, Presumes); presumed {
		m.Text, m.ID.Round = fmt.Sprintf("others presume that %s has failed, and its holder has not said so: %s", task,
			cmp.Or(why, "no reason was given")), presumedRound
	}
	return m
}

// InVain is the message that an order to do a task once more, or to leave it out, came to nothing, as the partner that
// was gone had done the task, or another order counts, by the fact that says so. who is the name of that partner;
// empty: it was another order.
func (s Source) InVain(i Item, task workflow.TaskName, by ID, at time.Time, skip bool, who string) Message {
	var text string
	switch {
	case who == "" && skip:
		text = fmt.Sprintf("%s was ordered to be left out, which came to nothing: another order about it counts", task)
	case who == "":
		text = fmt.Sprintf("%s was ordered to be done once more, which came to nothing: another order about it counts", task)
	case skip:
		text = fmt.Sprintf("%s was ordered to be left out, which came to nothing: %s had done it meanwhile, and that "+
			"result counts", task, who)
	default:
		text = fmt.Sprintf("%s was ordered to be done once more, which came to nothing: %s had done it meanwhile, and that "+
			"result counts", task, who)
	}
	m := s.Message(TaskFailed, i, task, at, text)
	m.ID.By = by
	return m
}

// Adopted is the message to whoever brought a result, by such a word, that it was adopted.
func (s Source) Adopted(i Item, task workflow.TaskName, word ID, at time.Time) Message {
	m := s.Message(Adopted, i, task, at, fmt.Sprintf("your result of %s was adopted: it counts now", task))
	m.ID.By = word
	return m
}

// Counts is Adopted of a result that nobody adopted: what it was made from counts now, and so it does.
func (s Source) Counts(i Item, task workflow.TaskName, word ID, at time.Time) Message {
	m := s.Adopted(i, task, word, at)
	m.Text = fmt.Sprintf("your result of %s, which had not counted, counts now", task)
	return m
}

// WasPresumed begins why somebody lost an item of a task that others presumed to have failed, and isPresumed the same
// as long as its holder has not heard of that: its user has it still.
const (
	WasPresumed = "the task was presumed to have failed"
	isPresumed  = "the task is presumed to have failed"
)

// Unrecorded is why somebody lost an item whose holder knows nothing of that: the device says so, as nobody else can.
const Unrecorded = "its holder has no record any more that it was given: it may have been put back from an older copy"

// Presumed is why somebody loses an item, as of what its holder has not heard of.
func Presumed(why string) string {
	if rest, was := strings.CutPrefix(why, WasPresumed); was {
		return isPresumed + rest
	}
	return why
}

// StillPresumed reports whether a user has an item still of which it is said why the user loses it: others presume that
// its task has failed, and its holder has not heard of that.
func StillPresumed(why string) bool { return strings.HasPrefix(why, isPresumed) }

// Unneeded is the message to whoever had an item that it is not needed any more, is over or was passed on, and since
// when. by is what people call whoever passed it on; empty: that is not known. Made: the user brought something of it,
// which is kept.
func (s Source) Unneeded(i Item, task workflow.TaskName, why, by string, at time.Time, made bool) Message {
	if StillPresumed(why) {
		m := s.Message(Lost, i, task, at, fmt.Sprintf("%s%s: you may go on, but what you make of it may not count", task,
			strings.TrimPrefix(why, "the task")))
		m.ID.Round = "presumed"
		return m
	}
	round := ""
	switch {
	case why == string(ByDeadline):
		why = "it passed to the responsible user, with its deadline near"
		round = fmt.Sprint("passed ", at.UnixMilli())
	case why == Unrecorded:
		round = fmt.Sprint("unrecorded ", at.UnixMilli())
	case passedOn(why):
		if why = "the item was " + why; by != "" {
			why += " by " + by
		}
		round = fmt.Sprint("passed ", at.UnixMilli())
	}
	text := fmt.Sprintf("%s is no longer yours, as %s", task, why)
	if made {
		text += ": what you made of it is kept"
	}
	m := s.Message(Lost, i, task, at, text)
	m.ID.Round = round
	return m
}

// passedOn reports whether somebody lost an item as it was passed on by hand.
func passedOn(why string) bool {
	return slices.Contains([]Cause{ByDelegation, ByEscalation, ByReturn}, Cause(why))
}

// Dated is an item with a deadline, as whoever is to be told of it knows it.
type Dated struct {
	Item     Item
	Task     workflow.TaskName
	Due      Due
	Since    time.Duration // Boot: when it became ready
	Warnings []time.Duration
	// Waits: it is not ready, so nobody can stop it yet, or let it go on.
	Waits bool
	// Asks: whoever is told is to decide whether it goes on once the deadline is over.
	Asks bool
	// Transfer is with how much time left it passes to the responsible user; 0: it does not. Theirs: whoever is told is
	// that user. Passed: its holder has written down that it has passed.
	Transfer time.Duration
	Theirs   bool
	Passed   bool
}

// passing is what a message says with so much left of how the item passes to the responsible user; "": nothing.
func (d *Dated) passing(left time.Duration) string {
	switch {
	case d.Transfer == 0 || left < d.Transfer, left > d.Transfer && d.Passed, left == d.Transfer && d.Theirs != d.Passed:
		return ""
	case left == d.Transfer && d.Theirs:
		return fmt.Sprintf("%s has passed to you, as it is due in %s", d.Task, workflow.FormatDuration(left))
	case left == d.Transfer:
		return fmt.Sprintf("%s passes to the responsible user, as it is due in %s: what you make of it from now on is kept, "+
			"and does not count by itself", d.Task, workflow.FormatDuration(left))
	}
	to := "the responsible user"
	if d.Theirs {
		to = "you"
	}
	return fmt.Sprintf("%s is due in %s, and passes to %s with %s left", d.Task, workflow.FormatDuration(left), to,
		workflow.FormatDuration(d.Transfer))
}

// told are with how much time left somebody is told of it.
func (d *Dated) told() []time.Duration {
	if d.passing(d.Transfer) == "" || slices.Contains(d.Warnings, d.Transfer) {
		return d.Warnings
	}
	return append(slices.Clone(d.Warnings), d.Transfer)
}

// Reminders are the messages that a deadline is near, or over, or that the item passes on as it is near, and when there
// is one more (Boot; 0: never).
func (s Source) Reminders(d Dated, now Moment) (out []Message, next time.Duration) {
	alerts, next := Alerts(d.Due, d.Since, d.told(), now)
	for _, a := range alerts {
		passing := d.passing(a.Left)
		m := s.Message(Deadline, d.Item, d.Task, a.At, cmp.Or(passing, a.text(d.Task)))
		m.ID.Due, m.ID.Warning = d.Due.number(), a.Left
		if passing != "" && a.Left == d.Transfer {
			m.ID.Round = passes
		}
		switch over := a.Left == 0; {
		case over && d.Waits: // once it is ready, another asks what becomes of it
			m.ID.Round = "waits"
			m.Text += ", and it still waits for what comes before it"
		case over && d.Asks:
			m.Asks = true
			m.Text += ": let it go on, or stop it"
		}
		out = append(out, m)
	}
	return out, next
}

// Within leaves those of the warnings of a deadline that come after what it is about: of a span after the item is
// ready, of a point in time after the instance began. Whoever starts it sees that the deadline is near.
func (d Due) Within(warnings []time.Duration, began time.Time) []time.Duration {
	before := func(w time.Duration) bool {
		if d.After > 0 {
			return w >= d.After
		}
		return !d.At.IsZero() && d.At.Add(-w).Before(began)
	}
	if !slices.ContainsFunc(warnings, before) {
		return warnings
	}
	return slices.DeleteFunc(slices.Clone(warnings), before)
}

// Since is when something became ready (Boot) of whose deadline so much is left.
func (d Due) Since(left time.Duration, now Moment) time.Duration { return now.Boot + left - d.After }

// failure is the message that an item failed, if it did.
func (b *Board) failure(it *item) []Message {
	e := it.end()
	if e == nil || !e.Failed {
		return nil
	}
	reason := "by order"
	if e.work != nil {
		reason = e.work.Reason
	}
	return []Message{b.source().Failed(it.Item, it.Item.Slot, e.By, b.facts[e.By].At, reason, b.asks(it))}
}

// reminders are the messages about an item's deadline.
func (b *Board) reminders(it *item, now Moment, answers bool) (out []Message, next time.Duration) {
	if !it.Ready || it.Over || it.end() != nil {
		return nil, 0
	}
	return b.source().Reminders(Dated{
		Item: it.Item, Task: it.Item.Slot, Due: it.deadline(), Since: it.Since,
		Warnings: it.deadline().Within(it.Task.Warnings, b.course.Started), Asks: answers && !it.goes,
		Transfer: it.Task.Transfer, Theirs: answers, Passed: it.passed,
	}, now)
}

// HasPassed reports whether an item has passed to the responsible user as the deadline that it has now was near.
func (b *Board) HasPassed(i Item) bool {
	it := b.items[i]
	return it != nil && it.passed
}

// GoesOn reports whether somebody has decided that an item goes on beyond the deadline that it has now.
func (b *Board) GoesOn(i Item) bool {
	it := b.items[i]
	return it != nil && it.goes
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
	return fmt.Sprintf("%s is due in %s", slot, workflow.FormatDuration(a.Left))
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
