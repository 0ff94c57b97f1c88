package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// ui is how a command speaks. Its rules: results on stdout, everything else on
// stderr; tables have their header always, so that the reader of a pipe knows
// the columns; colour and short IDs on a terminal only; nothing is ever cut
// off.
type ui struct {
	in       io.Reader
	out, err io.Writer
	format   string // text, json or yaml
	color    bool   // on stdout
	terminal bool   // stdout is one
	progress bool   // stderr is a terminal, and may be written to
	quiet    bool
	verbose  bool
}

// addFormatFlag adds -o under a long name. It is --output everywhere but where
// --output gives a task's results.
func addFormatFlag(cmd *cobra.Command, f *pflag.FlagSet, name string) {
	f.StringP(name, "o", "text", "the `format` of results: text, json or yaml")
	completeWords(cmd, name, outputFormats...)
}

// What -o and --color take.
var (
	outputFormats = []string{"text", "json", "yaml"}
	colorModes    = []string{"auto", "always", "never"}
)

func checkOutputFlags(cmd *cobra.Command) error {
	if err := oneOf("output", formatOf(cmd), outputFormats...); err != nil {
		return err
	}
	return oneOf("color", cmd.Flag("color").Value.String(), colorModes...)
}

func formatOf(cmd *cobra.Command) string { return cmd.Flags().ShorthandLookup("o").Value.String() }

// uiOf reads the options that say how to speak.
func uiOf(cmd *cobra.Command) *ui {
	flag := func(name string) bool { return cmd.Flag(name).Value.String() == "true" }
	u := &ui{
		in: cmd.InOrStdin(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), format: formatOf(cmd),
		quiet: flag("quiet"), verbose: flag("verbose"),
	}
	u.terminal = isTerminal(u.out)
	u.progress = isTerminal(u.err) && !u.quiet
	switch cmd.Flag("color").Value.String() {
	case "always":
		u.color = true
	case "auto":
		u.color = u.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return u
}

// note tells the user something that is no result.
func (u *ui) note(format string, args ...any) {
	if !u.quiet {
		fmt.Fprintf(u.err, format+"\n", args...)
	}
}

// result prints one document: v for programs, text for people.
func (u *ui) result(v any, text func(io.Writer)) error {
	b, err := u.render(v, text, true)
	if err != nil {
		return err
	}
	_, err = u.out.Write(b)
	return err
}

// done prints what was done where there is no other result: a sentence on
// stderr for people, a document for programs.
func (u *ui) done(v any, format string, args ...any) error {
	if u.format == "text" {
		u.note(format, args...)
		return nil
	}
	return u.result(v, nil)
}

// render gives one document; as part of a stream it is one line of JSON, or
// begins a new YAML document.
func (u *ui) render(v any, text func(io.Writer), alone bool) ([]byte, error) {
	var b bytes.Buffer
	if u.format == "text" {
		text(&b)
		return b.Bytes(), nil
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if alone {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("print as JSON: %w", err)
	}
	if u.format == "json" {
		return plain.JSON(b.Bytes()), nil
	}
	doc, err := asYAML(b.Bytes())
	if err != nil {
		return nil, err
	}
	if !alone {
		doc = append([]byte("---\n"), doc...)
	}
	return doc, nil
}

// asYAML writes a JSON document as YAML. Where that would need characters that
// a terminal does not get as they are, it stays JSON, which is YAML too, and has
// escapes for them.
func asYAML(doc []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(doc)
	if err != nil {
		return nil, fmt.Errorf("print as YAML: %w", err)
	}
	if !plain.IsPlain(string(out)) {
		return plain.JSON(doc), nil
	}
	return out, nil
}
