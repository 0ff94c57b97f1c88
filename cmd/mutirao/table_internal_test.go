package main

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// People read the ID of a partner in the same short form in tables as in logs and reasons, and durations as
// definitions write them; programs read all of it.
func TestShortForms(t *testing.T) {
	const id = "12D3KooWAfgyhMHoXYZabcdefghijkmnopqrstuvwxyz12345678"
	for _, x := range []struct {
		u    ui
		want string
	}{{ui{terminal: true}, "AfgyhMHo"}, {ui{terminal: true, verbose: true}, id}, {ui{}, id}} {
		if got := x.u.partnerID(id); got != x.want {
			t.Errorf("terminal %v, verbose %v: %s, want %s", x.u.terminal, x.u.verbose, got, x.want)
		}
	}
	for said, want := range map[string]string{"168h0m0s": "7d", "15s": "15s", "169h0m0s": "7d1h", "": ""} {
		if got := span(said); got != want {
			t.Errorf("%q is shown as %q, want %q", said, got, want)
		}
	}
}

// What is known of one of several partners is not said of another.
func TestWhereAnInstanceIsAt(t *testing.T) {
	known := "as known 12 min ago"
	for want, in := range map[string]api.InstanceSummary{
		"-":                                      {},
		"boat, quay":                             {At: []string{"boat", "quay"}},
		"boat (as known 12 min ago)":             {At: []string{"boat"}, Known: known, Of: "boat"},
		"quay (boat: as known 12 min ago)":       {At: []string{"quay"}, Known: known, Of: "boat"},
		"boat, quay (boat: as known 12 min ago)": {At: []string{"boat", "quay"}, Known: known, Of: "boat"},
		"- (boat: as known 12 min ago)":          {Known: known, Of: "boat"},
	} {
		if got := whereAt(in); got != want {
			t.Errorf("at %v, %q: %q, want %q", in.At, in.Known, got, want)
		}
	}
}
