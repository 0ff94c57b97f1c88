package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

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
