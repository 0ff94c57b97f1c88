package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// What people are told of instances is worked out from what is here whenever they ask. Of an instance that has
// ended, and so is not kept in memory, that is noted with its end, and goes with it.

const (
	// maxNoted bounds the failures, and the orders that came to nothing, that are noted of an ended instance, and
	// notedReason the letters of each.
	maxNoted    = 16
	notedReason = 160
	// maxOfOne bounds the messages about one instance, the newest.
	maxOfOne = 256
)

// newsOf is what people are told of an instance.
func newsOf(h *held, name naming, person func(worklist.User) string) index.News {
	n := index.News{Responsible: h.m.Responsible(), Round: h.m.DoneAgain()}
	all := h.m.Failures()
	for _, f := range all[max(0, len(all)-maxNoted):] {
		n.Failed, n.Presumed = append(n.Failed, noted(f)), append(n.Presumed, f.Presumed)
	}
	for _, l := range h.m.Unneeded() {
		by := ""
		if l.By != "" && l.By != l.User {
			by = person(l.By)
		}
		n.Unneeded = append(n.Unneeded, index.Unneeded{
			User: l.User, Assigned: l.Item.Assigned, Slot: l.Item.Slot, Task: l.Task, Why: l.Why, At: l.At,
			Made: l.Made, By: by,
		})
	}
	vain := h.m.Vain()
	for _, v := range vain[max(0, len(vain)-maxNoted):] {
		whose := ""
		if v.Partner != "" {
			whose = name(v.Partner)
		}
		n.Vain = append(n.Vain, index.Vain{
			User: v.User, Assigned: v.Item.Assigned, Slot: v.Item.Slot, Task: v.Task, By: v.Counts.ID,
			Name: whose, Skip: v.Skip, At: max(h.knownAt(v.Began), h.knownAt(v.Counts)),
		})
	}
	return n
}

func noted(f choreo.Failure) index.Failure {
	return index.Failure{
		Assigned: f.Item.Assigned, Slot: f.Item.Slot, Task: f.Task, By: f.By, At: f.At,
		Reason: show.InOneLine(f.Reason, notedReason), Asks: f.Asks,
	}
}

// Messages are what a person is told of the instances here, and when there may be one more (Boot; 0: never).
func (k peoplesItems) Messages(
	ctx context.Context, u worklist.User,
) (out []worklists.Told, next time.Duration, err error) {
	now := k.clock.Now()
	at := choreo.Moment{Boot: now.Boot, Wall: now.Wall}
	type news struct {
		told []worklists.Told
		of   []workflow.InstanceID
		next time.Duration
	}
	found, err := lookAt(ctx, k.crew, func(s *shard) (is news) {
		hears := k.hearing(u)
		s.all(func(id workflow.InstanceID, h *held) {
			is.of = append(is.of, id)
			answers := hears.of(index.Charge{Responsible: h.m.Responsible(), Definition: h.def.Hash})
			more, then := h.m.Reminders(u, answers, at, k.view.Reckoning())
			more = append(more, h.m.Adoptions(u)...)
			n := newsOf(h, k.people.name, k.partners.Called)
			for _, l := range n.Unneeded {
				if l.User == u {
					more = append(more, l.Message(id, h.sum))
				}
			}
			if by := h.m.BegunBy(); answers || by != nil && by.User == u {
				more = append(more, k.untaken(h)...)
			}
			if answers {
				more = append(more, n.Messages(id, h.sum, k.people.GoneForGood)...)
			} else {
				more = append(more, toOther(h, n, hears)...)
			}
			slices.SortStableFunc(more, func(a, b worklist.Message) int { return a.At.Compare(b.At) })
			for _, m := range more[max(0, len(more)-maxOfOne):] {
				is.told = append(is.told, worklists.Told{
					Message: m, From: h.sum.By, Label: h.m.Definition().LabelOf(m.Task),
					WorkflowLabel: h.m.Definition().Label, Subject: h.subject(),
				})
			}
			if then > 0 && (is.next == 0 || then < is.next) {
				is.next = then
			}
		})
		return is
	})
	if err != nil {
		return nil, 0, err
	}
	inMemory := map[workflow.InstanceID]bool{}
	for _, is := range found {
		for _, id := range is.of {
			inMemory[id] = true
		}
		if out = append(out, is.told...); is.next > 0 && (next == 0 || is.next < next) {
			next = is.next
		}
	}
	hears, charges := k.hearing(u), k.index.Charges()
	maps.DeleteFunc(charges, func(c index.Charge, _ bool) bool { return !hears.of(c) })
	ended := len(out)
	k.index.Told(charges, inMemory, worklists.MaxMessages, k.people.GoneForGood, func(m worklist.Message, by workflow.PartnerID) {
		out = append(out, worklists.Told{Message: m, From: by})
	})
	k.index.Personal(u, charges, inMemory, func(m worklist.Message, by workflow.PartnerID) {
		out = append(out, worklists.Told{Message: m, From: by})
	})
	for i := range out[ended:] {
		k.label(&out[ended+i])
	}
	return out, next, nil
}

