//go:build linux

package netns_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var measure = flag.Bool("measure", false, "measure idle traffic and memory at 2, 5 and 10 nodes: minutes (docs/performance-membership.md)")

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
	all := l.processes(preset)
	allSee(t, healing, all, "active", names(all)...)
	<-time.After(settle)
	bytes, packets := l.total()
	<-time.After(span)
	bytesAfter, packetsAfter := l.total()
	perNode := float64(bytesAfter-bytes) / span.Seconds() / float64(n)
	perPacket := float64(packetsAfter-packets) / span.Seconds() / float64(n)
	t.Logf("idle %s, %d nodes: %.0f B/s and %.2f packets/s sent per node, %.0f B/s without Ethernet headers", preset, n, perNode, perPacket, perNode-14*perPacket)
	var rss []string
	for _, p := range all {
		rss = append(rss, p.resident())
	}
	slices.Sort(rss)
	t.Logf("idle %s, %d nodes: resident memory, median: %s", preset, n, rss[len(rss)/2])
}

func (l *lan) total() (bytes, packets uint64) {
	for i := range l.hosts {
		b, p := l.sent(i)
		bytes, packets = bytes+b, packets+p
	}
	return bytes, packets
}

// resident is the process's resident memory ("ip netns exec" replaces itself).
func (p *process) resident() string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "?"
}
