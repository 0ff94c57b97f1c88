//go:build linux

package netns_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

var measure = flag.Bool("measure", false,
	"measure idle traffic and memory at 2, 5 and 10 nodes: minutes (docs/performance-membership.md)")

// Idle traffic by the counters of the interfaces, per node: all that is on the
// wire, Ethernet headers included; each packet is counted once, at its sender.
// Without -measure two nodes show for a few seconds that it works.
func TestIdleTraffic(t *testing.T) {
	counts, settle, span := []int{2}, 3*time.Second, 5*time.Second
	presets := []string{"lan"}
	if *measure {
		counts, settle, span = []int{10, 5, 2}, 20*time.Second, 100*time.Second
		presets = []string{"lan", "mobile"}
	}
	for _, preset := range presets {
		for _, n := range counts {
			t.Run(fmt.Sprintf("%s-%d", preset, n), func(t *testing.T) { idle(t, preset, n, settle, span) })
		}
	}
}

func idle(t *testing.T, preset string, n int, settle, span time.Duration) {
	l := newLAN(t, n)
	if l == nil {
		return
	}
	all := l.mesh("preset: " + preset)
	allSee(t, healing, all, "active", names(all)...)
	<-time.After(settle)
	bytes, packets := l.total()
	<-time.After(span)
	bytesAfter, packetsAfter := l.total()
	perNode := float64(bytesAfter-bytes) / span.Seconds() / float64(n)
	perPacket := float64(packetsAfter-packets) / span.Seconds() / float64(n)
	t.Logf("idle %s, %d nodes: %.0f B/s and %.2f packets/s sent per node, %.0f B/s without Ethernet headers", preset, n,
		perNode, perPacket, perNode-14*perPacket)
	for _, of := range []string{"VmRSS", "RssAnon", "goroutines"} {
		var values []int
		for _, p := range all {
			values = append(values, gauge(p, of))
		}
		slices.Sort(values)
		t.Logf("idle %s, %d nodes: %s, median: %d", preset, n, of, values[len(values)/2])
	}
}

func (l *lan) total() (bytes, packets uint64) {
	for i := range l.hosts {
		b, p := l.sent(i)
		bytes, packets = bytes+b, packets+p
	}
	return bytes, packets
}

// gauge reads a line of the process's status, in kB ("ip netns exec" replaces
// itself), or how many goroutines it has.
func gauge(p *testnode.Node, name string) int {
	p.T.Helper()
	file := fmt.Sprintf("/proc/%d/status", p.Process.Pid)
	if name == "goroutines" {
		file = filepath.Join(p.Dir, gaugesFile)
		p.Signal(syscall.SIGUSR1)
	}
	value := 0
	testnode.Within(p.T, time.Minute, p.Name+" tells its "+name, func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		_, rest, ok := strings.Cut(string(b), name+":")
		if !ok {
			return false
		}
		_, err = fmt.Sscan(rest, &value)
		return err == nil
	})
	return value
}
