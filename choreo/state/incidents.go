package state

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file collects what people should look at: whatever did not go, or count, as somebody may have thought.

// Incidents are what people should look at.
func (s *State) Incidents() (out []IncidentView) {
	for _, sl := range s.slots {
		if sl.Duplicated {
			out = append(out, IncidentView{
				At: sl.Pick.Success().Fact.At, Task: sl.Task.Name,
				What: "both sides of a split built upon a success of their own",
			})
		}
		for _, a := range sl.Attempts {
			out = append(out, s.undoIncidents(a)...)
			if x, is := a.missing(); is {
				out = append(out, x)
			}
			if x, is := a.orderInVain(); is {
				out = append(out, x)
			}
			if a.tookItself() {
				what := "it presumed that another had failed " + string(a.after.Task.Name) +
					", and gave the contingency to itself"
				task := a.Task.Name
				if a.Task.Whole {
					task, what = "", "it presumed that the holder of the data states was lost, and goes on with them itself"
				}
				out = append(out, IncidentView{At: a.Assigned.Fact.At, Task: task, Who: a.Partner, What: what})
			}
		}
	}
	out = append(out, s.brokenConstraints()...)
	out = append(out, s.flowIncidents()...)
	out = append(out, s.unitIncidents()...)
	out = append(out, s.amendIncidents()...)
	out = append(out, s.Uncounted()...)
	out = append(out, s.forkedResults()...)
	for _, h := range s.log.Forks() {
		out = append(out, IncidentView{
			At: s.log.Genesis().Fact.At, Who: h.Chain.Author,
			What: "two facts with one number: this partner lied or was restored from a backup",
		})
	}
	return out
}

// orderInVain says of an attempt that an order began that something else counts, which whoever ordered could not know.
func (a *Attempt) orderInVain() (out IncidentView, is bool) {
	done, by, what := a.DoneAllTheSame(), a.PassedOver(), string(a.Task.Name)
	if done == nil && by == nil {
		return out, false
	}
	out = IncidentView{At: a.Assigned.Fact.At, Task: a.Task.Name, Who: a.Partner}
	if done != nil {
		out.At, out.Who = done.Success().Fact.At, done.Partner
	}
	switch {
	case done != nil && a.Skips:
		what += " was ordered to be left out, and had been done meanwhile: that result counts"
	case done != nil:
		what += " was ordered to be done once more, and had been done meanwhile: that result counts"
	case by.Skips:
		what += " was ordered to be done once more, and by another order it was left out: that one counts"
	case a.Skips:
		what += " was ordered to be left out, and by another order done once more: that one counts"
	default:
		what += " was ordered to be done once more, and by another order elsewhere: that one counts"
	}
	out.What = what
	return out, true
}

// DoneAllTheSame is the attempt of another whose result counts although an order, which this attempt follows, had it
// done once more or left out, as its holder was gone: whoever ordered believes otherwise. nil: there is none, or both
// did it, so that one result is superseded and shown as such, or that result was adopted, which is an order as well.
func (a *Attempt) DoneAllTheSame() *Attempt {
	counts := a.Slot.Pick
	if a.after == nil || a.Undoes != nil || a.Success() != nil || counts == nil || counts.Success() == nil || !a.ordered() {
		return nil
	}
	if c := counts.Success().Fact.Body.Claim; c != nil && Adopts(c.Body()) {
		return nil
	}
	for before := a.after; before != nil; before = before.after {
		if before == counts {
			return before
		}
	}
	return nil
}

// PassedOver is the attempt in charge, or one that led to it, that an order began after the same one as this attempt,
// which an order began, too: of two orders at nodes that could not hear of each other one counts. nil: there is none,
// both wanted it left out, or this attempt has a result, which is shown as superseded.
func (a *Attempt) PassedOver() *Attempt {
	if a.after == nil || a.Undoes != nil || a.Success() != nil || !a.ordered() {
		return nil
	}
	for c := a.Slot.Current; c != nil && c != a; c = c.after {
		if c.after == a.after && c.ordered() && !(a.Skips && c.Skips) { // to leave it out twice is what either wanted
			return c
		}
	}
	return nil
}

