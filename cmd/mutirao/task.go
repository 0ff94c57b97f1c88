package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newTaskCommand() *cobra.Command {
	return newGroup("task", "Begin, complete, fail or reject a task; decide what becomes of one", newTaskStartCommand(),
		newTaskCompleteCommand(), newTaskFailCommand(), newTaskRejectCommand(),
		newTaskOrderCommand(api.TaskAgain, nil, "Have a task that failed done once more", `Has a task done once more that has failed, where nothing stands in for it: its holder
begins another attempt, and what waited for the task waits again, also when the
instance had ended so. With --to another partner does it, which must be able to.
Where its holder is gone another that takes part finds a partner that can do it.`),
		newTaskOrderCommand(api.TaskSkip, (*ui).askToSkip, "Leave out a task that failed", `Leaves a task out that has failed, where nothing stands in for it: what waits for its
success goes on without it, as after on-failure: release, also when the instance was
blocked. --reason must be given, and is kept with the word of the user who orders it.`),
		newTaskOrderCommand(api.TaskContinue, nil, "Leave a failure as it is",
			`Answers the question what becomes of a failure: nothing, it stays as it is. Of a task
whose deadline is over: it goes on.`),
		newTaskOrderCommand(api.TaskStop, (*ui).askToStop, "Have a task fail that is READY or RUNNING", `Has a task fail, by the word of its holder, that is READY or RUNNING. What follows
is what the definition says under on-failure. Work that somebody brings of it later
is kept and shown. Of a task that others presume to have failed that is what stands in
for it; the task itself may still count, if its holder is here again with it.`),
		newTaskOrderCommand(api.TaskUndo, (*ui).askToUndo, "Undo what a task did", `Has what a task did undone by its compensation, in an instance that has ended, also
though it counts: whoever did it undoes it, once everybody who takes part is known to
know that. What was built upon it, and can be undone, goes first.`),
		newTaskExtendCommand(), newTaskTransferCommand(), newTaskAdoptCommand(),
		newTaskOrderCommand(api.TaskCancel, askToCancelFor, "Cancel the whole instance of a task",
			`Cancels the whole instance, as mutirao cancel does, with all its tasks: mutirao task
stop is for one task alone.`))
}

// asksFirst asks whether a task of an instance is to be dealt with in a way that cannot be taken back.
type asksFirst func(u *ui, ctx context.Context, node shower, yes bool, ref string,
	task workflow.TaskName) (*api.Instance, error)

func askToCancelFor(
	u *ui, ctx context.Context, node shower, yes bool, ref string, task workflow.TaskName,
) (*api.Instance, error) {
	in, _, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil {
		return nil, err
	}
	known := slices.ContainsFunc(in.Tasks, func(t api.Task) bool { return t.Name == task })
	if !known && len(in.Tasks) > 0 { // whoever names what is not there may mean another instance
		return nil, u.noTask(in, task)
	}
	return u.askToCancel(ctx, node, yes, ref, task)
}

// askToStop asks whether a task is to fail. What is refused anyway is not asked about.
func (u *ui) askToStop(
	ctx context.Context, node shower, yes bool, ref string, task workflow.TaskName,
) (*api.Instance, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == task })
	switch {
	case !u.asks(yes):
		return in, nil
	case at < 0 && len(in.Tasks) > 0:
		return nil, u.noTask(in, task)
	case at >= 0 && in.Tasks[at].ReplacedBy != nil: // that is what is stopped
		return in, u.confirm(yes, "Task %s of %s fails, which stands in for %s, and nobody can take that back.",
			*in.Tasks[at].ReplacedBy, what, task)
	case at >= 0 && in.Tasks[at].State != workflow.Ready && in.Tasks[at].State != workflow.Running:
		return nil, api.Errorf(api.Refused, "%s is %s: only what is READY or RUNNING can be stopped",
			workflow.WithLabel(string(task), in.Tasks[at].Label), in.Tasks[at].State)
	}
	return in, u.confirm(yes, "Task %s of %s fails, and nobody can take that back.", task, what)
}

// noTask says that an instance has no such task, and which may be meant: people read labels.
func (u *ui) noTask(in *api.Instance, task workflow.TaskName) error {
	names, labels := make([]string, len(in.Tasks)), make([]string, len(in.Tasks))
	for i, t := range in.Tasks {
		names[i], labels[i] = string(t.Name), t.Label
	}
	err := api.Errorf(api.NotFound, "%s has no task %s", in.ID, task)
	if meant := workflow.Meant(string(task), names, labels); meant != "" {
		return err.WithHint("did you mean %s?", meant)
	}
	return err.WithHint("mutirao show %s lists its tasks", u.id(in.ID))
}

// askToSkip asks whether a task is to be left out. What is refused anyway is not asked about.
func (u *ui) askToSkip(
	ctx context.Context, node shower, yes bool, ref string, task workflow.TaskName,
) (*api.Instance, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil || !u.asks(yes) {
		return in, err
	}
	at := slices.IndexFunc(in.Asks, func(a api.Ask) bool { return a.Task == task })
	if at < 0 || !slices.Contains(in.Asks[at].Orders, api.TaskSkip) {
		return in, nil // who holds it says why not
	}
	return in, u.confirm(yes, "What waits for task %s of %s goes on without it, and nobody can take that back.", task,
		what)
}

