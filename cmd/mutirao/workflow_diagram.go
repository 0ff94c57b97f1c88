package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

func newWorkflowDiagramCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diagram FILE|NAME [--format svg|mermaid|dot]",
		Short: "° Draw a definition with its partitions and failure paths",
		Long: `Draws the definition in a file, or one that the node holds under that name
(NAME, NAME@VERSION). A file needs no node.`,
		Example: `  mutirao workflow diagram fire-call.yaml > plan.svg
  mutirao workflow diagram fire-call@3 --format mermaid`,
		Args:              arguments("FILE|NAME"),
		ValidArgsFunction: completeWorkflowsOrFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, diagram.Formats...); err != nil {
				return err
			}
			def, err := definitionOf(cmd.Context(), nodeDir(cmd), args[0])
			if err != nil {
				return err
			}
			picture, err := diagram.Render(def, format, diagram.Options{})
			if err != nil {
				return err
			}
			return uiOf(cmd).writePicture(format, picture)
		},
	}
	addPictureFlag(cmd, &format)
	return cmd
}

// completeWorkflowsOrFiles completes the names that the node holds, and files.
func completeWorkflowsOrFiles(
	cmd *cobra.Command, args []string, prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, _ := completeWorkflows(cmd, args, prefix)
	return names, cobra.ShellCompDirectiveDefault
}

// definitionOf reads a definition from a file, as it would be added, else from the node.
func definitionOf(ctx context.Context, dir, ref string) (*workflow.Definition, error) {
	src, err := readSource(nil, ref)
	switch {
	case err == nil:
		return parsed(workflow.ParseWith(ref, src, nil))
	case errorCode(err) != api.NotFound:
		return nil, err
	}
	node, err := httpapi.Dial(dir)
	if err != nil {
		return nil, api.Errorf(api.NotFound, "there is no file %s, and no node to ask for a workflow of that name",
			ref)
	}
	w, err := node.Workflow(ctx, ref)
	if err != nil {
		return nil, err
	}
	return parsed(workflow.Parse(string(w.Name), w.Definition))
}

func parsed(def *workflow.Definition, err error) (*workflow.Definition, error) {
	if err != nil {
		return nil, api.Judge(api.Failed, err)
	}
	return def, nil
}
