package rules_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// layer says which of our packages a package, and those below it that have no
// row of their own, may import. A name ending in /... means everything below too.
type layer struct {
	dir string
	may []string
	why string
}

// core is what the driver and its adapters may see of the pure packages.
const core = "workflow partition contingency contingency/waits membership membership/election membership/invitation membership/moment " +
	"membership/trust membership/users dataflow worklist choreo choreo/fact choreo/log choreo/state"

// layers says who may import whom (docs/design.md, Packages). Imports go one way:
//
//	workflow ← partition
//	workflow ← contingency
//	workflow ← membership/trust ← membership ← membership/invitation
//	membership/trust ← membership/election
//	membership/moment ← membership, membership/election
//	all of these ← choreo/fact ← choreo/log ← choreo/state ← choreo ← node ← cmd
//
// The row of contingency lets it import partition as well, which it does not.
var layers = []layer{
	{"workflow", words("internal/once internal/plain"),
		"it is the vocabulary that all share, so it can depend on nobody that knows it"},
	{"workflow/internal/native", words("workflow"), "what importers share only writes the native language"},
	{"workflow/lxpdl", words("workflow workflow/internal/native internal/plain"),
		"an importer only translates into the native language"},
	{"workflow/pdl", words("workflow workflow/internal/native internal/plain"),
		"an importer only translates into the native language"},
	{"workflow/wedsql", words("workflow workflow/internal/native internal/plain"),
		"an importer only translates into the native language"},
	{"workflow/wedxml", words("workflow workflow/internal/native internal/plain"),
		"an importer only translates into the native language"},
	{"workflow/amendments", words("workflow internal/plain"),
		"what differs between two definitions follows from them alone, and what an instance takes of it from what it has done"},
	{"workflow/diagram", words("workflow internal/plain"),
		"a drawing shows a definition, and nothing that cannot be seen"},
	{"partition", words("workflow partition/aptitude"),
		"a cut follows from the definition alone, and who takes a part of it from the metric"},
	{"partition/aptitude", words(""), "the metric compares resources and items, whatever they are"},
	{"partition/study", words("workflow/... partition partition/aptitude internal/plain"),
		"the study simulates allocation and nothing else"},
	{"contingency", words("workflow partition"), "what a failure does follows from the definition and its cut"},
	{"contingency/waits", nil, "how long a wait has run does not depend on what is waited for"},
	{"membership/internal/codec", nil, "it encodes values, whatever they are"},
	{"membership/internal/token", words("membership/trust"), "a secret is written down in one way, whatever it opens"},
	{"membership/trust", words("workflow internal/plain internal/said membership/internal/codec"),
		"who may be there does not depend on who is"},
	{"membership/moment", nil, "a moment depends on nothing that happens in it"},
	{"membership/election", words("workflow internal/plain internal/said membership/internal/codec membership/moment membership/trust"), "who may vote is what signed lists say, whoever is there"},
	{"membership", words("workflow internal/plain internal/said membership/internal/codec membership/moment membership/trust"), "who is there does not depend on what they work on, nor on who coordinates"},
	{"membership/invitation", words("workflow internal/said membership membership/internal/codec membership/internal/token membership/trust"), "a stranger comes in by the signatures of members, and learns the list"},
	{"membership/users", words("workflow internal/plain internal/said membership membership/internal/codec membership/internal/token membership/trust"), "who works here is what signed records say, whoever is there"},
	{"membership/gossip", words("workflow membership membership/trust"),
		"an adapter knows its own core package and no other adapter"},
	{"dataflow", words("workflow"), "what follows for data states depends on records, whoever brings them: the core folds it, and so it cannot know the core"},
	{"worklist", words("workflow internal/canon"), "what follows for people's work depends on facts, whoever brings them: the core folds it, and so it cannot know the core"},
	{"worklist/device", words("workflow"),
		"a device knows what its users need with them, and not what it means to an instance"},
	{"worklist/own", words("workflow worklist"), "what a user set is alike on all devices, however one hears of the other"},
	{"choreo/fact", words("internal/canon internal/plain internal/said membership membership/election membership/trust partition partition/aptitude workflow worklist"), "what is said does not depend on what follows from it"},
	{"choreo/log", words("choreo/fact internal/said workflow"), "what was said in which order does not depend on what it means"},
	{"choreo/state", words("choreo/fact choreo/log contingency dataflow partition partition/aptitude workflow workflow/amendments worklist"), "what facts mean follows from them alone, whoever reads it"},
	{"choreo", words("choreo/fact choreo/log choreo/state internal/said workflow workflow/amendments partition partition/aptitude contingency contingency/waits dataflow worklist"), "the one machine uses the rules of the other pure packages, and no adapter"},
	{"node", words(core + " internal/plain internal/said partition/aptitude workflow/amendments workflow/diagram configs node/addresses node/api node/assignment node/certificates node/clocks node/closings node/codec node/datasets node/doctor node/elections node/evictions node/files node/filing node/index node/jobs node/joining node/library node/lineup node/overview node/profile node/quota node/ration node/refusals node/roster node/runner node/show node/store/kv node/turns node/users node/wire node/worklists internal/private worklist/device"), "the driver moves facts between the core and its adapters, which it knows by their words; only node/assemble puts them together"},
	{"node/assemble", words(core + " configs node/... membership/gossip internal/private"),
		"it alone puts a whole node together, with the page that the interface serves"},
	{"node/store", nil, "the store keeps bytes; what they mean is no affair of a disk"},
	{"node/wire", words(core), "the codec knows what it encodes, and no sender"},
	{"node/evictions", words("workflow membership membership/moment membership/trust node/api node/records node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/certificates", words("workflow internal/said membership membership/moment membership/trust node/api node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/profile", words("workflow membership membership/trust configs node/api node/codec node/store/kv node/wire"),
		"a topic of a node names what it needs of others in interfaces of its own"},
	{"node/datasets", words("internal/once workflow partition membership membership/moment membership/trust choreo choreo/fact node/api node/codec node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/elections", words("workflow membership membership/election membership/moment membership/trust choreo/fact node/api node/codec node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/roster", words("workflow membership membership/moment membership/trust node/api node/store/kv node/wire"),
		"a topic of a node names what it needs of others in interfaces of its own"},
	{"node/joining", words("workflow internal/said membership membership/invitation membership/moment membership/trust node/api node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/users", words("workflow internal/said membership membership/invitation membership/moment membership/trust membership/users node/api node/ration node/records node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/files", words("workflow membership/moment node/ration node/wire"),
		"content is kept and given whatever it means; who may read it others say"},
	{"node/filing", words("workflow worklist membership membership/moment choreo node/api node/files node/index node/runner node/store/kv node/worklists"),
		"which files an instance needs follows from its machine: whoever owns that reads it, by an interface of its own"},
	{"node/worklists", words("workflow worklist worklist/device worklist/own membership/moment choreo choreo/fact choreo/state node/api node/codec node/ration node/store/kv node/turns node/users node/wire"), "what is asked of people's work goes by interfaces of its own to the instances and the users"},
	{"node/clocks", words("workflow membership/moment membership/trust node/wire"),
		"a topic of a node names what it needs of others in interfaces of its own"},
	{"node/library", words("workflow internal/plain internal/said partition membership/moment membership/trust configs node/api node/codec node/ration node/store/kv node/wire"), "a topic of a node names what it needs of others in interfaces of its own"},
	{"node/closings", words("workflow membership/moment membership/trust node/codec node/store/kv node/wire"),
		"what is kept of instances does not depend on why they were given up"},
	{"node/overview", words("workflow membership membership/election membership/moment node/api node/wire"),
		"a topic of a node names what it needs of others in interfaces of its own"},
	{"node/assignment", words("workflow partition partition/aptitude worklist membership membership/moment membership/users choreo choreo/fact choreo/state node/codec node/store/kv"), "who can take work is asked of the partner list, the users and the elections by interfaces of its own"},
	{"node/quota", words("workflow node/wire"), "a share is one whatever is shared"},
	{"node/index", words("workflow worklist choreo choreo/fact configs node/api node/closings node/codec node/quota node/wire"), "what is listed of an instance does not depend on who works at it"},
	{"node/addresses", nil, "where an address leads is in its text"},
	{"node/show", words("workflow workflow/amendments workflow/diagram partition partition/aptitude membership membership/moment dataflow worklist choreo choreo/fact choreo/state internal/plain node/api node/wire node/worklists"), "how an instance looks follows from its machine and from what was heard, whoever holds it: what it needs of the node it names in interfaces of its own"},
	{"node/refusals", words("workflow node/api"), "what is refused is counted whatever it is"},
	{"node/doctor", words("workflow membership membership/moment membership/trust configs internal/private node/addresses node/api node/certificates node/clocks node/files"), "who looks for what is wrong asks by interfaces of its own"},
	{"node/jobs", words("workflow partition membership membership/moment choreo choreo/fact choreo/state configs node/api node/ration node/runner"), "who does a job asks the instances by an interface of its own; the pool of jobs is the runner's"},
	{"node/lineup", words("workflow"), "whose turn it is follows from when instances began, whatever is in them"},
	{"node/records", words("workflow membership/moment node/ration node/wire"),
		"two sets are made equal in one way, whatever is in them"},
	{"node/ration", words("workflow"), "a ration is one whatever it is of"},
	{"node/turns", nil, "a turn is one whatever it is at"},
	{"node/codec", words("node/store/kv"), "it encodes values, whatever they are"},
	{"node/codec/codectest", words("node/codec"), "it tries the codec on values, whatever they are"},
	{"node/mesh", words(core + " configs node/wire"), "adapters do not know one another: only node and cmd see two"},
	{"node/runner", words(core + " configs node/wire internal/once internal/plain"),
		"adapters do not know one another: only node and cmd see two"},
	{"node/databases", words("workflow configs internal/plain"),
		"adapters do not know one another: the runner asks a database by an interface of its own"},
	{"node/api", words("workflow internal/said"),
		"what a node can be asked does not depend on how the question travels"},
	{"node/api/httpapi", words("workflow configs node/api internal/once internal/plain internal/private"),
		"HTTP carries what the contract says, to whoever answers it"},
	{"node/web", words("workflow workflow/diagram partition/aptitude partition/study node/api node/api/httpapi " +
		"internal/once internal/plain"),
		"the page uses only the public API, like any other program, draws definitions, and shows the study"},
	{"worker", nil, "a worker is any program: it knows the HTTP contract and nothing of the node"},
	{"configs", words("workflow"), "configuration describes the node and must be readable without it"},
	{"cmd", words(core + " ..."), "the command line wires everything together"},
	{"internal/sim/meaning", words("workflow worklist choreo/fact dataflow"),
		"the second reading of the rules shares with the first only the facts, the definitions they are about, and the states that one line of facts makes"},
	{"internal/sim", words(core + " workflow/amendments configs internal/sim/meaning node node/api node/runner node/store/kv node/wire node/worklists"), "the simulator drives the real core and the real driver, by its stepped front door, on disks, links and clocks of its own: it knows the words of the adapters, and none of them"},
	{"internal/sim/mutants", words("internal/sim"),
		"the tool breaks the source on purpose and runs the simulator on it"},
	{"internal/private", nil, "a private file is private whatever is in it"},
	{"internal/canon", nil, "it writes in one form whatever is said"},
	{"internal/said", words("workflow"), "an error that speaks of partners knows their IDs, and not its readers"},
	{"internal/once", nil, "what stands twice is wrong whatever it is about"},
	{"internal/plain", nil, "what may be shown does not depend on its reader"},
	{"internal/golden", nil, "it compares files, whatever is in them"},
	{"internal/test/sample", nil, "it says how often something is done, whatever it is"},
	{"internal/test/testdisk", nil, "it makes small disks, whatever is kept on them"},
	{"internal/test/testlan", nil, "it makes networks of hosts, whatever runs on them"},
	{"internal/test/testnode", words("configs node node/api node/api/httpapi node/assemble"),
		"it runs whole nodes and asks them what any program may"},
	{"internal/test/testliar", words("choreo/fact membership/gossip membership/trust membership/users node node/files node/mesh node/wire node/worklists workflow worklist"), "it lies in the words of the protocols, by the packages that speak them"},
	{"internal/rules", nil, "the rules judge the packages and belong to none"},
}

func words(s string) []string { return strings.Fields(s) }

// layerOf finds the row of a folder: its own, or the nearest above it.
func layerOf(dir string) (layer, bool) {
	var found layer
	for _, l := range layers {
		if within(dir, l.dir) && len(l.dir) > len(found.dir) {
			found = l
		}
	}
	return found, found.dir != ""
}

// allows reports whether a package of this layer may import one of our folders:
// what the row lists, and what lies in the same layer.
func (l layer) allows(dir string) bool {
	if target, ok := layerOf(dir); ok && target.dir == l.dir {
		return true
	}
	for _, m := range l.may {
		if m == "..." || m == dir {
			return true
		}
		if below, ok := strings.CutSuffix(m, "/..."); ok && within(dir, below) {
			return true
		}
	}
	return false
}

// What has a row is there, and what a row names: a row of what is not hides that nobody
// gave a place to what comes.
func TestLayersAreThere(t *testing.T) {
	ours, err := readTree(os.DirFS(root), house)
	if err != nil {
		t.Fatal(err)
	}
	dirs := ours.dirs()
	there := func(dir string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return within(d, dir) })
	}
	for _, l := range layers {
		if l.dir != "internal/rules" && !there(l.dir) { // it has nothing but tests
			t.Errorf("layers has a row for %s, which is not there: take it off", l.dir)
		}
		for _, m := range l.may {
			if m != "..." && !there(strings.TrimSuffix(m, "/...")) {
				t.Errorf("the row of %s names %s, which is not there: take it off", l.dir, m)
			}
		}
	}
}

// layerComplaints finds imports against the direction, and packages that
// nobody has given a place.
func layerComplaints(t *tree) []string {
	var out []string
	homeless := make(map[string]bool)
	for _, f := range t.files {
		l, ok := layerOf(f.dir)
		if !ok {
			if !homeless[f.dir] {
				homeless[f.dir] = true
				out = append(out, t.complaint(f.syntax.Package,
					fmt.Sprintf("package %s has no place in the layers", f.dir),
					"imports go one way only if each package has one",
					"add a row for it to layers in internal/rules/layers_test.go and say why"))
			}
			continue
		}
		for _, im := range f.imports {
			if dir, ours := own(im.path); ours && !l.allows(dir) {
				out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s", f.dir, dir), l.why, l.advice()))
			}
		}
	}
	return out
}

func (l layer) advice() string {
	if len(l.may) == 0 {
		return "it may import none of our packages: move the code up to a package that needs both, or pass a value or a small interface in"
	}
	return fmt.Sprintf("it may import %s: move the code up to a package that needs both, or pass a value or a small interface in", strings.Join(l.may, ", "))
}