// untaken are the messages that partners do not take an instance in for a reason that needs a person: they say nothing
// else of it, and others take in what each may.
func (k *desk) untaken(h *held) (out []worklist.Message) {
	shown := h.shown()
	if len(shown.Refused) == 0 {
		return nil
	}
	of := worklist.Source{Instance: h.id, Workflow: h.def.Def.Name}
	said := k.view.Untaken(shown)
	for i, r := range shown.Refused {
		why := "beginner"
		if r.Unfit {
			why = "unfit"
		}
		if r.Unfit || r.OfBeginner {
			out = append(out, of.Untaken(r.By, why, r.Since, said[i]))
		}
	}
	return out
}

// toOther are the messages about an instance to a person that others get who answer for it: of what the person ordered,
// and, if the person may recover it, of what interrupts it.
func toOther(h *held, n index.News, hears hearing) (out []worklist.Message) {
	for _, v := range n.Vain {
		if v.User == hears.u {
			out = append(out, v.Message(h.id, h.sum))
		}
	}
	if f, is := h.m.Interruption(); is && hears.recovers(h) {
		out = append(out, noted(f).Message(h.id, h.sum, false))
	}
	return out
}

// Stuck are instances here that wait for a person who decides about them: that are interrupted, or in which a failure
// waits for an order; and running ones in which the person has, or had, an item. At most so many, the newest, those that
// wait first.
func (k peoplesItems) Stuck(ctx context.Context, u worklist.User, most int) ([]worklists.Stuck, error) {
	who, known := k.partners.Person(u)
	if !known {
		return nil, nil
	}
	type concerning struct {
		waits, took map[workflow.InstanceID]worklists.Stuck
	}
	found, err := lookAt(ctx, k.crew, func(s *shard) concerning {
		of := concerning{map[workflow.InstanceID]worklists.Stuck{}, map[workflow.InstanceID]worklists.Stuck{}}
		hears := k.hearing(u)
		s.all(func(id workflow.InstanceID, h *held) {
			if h.m.MayOrder(who.User, who.Roles) {
				if x, stuck := stuckOf(h, hears); stuck {
					of.waits[id] = x
					return
				}
			}
			if h.sum.Ended == 0 && h.m.TookPart(u) {
				of.took[id] = concerns(h)
			}
		})
		return of
	})
	if err != nil {
		return nil, err
	}
	waits, took := map[workflow.InstanceID]worklists.Stuck{}, map[workflow.InstanceID]worklists.Stuck{}
	for _, of := range found {
		maps.Copy(waits, of.waits)
		maps.Copy(took, of.took)
	}
	hears := k.hearing(u)
	for _, id := range k.index.Waiting() {
		if _, known := waits[id]; known {
			continue
		}
		if x, stuck := k.stuckEnded(id, hears); stuck {
			waits[id] = x
		}
	}
	rows := k.index.Rows(slices.Collect(maps.Keys(waits)), most)
	rows = append(rows, k.index.Rows(slices.Collect(maps.Keys(took)), most-len(rows))...)
	maps.Copy(waits, took)
	k.addProgress(ctx, rows)
	out := []worklists.Stuck{}
	for _, row := range rows {
		x := waits[index.IDOf(row.ID)]
		x.Shown = row
		out = append(out, x)
	}
	return out, nil
}

// concerns is what is said of any such instance.
func concerns(h *held) (x worklists.Stuck) {
	with := h.m.Participants()
	x.Facts, x.With, x.Runs = h.m.Len(), with[:min(len(with), wire.MaxReported)], h.def.Hash
	return x
}

