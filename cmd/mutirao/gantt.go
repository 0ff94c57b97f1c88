package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/show"
)

func newGanttCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "gantt ID",
		Short: "Draw when each task of an instance ran, as SVG",
		Long: `Draws a row for each task, with a bar from when work on it began until it ended, by the
clocks of those who hold them, and a mark where an execution ended that does not count.
Tasks that have not begun come last. Times are local, as in all that commands print, and
say which zone that is. With -o json the drawing is inside the document.`,
		Example:           `  mutirao gantt 3f9a > times.svg`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, here api.Service, args []string) error {
			in, err := here.Show(ctx, args[0])
			if err != nil {
				return err
			}
			picture, err := show.Gantt(in, time.Now(), "", time.Local) // the node may run in another zone
			if err != nil {
				return err
			}
			return u.writePicture("gantt", picture)
		}),
	}
}
