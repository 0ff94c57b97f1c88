package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newInstancesCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "instances [--all]",
		Short: "The instances that this node takes part in; at the coordinator, the whole mesh's",
		Long: `Lists what runs: the instances that this node takes part in and, while it holds the
office of coordinator, those of all partners, as they report them. KNOWN-BY then says
who reported an instance, and since when nothing was heard of it where that partner
cannot be reached. TASKS ENDED counts those of which nothing more is expected, whether
they succeeded, failed or are blocked. NEEDS A PERSON says what has failed or is
blocked, what nobody can perform, and how many incidents there were. With --all also
those that have ended; of some only a summary is kept (limits.keep in config.yaml).`,
		Example: `  mutirao instances
  mutirao instances --all -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, err := node.Instances(ctx, all)
			if err != nil {
				return err
			}
			switch {
			case len(list) > 0:
			case all:
				u.note("none yet; start one: mutirao start WORKFLOW (mutirao workflow list shows which there are)")
			default:
				u.note("nothing runs; --all shows what has ended, mutirao start WORKFLOW begins something")
			}
			return u.result(list, func(w io.Writer) { u.writeInstances(w, list) })
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "finished ones too")
	return cmd
}

func (u *ui) writeInstances(w io.Writer, list []api.InstanceSummary) {
	t := table{head: []string{"ID", "WORKFLOW", "VERSION", "STATE", "TASKS ENDED", "AT", "STARTED", "ENDED"}, states: 4}
	mesh := slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return len(in.KnownBy) > 0 })
	if mesh {
		t.head = append(t.head, "KNOWN-BY")
	}
	needs := slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return len(in.Needs) > 0 })
	if needs {
		t.head = append(t.head, "NEEDS A PERSON")
	}
	for _, in := range list {
		state := string(in.State)
		if in.Quarantine != nil {
			state = "QUARANTINED"
		}
		done := progress(in.Done, in.Tasks)
		if in.Closed != nil {
			done = "summary"
		}
		row := []string{
			u.id(in.ID), orDash(string(in.Workflow)), strconv.Itoa(in.Version), state, done, whereAt(in),
			clock(in.Started), clockOf(in.Ended),
		}
		if mesh {
			row = append(row, knownBy(in.KnownBy, time.Now()))
		}
		if needs {
			row = append(row, orDash(strings.Join(inWords(in.Needs), "; ")))
		}
		t.add(row...)
	}
	t.write(u, w, "")
	for _, in := range list {
		for _, n := range in.Needs {
			if n.Kind == "failed" && len(n.Tasks) > 0 {
				fmt.Fprintf(w, "%s waits for an order about %s: mutirao show %s says who decides, and what can be ordered\n",
					u.id(in.ID), oneLine(string(n.Tasks[0])), u.id(in.ID))
			}
		}
		if in.Quarantine != nil {
			fmt.Fprintf(w, "%s is set aside since %s: %s\n", u.id(in.ID), clock(in.Quarantine.Since), oneLine(in.Quarantine.Why))
		}
	}
}

// whereAt names the partners that an instance's work is with, and as of when
// that is known.
func whereAt(in api.InstanceSummary) string {
	at := orDash(strings.Join(in.At, ", "))
	if in.Known != "" {
		at += " (" + in.Known + ")"
	}
	return at
}

// inWords says why an instance needs a person.
func inWords(needs []api.Need) []string {
	var out []string
	for _, n := range needs {
		tasks := make([]string, len(n.Tasks))
		for i, t := range n.Tasks {
			tasks[i] = string(t)
		}
		of := strings.Join(tasks, ", ")
		if more := n.Number - len(tasks); more > 0 && of != "" {
			of += fmt.Sprintf(" and %d more", more)
		}
		switch n.Kind {
		case "failed", "blocked":
			out = append(out, n.Kind+": "+of)
		case "nobody":
			out = append(out, "nobody can perform "+of)
		default:
			out = append(out, plural(n.Number, "incident"))
		}
	}
	return out
}

// progress is how many tasks have ended, well or not, of how many.
func progress(done, tasks int) string {
	if tasks == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", done, tasks)
}

// knownBy are the partners that reported an instance. What is reported by those
// that cannot be reached may have changed since.
func knownBy(witnesses []api.Witness, now time.Time) string {
	var out []string
	for _, w := range witnesses {
		name := w.Name
		if w.State != "active" {
			name += fmt.Sprintf(" (%s, %s)", w.State, ago(now, w.At))
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return "here"
	}
	return strings.Join(out, ", ")
}
