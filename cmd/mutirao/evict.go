package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newEvictCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "evict PARTNER [--reason TEXT]",
		Short: "Remove a member from the mesh for good",
		Long: `Removes a member: its connections are cut, every node refuses it from the moment
it hears of the eviction, and its unfinished work counts as failed. It cannot be
taken back; the same person joins again with a fresh folder and an invitation.

Only the founder and delegates evict, and only the founder evicts a delegate. The
certificates that an evicted delegate issued stay good if the founder's node lists
their owners; all others become void.`,
		Example: `  mutirao evict engine-7
  mutirao evict engine-7 --reason "stolen on Tuesday"`,
		Args: arguments("PARTNER"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			e, err := node.Evict(ctx, api.EvictRequest{Partner: args[0], Reason: reason})
			if err != nil {
				return err
			}
			if err := u.done(e, "%s is evicted", e.Name); err != nil {
				return err
			}
			votes, err := node.Electorate(ctx)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(votes.Voters, func(v api.Voter) bool { return v.ID == e.ID }) {
				u.note("%s still counts among those who may vote: set another list with mutirao coordinator electorate --set …", e.Name)
			}
			if len(e.Voided) > 0 {
				u.note("with it, void certificates: %s. They need a new invitation", strings.Join(e.Voided, ", "))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that everybody sees")
	return cmd
}
