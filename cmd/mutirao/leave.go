package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newLeaveCommand() *cobra.Command {
	var forGood, yes bool
	cmd := &cobra.Command{
		Use:   "leave [--for-good [--yes]]",
		Short: "Give this node's work on, and go",
		Long: `Gives on what this node holds and has not begun, to partners that can be reached,
and says what stays: what has begun, and what nobody takes. If nothing stays the node
goes at once, and partners show it as left; else it takes nothing new on, and goes
when what stays is done. Stopping it before (SIGTERM) leaves that to be judged when its
connection time has run out. Starting it again takes all that back: it is a partner as
before.

What waits in the outbox (mutirao outbox) is said, and how many results there were refused
and are kept by nobody else: it is on this device alone.

With --for-good it cannot come back: its key and certificate are worth nothing any
more, its name is free, and "mutirao up" refuses its folder (6). On a terminal the
command asks first. The founder does not leave for good, and a voter only after the
electorate was set without it (6).

Only to restart or upgrade, just stop the node and start it again: partners keep its
work for it as long as its connection time.`,
		Example: `  mutirao leave
  mutirao leave --for-good
  mutirao leave -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			may, err := node.Leave(ctx, api.LeaveRequest{ForGood: forGood, Check: true})
			if err != nil {
				return err // what is refused anyway is not asked about
			}
			left, err := inOutbox(ctx, node, forGood)
			if err != nil {
				return err
			}
			if left != "" {
				u.note("%s", left)
			}
			if may.Kept > 0 {
				u.note("%s", keptAlone(may.Kept, forGood))
			}
			if forGood && u.asks(yes) {
				if err := u.confirm(yes,
					"This node leaves its mesh for good: it cannot come back, and nobody can take that back."); err != nil {
					return err
				}
			}
			l, err := node.Leave(ctx, api.LeaveRequest{ForGood: forGood})
			if err != nil {
				return err
			}
			if err := u.result(l, func(w io.Writer) { u.writeLeaving(w, l) }); err != nil {
				return err
			}
			switch {
			case !l.Left && l.ForGood:
				u.note("the node takes nothing new on, and leaves for good when what stays is done; to take that back before, restart it")
			case !l.Left:
				u.note("the node takes nothing new on, and goes when what stays is done; to take that back, restart it")
			case l.ForGood:
				u.note("left for good")
			default:
				u.note("left in good order; to come back: mutirao up")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&forGood, "for-good", false, "never to come back")
	addYesFlag(cmd, &yes)
	return cmd
}

// inOutbox says what becomes of what waits in a node's outbox when it leaves; empty: nothing waits there.
func inOutbox(ctx context.Context, node api.Service, forGood bool) (string, error) {
	list, err := node.Outbox(ctx, "")
	list = slices.DeleteFunc(slices.Clone(list), func(x api.Undelivered) bool { return x.Refused != "" })
	if err != nil || len(list) == 0 {
		return "", err
	}
	what := "1 thing in the outbox of this node, which no other is known to have,"
	if len(list) > 1 {
		what = fmt.Sprintf("%d things in the outbox of this node, which no other is known to have,", len(list))
	}
	if forGood {
		return what + " can be lost when it has left for good: see mutirao outbox", nil
	}
	return what + " can be handed in only from its folder: keep it; see mutirao outbox", nil
}

// keptAlone says what becomes of so many results that were refused and that only a node which leaves has.
func keptAlone(n int, forGood bool) string {
	what := plural(n, "refused result") + " in the outbox of this node, which nobody else has,"
	if forGood {
		return what + " can be read no more when it has left for good: see mutirao outbox -v"
	}
	return what + " can be read only from its folder: keep it; see mutirao outbox -v"
}

// writeLeaving says what became of the work of a node that leaves, a task a line.
func (u *ui) writeLeaving(w io.Writer, l *api.Leaving) {
	for _, g := range l.Given {
		fmt.Fprintf(w, "given on  %s of %s %s to %s: %s\n", g.Task, g.Workflow, u.id(g.Instance), g.Partner, g.Reason)
	}
	for _, s := range l.Stays {
		what := "instance"
		if s.Task != "" {
			what = fmt.Sprintf("%s (%s)", s.Task, s.State)
		}
		fmt.Fprintf(w, "stays     %s of %s %s: %s\n", what, orDash(string(s.Workflow)), u.id(s.Instance), s.Reason)
	}
}
