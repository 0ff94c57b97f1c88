package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/lxpdl"
	"github.com/mutirao-mesh/mutirao/workflow/pdl"
	"github.com/mutirao-mesh/mutirao/workflow/wedsql"
	"github.com/mutirao-mesh/mutirao/workflow/wedxml"
)

// importers translate other formats to the native one, by their names.
var importers = []struct {
	format string
	// translate translates the workflow of that name; empty: the only one of the file.
	translate func(file string, src []byte, name string) (translation, error)
}{
	{"lxpdl", importLXPDL},
	{"pdl", importPDL},
	{"wed-xml", importWEDXML},
	{"wed-sql", importWEDSQL},
}

// translation is what came out of a file.
type translation struct {
	native []byte
	starts []string    // commands that start the instances that the file makes
	lines  []pdl.Place // of the file, by lines of native; shorter where that is not known
	notes  []string
}

// mistakes are those of what came out, each at the place of the file of which it came out, or at none.
func (t translation) mistakes(file string, err error) error {
	var all workflow.Errors
	if !errors.As(err, &all) {
		return err
	}
	all = slices.Clone(all)
	for i := range all {
		p := &all[i]
		at := pdl.Place{}
		if p.Line > 0 && p.Line <= len(t.lines) {
			at = t.lines[p.Line-1]
		}
		p.Line, p.Col = at.Line, at.Col
	}
	where := "the lines are those of the file from which it came, where they are known"
	if t.lines == nil {
		where = "from which lines of the file it came is not known"
	}
	return fmt.Errorf("what came out of %s has mistakes (%s):\n%w", file, where, slices.Compact(all))
}

func importLXPDL(file string, src []byte, name string) (translation, error) {
	if name != "" {
		return translation{}, usagef("--workflow %s: a file of LXPDL has one workflow, so leave --workflow out", name)
	}
	p, err := lxpdl.Parse(file, src)
	if err != nil {
		return translation{}, err
	}
	return translation{native: p.ToYAML()}, nil
}

func importWEDSQL(file string, src []byte, name string) (translation, error) {
	if name != "" {
		return translation{}, usagef("--workflow %s: a script of WED-SQL has one flow, so leave --workflow out", name)
	}
	d, err := wedsql.Parse(file, src)
	if err != nil {
		return translation{}, err
	}
	return translation{native: d.ToYAML(), starts: d.Commands()}, nil
}

func importWEDXML(file string, src []byte, name string) (translation, error) {
	d, err := wedxml.Parse(file, src)
	if err != nil {
		return translation{}, err
	}
	name, err = chosen(file, name, d.Names())
	if err != nil {
		return translation{}, err
	}
	f, _ := d.Find(name)
	return translation{native: d.ToYAML(f)}, nil
}

func importPDL(file string, src []byte, name string) (translation, error) {
	d, err := pdl.Parse(file, src)
	if err != nil {
		return translation{}, err
	}
	if len(d.Names()) == 0 {
		if name != "" {
			return translation{}, usagef("--workflow %s: %s has models and applications only, so leave --workflow out", name, file)
		}
		made := d.Pieces()
		return translation{native: made.Native, lines: made.Lines}, nil
	}
	name, err = chosen(file, name, d.Names())
	if err != nil {
		return translation{}, err
	}
	w, _ := d.Find(name)
	made := d.Translate(w)
	t := translation{native: made.Native, lines: made.Lines}
	for _, uses := range made.Apart {
		t.notes = append(t.notes, fmt.Sprintf("%s uses the workflow %s, which is not in %s: add it before this one is started",
			w.Name, uses, file))
	}
	return t, nil
}

