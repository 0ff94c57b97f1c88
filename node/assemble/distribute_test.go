package assemble_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rescue is one piece of work for which five partners are apt to different degrees.
const rescue = `
workflow: rescue
tasks:
  climb: {type: manual, duration: 10s, suitability: {one: 1.0, two: 0.9, three: 0.8, four: 0.7, five: 0.5}}
`

var aptFor = map[string]float64{"one": 1, "two": 0.9, "three": 0.8, "four": 0.7, "five": 0.5}

// mesh is five real nodes, with libp2p and Badger, and an initiator among them.
type mesh struct {
	t    *testing.T
	at   map[string]*host
	open []given // the oldest first
}

// given is an instance and its holder.
type given struct{ id, partner string }

func (m *mesh) initiator() api.Service { return m.at["five"].h.Service() }

// give starts an instance and returns its holder.
func (m *mesh) give(mechanism string) given {
	m.t.Helper()
	ctx := context.Background()
	st, err := m.initiator().Start(ctx, api.StartRequest{Workflow: "rescue", Mechanism: mechanism})
	if err != nil {
		m.t.Fatal(err)
	}
	in, err := m.initiator().Show(ctx, st.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	g := given{st.ID, in.Tasks[0].Partner}
	m.open = append(m.open, g)
	return g
}

// finish has the partner that holds the oldest piece of work finish it, and
// waits until the initiator knows.
func (m *mesh) finish() {
	m.t.Helper()
	g := m.open[0]
	m.open = m.open[1:]
	eventually(m.t, g.partner+" finishes "+g.id, func() bool {
		err := m.at[g.partner].h.Service().FinishTask(context.Background(), api.FinishRequest{ID: g.id, Task: "climb"})
		return err == nil || strings.Contains(err.Error(), "succeeded")
	})
	eventually(m.t, "the initiator hears that "+g.id+" is done", func() bool {
		in, err := m.initiator().Show(context.Background(), g.id)
		return err == nil && in.State == workflow.InstanceSucceeded
	})
}

// hundred has a hundred instances distributed, two under way at a time, and
// returns how many each got and the quality, at best 1.
func (m *mesh) hundred(mechanism string) (got map[string]int, quality float64) {
	m.t.Helper()
	got = map[string]int{}
	for range 100 {
		if len(m.open) == 2 {
			m.finish()
		}
		g := m.give(mechanism)
		got[g.partner]++
		quality += aptFor[g.partner] / 100
	}
	for len(m.open) > 0 {
		m.finish()
	}
	m.t.Logf("%-17s quality %.3f, %v", mechanism, quality, got)
	return got, quality
}

// On five real nodes with unequal suitabilities a hundred instances are
// distributed by each mechanism: quality and load order as in the study, and a
// partner that becomes unavailable, rejects or leaves is passed over at once.
func TestMechanismsOnARealMesh(t *testing.T) {
	m := &mesh{t: t, at: team(t, "one", "two", "three", "four", "five")}
	if _, err := m.initiator().AddWorkflow(context.Background(), "rescue.yaml", []byte(rescue)); err != nil {
		t.Fatal(err)
	}
	load, quality := map[string]map[string]int{}, map[string]float64{}
	for _, mechanism := range workflow.Mechanisms {
		load[mechanism], quality[mechanism] = m.hundred(mechanism)
	}
	for _, p := range [][2]string{{"Push", "Sel-push"}, {"Sel-push", "Selective"}, {"Selective", "Pull"}} {
		if quality[p[0]] < quality[p[1]] {
			t.Errorf("quality by %s is %.3f, by %s %.3f: want the first at least as good", p[0], quality[p[0]], p[1],
				quality[p[1]])
		}
	}
	for _, mechanism := range []string{"Sel-push", "Sel-push-10", "Sel-push-flowtime", "Sel-push-pull"} {
		if load[mechanism]["one"] >= load["Push"]["one"] {
			t.Errorf("%s gives the most apt %d of a hundred, Push %d: want less", mechanism, load[mechanism]["one"],
				load["Push"]["one"])
		}
	}
	m.passedOver()
}

// passedOver has the most apt partners become unavailable, reject and go down.
func (m *mesh) passedOver() {
	t, ctx := m.t, context.Background()
	expect := func(want string) given {
		t.Helper()
		g := m.give("Push")
		if g.partner != want {
			t.Errorf("Push gives it to %s, want %s", g.partner, want)
		}
		return g
	}
	g := expect("one")
	eventually(t, "one passes it on to two", func() bool {
		to, err := m.at["one"].h.Service().
			RejectTask(ctx, api.RejectRequest{ID: g.id, Task: "climb", Reason: "no rope"})
		return err == nil && to.Partner == "two"
	})
	none := 0.0
	if _, err := m.at["one"].h.Service().SetProfile(ctx, api.ProfileChange{Availability: &none}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "five hears that one takes nothing", func() bool {
		list, err := m.initiator().Resources(ctx, "capacity one")
		return err == nil && len(list) == 1 && list[0].Holders[0].Spare == 0
	})
	expect("two")
	m.at["two"].close()
	eventually(t, "five hears that two is down", func() bool {
		ps, err := m.initiator().Partners(ctx)
		for _, p := range ps {
			if p.Name == "two" {
				return err == nil && p.State == "unreachable" && p.Reason == "going down"
			}
		}
		return false
	})
	expect("three")
	m.at["two"].start()
}
