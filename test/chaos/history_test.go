//go:build linux

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// history is an instance's log of facts, as "mutirao log -o json" gives it.
type history struct {
	id       string
	def      *workflow.Definition
	plan     *partition.Plan
	shown    *api.Instance
	entries  []api.LogEntry
	print    string          // its fingerprint
	at       []time.Duration // when each was written
	rebooted map[string]bool // whose waits were aged by a wall clock
}

// history reads an instance at one of its holders. Its facts and its fingerprint are
// of one moment: what was only presumed to have failed may go on when all has ended.
func (tm *team) history(ctx context.Context, p *proc, id string, of workflow.Name) (*history, error) {
	var shown *api.Instance
	var entries []api.LogEntry
	sum, err := p.print(id)
	for before := "none"; err == nil && sum != before; {
		before = sum
		if shown, err = p.client.Show(ctx, id); err != nil {
			break
		}
		if entries, err = p.client.Log(ctx, id); err != nil {
			break
		}
		sum, err = p.print(id)
	}
	if err != nil {
		return nil, err
	}
	def := tm.def(of)
	h := &history{
		id: id, def: def, plan: partition.New(def), shown: shown, entries: entries, print: sum,
		rebooted: map[string]bool{},
	}
	for _, e := range entries {
		h.at = append(h.at, tm.written(e.At))
	}
	for _, p := range tm.ps {
		p.mu.Lock()
		h.rebooted[p.name] = p.reboots > 0
		p.mu.Unlock()
	}
	tm.histories[id] = h
	return h, nil
}

// complaints says what of an instance's history must not be.
func (h *history) complaints(tm *team) []string {
	return slices.Concat(h.single(), h.judgedOnce(), h.early(), h.entitled(), h.untouched())
}

// single: where no verdict was given nothing starts or succeeds twice, and no
// success is superseded; and nobody judges a task of its own that it had done.
func (h *history) single() (out []string) {
	count := map[string]int{}
	judged := false
	for i, e := range h.entries {
		if e.Kind == "verdict" {
			judged = true
			for t := range judgements(e.Text) {
				if slices.ContainsFunc(h.entries[:i], func(s api.LogEntry) bool {
					return s.Succeeds() && s.Author == e.Author && s.Task == t && s.Seq < e.Seq && s.Counted &&
						e.Counted
				}) {
					out = append(out, fmt.Sprintf("single: %s judges %s, which it had done itself", e.Author, t))
				}
			}
		}
		if !e.Counted || undoing(e) {
			continue
		}
		if e.Succeeds() {
			count["success of "+string(e.Task)]++
		}
		if e.Starts() && !strings.Contains(e.Text, ", try ") {
			count["start of "+string(e.Task)]++
		}
	}
	if judged {
		return out
	}
	for _, what := range slices.Sorted(maps.Keys(count)) {
		if n := count[what]; n > 1 {
			out = append(out, fmt.Sprintf("single: %d times %s although nobody gave a verdict", n, what))
		}
	}
	for _, t := range h.shown.Tasks {
		if len(t.Superseded) > 0 {
			out = append(out, fmt.Sprintf("single: a success of %s is superseded although nobody gave a verdict",
				t.Name))
		}
	}
	return out
}

// judgedOnce: nobody judges an attempt twice.
func (h *history) judgedOnce() (out []string) {
	attempts, count := h.attempts(), map[string]int{}
	for _, e := range h.entries {
		for t := range judgements(e.Text) {
			who := e.Author + " judges " + string(t)
			if count[who]++; count[who] == attempts[t]+1 {
				out = append(out, "bounded: "+who+" again and again")
			}
		}
	}
	return out
}

// attempts counts those of each task: one by the genesis, but for what is only
// a contingency, and one by each fact that assigned it.
func (h *history) attempts() map[workflow.TaskName]int {
	out := map[workflow.TaskName]int{}
	for _, t := range h.def.Tasks {
		if !t.ContingencyOnly {
			out[t.Name]++
		}
	}
	for _, e := range h.entries {
		if e.Kind == "assign" {
			out[e.Task]++
		}
		for _, what := range judgements(e.Text) {
			out[standsIn(what)]++
		}
	}
	return out
}

