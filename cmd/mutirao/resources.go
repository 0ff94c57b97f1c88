package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newResourcesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resources [QUERY]",
		Short: "What there is in the mesh, and who has it",
		Long: `The catalogue: roles, capabilities, applications, data sets and spare capacity of all
partners that are not gone. All words of QUERY must be found in a resource's kind and
name, or in its holder's name.`,
		Example: `  mutirao resources
  mutirao resources pump
  mutirao resources capacity
  mutirao resources application report -o json`,
		Args: cobra.ArbitraryArgs,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			list, err := node.Resources(ctx, strings.Join(args, " "))
			if err != nil {
				return err
			}
			return u.result(list, func(w io.Writer) { u.writeResources(w, list) })
		}),
	}
}

func (u *ui) writeResources(w io.Writer, list []api.Resource) {
	t := table{head: []string{"KIND", "NAME", "PARTNER", "STATE", "SPARE"}, states: 4}
	for _, r := range list {
		name := r.Name
		if r.Kind == "data" {
			name = fmt.Sprintf("%s (%d bytes)", r.Name, r.Size)
		}
		for _, h := range r.Holders {
			t.add(r.Kind, name, h.Name, h.State, fmt.Sprintf("%.2f", h.Spare))
		}
	}
	t.write(u, w, "")
}
