package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a definition off the list, in all its editions",
		Long: `Takes all editions of a name off the list, so that nothing is started by it any more,
and says which they were. Instances that run keep theirs. NAME@3 takes off one version.
Only the partner who listed it may, the founder and delegates.`,
		Example: `  mutirao workflow remove fire-call
  mutirao workflow remove fire-call@2`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			removed, err := node.RemoveWorkflow(ctx, args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, w := range removed {
				names = append(names, fmt.Sprintf("%s@%d (%.10s)", w.Name, w.Version, w.Hash))
			}
			return u.done(removed, "removed: %s", strings.Join(names, ", "))
		}),
	}
}
