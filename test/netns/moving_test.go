//go:build linux

package netns_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// healing is how long lists may differ after the network is whole again.
const healing = 10 * time.Second

const shift = `
workflow: shift
tasks:
  watch:  {application: sleep, with: {for: 20s}}
  report: {after: watch}
partitions:
  post: [watch]
  base: [report]
`

// Six hosts on a LAN, with an instance running over it: one gets another
// address; one loses its link and regains it; two halves are cut apart.
func TestMovingHosts(t *testing.T) {
	l := newLAN(t, 6)
	if l == nil {
		return
	}
	all := l.processes("lan")
	allSee(t, healing, all, "active", names(all)...)
	id := startShift(t, all)

	getsAnotherAddress(t, l, all)
	losesItsLink(t, l, all)
	cutApart(t, l, all)

	within(t, 60*time.Second, "the instance that ran all the time succeeds everywhere", func() bool {
		for _, p := range all {
			in, err := p.node.Show(t.Context(), id)
			if p == all[1] || p == all[0] || p == all[4] {
				if err != nil || in.State != "succeeded" {
					return false
				}
			}
		}
		return true
	})
}

// startShift starts an instance that n1 and n4 work on.
func startShift(t *testing.T, all []*process) string {
	t.Helper()
	if _, err := all[0].node.AddWorkflow(t.Context(), "shift.yaml", []byte(shift)); err != nil {
		t.Fatal(err)
	}
	st, err := all[0].node.Start(t.Context(), api.StartRequest{Workflow: "shift", Assign: map[string]string{"post": "n4", "base": "n1"}})
	if err != nil {
		t.Fatal(err)
	}
	return st.ID
}

func getsAnotherAddress(t *testing.T, l *lan, all []*process) {
	const moved = "10.77.0.104"
	l.on(4, "address", "add", moved+"/24", "dev", "eth0")
	l.on(4, "address", "del", address(4)+"/24", "dev", "eth0")
	// Deleting the first address takes the second of its subnet with it, unless told otherwise.
	if err := addAgain(l, moved); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		took := within(t, healing, p.name+" knows the new address", func() bool {
			a := p.addresses("n4")
			return strings.Contains(a, moved+"/") && !strings.Contains(a, address(4)+"/") && p.sees("active", names(all)...)
		})
		t.Logf("moved: %s follows after another %s", p.name, took)
	}
}

func losesItsLink(t *testing.T, l *lan, all []*process) {
	others := append(append([]*process{}, all[:2]...), all[3:]...)
	l.ip("link", "set", port(2), "down")
	t.Logf("link lost: unreachable after %s", allSee(t, 10*time.Second, others, "unreachable", "n2"))
	within(t, 10*time.Second, "n2 sees nobody", func() bool { return all[2].sees("unreachable", names(others)...) })
	l.ip("link", "set", port(2), "up")
	t.Logf("link regained: lists agree after %s", allSee(t, healing, all, "active", names(all)...))
}

func cutApart(t *testing.T, l *lan, all []*process) {
	left, right := all[:3], all[3:]
	l.isolate(3, true)
	start := time.Now()
	allSee(t, 10*time.Second, left, "unreachable", names(right)...)
	allSee(t, 10*time.Second, right, "unreachable", names(left)...)
	t.Logf("cut: unreachable after %s", time.Since(start))
	left = append([]*process{}, left...)
	allSee(t, 20*time.Second, left, "expired", names(right)...)
	t.Logf("cut: expired after %s", time.Since(start))
	l.isolate(3, false)
	t.Logf("healed: lists agree after %s", allSee(t, healing, all, "active", names(all)...))
}

// addAgain gives host 4 an address if it lost it.
func addAgain(l *lan, a string) error {
	out, err := runOn(l.t.Context(), l.space(4), "ip", "-o", "address", "show", "dev", "eth0")
	if err != nil || strings.Contains(out, a+"/") {
		return err
	}
	l.on(4, "address", "add", a+"/24", "dev", "eth0")
	return nil
}

func runOn(ctx context.Context, space string, args ...string) (string, error) {
	return output(ctx, append([]string{"ip", "netns", "exec", space}, args...)...)
}
