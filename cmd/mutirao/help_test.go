package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// Whoever gives an option a value that it cannot take is told what it takes.
func TestEveryOptionSaysWhatItWants(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			for _, value := range []string{"one two", strings.Repeat("9", 30)} {
				err := cmd.Flags().Set(f.Name, value)
				if err == nil {
					continue // a text, which the command looks at itself
				}
				said := wrongFlag(err).Error()
				if strings.Contains(said, "another kind") || strings.Contains(said, "strconv") ||
					!strings.Contains(said, "want a") && !strings.Contains(said, "want true") {
					t.Errorf("%s --%s %q: it says %s", cmd.CommandPath(), f.Name, value, said)
				}
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(newRoot())
}

// What a command says of itself fits a terminal that is a little wider than usual.
func TestHelpFits(t *testing.T) {
	const most = 90
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Short+"\n"+cmd.Long+"\n"+cmd.Example, "\n") {
			if plain.Width(line) > most {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), plain.Width(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(newRoot())
}
