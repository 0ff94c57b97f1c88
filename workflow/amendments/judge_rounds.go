package amendments

import (
	"fmt"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about loops of which an instance has done some rounds. Each round is judged as the task that it is, and
// what is found is said of the task or the loop that somebody wrote, with the round.

// called names a task as whoever wrote the definition knows it.
func called(d *workflow.Definition, t workflow.TaskName) string {
	at, is := d.Round(t)
	switch {
	case !is || at.Of == t:
		return string(t)
	case at.Beside == "":
		return fmt.Sprintf("%s, in round %s of its loop,", at.Of, at)
	}
	return fmt.Sprintf("the loop that ends with %s", at.Loop)
}

// tasks are the findings about tasks and loops, by the parts that are written.
func (j *judge) tasks(changes []Change) map[Part][]Finding {
	out := map[Part][]Finding{}
	if len(j.old.Loops()) == 0 && len(j.changed.Loops()) == 0 {
		for _, c := range changes {
			if c.Kind == OfTask {
				out[c.Part] = j.of(&c)
			}
		}
		return out
	}
	by := map[Part]*Change{}
	for i := range changes {
		by[changes[i].Part] = &changes[i]
	}
	untouched := map[Part][]string{} // the keys that change of a round about which nothing is found
	var found []Finding
	for _, c := range compare(writtenOut(j.old), writtenOut(j.changed)) {
		name := workflow.TaskName(c.Name)
		if c.Kind != OfTask || isKept(j.old, name) { // what was done of such a round counts
			continue
		}
		if at, is := j.changed.Round(name); is && c.How == Added { // what changes counts for a round that is new
			task, loop := Part{OfTask, string(at.Of)}, Part{OfLoop, string(at.Loop)}
			if c := by[task]; c != nil && at.Beside == "" {
				for _, k := range c.Keys {
					untouched[task] = append(untouched[task], k.Key)
				}
			}
			if at.Beside == "again" {
				untouched[loop] = append(untouched[loop], "while")
			}
		}
		if c.How == Added {
			continue
		}
		of := j.of(&c)
		at, _ := j.old.Round(name)
		for _, f := range of {
			f = j.inRound(f, name, by)
			if at.Beside == "" || f.Refused || f.Key == "while" || f.Key == "when" { // else it is about what nobody wrote
				found = append(found, f)
			}
		}
		for _, k := range c.Keys {
			if !isFound(of, c.Part, k.Key) {
				at := j.inRound(Finding{Part: c.Part, Key: k.Key}, name, by)
				untouched[at.Part] = append(untouched[at.Part], at.Key)
			}
		}
	}
	for _, f := range found { // of several about one key that which refuses counts; it is taken if another round takes it
		if !f.Refused && (slices.Contains(untouched[f.Part], f.Key) || isRefused(found, f.Part, f.Key)) {
			continue
		}
		if !isFound(out[f.Part], f.Part, f.Key) {
			out[f.Part] = append(out[f.Part], f)
		}
	}
	return out
}

func isRefused(found []Finding, p Part, key string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Refused && f.Part == p && f.Key == key })
}

// of is what is found about a task as an instance has it.
func (j *judge) of(c *Change) []Finding {
	one := &judge{old: j.old, changed: j.changed, at: j.at}
	one.task(c)
	return one.found
}

