//go:build linux

package netns_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testlan"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// healing is how long lists may differ after the network has changed: some seconds,
// which the tests log, and as long as this on a machine that has more to do.
const healing = time.Minute

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
	all := l.mesh("preset: lan")
	allSee(t, healing, all, "active", names(all)...)
	id := startShift(t, all)

	getsAnotherAddress(t, l, all)
	losesItsLink(t, l, all)
	cutApart(t, l, all)

	testnode.Within(t, 60*time.Second, "the instance that ran all the time succeeds everywhere", func() bool {
		for _, p := range all {
			in, err := p.API.Show(t.Context(), id)
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
func startShift(t *testing.T, all []*testnode.Node) string {
	t.Helper()
	if _, err := all[0].API.AddWorkflow(t.Context(), "shift.yaml", []byte(shift)); err != nil {
		t.Fatal(err)
	}
	st, err := all[0].API.Start(t.Context(),
		api.StartRequest{Workflow: "shift", Assign: map[string]string{"post": "n4", "base": "n1"}})
	if err != nil {
		t.Fatal(err)
	}
	return st.ID
}

func getsAnotherAddress(t *testing.T, l *lan, all []*testnode.Node) {
	old, moved := testlan.Address(4, false), testlan.Address(4, true)
	l.must(l.Readdress(4, true))
	for _, p := range all {
		took := testnode.Within(t, healing, p.Name+" knows the new address", func() bool {
			a := addresses(p, "n4")
			return strings.Contains(a, moved+"/") && !strings.Contains(a, old+"/") && p.Sees("active", names(all)...)
		})
		t.Logf("moved: %s follows after another %s", p.Name, took)
	}
}

func losesItsLink(t *testing.T, l *lan, all []*testnode.Node) {
	others := append(append([]*testnode.Node{}, all[:2]...), all[3:]...)
	l.must(l.Link(2, false))
	t.Logf("link lost: unreachable after %s", allSee(t, healing, others, "unreachable", "n2"))
	testnode.Within(t, healing, "n2 sees nobody", func() bool { return all[2].Sees("unreachable", names(others)...) })
	l.must(l.Link(2, true))
	t.Logf("link regained: lists agree after %s", allSee(t, healing, all, "active", names(all)...))
}

func cutApart(t *testing.T, l *lan, all []*testnode.Node) {
	left, right := all[:3], all[3:]
	l.isolate(3, true)
	start := time.Now()
	allSee(t, healing, left, "unreachable", names(right)...)
	allSee(t, healing, right, "unreachable", names(left)...)
	t.Logf("cut: unreachable after %s", time.Since(start))
	left = append([]*testnode.Node{}, left...)
	allSee(t, healing, left, "expired", names(right)...)
	t.Logf("cut: expired after %s", time.Since(start))
	l.isolate(3, false)
	t.Logf("healed: lists agree after %s", allSee(t, healing, all, "active", names(all)...))
}
