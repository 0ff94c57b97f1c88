package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newTaskCommand() *cobra.Command {
	return newGroup("task", "Begin, complete, fail or reject a task", newTaskStartCommand(), newTaskCompleteCommand(), newTaskFailCommand(), newTaskRejectCommand())
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
			return u.done(map[string]string{"id": args[0], "task": args[1], "state": "running"}, "task %s of %s runs", args[1], args[0])
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
				err = given.give(ctx, node, values)
			}
			if err != nil {
				return err
			}
			return finish(ctx, u, node, api.FinishRequest{ID: args[0], Task: workflow.TaskName(args[1]), Outputs: values})
		}),
	}
	cmd.Flags().StringArrayVar(&outputs, "output", nil, "a result, `NAME=VALUE`; may be repeated")
	given.add(cmd, "a result that is a file")
	addFormatFlag(cmd.Flags(), "output-format")
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
			return finish(ctx, u, node, api.FinishRequest{ID: args[0], Task: workflow.TaskName(args[1]), Failed: true, Reason: reason})
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	return cmd
}

// finisher is a node that finishes tasks.
type finisher interface {
	FinishTask(ctx context.Context, r api.FinishRequest) error
}

func finish(ctx context.Context, u *ui, node finisher, r api.FinishRequest) error {
	if err := node.FinishTask(ctx, r); err != nil {
		return err
	}
	state := "completed"
	if r.Failed {
		state = "failed"
	}
	return u.done(map[string]string{"id": r.ID, "task": string(r.Task), "state": state}, "task %s of %s is %s", r.Task, r.ID, state)
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
			to, err := node.RejectTask(ctx, api.RejectRequest{ID: args[0], Task: workflow.TaskName(args[1]), Reason: reason})
			if err != nil {
				return err
			}
			return u.done(to, "task %s of %s is passed on to %s: %s", to.Task, args[0], to.Partner, to.Reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	return cmd
}