// inRound says what was found about a task as an instance has it of what is written.
func (j *judge) inRound(f Finding, t workflow.TaskName, by map[Part]*Change) Finding {
	at, is := j.old.Round(t)
	if !is {
		if at, is = j.changed.Round(t); !is {
			return j.outside(f, t, by)
		}
	}
	task := Part{OfTask, string(at.Of)}
	written := by[task]
	loop, key := j.loopOf(at, by)
	what := f.Key
	if c := by[loop]; at.Beside == "again" && what == "with" && c != nil && c.key("while") != nil {
		key = "while"
	}
	wrote := at.Beside == "" && written != nil && (written.How == Removed || written.key(f.Key) != nil)
	switch {
	case wrote:
		f.Part = task
		if written.How == Removed {
			f.Key = ""
		}
	case at.Beside == "if" && written != nil && written.key("when") != nil:
		f.Part, f.Key = task, "when"
	default:
		f.Part, f.Key = loop, key
	}
	switch {
	case f.Why == "":
	case wrote && at.Of == t && len(j.rounds(at.Of)) == 0:
	case at.Beside == "if" && f.Part == task:
		f.Refused, f.Why, f.Next = false, fmt.Sprintf("it was asked already in round %s", at), ""
	case at.Beside == "" && what == "" && f.Part.Kind == OfLoop:
		f.Why = fmt.Sprintf("%s has begun its round %s: what was done is not forgotten", at.Of, at)
		if w := j.at.Tasks[t]; w.State == workflow.Ready && w.Asked {
			f.Why = fmt.Sprintf("it was asked already whether %s has a round %s, and that is READY", at.Of, at)
		}
		switch f.Next = "leave it so many rounds"; f.Key {
		case "from":
			f.Next = "leave from as it is"
		case "":
			f.Next = "leave the loop, with so many rounds"
		}
	case f.Part.Kind == OfLoop && at.Beside == "":
		f.Why = fmt.Sprintf("%s has begun its round %s, and can wait for nothing else any more", at.Of, at)
		f.Next = "leave it until the loop has ended"
	case at.Beside == "" && f.Refused:
		f.Why = fmt.Sprintf("in round %s %s", at, f.Why)
	case at.Beside == "":
		f.Why += " in each of its rounds"
	case at.Beside == "end":
		f.Why = fmt.Sprintf("the loop has ended, and %s says so, for which others wait: it is done, which is not taken back, "+
			"and this version makes no second end for them to wait for", t)
		f.Next = "add tasks after the loop that do what one more round would"
	case f.Key == "while":
		f.Refused, f.Why, f.Next = false, fmt.Sprintf("it was asked already after round %s", at), ""
	case f.Refused:
		f.Why = fmt.Sprintf("after round %s it was asked already whether there is another", at)
		f.Next = "leave it one round more than that"
		if f.Key == "" {
			f.Next = "leave the loop, with one round more than that"
		}
	default:
		f.Why = fmt.Sprintf("it was asked already after round %s", at)
	}
	return f
}

// outside is a finding about a task that is in no loop: it may wait for another end of one.
func (j *judge) outside(f Finding, t workflow.TaskName, by map[Part]*Change) Finding {
	written := by[Part{OfTask, string(t)}]
	if written != nil && (written.How == Removed || written.key(f.Key) != nil) {
		return f
	}
	for _, l := range j.old.Loops() {
		if slices.ContainsFunc(j.old.Predecessors(t), func(p workflow.TaskName) bool {
			at, is := j.old.Round(p)
			return is && at.Loop == l.Last
		}) {
			at, key := j.loopOf(workflow.Round{Of: l.Last, Loop: l.Last}, by)
			f.Part, f.Key = at, key
			if f.Why != "" {
				f.Why = fmt.Sprintf("the loop has ended, and %s, which waits for that, has begun", t)
				f.Next = "add tasks after it"
			}
			break
		}
	}
	return f
}

// loopOf is the loop by whose change something changes in a round, with the first key of it that has changed.
func (j *judge) loopOf(at workflow.Round, by map[Part]*Change) (Part, string) {
	all := slices.Concat(j.old.Loops(), j.changed.Loops())
	slices.SortStableFunc(all, func(a, b workflow.Loop) int { return len(a.Tasks) - len(b.Tasks) })
	for _, l := range all {
		c := by[Part{OfLoop, string(l.Last)}]
		if c == nil || l.Last != at.Loop && !slices.Contains(l.Tasks, at.Of) {
			continue
		}
		for _, key := range []string{"times", "from", "while"} {
			if c.key(key) != nil {
				return c.Part, key
			}
		}
		return c.Part, ""
	}
	return Part{OfLoop, string(at.Loop)}, ""
}

// rounds are the tasks that are rounds of a task, but for the first.
func (j *judge) rounds(of workflow.TaskName) (out []workflow.TaskName) {
	for _, t := range j.old.TopoOrder() {
		if at, is := j.old.Round(t); is && at.Of == of && t != of && at.Beside == "" {
			out = append(out, t)
		}
	}
	return out
}
