package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history ID",
		Short: "The data states that an instance went through",
		Long: `Prints the data states of an instance that is driven by its data (its tasks have
repeat), in order: what brought each, the state that fired that, and the
attributes that it changed. No state fires a compensation, a jump or an amendment.
A transition that was aborted brought no state, and has no number; of one that failed
it is said why, as of a compensation that brought none, with what it set. Nor has an
offer or a restart, which somebody ordered: what it fires comes after it. Nor has what
is superseded: it was done on another side of a split, or in a chain that does not
count, and stands among the others where its time is, with what it set, and how far its
compensation has got; what was begun there and called off before it ended is in mutirao
log. Of a step of recovery STATUS says who ordered it.
With -v every attribute is listed, changed ones with a star.`,
		Example: `  mutirao history 3f9a
  mutirao history 3f9a -v            # with all attributes
  mutirao history 3f9a -o json`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			states, err := node.History(ctx, args[0])
			if err != nil {
				return err
			}
			return u.result(states, func(w io.Writer) { u.writeHistory(w, states) })
		}),
	}
}

func (u *ui) writeHistory(w io.Writer, states []api.DataState) {
	t := table{head: []string{"STATE", "AT", "BY", "TRANSITION", "FIRED BY", "DATA", "STATUS"}}
	for _, s := range states {
		what := s.Kind
		if s.Transition != nil {
			what = string(*s.Transition)
			if s.Kind != "transition" {
				what = s.Kind + " of " + what
			}
		}
		t.add(stateNumber(s.State), clock(s.Ended), orDash(s.Partner), oneLine(what), stateNumber(s.FiredBy),
			u.attributes(s), statusOf(s))
	}
	t.write(u, w, "")
}

func stateNumber(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("S%d", *n)
}

// statusOf says how an instance stood in a state, what became of it, and which it is like.
func statusOf(s api.DataState) string {
	var words []string
	if s.State != nil {
		words = append(words, s.Status)
	}
	if s.Mark == api.MarkSuperseded {
		words = []string{"superseded, does not count" + undone[s.Compensation]}
	} else if s.Mark != "" {
		words = append(words, s.Mark)
	}
	if s.User != "" {
		words = append(words, "ordered by "+oneLine(s.User))
	}
	if s.EquivalentTo != nil {
		words = append(words, "like "+stateNumber(s.EquivalentTo))
	}
	if len(s.Conflicts) > 0 {
		words = append(words, "conflict on "+joinNames(s.Conflicts))
	}
	text := orDash(strings.Join(words, ", "))
	if s.Reason != "" { // which may have commas of its own
		text += ": " + oneLine(s.Reason)
	}
	return text
}

func joinNames(names []workflow.DataName) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// attributes are those that a state changed or, with -v, all, the changed ones with a star.
func (u *ui) attributes(s api.DataState) string {
	var out []string
	for _, n := range slices.Sorted(maps.Keys(s.Attributes)) {
		changed := slices.Contains(s.Changed, workflow.DataName(n))
		if !changed && !u.verbose {
			continue
		}
		star := ""
		if changed && u.verbose {
			star = "*"
		}
		out = append(out, n+star+"="+oneLine(asJSON(s.Attributes[n])))
	}
	return orDash(strings.Join(out, " "))
}
