//go:build linux

package liar_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A member that has no right says all the same what only one that has it may say:
// it does not count, and the victims work on.
func TestRights(t *testing.T) {
	v := newVictims(t)
	l := v.liar(v.begins())
	for name, attack := range map[string]func(*testing.T, *victims, *testliar.Liar){
		"takes work of a role by its own verdict":    usurps,
		"begins what only a role may begin":          creates,
		"brings itself into an instance":             injects,
		"uses another's application under its name":  squats,
		"reads data sets, which strangers do not":    readsData,
		"evicts, and gives the victim a certificate": evicts,
	} {
		t.Run(name, func(t *testing.T) {
			w := *v
			w.t = t
			attack(t, &w, l)
		})
	}
	v.holds()
}

// aid has work of ana's role; what there is besides is bea's and the liar's.
const aid = `
workflow: aid
data: {dose: {type: integer}}
tasks:
  reach:  {type: manual}
  treat:  {after: reach, type: manual, role: medic, out: [dose], on-failure: {contingency: treat2}}
  treat2: {type: manual, role: medic, out: [dose]}
  carry:  {after: treat, type: manual}
partitions: {crew: [reach], doctor: [treat], carriers: [carry]}
`

// usurp judges work of ana's in an instance of aid, gives it to the liar, and has it do
// that without the role.
func usurp(ctx context.Context, l *testliar.Liar, about workflow.InstanceID) {
	takes := fact.Action{
		Attempt: fact.AttemptID{Slot: "treat"}, Kind: workflow.FailContingency, Task: "treat2", Partner: l.Who().ID(),
	}
	f := l.Forger(about, 1)
	verdict := f.Says(ctx, fact.Body{
		Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{takes}},
	}, l.Knows(about)[:1]...)
	mine := fact.AttemptID{Fact: verdict, Slot: "treat"}
	own := trust.EncodeChain(l.Who().Chain)
	f.Says(ctx, fact.Body{Start: &fact.Start{Attempt: mine, Try: 1}, Credentials: own})
	outputs := map[workflow.DataName]workflow.Value{"dose": int64(1000)}
	f.Says(ctx, fact.Body{Success: &fact.Success{Attempt: mine, Try: 1, Outputs: outputs}})
}

