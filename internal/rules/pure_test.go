package rules_test

import (
	"fmt"
	"go/ast"
	"slices"
)

// The pure packages compute the same from the same arguments, on every node and
// in the simulator: that is what makes every node reach one verdict from one set
// of facts, and what lets a test run a week in a second.

// pure are the folders of the pure packages, with all below them but the impure.
var (
	pure = words(
		"workflow partition contingency membership dataflow worklist choreo internal/canon internal/once internal/said internal/sim node/api")
	// The layout library behind the diagrams keeps a global, which a lock guards;
	// the mutants are a command that builds and runs programs.
	impure = words("membership/gossip workflow/diagram internal/sim/mutants node/api/httpapi node/api/apitest")
)

func isPure(dir string) bool {
	in := func(root string) bool { return within(dir, root) }
	return slices.ContainsFunc(pure, in) && !slices.ContainsFunc(impure, in)
}

// ban is an import that a pure package must not have.
type ban struct {
	path   string // it and everything below
	except []string
	why    string
	mend   string
}

var pureBans = []ban{
	{"github.com/libp2p", nil, "the core sends nothing", "return the message as an intent for node to send"},
	{"github.com/quic-go", nil, "the core sends nothing", "return the message as an intent for node to send"},
	{"github.com/hashicorp/memberlist", nil, "the core learns who is there from events",
		"take the partner list as an argument"},
	{"github.com/dgraph-io", nil, "the core stores nothing", "return the fact as an intent for node to make durable"},
	{"net", words("net/netip net/url"), "the core reaches no network",
		"return an intent, or take the answer as an event"},
	{"os", nil, "the core sees no files, no environment and no process",
		"take the bytes or the setting as an argument"},
	{"syscall", nil, "the core does not know what system it runs on", "take what you need as an argument"},
	{"golang.org/x/sys", nil, "the core does not know what system it runs on", "take what you need as an argument"},
	{"log", nil, "the core returns what happened; its driver decides what to say",
		"return an error, a notice or a counter"},
	{"crypto/rand", nil, "chance is an argument, so that a seed repeats a run", "take an io.Reader or a *rand.Rand"},
	{"golang.org/x/sync", nil, "the core starts no goroutine, so it has none to wait for",
		"let node run things side by side"},
	{"sync/atomic", nil, "nothing in the core is shared while it changes", "let one owner hold the state"},
}

// pureImportComplaints finds banned imports of pure packages.
func pureImportComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		if !isPure(f.dir) {
			continue
		}
		for _, im := range f.imports {
			for _, b := range pureBans {
				if within(im.path, b.path) && !slices.Contains(b.except, im.path) {
					out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s", f.dir, im.path), b.why, b.mend))
				}
			}
		}
	}
	return out
}

// use is a group of names of one package that pure code must not use, or, with
// allowed set, the only ones that it may use.
type use struct {
	path    string
	names   []string
	allowed bool
	why     string
	mend    string
}

var (
	generators = words("New NewPCG NewChaCha8 NewSource NewZipf Rand PCG ChaCha8 Source Source64 Zipf")
	pureUses   = []use{
		{"time", words("Now Since Until"), false, "now is an argument, so that the simulator can run any clock",
			"take the time as a parameter"},
		{"time", words("After AfterFunc Sleep NewTimer NewTicker Tick"), false, "the core never waits",
			"return the moment at which it wants to be woken"},
		{"time", words("Local LoadLocation"), false, "nodes have different time zones", "use UTC"},
		{"math/rand", generators, true, "the global generator cannot be repeated", "take a *rand.Rand as a parameter"},
		{"math/rand/v2", generators, true, "the global generator cannot be repeated",
			"take a *rand.Rand as a parameter"},
		{"sync", words("Once OnceFunc OnceValue OnceValues Pool"), true,
			"a lock says that goroutines meet here, and the core is called by one at a time",
			"let the caller own the value"},
	}
)

func (u use) bans(im imported, name string) bool {
	return im.path == u.path && slices.Contains(u.names, name) != u.allowed
}

// pureCodeComplaints finds what pure code does that it must not do.
func pureCodeComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		if !isPure(f.dir) {
			continue
		}
		f.selectors(func(im imported, sel *ast.SelectorExpr) {
			for _, u := range pureUses {
				if u.bans(im, sel.Sel.Name) {
					out = append(out, t.complaint(sel.Pos(), fmt.Sprintf("%s uses %s.%s", f.dir, im.name, sel.Sel.Name),
						u.why, u.mend))
				}
			}
		})
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				out = append(out, t.complaint(g.Pos(), fmt.Sprintf("%s starts a goroutine", f.dir),
					"two goroutines can meet in any order, and the result must not depend on it",
					"return an intent and let node run it"))
			}
			return true
		})
	}
	return out
}
