package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newInstancesCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "instances [--all]",
		Short: "The instances that this node takes part in",
		Example: `  mutirao instances
  mutirao instances --all -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Instances(ctx, all)
			if err != nil {
				return err
			}
			if len(list) == 0 && !all {
				u.note("nothing runs; --all shows what has ended")
			}
			return u.result(list, func(w io.Writer) { u.writeInstances(w, list) })
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "finished ones too")
	return cmd
}

func (u *ui) writeInstances(w io.Writer, list []api.InstanceSummary) {
	t := table{head: []string{"ID", "WORKFLOW", "VERSION", "STATE", "STARTED", "ENDED"}, states: 4}
	for _, in := range list {
		t.add(u.id(in.ID), string(in.Workflow), strconv.Itoa(in.Version), string(in.State), clock(in.Started), clockOf(in.Ended))
	}
	t.write(u, w, "")
}
