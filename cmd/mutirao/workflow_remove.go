package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a definition off the list",
		Long: `Takes a definition off the list, so that it is no longer started by its name.
Instances that run keep theirs. NAME@3 takes off one version. Only the partner who
listed it may, the founder and delegates.`,
		Example: `  mutirao workflow remove fire-call
  mutirao workflow remove fire-call@2`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := node.RemoveWorkflow(ctx, args[0]); err != nil {
				return err
			}
			return u.done(map[string]string{"removed": args[0]}, "%s was removed", args[0])
		}),
	}
}
