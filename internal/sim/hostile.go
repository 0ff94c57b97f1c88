package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what a member that lies can do with all its rights: flood an instance,
// fork its own chain, and say of its own work what is not so.

// Hostile is the first seed with members of that kind, with disks that lose single
// entries, and, once in a while, with workflows that are large.
const Hostile = 1_000_000

// harden adds what hostile plans have.
func harden(r *rand.Rand, p *Plan) {
	for _, kind := range []FaultKind{Flood, Forks, Betray, LostEntry} {
		if r.IntN(3) > 0 {
			continue
		}
		p.Faults = append(p.Faults, Fault{
			At: p.Starts[r.IntN(len(p.Starts))].At + time.Duration(r.Int64N(int64(10*time.Minute*p.Scale))), Kind: kind,
			Node: r.IntN(p.Nodes), For: time.Duration(1+r.IntN(10)) * time.Minute * p.Scale,
		})
	}
}

// sign makes a fact of a member's own.
func (w *world) sign(m *machine, f *fact.Fact) (wire.Fact, factID, bool) {
	f.Format = fact.Format
	raw, id, err := f.Encode()
	if err != nil {
		return wire.Fact{}, id, false
	}
	att := fact.Attest([]factID{id}, func(domain string, b []byte) []byte {
		return trust.Sign(m.member.Key, domain, b)
	})
	w.out.Lies++
	return wire.Fact{Raw: raw, Att: att[0]}, id, true
}

// fresh is the first fact of a new chain of a member, which knows of another fact.
func (w *world) fresh(m *machine, f *wire.Facts, of *fact.Fact, id factID, b fact.Body) *fact.Fact {
	return &fact.Fact{
		Instance: f.Instance, Seq: 1, Body: b,
		Chain: fact.Chain{Author: m.id, Incarnation: fact.Incarnation(w.random(8))},
		Seen:  []fact.Head{{Chain: of.Chain, Seq: of.Seq, ID: id}},
	}
}

// flood adds many chains of one fact, and one chain of many: others for each receiver.
// Half of what they say anybody may say.
func (w *world) flood(m *machine, f *wire.Facts) {
	id, known, err := w.read.raw(f.Facts[len(f.Facts)-1].Raw)
	if err != nil {
		return
	}
	add := func(lie *fact.Fact, forged bool) (factID, bool) {
		x, id, ok := w.sign(m, lie)
		if !ok {
			return id, false
		}
		f.Facts = append(f.Facts, x)
		w.checks.lies[id] = true
		if forged {
			w.checks.forged[id] = lie.Body.Kind()
		}
		return id, true
	}
	for range 12 {
		body, forged := fact.Body{Seen: &fact.Seen{}}, false
		if w.r.IntN(2) == 0 {
			if claim, ok := w.claim(m); ok {
				body, forged = claim, true
			}
		}
		add(w.fresh(m, f, known, id, body), forged)
	}
	lie := w.fresh(m, f, known, id, fact.Body{Seen: &fact.Seen{}})
	for range 20 {
		prev, ok := add(lie, false)
		if !ok {
			return
		}
		lie = &fact.Fact{Instance: f.Instance, Chain: lie.Chain, Seq: lie.Seq + 1, Prev: prev, Body: lie.Body}
	}
}

// forkAgain adds other facts of the number of the member's last: for each receiver
// others, so that there are more and more.
func (w *world) forkAgain(m *machine, f *wire.Facts) {
	for i := len(f.Facts) - 1; i >= 0; i-- {
		_, own, err := w.read.raw(f.Facts[i].Raw)
		if err != nil || own.Chain.Author != m.id || own.Seq == 1 {
			continue
		}
		for range 4 {
			lie := &fact.Fact{
				Instance: f.Instance, Chain: own.Chain, Seq: own.Seq, Prev: own.Prev, Seen: own.Seen,
				At: int64(w.r.Uint32()), Body: fact.Body{Seen: &fact.Seen{}},
			}
			if x, id, ok := w.sign(m, lie); ok {
				f.Facts = append(f.Facts, x)
				w.checks.lies[id] = true
			}
		}
		return
	}
}

