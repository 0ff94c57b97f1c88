package sim

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

type factID = fact.ID

// lie is what becomes of a frame whose sender lies now: it is garbled, its facts
// are altered, facts about what others hold are added under the liar's own and
// proper signature, or it pretends to know of facts that the receiver never wrote.
func (w *world) lie(m *machine, to workflow.PartnerID, frame []byte) []byte {
	msg, err := wire.Decode(frame)
	if err != nil || len(msg.Facts)+len(msg.Heads) == 0 {
		return frame
	}
	switch w.r.IntN(6) {
	case 0:
		garbled := append([]byte(nil), frame...)
		garbled[w.r.IntN(len(garbled))] ^= byte(1 + w.r.IntN(255))
		return garbled
	case 1:
		for i := range msg.Facts {
			fs := msg.Facts[i].Facts
			raw := append([]byte(nil), fs[len(fs)-1].Raw...)
			raw[w.r.IntN(len(raw))] ^= 1
			fs[len(fs)-1].Raw = raw
		}
	case 2, 3:
		for i := range msg.Facts {
			w.forge(m, &msg.Facts[i])
		}
	case 4:
		w.pretend(to, msg.Heads)
	default:
		return frame
	}
	out, err := wire.Encode(msg)
	if err != nil {
		return frame
	}
	return out
}

// forge adds a fact that the liar is not entitled to.
func (w *world) forge(m *machine, f *wire.Facts) {
	last := f.Facts[len(f.Facts)-1]
	id, known, err := w.read.raw(last.Raw)
	if err != nil {
		return
	}
	body, ok := w.claim(m)
	if !ok {
		return
	}
	lie := &fact.Fact{
		Format: fact.Format, Instance: f.Instance, Seq: 1, Body: body,
		Chain: fact.Chain{Author: m.id, Incarnation: fact.Incarnation(w.random(8))},
		Seen:  []fact.Head{{Chain: known.Chain, Seq: known.Seq, ID: id}},
	}
	raw, lieID, err := lie.Encode()
	if err != nil {
		return
	}
	att := fact.Attest([]fact.ID{lieID},
		func(domain string, b []byte) []byte { return trust.Sign(m.member.Key, domain, b) })
	f.Facts = append(f.Facts, wire.Fact{Raw: raw, Att: att[0]})
	w.checks.forged[lieID] = body.Kind()
	w.out.Lies++
}

// claim is something about a task that the liar does not hold.
func (w *world) claim(m *machine) (fact.Body, bool) {
	var others []workflow.TaskName
	for _, t := range w.def.Tasks {
		if at, ok := w.home[t.Name]; ok && at != m.i && !t.ContingencyOnly {
			others = append(others, t.Name)
		}
	}
	if len(others) == 0 {
		return fact.Body{}, false
	}
	t := w.task(others[w.r.IntN(len(others))])
	a := fact.AttemptID{Slot: t.Name}
	wrong := workflow.FailRelease
	if t.OnFailure == workflow.FailRelease {
		wrong = workflow.FailBlock
	}
	return w.atOnce([]fact.Body{
		{Success: &fact.Success{Attempt: a, Try: 1}},
		{Start: &fact.Start{Attempt: a, Try: 1}},
		{CalledOff: &fact.CalledOff{Attempt: a}},
		{Ready: &fact.ReadyBody{Attempt: a, Trigger: true}},
		{TryFailed: &fact.TryFailed{Attempt: a, Try: 1, Reason: "a lie"}},
		{Verdict: &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: a, Kind: wrong}}}},
		{Assign: &fact.Assign{After: a, Task: t.Name, Partner: m.id}},
	}[w.r.IntN(7)]), true
}

// atOnce has every second lie about a success say that it began, too, where nodes do tasks in this way.
func (w *world) atOnce(b fact.Body) fact.Body {
	if b.Success != nil && w.plan.prompt() && w.r.IntN(2) == 0 {
		b.Start = &fact.Start{Attempt: b.Success.Attempt, Try: b.Success.Try}
	}
	return b
}

// pretend names facts of the receiver that it has not written, as if its store had
// gone back in time.
func (w *world) pretend(to workflow.PartnerID, hs []wire.Heads) {
	for i := range hs {
		for k := range hs[i].Heads {
			h := &hs[i].Heads[k]
			if h.Chain.Author == to {
				h.Seq++
				copy(h.ID[:], w.random(len(h.ID)))
			}
		}
	}
}
