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
taken back: on a terminal the command asks first.`,
		Example: `  mutirao cancel 3f9a --reason "false alarm"`,
		Args:    arguments("ID"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := u.confirm(yes, "%s is cancelled everywhere, and nobody can take that back.", describeInstance(ctx, node, args[0])); err != nil {
				return err
			}
			if err := node.Cancel(ctx, args[0], reason); err != nil {
				return err
			}
			return u.done(map[string]string{"id": args[0], "state": "cancelled"}, "%s is cancelled", args[0])
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	addYesFlag(cmd, &yes)
	return cmd
}

// describeInstance is an instance with what tells people which one it is.
func describeInstance(ctx context.Context, node shower, ref string) string {
	in, err := node.Show(ctx, ref)
	if err != nil { // the command itself will say what is wrong
		return ref
	}
	return fmt.Sprintf("%s@%d %s, started %s,", in.Workflow, in.Version, in.ID, clock(in.Started))
}