// askToUndo asks whether what a task did is to be undone.
func (u *ui) askToUndo(
	ctx context.Context, node shower, yes bool, ref string, task workflow.TaskName,
) (*api.Instance, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil || !u.asks(yes) {
		return in, err
	}
	if at := slices.IndexFunc(in.Tasks, func(t api.Task) bool { return t.Name == task }); at < 0 ||
		in.Tasks[at].State != workflow.Succeeded {
		return in, nil // who holds it says why not
	}
	return in, u.confirm(yes, "What task %s of %s did is undone, and nobody can take that back.", task, what)
}

// newTaskOrderCommand makes a command by which somebody decides about a task; first asks before what cannot be
// taken back, and is nil where that is nothing.
func newTaskOrderCommand(order string, first asksFirst, short, long string) *cobra.Command {
	var user userFlag
	var reason, to string
	var yes bool
	sure, use := "", ""
	if first != nil {
		use = " [--yes]"
		sure = `

It cannot be taken back: on a terminal the command asks first, and names the instance
with its workflow and whole ID. With --yes, or where nobody sits at a terminal, ID must be
the whole ID (else 2).`
	}
	why, example := " [--reason R]", "  mutirao task "+order+" 3f9a dispatch\n"
	switch order {
	case api.TaskSkip:
		why, example = " --reason R", ""
	case api.TaskAgain:
		why += " [--to PARTNER]"
		example += "  mutirao task again 3f9a dispatch --to engine-7\n"
	}
	cmd := &cobra.Command{
		Use:   order + " ID TASK" + why + " [--user U]" + use,
		Short: short,
		Long: long + `

That is for the user who answers for the instance (mutirao show says who), and for
those who have the role that its definition names under administrators; others are
refused (5). The user signs the order. The partner that holds the task writes it
down and carries it out, once, so it must be reached: else the command says who that
is (6). --user says who orders, or else ` + userVariable + `; without either it is the
one user who is signed in here, or else this partner.` + sure,
		Example:           example + "  mutirao task " + order + " 3f9a dispatch --user ana --reason \"the road is open\"",
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if first != nil {
				in, err := first(u, ctx, node, yes, args[0], workflow.TaskName(args[1]))
				if err != nil {
					return err
				}
				args[0] = in.ID
			}
			done, err := node.OrderTask(ctx, api.TaskOrder{
				User: user.who(), ID: args[0], Task: workflow.TaskName(args[1]), Order: order, Reason: reason, To: to,
			})
			if err != nil {
				return err
			}
			return u.done(done, "%s", orderedText(done))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	if order == api.TaskAgain {
		cmd.Flags().StringVar(&to, "to", "", "the `partner` that does it, in place of the one that holds it")
		complete(cmd, "to", completePartners)
	}
	user.add(cmd)
	if first != nil {
		addYesFlag(cmd, &yes)
	}
	return cmd
}

// orderedText says what follows from an order.
func orderedText(o *api.TaskOrdered) string {
	text := doneAbout(o)
	if len(o.GoneToo) > 0 {
		text += fmt.Sprintf("; what waits for it is with a partner that is gone as well, and wants an order of its own: %s",
			joinTasks(o.GoneToo))
	}
	return text
}

// doneAbout says what follows from an order for the task that it is about.
func doneAbout(o *api.TaskOrdered) string {
	task := string(o.Task)
	if o.StandIn != "" {
		task = fmt.Sprintf("%s, which stands in for %s,", o.StandIn, o.Task)
	}
	if o.Order == api.TaskAgain && o.InStead && o.To == "" {
		return fmt.Sprintf("task %s of %s is done once more, by whom %s finds: mutirao show %s", task, o.ID, o.At, o.ID)
	}
	switch o.Order {
	case api.TaskAgain:
		return fmt.Sprintf("task %s of %s is done once more, by %s", task, o.ID, cmp.Or(o.To, o.At))
	case api.TaskUndo:
		return fmt.Sprintf("what task %s of %s did is being undone, by %s: mutirao show %s", task, o.ID, o.At, o.ID)
	case api.TaskSkip:
		return fmt.Sprintf("task %s of %s is left out: what waits for it goes on", task, o.ID)
	case api.TaskStop:
		text := fmt.Sprintf("task %s of %s is stopped", task, o.ID)
		if o.MayCount != "" {
			text += fmt.Sprintf("; what %s still brings of %s may count", o.MayCount, o.Task)
		}
		return text
	case api.TaskCancel:
		return o.ID + " is cancelled, the whole instance: mutirao task stop is for one task alone"
	case api.TaskRecover:
		return fmt.Sprintf("%s was given the step: mutirao history %s shows what came of it", o.At, o.ID)
	}
	return fmt.Sprintf("task %s of %s stays as it is", task, o.ID)
}

func newTaskStartCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "start ID TASK",
		Short: "A person begins a task",
		Long: `Notes that a person begins a task of an instance, at the partner that holds it:
others then see it RUNNING, and since when. It is not needed to complete a task; of one
that was not said to have begun, only its end is known.`,
		Example:           `  mutirao task start 3f9a dispatch`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := node.BeginTask(ctx, api.BeginRequest{ID: args[0], Task: workflow.TaskName(args[1])}); err != nil {
				return err
			}
			return u.done(map[string]string{"id": args[0], "task": args[1], "state": "running"}, "task %s of %s runs",
				args[1], args[0])
		}),
	}
}

