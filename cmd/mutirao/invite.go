package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/skip2/go-qrcode"
	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newInviteCommand() *cobra.Command {
	var roles []string
	var expires string
	uses := 1
	var delegate bool
	var qr string
	cmd := &cobra.Command{
		Use:   "invite [--role R]... [--expires 24h] [--uses 1] [--delegate] [--qr FILE]",
		Short: "Make an invitation to join the mesh",
		Long: `Prints an invitation, and on a terminal with room for it also a QR code. Anybody who has
it can join with the roles it names, as often as it may be used, until it expires.
This node must be running when it is used, and be reachable for the newcomer or for
the member whom the invitation names besides.

--delegate lets the newcomer invite and evict members, too; only the founder can
give that right.`,
		Example: `  mutirao invite --role crew
  mutirao invite --role crew --uses 10 --expires 3d
  mutirao invite --qr invitation.png
  mutirao invite -o json`,
		Args:    arguments(),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return checkRoles(cmd, roles) },
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			within, err := workflow.ParseDuration(expires)
			if err != nil || within == 0 {
				return usagef("--expires %s: want a duration such as 15m, 24h or 3d, at most %s", expires,
					workflow.FormatDuration(workflow.MaxDuration))
			}
			inv, err := node.Invite(ctx,
				api.InviteRequest{Roles: roles, Expires: api.Span(within), Uses: uses, Delegate: delegate})
			if err != nil {
				return err
			}
			return u.writeInvitation(inv, qr)
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&roles, "role", nil, "a `role` of the newcomer; may be repeated")
	f.StringVar(&expires, "expires", "24h", "how `long` it can be used")
	f.Var(&whole{&uses, 1, invitation.MaxUses}, "uses", "how `often` it can be used")
	f.StringVar(&qr, "qr", "", "write its QR code into this new `file`, a PNG picture")
	f.BoolVar(&delegate, "delegate", false, "the newcomer may invite and evict, too; the founder only")
	return cmd
}

// codeOf is the QR code of an invitation, or of a sign-in token. In capitals, in which
// it may be read as well, it is smaller.
func codeOf(token string) (*qrcode.QRCode, error) {
	code, err := qrcode.New(strings.ToUpper(token), qrcode.Low)
	if err != nil {
		return nil, api.Errorf(api.Failed, "it is too long for a QR code").WithHint("send the text")
	}
	return code, nil
}

// drawCode draws a QR code on the terminal, if it has room for it; command is what
// makes the token, and with --qr a picture of it.
func (u *ui) drawCode(token, command string) {
	code, err := codeOf(token)
	if err != nil {
		u.note("%v: send the text", err)
		return
	}
	picture := code.ToSmallString(false)
	rows := strings.Split(strings.TrimRight(picture, "\n"), "\n")
	wide, high := utf8.RuneCountInString(rows[0]), len(rows)
	columns, lines, ok := window(u.err)
	if ok && (columns < wide || lines <= high) {
		u.note("A QR code of it needs a terminal of %d columns and %d lines; this one has %d and %d. As a picture: mutirao %s --qr FILE.png",
			wide, high+1, columns, lines, command)
		return
	}
	fmt.Fprint(u.err, picture)
}

// saveCode writes a QR code into a file that only this user can read: anybody who sees
// it can join, or sign in.
func saveCode(file, token string) error {
	code, err := codeOf(token)
	if err != nil {
		return err
	}
	png, err := code.PNG(-8) // 8 pixels for each of its squares
	if err != nil {
		return fmt.Errorf("draw the QR code: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the QR code: %w", err)
	}
	_, err = f.Write(png)
	return errors.Join(err, f.Close())
}

// writeInvitation prints an invitation; qr names a file for its QR code.
func (u *ui) writeInvitation(inv *api.Invitation, qr string) error {
	if err := u.writeSecret(inv, inv.Token, "invite", qr); err != nil || u.format != "text" {
		return err
	}
	u.note("It can be used %s until %s. The newcomer types:\n  mutirao join INVITATION --name NAME", times(inv.Uses),
		clock(inv.Expires))
	return nil
}

// writeSecret prints what somebody joins or signs in with, which the command makes, and
// its QR code: into the file qr or, on a terminal, beside it.
func (u *ui) writeSecret(v any, token, command, qr string) error {
	if err := u.result(v, func(w io.Writer) { fmt.Fprintln(w, token) }); err != nil {
		return err
	}
	if qr != "" {
		return saveCode(qr, token)
	}
	if u.format == "text" && u.terminal && u.progress {
		u.drawCode(token, command)
	}
	return nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
