package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newWorkflowShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print a definition",
		Long: `Prints a definition in its canonical form, as YAML that can be edited and added
again. NAME takes the newest; NAME@3 a version; NAME@9f2c a hash or its prefix.`,
		Example: `  mutirao workflow show fire-call
  mutirao workflow show fire-call@3 > fire-call.yaml`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			wf, err := node.Workflow(ctx, args[0])
			if err != nil {
				return err
			}
			source, err := asYAML(wf.Definition)
			if err != nil {
				return err
			}
			return u.result(wf, func(w io.Writer) {
				fmt.Fprintf(w, "# %s %s\n%s\n", edition(*wf), wf.Hash, bytes.TrimSpace(source))
			})
		}),
	}
}
