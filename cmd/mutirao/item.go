package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newItemOpenCommand() *cobra.Command {
	var user userFlag
	var to string
	cmd := &cobra.Command{
		Use:   "open ITEM [--to DIR] [--user U]",
		Short: "All that is needed to do an item",
		Long: `Shows what is to be done, with which application, which tasks came before, and what a
result may set; to whoever has the item also the values of the data that its task reads.
With --to the files among them are written into DIR, under their own names; what is there
already stays as it is. Nothing is installed or started: whoever works with an application
that this device has (config.yaml, profile set --application) opens those files in it.
Of a locked item all that is on this device, so that it can be opened out of reach: its
files are fetched by worklist disconnect, or now.` + forWhom,
		Example:           "  mutirao worklist open 3f9a\n  mutirao worklist open 3f9a --to visit --user bia",
		Args:              arguments("ITEM"),
		ValidArgsFunction: completeItems(&user, func(api.Item) bool { return true }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			if to != "" { // before anything is fetched
				if err := isFolder(to); err != nil {
					return err
				}
			}
			q := api.ItemQuery{User: user.who(), Item: args[0]}
			sheet, err := node.ItemSheet(ctx, q)
			if err != nil {
				return err
			}
			if to != "" {
				q.Item = sheet.Item.ID
				if err := u.saveFiles(ctx, node, q, sheet, to); err != nil {
					return err
				}
				if now, err := node.ItemSheet(ctx, q); err == nil && now.Whole { // its files are here by now
					sheet = now
				}
			}
			return u.result(sheet, func(w io.Writer) { u.writeSheet(w, sheet) })
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "write the files into this `folder`, which must be there")
	user.add(cmd)
	return cmd
}

// saveFiles writes the files that an item needs into a folder.
func (u *ui) saveFiles(
	ctx context.Context, node api.Service, q api.ItemQuery, sheet *api.ItemSheet, folder string,
) error {
	if len(sheet.Data) == 0 && !mine(&sheet.Item) {
		no := api.Errorf(api.Refused, "only whoever has %s gets its files", sheet.Item.Task)
		switch x := &sheet.Item; {
		case x.TakenBy != "" && x.KeptUntil != nil:
			return no.WithHint("it is kept for %s", x.TakenBy)
		case x.TakenBy != "":
			return no.WithHint("%s has it", x.TakenBy)
		case x.Over || x.State != api.ItemReady || len(x.WaitsFor) > 0:
			return no.WithHint("mutirao worklist shows what can be taken")
		}
		return no.WithHint("take it first: mutirao worklist select %s", sheet.Item.ID)
	}
	written := map[string]bool{}
	data := slices.DeleteFunc(slices.Clone(sheet.Data), func(d api.Datum) bool { return d.File == nil })
	slices.SortStableFunc(data, func(a, b api.Datum) int { // what the user may not read comes last: the node refuses it
		return cmp.Compare(min(len(a.File.OnlyFor), 1), min(len(b.File.OnlyFor), 1))
	})
	for _, x := range data {
		f, content, err := node.ItemFile(ctx, q, x.Name)
		if err != nil {
			return err
		}
		path := filepath.Join(folder, filepath.Base(f.Name))
		if written[path] { // two files of one name
			path = filepath.Join(folder, x.Name+"-"+filepath.Base(f.Name))
		}
		written[path] = true
		err = errors.Join(saveFile(f, content, path), content.Close())
		switch {
		case errors.Is(err, fs.ErrExist):
			u.note("%s is there already, and stays as it is", path)
		case err != nil:
			return err
		default:
			u.note("%s: %s", path, workflow.FormatSize(f.Size))
		}
	}
	return nil
}

// mine reports whether the user has an item.
func mine(x *api.Item) bool { return x.State == api.ItemSelected || x.State == api.ItemLocked }

func (u *ui) writeSheet(w io.Writer, s *api.ItemSheet) {
	x := &s.Item
	stands := x.State // to this user, who can take neither of the following: that it is READY would mean that
	switch {
	case x.TakenBy != "" && x.KeptUntil != nil:
		stands = "kept for " + oneLine(x.TakenBy)
	case x.TakenBy != "":
		stands = oneLine(x.TakenBy) + " has it"
	case x.Over:
		stands = "you cannot take it any more"
	}
	fmt.Fprintf(w, "%s (%s) of %s %s, at %s\n", x.Task, stands, x.Workflow, u.id(x.Instance), x.Partner)
	for _, line := range []string{x.Label, x.Subject, s.Doc} {
		if line != "" {
			fmt.Fprintln(w, line)
		}
	}
	if x.Said != nil {
		fmt.Fprintln(w, saidLast(x.Said))
	}
	if x.Presumed != "" {
		fmt.Fprintf(w, "presumed to have failed: %s; what is made of it may not count\n", oneLine(x.Presumed))
	}
	if x.Away != nil {
		fmt.Fprintln(w, oneLine(whileAway(*x)))
	}
	for _, l := range x.WaitsFor {
		fmt.Fprintf(w, "waits for %s\n", oneLine(l.Text))
	}
	for _, l := range x.Shared {
		fmt.Fprintf(w, "%s: agree with whoever has that\n", oneLine(l.Text))
	}
	if x.HeldUp != "" {
		fmt.Fprintln(w, oneLine(x.HeldUp))
	} else if len(x.Awaits) > 0 {
		fmt.Fprintf(w, "waits for %s\n", withLabels(x.Awaits, x.TaskLabels))
	}
	if x.Due != nil {
		fmt.Fprintln(w, left([]api.Due{*x.Due}))
	}
	if x.LeaseUntil != nil {
		fmt.Fprintf(w, "others may take it from %s on\n", clock(*x.LeaseUntil))
	}
	if x.Transfer != nil {
		fmt.Fprintf(w, "passes to %s\n", passes(x.Transfer))
	}
	if s.Application != nil {
		fmt.Fprintln(w, doneWith(s.Application))
	}
	if !s.Whole {
		fmt.Fprintf(w, "the rest is not known: %s cannot be asked, and nothing of it is kept here\n", x.Partner)
		return
	}
	t := table{head: []string{"READS", "VALUE"}}
	for _, d := range s.Data {
		t.add(workflow.WithLabel(d.Name, d.Label), datum(&d))
	}
	if len(s.Data) > 0 {
		t.write(u, w, "")
	}
	if s.Coming != nil {
		fmt.Fprintln(w, coming(s.Coming))
	}
	t = table{head: []string{"SETS", "TYPE", "DOC"}}
	for _, f := range s.Fields {
		t.add(workflow.WithLabel(f.Name, f.Label), f.Type, orDash(f.Doc))
	}
	if len(s.Fields) > 0 {
		t.write(u, w, "")
	}
	for _, a := range s.After {
		fmt.Fprintf(w, "after %s, by %s\n", workflow.WithLabel(a.Task, a.Label), a.By)
	}
}

// doneWith names the application with which an item is done, with what is known of it.
func doneWith(a *api.ItemApplication) string {
	var known []string
	if a.Size > 0 {
		known = append(known, workflow.FormatSize(a.Size))
	}
	for _, x := range []string{a.OS, a.CPU} {
		if x != "" {
			known = append(known, oneLine(x))
		}
	}
	if a.Installer != "" && !a.Here {
		known = append(known, "installed by "+oneLine(a.Installer))
	}
	where := "this device has it: start it yourself"
	if !a.Here {
		where = "this device is not known to have it: install it, then mutirao profile set --application " + string(a.Name)
	}
	return strings.TrimSpace("application "+string(a.Name)+" "+bracketed(known)) + "; " + where
}

// bracketed are words in brackets; empty: there are none.
func bracketed(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// advice is what is best done about files of an item that are not here.
var advice = map[string]string{
	"room":      "make room first, on the disk of the node's folder or in its config.yaml (limits.files)",
	"wait":      "nobody who has them is connected: they come when somebody is",
	"open":      "they come when they are asked for: worklist open ITEM --to FOLDER",
	"coming":    "they come by themselves",
	"lock":      "lock it (worklist lock) and have them come meanwhile (worklist prefetch on): then it can be done out of reach",
	"prefetch":  "have them come meanwhile: worklist prefetch on",
	"elsewhere": "look at them at a node that has them, if you can",
	"gone":      "whoever gave them is no longer active: they come only if another partner has them",
}

// coming says which files are not here, how long they take, and what to do.
func coming(c *api.Coming) string {
	text := fmt.Sprintf("of %s %s are not here", plural(c.Files, "file"), workflow.FormatSize(c.Bytes))
	switch {
	case c.NoRoom > 0:
		text += fmt.Sprintf("; this device lacks %s of room for them", workflow.FormatSize(c.NoRoom))
	case c.AtMost > 0:
		text += fmt.Sprintf("; at %s/s, as many as may come by worklist prefetch, that takes about %s",
			workflow.FormatSize(c.AtMost), span(c.Takes))
	case c.Takes != "":
		text += fmt.Sprintf("; at %s/s, as files came lately, that takes about %s", workflow.FormatSize(c.Rate), span(c.Takes))
	}
	return text + "; " + cmp.Or(advice[c.Advice], c.Advice)
}

// withLabels are the names of tasks with their labels, by name.
func withLabels(names []string, labels map[string]string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = workflow.WithLabel(n, labels[n])
	}
	return strings.Join(out, ", ")
}

// datum is a value for people.
func datum(d *api.Datum) string {
	switch {
	case d.Large:
		return "too large to be shown: mutirao data list shows it at who takes part"
	case d.File != nil && d.File.Here:
		return fmt.Sprintf("%s, %s, here", d.File.Name, workflow.FormatSize(d.File.Size))
	case d.File != nil && len(d.File.OnlyFor) > 0:
		return fmt.Sprintf("%s, %s, does not come: only %s may read it", d.File.Name, workflow.FormatSize(d.File.Size),
			strings.Join(d.File.OnlyFor, ", "))
	case d.File != nil && len(d.File.Gone) > 0:
		return fmt.Sprintf("%s, %s, %s", d.File.Name, workflow.FormatSize(d.File.Size), whereIs(d.File))
	case d.File != nil:
		return fmt.Sprintf("%s, %s, not here yet", d.File.Name, workflow.FormatSize(d.File.Size))
	case d.Value == nil:
		return "-"
	}
	if text, ok := d.Value.(string); ok {
		return oneLine(text)
	}
	return asJSON(d.Value)
}

func newItemMoveCommand() *cobra.Command {
	var user userFlag
	r := api.MoveRequest{}
	cmd := &cobra.Command{
		Use:   "move ITEM --before ITEM|--top|--bottom [--user U]",
		Short: "Put an item elsewhere in the list by hand",
		Long: `Puts an item before another one, to the top, or to the bottom of the list that
"mutirao worklist --order hand" shows. Items that were never moved stand where they
arrived. The order is the user's own, and follows to all nodes at which the user is
signed in.` + forWhom,
		Example:           "  mutirao worklist move 3f9a --top\n  mutirao worklist move 3f9a --before 77c0 --user bia",
		Args:              arguments("ITEM"),
		ValidArgsFunction: completeItems(&user, func(api.Item) bool { return true }),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			r.User, r.Item = user.who(), args[0]
			if ways := []bool{r.Before != "", r.Top, r.Bottom}; slices.Index(ways, true) < 0 ||
				slices.Contains(ways[slices.Index(ways, true)+1:], true) {
				return usagef("worklist move needs one of --before, --top and --bottom")
			}
			list, err := node.MoveItem(ctx, r)
			if err != nil {
				return err
			}
			return u.result(list, func(w io.Writer) { u.writeItems(w, list) })
		}),
	}
	cmd.Flags().StringVar(&r.Before, "before", "", "before this `item`")
	cmd.Flags().BoolVar(&r.Top, "top", false, "before all others")
	cmd.Flags().BoolVar(&r.Bottom, "bottom", false, "behind all others")
	user.add(cmd)
	return cmd
}
