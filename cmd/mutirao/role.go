package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newRoleCommand() *cobra.Command {
	return newGroup("role", "The roles of users", newRoleListCommand(), newRoleGrantCommand(), newRoleRevokeCommand())
}

func newRoleListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "The roles that users have, and who has each",
		Example: `  mutirao role list
  mutirao role list -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Roles(ctx)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("no user has a role; give one: mutirao role grant USER ROLE, or make a user with it: mutirao user add NAME --role ROLE")
			}
			return u.result(list, func(w io.Writer) {
				t := table{head: []string{"ROLE", "USERS"}}
				for _, r := range list {
					t.add(r.Role, strings.Join(r.Users, ", "))
				}
				t.write(u, w, "")
			})
		}),
	}
}

func newRoleGrantCommand() *cobra.Command {
	return newRoleChange("grant", "Give a user a role", api.Service.GrantRole)
}

func newRoleRevokeCommand() *cobra.Command {
	return newRoleChange("revoke", "Take a role away from a user", api.Service.RevokeRole)
}

// newRoleChange makes a command that changes a role of a user.
func newRoleChange(
	verb, short string, change func(api.Service, context.Context, api.RoleRequest) (*api.UserRoles, error),
) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " USER ROLE",
		Short: short,
		Long: short + `.
USER is a name or a whole ID. All nodes learn of it as they meet; of several changes that
were made side by side, the one that takes the role away counts. Where it is so already,
nothing is changed.

Only the founder and delegates do that, and not for a partner: its roles are those of its
certificate.`,
		Example:           "  mutirao role " + verb + " bia technician",
		Args:              arguments("USER", "ROLE"),
		ValidArgsFunction: completeUsers(func(x api.User) bool { return !x.Partner }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			now, err := change(node, ctx, api.RoleRequest{User: args[0], Role: args[1]})
			if err != nil {
				return err
			}
			if len(now.Roles) == 0 {
				return u.done(now, "%s has no role now", now.Name)
			}
			return u.done(now, "%s has the roles %s", now.Name, strings.Join(now.Roles, ", "))
		}),
	}
}
