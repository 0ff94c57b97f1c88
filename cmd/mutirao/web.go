package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// webLink is what web prints for programs.
type webLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

func newWebCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "web",
		Short: "A link that opens the node's web page in a browser",
		Long: `Prints a link that opens the page of the running node in one browser, once, within
five minutes. The browser stays signed in for twelve hours, or until the node stops;
then ask for another link. The page shows the mesh and its instances, and changes
nothing.`,
		Example: `  mutirao web
  mutirao web -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			var link webLink
			if link.URL, link.Expires, err = node.SignIn(cmd.Context()); err != nil {
				return err
			}
			u := uiOf(cmd)
			u.note("it opens the page once, until %s", clock(link.Expires))
			return u.result(link, func(w io.Writer) { fmt.Fprintln(w, link.URL) })
		},
	}
}
