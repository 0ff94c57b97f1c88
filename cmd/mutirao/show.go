package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newShowCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "show ID [--watch]",
		Short: "Where an instance stands, as this node knows it",
		Long: `Shows an instance: its partitions and who holds them, its tasks and their states,
its data, what people should look at, and how much time is left. A partition is with
those who hold what of it is not done or, where all is done, held it. Partners who can
be reached are asked first what they have, for half a second at most; of a task that is
with one who was not heard for long, it says as of when it is known.
ID may be any unique prefix. To whoever decides about an instance a node that takes no
part in it shows it as a partner does that takes part; so it does its log, history,
diagram and gantt. To whoever has, or had, an item of it, too, but for its history, and
of the data with the values that these tasks read and set. Others: 5. While none of
those can be asked the node says who they are, as far as it was told (6).`,
		Example: `  mutirao show 3f9a0c21d4
  mutirao show 3f9a --watch          # until it has ended
  mutirao show 3f9a -o json`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			return u.show(ctx, node, watch, func() (document, error) {
				asked, err := node.Refresh(ctx, args[0])
				if err != nil {
					return document{}, err
				}
				in, err := node.Show(ctx, args[0])
				if err != nil {
					return document{}, err
				}
				if len(asked.Silent) > 0 && !watch {
					u.note("asked, and did not answer within half a second: %s; what they hold is shown as it was known before", strings.Join(asked.Silent, ", "))
				}
				leaderless, err := isLeaderless(ctx, node, in)
				if err != nil {
					return document{}, err
				}
				return document{
					v: in, same: undated(in), text: func(w io.Writer) { u.writeInstance(w, in, leaderless) },
					more: in.Ended == nil,
				}, nil
			})
		}),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes, until it has ended")
	return cmd
}

// undated is an instance without what changes as time passes.
func undated(in *api.Instance) *api.Instance {
	out := *in
	out.Tasks, out.Partitions, out.Overdue = slices.Clone(in.Tasks), slices.Clone(in.Partitions), slices.Clone(in.Overdue)
	for i := range out.Tasks {
		t := &out.Tasks[i]
		t.AsOf, t.Known, t.Due = nil, "", nil
	}
	for i := range out.Partitions {
		out.Partitions[i].Due = nil
	}
	for i := range out.Overdue {
		out.Overdue[i].Since = time.Time{}
	}
	return &out
}

// led is a node that says who coordinates.
type led interface {
	CoordinatorStatus(ctx context.Context) (*api.Coordinator, error)
}

// isLeaderless reports whether an instance that is to be orchestrated goes on by
// choreography, since nobody is known to hold the office.
func isLeaderless(ctx context.Context, node led, in *api.Instance) (bool, error) {
	if in.Ended != nil || in.Coordination != workflow.Orchestration {
		return false, nil
	}
	c, err := node.CoordinatorStatus(ctx)
	return err == nil && c.Coordinator == nil, err
}