// judgements are the tasks that a verdict is about, and what it does to each:
// "a failed, so x stands in for it, by n2; b failed, so what waits for it is blocked (its time was over): why".
func judgements(text string) map[workflow.TaskName]string {
	out := map[workflow.TaskName]string{}
	head, _, _ := strings.Cut(text, " (")
	head, _, _ = strings.Cut(head, ": ")
	for part := range strings.SplitSeq(head, "; ") {
		if task, what, ok := strings.Cut(part, " failed, "); ok {
			out[workflow.TaskName(task)] = what
		}
	}
	return out
}

// released is what a verdict does to a task whose failure lets those that wait for it go on.
const released = "but what waits for it goes on"

// standsIn is the task that stands in for one that failed, by what a verdict does to that; empty: none does.
func standsIn(what string) workflow.TaskName {
	task, _, is := strings.Cut(strings.TrimPrefix(what, "so "), " stands in for it, ")
	if !is {
		return ""
	}
	return workflow.TaskName(task)
}

// early: no time-out and no trigger is over before its time, by what the facts
// before it say of when it can have begun.
func (h *history) early() (out []string) {
	// Facts carry milliseconds, cut off.
	const grain = 2 * time.Millisecond
	for i, e := range h.entries {
		var least time.Duration
		switch {
		case h.rebooted[e.Author]:
			continue
		case e.Kind == "ready" && strings.Contains(e.Text, "trigger"):
			t := h.def.Task(e.Task)
			least = min(h.firstReady(h.def.Predecessors(t.Name), i), h.waitStart(t.Name)) + t.TimeToWait
		case e.Kind == "verdict" && strings.Contains(e.Text, "(its time was over") && len(judgements(e.Text)) > 0:
			least = h.timeout(i)
		default:
			continue
		}
		if h.at[i]+grain < least {
			out = append(out, fmt.Sprintf("time: at %s, %q is told %s before it can be over", h.at[i], e.Text,
				least-h.at[i]))
		}
	}
	return out
}

func (h *history) waitStart(t workflow.TaskName) time.Duration {
	d, _ := h.plan.WaitStart(t)
	return h.at[0] + d
}

// timeout is when the time-out of entry i can be over at the earliest.
func (h *history) timeout(i int) time.Duration {
	e := h.entries[i]
	about := judgements(e.Text)
	least := time.Duration(1 << 62)
	for t := range about {
		task := h.def.Task(t)
		d := h.at[0] + task.Timeout
		if len(about) == 1 && strings.Contains(e.Text, "no result within "+workflow.FormatDuration(task.Timeout)) {
			d = h.ready(t, i) + task.Timeout // the holder's own
		}
		least = min(least, d)
	}
	for _, p := range h.def.Partitions {
		if p.Timeout > 0 && strings.Contains(e.Text, "partition "+string(p.Name)+" ") {
			least = min(least, h.at[0]+p.Timeout)
		}
	}
	return least
}

// ready is when a task can have become ready at the earliest, by the facts
// before entry i: after all that it waits for had succeeded somewhere; a
// contingency after it was called for.
func (h *history) ready(t workflow.TaskName, i int) time.Duration {
	task := h.def.Task(t)
	if task.ContingencyOnly {
		return h.calledFor(t, i)
	}
	if task.When != "" || task.TimeToWait > 0 {
		return h.at[0]
	}
	latest := h.at[0]
	for _, p := range task.After {
		latest = max(latest, h.firstSuccess(p, i))
	}
	return latest
}

// calledFor is when a contingency was asked for at the earliest. Facts are in
// logical order, which is not always that of time.
func (h *history) calledFor(t workflow.TaskName, i int) time.Duration {
	first := time.Duration(1 << 62)
	for k, e := range h.entries[:i] {
		asks := e.Kind == "assign" && e.Task == t
		for _, what := range judgements(e.Text) {
			asks = asks || standsIn(what) == t
		}
		if asks {
			first = min(first, h.at[k])
		}
	}
	if first == 1<<62 {
		return h.at[0]
	}
	return first
}

