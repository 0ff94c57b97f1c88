package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newOutboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "outbox",
		Short: "What was done here that nobody else has acknowledged yet",
		Long: `Lists what was done at this node and nobody else has acknowledged. Of locked items of
another partner: what users did while it was out of reach. It is on this node's disk, and
handed in by itself as soon as that partner can be reached; then it leaves the list. What
the partner did not take, or what does not count, stays for seven days with the reason, or
until it is handed in again. Of tasks that this node holds: what counts here already, but
is known to no other partner that takes part; any of them takes it, as soon as it can be
reached. Where no other partner takes part it is only here, and listed until the instance
has ended.`,
		Example: `  mutirao outbox
  mutirao outbox -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Outbox(ctx)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("nothing waits to be handed in or acknowledged; what is to be done: mutirao worklist")
			}
			return u.result(list, func(w io.Writer) {
				t := table{head: []string{"TASK", "INSTANCE", "USER", "WHAT", "SINCE", "WAITS FOR"}}
				for _, x := range list {
					waits := strings.Join(x.WaitsFor, ", ")
					switch {
					case x.Refused != "":
						waits = "refused: " + x.Refused
					case x.Alone:
						waits = "nobody: no other partner takes part, so it is only here"
					}
					t.add(workflow.WithLabel(x.Task, x.Label), u.id(x.Instance), x.User, x.What, clock(x.Since), waits)
				}
				t.write(u, w, "")
			})
		}),
	}
}
