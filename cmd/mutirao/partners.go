package main

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newPartnersCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "partners [--watch]",
		Short: "Who is in the mesh, and who can be reached",
		Long: `The partner list as this node sees it. A partner is active, unreachable (no
answer for seconds, or it said that it goes down), expired (not validated within its
connection time: its unfinished work counts as failed), left, or evicted; WHY says
why, and since when. This node is marked *. With -v also how often this node refused
what a partner sent, by reason; doctor says what to do about it.`,
		Example: `  mutirao partners
  mutirao partners --watch
  mutirao partners -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			return u.show(ctx, node, watch, func() (document, error) {
				list, err := node.Partners(ctx)
				return document{v: list, text: func(w io.Writer) { u.writePartners(w, list, watch) }, more: true}, err
			})
		}),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing the list as it changes")
	return cmd
}

// writePartners prints the list. While watching, a moment is printed instead
// of an age, which would change all the time.
func (u *ui) writePartners(w io.Writer, list []api.Partner, watched bool) {
	t := table{head: []string{"NAME", "STATE", "ROLES", "VALIDATED", "LOAD", "ID", "WHY"}, states: 2}
	if u.verbose {
		t.head = append(t.head, "CONNECTION-TIME", "FILES", "REFUSED", "ADDRESSES")
	}
	for _, p := range list {
		name, validated := p.Name, ago(time.Now(), p.LastValidated)
		if p.Self {
			name, validated = name+" *", "-"
		} else if watched {
			validated = clock(p.LastValidated)
		}
		row := []string{
			name, p.State, orDash(strings.Join(p.Roles, ",")), validated, strconv.FormatFloat(p.Load, 'f', 2, 64),
			u.partnerID(p.ID), why(p, watched),
		}
		if u.verbose {
			files := ""
			if p.FilesRate > 0 {
				files = workflow.FormatSize(p.FilesRate) + "/s"
			}
			row = append(row, span(p.ConnectionTime), orDash(files), orDash(refusals(p.Refused)), strings.Join(p.Addresses, " "))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}

// why says why a partner is in its state, and since when.
func why(p api.Partner, watched bool) string {
	text := p.Reason
	if p.Remark != "" {
		text += ": " + oneLine(p.Remark)
	}
	switch {
	case text == "" || p.Since == nil || p.State == string(membership.Active):
		return orDash(text)
	case watched:
		text += ", since " + clock(*p.Since)
	default:
		text += ", " + ago(time.Now(), *p.Since)
	}
	if p.Until != nil && p.State == string(membership.Unreachable) {
		text += ", back by about " + clock(*p.Until)
	}
	return text
}

// refusals says what was refused of a partner, e.g. "facts-forged 3, look 1".
func refusals(list []api.Refusal) string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Reason + " " + strconv.FormatUint(r.Times, 10)
	}
	return strings.Join(out, ", ")
}
