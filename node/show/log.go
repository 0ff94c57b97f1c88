package show

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Log shows the facts in words.
func (vw *View) Log(h *Held) []api.LogEntry {
	var out []api.LogEntry
	for _, f := range h.M.Facts() {
		e := api.LogEntry{
			At: wire.AtMilli(f.Fact.At), Time: f.Time, Fact: f.ID.String(), Author: vw.People.Name(f.Fact.Chain.Author),
			Seq:  f.Fact.Seq,
			Kind: f.Fact.Body.Kind(), Counted: f.Counted, Superseded: f.Superseded,
		}
		e.Task, e.Text = vw.describe(h, &f)
		e.Label = h.M.Definition().LabelOf(e.Task)
		word := f.Fact.BegunWord()
		if c := f.Fact.Body.Claim; c != nil {
			word = c.Word
		}
		if len(word) > 0 {
			e.Signed = vw.Signed(word)
		}
		if f.Idle != "" {
			e.Text += ", and changes nothing: " + f.Idle
		}
		if !f.Counted {
			e.Text += " (does not count)"
		}
		if e.Superseded {
			e.Text += " (superseded: another history counts)"
		}
		out = append(out, e)
	}
	return out
}

// maxNamed bounds the results that a line of the log names.
const maxNamed = 12

// describe says in words what a fact says.
func (vw *View) describe(h *Held, f *state.FactView) (workflow.TaskName, string) {
	b := &f.Fact.Body
	name := func(a fact.AttemptID) workflow.TaskName {
		if t, _ := h.M.AttemptTask(a); t != workflow.FlowTask {
			return t
		}
		return "" // the flow as a whole is no task that anybody wrote
	}
	try := func(t int) string {
		if t > 1 {
			return fmt.Sprintf(", try %d", t)
		}
		return ""
	}
	undoing := func(a fact.AttemptID) string {
		if h.M.Compensates(a) {
			return "compensation "
		}
		return ""
	}
	switch {
	case b.Genesis != nil:
		var parts []string
		for _, a := range b.Genesis.Assign {
			parts = append(parts, string(a.Partition)+"="+vw.People.Label(a.Partner)) // as it is assigned at a start
		}
		if by := h.M.BegunBy(); by != nil {
			return "", fmt.Sprintf("instance created by %s: %s", vw.Partners.Called(by.User), strings.Join(parts, ", "))
		}
		return "", "instance created: " + strings.Join(parts, ", ")
	case b.Ready != nil && b.Ready.Trigger:
		return name(b.Ready.Attempt), "emergency trigger fired"
	case b.Ready != nil:
		return name(b.Ready.Attempt), "ready: its rule about data holds"
	case b.Start != nil:
		text := undoing(b.Start.Attempt) + "started" + try(b.Start.Try)
		if b.Start.Attempt.Slot == workflow.FlowTask {
			return "", "keeps the data states from here on"
		}
		if on := f.BuiltUpon; len(on) > 0 {
			text += ", building upon " + listed(on[:min(len(on), maxNamed)])
			if more := len(on) - maxNamed; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
		}
		if b.Success != nil {
			text += ", and succeeded at once" + h.outputs(b.Success.Outputs)
		}
		return name(b.Start.Attempt), text
	case b.Success != nil && b.Success.Attempt.Slot == workflow.FlowTask:
		return "", "the data state is final"
	case b.Success != nil:
		return name(b.Success.Attempt), undoing(b.Success.Attempt) + "succeeded" + try(b.Success.Try) +
			h.outputs(b.Success.Outputs)
	case b.TryFailed != nil:
		return name(b.TryFailed.Attempt),
			undoing(b.TryFailed.Attempt) + fmt.Sprintf("try %d failed: %s", b.TryFailed.Try, b.TryFailed.Reason)
	case b.Child != nil:
		return name(b.Child.Attempt), undoing(b.Child.Attempt) + "done by instance " + b.Child.Instance.String()
	case b.Lease != nil:
		return name(b.Lease.Attempt), undoing(b.Lease.Attempt) + "given to " + vw.workerCalled(b.Lease) +
			try(b.Lease.Try)
	case b.Verdict != nil:
		return vw.tellVerdict(b.Verdict, h.M, name)
	case b.Assign != nil && b.Annex != nil && b.Annex.Offered:
		return b.Assign.Task, "given to " + vw.People.Label(b.Assign.Partner) + ", to perform it"
	case b.Assign != nil && b.Assign.Verdict.IsZero():
		text := "rejected, and passed on to " + vw.People.Label(b.Assign.Partner)
		if b.Annex != nil && b.Annex.Rejected != "" {
			text += ": " + b.Annex.Rejected
		}
		return b.Assign.Task, text
	case b.Assign != nil && b.Annex != nil && b.Annex.Order != nil && h.M.Orders(*b.Annex.Order) == worklist.Skip:
		return b.Assign.Task, "left out by " + vw.People.Label(b.Assign.Partner) + ", by that order"
	case b.Assign != nil && b.Annex != nil && b.Annex.Order != nil:
		return b.Assign.Task, "done once more by " + vw.People.Label(b.Assign.Partner) + ", by that order"
	case b.Assign != nil:
		return b.Assign.Task, "assigned to " + vw.People.Label(b.Assign.Partner) + " in place of " +
			string(name(b.Assign.After))
	case b.CalledOff != nil:
		return name(b.CalledOff.Attempt), "called off: it is not needed any more"
	case b.Cancel != nil:
		return "", strings.TrimSuffix("instance cancelled: "+b.Cancel.Reason, ": ")
	case b.Seen != nil:
		return "", "has seen what was known"
	}
	if b.Fire != nil {
		return vw.tellFire(b.Fire)
	}
	if b.Aged != nil && b.Aged.Age == 0 {
		return "", "goes by the changed definition from here on"
	}
	if b.Aged != nil {
		return "", "the instance is " + workflow.FormatDuration(b.Aged.Age.Truncate(time.Second)) +
			" old, as conditions ask for it"
	}
	if b.Claim != nil {
		return vw.describeClaim(h, b.Claim, f, name)
	}
	return "", "nobody is to wait for " + vw.People.Label(b.WriteOff.Partner) + " any more"
}

