package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// recoverMethods are the methods of recovery, with what each does.
var recoverMethods = []struct{ name, does string }{
	{"compensate", "undoes transitions that ended well, the last first: --steps N of them (1 unless something else is said), " +
		"--until a state equivalent to that number's, --when a condition holds"},
	{"offer", "offers the state to all triggers; where something that ran beside what brought it came to " +
		"nothing, compensates back to before that first"},
	{"restart", "offers the state to all triggers as it is"},
	{"jump-back", "makes a state with --set that is equivalent to one of the history; only out of an inconsistent one"},
	{"jump-forward", "makes a state with --set that is equivalent to none of the history, and offers it"},
}

func newRecoverCommand() *cobra.Command {
	var user userFlag
	var step api.RecoveryStep
	var until, from stateFlag
	var set []string
	var dry, yes bool
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "recover ID [METHOD] [--steps N] [--until STATE] [--when EXPR] [--set k=v]... [--from STATE] [--dry-run] [--yes] [--user U]",
		Short: "Recover an instance that is interrupted",
		Long: `Without METHOD it says why an instance that is driven by its data is interrupted, and
which methods the rules allow now; of one whose tasks follow a graph, what waits for a
decision, with the commands that order what can be done. With METHOD it takes that step:

` + methodsInWords() + `
A value of --set is read by its type; NAME=null sets null. --dry-run says what the step
would lead to, and changes nothing; what a compensation sets that its definition does
not say is taken to be what was there before. A method that is not allowed now is refused
with the reason (6), and changes nothing. The user who answers for the instance signs the
step, or somebody with the role that its definition names under administrators (else 5,
with --dry-run as well; without METHOD it says first who may), also at a node that takes
no part in the instance: what that shows comes from a partner that does. The partner that
keeps the data states writes the step down, so it must be reached.

A step cannot be taken back, as what it undoes or fires is done outside as well. It is
taken only in the state that the command saw, or that --from names: where somebody else
was quicker it is refused (6), and changes nothing. On a terminal the command asks first,
and names the instance with its workflow and whole ID, its state, and what the step
undoes.
With --yes, or where nobody sits at a terminal, ID must be the whole ID (else 2).
A script passes --from as well: without it a step is for the state that there is by
then, so each of several runs undoes one more. --from names a state, and not an
interruption: where the instance was interrupted once more in the same state, the same
command is a new step.

Of --steps, --until and --when several may be given: compensation stops where all of
them hold. It undoes one transition at least, also where --when holds already.`,
		Example: `  mutirao recover 3f9a
  mutirao recover 3f9a compensate --steps 2 --from S5
  mutirao recover 3f9a offer --dry-run
  mutirao recover 3f9a jump-forward --set status=agreed --set car=null`,
		Args:              argumentsFrom(1, "ID", "METHOD"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if len(args) == 1 {
				return u.recoverMenu(ctx, node, args[0], user.who())
			}
			values, err := pairs("set", "NAME=VALUE", set)
			if err != nil {
				return err
			}
			step.Method = args[1]
			if err := misused(cmd, step.Method); err != nil {
				return err
			}
			if cmd.Flags().Changed("steps") && step.Steps < 1 {
				return usagef("--steps %d: want 1 or more", step.Steps)
			}
			if cmd.Flags().Changed("when") && strings.TrimSpace(step.When) == "" { // it would be no stop at all
				return usagef("--when is empty: want an expression over data, such as 'paid == false'; left out, " +
					"--steps and --until say where it stops")
			}
			if cmd.Flags().Changed("until") { // state 0 is one as well
				step.Until = (*int)(&until)
			}
			if cmd.Flags().Changed("from") {
				step.From = (*int)(&from)
			}
			for k, v := range values {
				if step.Set == nil {
					step.Set = map[workflow.DataName]*string{}
				}
				if step.Set[workflow.DataName(k)] = &v; v == "null" {
					step.Set[workflow.DataName(k)] = nil
				}
			}
			if dry {
				return u.foresee(ctx, node, user.who(), args[0], step)
			}
			in, err := u.askToRecover(ctx, node, yes, args[0], user.who(), &step)
			if err != nil {
				return err
			}
			done, err := node.OrderTask(ctx,
				api.TaskOrder{User: user.who(), ID: in.ID, Order: api.TaskRecover, Recover: &step})
			if err != nil {
				return err
			}
			return u.done(done, "%s", orderedText(done))
		}),
	}
	cmd.Flags().IntVar(&step.Steps, "steps", 0, "compensate so `many` transitions")
	cmd.Flags().Var(&until, "until", "compensate until a state is equivalent to that of this `number`, such as 1 or S1")
	cmd.Flags().StringVar(&step.When, "when", "", "compensate until this `expression` over data holds")
	cmd.Flags().StringArrayVar(&set, "set", nil, "what a jump sets, `NAME=VALUE`; may be repeated")
	cmd.Flags().Var(&from, "from", "only if this is the `number` of the current state, such as 3 or S3")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what it would lead to, and change nothing")
	addYesFlag(cmd, &yes)
	user.add(cmd)
	return cmd
}

