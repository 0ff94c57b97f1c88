package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// commands are all the commands, by the heading under which help shows them.
// This is the one place where a command is registered.
func commands() map[string][]*cobra.Command {
	return map[string][]*cobra.Command{
		meshGroup: {
			newInitCommand(), newInviteCommand(), newJoinCommand(), newUpCommand(),
			newStatusCommand(), newPartnersCommand(), newEvictCommand(), newLeaveCommand(), newCoordinatorCommand(),
			newProfileCommand(), newResourcesCommand(), newWebCommand(), newTokenCommand(), newUserCommand(),
			newRoleCommand(), newDoctorCommand(),
		},
		workflowGroup: {newWorkflowCommand()},
		instanceGroup: {
			newStartCommand(), newInstancesCommand(), newShowCommand(), newLogCommand(), newHistoryCommand(),
			newRecoverCommand(), newAmendCommand(),
			newDiagramCommand(), newGanttCommand(), newCancelCommand(), newNotifyCommand(), newWriteOffCommand(),
			newTaskCommand(), newWorkerCommand(), newWorklistCommand(), newOutboxCommand(), newMessagesCommand(),
			newDataCommand(),
		},
		programGroup: {newDemoCommand(), newStudyCommand(), newCompletionCommand(), newVersionCommand()},
	}
}

// The headings, in the order of help.
const (
	meshGroup     = "The node and its mesh:"
	workflowGroup = "Definitions:"
	instanceGroup = "Instances and tasks:"
	programGroup  = "This program:"
)

const rootLong = `Mutirão carries workflows from partner to partner, also when the network does
not: every partner runs the same node, and nodes hand work to each other directly.

Commands talk to the node that runs in --dir; those marked ° need none.
Results go to stdout, everything else to stderr.

Exit status: 0 done; 1 failed; 2 wrong usage; 3 no such thing; 4 no running node;
5 not allowed; 6 refused by a rule; 124 start --wait: still running at its time-out.`

// newRoot returns the program's command line.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "mutirao",
		Short: "A workflow that keeps going when the network does not",
		Long:  rootLong,
		Example: `  mutirao init --mesh fire-service --name station
  mutirao up
  mutirao start fire-call --input address="Rua 1" --wait`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return checkOutputFlags(cmd) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return wrongFlag(err) })
	root.SetHelpCommand(newHelpCommand())
	root.Version = thisBuild().String()
	root.SetVersionTemplate("{{.Version}}\n")
	f := root.PersistentFlags()
	f.SortFlags = false
	f.String("dir", defaultDir(), "the node's `folder`")
	f.Lookup("dir").DefValue = "$MUTIRAO_DIR, else ~/.mutirao"
	addFormatFlag(root, f, "output")
	f.String("color", "auto", "`when` to use colour: auto, always or never; NO_COLOR is honoured")
	f.BoolP("quiet", "q", false, "say nothing but results and errors")
	f.BoolP("verbose", "v", false, "say more: complete IDs, more columns, a fuller log")
	completeWords(root, "color", colorModes...)

	all := commands()
	for _, title := range []string{meshGroup, workflowGroup, instanceGroup, programGroup} {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, cmd := range all[title] {
			cmd.GroupID = title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newPlannedCommands()...)
	root.SetHelpCommandGroupID(programGroup)
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return root
}

// newHelpCommand returns the command that cobra would add, but for its exit status
// where there is no such command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "° Help about a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if of, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range of.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name()+"\t"+c.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err == nil && of.Hidden { // planned: it says so itself
				return of.RunE(of, rest)
			}
			if err != nil || len(rest) > 0 {
				return unknownCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// wrongFlag says what an option wants, in the words of people.
func wrongFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%v", err)
	}
	f := invalid.GetFlag()
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0 up",
		"bool": "true or false", "float64": "a number",
		"duration": "a duration such as 500ms, 10s or 5m", "state": "a number of a state, such as 1 or S1",
	}[f.Value.Type()]
	n, ranged := f.Value.(*whole)
	switch {
	case ranged:
		want = fmt.Sprintf("a whole number from %d to %d", n.from, n.to)
	case want == "":
		want = "a value of another kind"
	case errors.Is(err, strconv.ErrRange):
		want += " that is not so large"
	}
	return usagef("--%s %s: want %s", f.Name, invalid.GetValue(), want)
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = terminal{stdout}, terminal{stderr}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false
	check := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		began = true
		return check(cmd, args)
	}
	cmd, err := root.ExecuteContextC(ctx)
	var shown *api.Error
	if err != nil && !began && !errors.As(err, &shown) {
		err = usagef("%v", err) // what goes wrong before a command begins is how it was used
	}
	return report(stderr, cmd, err)
}

func defaultDir() string {
	if dir := os.Getenv("MUTIRAO_DIR"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ".mutirao"
	}
	return filepath.Join(home, ".mutirao")
}

// nodeDir is the folder that --dir names.
func nodeDir(cmd *cobra.Command) string { return cmd.Flag("dir").Value.String() }

// newGroup returns a command that only holds others.
func newGroup(use, short string, cmds ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	g.AddCommand(cmds...)
	g.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usagef("%s needs one of: %s", pathOf(cmd), strings.Join(names, ", "))
	}
	return g
}

// whole is an option that is a whole number within a range, which is said of a wrong one.
type whole struct {
	n        *int
	from, to int
}

func (w *whole) String() string {
	if w.n == nil { // help compares with the empty one
		return ""
	}
	return strconv.Itoa(*w.n)
}

func (w *whole) Type() string { return "whole" }

func (w *whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err == nil && (n < w.from || n > w.to) {
		err = strconv.ErrRange
	}
	*w.n = n
	return err
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	err := api.Errorf(api.Invalid, "there is no command %q", strings.TrimSpace(pathOf(cmd)+" "+name))
	if begun := beginning(names, name); len(begun) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(begun, " or "))
	}
	if near := workflow.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("mutirao %s", strings.TrimSpace("help "+pathOf(cmd)))
}

// beginning are the names that begin with what was typed; of more than three none.
func beginning(names []string, typed string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return typed == "" || !strings.HasPrefix(n, typed)
	})
	if len(out) > 3 {
		return nil
	}
	return out
}

// pathOf is a command's words without the program's.
func pathOf(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
}

// arguments demands exactly these arguments; a last name that ends in "..."
// stands for one or more.
func arguments(names ...string) cobra.PositionalArgs { return argumentsFrom(len(names), names...) }

// argumentsFrom demands so many of the arguments; those after them may be left out.
func argumentsFrom(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return usagef("%s needs %s", pathOf(cmd), strings.Join(names[len(args):least], " and "))
		}
		open := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		if len(args) > len(names) && !open {
			return usagef("%s takes %s: what is %q?", pathOf(cmd), orNothing(names), args[len(names)])
		}
		return nil
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return "only " + strings.Join(names, " and ")
}

// pairs reads repeated k=v options; form is how one is written.
func pairs(flag, form string, texts []string) (map[string]string, error) {
	out := make(map[string]string, len(texts))
	for _, s := range texts {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, usagef("--%s %s: want %s", flag, s, form)
		}
		if _, twice := out[k]; twice {
			return nil, usagef("--%s: %s is given twice", flag, k)
		}
		out[k] = v
	}
	return out, nil
}

// oneOf checks an option that takes one of a few words.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usagef("--%s %s: want one of %s", flag, value, strings.Join(allowed, ", "))
}
