package sim

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what a member that lies can do without the rights: perform what asks for
// a role, write off others, give their work away, begin what only a role may begin. It
// may also bring facts of many bytes, and instances that are long over.

// usurp adds a fact that claims a right which its author does not have.
func (w *world) usurp(m *machine, f *wire.Facts) {
	id, known, err := w.read.raw(f.Facts[len(f.Facts)-1].Raw)
	if err != nil {
		return
	}
	body, ok := w.unentitled(m, f.Instance)
	if w.plan.drives() {
		body, ok = w.usurpsFlow(m, f.Instance)
	}
	if !ok {
		return
	}
	if x, id, ok := w.sign(m, w.fresh(m, f, known, id, body)); ok {
		f.Facts = append(f.Facts, x)
		w.checks.forged[id] = body.Kind()
	}
}

// unentitled is something that the machine may not say in an instance.
func (w *world) unentitled(m *machine, id workflow.InstanceID) (b fact.Body, ok bool) {
	var others []workflow.PartnerID
	for _, o := range w.nodes {
		if o != m {
			others = append(others, o.id)
		}
	}
	other := others[w.r.IntN(len(others))]
	switch w.r.IntN(4) {
	case 0:
		if w.checks.beganBy[id] == m.id || w.checks.beganBy[id] == "" {
			return b, false
		}
		return fact.Body{WriteOff: &fact.WriteOff{Partner: other, Eviction: w.proof(m, other)}}, true
	case 1:
		var mine []workflow.TaskName
		for _, t := range w.def.Tasks {
			at, here := w.home[t.Name]
			if here && at == m.i && t.ByRole() && !slices.Contains(RolesOf(m.i), string(t.Role)) {
				mine = append(mine, t.Name)
			}
		}
		if len(mine) == 0 {
			return b, false
		}
		a := fact.AttemptID{Slot: mine[w.r.IntN(len(mine))]}
		return fact.Body{Start: &fact.Start{Attempt: a, Try: 1}, Credentials: w.certificates(m)}, true
	case 2:
		var theirs []*workflow.Task
		for _, t := range w.def.Tasks {
			if at, here := w.home[t.Name]; here && at != m.i && !t.ContingencyOnly {
				theirs = append(theirs, t)
			}
		}
		if len(theirs) == 0 {
			return b, false
		}
		t := theirs[w.r.IntN(len(theirs))]
		assign := &fact.Assign{After: fact.AttemptID{Slot: t.Name}, Task: t.Name, Partner: m.id}
		if t.Contingency != "" && w.r.IntN(2) == 0 {
			assign.Task, assign.Verdict = t.Contingency, fact.ID(w.random(len(fact.ID{})))
		}
		return fact.Body{Assign: assign}, true
	}
	return b, false
}

// proof is what the liar shows for an eviction that the founder never signed.
func (w *world) proof(m *machine, of workflow.PartnerID) []byte {
	switch w.r.IntN(3) {
	case 0:
		return nil
	case 1:
		return w.random(64)
	}
	e := trust.Eviction{
		Mesh: w.mesh.ID(), Issuer: m.id, Number: 1, Partner: of, Reason: "a lie", At: trust.WallOf(base),
		Chain: m.member.Chain,
	}
	e.Signature = trust.Sign(m.member.Key, "eviction", trust.EncodeEviction(e))
	return trust.EncodeEviction(e)
}

// certificates are what the liar shows for roles that it does not have: none, its own,
// another's, those of another mesh, or one that ran out.
func (w *world) certificates(m *machine) []byte {
	issue := func(mesh trust.Mesh, key ed25519.PrivateKey, until time.Time) []byte {
		roles := slices.Sorted(slices.Values(Roles))
		chain, err := trust.Issuer{Mesh: mesh, Key: key}.Issue(trust.Certificate{
			Partner: m.id, Name: w.name(m), Roles: roles, Serial: trust.Serial{99, byte(m.i)},
			NotBefore: trust.WallOf(base.AddDate(-2, 0, 0)), NotAfter: trust.WallOf(until),
		})
		if err != nil {
			w.violate("the simulator makes no certificate: %v", err)
		}
		return trust.EncodeChain(chain)
	}
	later := base.AddDate(1, 0, 0)
	switch w.r.IntN(5) {
	case 0:
		return nil
	case 1:
		return trust.EncodeChain(m.member.Chain)
	case 2:
		return trust.EncodeChain(w.nodes[craneAt].member.Chain)
	case 3:
		return issue(trust.Mesh{Name: "sim", Founder: m.id}, m.member.Key, later)
	}
	return issue(w.mesh, keyOf(0), base.AddDate(-1, 0, 0)) // by the founder, a year ago
}

// chiefs is a workflow that only a node with a role may begin.
const chiefs = "workflow: chiefs\ncreator-role: chief\ntasks:\n  only: {timeout: 10m}\n"