func (u *ui) writeInstance(w io.Writer, in *api.Instance, leaderless bool) {
	name, state := oneLine(string(in.Workflow)), oneLine(string(in.State))
	known := ""
	if r := in.Recovery; r != nil && r.Known != "" {
		known = ", " + oneLine(r.Known)
	}
	fmt.Fprintf(w, "%s@%d  %s  %s%s\n", u.paint(bold, name), in.Version, in.ID, u.paint(styleOf(state), state), known)
	if in.Label != "" {
		fmt.Fprintln(w, oneLine(in.Label))
	}
	if in.Told != nil {
		u.writeTold(w, in.Told)
	}
	if in.Closed != nil {
		u.writeClosing(w, in)
		return
	}
	if in.Told != nil && in.Told.Summary {
		fmt.Fprintf(w, "started %s, ended %s\n", clock(in.Started), clockOf(in.Ended))
		return
	}
	fmt.Fprintf(w, "started %s, ended %s, by %s, responsible %s%s\n", clock(in.Started), clockOf(in.Ended),
		oneLine(string(in.Coordination)),
		orDash(oneLine(string(in.Responsible))), offeredBy(in))
	if in.ResponsibleGone && (in.Ended == nil || in.Cancellable()) {
		fmt.Fprintf(w, "%s is not here any more: %s decides, and each partner that takes part may cancel it\n",
			oneLine(string(in.Responsible)), whoDecides(in))
	}
	if p := in.Parent; p != nil {
		fmt.Fprintf(w, "it does task %s of instance %s%s\n", oneLine(string(p.Task)), oneLine(p.Instance), outlived(p))
	}
	for _, a := range in.Amended {
		late := ""
		if a.Late {
			late = "too late, without effect, "
		}
		fmt.Fprintf(w, "amended %s%s by %s, at %s: %s\n", late, clock(a.At), oneLine(a.User), oneLine(a.Partner),
			oneLine(strings.Join(marked(a), "; ")))
	}
	if leaderless {
		fmt.Fprintln(w, "no coordinator is known here: it goes on by choreography")
	}
	if in.Duplicated {
		fmt.Fprintln(w, u.paint(yellow, "duplicated: two executions of a task were both built upon"))
	}
	fmt.Fprintln(w)
	u.writePartitions(w, in.Partitions)
	u.writeWhy(w, in)
	fmt.Fprintln(w)
	u.writeTasks(w, in.Tasks)
	u.writeData(w, in)
	u.writeAway(w, in)
	for _, c := range in.Conflicts {
		fmt.Fprintf(w, "%s %s was given different values at the same time: %s\n", u.paint(yellow, "conflict:"), c.Data,
			oneLine(text(c.Values)))
	}
	for _, a := range in.Asks {
		what := oneLine(failure(a))
		if a.MayGoOn() {
			fmt.Fprintf(w, "%s %s%s\n", oneLine(workflow.WithLabel(string(a.Task), a.Label)), what, stopsAll(a))
			continue
		}
		commands := make([]string, len(a.Commands))
		for i, c := range a.Commands {
			commands[i] = oneLine(c)
		}
		why := u.paint(yellow, "waits for an order:")
		switch {
		case a.Left:
			why, what = u.paint(yellow, "left so by order:"), "has failed, and what waits for it is blocked"
		case whoDecides(in) == nobody: // so it waits for none
			why = u.paint(yellow, "nothing deals with that:")
		}
		fmt.Fprintf(w, "%s %s %s; %s\n", why, oneLine(workflow.WithLabel(string(a.Task), a.Label)), what,
			decides(in, orDash(strings.Join(commands, "; "))))
	}
	for _, o := range in.Overdue {
		fmt.Fprintf(w, "%s %s since %s; %s\n", u.paint(yellow, "overdue:"),
			oneLine(workflow.WithLabel(string(o.Task), o.Label)), clock(o.Since),
			decides(in, oneLine(strings.Join(o.Commands, "; "))))
	}
	if len(in.Undoable) > 0 && in.State != workflow.InstanceSucceeded {
		fmt.Fprintf(w, "can be undone: %s; %s\n", joinTasks(in.Undoable),
			decides(in, fmt.Sprintf("mutirao task undo %s TASK", u.id(in.ID))))
	}
	for _, i := range in.Incidents {
		more := ""
		if len(i.Commands) > 0 {
			more = "; it counts once it is adopted; " + decides(in, oneLine(strings.Join(i.Commands, "; ")))
		}
		of := ""
		if i.Task != "" && in.DataDriven {
			of = oneLine(string(i.Task)) + ": "
		}
		fmt.Fprintf(w, "%s %s %s%s%s\n", u.paint(yellow, "incident:"), clock(i.At), of, oneLine(i.What), more)
	}
}

// outlived says where something can be ordered in place of an instance that counts nowhere any more; empty: it counts.
func outlived(p *api.Parent) string {
	if !p.Ended {
		return ""
	}
	return fmt.Sprintf(", which has ended: nothing that is done here counts any more; if it failed, order there: "+
		"mutirao task again %s %s", oneLine(p.Instance), oneLine(string(p.Task)))
}

// stopsAll says how the whole is stopped although a task may go on; empty: it cannot be.
func stopsAll(a api.Ask) string {
	if len(a.Commands) == 0 {
		return ""
	}
	return "; to stop all: " + oneLine(strings.Join(a.Commands, "; "))
}

// decides says who decides about an instance, and how. Where nobody is left who does, it says what can be done.
func decides(in *api.Instance, commands string) string {
	switch who := whoDecides(in); {
	case who != nobody:
		return who + " decides: " + commands
	case in.Cancellable():
		return "nobody is left who decides; each partner that takes part may end it, as the user of its own name: mutirao cancel " +
			oneLine(in.ID)
	}
	return "nobody is left who decides, so it stays as it is: what is still to be done can be started once more"
}

// nobody is whoDecides where that is so.
const nobody = "nobody"

