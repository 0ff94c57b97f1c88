package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newAmendCommand() *cobra.Command {
	var user userFlag
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "amend ID FILE [--dry-run] [--yes] [--user U]",
		Short: "Change the definition by which an instance runs",
		Long: `Compares the definition in FILE with the one by which the instance runs, and that with
what the instance has done, as this node knows it: the parts that differ, as mutirao
workflow diff lists them, then what the instance cannot take of it, each with its reason,
and what has no effect on it and counts for instances that are started later, and what it
does at once with the change, by the data that there are. With --dry-run that is all.

In this version an instance takes new tasks, partitions and resources, and another
capacity; another place (partner, roles, needs) for a partition of which nobody has
begun a task; other rules (after, when), in and enabled of tasks that nobody has begun,
and the same tasks left out; on-failure; compensate; data and applications that are new,
and limits of data (enum, min, max); conditions, constraints over data, and final;
limits of time (timeout, time-to-wait), deadlines (deadline, warnings, transfer) and
retries, also where there were none; weights (priority, urgency, suitability, duration)
and words (version, label, doc). One that is driven by its data takes new triggers, and
other rules, applications, limits and compensations of those that there are. All else is
listed as not yet. A task that is not in FILE stays, as SKIPPED. A partition that is
new, or moves, goes to a partner that is found as at a start, and shown. Where something
is refused, or not yet possible, nothing is changed, and the exit status is 6. A clock
that runs for a task goes on: only its end is another. What was said before somebody
heard of it counts as it did.

The user who answers for the instance signs the change, or somebody with the role that
its definition names under administrators (else 5), also at a node that takes no part in
the instance, if ID is whole: it asks the partners that do, compares by itself, and the
change counts only where the definition is still the same (else 6). Whoever holds a task
goes by it from when it hears of it. Changes that were made side by side go together;
where both set one key, one of the two counts, the same everywhere, and mutirao show says
so.

On a terminal the command shows what differs and asks first; --yes skips that. An
instance can be amended again. FILE may be - for stdin.`,
		Example: `  mutirao amend 3f9a fire-call.yaml --dry-run
  mutirao amend 3f9a fire-call.yaml --user ana`,
		Args:              arguments("ID", "FILE"),
		ValidArgsFunction: completeInstances,
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := readSource(cmd.InOrStdin(), args[1])
			if err != nil {
				return err
			}
			if len(src) > workflow.MaxSource { // else the request would be refused, in words about requests
				_, err := workflow.Parse(filepath.ToSlash(args[1]), src)
				return api.Judge(api.Failed, err)
			}
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			r := api.AmendRequest{
				User: user.who(), ID: args[0], File: filepath.ToSlash(args[1]), Source: string(src),
			}
			return uiOf(cmd).amend(cmd.Context(), node, r, dry, yes)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what differs and what is refused, and change nothing")
	addYesFlag(cmd, &yes)
	user.add(cmd)
	return cmd
}

// amend changes an instance, or only says what that would do.
func (u *ui) amend(ctx context.Context, node amender, r api.AmendRequest, dry, yes bool) error {
	seen, err := node.ForeseeAmendment(ctx, r)
	if err != nil {
		return err
	}
	if dry || len(seen.Refused) > 0 || len(seen.NotYet) > 0 {
		return u.amendment(seen)
	}
	asks := len(seen.Changes) > 0 && u.asks(yes)
	if asks {
		for _, l := range seen.Lines {
			u.note("%s", oneLine(l))
		}
		u.atOnce(seen.AtOnce)
		if err := u.confirm(yes, "%s@%d %s is changed so.", seen.Workflow, seen.Version, seen.ID); err != nil {
			return err
		}
	}
	r.ID = seen.ID
	done, err := node.AmendInstance(ctx, r)
	if err != nil {
		return err
	}
	for _, f := range seen.NoEffect {
		u.note("no effect: %s", oneLine(f.Line))
	}
	if !asks { // else it was said before
		u.atOnce(done.AtOnce)
	}
	u.unheard(done)
	return u.done(done, "%s", u.amendedText(done))
}

// atOnce says what an instance does at once with a change.
func (u *ui) atOnce(list []api.ChangeFinding) {
	for _, f := range list {
		u.note("at once: %s", oneLine(f.Line))
	}
}

// unheard says that whoever keeps the data states of an instance does not know yet of a change.
func (u *ui) unheard(x *api.Amended) {
	if x.Unheard != "" {
		u.note("not yet: %s keeps its data states, and cannot be reached now; they go by the change once it has heard of it, "+
			"and not at all if a final state ends them before", oneLine(x.Unheard))
	}
}

func (u *ui) amendedText(x *api.Amended) string {
	if x.Already {
		return u.id(x.ID) + " runs by that already: nothing has changed"
	}
	return u.id(x.ID) + " is amended: " + oneLine(strings.Join(x.Lines, "; "))
}

// amender is what amending asks of a node.
type amender interface {
	ForeseeAmendment(ctx context.Context, r api.AmendRequest) (*api.Amendment, error)
	AmendInstance(ctx context.Context, r api.AmendRequest) (*api.Amended, error)
	Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error)
}

// amendment tells what an instance would do with a changed definition.
func (u *ui) amendment(a *api.Amendment) error {
	if len(a.Changes) == 0 {
		u.note("%s runs by what means the same: there is nothing to change", u.id(a.ID))
	}
	err := u.result(a, func(w io.Writer) { writeAmendment(w, a) })
	n := len(a.Refused) + len(a.NotYet)
	if err != nil || n == 0 {
		return err
	}
	hint := "change the file there, and try again; instances that are started later can run by it as it is"
	if a.Ended {
		hint = "instances that are started later can run by the file as it is: mutirao workflow add FILE"
	}
	return &exitError{
		status: api.Refused.Exit(),
		message: fmt.Sprintf("%s cannot be changed so: %s, nothing is changed", u.id(a.ID),
			plural(n, "change")+" cannot be made"),
		hint: hint,
	}
}

// writeAmendment tells people what differs, and what the instance does with that.
func writeAmendment(w io.Writer, a *api.Amendment) {
	writeChanges(w, a.Lines)
	for _, x := range []struct {
		what string
		list []api.ChangeFinding
	}{{"refused", a.Refused}, {"not yet", a.NotYet}, {"no effect", a.NoEffect}, {"at once", a.AtOnce}} {
		for _, f := range x.list {
			fmt.Fprintln(w, oneLine(x.what+": "+f.Line))
		}
	}
}
