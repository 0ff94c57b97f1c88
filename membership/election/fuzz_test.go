package election

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

func FuzzLineage(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	judge := func(_ *testing.T, ln Lineage) { _ = ln.Verify(w.mesh) }
	trusttest.Decoder(f, DecodeLineage, EncodeLineage, judge, w.nodes[0].lineage)
}

func FuzzBallot(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	e := w.nodes[0].election
	head, _ := e.Electorate()
	e.sign(head.successor(w.mesh, []Voter{w.voter(1)}, testLease))
	trusttest.Decoder(f, DecodeBallot, EncodeBallot, func(*testing.T, Ballot) {}, Ballot{}, e.ballot)
}

func FuzzMessage(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	w.advance(testLease + 1)
	w.elect(0)
	good := []Message{{Nominate: &Nominate{}}, {Declined: &Declined{Reason: "no majority"}}}
	for len(w.net) > 0 {
		good = append(good, w.net[0].msg)
		w.deliver(0, false)
	}
	judge := func(_ *testing.T, m Message) {
		for _, from := range []int{1, 2} {
			_, _ = w.nodes[0].election.clone().Step(w.id(from), m, w.now(0))
		}
	}
	trusttest.Decoder(f, DecodeMessage, EncodeMessage, judge, good...)
}

func FuzzCredentials(f *testing.F) {
	w := newWorld(f, 3, 3, flaws{})
	good, _ := Credentials{
		Mandate{Office: Office{Term: 1, Number: 1}, Holder: trusttest.IDOf("n1")}, w.nodes[0].lineage,
	}.Encode()
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := VerifyCredentials(w.mesh, trusttest.IDOf("n1"), b); err == nil {
			t.Errorf("invented credentials are accepted: %s", o)
		}
	})
}
