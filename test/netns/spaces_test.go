//go:build linux

package netns_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/test/testlan"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

// lan is a network of hosts, each for a node.
type lan struct {
	*testlan.LAN
	t     *testing.T
	hosts int
	outer string // of the network outside, where there are NATs: its addresses begin so
}

// newLAN makes a LAN; nil where that is not permitted.
func newLAN(t *testing.T, hosts int) *lan {
	t.Helper()
	l := testlan.New(t, fmt.Sprintf("mu%d", os.Getpid()), hosts, "nodes in network namespaces")
	if l == nil {
		return nil
	}
	return &lan{LAN: l, t: t, hosts: hosts}
}

func (l *lan) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// isolate puts the hosts from one on behind another bridge, which leads nowhere
// else, or back.
func (l *lan) isolate(from int, cut bool) {
	l.t.Helper()
	for i := from; i < l.hosts; i++ {
		l.must(l.Move(i, cut))
	}
}

// nodes makes a node per host.
func (l *lan) nodes() []*testnode.Node {
	all := newNodes(l.t, l.hosts)
	for i, p := range all {
		p.Command = l.Command(i, os.Args[0])
	}
	return all
}

// mesh starts a node per host, of a mesh that the first founds.
func (l *lan) mesh(config ...string) []*testnode.Node {
	l.t.Helper()
	all := l.nodes()
	for _, p := range all {
		p.Configure(config...)
	}
	all[0].Found(all[1:]...)
	return all
}

// sent is how many bytes a host has put on its link, headers included.
func (l *lan) sent(host int) (bytes, packets uint64) {
	l.t.Helper()
	read := func(counter string) uint64 {
		out := run(l.t, l.Command(host, "cat", "/sys/class/net/eth0/statistics/"+counter)...)
		n, err := strconv.ParseUint(strings.TrimSpace(out), 10, 64)
		if err != nil {
			l.t.Fatal(err)
		}
		return n
	}
	return read("tx_bytes"), read("tx_packets")
}