// stateFlag is the number of a data state as a flag, also as the history writes it: S1.
type stateFlag int

func (n *stateFlag) String() string { return strconv.Itoa(int(*n)) }

func (n *stateFlag) Set(text string) error {
	v, err := strconv.Atoi(strings.TrimPrefix(strings.ToUpper(text), "S"))
	if err != nil || v < 0 {
		return errors.New("no number of a state") // wrongFlag says what is wanted
	}
	*n = stateFlag(v)
	return nil
}

func (n *stateFlag) Type() string { return "state" }

// misused says what no instance allows, in whatever state it is: an unknown method, or a flag that goes with another.
func misused(cmd *cobra.Command, method string) error {
	var names []string
	for _, m := range recoverMethods {
		names = append(names, m.name)
	}
	if !slices.Contains(names, method) {
		last := len(names) - 1
		return usagef("no method %q: want %s or %s", method, strings.Join(names[:last], ", "), names[last])
	}
	for _, flag := range []string{"steps", "until", "when"} {
		if cmd.Flags().Changed(flag) && method != "compensate" {
			return usagef("--%s goes with compensate only, not with %s", flag, method)
		}
	}
	if cmd.Flags().Changed("set") && !strings.HasPrefix(method, "jump-") {
		return usagef("--set goes with jump-back and jump-forward only, not with %s", method)
	}
	return nil
}

// askToRecover asks whether a step of recovery is to be taken, and has it be taken only as the instance stands now:
// somebody else may be quicker. Of what is not interrupted its holder says why not.
func (u *ui) askToRecover(
	ctx context.Context, node api.Service, yes bool, ref, user string, step *api.RecoveryStep,
) (*api.Instance, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil || in.Recovery == nil {
		return in, err
	}
	out, err := node.ForeseeRecovery(ctx, user, in.ID, *step)
	if err != nil {
		return nil, err
	}
	step.From, step.Interruption = &out.From, out.Interruption
	if !u.asks(yes) {
		return in, nil
	}
	return in, u.confirm(yes, "The step %s is taken in %s, now in S%d, and nobody can take that back.%s", step.Method, what,
		out.From, outdone(out))
}

// outdone says which transitions a step undoes or jumps over, as a sentence; empty: none.
func outdone(out *api.Outlook) string {
	var undone, passed []string
	for _, x := range out.Undoes {
		undone = append(undone, string(x.Task))
	}
	for _, x := range out.Jumped {
		passed = append(passed, string(x.Task))
	}
	text := ""
	if len(undone) > 0 {
		text += " It undoes " + oneLine(strings.Join(undone, ", then ")) + "."
	}
	if len(passed) > 0 {
		text += " It jumps over " + oneLine(strings.Join(passed, ", ")) + "."
	}
	return text
}

// foresee says what a step would lead to.
func (u *ui) foresee(ctx context.Context, node api.Service, user, ref string, step api.RecoveryStep) error {
	out, err := node.ForeseeRecovery(ctx, user, ref, step)
	if err != nil {
		return err
	}
	return u.result(out, func(w io.Writer) {
		u.writeBeside(w, out)
		for _, x := range out.Undoes {
			fmt.Fprintf(w, "undoes %s, which had brought S%d\n", x.Task, x.State)
			if !x.Sure {
				fmt.Fprintf(w, "    what undoes it decides what that sets: here, what was there before\n")
			}
		}
		for _, x := range out.Jumped {
			fmt.Fprintf(w, "jumps over %s, which had brought S%d: what it did stays done, and counts no more\n",
				oneLine(workflow.WithLabel(string(x.Task), x.Label)), x.State)
		}
		t := table{head: []string{"DATA", "THEN"}}
		for _, n := range slices.Sorted(maps.Keys(out.Attributes)) {
			star := ""
			if slices.Contains(out.Changed, workflow.DataName(n)) {
				star = "*"
			}
			t.add(n+star, oneLine(asJSON(out.Attributes[n])))
		}
		t.write(u, w, "")
		fmt.Fprintln(w, outlookText(out))
	})
}

