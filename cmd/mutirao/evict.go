package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newEvictCommand() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use:   "evict PARTNER [--reason TEXT] [--yes]",
		Short: "Remove a member from the mesh for good",
		Long: `Removes a member: its connections are cut, every node refuses it from the moment
it hears of the eviction, and its unfinished work counts as failed. It cannot be
taken back; the same person joins again with a fresh folder and an invitation.
PARTNER is a name or a whole ID. On a terminal the command asks first. Who joined by an
invitation of this node and was never up can be evicted, too, at this node.

Only the founder and delegates evict, and only the founder evicts a delegate. The
certificates that an evicted delegate issued stay good if the founder's node lists
their owners; all others become void.`,
		Example: `  mutirao evict engine-7
  mutirao evict engine-7 --reason "stolen on Tuesday"`,
		Args:              arguments("PARTNER"),
		ValidArgsFunction: completePartners,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			who, err := describePartner(ctx, node, args[0])
			if errorCode(err) == api.NotFound {
				who = describeUnseen(ctx, node, args[0])
			}
			if err != nil && who == "" {
				return err
			}
			if err := u.confirm(yes, "%s is removed from the mesh for good: its unfinished work fails, and nobody can take that back.", who); err != nil {
				return err
			}
			e, err := node.Evict(ctx, api.EvictRequest{Partner: args[0], Reason: reason})
			if err != nil {
				return err
			}
			text := "%s is evicted"
			if e.Already {
				text = "%s was evicted before: nothing has changed"
			}
			if err := u.done(e, text, e.Name); err != nil {
				return err
			}
			votes, err := node.Electorate(ctx)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(votes.Voters, func(v api.Voter) bool { return v.ID == e.ID }) {
				u.note("%s", stillVotes(e, votes))
			}
			if len(e.Voided) > 0 {
				u.note("with it, void certificates: %s. They need a new invitation", strings.Join(e.Voided, ", "))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that everybody sees")
	addYesFlag(cmd, &yes)
	return cmd
}

// stillVotes says what to do about an evicted partner that is among those who may vote.
func stillVotes(e *api.Evicted, votes *api.Electorate) string {
	var others []string
	left := 0 // voters that can still consent to another list
	for _, v := range votes.Voters {
		if v.ID != e.ID && v.State != "evicted" {
			others = append(others, v.Name)
		}
		if v.ID != e.ID && v.Current {
			left++
		}
	}
	set := "mutirao coordinator electorate --set " + cmp.Or(strings.Join(others, ","), "…")
	if left < votes.Majority {
		return fmt.Sprintf("%s still counts among those who may vote, and of the others too few are left for a majority (%d, %d are needed): the founder sets another list with %s --override",
			e.Name, left, votes.Majority, set)
	}
	return fmt.Sprintf("%s still counts among those who may vote: set another list with %s", e.Name, set)
}

// describeUnseen is a partner who joined and was never seen, so that no list has it; empty: nobody is meant, or it may
// not be evicted.
func describeUnseen(ctx context.Context, node api.Service, ref string) string {
	e, err := node.Evict(ctx, api.EvictRequest{Partner: ref, Check: true})
	if err != nil || !e.Unseen {
		return ""
	}
	return fmt.Sprintf("%s (%s, who joined and was never seen here)", e.Name, e.ID)
}

// lister is a node that lists partners.
type lister interface {
	Partners(ctx context.Context) ([]api.Partner, error)
}

// onlyBeginning refuses to do what cannot be taken back to somebody who is named by the beginning of an ID: that
// is too easily somebody else's.
func onlyBeginning(ref string) *api.Error {
	return api.Errorf(api.Invalid, "%q has only the beginning of an ID: want a name or a whole ID", ref)
}

// describePartner is a partner with what tells it from others of its name. Nobody is asked
// about one that is not there.
func describePartner(ctx context.Context, node lister, ref string) (string, error) {
	list, err := node.Partners(ctx)
	if err != nil {
		return "", err
	}
	ref = workflow.UsualForm(ref)
	var begun []api.Partner // whose ID begins so
	there := false
	for _, p := range list {
		name := unmarked(p.Name)
		there = there || string(p.ID) == ref || name == ref || strings.HasPrefix(ref, name+" (")
		if strings.HasPrefix(string(p.ID), ref) ||
			strings.HasPrefix(strings.TrimPrefix(string(p.ID), workflow.CommonID), ref) {
			begun = append(begun, p)
		}
		if p.Name == ref && name != ref {
			return "", onlyBeginning(ref).WithHint("if you mean %s, type %s", p.Name, p.ID)
		}
	}
	found := meant(list, ref)
	switch {
	case !there && len(begun) > 0 && ref != "":
		if len(begun) > 1 {
			return "", onlyBeginning(ref)
		}
		return "", onlyBeginning(ref).WithHint("if you mean %s, type %s", begun[0].Name, begun[0].ID)
	case !there || ref == "":
		return "", noPartner(list, ref)
	case len(found) != 1: // the command itself will say what is wrong
		return ref, nil
	}
	p := found[0]
	return fmt.Sprintf("%s (%s, roles %s, %s)", unmarked(p.Name), p.ID, orDash(strings.Join(p.Roles, ", ")), p.State), nil
}

// unmarked is a partner's name without the beginning of its ID, which it has where another listed partner has the same
// name, or one that looks the same.
func unmarked(name string) string {
	name, _, _ = strings.Cut(name, " (")
	return name
}

// noPartner says that nobody is called so and, as the node does (membership.List.Resolve), who is called nearly so.
func noPartner(list []api.Partner, ref string) *api.Error {
	var names []string
	for _, p := range list {
		if p.State != string(membership.Evicted) {
			names = append(names, unmarked(p.Name))
		}
	}
	near := workflow.Nearest(ref, names)
	if near != "" {
		near = ": did you mean " + near + "?"
	}
	return api.Errorf(api.NotFound, "no such partner: %q%s", ref, near).WithHint("mutirao partners lists them")
}

// meant are the partners that a name or a whole ID means, in the order in which the node resolves it
// (membership.List.Resolve): who is here, else who was not evicted, else whoever bears the name.
func meant(list []api.Partner, ref string) []api.Partner {
	for _, passed := range [][]string{{"expired", "left", "evicted"}, {"evicted"}, nil} {
		var found []api.Partner
		for _, p := range list {
			if string(p.ID) == ref {
				return []api.Partner{p}
			}
			if unmarked(p.Name) == ref && !slices.Contains(passed, p.State) {
				found = append(found, p)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
