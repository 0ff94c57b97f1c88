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
what nobody in its mesh is or has (roles, capabilities, applications, databases,
partners), and which hard constraint leaves nobody. FILE may be - for stdin. The
workflows that a definition uses are looked for in the other files, and then in that
mesh: what is given to them, and taken of them, must fit.

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

// warn takes a warning.
func (r *checked) warn(m mistake) {
	said := m.Message
	if m.Hint != "" {
		said += " (" + m.Hint + ")"
	}
	r.u.note("%s:%d:%d: warning: %s", m.File, m.Line, m.Col, said)
	m.Severity = "warning"
	r.warnings = append(r.warnings, m)
}

// cuts takes warnings about partitions, who takes them, and how they are distributed.
func (r *checked) cuts(file string, in workflow.Places, list []partition.Warning) {
	for _, w := range list {
		m := mistake{File: file, Message: w.What(), Hint: w.Hint}
		switch {
		case w.OfWorkflow():
			m.Line, m.Col = in.Workflow(w.Key)
		case w.OfDistribution():
			m.Line, m.Col = in.Distribution(w.Key)
		case w.Task != "":
			m.Line, m.Col = in.Task(w.Task, w.Key)
		default:
			m.Line, m.Col = in.Partition(w.Partition, w.Key)
		}
		r.warn(m)
	}
}

// problems takes mistakes that were found in a text.
func (r *checked) problems(list []workflow.Problem) {
	for _, p := range list {
		r.mistakes = append(r.mistakes, mistake{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
	}
}

// definition checks a file with a definition; nil: it has mistakes.
func (r *checked) definition(file string, src []byte, others *given) (*workflow.Definition, error) {
	def, err := workflow.ParseWith(file, src, others.shared)
	var problems workflow.Errors
	switch {
	case errors.As(err, &problems):
		r.problems(problems)
		return nil, nil
	case err != nil:
		return nil, api.Errorf(api.Failed, "%s: %v", file, err)
	}
	if err := library.Check(def); err != nil {
		r.mistakes = append(r.mistakes, mistake{File: file, Line: 1, Col: 1, Message: err.Error()})
		return nil, nil
	}
	if wrong := append(workflow.CheckUses(file, def, others.known), others.loop(file, def)...); len(wrong) > 0 {
		r.problems(wrong)
		return nil, nil
	}
	return def, nil
}

// doubts takes the warnings about a definition without mistakes.
func (r *checked) doubts(file string, src []byte, def *workflow.Definition, others *given, here members) {
	at := func(line, col int, format string, args ...any) {
		r.warn(mistake{File: file, Line: line, Col: col, Message: fmt.Sprintf(format, args...)})
	}
	in, plan := workflow.PlacesIn(file, src, others.shared), partition.New(def)
	r.cuts(file, in, partition.Check(plan))
	for _, d := range workflow.Doubts(file, src, others.shared) {
		at(d.Line, d.Col, "%s", d.Message)
	}
	for _, f := range onceALine(node.NotYet(def)) {
		what := f.Feature + " yet"
		if why := node.WhyNotYet(def, f); why != "" {
			what = fmt.Sprintf("%s as it is here (%s)", f.Feature, why)
		}
		at(f.Line, f.Col, "this version cannot do %s, and refuses to start the workflow", what)
	}
	for _, p := range workflow.CheckReaders(file, def, others.known) {
		r.warn(mistake{File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint})
	}
	for _, f := range others.unknown(def) {
		at(f.Line, f.Col, "workflow %s is not known here: what task %s gives it and takes of it is not checked",
			def.Task(f.Task).Uses.Workflow, f.Task)
	}
	if len(here.partners) > 0 {
		r.cuts(file, in, append(partition.Unknown(def, here.partners, here.people), partition.Barred(plan, here.partners)...))
	}
}

// pieces checks a file of models and applications, and reports whether it has mistakes.
func (r *checked) pieces(file string, src []byte) (wrong bool) {
	list, err := workflow.ParsePieces(file, src)
	var problems workflow.Errors
	errors.As(err, &problems)
	for _, p := range problems {
		r.mistakes = append(r.mistakes, mistake{
			File: p.File, Line: p.Line, Col: p.Col, Message: p.Message, Hint: p.Hint,
		})
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
	members := membersHere(ctx, dir)
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
		def, err := found.definition(file, texts[i], others)
		switch {
		case err != nil:
			return err
		case def == nil:
			wrong++
		default:
			u.note("%s: %s", file, describe(def))
			found.doubts(file, texts[i], def, others, members)
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
		err = &exitError{
			status: api.Failed.Exit(), message: fmt.Sprintf("%s in %s", plural(len(found.mistakes), "mistake"),
				plural(wrong, "file")),
		}
	}
	return err
}

// members are those of the mesh with what they have; none when no node runs that could tell.
type members struct {
	partners []partition.Partner
	people   []partition.Person
}

// membersHere are they as the node in dir knows them.
func membersHere(ctx context.Context, dir string) (out members) {
	here, err := httpapi.Dial(dir)
	if err != nil {
		return out
	}
	list, err := here.Resources(ctx, "")
	if err != nil {
		return out
	}
	users, err := here.Users(ctx)
	if err != nil {
		return out
	}
	for _, u := range users {
		if u.Partner {
			continue
		}
		p := partition.Person{Name: unmarked(u.Name)}
		for _, r := range u.Roles {
			p.Roles = append(p.Roles, workflow.RoleName(r))
		}
		out.people = append(out.people, p)
	}
	out.partners = partnersOf(list)
	return out
}

// partnersOf are the partners that have something.
func partnersOf(list []api.Resource) (out []partition.Partner) {
	at := func(h api.Holder) *partition.Partner {
		i := slices.IndexFunc(out, func(p partition.Partner) bool { return p.ID == h.ID })
		if i < 0 {
			out, i = append(out, partition.Partner{ID: h.ID, Name: unmarked(h.Name), Label: h.Name, Rested: 1}), len(out)
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
			case "database":
				p.Databases = append(p.Databases, workflow.DatabaseName(r.Name))
			}
		}
	}
	return out
}

// maxRead is how much of a file is read at most: one byte more than is allowed of anything that is read so, from which
// its reader sees that there is more. A name may lead to a device without an end, or to a film.
const maxRead = workflow.MaxSource + 1

// readSource reads a definition, or something else that is at most as large; - is stdin. Of what is larger it reads
// the beginning, which whoever takes it refuses for its size.
func readSource(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxRead))
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, api.Errorf(api.NotFound, "there is no file %s", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRead))
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
	return slices.CompactFunc(uses, func(a, b workflow.FeatureUse) bool {
		return a.Feature == b.Feature && a.Line == b.Line
	})
}
