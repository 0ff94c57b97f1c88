package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

func newDoctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "What is wrong with this node and its links, and how to mend it",
		Long: `Checks the store and its disk, the certificate, addresses, links, the clock against
the partners', partners that are gone, the profile, the electorate, what was refused
of whom, and whether the configuration can still be read. Of a node that does not run:
its configuration and applications, key, certificate, store, disk, the addresses at
which it is to listen, the API's port, and whether its clock can be right: whatever
would keep it from starting.
Exit status 1 if something is wrong (that it does not run, too); warnings are no
failure.`,
		Example: `  mutirao doctor
  mutirao doctor -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			u := uiOf(cmd)
			d, err := diagnose(cmd)
			if err != nil {
				return err
			}
			if err := u.result(d, func(w io.Writer) { u.writeDiagnosis(w, d) }); err != nil {
				return err
			}
			if !d.Healthy {
				return &exitError{status: api.Failed.Exit()} // the findings have said it
			}
			return nil
		},
	}
}

// diagnose asks the running node; where none runs, it looks at the folder itself.
func diagnose(cmd *cobra.Command) (*api.Diagnosis, error) {
	running, err := connect(cmd)
	if err == nil {
		if silent(cmd, running) {
			return &api.Diagnosis{Findings: append([]api.Finding{{
				Check: "running", State: api.FindingWrong,
				What: fmt.Sprintf("the node in %s runs, and has given no answer for %s", nodeDir(cmd), answerWait),
				Mend: "look whether its process was stopped (kill -CONT has it go on), or has too little memory, processor " +
					"or disk; else end it and start it again: nothing that it reported as done is lost",
			}}, assemble.ExamineFile(nodeDir(cmd))...)}, nil
		}
		var d *api.Diagnosis
		if d, err = running.Doctor(cmd.Context()); err == nil {
			broken := assemble.ExamineFile(nodeDir(cmd))
			d.Findings, d.Healthy = append(d.Findings, broken...), d.Healthy && len(broken) == 0
			return d, nil
		}
	}
	if !isAway(err) {
		return nil, err
	}
	d, none := assemble.Examine(nodeDir(cmd))
	if errors.Is(none, node.ErrNoMember) {
		return nil, err // it says what to do
	}
	return d, none
}

// answerWait is within what time a node says who it is, however busy its disk and its partners are.
const answerWait = 5 * time.Second

// silent reports whether a node that is there does not even say who it is.
func silent(cmd *cobra.Command, n api.Service) bool {
	ctx, cancel := context.WithTimeout(cmd.Context(), answerWait)
	defer cancel()
	_, err := n.Status(ctx)
	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

func (u *ui) writeDiagnosis(w io.Writer, d *api.Diagnosis) {
	styles := map[string]style{api.FindingOK: green, api.FindingWarning: yellow, api.FindingWrong: red}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%s %-12s %s\n", u.paint(styles[f.State], fmt.Sprintf("%-8s", f.State)), f.Check,
			oneLine(f.What))
		if f.Mend != "" {
			fmt.Fprintf(w, "%-8s %-12s → %s\n", "", "", oneLine(f.Mend))
		}
	}
}
