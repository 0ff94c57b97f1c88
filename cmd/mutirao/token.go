package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

func newTokenCommand() *cobra.Command {
	return newGroup("token", "Tokens with which programs may use this node", newTokenAddCommand(),
		newTokenListCommand(), newTokenRemoveCommand())
}

func newTokenAddCommand() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "add NAME --scope read|work|admin|worker:APPLICATION",
		Short: "Make a token for a program",
		Long: `Makes a token for a program that uses the local API, and prints it, once: the node
keeps only its hash. The program sends it as "Authorization: Bearer TOKEN".

read looks at everything and changes nothing; work also starts and cancels instances,
finishes and rejects tasks, registers data and does jobs; admin does all that this command
line does. worker:APPLICATION takes the jobs of that application and brings their results,
and does nothing else; with it workers may do the application at this node.

This command line needs no token: it takes the one in the node's folder.`,
		Example: `  mutirao token add dashboard --scope read
  mutirao token add dispatch --scope work > dispatch.token
  mutirao token add scales --scope worker:weigh
  mutirao token add backup --scope admin -o json`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if scope == "" {
				return usagef("--scope is missing: want read, work, admin or worker:APPLICATION")
			}
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			made, err := node.AddToken(cmd.Context(), httpapi.TokenRequest{Name: args[0], Scope: scope})
			if err != nil {
				return err
			}
			u := uiOf(cmd)
			u.note("keep it now: it is not shown again")
			return u.result(made, func(w io.Writer) { fmt.Fprintln(w, made.Token) })
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "",
		"what the token lets a program do: read, `work`, admin or worker:APPLICATION")
	completeWords(cmd, "scope", "read", "work", "admin")
	return cmd
}

func newTokenListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "The tokens that were added",
		Example: `  mutirao token list
  mutirao token list -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			list, err := node.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			u := uiOf(cmd)
			if len(list) == 0 {
				u.note("there are none; make one: mutirao token add NAME --scope read")
			}
			return u.result(list, func(w io.Writer) {
				t := table{head: []string{"NAME", "SCOPE", "ADDED"}}
				for _, k := range list {
					t.add(k.Name, k.Scope, clock(k.Added))
				}
				t.write(u, w, "")
			})
		},
	}
}

// removedToken is what token remove prints for programs.
type removedToken struct {
	Removed string `json:"removed"`
}

func newTokenRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME [--yes]",
		Short: "Take a token back, at once",
		Long: `Removes a token. Nobody is let in with it from then on, and what is under way with
it, event streams too, ends. On a terminal the command asks first.`,
		Example: `  mutirao token remove dashboard`,
		Args:    arguments("NAME"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			node, err := connect(cmd)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			list, _ := node.Tokens(cmd.Context()) // none, when it fails
			var names []string
			for _, k := range list {
				names = append(names, k.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			u := uiOf(cmd)
			if u.asks(yes) {
				if err := u.confirmToken(cmd.Context(), node, args[0]); err != nil {
					return err
				}
			}
			if err := node.RemoveToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			return u.done(removedToken{args[0]}, "token %s was removed", args[0])
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// confirmToken asks whether a token is to be removed. Nobody is asked about one that is not there.
func (u *ui) confirmToken(ctx context.Context, node tokenLister, name string) error {
	list, err := node.Tokens(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(t httpapi.Token) bool { return t.Name == name })
	if i < 0 {
		return nil // the node says so
	}
	return u.confirm(false, "Token %s (%s) lets nobody in any more, and nobody can take that back: whoever uses it needs another one.",
		oneLine(name), list[i].Scope)
}

// tokenLister lists the tokens of a node.
type tokenLister interface {
	Tokens(ctx context.Context) ([]httpapi.Token, error)
}
