package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// webLink is what web prints for programs.
type webLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
	User    string    `json:"user"` // for whom the browser acts; empty: nobody
	Acts    bool      `json:"acts"` // it may change something, not only look
}

func newWebCommand() *cobra.Command {
	var user userFlag
	var look bool
	cmd := &cobra.Command{
		Use:   "web [--user U] [--look]",
		Short: "A link that opens the node's web page in a browser",
		Long: `Prints a link that opens the page of the running node in one browser, once, within
five minutes. The browser stays signed in for twelve hours, or until the node stops;
then ask for another link. On the page one sees the mesh and its instances, starts
workflows, and does a user's work. --user says for whom, or else ` + userVariable + `;
without either it is the one user who is signed in here, or else this partner, who is a
user of its own name. Where several users are signed in and none is named, and with
--look, the page can only be looked at.`,
		Example: `  mutirao web
  mutirao web --user bia
  mutirao web --look -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			url, made, err := node.SignIn(cmd.Context(), httpapi.SignInLink{User: user.who(), Look: look})
			if err != nil {
				return err
			}
			u := uiOf(cmd)
			u.note("it opens the page once, until %s", clock(made.Expires))
			switch {
			case made.Acts:
				u.note("whoever opens it acts for %s", made.User)
			case made.User == "":
				u.note("several users are signed in here: to act, name one with --user")
			}
			link := webLink{URL: url, Expires: made.Expires, User: made.User, Acts: made.Acts}
			return u.result(link, func(w io.Writer) { fmt.Fprintln(w, url) })
		},
	}
	user.add(cmd)
	cmd.Flags().BoolVar(&look, "look", false, "the browser may only look, and change nothing")
	return cmd
}
