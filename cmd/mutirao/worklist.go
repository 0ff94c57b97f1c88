package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// userFlag says for whom a command is.
type userFlag struct{ name string }

func (f *userFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "user", "", "the `user`, by name or ID, as user list shows")
	complete(cmd, "user", userNames(func(x api.User) bool { return x.Here }))
}

// who is the user that is meant; empty: the node knows.
func (f *userFlag) who() string { return cmp.Or(f.name, os.Getenv(userVariable)) }

// forWhom is how the commands say for whom they are.
const forWhom = `

--user says for whom, or else ` + userVariable + `; without either it is the one user
who is signed in here, or else this partner, who is a user of its own name. ITEM is an
ID of the list or a beginning of one.`

func newWorklistCommand() *cobra.Command {
	var user userFlag
	var order string
	var watch, ahead, lost, keep bool
	cmd := &cobra.Command{
		Use:   "worklist [--order arrival|priority|deadline|size|hand|here] [--ahead] [--lost [--keep]] [--user U] [--watch]",
		Short: "The tasks that a user has or may take; take them, do them",
		Long: `Lists the people's tasks that a user has, and those that the user may take: of a role that
the user has, on any partner; without a role, of the partner at whose node the user is.
What others have taken is left out. Each partner that holds tasks is asked now; of one
that cannot be reached the list says what is known of it here, and how old that is. Who
is connected and does not answer is named on standard error, and so is what the user had
and lost in the last seven days, with the reason, until it was read: with --lost, which
lists all of that in place of the rest (with --keep it is said again all the same), or
among the messages.

With --ahead the list has as well what is not ready yet and can be locked all the same,
together with what it waits for, or after that: to do both out of reach.` + forWhom,
		Example: `  mutirao worklist
  mutirao worklist --order priority --user bia
  mutirao worklist --ahead
  mutirao worklist --lost
  mutirao worklist --watch
  mutirao worklist -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			if lost {
				return u.listLost(ctx, node, user.who(), keep)
			}
			var last time.Time
			return u.show(ctx, node, watch, func() (document, error) {
				if err := rest(ctx, last); err != nil {
					return document{}, err
				}
				last = time.Now()
				list, err := node.Worklist(ctx, api.WorklistQuery{User: user.who(), Order: order, Ahead: ahead})
				if err == nil && !watch {
					u.noteUnanswered(ctx, node, user.who(), len(list) == 0)
					u.noteLost(ctx, node, user.who())
				}
				return document{
					v: list, text: func(w io.Writer) { u.writeItems(w, list) }, more: true, same: withoutAge(list),
				}, err
			})
		}),
	}
	user.add(cmd)
	cmd.Flags().StringVar(&order, "order", api.OrderArrival,
		"`what` comes first: arrival (what could be done first), priority, deadline, size (what needs the fewest bytes of files), hand (worklist move), or here (what has its files and its application on this device)")
	cmd.Flags().BoolVar(&ahead, "ahead", false, "also what is not ready and can be locked with what it waits for")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing the list as it changes")
	cmd.Flags().BoolVar(&lost, "lost", false, "only what the user had and lost in the last seven days: it counts as read then")
	cmd.Flags().BoolVar(&keep, "keep", false, "with --lost: it does not count as read")
	for _, other := range []string{"watch", "ahead", "order"} {
		cmd.MarkFlagsMutuallyExclusive("lost", other)
		cmd.MarkFlagsMutuallyExclusive("keep", other)
	}
	cmd.AddCommand(
		newClaimCommand(api.ClaimSelect, "Take items, to do them while connected", `Takes items: from now on nobody else can, and they vanish from all other lists. The
partner that holds them writes that down before this command ends. After a day others may
take them again. Several items of one instance and one partner are taken together, all or
none.`),
		newClaimCommand(api.ClaimLock, "Take items, and keep them also when out of reach", `Takes items as select does, of tasks that may be done offline, for seven days. They can
be done out of reach: complete and fail then keep here what was done.

An item that is not ready (worklist --ahead) can be locked together with what it waits
for, or after that. It can be done here as soon as that was done here. Items of one
instance that several partners hold are locked together, all or none: if one of the
partners refuses, or does not answer, all is given back. What the user had before stays.`),
		newClaimCommand(api.ClaimRelease, "Give items back",
			`Gives items back, one after the other: others may take them at once.`),
		newItemTransferCommand(), newItemCompleteCommand(), newItemFailCommand(),
		newItemOpenCommand(), newItemMoveCommand(), newPrefetchCommand(), newDisconnectCommand(), newReconnectCommand(),
	)
	return cmd
}

// noteUnanswered says whose items may be missing in a list, or are shown as they were known before; and
// that nothing is to be done where all answered.
func (u *ui) noteUnanswered(ctx context.Context, node api.Service, user string, empty bool) {
	silent, err := node.WorklistUnanswered(ctx, user)
	st, unknown := node.Status(ctx)
	switch {
	case unknown == nil && st.Disconnected != nil:
		u.note("disconnected on purpose since %s: what others hold is shown as it was known then; back: mutirao worklist reconnect", clock(*st.Disconnected))
	case err == nil && len(silent) > 0:
		u.note("no answer from %s: what is theirs may be missing here, or be as it was known before",
			strings.Join(silent, ", "))
	case empty:
		u.note("nothing is to be done; what runs, and waits for others: mutirao instances")
	}
	if empty {
		u.noteWhose(ctx, node, user)
	}
}

// noteWhose says for whom a list is, and how the others at this node see theirs: what somebody looks for in an empty
// list may be in another's. It says nothing where nobody else could be meant.
func (u *ui) noteWhose(ctx context.Context, node api.Service, user string) {
	all, err := node.Users(ctx)
	if err != nil {
		return // the list was shown
	}
	user = workflow.UsualForm(user)
	here := slices.DeleteFunc(all, func(x api.User) bool { return !x.Here })
	of := slices.IndexFunc(here, func(x api.User) bool { return x.Name == user || x.ID == user })
	if user == "" { // then the node takes the one who is signed in, else the partner
		if of = slices.IndexFunc(here, func(x api.User) bool { return !x.Partner }); of < 0 {
			of = slices.IndexFunc(here, func(x api.User) bool { return x.Partner })
		}
	}
	if of < 0 || len(here) < 2 {
		return
	}
	text := "this is the list of " + oneLine(here[of].Name)
	for i, x := range here {
		if i != of {
			name := oneLine(x.Name)
			text += fmt.Sprintf("; that of %s: mutirao worklist --user %s", name, private.Quote(name))
		}
	}
	u.note("%s", text)
}

// maxLost is how many lost items are named under a list.
const maxLost = 10

// noteLost says what a user had and lost, by no act of its own, and has not read.
func (u *ui) noteLost(ctx context.Context, node api.Service, user string) {
	lost, err := node.WorklistLost(ctx, user)
	if err != nil {
		return // the list was shown
	}
	lost = slices.DeleteFunc(lost, func(x api.LostItem) bool { return x.Read && !x.Presumed })
	for i, x := range lost {
		if i == maxLost {
			u.note("and %d more: mutirao worklist --lost", len(lost)-maxLost)
			return
		}
		task, why := oneLine(workflow.WithLabel(x.Task, x.Label)), oneLine(x.Why)
		if x.Presumed {
			u.note("what you make of %s of %s may not count, %s: you may go on (%s)", task, u.id(x.Instance), why, clock(x.At))
			continue
		}
		u.note("%s of %s is no longer yours, %s%s (%s)%s", task, u.id(x.Instance), why, byWhom(oneLine(x.By)), clock(x.At),
			mayStillCount(x))
	}
	if slices.ContainsFunc(lost, func(x api.LostItem) bool { return !x.Presumed }) {
		u.note("not to be told that again: mutirao worklist --lost")
	}
}

// listLost lists what a user had and lost, and notes that the user has read it.
func (u *ui) listLost(ctx context.Context, node api.Service, user string, keep bool) error {
	lost, err := node.WorklistLost(ctx, user)
	if err != nil {
		return err
	}
	if len(lost) == 0 {
		u.note("nothing was lost in the last seven days")
	}
	if err := u.result(lost, func(w io.Writer) { u.writeLost(w, lost) }); err != nil || keep {
		return err
	}
	var fresh []string
	for _, x := range lost {
		if !x.Read {
			fresh = append(fresh, x.Message)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return node.ReadMessages(ctx, api.MessagesRead{User: user, IDs: fresh})
}

func (u *ui) writeLost(w io.Writer, list []api.LostItem) {
	t := table{head: []string{"NEW", "AT", "WORKFLOW", "INSTANCE", "TASK", "WHY"}}
	for _, x := range list {
		fresh, why := "", x.Why+byWhom(x.By)+mayStillCount(x)
		if !x.Read {
			fresh = "*"
		}
		if x.Presumed {
			why += ": the user may go on, and what comes of it may not count"
		}
		t.add(fresh, clock(x.At), x.Workflow, u.id(x.Instance), workflow.WithLabel(x.Task, x.Label), why)
	}
	t.write(u, w, "")
}

// mayStillCount says of a lost item that what its user did of it is kept.
func mayStillCount(x api.LostItem) string {
	if !x.Adoptable {
		return ""
	}
	return "; what you did of it is kept, and counts if who decides about the instance adopts it"
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// askAgain is how long a worklist that is watched is not asked for again: each time, all
// partners are asked.
const askAgain = 2 * time.Second

// rest waits until a moment after the last time, or until ctx ends.
func rest(ctx context.Context, last time.Time) error {
	select {
	case <-time.After(time.Until(last.Add(askAgain))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withoutAge is a list without what changes each time that it is asked for.
func withoutAge(list []api.Item) []api.Item {
	out := slices.Clone(list)
	for i := range out {
		out[i].AsOf, out[i].Known = time.Time{}, ""
	}
	return out
}

func (u *ui) writeItems(w io.Writer, list []api.Item) {
	t := table{
		head: []string{"ITEM", "TASK", "STATE", "WORKFLOW", "INSTANCE", "AT", "ROLE", "PRIORITY", "SINCE"}, states: 3,
	}
	due := slices.ContainsFunc(list, func(x api.Item) bool { return x.Deadline != nil || x.Due != nil })
	if due {
		t.head = append(t.head, "DUE")
	}
	passing := slices.ContainsFunc(list, func(x api.Item) bool { return x.Transfer != nil })
	if passing {
		t.head = append(t.head, "PASSES TO")
	}
	labels := slices.ContainsFunc(list, func(x api.Item) bool { return x.Label != "" })
	if labels {
		t.head = append(t.head, "LABEL")
	}
	leased := slices.ContainsFunc(list, func(x api.Item) bool { return x.LeaseUntil != nil })
	if leased {
		t.head = append(t.head, "YOURS UNTIL")
	}
	for _, x := range list {
		at := x.Partner
		if x.Unreachable && x.Away == nil {
			at += " (" + strings.TrimPrefix(x.Known+", out of reach", ", ") + ")"
		} else if x.Known != "" && x.Away == nil {
			at += " (" + x.Known + ")"
		}
		task := x.Task
		if x.HandedBy != "" && x.KeptUntil != nil {
			task += " (handed to you by " + x.HandedBy + ", kept until " + clock(*x.KeptUntil) + ")"
		}
		if x.Begun != nil {
			task += " (begun by " + x.Partner + " " + clock(*x.Begun) + ")"
		}
		for _, l := range x.WaitsFor {
			task += " (waits for " + l.Text + ")"
		}
		for _, l := range x.Shared {
			task += " (" + l.Text + ")"
		}
		if x.HeldUp != "" {
			task += " (" + oneLine(x.HeldUp) + ")"
		} else if len(x.Awaits) > 0 {
			task += " (after " + withLabels(x.Awaits, x.TaskLabels) + ")"
		}
		if x.Presumed != "" {
			task += " (presumed to have failed: " + oneLine(x.Presumed) + ")"
		}
		if x.Said != nil {
			task += " (" + saidLast(x.Said) + ")"
		}
		if x.Away != nil {
			task += " (" + whileAway(x) + ")"
		}
		if x.Undoes != "" {
			task += " (undoes " + workflow.WithLabel(x.Undoes, x.TaskLabels[x.Undoes]) + ")"
		}
		if x.InPlaceOf != "" {
			task += " (in place of " + workflow.WithLabel(x.InPlaceOf, x.TaskLabels[x.InPlaceOf]) + ")"
		}
		row := []string{
			u.short(x.ID, 8), task, x.State, x.Workflow, u.id(x.Instance), at, orDash(x.Role), strconv.Itoa(x.Priority),
			clock(x.Since),
		}
		if due {
			row = append(row, nextClock(x))
		}
		if passing {
			row = append(row, passes(x.Transfer))
		}
		if labels {
			row = append(row, orDash(x.Label))
		}
		if leased {
			row = append(row, untilDue(x.LeaseUntil))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}

// saidLast says why an item was given back, or passed on.
func saidLast(s *api.Said) string {
	how := map[bool]string{false: "given back", true: "passed on"}[s.Passed]
	return fmt.Sprintf("%s by %s %s: %s", how, oneLine(s.By), clock(s.At), oneLine(s.Why))
}

// whileAway says what can be done about an item whose holder is away as it announced.
func whileAway(x api.Item) string {
	text := x.Away.Partner + " gives it out and is away until about " + clock(x.Away.Until) + ", as it announced: "
	switch x.State {
	case api.ItemLocked:
		return text + "do it, the result is handed in then"
	case api.ItemDone:
		return text + "the result is handed in then"
	case api.ItemSelected:
		return text + "it can be handed in, or locked, then"
	}
	return text + "nobody can take it before"
}

// nextClock says when an item is due or, without a deadline, when the next of its clocks has run out, and what happens
// then.
func nextClock(x api.Item) string {
	if x.Deadline != nil || x.Due == nil {
		return untilDue(x.Deadline)
	}
	about := ""
	if x.Due.About {
		about = "about "
	}
	return dueWords[x.Due.Kind] + " " + about + untilDue(&x.Due.At)
}

// untilDue says when something is due, and how much time that leaves.
func untilDue(at *time.Time) string {
	if at == nil {
		return "-"
	}
	left := time.Until(*at)
	if left <= 0 {
		return clock(*at) + " (over)"
	}
	return fmt.Sprintf("%s (in %s)", clock(*at),
		days(left.Round(max(time.Second, left.Truncate(time.Minute)/60)).String()))
}

// passes says to whom an item passes by itself, when, and how much time that leaves.
func passes(x *api.Passing) string {
	if x == nil {
		return "-"
	}
	if !x.At.After(time.Now()) { // its holder has not said so yet
		return oneLine(x.To) + " " + clock(x.At) + " (by now)"
	}
	return oneLine(x.To) + " " + untilDue(&x.At)
}

// newClaimCommand makes a command that takes items or gives them back.
func newClaimCommand(claim, short, long string) *cobra.Command {
	var user userFlag
	var reason string
	done := map[string]string{
		api.ClaimSelect: "selected", api.ClaimLock: "locked", api.ClaimRelease: "given back",
	}[claim]
	cmd := &cobra.Command{
		Use:   claim + " ITEM... " + map[bool]string{true: "[--reason R] "}[claim == api.ClaimRelease] + "[--user U]",
		Short: short,
		Long:  long + forWhom,
		Example: "  mutirao worklist " + claim + " 3f9a\n  mutirao worklist " + claim +
			" 3f9a 77c0 --user bia",
		Args: arguments("ITEM..."),
		ValidArgsFunction: completeItems(&user,
			func(x api.Item) bool {
				free := x.State == api.ItemReady || x.State == api.ItemNotReady && claim == api.ClaimLock
				return len(x.WaitsFor) == 0 && x.Away == nil && !x.Unreachable && free == (claim != api.ClaimRelease)
			}),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			asked := api.WorklistQuery{User: user.who(), Ahead: claim == api.ClaimLock}
			items, err := whileAsked(ctx, u, node, asked, args, toTake, func() ([]api.Item, error) {
				return node.ClaimItems(ctx, api.ClaimRequest{User: user.who(), Claim: claim, Items: args, Reason: reason})
			})
			if err != nil {
				return err
			}
			var tasks []string
			for _, x := range items {
				tasks = append(tasks, workflow.WithLabel(x.Task, x.Label))
			}
			return u.done(items, "%s: %s", done, strings.Join(tasks, ", "))
		}),
	}
	if claim == api.ClaimRelease {
		cmd.Flags().StringVar(&reason, "reason", "", "`why`, for who takes it next: lists, show and log show it")
	}
	user.add(cmd)
	return cmd
}

func newItemCompleteCommand() *cobra.Command {
	var user userFlag
	var outputs []string
	var given filesFlag
	cmd := &cobra.Command{
		Use:   "complete ITEM [--output k=v]... [--file k=PATH]... [--user U]",
		Short: "An item is done",
		Long: `Hands in that an item is done, which the user has. Values of --output are read by the
types of the definition's data; a task may only set what its definition names under out.
If the user has lost the item meanwhile, the result is kept and shown, but does not
count: exit status 6. Of a locked item whose partner is out of reach it is kept here, and
handed in later by itself: mutirao outbox. (-o still chooses how results are printed.)` + forWhom,
		Example: `  mutirao worklist complete 3f9a --output report="two floors, smoke"
  mutirao worklist complete 3f9a --user bia`,
		Args:              arguments("ITEM"),
		ValidArgsFunction: completeItems(&user, func(x api.Item) bool { return x.State != api.ItemReady }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			values, err := pairs("output", "NAME=VALUE", outputs)
			if err == nil {
				err = given.give(ctx, node, values, "--output", func() (dataTypes, error) {
					sheet, err := node.ItemSheet(ctx, api.ItemQuery{User: user.who(), Item: args[0]})
					if err != nil {
						return nil, err
					}
					types := dataTypes{}
					for _, f := range sheet.Fields {
						types[f.Name] = workflow.DataType(f.Type)
					}
					return types, nil
				})
			}
			if err != nil {
				return err
			}
			x, err := u.finish(ctx, node, api.ItemResult{User: user.who(), Item: args[0], Outputs: values})
			if err != nil {
				return err
			}
			return u.done(x, "task %s of %s is completed%s%s", workflow.WithLabel(x.Task, x.Label), x.Instance, madeOf(x),
				onlyHere(x.OnlyHere))
		}),
	}
	cmd.Flags().StringArrayVar(&outputs, "output", nil, "a result, `NAME=VALUE`; may be repeated")
	given.add(cmd, "a result that is a file, which the partner that holds the task fetches from this node")
	addFormatFlag(cmd, cmd.Flags(), "output-format")
	user.add(cmd)
	return cmd
}

// finish hands in what a user made of an item.
func (u *ui) finish(ctx context.Context, node api.Service, r api.ItemResult) (*api.Item, error) {
	return whileAsked(ctx, u, node, api.WorklistQuery{User: r.User}, []string{r.Item}, toFinish,
		func() (*api.Item, error) { return node.FinishItem(ctx, r) })
}

func newItemFailCommand() *cobra.Command {
	var user userFlag
	var reason string
	cmd := &cobra.Command{
		Use:   "fail ITEM --reason R [--user U]",
		Short: "An item cannot be done",
		Long: `Hands in that an item cannot be done, which the user has. What follows is what the
definition says under on-failure.` + forWhom,
		Example:           `  mutirao worklist fail 3f9a --reason "no water"`,
		Args:              arguments("ITEM"),
		ValidArgsFunction: completeItems(&user, func(x api.Item) bool { return x.State != api.ItemReady }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usagef("worklist fail needs --reason: those who go on want to know it")
			}
			x, err := u.finish(ctx, node, api.ItemResult{User: user.who(), Item: args[0], Failed: true, Reason: reason})
			if err != nil {
				return err
			}
			return u.done(x, "task %s of %s has failed%s", workflow.WithLabel(x.Task, x.Label), x.Instance, whenThere(x))
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for its log")
	user.add(cmd)
	return cmd
}

// onlyHere says which files, by their data, no other partner has yet.
func onlyHere(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return "; only here until another partner that may read it has fetched it: " + strings.Join(files, ", ")
}

// madeOf says that what was made of an item is not handed in yet, and does not count by itself if it has passed on.
func madeOf(x *api.Item) string {
	if to := x.HasPassed(); to != "" {
		return fmt.Sprintf("; but it has passed to %s, as its deadline is near: what was made of it counts if it is adopted: "+
			"mutirao outbox", to)
	}
	return whenThere(x)
}

// whenThere says that something is not handed in yet.
func whenThere(x *api.Item) string {
	if x.Delivered && len(x.Awaits) > 0 {
		return "; it counts when this has: " + withLabels(x.Awaits, x.TaskLabels)
	}
	if x.Delivered {
		return ""
	}
	return "; " + x.Partner + " hears of it when it can be reached: mutirao outbox"
}

// completeItems completes the IDs of items.
func completeItems(
	user *userFlag, which func(api.Item) bool,
) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		node, err := connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		// None, when it fails.
		list, _ := node.Worklist(cmd.Context(), api.WorklistQuery{User: user.who(), Ahead: cmd.Name() == api.ClaimLock})
		var ids []string
		for _, x := range list {
			if which(x) {
				ids = append(ids, x.ID+"\t"+workflow.WithLabel(x.Task, x.Label))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
