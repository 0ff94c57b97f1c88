package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

func newDiagramCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diagram ID [--format svg|mermaid|dot]",
		Short: "Draw an instance with the states of its tasks",
		Example: `  mutirao diagram 3f9a > now.svg
  mutirao diagram 3f9a --format mermaid`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if err := oneOf("format", format, diagram.Formats...); err != nil {
				return err
			}
			picture, err := node.Diagram(ctx, args[0], format)
			if err != nil {
				return err
			}
			return u.writePicture(format, picture)
		}),
	}
	addPictureFlag(cmd, &format)
	return cmd
}

// writePicture prints a drawing as it is, or inside a document.
func (u *ui) writePicture(format string, picture []byte) error {
	doc := map[string]string{"format": format, "diagram": string(picture)}
	return u.result(doc, func(w io.Writer) { _, _ = w.Write(picture) }) // a buffer takes everything
}

func addPictureFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "svg", "svg, mermaid or dot")
	completeWords(cmd, "format", diagram.Formats...)
}