// tookItself reports whether an attempt is its holder's by its own word: it judged
// what another had, or chose who follows. That may be right, and is not proved; by order it is.
func (a *Attempt) tookItself() bool {
	return a.by != nil && !a.by.Final && a.after.Partner != a.Partner && a.Assigned.Fact.Chain.Author == a.Partner && !a.ordered()
}

// ordered reports whether an order began an attempt. It looks into the fact, which is far away in memory: what lists ask
// of 10,000 instances asks for all else before.
func (a *Attempt) ordered() bool {
	x := a.Assigned.Fact.Body.Annex
	return x != nil && x.Order != nil
}

// forkedResults are the results that do not count because a fork took them away, or what they were made from: somebody
// worked for them, and may want to say them once more. A result of a person is named once, by that person's word.
func (s *State) forkedResults() (out []IncidentView) {
	if s.log.Forked() == 0 {
		return nil
	}
	type said struct {
		by workflow.PartnerID
		of fact.AttemptID
	}
	people := map[said]bool{}
	for e := range s.takenByForks() {
		if len(out) == maxUncounted {
			break
		}
		x := IncidentView{At: e.Fact.At, Who: e.Fact.Chain.Author}
		switch b := &e.Fact.Body; {
		case b.Success != nil && !people[said{x.Who, b.Success.Attempt}]:
			x.Task = s.taskNamed(b.Success.Attempt)
		case b.Claim != nil:
			r, who := s.resultIn(e)
			if who == "" {
				continue
			}
			id := fact.AttemptIDOf(r.Item)
			people[said{x.Who, id}] = true
			x.Task, x.User = s.taskNamed(id), who
		default:
			continue
		}
		if x.What = "a result of " + string(x.Task); x.Task == workflow.FlowTask {
			continue // nobody wrote that task, and nothing comes of it but the states that are named
		}
		x.What += " does not count, as it goes with two facts that have one number; the log keeps it"
		out = append(out, x)
	}
	return out
}

// takenByForks are the facts that do not count because a fork took them away, or what they were made from.
func (s *State) takenByForks() iter.Seq[*log.Entry] {
	return func(yield func(*log.Entry) bool) {
		for _, e := range s.log.Order() {
			s.log.Steps++
			// Whom a fork had brought in takes no part without it, and so what it says is not counted.
			away := e.Why == forkedAway || e.Beyond && s.former[e.Fact.Chain.Author] != nil
			if !e.Counted && away && !yield(e) {
				return
			}
		}
	}
}

// resultIn is the result of a person that a fact writes down, and whose it is; empty: it writes none down.
func (s *State) resultIn(e *log.Entry) (r worklist.Result, whose worklist.User) {
	if e.Fact.Body.Claim == nil {
		return r, ""
	}
	r, is := e.Fact.Body.Claim.Body().(worklist.Result)
	if who, _ := s.speaker(e, e.Fact.Body.Claim); is {
		whose = who.User
	}
	return r, whose
}

// WasForked is why a person's result does not count that a fork took away.
const WasForked = "two facts of its holder have one number, as when a backup was put back"

// Forked are the losses of people whose results a fork took away, the newest of each for an item, in the one order.
func (s *State) Forked() (out []worklist.Loss, grants []worklist.ID) {
	if s.log.Forked() == 0 {
		return nil, nil
	}
	for e := range s.takenByForks() {
		r, who := s.resultIn(e)
		if who == "" || s.attempts[fact.AttemptIDOf(r.Item)] == nil {
			continue
		}
		i := slices.IndexFunc(out, func(l worklist.Loss) bool { return l.User == who && l.Item == r.Item })
		if i < 0 && len(out) == maxUncounted {
			continue
		}
		if i < 0 {
			i, out, grants = len(out), append(out, worklist.Loss{}), append(grants, worklist.ID{})
		}
		grants[i] = r.Grant
		out[i] = worklist.Loss{
			Item: r.Item, User: who, Why: WasForked, At: time.UnixMilli(e.Fact.At), Works: []worklist.ID{worklist.ID(e.ID)},
		}
	}
	return out, grants
}