func newTaskCompleteCommand() *cobra.Command {
	var outputs []string
	var given filesFlag
	cmd := &cobra.Command{
		Use:   "complete ID TASK [--output k=v]... [--file k=PATH]...",
		Short: "A person's task is done",
		Long: `Completes a person's task of an instance at the partner that holds it. Values of
--output are read by the types of the definition's data; a task may only set
what its definition names under out. (-o still chooses how results are printed.)`,
		Example: `  mutirao task complete 3f9a dispatch --output report="two floors, smoke"
  mutirao task complete 3f9a procedure-1`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			values, err := pairs("output", "NAME=VALUE", outputs)
			if err == nil {
				err = given.give(ctx, node, values, "--output", func() (dataTypes, error) {
					list, err := node.Data(ctx, args[0])
					types := dataTypes{}
					for _, d := range list {
						types[string(d.Name)] = workflow.DataType(d.Type)
					}
					return types, err
				})
			}
			if err != nil {
				return err
			}
			return finish(ctx, u, node, api.FinishRequest{
				ID: args[0], Task: workflow.TaskName(args[1]), Outputs: values,
			})
		}),
	}
	cmd.Flags().StringArrayVar(&outputs, "output", nil, "a result, `NAME=VALUE`; may be repeated")
	given.add(cmd, "a result that is a file")
	addFormatFlag(cmd, cmd.Flags(), "output-format")
	return cmd
}

func newTaskFailCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "fail ID TASK [--reason R]",
		Short: "A person's task cannot be done",
		Long: `Fails a person's task of an instance at the partner that holds it. What follows is
what the definition says under on-failure.`,
		Example:           `  mutirao task fail 3f9a procedure-1 --reason "no water"`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			return finish(ctx, u, node, api.FinishRequest{
				ID: args[0], Task: workflow.TaskName(args[1]), Failed: true, Reason: reason,
			})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	return cmd
}

// finisher is a node that finishes tasks.
type finisher interface {
	FinishTask(ctx context.Context, r api.FinishRequest) error
	Data(ctx context.Context, id string) ([]api.DataItem, error)
}

func finish(ctx context.Context, u *ui, node finisher, r api.FinishRequest) error {
	if err := node.FinishTask(ctx, r); err != nil {
		return err
	}
	state, said := "completed", "is completed"
	if r.Failed {
		state, said = "failed", "has failed; mutirao show "+r.ID+" says what follows"
	}
	alone := filesOnlyHere(ctx, node, r)
	answer := finished{ID: r.ID, Task: r.Task, State: state, OnlyHere: alone}
	return u.done(answer, "task %s of %s %s%s", r.Task, r.ID, said, onlyHere(alone))
}

// finished is what finishing a task answers.
type finished struct {
	ID    string            `json:"id"`
	Task  workflow.TaskName `json:"task"`
	State string            `json:"state"` // completed or failed
	// OnlyHere names the data whose files no other partner has yet.
	OnlyHere []string `json:"only_here,omitempty"`
}

// filesOnlyHere names the data whose files somebody has just given with a task, and no other partner has.
func filesOnlyHere(ctx context.Context, node finisher, r api.FinishRequest) (names []string) {
	isFile := func(text string) bool {
		_, err := workflow.ParseFile(text)
		return err == nil
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(r.Outputs)), isFile) {
		return nil
	}
	data, err := node.Data(ctx, r.ID)
	if err != nil {
		return nil // the task is done all the same
	}
	for _, d := range data {
		if d.File != nil && d.File.OnlyHere && d.File.Value == r.Outputs[string(d.Name)] {
			names = append(names, string(d.Name))
		}
	}
	return names
}

func newTaskRejectCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reject ID TASK [--reason R]",
		Short: "Pass a task that was given to this partner on to another",
		Long: `Passes a task that this partner holds, and has not started, on to the most apt
of the others; it does not come back. When nobody else can take it the task stays here.
To be given nothing more at all: mutirao profile set --availability none.`,
		Example:           `  mutirao task reject 3f9a procedure-1 --reason "no water left"`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			to, err := node.RejectTask(ctx,
				api.RejectRequest{ID: args[0], Task: workflow.TaskName(args[1]), Reason: reason})
			if err != nil {
				return err
			}
			return u.done(to, "task %s of %s is passed on to %s: %s", to.Task, args[0], to.Partner, to.Reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	return cmd
}
