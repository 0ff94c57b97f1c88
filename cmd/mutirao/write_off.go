package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWriteOffCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "write-off ID PARTNER [--yes]",
		Short: "Wait no longer for a partner before superseded work is undone",
		Long: `A finished execution that does not count is undone only when every participant is
known to know that. A partner that does not come back holds this up. Writing it
off says that nobody waits for it any more, in this one instance. If it comes
back and turns out to have built upon what was undone, that is shown as an
incident. Only the partner who began the instance may do it, on its own node.

A partner that was evicted from the mesh is written off by itself. It cannot be taken
back: on a terminal the command asks first, and names the instance with its workflow
and whole ID. With --yes, or where nobody sits at a terminal, ID must be the whole ID
(else 2). PARTNER is a name or a whole ID.`,
		Example: `  mutirao write-off 3f9a engine-7
  mutirao write-off 3f9a0c21d4aa00112233445566778899 engine-7 --yes`,
		Args: arguments("ID", "PARTNER"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			in, what, err := u.whichInstance(ctx, node, yes, args[0])
			if err != nil {
				return err
			}
			who, err := describePartner(ctx, node, args[1])
			if err != nil {
				return err
			}
			if u.asks(yes) { // what is refused anyway is not asked about
				if err := node.WriteOff(ctx, in.ID, args[1], true); err != nil {
					return err
				}
			}
			if err := u.confirm(yes, "%s waits no longer for %s, and nobody can take that back.", what, who); err != nil {
				return err
			}
			if err := node.WriteOff(ctx, in.ID, args[1], false); err != nil {
				return err
			}
			return u.done(map[string]string{"id": in.ID, "written_off": args[1]}, "%s waits no longer for %s", in.ID,
				args[1])
		}),
	}
	addYesFlag(cmd, &yes)
	return cmd
}
