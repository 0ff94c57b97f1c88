package assemble

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// Phones are given addresses of the networks nearby, the one by which the machine sends first; public
// ones only where their kind has no other.
func TestAddressesForPhones(t *testing.T) {
	for _, tt := range []struct{ found, likely, want string }{
		{"", "", "[]"},
		{"192.168.1.20 10.8.0.2 203.0.113.5", "", "[192.168.1.20 10.8.0.2]"},
		{"172.17.0.1 192.168.1.20 192.168.1.20", "192.168.1.20", "[192.168.1.20 172.17.0.1]"},
		{"fd00::2 192.168.1.20 fe80::1 2001:db8::7", "192.168.1.20", "[192.168.1.20 fd00::2]"},
		{"fd00::2 203.0.113.5 127.0.0.1 ::1", "", "[203.0.113.5 fd00::2]"},
		{"2001:db8::7 fe80::1", "", "[2001:db8::7]"},
		{"169.254.7.7 fe80::1", "", "[169.254.7.7]"},
		{"169.254.7.7 10.0.0.1", "169.254.7.7", "[10.0.0.1]"},
		{"224.0.0.1 0.0.0.0 fe80::1", "", "[]"},
	} {
		var found []netip.Addr
		for _, a := range strings.Fields(tt.found) {
			found = append(found, netip.MustParseAddr(a))
		}
		likely, _ := netip.ParseAddr(tt.likely) // none: invalid
		if got := fmt.Sprint(phoneAddresses(found, likely)); got != tt.want {
			t.Errorf("of %q, by %q: %s, want %s", tt.found, tt.likely, got, tt.want)
		}
	}
	if got := phoneAddresses([]netip.Addr{{}}, netip.Addr{}); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
	for _, a := range networkAddresses() {
		if !a.IsValid() || a.IsLoopback() || a.IsUnspecified() {
			t.Errorf("of this machine: %v", a)
		}
	}
}
