package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newShowCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "show ID [--watch]",
		Short: "Where an instance stands, as this node knows it",
		Long: `Shows an instance: its partitions and who holds them, its tasks and their states,
its data, and what people should look at. ID may be any unique prefix.`,
		Example: `  mutirao show 3f9a0c21d4
  mutirao show 3f9a --watch          # until it has ended
  mutirao show 3f9a -o json`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			return u.show(ctx, node, watch, func() (document, error) {
				in, err := node.Show(ctx, args[0])
				if err != nil {
					return document{}, err
				}
				return document{v: in, text: func(w io.Writer) { u.writeInstance(w, in) }, more: in.Ended == nil}, nil
			})
		}),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes, until it has ended")
	return cmd
}

func (u *ui) writeInstance(w io.Writer, in *api.Instance) {
	fmt.Fprintf(w, "%s@%d  %s  %s\n", u.paint(bold, string(in.Workflow)), in.Version, in.ID, u.paint(styleOf(string(in.State)), string(in.State)))
	fmt.Fprintf(w, "started %s, ended %s, by %s, responsible %s\n", clock(in.Started), clockOf(in.Ended), in.Coordination, orDash(string(in.Responsible)))
	if in.Duplicated {
		fmt.Fprintln(w, u.paint(yellow, "duplicated: two executions of a task were both built upon"))
	}
	fmt.Fprintln(w)
	u.writePartitions(w, in.Partitions)
	fmt.Fprintln(w)
	u.writeTasks(w, in.Tasks)
	u.writeData(w, in.Data)
	for _, c := range in.Conflicts {
		fmt.Fprintf(w, "%s %s was given different values at the same time: %s\n", u.paint(yellow, "conflict:"), c.Data, oneLine(text(c.Values)))
	}
	for _, i := range in.Incidents {
		fmt.Fprintf(w, "%s %s %s\n", u.paint(yellow, "incident:"), clock(i.At), oneLine(i.What))
	}
}

func (u *ui) writePartitions(w io.Writer, list []api.Partition) {
	t := table{head: []string{"PARTITION", "PARTNER", "ATTEMPT", "STATE", "TIMEOUT"}, states: 4}
	for _, p := range list {
		t.add(string(p.Name), orDash(p.Partner), strconv.Itoa(p.Attempt), orDash(p.State), orDash(p.Timeout))
	}
	t.write(u, w, "")
}

func (u *ui) writeTasks(w io.Writer, list []api.Task) {
	t := table{head: []string{"TASK", "PARTITION", "PARTNER", "STATE", "STARTED", "ENDED", "REMARKS"}, states: 4}
	for _, task := range list {
		t.add(string(task.Name), orDash(string(task.Partition)), orDash(task.Partner), string(task.State), clockOf(task.Started), clockOf(task.Ended), remarks(task))
	}
	t.write(u, w, "")
}

// remarks are what is out of the ordinary about a task.
func remarks(t api.Task) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Attempt > 1 {
		add("attempt %d", t.Attempt)
	}
	if t.ContingencyOf != nil {
		add("stands in for %s", *t.ContingencyOf)
	}
	if t.ReplacedBy != nil {
		add("replaced by %s", *t.ReplacedBy)
	}
	if t.TriggerFired {
		add("emergency trigger fired")
	}
	for _, s := range t.Superseded {
		add("superseded: %s at %s", s.Task, s.Partner)
	}
	if t.Reason != "" {
		out = append(out, t.Reason)
	}
	return strings.Join(out, "; ")
}

func (u *ui) writeData(w io.Writer, data map[string]any) {
	if len(data) == 0 {
		return
	}
	t := table{head: []string{"DATA", "VALUE"}}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		t.add(name, text(data[name]))
	}
	fmt.Fprintln(w)
	t.write(u, w, "")
}

// text is a value for people: strings as they are, everything else as JSON.
func text(v workflow.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
