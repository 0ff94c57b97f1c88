package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/lxpdl"
	"github.com/mutirao-mesh/mutirao/workflow/pdl"
)

// importers translate other formats to the native one, by their names.
var importers = []struct {
	format string
	// translate translates the workflow of that name; empty: the only one of the file.
	// nil: this version cannot do it.
	translate func(file string, src []byte, name string) ([]byte, error)
}{
	{"lxpdl", importLXPDL},
	{"pdl", importPDL},
	{"wed-xml", nil},
	{"wed-sql", nil},
}

func importLXPDL(file string, src []byte, name string) ([]byte, error) {
	if name != "" {
		return nil, usagef("--workflow %s: a file of LXPDL has one workflow, so leave --workflow out", name)
	}
	p, err := lxpdl.Parse(file, src)
	if err != nil {
		return nil, err
	}
	return p.ToYAML(), nil
}

func importPDL(file string, src []byte, name string) ([]byte, error) {
	d, err := pdl.Parse(file, src)
	if err != nil {
		return nil, err
	}
	names := d.Names()
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if w, found := d.Find(name); found {
		return d.ToYAML(w), nil
	}
	if name == "" {
		return nil, usagef("%s has %d workflows: say which with --workflow, one of %s", file, len(names), strings.Join(names, ", "))
	}
	return nil, usagef("--workflow %s: %s has no such workflow, it has %s", name, file, strings.Join(names, ", "))
}

func newWorkflowImportCommand() *cobra.Command {
	var from, name, output string
	cmd := &cobra.Command{
		Use:   "import --from FORMAT FILE [--output FILE]",
		Short: "° Translate a definition of another format to the native one",
		Long: `Translates a definition and checks what came out. FORMAT is lxpdl or pdl; wed-xml and
wed-sql are not there yet. A file of pdl may hold several workflows: --workflow says
which. FILE may be - for stdin. What --output names is written only if the translation
has no mistakes, and never overwritten.`,
		Example: `  mutirao workflow import --from lxpdl process.lxpdl
  mutirao workflow import --from lxpdl process.lxpdl --output process.yaml
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
	native, err := translate(file, src, name)
	if err != nil {
		return err
	}
	def, err := workflow.Parse(file, native)
	if err != nil {
		return fmt.Errorf("what came out of %s has mistakes (the lines are those of the translation):\n%w", file, err)
	}
	if output == "" {
		return u.result(map[string]string{"workflow": string(def.Name), "definition": string(native)}, func(w io.Writer) { fmt.Fprint(w, string(native)) })
	}
	if err := createFile(output, native); err != nil {
		return err
	}
	return u.done(map[string]string{"workflow": string(def.Name), "file": output}, "%s: %s", output, describe(def))
}

func importer(from string) (func(string, []byte, string) ([]byte, error), error) {
	var there []string
	for _, i := range importers {
		switch {
		case i.format == from && i.translate == nil:
			return nil, fmt.Errorf("this version cannot import %s yet: translate the file to the native format by hand (mutirao workflow check FILE)", from)
		case i.format == from:
			return i.translate, nil
		case i.translate != nil:
			there = append(there, i.format)
		}
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
