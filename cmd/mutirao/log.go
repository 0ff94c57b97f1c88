package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newLogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "log ID",
		Short: "The history of an instance, fact by fact",
		Long: `Prints every fact of an instance that this node holds, in logical order: what
happened, where, and when by the clock of the partner that wrote it. A fact that
does not count (its author was not entitled to it) is marked; so is one that is of a
history of data states that does not count, as another one does. What a person said is
signed with the person's own key, too: -v has the beginnings of that key's ID and of the
signature, -o json both whole.`,
		Example: `  mutirao log 3f9a
  mutirao log 3f9a -v                # with hashes, numbers and signatures
  mutirao log 3f9a -o json`,
		Args:              arguments("ID"),
		ValidArgsFunction: completeInstances,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			entries, err := node.Log(ctx, args[0])
			if err != nil {
				return err
			}
			return u.result(entries, func(w io.Writer) { u.writeLog(w, entries) })
		}),
	}
}

func (u *ui) writeLog(w io.Writer, entries []api.LogEntry) {
	t := table{head: []string{"TIME", "AT", "AUTHOR", "KIND", "TASK", "WHAT"}}
	if u.verbose {
		t.head = append(append([]string{"FACT", "SEQ"}, t.head...), "SIGNED")
	}
	for _, e := range entries {
		what := e.Text
		if !e.Counted {
			what = "(does not count) " + what
		}
		row := []string{strconv.FormatUint(e.Time, 10), clock(e.At), e.Author, e.Kind, orDash(workflow.WithLabel(string(e.Task), e.Label)), what}
		if u.verbose {
			row = append(append([]string{e.Fact, strconv.FormatUint(e.Seq, 10)}, row...), signed(e.Signed))
		}
		t.add(row...)
	}
	t.write(u, w, "")
}

// signed is by which key a person signed, and the beginning of the signature.
func signed(s *api.PersonSignature) string {
	if s == nil {
		return "-"
	}
	return oneLine(workflow.PartnerID(s.Key).Short() + " " + s.Signature[:min(len(s.Signature), 8)])
}
