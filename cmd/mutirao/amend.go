package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newAmendCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "amend ID FILE --dry-run",
		Short: "Say whether an instance that runs can take a changed definition",
		Long: `Compares the definition in FILE with the one by which the instance runs, and that with
what the instance has done, as this node knows it: the parts that differ, as mutirao
workflow diff lists them, then what the instance cannot take of it, each with its reason,
and what has no effect on it and counts for instances that are started later.

Nothing is changed: to amend an instance itself is not built in this version, and without
--dry-run the command says so. Where something is refused the exit status is 6: not one of
the changes counts then. FILE may be - for stdin.`,
		Example: `  mutirao amend 3f9a fire-call.yaml --dry-run
  mutirao amend 3f9a fire-call.yaml --dry-run -o json`,
		Args:              arguments("ID", "FILE"),
		ValidArgsFunction: completeInstances,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dry {
				return notBuilt("amend without --dry-run", "to change an instance that runs", amendNearest)
			}
			src, err := readSource(cmd.InOrStdin(), args[1])
			if err != nil {
				return err
			}
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			out, err := node.ForeseeAmendment(cmd.Context(), args[0], filepath.ToSlash(args[1]), src)
			if err != nil {
				return err
			}
			return uiOf(cmd).amendment(out)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what differs and what is refused, and change nothing")
	return cmd
}

// amendment tells what an instance would do with a changed definition.
func (u *ui) amendment(a *api.Amendment) error {
	if len(a.Changes) == 0 {
		u.note("%s runs by what means the same: there is nothing to change", u.id(a.ID))
	}
	err := u.result(a, func(w io.Writer) {
		writeChanges(w, a.Lines)
		for _, f := range a.Refused {
			fmt.Fprintln(w, oneLine("refused: "+f.Line))
		}
		for _, f := range a.NoEffect {
			fmt.Fprintln(w, oneLine("no effect: "+f.Line))
		}
	})
	if err != nil || len(a.Refused) == 0 {
		return err
	}
	return &exitError{
		status: api.Refused.Exit(),
		message: fmt.Sprintf("%s cannot take %s@%d: %s", u.id(a.ID), a.Workflow, a.NewVersion,
			plural(len(a.Refused), "refusal")),
		hint: "change the file there, and try again; instances that are started later can run by it as it is",
	}
}
