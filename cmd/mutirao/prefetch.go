package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newPrefetchCommand() *cobra.Command {
	var user userFlag
	var atMost int64
	cmd := &cobra.Command{
		Use:   "prefetch on|off|status [--at-most KB] [--user U]",
		Short: "Have the files of items come before they are needed",
		Long: `Switches on or off that the files of items come to this node before they are needed: of
items that the user has and that may be done out of reach, locked ones first, and else in
the order of the list. Of items that the user has not taken no file comes: their content
is for whoever has them. It is off until switched on, for each user, also across
restarts, at all nodes at which the user is signed in; --at-most bounds how much of the
link it takes at each. Worklist disconnect fetches what is still missing of locked items
in any case, as fast as it can; and what a task reads that was given to this node itself
comes as soon as the task can begin here, whatever is set.` + forWhom,
		Example:   "  mutirao worklist prefetch on --at-most 200\n  mutirao worklist prefetch status --user bia\n  mutirao worklist prefetch off",
		Args:      arguments("on|off|status"),
		ValidArgs: []string{"on", "off", "status"},
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			var p *api.Prefetch
			var err error
			switch {
			case atMost < 0:
				return usagef("--at-most %d: want kilobytes a second, 0 (all that the link gives) or more", atMost)
			case args[0] == "status":
				p, err = node.Prefetch(ctx, user.who())
			case args[0] == "on", args[0] == "off":
				p, err = node.SetPrefetch(ctx,
					api.PrefetchRequest{User: user.who(), On: args[0] == "on", AtMost: atMost * 1000})
			default:
				return usagef("worklist prefetch %s: want on, off or status", args[0])
			}
			if err != nil {
				return err
			}
			return u.result(p, func(w io.Writer) { u.writePrefetch(w, p) })
		}),
	}
	cmd.Flags().Int64Var(&atMost, "at-most", 0, "`kilobytes` a second that may come; 0: all that the link gives")
	user.add(cmd)
	return cmd
}

func (u *ui) writePrefetch(w io.Writer, p *api.Prefetch) {
	switch {
	case !p.On:
		fmt.Fprintf(w, "off for %s\n", p.User)
		return
	case p.AtMost > 0:
		fmt.Fprintf(w, "on for %s, at most %s a second; still to come: %s\n", p.User, workflow.FormatSize(p.AtMost),
			workflow.FormatSize(p.Volume))
	default:
		fmt.Fprintf(w, "on for %s; still to come: %s\n", p.User, workflow.FormatSize(p.Volume))
	}
	if p.NoRoom > 0 {
		fmt.Fprintf(w, "this device lacks %s of room for that: make room on the disk of its folder or in its config.yaml (limits.files)\n",
			workflow.FormatSize(p.NoRoom))
	}
	for _, x := range p.Items {
		here := "not all here"
		if x.Prefetched {
			here = "all here"
		}
		fmt.Fprintf(w, "%s %s (%s): %s, %s\n", u.short(x.ID, 8), x.Task, x.State, workflow.FormatSize(x.Size), here)
	}
}
