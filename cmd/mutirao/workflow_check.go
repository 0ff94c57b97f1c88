package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newWorkflowCheckCommand() *cobra.Command {
	s := &suggester{}
	cmd := &cobra.Command{
		Use:   "check [--suggest-partitions[=N]] FILE...",
		Short: "° Find the mistakes in definitions",
		Long: `Finds what cannot work before it is started. Each mistake is one line on stdout,
file:line:col: message (hint), and makes the exit status 1. What works, but
probably not as it is meant, is a warning on stderr, and with -o json in the list too,
after the mistakes, with "severity": "warning"; where a node runs in --dir, so is
what nobody in its mesh is or has (roles, capabilities, applications, partners), and
which hard constraint leaves nobody. FILE may be - for stdin. The workflows that a
definition uses are looked for in the other files, and then in that mesh: what is
given to them, and taken of them, must fit.

--suggest-partitions prints a cut of each definition without mistakes, as it may be
put there: tasks that ask the same of their performers stay together, and few
edges cross. It is a proposal; what the definition says of partitions is not asked.`,
		Example: `  mutirao workflow check fire-call.yaml
  mutirao workflow check plans/*.yaml
  mutirao workflow check -o json fire-call.yaml
  mutirao workflow check --suggest-partitions=3 fire-call.yaml`,
		Args: arguments("FILE..."),
		RunE: func(cmd *cobra.Command, files []string) error {
			return checkWorkflows(cmd.Context(), uiOf(cmd), cmd.InOrStdin(), nodeDir(cmd), files, s)
		},
	}
	s.flag(cmd)
	return cmd
}

// mistake is a problem as programs read it.
type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	// Severity is "warning" of what can work; left out of a mistake.
	Severity string `json:"severity,omitempty"`
}

// problem is a mistake without what only programs are told.
func (m mistake) problem() workflow.Problem {
	return workflow.Problem{File: m.File, Line: m.Line, Col: m.Col, Message: m.Message, Hint: m.Hint}
}

// checked takes what is found in the files: mistakes are the result, warnings are said, and are in the
// result for programs as well, after the mistakes.
type checked struct {
	u        *ui
	mistakes []mistake
	warnings []mistake
}

// warn takes a warning; line 0: it is about no line.
func (r *checked) warn(file string, line int, message string) {
	at := file
	if line > 0 {
		at = fmt.Sprintf("%s:%d", file, line)
	}
	r.u.note("%s: warning: %s", at, message)
	r.warnings = append(r.warnings, mistake{File: file, Line: max(line, 1), Col: 1, Message: message, Severity: "warning"})
}

