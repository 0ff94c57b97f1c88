package main

import (
	"context"
	"io"
	"strconv"
	"strings"

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
signature, -o json both whole.

KIND, which -v adds, is what programs tell facts apart by: genesis (it began), ready,
start, success, done (the last two in one), try-failed, verdict (a failure, and what
becomes of it), assign (who has a task from then on), called-off, claim (what a person
said about a task or the instance, or what its holder wrote down of that), lease (a
worker has the job), child (the instance that does it), fire (of a data state), aged (how
old the instance is, or that it goes by a changed definition), cancel, write-off (nobody
waits for that partner any more) and seen (its author has what was there by then).`,
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
	t := table{head: []string{"TIME", "AT", "AUTHOR", "TASK", "WHAT"}}
	if u.verbose {
		t.head = append(append([]string{"FACT", "SEQ"}, t.head...), "KIND", "SIGNED")
	}
	for _, e := range entries {
		what := e.Text
		if !e.Counted { // said first, so that nobody reads on without it
			what = "(does not count) " + strings.Replace(what, " (does not count)", "", 1)
		}
		row := []string{strconv.FormatUint(e.Time, 10), clock(e.At), e.Author, orDash(workflow.WithLabel(string(e.Task), e.Label)), what}
		if u.verbose {
			row = append(append([]string{e.Fact, strconv.FormatUint(e.Seq, 10)}, row...), e.Kind, signed(e.Signed))
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
