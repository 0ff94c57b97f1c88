package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// joinTime is how long joining may take, over the worst link.
const joinTime = 2 * time.Minute

func newJoinCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "join INVITATION --name PARTNER",
		Short: "° Join a mesh with an invitation",
		Long: `Makes the folder of a new node and joins the mesh that an invitation names. It
works when the partner who made the invitation can be reached, at one of the
addresses in it or by another member whom it names.`,
		Example: `  mutirao join INVITATION --name engine-7
  mutirao join INVITATION --name two --dir ./two`,
		Args: arguments("INVITATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name = workflow.UsualForm(name)
			if err := checkNames(map[string][]string{"name": {name}}); err != nil {
				return err
			}
			if _, err := invitation.ParseInvitation(args[0]); err != nil {
				return usagef("%v", err)
			}
			return join(cmd, uiOf(cmd), assemble.JoinOptions{Invitation: args[0], Name: name})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "this `partner`'s name")
	return cmd
}

func join(cmd *cobra.Command, u *ui, o assemble.JoinOptions) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), joinTime)
	defer cancel()
	if u.progress {
		u.note("asking to join …")
	}
	dir := nodeDir(cmd)
	j, err := assemble.Join(ctx, dir, o)
	if err != nil {
		return err
	}
	return u.writeMembership(membershipInfo{j.Mesh, j.Name, append([]string{}, j.Roles...), dir}, "joined")
}
