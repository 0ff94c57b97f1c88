package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// mostNamed is how many tasks the sentences about an instance name.
const mostNamed = 3

// sentences say how an instance stands: its state, who has the work, and what happens next and when.
func (l *language) sentences(in *api.Instance, now time.Time) (out []string) {
	if in.Ended != nil && in.State != workflow.InstanceBlocked { // which waits for an order
		return []string{l.say("tells.ended", l.word("instance", in.State), l.hour(*in.Ended, now))}
	}
	switch {
	case in.Recovery != nil:
		out = append(out, l.say("tells.interrupted", l.hour(in.Recovery.At, now)))
	case in.State != workflow.InstanceRunning:
		out = append(out, l.say("tells.is", l.word("instance", in.State)))
	}
	var at, free []string
	late := false // something waits for who is away, and another can end it
	for i := range in.Tasks {
		t := &in.Tasks[i]
		name := cmp.Or(t.Label, string(t.Name))
		switch {
		case t.State != workflow.Ready && t.State != workflow.Running:
		case t.Away != nil:
			says := l.absent(t, name, now)
			if t.ClaimedBy == "" && t.State == workflow.Ready {
				free = append(free, says)
				late = late || t.Away.Partner != string(in.Responsible) // whose word would help nobody here
			} else {
				at = append(at, says)
			}
		case t.ClaimedBy != "":
			at = append(at, l.say("tells.has", t.ClaimedBy, name))
		case t.WaitsForWorker:
			at = append(at, l.say("tells.awaits", name))
		case t.Worker != nil && t.Worker.Until != nil:
			at = append(at, l.say("tells.worker", t.Worker.Name, name, fmt.Sprintf("%.0f%%", 100*t.Worker.Progress))+
				remark(t.Worker.Note))
		case len(t.WaitsFor) > 0:
			free = append(free, l.say("tells.lacks", name, lacks(t.WaitsFor), t.Partner))
		case t.State == workflow.Running:
			at = append(at, l.say("tells.works", t.Partner, name))
		case t.KeptFor != "":
			free = append(free, l.say("tells.kept", name, t.KeptFor, t.Partner))
		case len(t.OfferedTo) > 0:
			free = append(free, l.say("tells.offered", name, strings.Join(t.OfferedTo, ", "), t.Partner))
		default:
			free = append(free, l.say("tells.free", name, t.Partner))
		}
	}
	out = append(out, cut(append(at, free...), mostNamed)...)
	if more := len(at) + len(free) - mostNamed; more > 0 {
		out = append(out, l.say("tells.more", more))
	}
	if len(at)+len(free) == 0 && in.State == workflow.InstanceRunning {
		out = append(out, l.say("tells.nothing"))
	}
	if late && in.Responsible != "" && !in.ResponsibleGone {
		out = append(out, l.say("tells.away.late", string(in.Responsible)))
	}
	return append(out, l.next(in, now)...)
}

// absent says of a task whose holder is away as it announced who has it, and what waits until that one is back.
func (l *language) absent(t *api.Task, name string, now time.Time) string {
	until := l.hour(t.Away.Until, now)
	switch {
	case t.ClaimedBy != "":
		return l.say("tells.has", t.ClaimedBy, name) + " " + l.say("tells.away.has", t.Away.Partner, until)
	case t.State == workflow.Running:
		return l.say("tells.works", t.Away.Partner, name) + " " + l.say("tells.away.has", t.Away.Partner, until)
	}
	return l.say("tells.away.free", name, t.Away.Partner, until)
}

// lacks names the resources for which a task waits.
func lacks(of []api.Lack) string {
	names := make([]string, len(of))
	for i, x := range of {
		names[i] = x.Resource
	}
	return strings.Join(names, ", ")
}

