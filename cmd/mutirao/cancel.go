package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newCancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel ID [--reason R]",
		Short: "Cancel an instance",
		Long: `Cancels an instance everywhere: running tasks are called off, and nothing more is
started. Partners that cannot be reached now learn of it when they can.`,
		Example: `  mutirao cancel 3f9a --reason "false alarm"`,
		Args:    arguments("ID"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := node.Cancel(ctx, args[0], reason); err != nil {
				return err
			}
			return u.done(map[string]string{"id": args[0], "state": "cancelled"}, "%s is cancelled", args[0])
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	return cmd
}
