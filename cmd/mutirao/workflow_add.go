package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newWorkflowAddCommand() *cobra.Command {
	to := &applier{}
	cmd := &cobra.Command{
		Use:   "add FILE... [--apply-to running|ID,... [--dry-run]] [--user U]",
		Short: "Check definitions and spread them to the mesh",
		Long: `Adds definitions to the mesh: every partner learns of them, and any may start
them. A definition of the same name is kept beside it, under its own version and
hash; the name alone means what was added last. What is listed already stays as it is,
and is said on stderr: to have an older edition current again, remove the newer ones.
What start would refuse here, as things are, is a warning on stderr. FILE may
be - for stdin.

--apply-to running has the instances of that workflow take it which run and this node
lists, as mutirao amend does; --apply-to ID,ID those. What cannot take it is named on
stderr with the reason, and left as it is: the exit status is 6 then, though the workflow
was added and all others have taken it; 3 where all that is left is IDs of no instance
here, 5 where all that is left is decided by others. With -o json applied has the reason
of each. Where several users are signed in, --user says who amends: without it nothing is
added. With --dry-run nothing is added or changed: it lists for each instance what
mutirao amend ID FILE --dry-run does, and the exit status is as without it.

A file that has only models and applications, and no workflow, adds these by themselves:
definitions that are added later, or with the same command, take them, as model: NAME and
application: NAME, when they have none of that name. What they were then stays part of
such a definition.`,
		Example: `  mutirao workflow add fire-call.yaml
  mutirao workflow add plans/*.yaml
  mutirao workflow add fire-call.yaml --apply-to running --dry-run
  mutirao workflow add fire-call.yaml --apply-to running`,
		Args: arguments("FILE..."),
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := to.check(cmd); err != nil {
				return err
			}
			node, err := connect(cmd)
			if err != nil {
				return err
			}
			if err := to.speaker(cmd.Context(), node); err != nil {
				return err
			}
			if to.dry {
				return to.foresee(cmd, uiOf(cmd), node, files)
			}
			return addWorkflows(cmd, uiOf(cmd), node, files, to)
		},
	}
	to.flags(cmd)
	return cmd
}

func addWorkflows(cmd *cobra.Command, u *ui, node api.Service, files []string, to *applier) error {
	listed, err := listWorkflows(cmd, node, files)
	added := []addedWorkflow{}
	var refused error
	for _, x := range listed {
		wf := x.wf
		u.noteAdded(wf)
		before := wf.Before
		wf.Before = nil
		for i := range before {
			before[i].Definition = nil
		}
		for _, x := range before {
			added = append(added, addedWorkflow{Workflow: x})
		}
		one := addedWorkflow{Workflow: *wf}
		if to.to != "" && wf.Kind == "" {
			var no error
			if one.Applied, no = to.apply(cmd.Context(), u, node, wf, filepath.ToSlash(x.file), x.src); no != nil {
				refused = no
			}
		}
		added = append(added, one)
	}
	if err != nil {
		u.noteListed(listed, files)
		return err
	}
	err = u.result(added, func(w io.Writer) {
		for _, wf := range added {
			fmt.Fprintln(w, edition(wf.Workflow))
		}
	})
	return cmp.Or(err, refused)
}

// noteListed says which of several files were listed before one could not be, and which were not.
func (u *ui) noteListed(listed []listedWorkflow, files []string) {
	var were, others []string
	for _, x := range listed {
		were = append(were, x.file)
	}
	for _, file := range files {
		if !slices.Contains(were, file) {
			others = append(others, file)
		}
	}
	if len(were) > 0 {
		u.note("listed: %s; not listed: %s", strings.Join(were, ", "), strings.Join(others, ", "))
	}
}

// listedWorkflow is what was added of a file.
type listedWorkflow struct {
	wf   *api.Workflow
	file string
	src  []byte
}

// readFiles reads files, up to the first that cannot be read. Those of models and applications come first, as others
// may take what is in them.
func readFiles(cmd *cobra.Command, files []string) (out []listedWorkflow, err error) {
	for _, file := range files {
		var src []byte
		if src, err = readSource(cmd.InOrStdin(), file); err != nil {
			break
		}
		out = append(out, listedWorkflow{file: file, src: src})
	}
	ofWorkflow := func(x listedWorkflow) int {
		if workflow.HoldsPieces(x.src) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b listedWorkflow) int { return cmp.Compare(ofWorkflow(a), ofWorkflow(b)) })
	return out, err
}

// listWorkflows adds files, up to the first that cannot be added. What would be refused of one is as it is once all are
// there: it may use those that come after it.
func listWorkflows(cmd *cobra.Command, node api.Service, files []string) (out []listedWorkflow, err error) {
	read, unread := readFiles(cmd, files)
	for _, x := range read {
		if len(x.src) > workflow.MaxSource { // no node would read on: the reason is the same as that of check
			_, err = workflow.Parse(x.file, x.src)
			err = api.Judge(api.Failed, err)
			break
		}
		if x.wf, err = node.AddWorkflow(cmd.Context(), filepath.ToSlash(x.file), x.src); err != nil {
			break
		}
		out = append(out, x)
	}
	for i, x := range out {
		is := x.wf.Definition // as it was added, whatever models the files after it have
		if x.wf.Definition = nil; i == len(out)-1 || len(x.wf.Refused) == 0 {
			continue
		}
		if again, no := node.AddWorkflow(cmd.Context(), filepath.ToSlash(x.file), is); no == nil {
			x.wf.Refused = again.Refused
		}
	}
	return out, cmp.Or(err, unread)
}

// noteAdded says what there is to say about something that was added.
func (u *ui) noteAdded(wf *api.Workflow) {
	for _, why := range wf.Refused {
		u.note("%s@%d: warning: as things are, it cannot be done here: %s", wf.Name, wf.Version, why)
	}
	for _, note := range wf.Notes {
		u.note("%s@%d: %s", wf.Name, wf.Version, note)
	}
	switch {
	case wf.Already && wf.Newest != "" && !wf.Current:
		u.note("%s@%d was listed before: nothing has changed. Its name alone starts %s, which was added later: mutirao workflow remove %s makes an earlier one current",
			wf.Name, wf.Version, wf.Newest, wf.Newest)
	case wf.Already && wf.Kind == "":
		u.note("%s@%d was listed before: nothing has changed", wf.Name, wf.Version)
	}
}

// addedWorkflow is a definition that was added, with the instances to which it was applied.
type addedWorkflow struct {
	api.Workflow
	Applied []applied `json:"applied,omitempty"`
}

// edition names what is listed: a workflow by its version, a model or application by its hash.
func edition(w api.Workflow) string {
	if w.Kind != "" {
		return fmt.Sprintf("%s@%.10s", w.Name, w.Hash)
	}
	return fmt.Sprintf("%s@%d", w.Name, w.Version)
}
