package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxAdopt is how many results are named under an outbox with how they are adopted.
const maxAdopt = 10

func newOutboxCommand() *cobra.Command {
	var user userFlag
	cmd := &cobra.Command{
		Use:   "outbox [--user U]",
		Short: "What was done here that nobody else has acknowledged yet",
		Long: `Lists what was done at this node and nobody else has acknowledged. Of locked items of
another partner: what users did while it was out of reach. It is on this node's disk, and
handed in by itself as soon as that partner can be reached; then it leaves the list. What
was made from something that does not count yet stays until that does. What
the partner did not take, or what does not count, stays with the reason until its user
drops it, or mends it: hands it in once more while the item is still the user's. Of tasks
that this node holds: what counts here already, but is known to no other partner that
takes part; any of them takes it, as soon as it can be reached. Where no other partner
takes part it is only here, and listed until the instance has ended. Of a file that was
handed in with a result: while no other partner that may read it has fetched it, so that
it is only here, also when the instance has ended.

Of what does not count and is kept by the partner, standard error has the command by
which who decides about the instance adopts it, to be copied.

--user, or else ` + userVariable + `, leaves what one user did. Without either it is what
was done at this node, whoever did it.`,
		Example: `  mutirao outbox
  mutirao outbox -v          with what was set
  mutirao outbox --user bia
  mutirao outbox -o json
  mutirao outbox drop 5e0c91aa77d3b204`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Outbox(ctx, user.who())
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("nothing waits to be handed in or acknowledged; what is to be done: mutirao worklist")
			}
			refused := false
			err = u.result(list, func(w io.Writer) {
				t := table{head: []string{"TASK", "INSTANCE", "USER", "WHAT", "SINCE", "WAITS FOR"}}
				for _, x := range list {
					waits := u.waitsFor(x)
					refused = refused || x.Refused != ""
					what := x.What
					if u.verbose {
						what += outputsOf(x)
					}
					t.add(workflow.WithLabel(x.Task, x.Label), u.id(x.Instance), x.User, what, clock(x.Since), waits)
				}
				t.write(u, w, "")
			})
			u.noteAdoptable(list)
			if slices.ContainsFunc(list, func(x api.Undelivered) bool { return x.NoMember != "" }) {
				u.note("what waits is on this device alone, and goes with its folder: mutirao outbox -v or -o json has what was set")
			}
			if refused {
				u.note("what was handed in, and refused: mutirao outbox -v; it stays until mutirao outbox drop ID")
			}
			return err
		}),
	}
	user.add(cmd)
	cmd.AddCommand(newOutboxDropCommand())
	return cmd
}

// noteAdoptable says of results that do not count, and are kept, how those who decide may adopt them.
func (u *ui) noteAdoptable(list []api.Undelivered) {
	list = slices.DeleteFunc(slices.Clone(list), func(x api.Undelivered) bool { return x.Result == "" })
	for _, x := range list[:min(len(list), maxAdopt)] {
		u.note("%s of %s may still count, if who decides about the instance adopts it: mutirao task adopt %s %s",
			oneLine(workflow.WithLabel(x.Task, x.Label)), oneLine(x.User), x.Instance, x.Result)
	}
	if more := len(list) - maxAdopt; more > 0 {
		u.note("and %d more: mutirao outbox -o json has the result of each", more)
	}
}

// waitsFor says for whom it waits that something is handed in or fetched, or why it waits no longer.
func (u *ui) waitsFor(x api.Undelivered) string {
	switch {
	case x.Refused != "":
		return "refused: " + x.Refused + " (" + x.ID + ")" // whole, as drop wants it where nobody is asked
	case x.NoMember != "":
		return "nobody takes it, as this device is no member any more: " + x.NoMember
	case x.Alone && x.File != "":
		return "nobody: no other partner that takes part may read it, so it is only here"
	case x.File != "":
		return strings.Join(x.WaitsFor, " or ") + ": it is only here until fetched"
	case x.Alone:
		return "nobody: no other partner takes part, so it is only here"
	case len(x.Redo) > 0:
		return strings.Join(x.WaitsFor, ", ") + " has it; it does not count, as what it was made from was refused. Do that once more, " +
			"and then this: " + withLabels(x.Redo, x.TaskLabels)
	case len(x.Awaits) > 0:
		return strings.Join(x.WaitsFor, ", ") + " has it; it counts when this has: " + withLabels(x.Awaits, x.TaskLabels)
	}
	return strings.Join(x.WaitsFor, ", ")
}

func newOutboxDropCommand() *cobra.Command {
	var user userFlag
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop ID [--user U] [--yes]",
		Short: "Drop a refused result from the outbox",
		Long: `Drops a result from the outbox that was refused; mutirao outbox shows its ID in brackets.
What a partner did not keep is nowhere else. What still waits cannot be dropped: it may
count.

It cannot be taken back: on a terminal the command asks first, and says what was done.
With --yes, or where nobody sits at a terminal, ID must be whole (else 2). With --user,
or else ` + userVariable + `, it is refused if another user did that (3).`,
		Example: `  mutirao outbox drop 5e0c91aa77d3b204`,
		Args:    arguments("ID"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			id, err := u.askToDrop(ctx, node, user.who(), yes, strings.ToLower(strings.TrimSpace(args[0])))
			if err != nil {
				return err
			}
			x, err := node.DropRefused(ctx, api.DropRequest{User: user.who(), ID: id})
			if err != nil {
				return err
			}
			return u.done(x, "what %s did of %s is dropped", x.User, workflow.WithLabel(x.Task, x.Label))
		}),
	}
	user.add(cmd)
	addYesFlag(cmd, &yes)
	return cmd
}

// wholeRefused is how many digits the ID of a refused result has.
const wholeRefused = 16

// askToDrop asks whether a refused result is to be dropped, and gives its whole ID. What is refused anyway is not asked
// about.
func (u *ui) askToDrop(ctx context.Context, node api.Service, user string, yes bool, ref string) (string, error) {
	list, err := node.Outbox(ctx, user)
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(x api.Undelivered) bool {
		return x.ID == "" || ref == "" || !strings.HasPrefix(x.ID, ref)
	})
	switch {
	case len(list) == 0:
		return "", api.Errorf(api.NotFound, "there is no refused result %q in the outbox", ref).
			WithHint("mutirao outbox shows them; what still waits cannot be dropped, as it may count")
	case !u.asks(yes) && len(ref) < wholeRefused:
		return "", api.Errorf(api.Invalid,
			"%q is only the beginning of an ID, and nobody is asked whether it is the right one: want the whole ID", ref).
			WithHint("if you mean that of %s type %s", list[0].Task, list[0].ID)
	case len(list) > 1:
		return "", api.Errorf(api.Invalid, "%d refused results begin with %s: give more of it", len(list), ref)
	}
	x := list[0]
	return x.ID, u.confirm(yes,
		"What %s did of %s at %s is dropped, and nobody can take that back: %s%s.\nIt was refused: %s",
		x.User, workflow.WithLabel(x.Task, x.Label), clock(x.Since), x.What, outputsOf(x), x.Refused)
}

// outputsOf are the data that somebody handed in, as part of a sentence.
func outputsOf(x api.Undelivered) (out string) {
	for i, n := range slices.Sorted(maps.Keys(x.Outputs)) {
		out += []string{", ", " with "}[1-min(i, 1)] + oneLine(n) + " = " + oneLine(x.Outputs[n])
	}
	return out
}