// usurps takes work for which the liar lacks the role: nobody takes its result over.
func usurps(t *testing.T, v *victims, l *testliar.Liar) {
	v.add(aid)
	id, about := v.start("aid", map[string]string{"crew": "bea", "doctor": "ana", "carriers": "mal"})
	testnode.Within(t, time.Minute, "the liar is told of the instance", func() bool { return len(l.Knows(about)) > 0 })
	usurp(t.Context(), l, about)
	for _, n := range []*testnode.Node{v.ana, v.bea} {
		testnode.Within(t, time.Minute, n.Name+" shows that the liar has not shown the role", func() bool {
			in, err := n.API.Show(t.Context(), id)
			return err == nil && slices.ContainsFunc(in.Incidents, func(i api.Incident) bool {
				return strings.Contains(i.What, "has not shown that it has the role")
			})
		})
		in, err := n.API.Show(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if in.Data["dose"] != nil {
			t.Errorf("%s takes over the liar's dose, %v", n.Name, in.Data["dose"])
		}
		for _, x := range in.Tasks {
			if (x.Name == "treat" || x.Name == "treat2") && x.State == workflow.Succeeded {
				t.Errorf("at %s, %s has succeeded", n.Name, x.Name)
			}
		}
	}
}

// order is the commander's.
const order = `
workflow: order
creator-role: commander
tasks:
  go: {type: manual, role: commander}
  on: {after: go, type: manual}
partitions: {mine: [go], yours: [on]}
`

// commands begins an order, and does its work, by whatever the liar shows for it.
func commands(ctx context.Context, l *testliar.Liar, def *workflow.Definition, shows []byte) workflow.InstanceID {
	id := l.Begins(ctx, def, func(f *fact.Fact) { f.Body.Credentials = shows })
	f := l.Forger(id, 1)
	seen := fact.Head{Chain: fact.Chain{Author: l.Who().ID(), Incarnation: fact.Incarnation{1}}, Seq: 1}
	f.Says(ctx, fact.Body{Start: &fact.Start{Attempt: fact.AttemptID{Slot: "go"}, Try: 1}, Credentials: shows},
		seen)
	return id
}

// creates begins a workflow of the commander's, and does its work.
func creates(t *testing.T, v *victims, l *testliar.Liar) {
	def := parse(t, order)
	before := v.refused()
	for i, shows := range [][]byte{nil, trust.EncodeChain(l.Who().Chain), []byte("no certificate")} {
		id := commands(t.Context(), l, def, shows)
		testnode.Within(t, time.Minute, "both facts are refused", func() bool { return v.refused() >= before+2 })
		before = v.refused()
		if _, err := v.ana.API.Show(t.Context(), id.String()); err == nil {
			t.Errorf("ana has the liar's order, with credentials %d", i)
		}
	}
}

// secret is for ana and bea alone.
const secret = `
workflow: secret
data: {x: {type: string}}
tasks:
  a: {type: manual, out: [x]}
  b: {after: a, type: manual}
partitions: {pa: [a], pb: [b]}
`

// genesisOf is the name of an instance's first fact, which ana wrote.
func (v *victims) genesisOf(id string) fact.Head {
	v.t.Helper()
	log, err := v.ana.API.Log(v.t.Context(), id)
	if err != nil {
		v.t.Fatal(err)
	}
	st, err := v.ana.API.Status(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	genesis := fact.Head{Chain: fact.Chain{Author: st.ID}, Seq: 1}
	copy(genesis.ID[:], unhex(v.t, log[0].Fact))
	copy(genesis.Chain.Incarnation[:], unhex(v.t, st.Incarnation))
	return genesis
}

// inject has the liar assign itself work of a secret of which it knows a fact's name, and
// ask for what there is.
func inject(ctx context.Context, l *testliar.Liar, about workflow.InstanceID, genesis fact.Head) {
	f := l.Forger(about, 1)
	self := l.Who().ID()
	f.Says(ctx, fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "b"}, Task: "b", Partner: self}},
		genesis)
	takes := fact.Action{Attempt: fact.AttemptID{Slot: "b"}, Kind: workflow.FailBlock, Partner: self}
	f.Says(ctx, fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{takes}}})
	l.Says(ctx, &wire.Message{Heads: []wire.Heads{{Instance: about, Mode: wire.Ask}}})
}

// injects brings the liar into an instance: nobody tells it anything.
func injects(t *testing.T, v *victims, l *testliar.Liar) {
	v.add(secret)
	id, about := v.start("secret", map[string]string{"pa": "ana", "pb": "bea"})
	genesis, before := v.genesisOf(id), v.refused()
	inject(t.Context(), l, about, genesis)
	if err := v.ana.API.FinishTask(t.Context(),
		api.FinishRequest{ID: id, Task: "a", Outputs: map[string]string{"x": "hush"}}); err != nil {
		t.Fatal(err)
	}
	l.Says(t.Context(), &wire.Message{Heads: []wire.Heads{{Instance: about, Mode: wire.Ask}}})
	testnode.Within(t, time.Minute, "bea knows the secret", func() bool {
		in, err := v.bea.API.Show(t.Context(), id)
		return err == nil && in.Data["x"] == "hush"
	})
	testnode.Within(t, time.Minute, "ana counts what the liar sent", func() bool { return v.refused() >= before+3 })
	if told := l.Knows(about); len(told) > 0 {
		t.Errorf("the liar was told %d facts of the secret", len(told))
	}
}

// call is a workflow of the name that ana's siren is for.
const call = `
workflow: fire-call
doc: %s
tasks:
  howl: {application: siren}
`

// howls says whether a node's siren did.
func howls(n *testnode.Node) bool {
	_, err := os.Stat(filepath.Join(n.Dir, "howls"))
	return err == nil
}

