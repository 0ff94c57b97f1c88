package rules_test

import "fmt"

// permission allows one thing that a rule would complain of, at one place.
type permission struct {
	what  string // "panic", "init" or "program"
	where string // folder and name, as in godoc: stack.Stack.Pop; for init the folder, for program the file
	why   string
}

const (
	constantOptions = "the options are constants of ours"
	ownTypes        = "it encodes values of our own types only, which always encode"
)

// house is the list of permissions. A panic says that there is a bug of ours:
// bad input, a full disk and a lost network never are.
var house = []permission{
	{"panic", "internal/canon.must", constantOptions},
	{"panic", "choreo.decision.enter", "a fact that this machine has just made fits the log that it was made from"},
	{"panic", "internal/sim.disk.Commit", "a simulated kill -9: the world recovers it and takes the node down"},
	{"panic", "internal/sim.world.found", "the simulator makes its own certificates"},
	{"panic", "internal/sim.world.guard", "it passes on what was no simulated crash: a bug that the simulation found"},
	{"panic", "internal/test/testliar.Liar.say", "an attack that does not fit a frame is a bug of the test"},
	{"panic", "internal/test/testliar.Encode", ownTypes},
	{"panic", "internal/test/testliar.Liar.definition",
		"a liar's notice of its own definition is one that any member may give"},
	{"panic", "internal/test/testliar.verdicts", "its definition is a constant of ours"},
	{"panic", "internal/test/testliar.removals", "its definitions are constants of ours"},
	{"panic", "internal/test/testliar.must",
		"what it encodes or parses is a constant of ours, or within the bounds of its kind"},
	{"panic", "internal/test/testliar.dense", "its definition is a constant of ours"},
	{"panic", "membership/internal/codec.must", constantOptions},
	{"panic", "membership/internal/codec.Encode", ownTypes},
	{"panic", "membership/trust.IDOf", "keys are decoded with a check of their length, so another length was made by us"},
	{"panic", "node/codec.must", ownTypes},
	{"panic", "node.random", "crypto/rand ends the program itself rather than fail"},
	{"panic", "node.shard.progress", "in tests (Parts.Loud) what lists keep of an instance is compared with its machine"},
	{"panic", "node/api/httpapi.NewServer",
		"a node without a token would be open to everybody, and only our code makes one"},
	{"panic", "node/store.meta.write", ownTypes},
	{"panic", "node/wire.must", constantOptions},
	{"panic", "cmd/mutirao.complete", "it fails only for an option that the program does not have"},
	{"panic", "partition/study.Builtin", "the scenario is embedded, and tested"},
	{"panic", "partition/study.Summarize", "the results were counted by its caller"},
	{"panic", "node/web.must", "templates and strings are embedded, and tested"},
	{"panic", "workflow.encode", ownTypes},
	{"panic", "workflow/amendments.mustRead", "the canonical form of a definition is JSON of ours"},
	{"panic", "workflow/amendments.written", ownTypes},
	{"panic", "workflow/diagram.escape", "writing to a buffer cannot fail"},
	{"program", "node/runner/command.go", "it runs a command of config.yaml, where that allows the workflow"},
	{"program", "node/runner/group_unix.go", "it ends such a command with all that it started"},
	{"program", "node/runner/group_windows.go", "it ends such a command with all that it started"},
	{"program", "node/runner/unfit.go", "it looks whether the commands of config.yaml can be found"},
	{"program", "cmd/mutirao/worker.go", "worker run runs the command that stands behind it"},
	{"program", "cmd/mutirao/worker_unix.go", "it ends such a command with all that it started"},
	{"program", "cmd/mutirao/worker_windows.go", "it ends such a command with all that it started"},
	{"program", "cmd/mutirao/demo.go", "the demo runs nodes of this very program, on this machine"},
	{"init", "node/api/httpapi", "it fills the table of routes, which some of its handlers read, and touches nothing else"},
}

// permits reports whether something is allowed at a place, and notes that it is used.
func (t *tree) permits(what, where string) bool {
	for i, p := range t.permissions {
		if p.what == what && p.where == where && p.why != "" {
			t.used[i] = true
			return true
		}
	}
	return false
}

// idleComplaints finds permissions that no rule asks for.
func idleComplaints(t *tree) []string {
	panicComplaints(t)
	effectComplaints(t)
	var out []string
	for i, p := range t.permissions {
		if !t.used[i] {
			out = append(out, fmt.Sprintf("%s may %s, and does not: an idle permission hides the next offence; take it off the list in internal/rules/permissions_test.go", p.where, p.what))
		}
	}
	return out
}
