package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/skip2/go-qrcode"
	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newInviteCommand() *cobra.Command {
	var roles []string
	var expires string
	var uses int
	var delegate bool
	cmd := &cobra.Command{
		Use:   "invite [--role R]... [--expires 24h] [--uses 1] [--delegate]",
		Short: "Make an invitation to join the mesh",
		Long: `Prints an invitation, and on a terminal also a QR code of it. Whoever has it can
join with the roles it names, as often as it may be used, until it expires. This
node must be running when it is used, and be reachable for the newcomer or for
the member whom the invitation names besides.

--delegate lets the newcomer invite and evict members, too; only the founder can
give that right.`,
		Example: `  mutirao invite --role crew
  mutirao invite --role crew --uses 10 --expires 3d
  mutirao invite -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			within, err := workflow.ParseDuration(expires)
			if err != nil || within == 0 {
				return usagef("--expires %s: want a duration such as 15m, 24h or 3d", expires)
			}
			if uses < 1 {
				return usagef("--uses %d: want 1 or more", uses)
			}
			inv, err := node.Invite(ctx, api.InviteRequest{Roles: roles, Expires: within, Uses: uses, Delegate: delegate})
			if err != nil {
				return err
			}
			return u.writeInvitation(inv)
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&roles, "role", nil, "a `role` of the newcomer; may be repeated")
	f.StringVar(&expires, "expires", "24h", "how `long` it can be used")
	f.IntVar(&uses, "uses", 1, "how `often` it can be used")
	f.BoolVar(&delegate, "delegate", false, "the newcomer may invite and evict, too; the founder only")
	return cmd
}

func (u *ui) writeInvitation(inv *api.Invitation) error {
	if err := u.result(inv, func(w io.Writer) { fmt.Fprintln(w, inv.Token) }); err != nil {
		return err
	}
	if u.format != "text" {
		return nil
	}
	if u.terminal && u.progress {
		// In capitals, which it may be read in as well, the code is smaller.
		code, err := qrcode.New(strings.ToUpper(inv.Token), qrcode.Low)
		if err != nil { // too long for a QR code: the text is the invitation
			u.note("it is too long for a QR code: send the text")
		} else {
			fmt.Fprint(u.err, code.ToSmallString(false))
		}
	}
	u.note("It can be used %s until %s. The newcomer types:\n  mutirao join INVITATION --name NAME", times(inv.Uses), clock(inv.Expires))
	return nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
