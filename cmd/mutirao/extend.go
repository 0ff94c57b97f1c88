package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newTaskExtendCommand() *cobra.Command {
	var user userFlag
	var by, to string
	cmd := &cobra.Command{
		Use:   "extend ID TASK (--by SPAN | --to TIME) [--user U]",
		Short: "Give a task a later deadline",
		Long: `Gives a task that is not done a later deadline, in place of the one that its definition
says. --by puts it off by so much; --to makes it a point in time. Whoever has the task,
and who answers for the instance, are warned by the new one; with so much time left as
transfer says the task passes on by it. Lists, show and the page have it at once, and a
device that is out of reach when it is back.

That is for the user who answers for the instance (mutirao show says who), and for
those who have the role that its definition names under administrators; others are
refused (5). The user signs the new deadline whole. The partner that holds the task
writes it down, so it must be reached: else the command says who that is (6). What is
not later than the deadline there is, is refused (6). --user says who extends it, or else
` + userVariable + `; without either it is the one user who is signed in here, or else this
partner.`,
		Example: `  mutirao task extend 3f9a visit --by 2h
  mutirao task extend 3f9a visit --to 2026-07-01T18:00:00-03:00 --user ana`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if (by == "") == (to == "") {
				return usagef("say until when: one of --by SPAN and --to TIME")
			}
			done, err := node.ExtendDeadline(ctx, api.ExtendRequest{
				User: user.who(), ID: args[0], Task: workflow.TaskName(args[1]), By: by, To: to,
			})
			if err != nil {
				return err
			}
			return u.done(done, "%s", extendedText(done))
		}),
	}
	cmd.Flags().StringVar(&by, "by", "", "how much `longer` there is, such as 2h or 3d")
	cmd.Flags().StringVar(&to, "to", "", "the `time` in place of the deadline there is, such as 2026-07-01T08:00:00Z")
	user.add(cmd)
	return cmd
}

// extendedText says which deadline a task has.
func extendedText(x *api.Extended) string {
	until := x.After + " after it can be done"
	if x.At != nil {
		until = x.At.Format(time.RFC3339)
	}
	text := fmt.Sprintf("the deadline of task %s of %s is %s", x.Task, x.ID, until)
	if x.Already {
		text += " already"
	}
	return text
}
