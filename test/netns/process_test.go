//go:build linux

// Package netns_test runs real nodes, each in a process of its own, and takes
// their network away: processes are killed, come back elsewhere, change their
// addresses, lose their links and are cut apart.
package netns_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

func TestMain(m *testing.M) { testnode.Main(m, tellGauges) }

// gaugesFile is where a node of this test says, on SIGUSR1, how many goroutines it
// has.
const gaugesFile = "gauges"

func tellGauges(ctx context.Context, dir string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		text := fmt.Sprintf("goroutines: %d\n", runtime.NumGoroutine())
		if err := os.WriteFile(filepath.Join(dir, gaugesFile), []byte(text), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// newNodes names nodes n0, n1 and so on.
func newNodes(t *testing.T, count int) []*testnode.Node {
	var all []*testnode.Node
	for i := range count {
		all = append(all, testnode.New(t, fmt.Sprintf("n%d", i)))
	}
	return all
}

func names(all []*testnode.Node) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.Name)
	}
	return out
}

// addresses are what p knows of another's addresses.
func addresses(p *testnode.Node, of string) string {
	all, err := p.API.Partners(p.T.Context())
	if err != nil {
		return ""
	}
	for _, x := range all {
		if x.Name == of {
			return strings.Join(x.Addresses, " ")
		}
	}
	return ""
}

// allSee waits until each of the watchers sees the named partners in a state.
func allSee(t *testing.T, d time.Duration, watchers []*testnode.Node, state string, who ...string) time.Duration {
	t.Helper()
	start := time.Now()
	for _, p := range watchers {
		ok := func() bool { return p.Sees(state, who...) }
		for !ok() {
			if time.Since(start) > d {
				t.Fatalf("%s does not see %v %s within %s: %v", p.Name, who, state, d, p.States())
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return time.Since(start)
}
