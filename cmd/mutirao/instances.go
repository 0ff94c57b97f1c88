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
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newInstancesCommand() *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use:   "instances [--all] [--limit N]",
		Short: "The instances that this node takes part in; at the coordinator, the whole mesh's",
		Long: `Lists what runs, and what is blocked or has failed and waits for an order: the instances
that this node takes part in; of others those that wait for somebody at this node who
decides about them, and those that run and in which somebody here has, or had, an item, as
partners say that are asked (of each the newest 200); and, while it holds the office of
coordinator, those of all partners, as they report them. What has failed leaves the list
when it is ordered what becomes of that (mutirao task again, mutirao task continue) or
when it is cancelled. KNOWN-BY says who reported an instance, and since when nothing was
heard of it where that partner cannot be reached. DONE counts the tasks that succeeded,
by themselves or by a contingency, or that are not needed, of all. NEEDS A PERSON says
what has failed or is blocked, what goes on at its holder though others presumed that it
failed, what nobody can perform, and how many incidents there were. What can be done
about that is said on stderr.
With --all also those that have ended; of some only a summary is kept (limits.keep in
config.yaml). --limit 20 lists the newest 20.`,
		Example: `  mutirao instances
  mutirao instances --all -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			list, more, err := newest(ctx, node, all, limit)
			if err != nil {
				return err
			}
			if more {
				u.note("there are more than %d; without --limit all are listed", limit)
			}
			switch {
			case len(list) > 0:
			case all:
				u.note("none yet; start one: mutirao start WORKFLOW (mutirao workflow list shows which there are)")
			default:
				u.note("nothing runs, and nothing waits for an order; --all shows what has ended, mutirao start WORKFLOW begins something")
			}
			if err := u.result(list, func(w io.Writer) { u.writeInstances(w, list) }); err != nil || u.format != "text" {
				return err
			}
			u.adviseOn(list)
			return nil
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "finished ones too")
	cmd.Flags().VarP(&whole{&limit, 1, api.MaxPage}, "limit", "n",
		"how many at most, the newest: a `number` from 1 to 1000 (default: all)")
	return cmd
}

// newest lists instances, at most limit of them, and says whether there are more; limit 0: all.
func newest(
	ctx context.Context, node api.Service, all bool, limit int,
) (list []api.InstanceSummary, more bool, err error) {
	if limit == 0 {
		list, err = node.Instances(ctx, all)
		return list, false, err
	}
	page, err := node.InstancePage(ctx, api.InstanceQuery{All: all, Limit: limit})
	if err != nil {
		return nil, false, err
	}
	return page.Instances, page.Next != "", nil
}

func (u *ui) writeInstances(w io.Writer, list []api.InstanceSummary) {
	t := table{head: []string{"ID", "WORKFLOW", "VERSION", "STATE", "DONE", "AT", "STARTED", "ENDED"}, states: 4}
	mesh := slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return len(in.KnownBy) > 0 })
	if mesh {
		t.head = append(t.head, "KNOWN-BY")
	}
	needs := slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return len(in.Needs) > 0 })
	if needs {
		t.head = append(t.head, "NEEDS A PERSON")
	}
	labels := slices.ContainsFunc(list, func(in api.InstanceSummary) bool { return in.Label != "" })
	if labels {
		t.head = append(t.head, "LABEL")
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
		if labels {
			row = append(row, orDash(in.Label))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}

// adviseOn says what to do about instances. It is no result: a program that reads the table finds one row for each.
func (u *ui) adviseOn(list []api.InstanceSummary) {
	for _, in := range list {
		if in.State == workflow.InstanceBlocked && !slices.ContainsFunc(in.Needs, api.Need.Waits) {
			u.note("%s is blocked: mutirao show %s shows what failed, or cannot come; who decides about it can end it: mutirao cancel %s",
				u.id(in.ID), u.id(in.ID), u.id(in.ID))
		}
		if in.State == workflow.InstanceInterrupted {
			u.note("%s is interrupted: mutirao recover %s says why, and what can be done", u.id(in.ID), u.id(in.ID))
		}
		for _, n := range in.Needs {
			if hint := u.decides(in.ID, n); hint != "" {
				u.note("%s", hint)
			}
		}
		if in.Quarantine != nil {
			u.note("%s is set aside since %s: %s", u.id(in.ID), clock(in.Quarantine.Since), oneLine(in.Quarantine.Why))
		}
	}
}

// whereAt names the partners that an instance's work is with, and as of when
// that is known.
func whereAt(in api.InstanceSummary) string {
	at := orDash(strings.Join(in.At, ", "))
	switch {
	case len(in.Away) > 0:
		for _, a := range in.Away {
			at += " (" + a.Partner + " is away until about " + clock(a.Until) + ", as it announced)"
		}
	case in.Known == "":
	case len(in.At) == 1 && in.At[0] == in.Of:
		at += " (" + in.Known + ")"
	default: // not what is done there, or not all of it
		at += " (" + in.Of + ": " + in.Known + ")"
	}
	return at
}

// decides says of which of its tasks somebody is to decide something, and how; empty: of none.
func (u *ui) decides(id string, n api.Need) string {
	if len(n.Tasks) == 0 {
		return ""
	}
	task := oneLine(workflow.WithLabel(string(n.Tasks[0]), n.TaskLabels[string(n.Tasks[0])]))
	switch {
	case n.Kind == api.NeedOverdue:
		return fmt.Sprintf("%s: the deadline of %s is over; who decides can say: mutirao task extend|continue|transfer|stop %s %s",
			u.id(id), task, u.id(id), n.Tasks[0])
	case n.Waits():
		return fmt.Sprintf("%s waits for an order about %s: mutirao show %s says who decides, and what can be ordered",
			u.id(id), task, u.id(id))
	}
	return ""
}

// inWords says why an instance needs a person.
func inWords(needs []api.Need) []string {
	var out []string
	for _, n := range needs {
		tasks := make([]string, len(n.Tasks))
		for i, t := range n.Tasks {
			tasks[i] = workflow.WithLabel(string(t), n.TaskLabels[string(t)])
		}
		of := strings.Join(tasks, ", ")
		if more := n.Number - len(tasks); more > 0 && of != "" {
			of += fmt.Sprintf(" and %d more", more)
		}
		switch n.Kind {
		case api.NeedFailed, "blocked":
			if n.Kind == api.NeedFailed && !n.Waits() {
				of += " (as others presume: it may go on)"
			}
			out = append(out, n.Kind+": "+of)
		case api.NeedOverdue:
			if n.Since != nil {
				of += " (since " + clock(*n.Since) + ")"
			}
			out = append(out, "overdue: "+of)
		case api.NeedGoesOn:
			out = append(out, "goes on, though others presumed that it failed: "+of)
		case "interrupted":
			out = append(out, strings.TrimSuffix("interrupted: "+of, ": "))
		case "nobody":
			out = append(out, "nobody can perform "+of)
		default:
			out = append(out, plural(n.Number, "incident"))
		}
	}
	return out
}

// progress is how many tasks are done, of how many.
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