// begin adds an instance that its author may not begin.
func (w *world) begin(m *machine, to workflow.PartnerID, msg *wire.Message) {
	if m.i == craneAt || len(msg.Facts) >= wire.MaxInstances {
		return
	}
	def, err := workflow.Parse("chiefs.yaml", []byte(chiefs))
	if err != nil {
		w.violate("the definition is refused: %v", err)
		return
	}
	lie := &fact.Fact{
		Seq: 1, Chain: fact.Chain{Author: m.id, Incarnation: fact.Incarnation(w.random(8))},
		Body: fact.Body{Credentials: w.certificates(m), Genesis: &fact.Genesis{
			Definition: def.Hash(), Nonce: [16]byte(w.random(16)), Succession: []workflow.PartnerID{m.id, to},
			Assign: []fact.Placement{{Partition: def.Partitions[0].Name, Partner: to}},
		}},
	}
	if x, id, ok := w.sign(m, lie); ok {
		msg.Facts = append(msg.Facts, wire.Facts{
			Instance: fact.InstanceOf(id), Definition: def.Canonical(), Facts: []wire.Fact{x}, Next: true,
		})
		w.checks.unbegun[fact.InstanceOf(id)] = true
	}
}

// load is a chain of large facts for one receiver.
type load struct {
	last fact.Fact
	id   factID
	sent int // bytes
}

// What a liar loads a receiver with.
const (
	heavyFact = 100 << 10
	heavyLoad = 4 << 20
)

// burden adds facts of many bytes, as many as go with the bundle. Every second partner
// gets a small fact instead, once, so that some have room for that and others have not.
func (w *world) burden(m *machine, to workflow.PartnerID, f *wire.Facts) {
	id, known, err := w.read.raw(f.Facts[len(f.Facts)-1].Raw)
	if err != nil {
		return
	}
	key := string(to) + string(f.Instance[:])
	l := m.loads[key]
	if i, _ := w.who(to); (m.i+i)%2 == 0 {
		if l == nil && m.loaded(f.Instance) {
			m.loads[key] = &load{}
			w.betray(m, f)
		}
		return
	}
	room := wire.MaxBundle
	for _, x := range f.Facts {
		room -= len(x.Raw) + 512
	}
	for ; room > heavyFact+4096 && (l == nil || l.sent < heavyLoad); room -= heavyFact + 1024 {
		large := workflow.Value(strings.Repeat("x", heavyFact))
		body := fact.Body{Success: &fact.Success{
			Attempt: fact.AttemptID{Slot: w.def.Tasks[0].Name}, Try: 1,
			Outputs: map[workflow.DataName]workflow.Value{"a-lie": large},
		}}
		lie := w.fresh(m, f, known, id, body)
		if l != nil {
			lie = &fact.Fact{Instance: f.Instance, Chain: l.last.Chain, Seq: l.last.Seq + 1, Prev: l.id, Body: body}
		}
		x, lieID, ok := w.sign(m, lie)
		if !ok {
			return
		}
		f.Facts = append(f.Facts, x)
		w.checks.forged[lieID] = body.Kind()
		l = &load{last: *lie, id: lieID, sent: heavyFact}
		if was := m.loads[key]; was != nil {
			l.sent += was.sent
		}
		m.loads[key] = l
	}
}

// loaded reports whether the machine has brought somebody many bytes of an instance.
func (m *machine) loaded(id workflow.InstanceID) bool {
	for key, l := range m.loads {
		if strings.HasSuffix(key, string(id[:])) && l.sent >= heavyLoad/4 {
			return true
		}
	}
	return false
}

// replay adds an instance that the machine has had, as it was.
func (w *world) replay(m *machine, msg *wire.Message) {
	all := map[workflow.InstanceID]map[string][]byte{}
	for _, from := range []map[string][]byte{m.disk.attic, m.disk.data} {
		for key, value := range from {
			if key[0] != factKeys {
				continue
			}
			id := workflow.InstanceID([]byte(key[1:17]))
			if all[id] == nil {
				all[id] = map[string][]byte{}
			}
			all[id][key] = value
		}
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b workflow.InstanceID) int { return bytes.Compare(a[:], b[:]) })
	if len(ids) == 0 || len(msg.Facts) >= wire.MaxInstances {
		return
	}
	id := ids[w.r.IntN(len(ids))]
	out := wire.Facts{Instance: id}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(all[id])) {
		xs, err := asSent(all[id][key])
		if err != nil {
			return
		}
		for _, x := range xs {
			if size += len(x.Raw) + 512; size > wire.MaxBundle/2 {
				return
			}
			if fid, f, err := w.read.raw(x.Raw); err == nil && x.Att == nil && f.Chain.Author == m.id { // it was never sent
				x.Att = fact.Attest([]factID{fid},
					func(domain string, b []byte) []byte { return trust.Sign(m.member.Key, domain, b) })[0]
			}
			out.Facts = append(out.Facts, x)
		}
	}
	if !slices.ContainsFunc(msg.Facts, func(f wire.Facts) bool { return f.Instance == id }) {
		msg.Facts = append(msg.Facts, out)
		w.out.Lies++
		w.note("n%d replays %s", m.i, id.String()[:8])
	}
}

// keyOf is the key of a node.
func keyOf(i int) ed25519.PrivateKey {
	var seed [ed25519.SeedSize]byte
	copy(seed[:], fmt.Sprintf("node %d", i))
	return ed25519.NewKeyFromSeed(seed[:])
}
