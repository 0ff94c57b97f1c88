package assemble

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store"
)

// An address at which the node is to listen, and that another program has, is named.
func TestListenAddressInUse(t *testing.T) {
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	port := func(a net.Addr) string {
		_, p, _ := net.SplitHostPort(a.String())
		return p
	}
	tcp, udp := "/ip4/127.0.0.1/tcp/"+port(stream.Addr()), "/ip4/127.0.0.1/udp/"+port(packets.LocalAddr())+"/quic-v1"
	free := "/ip4/127.0.0.1/udp/0/quic-v1"
	for _, c := range []struct {
		listen []string
		want   string
	}{
		{[]string{free}, ""},
		{[]string{free, tcp}, "warning ports " + tcp + " is taken by another program"},
		{[]string{tcp, udp}, "wrong ports " + tcp + " is taken by another program; wrong ports " + udp +
			" is taken by another program"},
		{[]string{"/ip4/192.0.2.1/tcp/4001"},
			"wrong ports the node cannot listen at /ip4/192.0.2.1/tcp/4001: this machine has no such address"},
	} {
		var got []string
		examineListen(func(state, check, what, _ string) { got = append(got, state+" "+check+" "+what) }, c.listen)
		if all := strings.Join(got, "; "); !strings.HasPrefix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("of %v it says %q, want %q", c.listen, all, c.want)
		}
	}
}

// A clock is not right that is before what is past, nor, for a node that is used, long after.
func TestImplausibleClock(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	past := []landmark{{at.Add(-time.Hour), "the program was built"}, {at, "the store was last written"}}
	for _, c := range []struct {
		now   time.Time
		past  []landmark
		state string
	}{
		{at.Add(time.Hour), past, api.FindingOK},
		{at.Add(-time.Second), past, api.FindingOK},
		{at.Add(-time.Hour), past, api.FindingWarning},
		{at.AddDate(-1, 0, 0), past, api.FindingWrong},
		{at.AddDate(2, 0, 0), past, api.FindingWarning},
		{at, nil, api.FindingOK},
	} {
		var got, what string
		examineClock(func(state, _, w, _ string) { got, what = state, w }, c.now, c.past)
		if got != c.state {
			t.Errorf("at %s: %s %s, want %s", c.now, got, what, c.state)
		}
	}
}

// With less room than the store needs the node does not start, and that is no warning only.
func TestSpaceOfAStoppedNode(t *testing.T) {
	for _, c := range []struct {
		free  uint64
		state string
		what  string
	}{
		{2 << 30, api.FindingOK, "2048 MiB of 8192 MiB are free"},
		{300 << 20, api.FindingWarning, "300 MiB of 8192 MiB are free"},
		{100 << 20, api.FindingWrong, "100 MiB of 8192 MiB are free, and the store writes nothing with less than 256 MiB"},
	} {
		examineSpace(func(state, check, what, _ string) {
			if state != c.state || check != "disk" || what != c.what {
				t.Errorf("with %d MiB: %s %s %s", c.free>>20, state, check, what)
			}
		}, c.free, 8<<30, 256<<20)
	}
}

// What the store needs is known before there is one; a folder that is not there takes nothing.
func TestWhatAStoreNeeds(t *testing.T) {
	dir := t.TempDir()
	for preset, want := range map[store.Preset]int64{store.Default: 256 << 20, store.Small: 64 << 20} {
		if need, err := store.ReserveAt(dir, store.Options{Preset: preset}); err != nil || need != want {
			t.Errorf("%s: %d bytes, %v; want %d", preset, need, err, want)
		}
	}
	if err := notWritable(dir); err != nil {
		t.Errorf("nothing can be written into %s: %v", dir, err)
	}
	if err := notWritable(filepath.Join(dir, "none")); err == nil && runtime.GOOS != "windows" {
		t.Error("a folder that is not there is said to take files")
	}
}
