package mesh

import (
	"slices"
	"testing"
)

// A node that comes back listens where it did before, so that partners who kept
// its addresses find it; where somebody else took the port meanwhile, elsewhere.
func TestPortsAreTakenAgain(t *testing.T) {
	transports(t, func(t *testing.T, listen []string) {
		first := start(t, listen)
		before := first.Listening()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}

		again := start(t, listen, func(c *Config) { c.Key, c.Boot, c.Prefer = first.cfg.Key, 2, before })
		if now := again.Listening(); !slices.Equal(now, before) {
			t.Errorf("listens on %v, before its restart on %v", now, before)
		}

		other := start(t, listen, func(c *Config) { c.Prefer = before })
		for _, a := range other.Listening() {
			if slices.Contains(before, a) {
				t.Errorf("listens on %s, which is taken", a)
			}
		}
		if n := len(other.Listening()); n != len(listen) {
			t.Errorf("listens on %d addresses, want %d", n, len(listen))
		}
		again.knows(t, other)
		again.untilUp(t, other)
	})
}

// Only a port that the configuration leaves open is remembered.
func TestRemembered(t *testing.T) {
	before := []string{"/ip4/0.0.0.0/udp/4001/quic-v1", "/ip4/0.0.0.0/tcp/4002", "/ip4/127.0.0.1/tcp/4003"}
	for listen, want := range map[string]string{
		"/ip4/0.0.0.0/udp/0/quic-v1": "/ip4/0.0.0.0/udp/4001/quic-v1",
		"/ip4/0.0.0.0/tcp/0":         "/ip4/0.0.0.0/tcp/4002",
		"/ip4/127.0.0.1/tcp/0":       "/ip4/127.0.0.1/tcp/4003",
		"/ip4/0.0.0.0/tcp/4002":      "",
		"/ip4/0.0.0.0/tcp/9":         "",
		"/ip6/::/tcp/0":              "",
	} {
		if got, ok := remembered(listen, before); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", listen, got, ok, want)
		}
	}
}
