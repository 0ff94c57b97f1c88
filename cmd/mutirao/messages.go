package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newMessagesCommand() *cobra.Command {
	var user userFlag
	var o messagesOptions
	cmd := &cobra.Command{
		Use:   "messages [--unread] [--keep] [--follow] [--user U]",
		Short: "What a user is told: started, ended, failed, deadline, adopted, lost, untaken",
		Long: `Lists what a user is told of instances, the oldest first: that one has started or ended
for which the user answers, that a task of it has failed, and that a deadline is near
or over, or has an item pass to the responsible user, also of what the user has; that
this is not needed any more, or is over; that a result of the user was adopted which had
not counted; to administrators also what interrupts an instance, until that is
resolved. What is new is marked, and counts as read from then on, also at
other nodes of the user; with --keep it stays new. Nobody sends messages: they are
worked out from what is known here, so they come also when this node is out of reach of
everybody. What waits for the user in instances that this node takes no part in is asked
of partners, half a second long. They go when the facts of their instance are deleted,
and those about a deadline when its task is done.

--user says for whom, or else ` + userVariable + `; without either it is the one user
who is signed in here, or else this partner, who is a user of its own name.`,
		Example: `  mutirao messages
  mutirao messages --unread --user ana
  mutirao messages --follow
  mutirao messages -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			o.user = user.who()
			if o.follow {
				return o.followThem(ctx, u, node)
			}
			list, err := node.Messages(ctx, api.MessagesQuery{User: o.user, Unread: o.unread})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("nothing is to be told; what is to be done: mutirao worklist")
			}
			if err := u.result(list, func(w io.Writer) { u.writeMessages(w, list) }); err != nil {
				return err
			}
			return o.read(ctx, node, list)
		}),
	}
	user.add(cmd)
	cmd.Flags().BoolVar(&o.unread, "unread", false, "only those that are new")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "they stay new")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "those that are new, and then others as they come")
	return cmd
}

// messagesOptions say which messages are wanted.
type messagesOptions struct {
	user                 string
	unread, keep, follow bool
}

// read notes that messages were read.
func (o *messagesOptions) read(ctx context.Context, node api.Service, list []api.Message) error {
	var ids []string
	for _, m := range list {
		if !m.Read {
			ids = append(ids, m.ID)
		}
	}
	if o.keep || len(ids) == 0 {
		return nil
	}
	return node.ReadMessages(ctx, api.MessagesRead{User: o.user, IDs: ids})
}

// followThem prints messages as they come, each once: as JSON one on a line.
func (o *messagesOptions) followThem(ctx context.Context, u *ui, node api.Service) error {
	shown := map[string]bool{}
	return follow(ctx, node, anything, func() (bool, error) {
		list, err := node.Messages(ctx, api.MessagesQuery{User: o.user, Unread: true})
		if err != nil {
			return false, err
		}
		var fresh []api.Message
		for _, m := range list {
			if shown[m.ID] {
				continue
			}
			shown[m.ID] = true
			fresh = append(fresh, m)
			if u.format == "text" {
				fmt.Fprintln(u.out, oneLine(messageLine(u, m)))
				continue
			}
			b, err := json.Marshal(m)
			if err != nil {
				return false, err
			}
			fmt.Fprintln(u.out, string(b))
		}
		return false, o.read(ctx, node, fresh)
	})
}

func messageLine(u *ui, m api.Message) string {
	return fmt.Sprintf("%s  %-8s  %s %s: %s", clock(m.At), m.Type, workflow.WithLabel(m.Workflow, m.WorkflowLabel), u.id(m.Instance), whatSays(m))
}

// whatSays is the text of a message; of what the user has no more, with that.
func whatSays(m api.Message) string {
	if m.Past {
		return m.Text + " (it was yours then)"
	}
	return m.Text
}

func (u *ui) writeMessages(w io.Writer, list []api.Message) {
	t := table{head: []string{"NEW", "AT", "TYPE", "WORKFLOW", "INSTANCE", "TASK", "TEXT"}}
	for _, m := range list {
		fresh := ""
		if !m.Read {
			fresh = "*"
		}
		t.add(fresh, clock(m.At), m.Type, m.Workflow, u.id(m.Instance), orDash(workflow.WithLabel(m.Task, m.Label)), whatSays(m))
	}
	t.write(u, w, "")
}
