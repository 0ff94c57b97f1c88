package rules_test

import "fmt"

// library is a dependency that only some folders may import.
type library struct {
	path  string // it and everything below
	homes []string
	why   string
}

// libraries have one importer each, so that a change of theirs, or their
// replacement, touches one folder.
var libraries = []library{
	{"github.com/dgraph-io", words("node/store"), "only the store knows that it is Badger"},
	{"github.com/goccy/go-yaml/lexer", words("workflow"), "it panics over some texts, and is guarded in one place"},
	{"github.com/goccy/go-yaml/parser", words("workflow"), "it panics over some texts, and is guarded in one place"},
	{"github.com/jackc", words("node/databases"), "only the node's databases know whose they are"},
	{"modernc.org/sqlite", words("node/databases"), "only the node's databases know whose they are"},
	{"github.com/klauspost/compress", words("node/mesh"), "only the mesh transport knows how bytes travel"},
	{"github.com/hashicorp/memberlist", words("membership/gossip"), "only the gossip adapter knows memberlist"},
	{"github.com/libp2p/go-libp2p-pubsub", words("membership/gossip"), "only the gossip adapter knows pubsub"},
	{"github.com/libp2p/go-libp2p", words("node/mesh"),
		"only the mesh transport knows libp2p; others name partners by workflow.PartnerID"},
	{"github.com/libp2p/go-libp2p/core/host", words("node/mesh membership/gossip"),
		"pubsub is made from a host, so gossip has to name that interface; it gets one that shows members only, from the mesh"},
	{"github.com/quic-go", words("node/mesh"), "only the mesh transport knows how bytes travel"},
	{"golang.org/x/net", words("node/mesh"), "only the mesh transport knows how bytes travel"},
	{"github.com/spf13", words("cmd"), "only the command line has flags"},
	{"testing", words("node/store/storetest node/codec/codectest membership/trust/trusttest internal/golden"),
		"test machinery in a program adds flags and weight; only conformance suites, golden files and the meshes of tests, which tests import, need it"},
	{"C", nil, "Mutirão is built without cgo, so that it cross-compiles to every device"},
}

// libraryComplaints finds imports of libraries outside their homes.
func libraryComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		for _, im := range f.imports {
			if l, ok := libraryOf(im.path); ok && !l.at(f.dir) {
				out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s", f.dir, im.path), l.why, l.advice()))
			}
		}
	}
	return out
}

// libraryOf finds the row of an import path: its own, or the nearest above it.
func libraryOf(path string) (library, bool) {
	var found library
	for _, l := range libraries {
		if within(path, l.path) && len(l.path) > len(found.path) {
			found = l
		}
	}
	return found, found.path != ""
}

func (l library) at(dir string) bool {
	for _, h := range l.homes {
		if within(dir, h) {
			return true
		}
	}
	return false
}

func (l library) advice() string {
	if len(l.homes) == 0 {
		return "use a library in pure Go"
	}
	return fmt.Sprintf("put what needs it into %s and use that through a small interface", l.homes[0])
}
