package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newDisconnectCommand() *cobra.Command {
	var within, away string
	var yes bool
	cmd := &cobra.Command{
		Use:   "disconnect [--for 2d] [--within 5m] [--yes]",
		Short: "Go out of reach as planned, with all that locked items need",
		Long: `Ends all contact with partners until "worklist reconnect", also across a restart. First
the items of other partners are named that somebody at this node has selected and not
locked: they cannot be done meanwhile. Then partners are told that this node takes nothing
new on, and the files of locked items come here; when all are here, partners are told that
it goes, and they show it as unreachable (going down). Locked items can be done meanwhile:
worklist complete keeps what was done in the outbox. So can what this node holds itself;
but what it was only given to perform, and nobody here has taken, is passed on before it
goes to others who can do it, and named with who has it then, or that nobody else can do
it: lock it to take it along.

--within is the longest wait. If the files take longer, by the speed at which files came
lately from who has them (and else from others), the command says so, with the speed and
when that was, and asks on a terminal whether to wait on; if nobody gives one of them, or
this device is not known to have the application of a locked item, it asks whether to go
without. Elsewhere this node stays, and the exit status is 6. So it
does where the disk has no room. --yes accepts all that can be accepted. Interrupted
(Ctrl-C), the node stays; what came by then need not come again.

--for says how long the node will be away, at most 8 days. Partners are told, and wait
for so long for what it holds itself, also after they were started again; locks end no
sooner. They give it nothing new meanwhile, and what it would do for others, another
does. It may be back sooner; if it is not back by then, what it holds counts as failed.
Without --for that is as long as the longest lock lasts of what this node holds itself,
which is said; without such a lock they wait for its connection time, as when it is
stopped.`,
		Example: `  mutirao worklist disconnect --for 2d
  mutirao worklist disconnect --within 30m --yes
  mutirao worklist disconnect -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			wait, err := workflow.ParseDuration(within)
			if err != nil || wait == 0 {
				return usagef("--within %s: want a duration above 0, such as 90s or 5m", within)
			}
			r := api.DisconnectRequest{Within: api.Span(wait)}
			if away != "" {
				gone, err := workflow.ParseDuration(away)
				if err != nil || gone == 0 || gone > membership.MaxAway {
					return usagef("--for %s: want a duration above 0, at most %s, such as 12h or 2d", away,
						workflow.FormatDuration(membership.MaxAway))
				}
				r.For = api.Span(gone)
			}
			c, err := u.disconnect(ctx, node, r, yes)
			if err != nil {
				return err
			}
			return u.result(c, func(w io.Writer) { u.writeContact(w, c, away != "") })
		}),
	}
	cmd.Flags().StringVar(&within, "within", "5m", "the `longest` wait for files")
	cmd.Flags().StringVar(&away, "for", "", "`how` long it will be away: partners wait for so long for what it holds")
	addYesFlag(cmd, &yes)
	return cmd
}

func newReconnectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reconnect",
		Short: "Talk to partners again after disconnect",
		Long: `Has this node talk to its partners again; one that is still on its way out stays. What was
done meanwhile is handed in by itself, in the order in which it was done: mutirao outbox
shows what waits, and what its partner did not take, with the reason.`,
		Example: `  mutirao worklist reconnect
  mutirao worklist reconnect -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			was, err := node.Contact(ctx)
			if err != nil {
				return err
			}
			// Asked before: once there is contact, it may all be handed in within an instant.
			waits, err := node.Outbox(ctx, "")
			if err != nil {
				return err
			}
			c, err := node.Reconnect(ctx)
			if err != nil {
				return err
			}
			if err := u.result(c, func(w io.Writer) { u.writeContact(w, c, true) }); err != nil {
				return err
			}
			switch {
			case was.State == api.IsConnected:
				u.note("it was connected already")
			case slices.ContainsFunc(waits, func(x api.Undelivered) bool { return !x.Alone && x.Refused == "" }):
				u.note("what was done meanwhile is handed in now, by itself; mutirao outbox shows what still waits")
			}
			return nil
		}),
	}
}

// contactEvery is how often a node on its way out is asked how far it is.
const contactEvery = 200 * time.Millisecond