// taskNamed is the task of an attempt; of one that is not known here, as a fork took it away, the task whose slot it is.
func (s *State) taskNamed(id fact.AttemptID) workflow.TaskName {
	if a := s.attempts[id]; a != nil {
		return a.Task.Name
	}
	return id.Slot
}

// Uncounted are the facts that do not count, but for those of forked chains.
func (s *State) Uncounted() (out []IncidentView) {
	if len(s.refusals) == 0 { // nearly always, and lists of many instances ask each
		return nil
	}
	first := func(a, b refusal) int { return log.ByTime(s.refusals[a].first, s.refusals[b].first) }
	order := slices.SortedFunc(maps.Keys(s.refusals), first)
	for _, r := range order[:min(len(order), maxUncounted)] {
		s.log.Steps++
		of := s.refusals[r]
		what := fmt.Sprintf("%d of its facts do not count: %s", of.number, r.why)
		if of.number == 1 {
			what = "one of its facts does not count: " + r.why
		}
		out = append(out, IncidentView{At: of.first.Fact.At, Who: r.by, What: what})
	}
	return out
}

// maxUncounted bounds the kinds of facts that do not count that people are shown.
const maxUncounted = 32

// undoIncidents are what people should know of an attempt's compensation.
func (s *State) undoIncidents(a *Attempt) (out []IncidentView) {
	if a.Undo == nil {
		return nil
	}
	if r := s.Prevailing(a.Undo.Rulings); r != nil && a.Undo.Success() == nil {
		out = append(out, IncidentView{
			At: r.At.Fact.At, Task: a.Task.Name, Who: a.Partner,
			What: "its compensation failed: " + ReasonOf(r.At.Fact.Body.Verdict),
		})
	}
	if a.Undo.Start != nil && a.Stands != Superseded && !a.toUndo {
		out = append(out, IncidentView{
			At: a.Undo.Start.Fact.At, Task: a.Task.Name, Who: a.Partner,
			What: "it was compensated, and then turned out to have been built upon",
		})
	}
	return out
}

// brokenConstraints are what people should know of constraints that the current data break, and of an end that they
// do not reach.
func (s *State) brokenConstraints() (out []IncidentView) {
	for _, c := range s.constraints {
		if c.holds {
			continue
		}
		by := s.lastWrite(c.condition)
		x := IncidentView{
			At: by.Fact.At, What: fmt.Sprintf("the data break the constraint %s: %s", c.name, c.Expr.Source),
		}
		if c.strict {
			x.What = fmt.Sprintf("the data break the constraint %s, so nothing else begins: %s", c.name, c.Expr.Source)
		}
		if a := s.bySucc[by.ID]; a != nil {
			x.Task = a.Task.Name
		}
		out = append(out, x)
	}
	if s.final != nil && !s.final.holds && s.Overall() == workflow.InstanceFailed {
		what := "nothing is left to be done, and the data are not final: " + s.final.Expr.Source
		out = append(out, IncidentView{At: s.lastWrite(s.final).Fact.At, What: what})
	}
	return out
}

// mostStill is after how many transitions in a row that change nothing people are told.
const mostStill = 100