// writeBeside says why an offer undoes something first.
func (u *ui) writeBeside(w io.Writer, out *api.Outlook) {
	if len(out.Beside) == 0 {
		return
	}
	var beside []string
	for _, x := range out.Beside {
		beside = append(beside, workflow.WithLabel(string(x.Task), x.Label)+" ("+x.Mark+")")
	}
	fmt.Fprintf(w, "what brought S%d is undone first, as this ran beside it and came to nothing: %s\n", out.From,
		oneLine(strings.Join(beside, ", ")))
}

// outlookText says how an instance would stand.
func outlookText(out *api.Outlook) string {
	text := fmt.Sprintf("S%d", out.State)
	if out.Like != nil && *out.Like != out.State {
		text += fmt.Sprintf(", like S%d", *out.Like)
	}
	switch out.Then {
	case api.ThenFires:
		if len(out.Fires) == 0 {
			return text + ", waits until it is old enough to fire something"
		}
		return text + ", fires " + joinTasks(out.Fires)
	case api.ThenFinal:
		return text + ", ends it well"
	}
	text += ", stays interrupted: "
	if out.Since == "" && out.Task != "" {
		text += "task " + oneLine(workflow.WithLabel(string(out.Task), out.Label)) + ": "
	}
	return text + oneLine(cmp.Or(out.Since, out.Cause))
}

func joinTasks(tasks []workflow.TaskName) string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = string(t)
	}
	return strings.Join(out, ", ")
}

