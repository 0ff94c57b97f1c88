package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newNotifyCommand() *cobra.Command {
	var user userFlag
	cmd := &cobra.Command{
		Use:   "notify ID POLICY [N]",
		Short: "Change whom the items of an instance are offered to",
		Long: `Changes by which policy the tasks of people of an instance are offered, from now on:
all, to all who have the role; fewest-assigned N, to those N of them who were offered
fewest items and have not taken them; fewest-selected N, who have fewest; and
latest-connected N, who came last. The partner that holds a task chooses among those who
are here, as it sees them: it counts what they have, or were offered, in the whole mesh,
as it knows it by its own instances and by what other partners tell it now and then of
the items that they hold. Whoever comes later is offered it then, until somebody takes
it. What nobody has taken is offered anew; whoever has an item keeps it. To whom an
item is not offered, it is not in the worklist and cannot be taken; but who answers for
the instance sees it if it is for a role of theirs.

That is for the user who answers for the instance (mutirao show says who), and for
those who have the role that its definition names under administrators; others are
refused (5). Whoever holds a task goes by it from when it hears of it. --user says who
changes it, or else ` + userVariable + `; without either it is the one user who is signed in
here, or else this partner.`,
		Example: `  mutirao notify 3f9a fewest-assigned 2
  mutirao notify 3f9a all --user ana`,
		Args:              argumentsFrom(2, "ID", "POLICY", "N"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			done, err := node.ChangeNotify(ctx,
				api.NotifyRequest{User: user.who(), ID: args[0], Policy: strings.Join(args[1:], " ")})
			if err != nil {
				return err
			}
			return u.done(done, "%s", notifiedText(done))
		}),
	}
	user.add(cmd)
	return cmd
}

// notifiedText says whom items are offered to.
func notifiedText(x *api.Notified) string {
	text := fmt.Sprintf("the items of %s are offered by the policy %s from now on", x.ID, x.Policy)
	if x.Already {
		text = fmt.Sprintf("the items of %s are offered by the policy %s already", x.ID, x.Policy)
	}
	return text
}