// stuckOf says what a person who decides is told of an instance that waits for that: whoever answers for it all failures,
// others what interrupts it. Not stuck: it waits for nobody.
func stuckOf(h *held, hears hearing) (x worklists.Stuck, stuck bool) {
	if n := h.m.Len(); h.failing.facts != n {
		h.failing = failing{n, slices.ContainsFunc(h.m.Failures(), func(f choreo.Failure) bool { return f.Asks })}
	}
	if !h.failing.asks {
		return x, false
	}
	x = concerns(h)
	answers := hears.of(index.Charge{Responsible: h.m.Responsible(), Definition: h.def.Hash})
	_, interrupted := h.m.Interruption()
	for _, f := range h.m.Failures() {
		if !f.Asks {
			continue
		}
		stuck = true
		if answers || interrupted {
			x.Messages = append(x.Messages, worklists.StuckNews{
				Message: noted(f).Message(h.id, h.sum, f.Presumed != "" && !hears.k.people.GoneForGood(f.Presumed)),
				Label:   h.m.Definition().LabelOf(f.Task),
			})
		}
	}
	x.Messages = x.Messages[max(0, len(x.Messages)-worklists.MaxStuckNews):]
	return x, stuck
}

// stuckEnded is stuckOf for an instance that has ended, and is not in memory.
func (k peoplesItems) stuckEnded(id workflow.InstanceID, hears hearing) (x worklists.Stuck, stuck bool) {
	sum, known := k.index.Get(id)
	n, noted := k.index.NewsOf(id)
	if !known || !noted || !sum.Settled {
		return x, false
	}
	answers := n.Responsible == hears.u
	if !answers && !hears.administers(sum.Definition) {
		return x, false
	}
	for i, f := range n.Failed {
		if f.Asks {
			stuck = true
			if answers {
				x.Messages = append(x.Messages, worklists.StuckNews{
					Message: f.Message(id, sum, n.Presumes(i, k.people.GoneForGood)),
				})
			}
		}
	}
	x.Facts, x.Runs = int(sum.Number), sum.Definition
	return x, stuck
}

// label adds what an instance is about that is not in memory and, where its definition is here, what people call its
// workflow and the task.
func (k peoplesItems) label(m *worklists.Told) {
	sum, known := k.index.Get(m.ID.Instance)
	if !known {
		return
	}
	m.WorkflowLabel, m.Subject = k.definitions.Label(sum.Definition), sum.Subject
	if task := m.Task; task != "" {
		if def, err := k.definitions.Get(sum.Definition); err == nil {
			m.Label = def.Def.LabelOf(task)
		}
	}
}

// hearing is of which instances a person is told. It is for one goroutine.
type hearing struct {
	k     peoplesItems
	u     worklist.User
	roles []workflow.RoleName
	known map[index.Charge]bool
}

func (k peoplesItems) hearing(u worklist.User) hearing {
	person, _ := k.partners.Person(u)
	return hearing{k, u, person.Roles, map[index.Charge]bool{}}
}

// of reports whether the person is told of an instance: who answers for it, and, where nobody is left who does, those
// who may do something about it: administrators, and this partner, which may cancel it (unanswerable).
func (x hearing) of(c index.Charge) bool {
	if c.Responsible == x.u {
		return true
	}
	is, known := x.known[c]
	if !known {
		is = x.k.nobodyAnswers(c.Responsible) && (x.u == worklist.User(x.k.member.ID()) || x.administers(c.Definition))
		x.known[c] = is
	}
	return is
}

// recovers reports whether the person may recover an instance although somebody else answers for it: it is told what
// interrupts it, until that is resolved.
func (x hearing) recovers(h *held) bool {
	by := h.def.Def.Administrators
	return by != "" && slices.Contains(x.roles, by)
}

// administers reports whether the person has the role that decides about all instances of a definition.
func (x hearing) administers(h workflow.Hash) bool {
	def, err := x.k.definitions.Get(h)
	return err == nil && def.Def.Administrators != "" && slices.Contains(x.roles, def.Def.Administrators)
}

// noteNews notes with the end of an instance what people are told of it, and which files are only here, unless that is
// noted.
func (s *shard) noteNews(h *held, b *batch) {
	n := newsOf(h, s.n.people.name, s.n.partners.Called)
	for _, x := range s.n.filing.Alone(h.filed()) {
		if len(x.Readers) > 0 || !over(h.sum.State) { // else it waits for nobody
			n.Alone = append(n.Alone, x)
		}
	}
	if s.n.index.Noted(h.id, n) {
		return
	}
	h.news = &n
	b.writes = append(b.writes, kv.Write{Key: index.NewsKey(h.id), Value: encode(n)})
}
