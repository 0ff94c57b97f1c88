//go:build linux

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/contingency/waits"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// quiet waits until everything has ended, sends the persons home, and checks
// what must hold then.
func (tm *team) quiet(dismiss func(), persons *sync.WaitGroup) {
	defer persons.Wait()
	defer dismiss()
	ctx := tm.t.Context()
	for _, p := range tm.ps {
		if !within(patience, func() bool { return p.sees(ctx) == nodes }) {
			tm.violate("live: %s sees %d of %d partners %s after everything healed", p.name, p.sees(ctx), nodes,
				patience)
			return
		}
	}
	tm.takesUp(ctx)
	bound := tm.bound()
	if !within(bound, func() bool { return tm.running(ctx) == "" }) {
		tm.violate("live: %s after everything healed, within which all must have ended:\n%s", bound, tm.running(ctx))
		return
	}
	dismiss()
	persons.Wait()
	var differ string
	if !within(patience, func() bool { differ = tm.compare(); return differ == "" && tm.running(ctx) == "" }) {
		tm.violate("convergent: %s after all had ended: %s %s", patience, differ, tm.running(ctx))
		return
	}
	tm.read(ctx)
}

// running tells of instances that have not ended, "" if there are none.
func (tm *team) running(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*asking)
	defer cancel()
	var out []string
	for _, p := range tm.ps {
		list, err := p.instances(ctx, false)
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %v", p.name, err))
		}
		for _, x := range list {
			if tm.liars(x) || x.State != workflow.InstanceRunning { // what waits for an order is listed, too
				continue
			}
			out = append(out, fmt.Sprintf("%s of %s is %s at %s: %s", x.ID[:8], x.Workflow, x.State, p.name,
				waiting(ctx, p, x.ID)))
		}
	}
	return join(out)
}

// instances are those that the node takes part in. A coordinator also lists
// those that it was told of.
func (p *proc) instances(ctx context.Context, all bool) ([]api.InstanceSummary, error) {
	list, err := p.client.Instances(ctx, all)
	return slices.DeleteFunc(list, func(x api.InstanceSummary) bool { return len(x.KnownBy) > 0 }), err
}

// waiting says what an instance waits for.
func waiting(ctx context.Context, p *proc, id string) string {
	in, err := p.client.Show(ctx, id)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, t := range in.Tasks {
		if !t.State.Done() {
			out = append(out, fmt.Sprintf("%s is %s at %s %s", t.Name, t.State, t.Partner, t.Reason))
		}
	}
	return strings.Join(out, "; ")
}

// bound is the longest that an instance may take once everything has healed:
// all tasks one after the other, each with the slack and the guardian-timeouts
// of its judges, and what a loaded machine takes.
func (tm *team) bound() time.Duration {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	longest := time.Duration(0)
	for _, def := range tm.defs {
		b := time.Duration(0)
		for _, t := range def.Tasks {
			b += t.Timeout + t.TimeToWait + time.Second + time.Duration(t.Retries.Times)*t.Retries.Backoff
		}
		longest = max(longest, b)
	}
	return longest + 3*connectionTime + nodes*waits.GuardianTimeout + patience
}

// held are the instances of the running round that a node holds, with those
// nodes.
func (tm *team) held(ctx context.Context) (map[string][]*proc, map[string]workflow.Name, error) {
	who, of := map[string][]*proc{}, map[string]workflow.Name{}
	for _, p := range tm.ps {
		list, err := p.instances(ctx, true)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.name, err)
		}
		for _, x := range list {
			if tm.liars(x) {
				continue
			}
			who[x.ID] = append(who[x.ID], p)
			of[x.ID] = x.Workflow
		}
	}
	return who, of, nil
}

// compare tells of the first instance on which two of its holders differ.
func (tm *team) compare() string {
	who, _, err := tm.held(tm.t.Context())
	if err != nil {
		return err.Error()
	}
	for _, id := range slices.Sorted(maps.Keys(who)) {
		if tm.sum.prints[id] != "" && !tm.last {
			continue // it was looked at when it ended, and will be at the end
		}
		first := ""
		for i, p := range who[id] {
			sum, err := p.print(id)
			switch {
			case err != nil:
				return err.Error()
			case i == 0:
				first = sum
			case sum != first:
				return fmt.Sprintf("%s and %s have different fingerprints of %s", who[id][0].name, p.name, id)
			}
		}
	}
	return ""
}

