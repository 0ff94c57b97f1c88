package main

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newWorkflowListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "The definitions that this node holds",
		Long: `Lists the definitions. Of a name with several editions, the one marked * was added
last, and is what "start NAME" takes; NAME@VERSION takes another.`,
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
	labels := slices.ContainsFunc(list, func(wf api.Workflow) bool { return wf.Label != "" })
	if labels {
		t.head = append(t.head, "LABEL")
	}
	several := map[workflow.Name]int{}
	for _, wf := range list {
		several[wf.Name]++
	}
	for _, wf := range list {
		version, tasks := strconv.Itoa(wf.Version), strconv.Itoa(wf.Tasks)
		if wf.Kind != "" {
			version, tasks = "-", "-"
		}
		if several[wf.Name] > 1 && wf.Current {
			version += " *"
		}
		row := []string{
			string(wf.Name), version, tasks, orDash(strings.Join(wf.Partitions, ",")), clock(wf.Added),
			orDash(wf.Author), u.id(wf.Hash),
		}
		if labels {
			row = append(row, orDash(wf.Label))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}