// squats has a workflow of the name that ana's siren is for.
func squats(t *testing.T, v *victims, l *testliar.Liar) {
	def := parse(t, strings.Replace(call, "%s", "the liar's", 1))
	l.Lists(t.Context(), def)
	id := l.Begins(t.Context(), def, nil).String()
	testnode.Within(t, time.Minute, "the liar's task fails at ana", func() bool {
		in, err := v.ana.API.Show(t.Context(), id)
		return err == nil && in.Tasks[0].State == workflow.Failed
	})
	if howls(v.ana) {
		t.Error("ana's siren howls for the liar")
	}
	v.add(strings.Replace(call, "%s", "ana's", 1))
	again := l.Begins(t.Context(), def, nil).String()
	testnode.Within(t, time.Minute, "the liar's task fails at ana again", func() bool {
		in, err := v.ana.API.Show(t.Context(), again)
		return err == nil && in.Tasks[0].State == workflow.Failed
	})
	if howls(v.ana) {
		t.Error("ana's siren howls for the liar, by the name of ana's workflow")
	}
	if _, err := v.ana.API.Start(t.Context(),
		api.StartRequest{Workflow: "fire-call", Assign: map[string]string{"main": "ana"}}); err != nil {
		t.Fatal(err)
	}
	testnode.Within(t, time.Minute, "ana's own call has her siren howl", func() bool { return howls(v.ana) })
}

// readsData asks for a data set by its name: members may, others may not.
func readsData(t *testing.T, v *victims, l *testliar.Liar) {
	const protocol, plan = "/mutirao/data/1.0.0", `{"route": "north"}`
	if _, err := v.ana.API.AddData(t.Context(), "plan", []byte(plan), api.DataTerms{}); err != nil {
		t.Fatal(err)
	}
	st, err := v.ana.API.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Request(t.Context(), st.Addresses, protocol, []byte("plan")); err != nil || string(got) != plan {
		t.Errorf("a member gets %q, %v", got, err)
	}
	for _, name := range []string{"", "pla", "plan\x00", "../key"} {
		if got, err := l.Request(t.Context(), st.Addresses, protocol, []byte(name)); err == nil {
			t.Errorf("for %q there is %q", name, got)
		}
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Init(other, node.InitOptions{Mesh: "test", Name: "ana", Roles: []string{"medic"}}); err != nil {
		t.Fatal(err)
	}
	stranger, err := testliar.New(other)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stranger.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := stranger.Aim(st.ID, st.Addresses); err != nil {
		t.Fatal(err)
	}
	if got, err := stranger.Request(t.Context(), st.Addresses, protocol, []byte("plan")); err == nil {
		t.Errorf("the founder of another mesh of the same name gets %q", got)
	}
}

// evict says that a partner and the victim are evicted, and sends the victim certificates
// that are not for it.
func evict(ctx context.Context, l *testliar.Liar, partner workflow.PartnerID) {
	forged := slices.Clone(l.Who().Chain)
	forged[0].Partner, forged[0].NotBefore = l.Victim(), trust.WallOf(time.Now())+1
	l.Evicts(ctx, partner)
	l.Evicts(ctx, l.Victim())
	for _, c := range []trust.Chain{l.Who().Chain, forged} {
		l.Says(ctx, &wire.Message{Renewal: trust.EncodeChain(c)})
	}
}

// evicts says that bea is evicted, and sends ana certificates that are not for her.
func evicts(t *testing.T, v *victims, l *testliar.Liar) {
	bea, err := v.bea.API.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := v.refused()
	evict(t.Context(), l, bea.ID)
	testnode.Within(t, time.Minute, "ana counts four lies", func() bool { return v.refused() >= before+4 })
	if !v.ana.Sees("active", "bea") || !v.bea.Sees("active", "ana") {
		t.Errorf("ana sees %v, bea sees %v", v.ana.States(), v.bea.States())
	}
}

// start begins an instance at ana.
func (v *victims) start(name string, assign map[string]string) (string, workflow.InstanceID) {
	v.t.Helper()
	s, err := v.ana.API.Start(v.t.Context(), api.StartRequest{Workflow: name, Assign: assign})
	if err != nil {
		v.t.Fatal(err)
	}
	id, err := workflow.ParseInstanceID(s.ID)
	if err != nil {
		v.t.Fatal(err)
	}
	return s.ID, id
}

// refused is how much ana has refused of mal.
func (v *victims) refused() (n uint64) {
	v.t.Helper()
	for _, times := range v.refusals("mal") {
		n += times
	}
	return n
}

// refusals are what ana has refused of a partner, by reason.
func (v *victims) refusals(of string) map[string]uint64 {
	v.t.Helper()
	all, err := v.ana.API.Partners(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, p := range all {
		for _, r := range p.Refused {
			if p.Name == of {
				out[r.Reason] += r.Times
			}
		}
	}
	return out
}

func parse(t *testing.T, source string) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("w.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
