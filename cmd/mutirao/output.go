package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

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

// asYAML writes a JSON document as YAML. Where that would need characters that a terminal does not get as they are, all
// its texts are quoted, as there are escapes for such characters in quoted texts only.
func asYAML(doc []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(doc)
	if err == nil && !plain.IsPlain(string(out)) {
		out, err = quotedYAML(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("print as YAML: %w", err)
	}
	return out, nil
}

// quotedYAML writes a JSON document as YAML with all its texts quoted.
func quotedYAML(doc []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var b bytes.Buffer
	if err := writeYAML(&b, dec, 0, false); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeYAML writes the next value of a document, so far to the right; after: behind a name on the same line.
func writeYAML(b *bytes.Buffer, dec *json.Decoder, depth int, after bool) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	space := map[bool]string{true: " "}[after]
	open, nested := t.(json.Delim)
	switch {
	case nested && !dec.More():
		fmt.Fprintf(b, "%s%s\n", space, map[json.Delim]string{'{': "{}", '[': "[]"}[open])
	case nested:
		if after {
			b.WriteByte('\n')
		}
		for first := true; dec.More(); first = false {
			if after || !first {
				b.WriteString(strings.Repeat("  ", depth))
			}
			if open == '[' {
				b.WriteString("- ")
				err = writeYAML(b, dec, depth+1, false)
			} else if t, err = dec.Token(); err == nil {
				fmt.Fprintf(b, "%s:", quoted(fmt.Sprint(t)))
				err = writeYAML(b, dec, depth+1, true)
			}
			if err != nil {
				return err
			}
		}
	case t == nil:
		fmt.Fprintf(b, "%snull\n", space)
	default:
		text, isText := t.(string)
		if !isText {
			fmt.Fprintf(b, "%s%v\n", space, t)
			return nil
		}
		fmt.Fprintf(b, "%s%s\n", space, quoted(text))
		return nil
	}
	if nested {
		_, err = dec.Token() // where it ends
	}
	return err
}

// quoted is a text in quotes, as both Go and YAML read it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		write := strconv.Quote
		if !plain.IsPlain(string(r)) {
			write = strconv.QuoteToASCII
		}
		q := write(string(r))
		b.WriteString(q[1 : len(q)-1])
	}
	b.WriteByte('"')
	return b.String()
}
