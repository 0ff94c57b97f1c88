package httpapi_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Partners are named where they were meant, and nowhere in what people wrote.
func TestErrorNamesPartners(t *testing.T) {
	const ana workflow.PartnerID = "12D3KooWAnaAnaAnaAna"
	name := func(workflow.PartnerID) string { return "ana" }
	e := api.Errorf(api.NotAllowed, "the name %s belongs to %s", string(ana), ana).WithHint("choose another")
	if got, want := e.Message, "the name 12D3KooWAnaAnaAnaAna belongs to AnaAnaAn"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	named := e.Named(name)
	if got, want := named.Error(), "the name 12D3KooWAnaAnaAnaAna belongs to ana\nhint: choose another"; got != want ||
		named.Code != e.Code {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := api.Errorf(api.Failed, "no"); e.Named(name) != e {
		t.Error("an error that names nobody is another afterwards")
	}
}
