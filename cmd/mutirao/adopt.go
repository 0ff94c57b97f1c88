package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newTaskAdoptCommand() *cobra.Command {
	var user userFlag
	var yes bool
	cmd := &cobra.Command{
		Use:   "adopt ID RESULT [--user U] [--yes]",
		Short: "Have a result count that is kept",
		Long: `Adopts the result of a person that came too late, or from somebody who had lost the
item, and is kept: it counts as a success of its task, and what waits for that goes on.
RESULT is its ID, as mutirao show says. A failure is not adopted, nor anything of a task
that is done (6).

That is for the user who answers for the instance, and for those who have the role that
its definition names under administrators; others are refused (5). The user signs it. Any
partner that takes part writes it down: the one that held the task may be gone for good.
--user says who adopts it, or else ` + userVariable + `; without either it is the one user who
is signed in here, or else this partner.

It cannot be taken back: on a terminal the command asks first, and names the instance
and the result. With --yes, or where nobody sits at a terminal, ID and RESULT must be
whole (else 2).`,
		Example: "  mutirao task adopt 3f9a 77c0d1\n  mutirao task adopt 3f9a 77c0d1 --user ana",
		Args:    arguments("ID", "RESULT"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			in, result, err := u.askToAdopt(ctx, node, yes, args[0], strings.ToLower(strings.TrimSpace(args[1])))
			if err != nil {
				return err
			}
			done, err := node.AdoptResult(ctx, api.AdoptRequest{User: user.who(), ID: in.ID, Result: result})
			if err != nil {
				return err
			}
			return u.done(done, "task %s of %s is done by that result", done.Task, done.ID)
		}),
	}
	user.add(cmd)
	addYesFlag(cmd, &yes)
	return cmd
}

// wholeResult is how many digits the ID of a result has.
const wholeResult = 64

// askToAdopt asks whether a result is to count, and gives its whole ID. What is refused anyway is not asked about.
func (u *ui) askToAdopt(ctx context.Context, node shower, yes bool, ref, result string) (*api.Instance, string, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil {
		return nil, "", err
	}
	var found []api.Incident
	for _, i := range in.Incidents {
		if i.Result != "" && result != "" && strings.HasPrefix(i.Result, result) {
			found = append(found, i)
		}
	}
	unknown := api.Errorf(api.NotFound, "no such result is kept here: %q", result).
		WithHint("mutirao show %s lists the results that are kept", u.id(in.ID))
	if !u.asks(yes) {
		switch {
		case len(result) == wholeResult: // the node says what is wrong with it
			return in, result, nil
		case len(found) == 0:
			return nil, "", unknown
		}
		err := api.Errorf(api.Invalid, "%q is only the beginning of an ID, and nobody is asked whether it is the right one: want the whole ID", result)
		return nil, "", err.WithHint("if you mean that of %s type %s", found[0].Task, found[0].Result)
	}
	found = slices.CompactFunc(found, func(a, b api.Incident) bool { return a.Result == b.Result })
	switch {
	case len(found) == 0 && len(in.Tasks) == 0 && len(result) == wholeResult: // the instance is not here
		return in, result, u.confirm(yes, "%s the result %s counts from now on, and nobody can take that back.", what,
			result)
	case len(found) == 0:
		return nil, "", unknown
	case len(found) > 1:
		return nil, "", api.Errorf(api.Invalid, "%d results that are kept begin with %s: give more of it", len(found),
			result)
	case len(found[0].Commands) == 0:
		return nil, "", api.Errorf(api.Refused, "it cannot be adopted: %s", found[0].What)
	}
	return in, found[0].Result, u.confirm(yes,
		"%s %s: it counts from now on as the result of task %s, and nobody can take that back.",
		what, found[0].What, found[0].Task)
}