// pieces checks a file of models and applications, and reports whether it has mistakes.
func (r *checked) pieces(file string, src []byte) (wrong bool) {
	list, err := workflow.ParsePieces(file, src)
	var problems workflow.Errors
	errors.As(err, &problems)
	for _, p := range problems {
		r.mistakes = append(r.mistakes, mistake{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
	}
	if err == nil {
		r.u.note("%s: models and applications by themselves (%d), no mistakes", file, len(list))
	}
	return err != nil
}

func checkWorkflows(ctx context.Context, u *ui, stdin io.Reader, dir string, files []string, s *suggester) error {
	count, err := s.count()
	if err != nil {
		return err
	}
	found, wrong := &checked{u: u, mistakes: []mistake{}}, 0
	partners := partnersHere(ctx, dir)
	texts, others, err := readGiven(ctx, stdin, dir, files)
	if err != nil {
		return err
	}
	for i, file := range files {
		if workflow.HoldsPieces(texts[i]) {
			if found.pieces(file, texts[i]) {
				wrong++
			}
			continue
		}
		def, err := workflow.ParseWith(file, texts[i], others.shared)
		var problems workflow.Errors
		switch {
		case errors.As(err, &problems):
			wrong++
			for _, p := range problems {
				found.mistakes = append(found.mistakes, mistake{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
			}
		case err != nil:
			return api.Errorf(api.Failed, "%s: %v", file, err)
		case library.Check(def) != nil:
			wrong++
			found.mistakes = append(found.mistakes, mistake{File: file, Line: 1, Col: 1, Message: library.Check(def).Error()})
		case len(workflow.CheckUses(file, def, others.known)) > 0 || len(others.loop(file, def)) > 0:
			wrong++
			for _, p := range append(workflow.CheckUses(file, def, others.known), others.loop(file, def)...) {
				found.mistakes = append(found.mistakes, mistake{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
			}
		default:
			u.note("%s: %s", file, describe(def))
			for _, w := range partition.Check(partition.New(def)) {
				found.warn(file, 0, w.String())
			}
			for _, d := range workflow.Doubts(file, texts[i], others.shared) {
				found.warn(file, d.Line, d.Message)
			}
			for _, f := range onceALine(node.NotYet(def)) {
				found.warn(file, f.Line, fmt.Sprintf("this version cannot do %s yet, and refuses to start the workflow", f.Feature))
			}
			for _, f := range others.unknown(def) {
				found.warn(file, f.Line, fmt.Sprintf("workflow %s is not known here: what task %s gives it and takes of it is not checked", def.Task(f.Task).Uses.Workflow, f.Task))
			}
			if len(partners) > 0 {
				for _, w := range append(partition.Unknown(def, partners), partition.Barred(partition.New(def), partners)...) {
					found.warn(file, 0, w)
				}
			}
			s.suggest(file, def, count)
		}
	}
	err = u.result(s.result(found), func(w io.Writer) {
		for _, m := range found.mistakes {
			fmt.Fprintln(w, m.problem())
		}
		s.write(w)
	})
	if err == nil && wrong > 0 {
		err = &exitError{status: api.Failed.Exit(), message: fmt.Sprintf("%s in %s", plural(len(found.mistakes), "mistake"), plural(wrong, "file"))}
	}
	return err
}

// partnersHere are the partners of the mesh with what they have, as the node in
// dir knows them; none when no node runs there.
func partnersHere(ctx context.Context, dir string) []partition.Partner {
	here, err := httpapi.Dial(dir)
	if err != nil {
		return nil
	}
	list, err := here.Resources(ctx, "")
	if err != nil {
		return nil
	}
	var out []partition.Partner
	at := func(h api.Holder) *partition.Partner {
		i := slices.IndexFunc(out, func(p partition.Partner) bool { return p.ID == h.ID })
		if i < 0 {
			out, i = append(out, partition.Partner{ID: h.ID, Name: h.Name, Rested: 1}), len(out)
		}
		return &out[i]
	}
	for _, r := range list {
		for _, h := range r.Holders {
			switch p := at(h); r.Kind {
			case "role":
				p.Roles = append(p.Roles, workflow.RoleName(r.Name))
			case "capability":
				p.Capabilities = append(p.Capabilities, workflow.Capability(r.Name))
			case "application":
				p.Applications = append(p.Applications, workflow.ApplicationName(r.Name))
			}
		}
	}
	return out
}

// readSource reads a definition; - is stdin.
func readSource(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	src, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, api.Errorf(api.NotFound, "there is no file %s", file)
	}
	return src, err
}

func describe(def *workflow.Definition) string {
	parts := ""
	if n := len(def.Partitions); n > 0 {
		parts = ", " + plural(n, "partition")
	}
	return fmt.Sprintf("workflow %s: %s%s, no mistakes", def.Name, plural(len(def.Written()), "task"), parts)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// onceALine is what definitions use without what several tasks take from one line of a model.
func onceALine(uses []workflow.FeatureUse) []workflow.FeatureUse {
	return slices.CompactFunc(uses, func(a, b workflow.FeatureUse) bool { return a.Feature == b.Feature && a.Line == b.Line })
}
