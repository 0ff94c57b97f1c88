package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "remove NAME [--yes]",
		Aliases: []string{"rm"},
		Short:   "Take a definition off the list, in all its editions",
		Long: `Takes all editions of a name off the list, so that nothing is started by it any more,
and says which they were. Instances that run keep theirs. NAME@3 takes off one version:
the answer says which edition NAME starts from then on. Only the partner who listed it
may, the founder and delegates. On a terminal the command asks first.`,
		Example: `  mutirao workflow remove fire-call
  mutirao workflow remove fire-call@2`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if u.asks(yes) {
				what, err := editions(ctx, node, args[0])
				if err != nil {
					return err
				}
				if err := u.confirm(yes, "%s", what); err != nil {
					return err
				}
			}
			removed, err := node.RemoveWorkflow(ctx, args[0])
			if err != nil {
				return err
			}
			return u.done(removed, "removed: %s\n%s", strings.Join(editionNames(removed), ", "), leaves(removed))
		}),
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// editionNames names editions, each with the beginning of its hash.
func editionNames(editions []api.Workflow) (names []string) {
	for _, w := range editions {
		names = append(names, fmt.Sprintf("%s (%.10s)", edition(w), w.Hash))
	}
	return names
}

// leaves says what a name does when editions of it were taken off the list.
func leaves(removed []api.Workflow) string {
	if len(removed) == 0 {
		return ""
	}
	w := removed[0]
	switch {
	case w.Newest == "" && strings.HasPrefix(string(w.Name), "application/"):
		return fmt.Sprintf("no %s is left: in definitions that are added from now on it is a program's name, of which nothing more is known",
			w.Name)
	case w.Newest == "" && w.Kind != "":
		return fmt.Sprintf("no %s is left: definitions that take it are refused", w.Name)
	case w.Newest == "":
		return fmt.Sprintf("no edition of %s is left: nothing is started by that name", w.Name)
	case w.Kind != "":
		return fmt.Sprintf("definitions that take %s take %s from now on", w.Name, w.Newest)
	}
	return fmt.Sprintf("mutirao start %s starts %s from now on", w.Name, w.Newest)
}

// editions says which editions a reference takes off the list, and what is left of their name.
func editions(ctx context.Context, node api.Service, ref string) (string, error) {
	one, err := node.Workflow(ctx, ref)
	if err != nil {
		return "", err
	}
	list, err := node.Workflows(ctx)
	if err != nil {
		return "", err
	}
	_, at, pinned := strings.Cut(ref, "@")
	var gone []api.Workflow
	left := 0
	for _, w := range list {
		switch {
		case w.Name != one.Name:
		case !pinned || strconv.Itoa(w.Version) == at || len(at) >= 4 && strings.HasPrefix(w.Hash, at):
			gone = append(gone, w)
		default:
			left++
		}
	}
	what := "Taken off the list: " + strings.Join(editionNames(gone), ", ") + ". "
	if left == 0 {
		return what + "Nothing is started by that name any more, unless somebody adds it again.", nil
	}
	return what + fmt.Sprintf("Another edition of %s stays (mutirao workflow list).", one.Name), nil
}