// flowIncidents are what people should look at in a flow.
func (s *State) flowIncidents() (out []IncidentView) {
	if s.flow == nil {
		return nil
	}
	l := s.flow.Line
	for r := range l.Board.Conflicting() {
		for _, n := range r.Conflicts {
			out = append(out, IncidentView{
				At: r.Ended, Task: r.Task,
				What: fmt.Sprintf("it set %s, which was changed after the state that fired it", n),
			})
		}
	}
	var idle []*log.Entry
	for e, why := range l.why {
		if e.Fact.Body.Success == nil || why == dataflow.FinalTooEarly {
			idle = append(idle, e)
		}
	}
	slices.SortFunc(idle, log.ByTime)
	for _, e := range idle[:min(len(idle), maxUncounted)] {
		out = append(out, IncidentView{
			At: e.Fact.At, Who: e.Fact.Chain.Author, What: "what it said of the flow changes nothing: " + l.why[e],
		})
	}
	if n, since := l.Board.Still(); n > mostStill && s.ShownState() == workflow.InstanceRunning {
		out = append(out, IncidentView{
			At: since, Task: l.Board.Last().Task,
			What: fmt.Sprintf("more than %d transitions in a row have changed no data: what they answer does not end "+
				"what fires them", mostStill),
		})
	}
	out = append(out, s.passedOrders()...)
	lost := s.undoneInVain()
	for _, e := range lost[:min(len(lost), maxUncounted)] {
		out = append(out, IncidentView{
			At: e.Fact.At, Task: s.attempts[e.Fact.Body.Success.Attempt].Undoes.Task.Name, Who: e.Fact.Chain.Author,
			What: undoneForNothing,
		})
	}
	out = append(out, s.lateAmendments()...)
	for said := range s.flow.lost {
		out = append(out, s.undoIncidents(said)...)
	}
	slices.SortStableFunc(out, func(x, y IncidentView) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Task, y.Task))
	})
	return out
}

// lateAmendments are those that came too late (Late).
func (s *State) lateAmendments() (out []IncidentView) {
	late := s.Late()
	for _, a := range late[:min(len(late), maxUncounted)] {
		patch := s.fittings[a.ID].patch
		out = append(out, IncidentView{
			At: a.Fact.At, Who: a.Fact.Chain.Author,
			What: "an amendment came too late: a final state had ended the instance by the definition of before; it has no effect: " +
				strings.Join(patch.Lines(), "; "),
		})
	}
	return out
}

// placed says in which partition a task is, if it is in one.
func (s *State) placed(t workflow.TaskName) string {
	if home := s.plan.Home(t); home != "" {
		return ", in partition " + string(home)
	}
	return ""
}

// passedOrders are the orders to recover that are of a history that does not count: somebody repaired the instance, and
// may want to do so once more.
func (s *State) passedOrders() (out []IncidentView) {
	var lost []*log.Entry
	for e := range s.Passed() {
		if e.Fact.Body.Claim != nil {
			lost = append(lost, e)
		}
	}
	slices.SortFunc(lost, log.ByTime)
	for _, e := range lost[:min(len(lost), maxUncounted)] {
		x, err := stepOf(e.Fact.Body.Claim)
		if err != nil {
			continue
		}
		who, _ := s.speaker(e, e.Fact.Body.Claim)
		out = append(out, IncidentView{
			At: e.Fact.At, Who: e.Fact.Chain.Author, User: who.User,
			What: "the order to recover by " + x.Method + " does not count, as another history of the data states does",
		})
	}
	return out
}

// unitIncidents are resources with which more tasks are under way than there is of them: since the last of these began.
func (s *State) unitIncidents() (out []IncidentView) {
	if len(s.def.Resources) == 0 || s.peoples.Board == nil {
		return nil
	}
	for _, sl := range s.slots {
		if a := sl.Current; len(a.holds()) > 0 && s.WorkedOnSince(a) > 0 {
			s.PlaceItems(sl)
		}
	}
	for _, x := range s.peoples.Board.Overused() {
		var since []int64
		var presumed []worklist.Item
		for _, i := range x.Begun {
			a := s.attempts[fact.AttemptIDOf(i)]
			since = append(since, s.WorkedOnSince(a))
			if s.PresumedBy(a) != nil {
				presumed = append(presumed, i)
			}
		}
		slices.Sort(since)
		what := fmt.Sprintf("more tasks use %s at once than there is of it (%d): it is given to %s, and in use by %s as well",
			x.Resource, x.Capacity, slotsOf(x.Given), slotsOf(x.Beyond))
		if len(presumed) > 0 {
			what += fmt.Sprintf("; %s was presumed to have failed, and may go on all the same", slotsOf(presumed))
		}
		out = append(out, IncidentView{At: since[x.Capacity], Task: x.Beyond[0].Slot, What: what})
	}
	return out
}