// whoDecides is who decides about an instance, in words.
func whoDecides(in *api.Instance) string {
	switch {
	case !in.ResponsibleGone && in.Administrators != "":
		return orDash(oneLine(string(in.Responsible))) + ", or who has the role " + oneLine(string(in.Administrators)) + ","
	case !in.ResponsibleGone:
		return orDash(oneLine(string(in.Responsible)))
	case in.Administrators != "":
		return "who has the role " + oneLine(string(in.Administrators))
	}
	return nobody
}

// writeAway says of tasks whose partner is away as it announced until when, and what can be done meanwhile.
func (u *ui) writeAway(w io.Writer, in *api.Instance) {
	for _, t := range in.Tasks {
		if t.Away == nil || t.State != workflow.Ready && t.State != workflow.Running {
			continue
		}
		can := "nobody can begin it before"
		switch {
		case t.ClaimedBy != "":
			can = oneLine(t.ClaimedBy) + " has it, and what comes of it is known then"
		case t.State == workflow.Running:
			can = "what comes of it is known then"
		}
		late := ""
		if who := string(in.Responsible); in.Ended == nil && who != "" && !in.ResponsibleGone && who != t.Away.Partner {
			late = fmt.Sprintf("; if that is too late, %s can end the instance: mutirao cancel %s",
				oneLine(string(in.Responsible)), u.id(in.ID))
		}
		fmt.Fprintf(w, "%s %s is with %s, which is away until about %s, as it announced: %s%s\n", u.paint(yellow, "away:"),
			oneLine(workflow.WithLabel(string(t.Name), t.Label)), oneLine(t.Away.Partner), clock(t.Away.Until), can, late)
	}
}

// writeClosing shows what is kept of an instance whose facts were deleted.
func (u *ui) writeClosing(w io.Writer, in *api.Instance) {
	c := in.Closed
	fmt.Fprintf(w, "a summary: it had ended, everybody had all of it, and its facts were deleted %s\n", clock(c.At))
	if c.Signature == "" {
		fmt.Fprintln(w, "that was so long ago that the summary is gone, too")
		return
	}
	others := ""
	if c.Others > 0 {
		others = " and " + plural(c.Others, "other")
	}
	fmt.Fprintf(w, "started %s by %s, ended %s\n", clock(in.Started), oneLine(c.Initiator), clockOf(in.Ended))
	fmt.Fprintf(w, "took part: %s%s\n", oneLine(strings.Join(c.Participants, ", ")), others)
	fmt.Fprintf(w, "%d facts with digest %s, signed by %s\n", c.Facts, c.Digest, oneLine(c.By))
}

// writeTold says by whose account an instance of others is shown.
func (u *ui) writeTold(w io.Writer, t *api.Told) {
	if !t.Summary {
		fmt.Fprintf(w, "this node takes no part in it: as %s shows it\n", t.By.Name)
		return
	}
	fmt.Fprintln(w, u.paint(yellow, fmt.Sprintf("a summary, which %s (%s) reported %s: this node takes no part in it, and nobody who does shows it now (%s)",
		t.By.Name, t.By.State, ago(time.Now(), t.By.At), oneLine(t.Why))))
	fmt.Fprintf(w, "%s tasks are done; ready or running with %s; held by %s\n", progress(t.Done, t.Tasks),
		orDash(strings.Join(t.Current, ", ")), orDash(strings.Join(t.Participants, ", ")))
}