// chosen is the workflow of a file that --workflow names, or the only one.
func chosen(file, name string, names []string) (string, error) {
	switch {
	case name == "" && len(names) == 1:
		return names[0], nil
	case name == "":
		return "", usagef("%s has %d workflows: say which with --workflow, one of %s", file, len(names),
			strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return "", usagef("--workflow %s: %s has no such workflow, it has %s", name, file, strings.Join(names, ", "))
	}
	return name, nil
}

func newWorkflowImportCommand() *cobra.Command {
	var from, name, output string
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE [--output FILE]",
		Short: "° Translate a definition of another format to the native one",
		Long: `Translates a definition and checks what came out. FORMAT is lxpdl, pdl, wed-sql or
wed-xml. A file of pdl or wed-xml may hold several workflows: --workflow says which.
One of pdl with models and applications only becomes a file of these, for workflow add.
A script of wed-sql may make instances: the commands that start them stand at the end of
what comes out, and are printed if --output writes that to a file. FILE may be - for
stdin. What --output names is written only if the translation has no mistakes, and never
overwritten.`,
		Example: `  mutirao workflow import --from lxpdl process.lxpdl
  mutirao workflow import --from wed-sql rental.sql --output rental.yaml
  mutirao workflow import --from lxpdl process.lxpdl --output process.yaml
  mutirao workflow import --from wed-xml rental.xml --workflow rental
  mutirao workflow import --from pdl office.pdl --workflow maintenance`,
		Args: arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importWorkflow(uiOf(cmd), cmd.InOrStdin(), from, name, args[0], output)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the `format` of FILE")
	cmd.Flags().StringVar(&name, "workflow", "", "which `workflow` of FILE, if it has several")
	cmd.Flags().StringVar(&output, "output", "", "write to this `file` instead of stdout")
	addFormatFlag(cmd, cmd.Flags(), "output-format")
	return cmd
}

func importWorkflow(u *ui, stdin io.Reader, from, name, file, output string) error {
	translate, err := importer(from)
	if err != nil {
		return err
	}
	src, err := readSource(stdin, file)
	if err != nil {
		return err
	}
	out, err := translate(file, src, name)
	if err != nil {
		return err
	}
	if workflow.HoldsPieces(out.native) {
		return importPieces(u, out, file, output)
	}
	def, err := workflow.ParseWith(file, out.native, nil)
	if err != nil {
		return out.mistakes(file, err)
	}
	for _, note := range out.notes {
		u.note("%s", note)
	}
	if output == "" {
		return u.result(out.said(def, "definition", string(out.native)),
			func(w io.Writer) { fmt.Fprint(w, string(out.native)) })
	}
	if err := createFile(output, out.native); err != nil {
		return err
	}
	if len(out.starts) == 0 {
		return u.done(out.said(def, "file", output), "%s: %s", output, describe(def))
	}
	u.note("%s: %s", output, describe(def))
	return u.result(out.said(def, "file", output), func(w io.Writer) {
		for _, command := range out.starts {
			fmt.Fprintln(w, command)
		}
	})
}

// importPieces gives what came out of a file that has models and applications only.
func importPieces(u *ui, out translation, file, output string) error {
	pieces, err := workflow.ParsePieces(file, out.native)
	if err != nil {
		return out.mistakes(file, err)
	}
	names := make([]string, len(pieces))
	for i, p := range pieces {
		names[i] = p.Ref()
	}
	if output == "" {
		return u.result(map[string]any{"pieces": names, "definition": string(out.native)},
			func(w io.Writer) { fmt.Fprint(w, string(out.native)) })
	}
	if err := createFile(output, out.native); err != nil {
		return err
	}
	return u.done(map[string]any{"pieces": names, "file": output}, "%s: %s", output, strings.Join(names, ", "))
}

// said is the result as JSON has it.
func (t translation) said(def *workflow.Definition, key, value string) map[string]any {
	m := map[string]any{"workflow": string(def.Name), key: value}
	if len(t.starts) > 0 {
		m["starts"] = t.starts
	}
	return m
}

func importer(from string) (func(string, []byte, string) (translation, error), error) {
	var there []string
	for _, i := range importers {
		if i.format == from {
			return i.translate, nil
		}
		there = append(there, i.format)
	}
	if from == "" {
		return nil, usagef("--from is missing: the format of the file, one of %s", strings.Join(there, ", "))
	}
	return nil, usagef("--from %s: no such format, it is one of %s", from, strings.Join(there, ", "))
}

// createFile writes a new file.
func createFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: name another file with --output, or remove it", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