// slotsOf names the first tasks of items.
func slotsOf(items []worklist.Item) string {
	var first []workflow.TaskName
	for _, i := range items[:min(len(items), worklist.MaxLackBy)] {
		first = append(first, i.Slot)
	}
	return worklist.Listed(first, len(items))
}

// amendIncidents are amendments that were made side by side and do not simply go together.
func (s *State) amendIncidents() (out []IncidentView) {
	all := s.Amendments()
	say := func(e *log.Entry, part amendments.Part, what string) {
		x := IncidentView{At: e.Fact.At, Who: e.Fact.Chain.Author, What: what}
		if part.Kind == amendments.OfTask {
			x.Task = workflow.TaskName(part.Name)
		}
		if len(out) < maxUncounted {
			out = append(out, x)
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if s.log.Knew(b.At, a.At) {
				continue
			}
			for _, c := range amendments.Clashes(a.Patch, b.Patch) {
				what := "two amendments were made side by side, and set one key unlike: " + c.String() + "; "
				if value, any := s.setLast(all, c); any {
					what += "what counts is " + amendments.Apart(value)
				} else {
					what += "neither counts"
				}
				switch {
				case c.Key == "" && slices.Contains(byKeys, c.Kind) && s.leaves(&a):
					if s.leaves(&b) {
						continue // of each it is said that it does not count
					}
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; it is as the later of " +
						"them says, as the other does not count"
				case c.Key == "" && c.Kind != amendments.OfTask:
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; it is as the first of " +
						"them says, and what the other needs can be added under another name"
				case c.Key == "":
					what = "two amendments were made side by side, and add " + c.Part.String() + " unlike; it is as the first of " +
						"them says" + s.placed(workflow.TaskName(c.Name)) + ", and what was begun as the other says counts; " +
						"that can be added under another name"
				}
				say(b.At, c.Part, what)
			}
			for _, p := range placedUnlike(PlacedBy(a.At), PlacedBy(b.At)) {
				part := amendments.Part{Kind: amendments.OfPartition, Name: string(p.Partition)}
				what := "; it is at whom the first of them says, and what was begun at the other counts"
				if p.Moves {
					what = "; it moves to whom the later of them says, and what was begun elsewhere counts"
				}
				say(b.At, part, "two amendments were made side by side, and give "+part.String()+" to different partners"+what)
			}
		}
	}
	for _, e := range s.edition.left {
		say(e, amendments.Part{}, "an amendment does not go together with one that was made side by side; "+
			"of it this does not count: "+strings.Join(s.lostLines(s.fittings[e.ID].patch), "; "))
	}
	return out
}

// lostLines tell people what is lost of a patch; of a task that it adds the name is enough.
func (s *State) lostLines(p amendments.Meant) []string {
	out := p.Set().Lines()
	for _, t := range s.lostTasks(p) {
		out = append(out, "task "+string(t))
	}
	return out
}

// setLast is the value that a key was set to by the last of the amendments that set it; false: none does. One that does
// not go together with others sets nothing.
func (s *State) setLast(all []Amendment, c amendments.Clash) (value []byte, any bool) {
	for _, a := range all {
		if s.leaves(&a) {
			continue
		}
		for _, x := range a.Patch.Patch {
			if x.Part == c.Part && x.Key == c.Key {
				value, any = x.Value, true
			}
		}
	}
	return value, any
}
