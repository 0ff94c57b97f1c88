package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// transferFlags say where a person's task goes.
type transferFlags struct {
	user             userFlag
	to, role, reason string
	back             bool
}

func (f *transferFlags) add(cmd *cobra.Command) {
	f.user.add(cmd)
	cmd.Flags().StringVar(&f.to, "to", "", "the `user` for whom it is kept for an hour, by name or ID")
	cmd.Flags().StringVar(&f.role, "role", "", "the `role` to which it is offered in place of its own")
	cmd.Flags().BoolVar(&f.back, "back", false, "it is free again, for those for whom its task is")
	cmd.Flags().StringVar(&f.reason, "reason", "", "`why`, for its log")
	complete(cmd, "to", userNames(func(api.User) bool { return true }))
}

// request is what is asked for; what it is about is for the caller to say.
func (f *transferFlags) request() (api.TransferRequest, error) {
	named := 0
	for _, is := range []bool{f.to != "", f.role != "", f.back} {
		if is {
			named++
		}
	}
	if named != 1 {
		return api.TransferRequest{}, usagef("say where it goes: one of --to USER, --role ROLE and --back")
	}
	return api.TransferRequest{User: f.user.who(), To: f.to, Role: f.role, Back: f.back, Reason: f.reason}, nil
}

// whereItGoes is what the commands say of it.
const whereItGoes = `

--to keeps it for a user for an hour: nobody else can take it meanwhile, and after that it
is free again; that user has to have the role. --role offers it to another role, whose
members may then do it. --back has it free again, for those for whom its task is. The
partner that holds the task writes it down before this command ends. Whoever had the item
is told; what that user still brings of it is kept and shown, and does not count. What was
brought before counts: then this is refused (6).`

func newItemTransferCommand() *cobra.Command {
	var f transferFlags
	cmd := &cobra.Command{
		Use:   "transfer ITEM (--to USER | --role ROLE | --back) [--reason R] [--user U]",
		Short: "Hand an item to a user, pass it to another role, or put it back",
		Long: `Passes an item on that the user has, or about whose instance the user decides; others
are refused (5). Who decides about an instance and does not have the item on the list
names the task instead: mutirao task transfer.` + whereItGoes + forWhom,
		Example: `  mutirao worklist transfer 3f9a --to carla --reason "she is nearer"
  mutirao worklist transfer 3f9a --role doctor --user bia
  mutirao worklist transfer 3f9a --back`,
		Args:              arguments("ITEM"),
		ValidArgsFunction: completeItems(&f.user, func(x api.Item) bool { return x.State != api.ItemReady }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			r, err := f.request()
			if err != nil {
				return err
			}
			r.Item = args[0]
			return transfer(ctx, u, node, r)
		}),
	}
	f.add(cmd)
	return cmd
}

func newTaskTransferCommand() *cobra.Command {
	var f transferFlags
	cmd := &cobra.Command{
		Use:   "transfer ID TASK (--to USER | --role ROLE | --back) [--reason R] [--user U]",
		Short: "Hand a person's task to a user, pass it to another role, or put it back",
		Long: `Passes a person's task on, whoever has it, as the user who answers for the instance
(mutirao show says who), or who has the role that its definition names under
administrators; others are refused (5). Whoever has the item uses mutirao worklist
transfer.` + whereItGoes + `

--user says who decides, or else ` + userVariable + `; without either it is the one user who
is signed in here, or else this partner.`,
		Example: `  mutirao task transfer 3f9a weigh --to carla
  mutirao task transfer 3f9a weigh --back --user ana --reason "bia is away"`,
		Args:              arguments("ID", "TASK"),
		ValidArgsFunction: completeTasks,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			r, err := f.request()
			if err != nil {
				return err
			}
			r.ID, r.Task = args[0], workflow.TaskName(args[1])
			return transfer(ctx, u, node, r)
		}),
	}
	f.add(cmd)
	return cmd
}

func transfer(ctx context.Context, u *ui, node api.Service, r api.TransferRequest) error {
	done, err := node.TransferItem(ctx, r)
	if err != nil {
		return err
	}
	return u.done(done, "%s", transferredText(done))
}

// transferredText says what became of an item.
func transferredText(x *api.Transferred) string {
	task := fmt.Sprintf("task %s of %s", x.Task, x.ID)
	switch {
	case x.To != "" && x.Already:
		return task + " is with " + x.To + " already"
	case x.To != "":
		return task + " is kept for " + x.To + " for an hour"
	case x.Role != "":
		return task + " is for the role " + x.Role
	}
	return task + " is free again"
}
