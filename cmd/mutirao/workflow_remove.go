package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "remove NAME [--yes]",
		Aliases: []string{"rm"},
		Short:   "Take a definition off the list, in all its editions",
		Long: `Takes all editions of a name off the list, so that nothing is started by it any more,
and says which they were. Instances that run keep theirs. NAME@3 takes off one version.
Only the partner who listed it may, the founder and delegates. On a terminal the command
asks first.`,
		Example: `  mutirao workflow remove fire-call
  mutirao workflow remove fire-call@2`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if u.asks(yes) {
				what, err := editions(ctx, node, args[0])
				if err != nil {
					return err
				}
				if err := u.confirm(yes, "%s: nothing is started by it any more, unless somebody adds it again.", what); err != nil {
					return err
				}
			}
			removed, err := node.RemoveWorkflow(ctx, args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, w := range removed {
				names = append(names, fmt.Sprintf("%s (%.10s)", edition(w), w.Hash))
			}
			return u.done(removed, "removed: %s", strings.Join(names, ", "))
		}),
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// editions names what a reference to a definition takes off the list: one edition, or all of a name.
func editions(ctx context.Context, node api.Service, ref string) (string, error) {
	one, err := node.Workflow(ctx, ref)
	if err != nil {
		return "", err
	}
	list, err := node.Workflows(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, w := range list {
		if w.Hash == one.Hash || w.Name == one.Name && ref == string(one.Name) {
			names = append(names, fmt.Sprintf("%s (%.10s)", edition(w), w.Hash))
		}
	}
	return "taken off the list: " + strings.Join(names, ", "), nil
}