// read checks the history of every instance.
func (tm *team) read(ctx context.Context) {
	tm.histories = map[string]*history{}
	who, of, err := tm.held(ctx)
	tm.harness(err)
	for _, id := range slices.Sorted(maps.Keys(who)) {
		old := tm.sum.prints[id]
		if old != "" && !tm.last {
			continue
		}
		h, err := tm.history(ctx, who[id][0], id, of[id])
		if err != nil {
			tm.violate("%s has no history of %s: %v", who[id][0].name, id, err)
			continue
		}
		if old != "" {
			tm.unchanged(h, old)
			continue
		}
		tm.sum.add(h)
		for _, complaint := range h.complaints(tm) {
			tm.violate("%s in %s (%s):\n%s", complaint, id, h.def.Name, h)
		}
	}
	tm.compareLies(ctx)
	tm.kept(who)
	tm.bounded(ctx)
}

// unchanged checks that nothing but new facts changed what an instance had come to.
func (tm *team) unchanged(h *history, old string) {
	if n := tm.sum.factsOf[h.id]; len(h.entries) < n {
		tm.violate("durable: %s had %d facts, now %d", h.id, n, len(h.entries))
	} else if len(h.entries) == n && h.print != old {
		tm.violate("final: %s changed although no fact was added", h.id)
	}
}

// kept checks that all that a node said it had done is in the histories.
func (tm *team) kept(who map[string][]*proc) {
	tm.mu.Lock()
	begun, done := maps.Clone(tm.started), slices.Clone(tm.done)
	tm.mu.Unlock()
	for id, s := range begun {
		if len(who[id]) == 0 {
			tm.violate("durable: %s said it had started %s, and nobody has it", s.at, id)
		}
	}
	for _, d := range done {
		// An instance of an earlier round was checked then, and keeps its facts.
		h := tm.histories[d.id]
		if h != nil && !slices.ContainsFunc(h.entries, func(e api.LogEntry) bool {
			return e.Author == d.node &&
				(e.Succeeds() && e.Task == d.task ||
					e.Kind == "verdict" && strings.Contains(e.Text, string(d.task)+" failed"))
		}) {
			tm.violate("durable: %s was told that %s of %s is done, and the history does not have it:\n%s", d.node,
				d.task, d.id, h)
		}
	}
}

// onlyLiars are the reasons to refuse what no correct node sends.
var onlyLiars = []string{"frame-malformed", "facts-forged", "facts-malformed"}

// mostMemory is what a node may hold, in MiB, whatever happened to it.
const mostMemory = 400

// bounded checks that the nodes neither grow nor were refused anything that no
// correct node sends.
func (tm *team) bounded(ctx context.Context) {
	for _, p := range tm.ps {
		if m := p.resident(); m > mostMemory {
			tm.violate("bounded: %s holds %d MiB, at most %d are expected", p.name, m, mostMemory)
		} else {
			tm.sum.memory = max(tm.sum.memory, m)
		}
		st, err := p.client.Status(ctx)
		if err != nil {
			tm.violate("live: %s: %v", p.name, err)
			continue
		}
		for _, reason := range onlyLiars {
			if n := st.Counters["refused."+reason]; n > 0 && tm.liar == nil {
				tm.violate("authorised: %s counts %d refused.%s, and nobody lied", p.name, n, reason)
			}
		}
		tm.trusted(ctx, p)
		tm.sum.lies.refusals(st.Counters)
		if n := st.Counters["rolled-back"]; n > 0 && tm.liar != nil {
			tm.violate("authorised: %s takes itself for rolled back, which it was not", p.name)
		}
		if len(st.Trouble) > 0 {
			tm.violate("live: %s has trouble although all is well: %s", p.name, strings.Join(st.Trouble, "; "))
		}
	}
}
