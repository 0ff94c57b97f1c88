package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newWorkflowAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add FILE...",
		Short: "Check definitions and spread them to the mesh",
		Long: `Adds definitions to the mesh: every partner learns of them, and any may start
them. A definition of the same name is kept beside it, under its own version and
hash. What start would refuse here, as things are, is a warning on stderr. FILE may
be - for stdin.`,
		Example: `  mutirao workflow add fire-call.yaml
  mutirao workflow add plans/*.yaml`,
		Args: arguments("FILE..."),
		RunE: func(cmd *cobra.Command, files []string) error {
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			return addWorkflows(cmd, uiOf(cmd), node, files)
		},
	}
}

func addWorkflows(cmd *cobra.Command, u *ui, node api.Service, files []string) error {
	added := []api.Workflow{}
	for _, file := range files {
		src, err := readSource(cmd.InOrStdin(), file)
		if err != nil {
			return err
		}
		if len(src) > workflow.MaxSource { // no node would read on: the reason is the same as that of check
			_, err := workflow.Parse(file, src)
			return api.Judge(api.Failed, err)
		}
		wf, err := node.AddWorkflow(cmd.Context(), filepath.ToSlash(file), src)
		if err != nil {
			return err
		}
		wf.Definition = nil
		for _, why := range wf.Refused {
			u.note("%s@%d: warning: as things are, it cannot be done here: %s", wf.Name, wf.Version, why)
		}
		added = append(added, *wf)
	}
	return u.result(added, func(w io.Writer) {
		for _, wf := range added {
			fmt.Fprintf(w, "%s@%d\n", wf.Name, wf.Version)
		}
	})
}
