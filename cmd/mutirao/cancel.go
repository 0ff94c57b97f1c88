package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newCancelCommand() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "cancel ID [--reason R] [--yes]",
		Short: "Cancel an instance",
		Long: `Cancels an instance everywhere: running tasks are called off, and nothing more is
started. Partners that cannot be reached now learn of it when they can. It cannot be
taken back: on a terminal the command asks first, and names the instance with its
workflow and whole ID. A program had better give the whole ID.`,
		Example: `  mutirao cancel 3f9a --reason "false alarm"
  mutirao cancel 3f9a0c21d4aa00112233445566778899 --yes`,
		Args: arguments("ID"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			id, what := whichInstance(ctx, node, args[0])
			if err := u.confirm(yes, "%s is cancelled everywhere, and nobody can take that back.", what); err != nil {
				return err
			}
			if err := node.Cancel(ctx, id, reason); err != nil {
				return err
			}
			return u.done(map[string]string{"id": id, "state": "cancelled"}, "%s is cancelled", id)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	addYesFlag(cmd, &yes)
	return cmd
}

// whichInstance is the whole ID of an instance, and what tells people which one it is.
// What cannot be taken back is asked, done and reported by the one ID: what a beginning
// of it means may change meanwhile.
func whichInstance(ctx context.Context, node shower, ref string) (id, what string) {
	in, err := node.Show(ctx, ref)
	if err != nil { // the command itself will say what is wrong
		return ref, ref
	}
	return in.ID, fmt.Sprintf("%s@%d %s, started %s,", in.Workflow, in.Version, in.ID, clock(in.Started))
}