func methodsInWords() string {
	var b strings.Builder
	for _, m := range recoverMethods {
		line := "  " + m.name
		for _, word := range strings.Fields(m.does) {
			if len(line)+1+len(word) > 88 {
				b.WriteString(line + "\n")
				line = "     "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// recoverMenu says why an instance is interrupted, and what can be done.
func (u *ui) recoverMenu(ctx context.Context, node api.Service, ref, user string) error {
	in, err := node.Show(ctx, ref)
	if err != nil {
		return err
	}
	who, err := node.Deciding(ctx, api.DecidingQuery{User: user, ID: in.ID})
	if err != nil { // the menu is there to be read all the same; what is ordered says why not
		who = nil
	}
	switch {
	case in.Recovery != nil:
		return u.recoverStates(in, who)
	case len(decisions(in)) > 0:
		return u.recoverTasks(in, who)
	case in.Parent != nil && in.Parent.Ended:
		return api.Errorf(api.Refused, "it does task %s of instance %s, which has ended: nothing that is done in it counts any more",
			in.Parent.Task, in.Parent.Instance).
			WithHint("order it there, if it failed: mutirao task again %s %s", in.Parent.Instance, in.Parent.Task)
	}
	return api.Errorf(api.Refused, "%s is %s, and not interrupted: nothing is to be recovered", in.ID, in.State).
		WithHint("mutirao show %s says how it stands", u.id(in.ID))
}

// writeMayNot says to somebody who does not decide about an instance who does; who may be nil: that is not known here.
func writeMayNot(w io.Writer, who *api.Deciding) {
	if who == nil || who.May {
		return
	}
	by := orDash(oneLine(string(who.Responsible)))
	if role := who.Administrators; role != "" {
		by += ", or whoever has the role " + oneLine(string(role)) + ","
	} else {
		by += " alone"
	}
	fmt.Fprintf(w, "%s may only read this, and order nothing: %s decides about it\n", oneLine(who.User), by)
}

// What the menu of an instance is about, by which programs tell the two forms apart that it has.
const (
	recoversStates = "data-states"
	recoversTasks  = "tasks"
)

// recoverStates is the menu of an instance that is driven by its data.
func (u *ui) recoverStates(in *api.Instance, who *api.Deciding) error {
	r := in.Recovery
	out := struct {
		ID       string        `json:"id"`
		Kind     string        `json:"kind"`
		Deciding *api.Deciding `json:"deciding"` // null: that is not known here
		*api.Recovery
	}{in.ID, recoversStates, who, r}
	return u.result(out, func(w io.Writer) {
		writeMayNot(w, who)
		state := "inconsistent"
		if r.Consistent {
			state = "consistent"
		}
		if in.Told != nil {
			u.writeTold(w, in.Told)
		}
		if r.Task != "" { // it failed, or brought the state
			state += "; task " + oneLine(workflow.WithLabel(string(r.Task), r.Label))
		}
		fmt.Fprintf(w, "%s is interrupted since %s, in state S%d, which is %s: %s\n", u.id(in.ID), clock(r.At), r.State,
			state, oneLine(r.Cause))
		if r.Known != "" {
			fmt.Fprintf(w, "%s: the partner that keeps its data states cannot be asked, and it may stand otherwise by now\n",
				oneLine(r.Known))
		}
		if r.Since != "" {
			fmt.Fprintln(w, "since then:", oneLine(r.Since))
		}
		if r.UnderWay {
			fmt.Fprintln(w, "compensations are under way: wait until they have ended; a jump forward calls them off")
		}
		for _, m := range recoverMethods {
			for _, allowed := range r.Methods {
				if allowed == m.name {
					fmt.Fprintf(w, "  mutirao recover %s %s\n      %s\n", u.id(in.ID), m.name, m.does)
				}
			}
		}
	})
}

// failure is in words what became of a task that waits for an order.
func failure(a api.Ask) string {
	switch {
	case a.Left:
		return "has failed, and was left so by order: what waits for it is blocked"
	case a.MayGoOn():
		return fmt.Sprintf("is presumed to have failed; %s, who holds it, is not gone and goes on with it when it can: "+
			"its success counts, so start nothing again", a.Partner)
	case a.Presumed:
		return "is presumed to have failed"
	case a.Lost:
		return "has failed, and " + a.Partner + ", who holds it, is gone for good"
	}
	return "has failed"
}

// decision is what may be decided about an instance, with the commands that do it.
type decision struct {
	About    string   `json:"about"`
	Commands []string `json:"commands"`
}

// decisions are those about an instance whose tasks follow a graph: what has failed and waits for an order, and what
// counts once somebody adopts it.
func decisions(in *api.Instance) (out []decision) {
	for _, a := range in.Asks {
		out = append(out, decision{workflow.WithLabel(string(a.Task), a.Label) + " " + failure(a), a.Commands})
	}
	for _, i := range in.Incidents {
		if len(i.Commands) > 0 {
			out = append(out, decision{i.What, i.Commands})
		}
	}
	for _, t := range in.Undoable {
		out = append(out, decision{
			string(t) + " was done, and can be undone", []string{fmt.Sprintf("mutirao task undo %s %s", in.ID, t)},
		})
	}
	return out
}

// recoverTasks is the menu of an instance whose tasks follow a graph: each line is an order that its user signs.
func (u *ui) recoverTasks(in *api.Instance, who *api.Deciding) error {
	what := decisions(in)
	out := map[string]any{
		"id": in.ID, "kind": recoversTasks, "responsible": in.Responsible, "deciding": who, "decisions": what,
	}
	return u.result(out, func(w io.Writer) {
		writeMayNot(w, who)
		if in.Told != nil {
			u.writeTold(w, in.Told)
		}
		how := "waits for what %s decides"
		if in.State != workflow.InstanceRunning && len(in.Asks) == 0 {
			how = "has ended, and %s decides what becomes of it"
		}
		fmt.Fprintf(w, "%s "+how+", or whoever has the role of its administrators\n", u.id(in.ID),
			orDash(oneLine(string(in.Responsible))))
		for _, d := range what {
			fmt.Fprintf(w, "%s:\n", oneLine(d.About))
			for _, c := range d.Commands {
				fmt.Fprintf(w, "  %s\n      %s\n", oneLine(c), orderDoes(c))
			}
		}
	})
}

// orderDoes says what follows from an order, by the command that gives it.
func orderDoes(command string) string {
	for _, x := range []struct{ begins, does string }{
		{"mutirao task again ", "its holder does it once more, or with --to another partner, or another if that is gone; what waits for it waits again"},
		{"mutirao task undo ", "its compensation is done, by whoever did it"},
		{"mutirao task skip ", "it is left out: what waits for it goes on without it"},
		{"mutirao task continue ", "it stays failed, and nobody is asked about it any more"},
		{"mutirao task adopt ", "what was kept counts as its result"},
		{"mutirao cancel ", "the instance ends: what runs is called off; what was done stays, and can be undone then (mutirao task undo)"},
	} {
		if strings.HasPrefix(command, x.begins) {
			return x.does
		}
	}
	return ""
}
