package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newDataCommand() *cobra.Command {
	return newGroup("data", "The data of an instance, and its files", newDataListCommand(), newDataGetCommand())
}

func newDataListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list ID",
		Short: "The data of an instance, and where the content of its files is",
		Long: `Lists the data of an instance as this node knows them. Of a file: whether its content
is here, comes here just now, or is only here, so that it would be lost with this node.`,
		Example: `  mutirao data list 3f9a
  mutirao data list 3f9a -o json`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			list, err := node.Data(ctx, args[0])
			if err != nil {
				return err
			}
			if len(list) == 0 {
				u.note("the workflow of this instance has no data")
			}
			if slices.ContainsFunc(list, func(d api.DataItem) bool { return d.File != nil && len(d.File.OnlyFor) > 0 }) {
				u.note("what is not for this node comes with the item of a user who may read it: mutirao worklist open ITEM --to DIR")
			}
			return u.result(list, func(w io.Writer) {
				t := table{head: []string{"NAME", "TYPE", "VALUE", "CONTENT"}}
				for _, d := range list {
					t.add(workflow.WithLabel(string(d.Name), d.Label), d.Type, shownValue(d), whereIs(d.File))
				}
				t.write(u, w, "")
			})
		}),
	}
}

// shownValue is a data item's value for a table.
func shownValue(d api.DataItem) string {
	switch {
	case d.Value == nil:
		return "-"
	}
	return text(d.Value)
}

// whereIs says where the content of a file is; empty: it is no file.
func whereIs(f *api.File) string {
	switch {
	case f == nil:
		return ""
	case f.OnlyHere:
		return "only here"
	case f.Here:
		return "here"
	case f.Waits != "":
		return f.Waits
	case len(f.OnlyFor) > 0:
		return "not for this node: only " + strings.Join(f.OnlyFor, ", ") + " may read it"
	}
	if len(f.Gone) > 0 {
		return "not here; given by " + strings.Join(f.Gone, ", ") + ", no longer active"
	}
	return "not here"
}

func newDataGetCommand() *cobra.Command {
	var to, wait string
	cmd := &cobra.Command{
		Use:   "get ID NAME [--to FILE] [--wait TIMEOUT]",
		Short: "Get a file that is among the data of an instance",
		Long: `Writes the content of a file to FILE, which must not be there yet, or else to a new
file of its own name in this folder; - stands for stdout. If it is not at this node, it
is fetched from a partner that has it, which may take until one can be reached: at most
TIMEOUT. What has come goes on from where it broke off, also after a restart.`,
		Example: `  mutirao data get 3f9a plan --to plan.pdf
  mutirao data get 3f9a plan --to - --wait 2h > plan.pdf`,
		Args:              arguments("ID", "NAME"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			limit, err := workflow.ParseDuration(wait)
			if err != nil || limit == 0 {
				return usagef("--wait %q: want a duration above 0, such as 10m", wait)
			}
			return getFile(ctx, u, node, args[0], workflow.DataName(args[1]), to, limit)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "write to this `file`")
	cmd.Flags().StringVar(&wait, "wait", "1m", "wait for the file at most for this `long`")
	return cmd
}

// getFile gets a file, waiting for it at most for limit.
func getFile(
	ctx context.Context, u *ui, node api.Service, id string, item workflow.DataName, to string, limit time.Duration,
) error {
	if to != "" && to != "-" { // before anything is fetched
		if err := canBeWritten(to); err != nil {
			return err
		}
	}
	f, content, err := awaitFile(ctx, u, node, id, item, time.Now().Add(limit))
	if err != nil {
		return err
	}
	defer content.Close() // it was only read
	if to == "-" {
		n, err := io.Copy(bytesTo(u.out), content)
		return wholly(f, n, err)
	}
	if to == "" {
		if to = f.Name; strings.HasPrefix(to, ".") || strings.HasPrefix(to, "-") {
			return usagef("the file is called %s, which means something to other programs: say with --to how to call it here", to)
		}
	}
	err = saveFile(f, content, to)
	if errors.Is(err, fs.ErrExist) {
		return isThere(to)
	}
	if err != nil {
		return err
	}
	return u.done(map[string]any{"file": to, "size": f.Size}, "%s: %s", to, workflow.FormatSize(f.Size))
}

// canBeWritten says why a new file of that name cannot be written; nil: as far as is known it can.
func canBeWritten(to string) error {
	if err := isFolder(filepath.Dir(to)); err != nil {
		return err
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return usagef("%s is a folder: name a file in it with --to", to)
	}
	if _, err := os.Lstat(to); err == nil {
		return isThere(to)
	}
	return nil
}

func isThere(to string) error {
	return fmt.Errorf("%s is there already: name another file with --to, or remove it", to)
}

// isFolder says what is wrong with a folder into which files are to be written; nil: nothing.
func isFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return api.Errorf(api.NotFound, "there is no folder %s", path).WithHint("make it, or name another with --to")
	case err != nil:
		return err
	case !info.IsDir():
		return usagef("%s is no folder: name one with --to", path)
	}
	return nil
}

