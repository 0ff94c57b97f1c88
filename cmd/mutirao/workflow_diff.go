package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
)

// difference is what differs between two editions of a definition, as programs read it.
type difference struct {
	Old     amendments.Edition  `json:"old"`
	New     amendments.Edition  `json:"new"`
	Changes []amendments.Change `json:"changes"`
}

func newWorkflowDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "° Say what differs between two editions of a definition",
		Long: `Lists the parts of a definition that differ, a line for each: + is new, - is gone, ~ has
changed, with its keys below. OLD and NEW are files, or what the node holds under a name
(NAME, NAME@VERSION). Files need no node. What means the same is no difference: the order
of keys, comments, defaults that are written out, and models.`,
		Example: `  mutirao workflow diff fire-call@3 fire-call.yaml
  mutirao workflow diff -o json old.yaml new.yaml`,
		Args:              arguments("OLD", "NEW"),
		ValidArgsFunction: completeWorkflowsOrFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			defs, err := definitionsOf(cmd, args)
			if err != nil {
				return err
			}
			d := difference{
				Old: amendments.EditionOf(defs[0]), New: amendments.EditionOf(defs[1]),
				Changes: append([]amendments.Change{}, amendments.Between(defs[0], defs[1])...),
			}
			u := uiOf(cmd)
			if len(d.Changes) == 0 {
				u.note("%s and %s mean the same", args[0], args[1])
			}
			return u.result(d, func(w io.Writer) { writeChanges(w, amendments.Lines(d.Changes)) })
		},
	}
}

// writeChanges writes what differs, for people.
func writeChanges(w io.Writer, lines []string) {
	for _, l := range lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		fmt.Fprintln(w, indent+oneLine(l[len(indent):]))
	}
}

// definitionsOf reads definitions from files or the node.
func definitionsOf(cmd *cobra.Command, refs []string) (out []*workflow.Definition, err error) {
	for _, ref := range refs {
		def, err := definitionOf(cmd.Context(), nodeDir(cmd), ref)
		if err != nil {
			return nil, err
		}
		out = append(out, def)
	}
	return out, nil
}

// merged is what becomes of two changes, as programs read it.
type merged struct {
	Definition json.RawMessage       `json:"definition"` // null: they conflict
	Conflicts  []amendments.Conflict `json:"conflicts"`
}

func newWorkflowMergeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "merge BASE ONE OTHER",
		Short: "° Make one definition of two that two people made of one",
		Long: `Prints the definition that has the changes of both ONE and OTHER, which were made of BASE,
as YAML that can be added. What only one of them has changed is taken from there; of two
versions, the higher one. Where both have changed one key, unlike, or one has removed what
the other has changed, they conflict: each conflict is said on stderr, nothing is printed,
and the exit status is 6. It does not matter which is ONE and which OTHER. All three may
be files, or what the node holds under a name (NAME, NAME@VERSION). Files need no node.`,
		Example: `  mutirao workflow merge fire-call@3 mine.yaml theirs.yaml > fire-call.yaml
  mutirao workflow merge -o json fire-call@3 fire-call@4 fire-call.yaml`,
		Args:              arguments("BASE", "ONE", "OTHER"),
		ValidArgsFunction: completeWorkflowsOrFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			defs, err := definitionsOf(cmd, args)
			if err != nil {
				return err
			}
			def, conflicts := amendments.Merge(defs[0], defs[1], defs[2])
			return uiOf(cmd).merged(args, def, conflicts)
		},
	}
}

func (u *ui) merged(args []string, def *workflow.Definition, conflicts []amendments.Conflict) error {
	m := merged{Conflicts: append([]amendments.Conflict{}, conflicts...)}
	var source []byte
	if def != nil {
		m.Definition = def.Canonical()
		var err error
		if source, err = asYAML(def.Canonical()); err != nil {
			return err
		}
	}
	err := u.result(m, func(w io.Writer) {
		if def != nil {
			fmt.Fprintf(w, "%s\n", bytes.TrimSpace(source))
		}
	})
	if err != nil || def != nil {
		return err
	}
	for _, c := range conflicts {
		u.note("%s", oneLine(c.String()))
	}
	return &exitError{
		status:  api.Refused.Exit(),
		message: fmt.Sprintf("%s and %s conflict (%s)", args[1], args[2], plural(len(conflicts), "conflict")),
		hint:    "change one of them so that they agree there, and merge them again",
	}
}
