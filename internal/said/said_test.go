package said_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	ana workflow.PartnerID = "12D3KooWAnaAnaAnaAna"
	bob workflow.PartnerID = "12D3KooWBobBobBobBob"
)

func name(id workflow.PartnerID) string {
	return map[workflow.PartnerID]string{ana: "ana", bob: "bob"}[id]
}

var errNo = errors.New("not allowed")

func TestRender(t *testing.T) {
	evicted := said.Errorf("%s is evicted by %s: %q", "crew", ana, "she is "+string(bob)) // what ana wrote stays
	for _, c := range []struct {
		err             error
		plain, rendered string
	}{
		{errors.New("no"), "no", "no"},
		{evicted, `crew is evicted by AnaAnaAn: "she is 12D3KooWBobBobBobBob"`,
			`crew is evicted by ana: "she is 12D3KooWBobBobBobBob"`},
		{said.Errorf("%s and %q", bob, ana), `BobBobBo and "AnaAnaAn"`, `bob and "ana"`},
		{said.Errorf("voters: %v", []workflow.PartnerID{bob, ana}), "voters: BobBobBo, AnaAnaAn", "voters: bob, ana"},
		{said.Errorf("%s: %w", bob, errNo), "BobBobBo: not allowed", "bob: not allowed"},
		{said.Errorf("%s says %w", bob, evicted),
			`BobBobBo says crew is evicted by AnaAnaAn: "she is 12D3KooWBobBobBobBob"`,
			`bob says crew is evicted by ana: "she is 12D3KooWBobBobBobBob"`},
		{fmt.Errorf("cannot start: %w (%d)", evicted, 3),
			`cannot start: crew is evicted by AnaAnaAn: "she is 12D3KooWBobBobBobBob" (3)`,
			`cannot start: crew is evicted by ana: "she is 12D3KooWBobBobBobBob" (3)`},
		{fmt.Errorf("BananaAnaAnaAn and AnaAnaAns wait: %w", said.Errorf("%s", ana)),
			"BananaAnaAnaAn and AnaAnaAns wait: AnaAnaAn", "BananaAnaAnaAn and AnaAnaAns wait: ana"},
		{fmt.Errorf("%w, %w", said.Errorf("%s", bob), said.Errorf("%s, %s", bob, ana)), "BobBobBo, BobBobBo, AnaAnaAn",
			"bob, bob, ana"},
		{errors.Join(said.Errorf("of %s", ana), said.Errorf("of %s", bob)), "of AnaAnaAn\nof BobBobBo",
			"of ana\nof bob"},
		{said.Join([]string{"", " granted ", " a lease, 100%"}, []workflow.PartnerID{ana, bob}),
			"AnaAnaAn granted BobBobBo a lease, 100%", "ana granted bob a lease, 100%"},
	} {
		if c.err.Error() != c.plain {
			t.Errorf("got %s, want %s", c.err, c.plain)
		}
		if got := said.Render(c.err, name); got != c.rendered {
			t.Errorf("got %s, want %s", got, c.rendered)
		}
	}
	if said.Render(nil, name) != "" {
		t.Error("nothing has a text")
	}
}

// It wraps what fmt.Errorf would wrap.
func TestWraps(t *testing.T) {
	wrapped := fmt.Errorf("x: %w", said.Errorf("%s: %w", ana, said.Errorf("%s %w", bob, errNo)))
	if !errors.Is(wrapped, errNo) {
		t.Error("what it wraps is not found")
	}
	if errors.Is(said.Errorf("%s: %v", ana, errNo), errNo) {
		t.Error("what it only shows is wrapped")
	}
	if got, want := said.Partners(wrapped), []workflow.PartnerID{ana, bob}; !slices.Equal(got, want) {
		t.Errorf("it names %v, want %v", got, want)
	}
}
