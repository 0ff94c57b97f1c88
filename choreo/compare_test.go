package choreo

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
)

// firstDifference tells where two fingerprints differ; "" nowhere.
func firstDifference(a, b []byte) string {
	if bytes.Equal(a, b) {
		return ""
	}
	la, lb := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return fmt.Sprintf("line %d:\n\t%s\n\t%s", i+1, la[i], lb[i])
		}
	}
	return fmt.Sprintf("%d lines and %d lines", len(la), len(lb))
}

// scratch folds the facts of a machine again, all at once.
func (w *mesh) scratch(m *Machine) *Machine {
	w.t.Helper()
	return w.scratchOf(m, func(*log.Entry) bool { return true })
}

// scratchOf folds those facts of a machine again that keep says.
func (w *mesh) scratchOf(m *Machine, keep func(*log.Entry) bool) *Machine {
	w.t.Helper()
	var facts []fact.Received
	for _, e := range m.log.Order() {
		if keep(e) {
			facts = append(facts, fact.Received{Fact: e.Fact, ID: e.ID, Raw: e.Raw, Att: e.Att})
		}
	}
	n, err := Open(Self{Partner: "observer", Incarnation: fact.Incarnation{9}, Trust: testTrust{}}, w.def, w.plan,
		facts[0])
	if err == nil {
		err = n.Load(facts[1:], false)
	}
	if err != nil {
		w.t.Fatalf("facts that were folded one by one cannot be loaded: %v", err)
	}
	return n
}

// mustMatch fails the test where two machines' states differ.
func mustMatch(t testing.TB, what string, a, b *Machine) {
	t.Helper()
	if d := firstDifference(a.Fingerprint(), b.Fingerprint()); d != "" {
		t.Fatalf("%s: states differ, %s", what, d)
	}
}
