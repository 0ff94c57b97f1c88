package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newDoctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "What is wrong with this node and its links, and how to mend it",
		Long: `Checks the store and its disk, the certificate, addresses, links, the clock against
the partners', partners that are gone, the profile, the electorate, and what was
refused of whom. Exit status 1 if something is wrong; warnings are no failure.`,
		Example: `  mutirao doctor
  mutirao doctor -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			d, err := node.Doctor(ctx)
			if err != nil {
				return err
			}
			if err := u.result(d, func(w io.Writer) { u.writeDiagnosis(w, d) }); err != nil {
				return err
			}
			if !d.Healthy {
				return &exitError{status: exitFailed} // the findings have said it
			}
			return nil
		}),
	}
}

func (u *ui) writeDiagnosis(w io.Writer, d *api.Diagnosis) {
	styles := map[string]style{api.FindingOK: green, api.FindingWarning: yellow, api.FindingWrong: red}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%s %-12s %s\n", u.paint(styles[f.State], fmt.Sprintf("%-8s", f.State)), f.Check, oneLine(f.What))
		if f.Mend != "" {
			fmt.Fprintf(w, "%-8s %-12s → %s\n", "", "", oneLine(f.Mend))
		}
	}
}
