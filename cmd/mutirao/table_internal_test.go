package main

import "testing"

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
