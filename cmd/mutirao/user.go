package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// userVariable names the environment variable that says for whom a command is.
const userVariable = "MUTIRAO_USER"

func newUserCommand() *cobra.Command {
	return newGroup("user", "The users of the mesh, and who is signed in at this node",
		newUserAddCommand(), newUserSignInCommand(), newUserSignOutCommand(), newUserLinkCommand(),
		newUserListCommand(), newUserRemoveCommand())
}

// signInTime is how long signing in may take, over the worst link.
const signInTime = time.Minute

// tokenFlags are the options of a command that makes a sign-in token.
type tokenFlags struct{ expires, qr string }

func (t *tokenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.expires, "expires", "24h", "how `long` the token can be used")
	cmd.Flags().StringVar(&t.qr, "qr", "", "write its QR code into this new `file`, a PNG picture")
}

func (t *tokenFlags) within() (time.Duration, error) {
	within, err := workflow.ParseDuration(t.expires)
	if err != nil || within == 0 {
		return 0, usagef("--expires %s: want a duration such as 15m, 24h or 3d", t.expires)
	}
	return within, nil
}

// write prints a sign-in token, which the command makes.
func (t *tokenFlags) write(u *ui, tok *api.SignInToken, command string) error {
	if err := u.writeSecret(tok, tok.Token, command, t.qr); err != nil || u.format != "text" {
		return err
	}
	u.note("It can be used once until %s, on any member's node, while this one can be reached:\n  mutirao user sign-in TOKEN", clock(tok.Expires))
	return nil
}

func newUserAddCommand() *cobra.Command {
	var flags tokenFlags
	var roles []string
	cmd := &cobra.Command{
		Use:   "add NAME [--role R]... [--expires 24h] [--qr FILE]",
		Short: "Make a user, and a token by which it signs in",
		Long: `Makes a user of the mesh with these roles, and prints a sign-in token, on a terminal
with room for it also as a QR code. Whoever has the token signs in as the user, once.
All nodes learn of the user as they meet.

Only the founder and delegates add users. A partner needs none: it is a user by its own
name already. For a user that is signed in nowhere, since its token ran out or it signed
out, the same command without --role makes another token.`,
		Example: `  mutirao user add bia --role attendant
  mutirao user add rui --role technician --role driver --expires 3d
  mutirao user add bia --qr bia.png`,
		Args:    arguments("NAME"),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return checkRoles(cmd, roles) },
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			within, err := flags.within()
			if err != nil {
				return err
			}
			tok, err := node.AddUser(ctx, api.UserRequest{Name: args[0], Roles: roles, Expires: api.Span(within)})
			if err != nil {
				return err
			}
			return flags.write(u, tok, "user add")
		}),
	}
	cmd.Flags().StringSliceVar(&roles, "role", nil, "a `role` of the user; may be repeated")
	flags.add(cmd)
	return cmd
}

func newUserSignInCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sign-in TOKEN",
		Short: "Sign a user in at this node",
		Long: `Makes a key of the user in this node's folder, and has it certified by the node that
made the token, straight or by way of another member. If that fails half-way, the same
command goes on with the same key, and the token is used once in all.`,
		Example: `  mutirao user sign-in TOKEN`,
		Args:    arguments("TOKEN"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, signInTime)
			defer cancel()
			in, err := node.SignInUser(ctx, args[0])
			if err != nil {
				return err
			}
			return u.done(in, "%s is signed in at this node, with the roles %s", in.Name,
				orDash(strings.Join(in.Roles, ", ")))
		}),
	}
}

