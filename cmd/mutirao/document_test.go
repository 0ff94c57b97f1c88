package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mutirao-mesh/mutirao/internal/golden"
	"github.com/mutirao-mesh/mutirao/node/api"
)

const commandsFile = "../../docs/commands.md"

// docs/commands.md says what the commands say of themselves. After a change:
// go test ./cmd/mutirao -run Document -rewrite.
func TestDocumentOfCommandsIsUpToDate(t *testing.T) {
	t.Setenv("HOME", "/home/ana")
	t.Setenv("MUTIRAO_DIR", "")
	got := commandsPage()
	golden.Compare(t, commandsFile, got)
	if strings.Contains(got, "/home/") {
		t.Error("docs/commands.md names a folder of the machine on which it was made")
	}
}

// exits are the exit statuses, for people.
var exits = []struct {
	status int
	means  string
}{
	{exitDone, "done"},
	{api.Failed.Exit(), "failed: the reason is on stderr; of `start --wait`, the instance failed or was cancelled"},
	{api.Invalid.Exit(), "wrong usage: of the command or of the configuration"},
	{api.NotFound.Exit(), "no such thing"},
	{api.NoNode.Exit(), "no running node"},
	{api.NotAllowed.Exit(), "not allowed"},
	{api.Refused.Exit(), "refused by a rule; of `start --wait`, the instance is blocked or interrupted"},
	{exitTimeout, "of `start --wait`: the instance is still running at the time-out"},
}

// commandsPage is docs/commands.md.
func commandsPage() string {
	root := newRoot()
	root.InitDefaultHelpFlag()
	var b strings.Builder
	b.WriteString(`# The commands

This page is made of what the commands say of themselves (` + "`mutirao COMMAND -h`" + `), by a test; do not edit it.

Commands talk to the node that runs in the folder of ` + "`--dir`" + `; those marked ° need none. Results go to stdout,
everything else to stderr. With ` + "`-o json`" + ` stdout is one JSON document, with the fields that
[api.md](api.md) tells; a stream (` + "`--watch`" + `) is one on each line. An instance may be named by any
unique beginning of its ID, a partner by its name or ID.

## Options of every command

`)
	writeFlags(&b, root.PersistentFlags())
	b.WriteString("\n## Exit status\n\n| status | means |\n|---|---|\n")
	for _, x := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", x.status, x.means)
	}
	for _, group := range root.Groups() {
		commands := within(root, group.ID)
		fmt.Fprintf(&b, "\n## %s\n\n| command | does |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range commands {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", pathOf(c), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
		}
		for _, c := range commands {
			writeCommand(&b, c)
		}
	}
	return b.String()
}

// within are the commands of a group of help that do something.
func within(root *cobra.Command, group string) (out []*cobra.Command) {
	for _, c := range root.Commands() {
		switch {
		case c.GroupID != group || c.Name() == "help":
		case !c.HasSubCommands():
			out = append(out, c)
		default:
			if c.Example != "" { // else it only holds others
				out = append(out, c)
			}
			out = append(out, c.Commands()...)
		}
	}
	return out
}

// writeCommand writes one command.
func writeCommand(b *strings.Builder, c *cobra.Command) {
	use := strings.TrimSuffix(c.UseLine(), " [flags]")
	fmt.Fprintf(b, "\n### %s\n\n%s.\n\n```\n%s\n```\n\n", c.CommandPath(), c.Short, use)
	if c.Long != "" {
		fmt.Fprintf(b, "%s\n\n", plainText(c.Long))
	}
	if flags := c.NonInheritedFlags(); flags.HasAvailableFlags() {
		writeFlags(b, flags)
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "```\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
}

// plainText is a help text in Markdown: indented lines are shown as they are, and
// what could be taken for a mark is none.
func plainText(s string) string {
	var out []string
	code := false
	for _, line := range strings.Split(strings.TrimSpace(s), "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != code {
			out = append(out, "```")
			code = indented
		}
		if !code {
			line = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`).Replace(line)
		}
		out = append(out, line)
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

// writeFlags writes a table of options.
func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| option | means |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		switch f.DefValue {
		case "", "false", "[]", "0", "0s":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", `\|`))
	})
}