// undoing reports whether an entry is about a compensation.
func undoing(e api.LogEntry) bool { return strings.HasPrefix(e.Text, "compensation ") }

// firstSuccess is when the first attempt in a task's slot succeeded; when none
// did, or what waits for it was released, nothing is known.
func (h *history) firstSuccess(t workflow.TaskName, i int) time.Duration {
	first := time.Duration(1 << 62)
	for _, x := range h.chain(t) {
		for k, e := range h.entries[:i] {
			if e.Succeeds() && e.Task == x {
				first = min(first, h.at[k])
			}
			if judgements(e.Text)[x] == released {
				return h.at[0]
			}
		}
	}
	if first == 1<<62 {
		return h.at[0]
	}
	return first
}

// chain is a task, its contingency, the contingency of that …
func (h *history) chain(t workflow.TaskName) (out []workflow.TaskName) {
	for task := h.def.Task(t); task != nil; task = h.def.Task(task.Contingency) {
		out = append(out, task.Name)
	}
	return out
}

// firstReady is when the first of some tasks can have become ready, or can have
// been skipped, or was judged: a node that is gone fails before its task is
// ready.
func (h *history) firstReady(ts []workflow.TaskName, i int) time.Duration {
	first := time.Duration(1 << 62)
	for _, t := range h.shown.Tasks {
		switch {
		case !slices.Contains(ts, t.Name):
		case t.State == workflow.Succeeded || t.State == workflow.Failed:
			first = min(first, h.ready(t.Name, i), h.judged(t.Name, i))
		default:
			return h.at[0]
		}
	}
	return first
}

// judged is when a task's own attempt was first judged before entry i.
func (h *history) judged(t workflow.TaskName, i int) time.Duration {
	first := time.Duration(1 << 62)
	for k, e := range h.entries[:i] {
		if _, about := judgements(e.Text)[t]; about && e.Kind == "verdict" {
			first = min(first, h.at[k])
		}
	}
	return first
}

// entitled: a node that starts or ends a task holds it, or was given it, as a
// contingency or to perform it.
func (h *history) entitled() (out []string) {
	holders := map[workflow.TaskName][]string{}
	for _, t := range h.shown.Tasks {
		for _, p := range h.shown.Partitions {
			if p.Name == t.Partition {
				holders[t.Name] = append(append(holders[t.Name], p.First), p.Holders()...)
			}
		}
	}
	for _, e := range h.entries {
		if e.Kind == "assign" {
			holders[e.Task] = append(holders[e.Task], word(e.Text, "assigned to "), word(e.Text, "given to "))
		}
		for _, what := range judgements(e.Text) {
			if t := standsIn(what); t != "" {
				holders[t] = append(holders[t], word(what, " by "))
			}
		}
	}
	for _, e := range h.entries {
		if (e.Starts() || e.Succeeds()) && e.Counted && !undoing(e) &&
			!slices.Contains(holders[e.Task], e.Author) {
			out = append(out, fmt.Sprintf("authorised: a %s of %s by %s counts, who does not hold it", e.Kind, e.Task,
				e.Author))
		}
	}
	return out
}

// word is what follows after, up to a space.
func word(text, after string) string {
	_, rest, _ := strings.Cut(text, after)
	w, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(w, ";,")
}

// mostShown is how many facts of an instance a complaint shows.
const mostShown = 100

func (h *history) String() string {
	var b strings.Builder
	for i, e := range h.entries {
		if i == mostShown {
			fmt.Fprintf(&b, "  … and %d more\n", len(h.entries)-i)
			break
		}
		fmt.Fprintf(&b, "  %9s %3d %s/%d %s %s: %s\n", h.at[i].Round(time.Millisecond), e.Time, e.Author, e.Seq, e.Kind,
			e.Task, e.Text)
	}
	return b.String()
}
