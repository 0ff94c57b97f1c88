package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newTaskAdoptCommand() *cobra.Command {
	var user userFlag
	cmd := &cobra.Command{
		Use:   "adopt ID RESULT [--user U]",
		Short: "Have a result count that is kept",
		Long: `Adopts the result of a person that came too late, or from somebody who had lost the
item, and is kept: it counts as a success of its task, and what waits for that goes on.
RESULT is its ID, or a beginning of it, as mutirao show says. A failure is not adopted,
nor anything of a task that is done (6).

That is for the user who answers for the instance, and for those who have the role that
its definition names under administrators; others are refused (5). The user signs it. Any
partner that takes part writes it down: the one that held the task may be gone for good.
--user says who adopts it, or else ` + userVariable + `; without either it is the one user who
is signed in here, or else this partner.`,
		Example: "  mutirao task adopt 3f9a 77c0d1\n  mutirao task adopt 3f9a 77c0d1 --user ana",
		Args:    arguments("ID", "RESULT"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			done, err := node.AdoptResult(ctx, api.AdoptRequest{User: user.who(), ID: args[0], Result: args[1]})
			if err != nil {
				return err
			}
			return u.done(done, "task %s of %s is done by that result", done.Task, done.ID)
		}),
	}
	user.add(cmd)
	return cmd
}