func (u *ui) writePartitions(w io.Writer, list []api.Partition) {
	t := table{head: []string{"PARTITION", "PARTNER", "ATTEMPT", "STATE", "TIMEOUT"}, states: 4}
	due := slices.ContainsFunc(list, func(p api.Partition) bool { return len(p.Due) > 0 })
	if due {
		t.head = append(t.head, "LEFT")
	}
	labels := slices.ContainsFunc(list, func(p api.Partition) bool { return p.Label != "" })
	if labels {
		t.head = append(t.head, "LABEL")
	}
	for _, p := range list {
		timeout := "-"
		if p.Timeout != nil {
			timeout = span(*p.Timeout)
		}
		row := []string{
			string(p.Name), orDash(strings.Join(p.Holders(), ", ")), strconv.Itoa(p.Attempt), orDash(p.State), timeout,
		}
		if due {
			row = append(row, left(p.Due))
		}
		if labels {
			row = append(row, orDash(p.Label))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}

// writeWhy says how work came to its partners: a line for each assignment, with
// -v the candidates that were weighed.
func (u *ui) writeWhy(w io.Writer, in *api.Instance) {
	for _, p := range in.Partitions {
		u.writeReason(w, "partition "+string(p.Name), cmp.Or(p.First, p.Partner), p.Why)
	}
	for _, t := range in.Tasks {
		u.writeReason(w, "task "+string(t.Name), t.Partner, t.Why)
	}
	if q := in.Quality; q != nil && u.verbose {
		fmt.Fprintf(w, "quality %.3g: %.3g of the %.3g that could be had, over %s done that a mechanism gave out or offered\n",
			q.Total, q.Actual, q.Ideal, plural(q.Tasks, "task"))
	}
}

func (u *ui) writeReason(w io.Writer, what, partner string, why *api.Why) {
	if why == nil || (why.Mechanism == "" && !u.verbose) {
		return
	}
	fmt.Fprintf(w, "%s at %s: %s", what, partner, oneLine(why.Reason))
	var by []string
	if len(why.Candidates) > 0 && why.Candidates[0].Verdict == string(aptitude.Chosen) {
		by = append(by, fmt.Sprintf("abs_alloc %.3g", why.Candidates[0].AbsAlloc))
	}
	if why.Threshold > 0 {
		by = append(by, fmt.Sprintf("threshold %.3g", why.Threshold))
	}
	if len(by) > 0 {
		fmt.Fprintf(w, " (%s)", strings.Join(by, ", "))
	}
	fmt.Fprintln(w)
	if !u.verbose || len(why.Candidates) == 0 {
		return
	}
	t := table{head: []string{
		"  CANDIDATE", "ABS_ALLOC", "SUITABILITY", "URGENCY", "CONFORMANCE", "AVAILABILITY", "VERDICT",
	}}
	for _, c := range why.Candidates {
		n := func(x float64) string { return fmt.Sprintf("%.3g", x) }
		t.add("  "+c.Partner, n(c.AbsAlloc), n(c.Suitability), n(c.Urgency), n(c.Conformance), n(c.Availability),
			c.Verdict)
	}
	t.write(u, w, "")
	if why.Others > 0 {
		fmt.Fprintf(w, "  and %d others\n", why.Others)
	}
}

func (u *ui) writeTasks(w io.Writer, list []api.Task) {
	t := table{head: []string{"TASK", "PARTITION", "PARTNER", "STATE", "STARTED", "ENDED"}, states: 4}
	due := slices.ContainsFunc(list, func(t api.Task) bool { return len(t.Due) > 0 })
	if due {
		t.head = append(t.head, "LEFT")
	}
	labels := slices.ContainsFunc(list, func(t api.Task) bool { return t.Label != "" })
	if labels {
		t.head = append(t.head, "LABEL")
	}
	t.head = append(t.head, "REMARKS")
	states := map[workflow.TaskName]workflow.State{}
	for _, task := range list {
		states[task.Name] = task.State
	}
	for _, task := range list {
		row := []string{
			string(task.Name), orDash(string(task.Partition)), orDash(task.Partner), string(task.State),
			clockOf(task.Started), clockOf(task.Ended),
		}
		if due {
			row = append(row, left(task.Due))
		}
		if labels {
			row = append(row, orDash(task.Label))
		}
		t.add(append(row, remarks(task, states))...)
	}
	t.write(u, w, "")
}

// undone says what has become of an execution that does not count.
var undone = map[string]string{
	"waiting": ", to be compensated once all are known to know", "running": ", being compensated",
	"done": ", compensated", "failed": ", its compensation failed",
}

// dueWords say what happens when a clock has run out.
var dueWords = map[string]string{
	"trigger": "starts by itself", "verdict": "given up here", "timeout": "time-out", "deadline": "due",
	"transfer": "passes to the responsible user",
}

// left says how much time is left until what.
func left(dues []api.Due) string {
	var out []string
	for _, d := range dues {
		in := " in "
		if d.About {
			in = " in about "
		}
		if d.Kind == "deadline" && !d.At.After(time.Now()) {
			out = append(out, "was due at "+clock(d.At))
			continue
		}
		out = append(out, dueWords[d.Kind]+in+days(d.Left))
	}
	return orDash(strings.Join(out, ", "))
}

// days is how much time is left, in days and hours where it is much.
func days(left string) string {
	d, err := time.ParseDuration(left)
	if err != nil || d < 48*time.Hour {
		return left
	}
	return workflow.FormatDuration(d.Truncate(time.Hour))
}

// replaced says what became of a task that another stands in for.
func replaced(t api.Task, by workflow.State) string {
	failed := "failed"
	if t.Reason != "" {
		failed += ": " + t.Reason
	}
	at := ""
	if x := t.StandIn; x != nil { // its own entry is about something else
		by, at = x.State, fmt.Sprintf(" (%s at %s)", x.State, orDash(x.Partner))
	}
	if by == workflow.Succeeded {
		return fmt.Sprintf("%s; done by %s", failed, *t.ReplacedBy)
	}
	return fmt.Sprintf("%s; %s stands in for it%s", failed, *t.ReplacedBy, at)
}

// working is who does an automatic task for its holder, and how far that is.
func working(t api.Task) []string {
	switch {
	case t.WaitsForWorker:
		return []string{"waits for a worker"}
	case t.Worker == nil:
		return nil
	}
	text := "worker " + t.Worker.Name
	if t.Worker.At != "" {
		text += " at " + t.Worker.At
	}
	if t.Worker.Progress > 0 {
		text += fmt.Sprintf(", %.0f%%", 100*t.Worker.Progress)
	}
	if t.Worker.Note != "" {
		text += ": " + t.Worker.Note
	}
	return []string{text}
}

// remarks are what is out of the ordinary about a task. states are those of all.
func remarks(t api.Task, states map[workflow.TaskName]workflow.State) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Attempt > 1 {
		add("attempt %d", t.Attempt)
	}
	if t.ContingencyOf != nil {
		add("stands in for %s", *t.ContingencyOf)
	}
	if t.Undoes != "" {
		add("undoes %s", t.Undoes)
	}
	lost := t.ReplacedBy != nil && t.State == workflow.Failed
	switch {
	case lost:
		out = append(out, replaced(t, states[*t.ReplacedBy]))
	case t.ReplacedBy != nil:
		add("replaced by %s", *t.ReplacedBy)
	}
	if t.TriggerFired {
		add("emergency trigger fired")
	}
	for _, s := range t.Superseded {
		add("superseded: %s at %s%s", s.Task, s.Partner, undone[s.Compensation])
	}
	if t.Child != "" {
		out = append(out, "done by instance "+t.Child)
	}
	if t.ClaimedBy != "" {
		out = append(out, t.ClaimedBy+" has it")
	}
	if t.Said != nil {
		out = append(out, saidLast(t.Said))
	}
	if len(t.OfferedTo) > 0 {
		out = append(out, "offered to "+strings.Join(t.OfferedTo, ", "))
	}
	if t.KeptFor != "" {
		out = append(out, "kept for "+t.KeptFor)
	}
	out = append(out, working(t)...)
	if t.PerformedBy != "" && !lost {
		out = append(out, "performed by "+t.PerformedBy)
	}
	if t.Reason != "" && !lost {
		out = append(out, t.Reason)
	}
	if t.Known != "" {
		out = append(out, t.Known)
	}
	return strings.Join(out, "; ")
}

func (u *ui) writeData(w io.Writer, in *api.Instance) {
	data := in.Data
	if len(data) == 0 {
		return
	}
	t := table{head: []string{"DATA", "VALUE"}}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		value := text(data[name])
		if slices.Contains(in.OnlyHere, workflow.DataName(name)) {
			value += ", only here"
		}
		t.add(workflow.WithLabel(name, in.DataLabels[name]), value)
	}
	fmt.Fprintln(w)
	t.write(u, w, "")
}

// text is a value for people: strings as they are, everything else as JSON.
func text(v workflow.Value) string {
	if s, ok := v.(string); ok {
		if f, err := workflow.ParseFile(s); err == nil {
			return fmt.Sprintf("%s, %s", f.Name, workflow.FormatSize(f.Size))
		}
		return s
	}
	return asJSON(v)
}

// asJSON is a value as JSON for people, who read < and & as they are.
func asJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// marked are the lines of an amendment, with a mark at each that has no effect.
func marked(a api.AmendmentMade) []string {
	if a.Late { // nothing of it has
		return a.Lines
	}
	out := slices.Clone(a.Lines)
	for _, l := range a.Lost {
		i := slices.Index(out, l)
		if i < 0 {
			i = len(out)
			out = append(out, l)
		}
		out[i] += " (without effect, as another was made side by side)"
	}
	return out
}

// offeredBy says by which policy items are offered, if it is not to all.
func offeredBy(in *api.Instance) string {
	if in.Notify == "" || in.Notify == workflow.NotifyAll {
		return ""
	}
	return ", items offered to " + oneLine(in.Notify)
}
