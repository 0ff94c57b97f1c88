package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newResourcesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resources [QUERY]",
		Short: "What there is in the mesh, and who has it",
		Long: `The catalogue: roles, capabilities, applications, data sets and spare capacity of all
partners that are not gone, and what this node learned of them from finished work. All
words of QUERY must be found in a resource's kind and name, or in its holder's name.`,
		Example: `  mutirao resources
  mutirao resources pump
  mutirao resources capacity
  mutirao resources application report -o json
  mutirao resources add flood-map --data map.json`,
		Args: cobra.ArbitraryArgs,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			list, err := node.Resources(ctx, strings.Join(args, " "))
			if err != nil {
				return err
			}
			switch {
			case len(list) > 0:
			case len(args) > 0:
				u.note("nobody has anything like %q; \"mutirao resources\" lists all there is", strings.Join(args, " "))
			default:
				u.note("none yet; say what this partner has: mutirao profile set -h")
			}
			return u.result(list, func(w io.Writer) { u.writeResources(w, list) })
		}),
	}
	cmd.AddCommand(newResourcesAddCommand(), newResourcesRemoveCommand())
	return cmd
}

func newResourcesAddCommand() *cobra.Command {
	var file, valid string
	var terms api.DataTerms
	cmd := &cobra.Command{
		Use:   "add NAME --data FILE",
		Short: "Register materialised data at this partner",
		Long: `Registers the content of FILE (- for stdin, at most 64 KiB) as data set NAME, in place of
what this partner had under that name. A task that "produces: NAME", and is there for
nothing else, is dropped from the instances that are started from now on: their tasks
read the data set. FILE is a JSON object with a value for each name under the task's
out; for a task with one name it may be the value itself, as text.
What a task makes under NAME is registered by itself, for the author of its workflow,
but not while this is valid.`,
		Example: `  mutirao resources add flood-map --data map.json
  echo 4.2 | mutirao resources add water-level --data - --valid 6h --reader medic`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef("--data is missing: the file with the data")
			}
			if valid != "" {
				d, err := workflow.ParseDuration(valid)
				if err != nil || d == 0 {
					return usagef("--valid %q: want a duration above 0, such as 24h", valid)
				}
				terms.Valid = d
			}
			content, err := readSource(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			if len(content) == maxRead {
				return api.Errorf(api.Invalid, "data set %s: %s has %d bytes or more, which is too large for one", args[0], file, maxRead).
					WithHint("its values become part of the instances that read it; register a reference to what is larger")
			}
			return ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
				d, err := node.AddData(ctx, args[0], content, terms)
				if err != nil {
					return err
				}
				return u.done(d, "data set %s (%.10s) is registered: %d bytes", d.Name, d.Hash, d.Size)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&file, "data", "", "the `file` with the data")
	cmd.Flags().StringVar(&valid, "valid", "", "for how `long` it is valid from now on, such as 24h (default for ever)")
	cmd.Flags().StringArrayVar(&terms.Readers, "reader", nil,
		"a `role`, or a partner by name or ID, who may read it, may be repeated (default everybody)")
	return cmd
}

func newResourcesRemoveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove NAME [--yes]",
		Short: "Take data of this partner off the catalogue",
		Long: `Takes all that this partner has as data set NAME off the catalogue, also what tasks
made. Instances that read it keep its values. On a terminal the command asks first.`,
		Example: `  mutirao resources remove flood-map`,
		Args:    arguments("NAME"),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if u.asks(yes) {
				if err := u.confirmDataSet(ctx, node, args[0]); err != nil {
					return err
				}
			}
			if err := node.RemoveData(ctx, args[0]); err != nil {
				return err
			}
			return u.done(map[string]string{"name": args[0], "state": "removed"}, "data set %s is removed", args[0])
		}),
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// confirmDataSet asks whether a data set is to be removed. Nobody is asked about one that is not in the mesh.
func (u *ui) confirmDataSet(ctx context.Context, node api.Service, name string) error {
	list, err := node.Resources(ctx, name)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.Kind == "data" && r.Name == name {
			return u.confirm(false, "Data set %s of this partner is no longer to be had: the tasks that make it run again, "+
				"unless somebody adds it.", oneLine(name))
		}
	}
	return nil // the node says so
}

func (u *ui) writeResources(w io.Writer, list []api.Resource) {
	t := table{head: []string{"KIND", "NAME", "PARTNER", "STATE", "SPARE"}, states: 4}
	noted := slices.ContainsFunc(list, func(r api.Resource) bool {
		return slices.ContainsFunc(r.Holders, func(h api.Holder) bool { return noteOf(h) != "" })
	})
	if noted {
		t.head = append(t.head, "NOTE")
	}
	for _, r := range list {
		name := r.Name
		if r.Kind == "data" {
			name = fmt.Sprintf("%s (%d bytes)", r.Name, r.Size)
		}
		for _, h := range r.Holders {
			row := []string{r.Kind, name, h.Name, h.State, fmt.Sprintf("%.2f", h.Spare)}
			if noted {
				row = append(row, orDash(noteOf(h)))
			}
			t.add(row...)
		}
	}
	t.write(u, w, "")
}

// noteOf says what holds of a resource at one partner: of data whose workflow made it,
// until when it is valid, and which partners may read it.
func noteOf(h api.Holder) string {
	var notes []string
	if h.Note != "" {
		notes = append(notes, h.Note)
	}
	if h.Author != "" {
		notes = append(notes, "made by a workflow of "+h.Author)
	}
	if h.ValidUntil != nil {
		notes = append(notes, "until "+clock(*h.ValidUntil))
	}
	if len(h.Readers) > 0 {
		notes = append(notes, "for "+strings.Join(h.Readers, ", "))
	}
	return strings.Join(notes, ", ")
}
