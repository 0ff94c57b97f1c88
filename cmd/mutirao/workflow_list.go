package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "The definitions that this node holds",
		Example: `  mutirao workflow list
  mutirao workflow list -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Workflows(ctx)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("none yet; add one: mutirao workflow add FILE")
			}
			return u.result(list, func(w io.Writer) { u.writeWorkflows(w, list) })
		}),
	}
}

func (u *ui) writeWorkflows(w io.Writer, list []api.Workflow) {
	t := table{head: []string{"NAME", "VERSION", "TASKS", "PARTITIONS", "ADDED", "BY", "HASH"}}
	for _, wf := range list {
		t.add(string(wf.Name), strconv.Itoa(wf.Version), strconv.Itoa(wf.Tasks), orDash(strings.Join(wf.Partitions, ",")), clock(wf.Added), orDash(wf.Author), u.id(wf.Hash))
	}
	t.write(u, w, "")
}