// betray adds a fact about what the member holds that its node does not say: that it
// succeeded, failed or was called off, from a chain that forgot the rest.
func (w *world) betray(m *machine, f *wire.Facts) {
	id, known, err := w.read.raw(f.Facts[w.r.IntN(len(f.Facts))].Raw)
	if err != nil {
		return
	}
	var mine []fact.AttemptID
	for _, t := range w.def.Tasks {
		if at, ok := w.home[t.Name]; ok && at == m.i && !t.ContingencyOnly {
			mine = append(mine, fact.AttemptID{Slot: t.Name})
		}
	}
	if len(mine) == 0 {
		return
	}
	a := mine[w.r.IntN(len(mine))]
	t := w.task(a.Slot)
	kind := t.OnFailure
	if kind == "" {
		kind = "block"
	}
	verdict := &fact.Verdict{
		Cause: fact.CauseReported, Reason: "a lie",
		Actions: []fact.Action{{Attempt: a, Kind: kind, Task: t.Contingency}},
	}
	if t.Contingency != "" {
		verdict.Actions[0].Partner = m.id
	}
	body := w.atOnce([]fact.Body{
		{Success: &fact.Success{Attempt: a, Try: 1}},
		{Start: &fact.Start{Attempt: a, Try: 1}},
		{Verdict: verdict},
		{CalledOff: &fact.CalledOff{Attempt: a}},
	}[w.r.IntN(4)])
	if x, id, ok := w.sign(m, w.fresh(m, f, known, id, body)); ok {
		f.Facts = append(f.Facts, x)
		w.checks.lies[id] = true
	}
}

// loseEntry takes one entry off a machine's disk.
func (w *world) loseEntry(m *machine) {
	keys := slices.Sorted(maps.Keys(m.disk.data))
	if len(keys) == 0 {
		return
	}
	key := keys[w.r.IntN(len(keys))]
	img := m.disk.backup()
	if key[0] == factKeys {
		for x := range w.read.stored(img.data[key]) {
			delete(img.facts, x.id)
		}
	}
	delete(img.data, key)
	w.note("n%d's disk loses %q", m.i, key)
	w.restored(m, img)
	m.disk.damage.Found = append(m.disk.damage.Found, fmt.Sprintf("%q is lost", key))
	if r := node.StoreRange([]byte(key)); r != nil {
		m.disk.damage.Ranges = append(m.disk.damage.Ranges, r)
	}
}

// abuse is what becomes of a frame of a hostile member.
func (w *world) abuse(m *machine, to workflow.PartnerID, frame []byte) []byte {
	msg, err := wire.Decode(frame)
	replays := slices.Contains(m.does, Replay) && w.r.IntN(2) == 0 // with any frame
	if err != nil || (len(msg.Facts) == 0 && !replays) {
		return frame
	}
	for i := range msg.Facts {
		for _, k := range m.does {
			switch k {
			case Flood:
				w.flood(m, &msg.Facts[i])
			case Forks:
				w.forkAgain(m, &msg.Facts[i])
			case Betray:
				w.betray(m, &msg.Facts[i])
			case Usurp:
				w.usurp(m, &msg.Facts[i])
			case Heavy:
				w.burden(m, to, &msg.Facts[i])
			case Impostor:
				w.impersonate(m, &msg.Facts[i])
			}
		}
	}
	if len(msg.Facts) > 0 && slices.Contains(m.does, Usurp) && w.r.IntN(4) == 0 {
		w.begin(m, to, msg)
	}
	if replays {
		w.replay(m, msg)
	}
	out, err := wire.Encode(msg)
	if err != nil {
		return frame
	}
	return out
}
