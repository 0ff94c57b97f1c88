package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newCancelCommand() *cobra.Command {
	var reason string
	var yes bool
	var user userFlag
	cmd := &cobra.Command{
		Use:   "cancel ID [--reason R] [--user U] [--yes]",
		Short: "Cancel an instance",
		Long: `Cancels an instance everywhere: running tasks are called off, and nothing more is
started. Partners that cannot be reached now learn of it when they can. It cannot be
taken back: on a terminal the command asks first, and names the instance with its
workflow and whole ID. With --yes, or where nobody sits at a terminal, nobody sees that:
then a beginning of an ID is refused (2), and the answer says the whole ID. What has
failed only as others presume, and goes on at its holder, is cancelled as well.

That is for the user who answers for the instance (mutirao show says who), and for
those who have the role that its definition names under administrators; others are
refused (5). Where the partner who answers is gone for good, or the user was removed,
each partner that takes part may. --user says who cancels it.`,
		Example: `  mutirao cancel 3f9a --reason "false alarm"
  mutirao cancel 3f9a0c21d4aa00112233445566778899 --yes`,
		Args: arguments("ID"),

		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			in, err := u.askToCancel(ctx, node, yes, args[0], "")
			if err != nil {
				return err
			}
			if _, err := node.OrderTask(ctx,
				api.TaskOrder{User: user.who(), ID: in.ID, Order: api.TaskCancel, Reason: reason}); err != nil {
				return err
			}
			return u.done(map[string]string{"id": in.ID, "state": "cancelled"}, "%s is cancelled", in.ID)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	user.add(cmd)
	addYesFlag(cmd, &yes)
	return cmd
}

// askToCancel asks whether an instance is to be cancelled, as a task of it or (empty) the instance was named. What is
// refused anyway, as it runs no more, is not asked about.
func (u *ui) askToCancel(
	ctx context.Context, node shower, yes bool, ref string, task workflow.TaskName,
) (*api.Instance, error) {
	in, what, err := u.whichInstance(ctx, node, yes, ref)
	if err != nil {
		return nil, err
	}
	if u.asks(yes) && in.State != "" && !in.Cancellable() {
		return nil, api.Errorf(api.Refused, "instance %s is %s already", in.ID, in.State)
	}
	if task != "" {
		return in, u.confirm(yes, "This is not about task %s alone: all of %s is cancelled everywhere, and nobody can "+
			"take that back. For the task alone there is mutirao task stop.", task, what)
	}
	return in, u.confirm(yes, "%s is cancelled everywhere, and nobody can take that back.", what)
}

// whichInstance is an instance, and what tells people which one it is.
// What cannot be taken back is asked, done and reported by the one ID: what a beginning
// of it means may change meanwhile. Where nobody is asked, nobody sees which one it is:
// then only the whole ID will do.
func (u *ui) whichInstance(
	ctx context.Context, node shower, yes bool, ref string,
) (in *api.Instance, what string, err error) {
	in, err = node.Show(ctx, ref)
	if id := strings.ToLower(strings.TrimSpace(ref)); err != nil && isWhole(id) && errorCode(err) == api.NotFound {
		// Who decides about it may be at a node that takes no part in it, which asks its partners.
		return &api.Instance{ID: id}, "instance " + id + ", which is not here,", nil
	}
	if err != nil {
		return nil, "", err
	}
	what = fmt.Sprintf("%s@%d %s, started %s,", in.Workflow, in.Version, in.ID, clock(in.Started))
	if !u.asks(yes) && !strings.EqualFold(strings.TrimSpace(ref), in.ID) {
		return nil, "", api.Errorf(api.Invalid,
			"%q is only the beginning of an ID, and nobody is asked whether it is the right one: want the whole ID",
			ref).
			WithHint("if you mean %s type %s", what, in.ID)
	}
	return in, what, nil
}

// isWhole reports whether a text is the whole ID of an instance.
func isWhole(id string) bool {
	_, err := hex.DecodeString(id)
	return err == nil && len(id) == 2*len(workflow.InstanceID{})
}

// errorCode is the code of a node's error.
func errorCode(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return api.Internal
}