// remark is what a worker says of its progress, after a sentence.
func remark(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func cut(list []string, most int) []string { return list[:min(len(list), most)] }

// mostNext is how many of the things are told that happen by themselves next.
const mostNext = 2

// next says what happens by itself first, and when.
func (l *language) next(in *api.Instance, now time.Time) (out []string) {
	type due struct {
		at   time.Time
		says string
	}
	var all []due
	for i := range in.Tasks {
		t := &in.Tasks[i]
		name := cmp.Or(t.Label, string(t.Name))
		for _, d := range t.Due {
			says := l.say("tells.timeout", name, l.hour(d.At, now))
			if d.Kind == "trigger" {
				says = l.say("tells.trigger", l.hour(d.At, now), cmp.Or(t.Partner, "–"), name)
			}
			if d.Kind == "transfer" {
				says = l.say("tells.transfer", name, l.hour(d.At, now))
			}
			if d.Kind == "deadline" {
				says = l.say("tells.deadline", name, l.hour(d.At, now))
			}
			if d.Kind == "deadline" && !d.At.After(now) {
				says = l.say("tells.late", name, l.hour(d.At, now))
			}
			all = append(all, due{d.At, says})
		}
	}
	for i := range in.Partitions {
		part := &in.Partitions[i]
		name := cmp.Or(part.Label, string(part.Name))
		for _, d := range part.Due {
			says := l.say("tells.timeout", name, l.hour(d.At, now))
			if d.Kind == "verdict" {
				says = l.say("tells.verdict", part.Partner, name, l.hour(d.At, now))
			}
			all = append(all, due{d.At, says})
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return a.at.Compare(b.at) })
	for _, d := range all[:min(len(all), mostNext)] {
		out = append(out, d.says)
	}
	return out
}

// hour is a moment in a sentence: without the day where it is today's.
func (l *language) hour(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format(l.date + " 15:04")
}

// span is a row of the timeline: a task, from when to when, on a scale of a thousand parts.
type span struct {
	api.Task
	Who         string
	From, Width int // of what has happened
	Until       int // the place where its time is up; 0: not on the scale
	Now         bool
	Waits       bool
	Next        *api.Due
}

// scale is the time that the timeline shows, in parts.
const scale = 1000

// timeline are the tasks in the order in which they happen: what was done, by its end, what is done now, and
// what waits. from and to are the moments at both ends of the scale.
func timeline(in *api.Instance, now time.Time) (rows []span, from, to time.Time) {
	from, to = in.Started, now
	if in.Ended != nil {
		to = *in.Ended
	}
	for _, t := range in.Tasks {
		for _, d := range t.Due {
			if d.At.After(to) && d.At.Sub(now) < 24*time.Hour {
				to = d.At
			}
		}
		if t.Started != nil && t.Started.Before(from) {
			from = *t.Started
		}
	}
	at := func(t time.Time) int {
		if !to.After(from) {
			return 0
		}
		return int(min(max(t.Sub(from), 0), to.Sub(from)) * scale / to.Sub(from))
	}
	for _, t := range in.Tasks {
		s := span{Task: t, Who: cmp.Or(t.PerformedBy, t.ClaimedBy, t.Partner)}
		s.Now = t.State == workflow.Running || t.State == workflow.Ready
		s.Waits = t.State == workflow.NotReady
		begin, end := t.Started, t.Ended
		if begin == nil {
			begin = end
		}
		if begin != nil {
			s.From = at(*begin)
			last := now
			if end != nil {
				last = *end
			} else if in.Ended != nil {
				last = *in.Ended
			}
			s.Width = max(at(last)-s.From, 8)
			s.From = min(s.From, scale-s.Width)
		}
		for i := range t.Due {
			if s.Next == nil || t.Due[i].At.Before(s.Next.At) {
				s.Next = &t.Due[i]
			}
		}
		if s.Next != nil && !s.Next.At.After(to) {
			s.Until = at(s.Next.At)
		}
		rows = append(rows, s)
	}
	slices.SortStableFunc(rows, func(a, b span) int {
		order := func(s span) int {
			switch {
			case s.Now:
				return 1
			case s.Waits:
				return 2
			case s.State == workflow.Skipped || s.Ended == nil:
				return 3
			}
			return 0
		}
		return cmp.Or(order(a)-order(b), began(a).Compare(began(b)))
	})
	return rows, from, to
}

// began orders rows of a kind.
func began(s span) time.Time {
	if s.Started != nil {
		return *s.Started
	}
	if s.Ended != nil {
		return *s.Ended
	}
	return time.Time{}
}

// about is an instance in words: what it is about, and of which workflow it is.
func about(workflow, subject string) string {
	if subject == "" {
		return workflow
	}
	return strings.Join([]string{subject, workflow}, " · ")
}

// Rest is how much of the scale lies before its time is up.
func (s span) Rest() int { return max(s.Until-s.From, 0) }