// saveFile writes the content of a file to a new one, or leaves nothing there: whatever has that
// name is whole.
func saveFile(f *api.File, content io.Reader, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	part := to + ".part-" + rand.Text()[:8]
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, content)
	if err = errors.Join(wholly(f, n, err), out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err = os.Link(part, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return os.Rename(part, to) // this folder has no links
	}
	return errors.Join(err, os.Remove(part))
}

// wholly is the error of a copy of a file, also if not all of it came.
func wholly(f *api.File, n int64, err error) error {
	if err == nil && n != f.Size || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("only %s of %s came: try again; if that does not help, mutirao doctor", workflow.FormatSize(n),
			workflow.FormatSize(f.Size))
	}
	return err
}

// awaitFile asks for a file until it is at the node, and says now and then how it comes.
func awaitFile(
	ctx context.Context, u *ui, node api.Service, id string, item workflow.DataName, until time.Time,
) (*api.File, io.ReadCloser, error) {
	for {
		step := time.Now().Add(time.Minute)
		within, cancel := context.WithDeadline(ctx, earlier(step, until))
		f, content, err := node.File(within, id, item)
		cancel()
		var shown *api.Error
		other := !errors.As(err, &shown) || shown.Code != api.NotYet
		if err == nil || other || !time.Now().Before(until) || ctx.Err() != nil {
			return f, content, err
		}
		u.note("%s", shown.Message)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// filesFlag are the files that a command gives to a node.
type filesFlag []string

func (f *filesFlag) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringArrayVar((*[]string)(f), "file", nil, what+", `NAME=PATH`; may be repeated")
}

// dataTypes say of which type data are, by name.
type dataTypes map[string]workflow.DataType

// give has the node keep the files, and enters them among values by their names. What is declared says of which
// type the data are: then no file is kept that could not stand there. The node checks it once more. Other values
// are given by the flag instead.
func (f filesFlag) give(
	ctx context.Context, node api.Service, values map[string]string, instead string, declared func() (dataTypes, error),
) error {
	given, err := pairs("file", "NAME=PATH", f)
	if err != nil || len(given) == 0 {
		return err
	}
	types, err := declared()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if t, known := types[name]; known && t != workflow.TypeFile {
			no := api.Errorf(api.Invalid, "--file %s: %s is data of type %s, not a file", name, name, t)
			if t == workflow.TypeQuery {
				return no.WithHint("leave it out: its database answers it")
			}
			return no.WithHint("give its value instead: %s %s=VALUE; or have the definition declare it with type: file",
				instead, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, twice := values[name]; twice {
			return usagef("%s is given twice", name)
		}
		kept, err := putFile(ctx, node, given[name])
		if err != nil {
			return err
		}
		values[name] = kept.Value
	}
	return nil
}

func putFile(ctx context.Context, node api.Service, path string) (*api.File, error) {
	info, err := os.Stat(path) // to open a pipe would wait for whoever writes into it
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, api.Errorf(api.NotFound, "there is no file %s", path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, usagef("%s is a folder: give a file", path)
	case !info.Mode().IsRegular():
		return nil, usagef("%s is no file but a device, a pipe or the like, and may have no end: write what comes from it into a file, and give that",
			path)
	}
	content, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer content.Close() // it was only read
	return node.PutFile(ctx, filepath.Base(path), content)
}