// tellFire says which transitions a data state fired.
func (vw *View) tellFire(b *fact.Fire) (workflow.TaskName, string) {
	if !b.Undoes.IsZero() {
		return b.Tasks[0], "its compensation began"
	}
	if len(b.Tasks) == 1 {
		return b.Tasks[0], "fired by the data state, and begun"
	}
	return "", "fired by the data state, and begun: " + listed(b.Tasks)
}

func (vw *View) tellVerdict(
	v *fact.Verdict, m *choreo.Machine, name func(fact.AttemptID) workflow.TaskName,
) (workflow.TaskName, string) {
	var what []string
	for _, a := range v.Actions {
		if a.Attempt.Slot == workflow.FlowTask {
			who := "nobody yet"
			if a.Partner != "" {
				who = vw.People.Label(a.Partner)
			}
			what = append(what, "the holder of the data states is lost, and "+who+" goes on with them")
			continue
		}
		what = append(what, vw.tellFailure(a, m, name(a.Attempt)))
	}
	text := strings.Join(what, "; ")
	switch cause := causes[v.Cause]; {
	case cause != "" && v.Office != nil:
		text += fmt.Sprintf(" (%s, as the coordinator of term %d judged)", cause, v.Office.Term)
	case cause != "" && cause != v.Reason:
		text += " (" + cause + ")"
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	if len(v.Actions) == 1 {
		return name(v.Actions[0].Attempt), text
	}
	return "", text
}

// causes say why a task is held to have failed, but for what its holder said itself.
var causes = map[fact.Cause]string{
	fact.CauseTimeout: "its time was over", fact.CauseExpired: "its holder was silent for too long",
	fact.CauseEvicted: "its holder was evicted", fact.CauseLost: "a file that it reads is lost",
}

// tellFailure says what becomes of an attempt that failed, at a task.
func (vw *View) tellFailure(a fact.Action, m *choreo.Machine, task workflow.TaskName) string {
	switch {
	case m.Compensates(a.Attempt) && a.Task == "":
		return "compensation of " + string(a.Attempt.Slot) + " failed"
	case m.DrivenByData() && a.Kind == workflow.FailBlock:
		return string(task) + " failed, so it brought no data state"
	case a.Kind == workflow.FailBlock:
		return string(task) + " failed, so what waits for it is blocked"
	case a.Kind == workflow.FailRelease:
		return string(task) + " failed, but what waits for it goes on"
	case a.Task == "":
		return string(task) + " failed"
	}
	who := "nobody yet"
	if a.Partner != "" {
		who = vw.People.Label(a.Partner)
	}
	if m.Compensates(a.Attempt) {
		return fmt.Sprintf("compensation of %s failed, so %s stands in for it, by %s", a.Attempt.Slot, a.Task, who)
	}
	return fmt.Sprintf("%s failed, so %s stands in for it, by %s", task, a.Task, who)
}

func (h *Held) outputs(out map[workflow.DataName]workflow.Value) string {
	var parts []string
	for k, v := range out {
		if !h.tells(k) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s = %s", k, rendered(v)))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// maxRendered is how much of a list or map the log shows, in columns: show has all of it.
const maxRendered = 200

// rendered is a value in the log.
func rendered(v workflow.Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if f, err := workflow.ParseFile(v); err == nil {
			return f.Name + " (" + workflow.FormatSize(f.Size) + ")"
		}
	case []any, map[string]any:
		var b strings.Builder
		as := json.NewEncoder(&b)
		as.SetEscapeHTML(false)
		if err := as.Encode(v); err == nil {
			return plain.Cut(strings.TrimSuffix(b.String(), "\n"), maxRendered)
		}
	}
	return fmt.Sprint(v)
}
