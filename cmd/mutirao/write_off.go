package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWriteOffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "write-off ID PARTNER",
		Short: "Wait no longer for a partner before superseded work is undone",
		Long: `A finished execution that does not count is undone only when every participant is
known to know that. A partner that does not come back holds this up. Writing it
off says that nobody waits for it any more, in this one instance. If it comes
back and turns out to have built upon what was undone, that is shown as an
incident.

A partner that was evicted from the mesh is written off by itself.`,
		Example: `  mutirao write-off 3f9a engine-7`,
		Args:    arguments("ID", "PARTNER"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := node.WriteOff(ctx, args[0], args[1]); err != nil {
				return err
			}
			return u.done(map[string]string{"id": args[0], "written_off": args[1]}, "%s waits no longer for %s", args[0], args[1])
		}),
	}
}