func newUserSignOutCommand() *cobra.Command {
	var yes, discard bool
	cmd := &cobra.Command{
		Use:   "sign-out NAME [--discard] [--yes]",
		Short: "Sign a user out at this node",
		Long: `Takes the user's key at this node back, in the whole mesh, and deletes it. The user's
other devices stay signed in, also those that were linked here. NAME is a name or a whole
ID. On a terminal the command asks first.

What the user did here and waits to be handed in (mutirao outbox) is signed by that key,
so no partner would take it any more: then it is refused (6), unless with --discard. What
was discarded stays in the outbox of this node, as refused.`,
		Example:           `  mutirao user sign-out bia`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeUsers(func(x api.User) bool { return x.Here && !x.Partner }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			has, did := hasNow(ctx, node, args[0])
			if u.asks(yes) && (discard || len(did) == 0) { // else the node refuses it
				who, err := describeUser(ctx, node, args[0])
				if err != nil {
					return err
				}
				lost := ""
				if len(has) > 0 {
					lost = "\nUnless the user is signed in at another node as well, others may take then what the user has here: " +
						firstOf(has) + "."
				}
				if len(did) > 0 {
					lost += "\nWhat was done and waits to be handed in is lost with it: " + firstOf(did) + "."
				}
				if err := u.confirm(yes, "The key of %s at this node is deleted, and nobody can take that back: "+
					"to sign in again takes another token.%s", who, lost); err != nil {
					return err
				}
			}
			out, err := node.SignOutUser(ctx, api.SignOutRequest{User: args[0], Discard: discard})
			if err != nil {
				return err
			}
			if out.Removed {
				return u.done(out, "the key of %s (%s), who was removed, is deleted at this node", out.Name, out.ID)
			}
			if err := u.done(out, "%s is signed out at this node", out.Name); err != nil {
				return err
			}
			if len(out.Devices) == 0 && len(has) > 0 {
				u.note("%s had these, which others may take now: %s", out.Name, firstOf(has))
			}
			if len(out.Devices) == 0 && u.format == "text" {
				u.note("%s is signed in nowhere now: for another token the founder or a delegate types mutirao user add %s", out.Name, out.Name)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&discard, "discard", false, "also if what was done here waits to be handed in, which is lost then")
	addYesFlag(cmd, &yes)
	return cmd
}

// firstOf names the first of some items, with how many more there are.
func firstOf(items []string) string {
	const most = 10
	if len(items) <= most {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
}

// hasNow are the items that a user has, and those that the user did here, which wait to be handed in.
func hasNow(ctx context.Context, node api.Service, user string) (has, did []string) {
	list, _ := node.Worklist(ctx, api.WorklistQuery{User: user}) // none, when it fails
	for _, x := range list {
		name := fmt.Sprintf("%s of %s %.10s", x.Task, cmp.Or(x.Subject, x.Workflow), x.Instance)
		switch x.State {
		case api.ItemSelected, api.ItemLocked:
			has = append(has, name)
		case api.ItemDone:
			did = append(did, name)
		}
	}
	return has, did
}

func newUserLinkCommand() *cobra.Command {
	var flags tokenFlags
	var user string
	cmd := &cobra.Command{
		Use:   "link [--user U] [--expires 24h] [--qr FILE]",
		Short: "Make a token for another device of a user who is signed in here",
		Long: `Makes a token by which a user who is signed in at this node signs in at another member's
node. No administrator is needed: the user's key here certifies the one there. If the
founder or a delegate removes this key, that one is void, too.

--user says who, or else ` + userVariable + `; without either the one user who is signed in
here.`,
		Example: `  mutirao user link
  mutirao user link --user bia --expires 15m`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			within, err := flags.within()
			if err != nil {
				return err
			}
			who, err := signedInUser(ctx, node, user)
			if err != nil {
				return err
			}
			tok, err := node.LinkUser(ctx, who, within)
			if err != nil {
				return err
			}
			return flags.write(u, tok, "user link")
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "the `user`")
	flags.add(cmd)
	return cmd
}

// userLister is a node that lists users.
type userLister interface {
	Users(ctx context.Context) ([]api.User, error)
}

// signedInUser is the user that is meant: the named one, that of the environment, or the
// only one who is signed in here.
func signedInUser(ctx context.Context, node userLister, named string) (string, error) {
	if named == "" {
		named = os.Getenv(userVariable)
	}
	if named != "" {
		return named, nil
	}
	here, err := usersHere(ctx, node)
	if err != nil {
		return "", err
	}
	switch len(here) {
	case 0:
		return "", api.Errorf(api.Refused,
			"no user is signed in at this node but the partner itself, which has no other device").
			WithHint("sign one in: mutirao user sign-in TOKEN")
	case 1:
		return here[0], nil
	}
	return "", severalHere(here)
}

// usersHere are the users who are signed in at a node, without the partner itself.
func usersHere(ctx context.Context, node userLister) (here []string, err error) {
	list, err := node.Users(ctx)
	for _, x := range list {
		if x.Here && !x.Partner {
			here = append(here, x.Name)
		}
	}
	return here, err
}

// oneHere refuses what somebody does of whom nobody could say who it is: none is named (user), and several users are
// signed in.
func oneHere(ctx context.Context, node userLister, user string) error {
	if user != "" {
		return nil
	}
	here, err := usersHere(ctx, node)
	if err == nil && len(here) > 1 {
		err = severalHere(here)
	}
	return err
}

// severalHere is the error where one of these users has to be named.
func severalHere(here []string) error {
	return usagef("%s are signed in here: say who with --user", strings.Join(here, ", "))
}

func newUserListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "The users: the partners, and those who were added",
		Long: `Lists all users with their roles and the partners at whose nodes they are signed in.
ACTIVE says that one of these can be reached now; HERE, who is signed in at this node.
DONE, ASSIGNED and SELECTED count people's tasks in the instances of which this node has
the facts: completed with success, to do, and begun or selected. A task that nobody
took from a worklist counts for the partner to which it went. -v adds the IDs.`,
		Example: `  mutirao user list
  mutirao user list -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Users(ctx)
			if err != nil {
				return err
			}
			return u.result(list, func(w io.Writer) { u.writeUsers(w, list) })
		}),
	}
}

func (u *ui) writeUsers(w io.Writer, list []api.User) {
	t := table{head: []string{"NAME", "ROLES", "DEVICES", "ACTIVE", "HERE", "DONE", "ASSIGNED", "SELECTED"}}
	if u.verbose {
		t.head = append(t.head, "ID")
	}
	for _, x := range list {
		row := []string{
			x.Name, orDash(strings.Join(x.Roles, ", ")), orDash(strings.Join(x.Devices, ", ")), yesNo(x.Active),
			yesNo(x.Here),
			strconv.Itoa(x.Done), strconv.Itoa(x.Assigned), strconv.Itoa(x.Selected),
		}
		if u.verbose {
			row = append(row, x.ID)
		}
		t.add(row...)
	}
	t.write(u, w, "")
	for _, x := range list {
		if x.Namesake != "" && !x.Partner {
			fmt.Fprintf(w, "%s is the name of a user (%s) and of a partner (%s), as two sides of a split gave it: name them by ID; mutirao doctor says what to do\n",
				oneLine(x.Name), x.ID, x.Namesake)
		}
	}
	if !u.verbose {
		return
	}
	for _, x := range list {
		for _, k := range x.Keys {
			fmt.Fprintf(w, "key of %s at %s until %s: %s\n", x.Name, k.Device, clock(k.Until), k.ID)
		}
	}
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func newUserRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME [--yes]",
		Short: "Remove a user from the mesh for good, or one of its keys",
		Long: `Removes a user: its keys on all devices are void from the moment a node hears of it, and
it cannot be taken back. NAME is a name or a whole ID. With the whole ID of one key,
which user list -v shows, only that key is removed, and those that it has linked: that is
what to do when a device is lost. On a terminal the command asks first.

Only the founder and delegates remove users. A partner is removed with mutirao evict, and
with it go the keys of users at its node.`,
		Example: `  mutirao user remove bia
  mutirao user remove bia --yes`,
		Args:              arguments("NAME"),
		ValidArgsFunction: completeUsers(func(x api.User) bool { return !x.Partner }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			who, err := describeUser(ctx, node, args[0])
			if err != nil {
				return err
			}
			if err := u.confirm(yes, "%s is removed from the mesh for good, and nobody can take that back.", who); err != nil {
				return err
			}
			gone, err := node.RemoveUser(ctx, args[0])
			switch {
			case err != nil:
				return err
			case gone.Key != "":
				return u.done(gone, "a key of %s was removed, and what it had linked", gone.Name)
			}
			return u.done(gone, "user %s was removed", gone.Name)
		}),
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// describeUser is a user with what tells it from others. Nobody is asked about one that is
// not there.
func describeUser(ctx context.Context, node userLister, ref string) (string, error) {
	list, err := node.Users(ctx)
	if err != nil {
		return "", err
	}
	ref = workflow.UsualForm(ref)
	there := false
	var begun []api.User // whose ID begins so
	for _, x := range list {
		if !x.Partner && ref != "" && strings.HasPrefix(x.ID, ref) {
			begun = append(begun, x)
		}
		name, _, _ := strings.Cut(x.Name, " (") // of users of one name, Name has the beginning of the ID, too
		there = there || name == ref || x.ID == ref
		if !x.Partner && x.Name == ref && name != ref { // its label
			return "", onlyBeginning(ref).WithHint("if you mean %s, type %s", x.Name, x.ID)
		}
		if !x.Partner && (x.Name == ref || x.ID == ref) {
			return fmt.Sprintf("user %s (%s, roles %s, at %s)", x.Name, x.ID, orDash(strings.Join(x.Roles, ", ")),
				orDash(strings.Join(x.Devices, ", "))), nil
		}
		for _, k := range x.Keys {
			if k.ID == ref {
				return fmt.Sprintf("the key of user %s at %s", x.Name, k.Device), nil
			}
		}
	}
	switch {
	case there:
		return ref, nil // the command itself will say what is wrong
	case len(begun) == 1:
		return "", onlyBeginning(ref).WithHint("if you mean %s, type %s", begun[0].Name, begun[0].ID)
	case len(begun) > 1:
		return "", onlyBeginning(ref)
	}
	return "", api.Errorf(api.NotFound, "no such user: %q", ref).WithHint("mutirao user list shows them")
}

// completeUsers completes the name of a user as the only argument.
func completeUsers(which func(api.User) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return userNames(which)(cmd, args, word)
	}
}

// userNames completes the name of a user as the value of an option.
func userNames(which func(api.User) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		node, err := connect(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := node.Users(cmd.Context()) // none, when it fails
		var names []string
		for _, x := range list {
			if which(x) {
				names = append(names, x.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