// disconnect has the node go, asks what it asks, and waits until it has gone. Whatever ends
// that, the node stays; one that was away before stays away.
func (u *ui) disconnect(
	ctx context.Context, node api.Service, r api.DisconnectRequest, yes bool,
) (*api.Contact, error) {
	if yes {
		r.Accept = api.Acceptable
	}
	was, err := node.Contact(ctx)
	if err != nil {
		return nil, err
	}
	c, err := node.Disconnect(ctx, r)
	if err == nil && c.State == api.IsDisconnected && c.Since.Before(time.Now().Add(-time.Minute)) {
		u.note("it was disconnected already")
	}
	for err == nil && c.State == api.IsLeaving {
		if c.Asks == "" {
			u.writeLeft(c)
			if err = pauseFor(ctx, contactEvery); err == nil {
				c, err = node.Contact(ctx)
			}
			continue
		}
		if err = u.consent(c, yes); err == nil {
			r.Accept = append(r.Accept, c.Asks)
			c, err = node.Disconnect(ctx, r)
		}
	}
	u.clearProgress()
	if err == nil && c.State != api.IsDisconnected {
		err = api.Errorf(api.Failed, "this node was told to stay meanwhile")
	}
	if err != nil {
		u.stays(ctx, node, was)
		return nil, err
	}
	return c, nil
}

// stays has a node stay that this command had go. One that was away before, or that somebody else had go meanwhile, is
// left as it is.
func (u *ui) stays(ctx context.Context, node api.Service, was *api.Contact) {
	if was.State == api.IsDisconnected {
		return
	}
	anyhow := context.WithoutCancel(ctx)
	is, err := node.Contact(anyhow)
	if err == nil && is.State == api.IsDisconnected && ctx.Err() == nil {
		return
	}
	_, _ = node.Reconnect(anyhow) // else its status says that it leaves
}

// consent asks what a node on its way out asks. What nobody is there to answer is refused,
// but that selected items cannot be done meanwhile is only said.
func (u *ui) consent(c *api.Contact, yes bool) error {
	u.clearProgress()
	var tasks []string
	for _, x := range c.Items {
		tasks = append(tasks, fmt.Sprintf("%s (%s)", x.Task, u.short(x.ID, 8)))
	}
	what := strings.TrimSuffix(strings.Join(tasks, ", ")+": "+c.Why, ": ")
	may := slices.Contains(api.Acceptable, c.Asks)
	switch {
	case may && (yes || c.Asks == "not-locked" && !u.asks(yes)):
		u.note("%s", what)
		return nil
	case may && u.asks(yes):
		return u.confirm(yes, "%s", what)
	case may:
		return api.Errorf(api.Refused, "this node stays connected. %s", what).WithHint("--yes accepts it")
	}
	return api.Errorf(api.Refused, "this node stays connected. %s", what)
}

// writeLeft shows on a terminal how much is still to come.
func (u *ui) writeLeft(c *api.Contact) {
	if !u.progress || c.Volume == 0 {
		return
	}
	takes := "no file came yet by which to tell how long that takes"
	if c.Takes != "" {
		takes = "which takes about " + c.Takes
	}
	fmt.Fprintf(u.err, clearLine()+"%s are still to come, %s", workflow.FormatSize(c.Volume), takes)
}

// pauseFor waits, or until ctx ends.
func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeContact says how a node stands to its partners. said: its user says for how long it is away.
func (u *ui) writeContact(w io.Writer, c *api.Contact, said bool) {
	if c.Since == nil {
		fmt.Fprintln(w, c.State)
		return
	}
	fmt.Fprintf(w, "disconnected since %s; back: mutirao worklist reconnect\n", clock(*c.Since))
	for _, x := range c.Along {
		fmt.Fprintf(w, "can be done: %s %s of %s %s\n", u.short(x.ID, 8), x.Task, x.Workflow, u.id(x.Instance))
	}
	for _, x := range c.Withheld {
		fmt.Fprintf(w, "not here:    file %s (%s) of %s %s: only %s may read it, and %s has the task\n", x.Data, oneLine(x.File),
			u.short(x.Item, 8), x.Task, strings.Join(x.OnlyFor, ", "), x.User)
	}
	for _, x := range c.Passed {
		fmt.Fprintf(w, "passed on:   %s %s of %s %s to %s: %s\n", u.short(x.ID, 8), x.Task, x.Workflow, u.id(x.Instance),
			x.Partner, oneLine(x.Reason))
	}
	for _, x := range c.Stays {
		fmt.Fprintf(w, "stays here:  %s of %s %s: %s\n", x.Task, x.Workflow, u.id(x.Instance), oneLine(x.Reason))
	}
	if c.Until != nil {
		fmt.Fprintf(w, "partners were told: back by about %s\n", clock(*c.Until))
	}
	wait := "partners wait " + c.Waits + " for it"
	switch {
	case c.Until == nil:
		wait += "; longer: reconnect, then disconnect --for SPAN"
	case !said: // as long as somebody has locked something of it
		wait += "; shorter: reconnect, then disconnect --for SPAN"
	}
	for _, x := range c.Own {
		fmt.Fprintf(w, "held here:   %s %s of %s %s; %s\n", u.short(x.ID, 8), x.Task, x.Workflow, u.id(x.Instance), wait)
	}
}
