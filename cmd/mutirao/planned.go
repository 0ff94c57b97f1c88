package main

import (
	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// planned are the commands that are promised and not built in this version, with what they are to do and what
// comes nearest meanwhile. Help does not list them; whoever types one is told so, and not that there is none.
var planned = []struct{ name, does, nearest string }{
	{"rehearse", "to run a definition against simulated failures",
		"mutirao workflow check FILE finds what cannot work, mutirao workflow diagram FILE draws what follows " +
			"a failure, mutirao demo shows one"},
}

// newPlannedCommands returns a command for each of them, which help does not show. Its options are not looked at: none
// is known yet.
func newPlannedCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, p := range planned {
		out = append(out, &cobra.Command{
			Use: p.name, Short: "Planned: " + p.does, Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error { return notBuilt(p.name, p.does, p.nearest) },
		})
	}
	return out
}

// notBuilt says of a command or an option that it is planned.
func notBuilt(what, does, nearest string) error {
	return api.Errorf(api.Invalid, "%s is planned (%s) and not built in this version", what, does).
		WithHint("%s", nearest)
}
