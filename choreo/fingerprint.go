package choreo

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Digest names the set of facts that this replica has.
func (m *Machine) Digest() [16]byte {
	h, instance := sha256.New(), m.Instance()
	h.Write(instance[:])
	for _, head := range m.log.Heads() {
		h.Write(head.ID[:])
	}
	return [16]byte(h.Sum(nil))
}

// Fingerprint is all that this replica derives from its facts, one line for
// each thing: which facts count, every slot with every attempt, the data, the
// participants and how the instance stands. Two replicas with the same set of
// facts have the same fingerprint, byte for byte; what is particular to a node
// (what runs here, what peers have, clocks) is not in it. It is text, so that
// a difference between two of them says what it is about.
func (m *Machine) Fingerprint() []byte {
	p := &statePrinter{s: m.state}
	p.instance()
	p.facts()
	for _, sl := range m.state.slots {
		p.slot(sl)
	}
	p.data()
	for _, l := range slices.Concat(m.state.claimLines(), m.state.flowLines()) {
		p.line("%s", l)
	}
	return p.out.Bytes()
}

// statePrinter writes a fingerprint.
type statePrinter struct {
	s   *State
	out bytes.Buffer
}

func (p *statePrinter) line(format string, args ...any) {
	fmt.Fprintf(&p.out, format+"\n", args...)
}

func (p *statePrinter) instance() {
	s := p.s
	p.line("instance %s %s idle=%t contested=%t cancel=%s", s.log.instance, s.overall(), s.idle, s.contested,
		shortName(s.cancel))
	for _, who := range s.Participants() {
		p.line("participant %s", who)
	}
	for _, h := range s.log.Forks() {
		p.line("fork %s %s %d", h.Chain.Author, h.Chain.Incarnation, h.Seq)
	}
	for _, who := range slices.Sorted(maps.Keys(s.writtenOff)) {
		p.line("written off %s by %s", who, shortName(s.writtenOff[who]))
	}
	for _, why := range slices.Sorted(maps.Keys(s.refused)) {
		p.line("refused %d: %s", s.refused[why], why)
	}
}

func (p *statePrinter) facts() {
	for _, e := range slices.SortedFunc(slices.Values(p.s.log.order), byTime) {
		p.line("fact %d %s %s counted=%t", e.time, e.id, e.fact.Body.Kind(), e.counted)
	}
}

func (p *statePrinter) slot(sl *Slot) {
	pick := "none"
	if sl.Pick != nil {
		pick = sl.Pick.ID.String()
	}
	p.line("slot %s %s current=%s pick=%s held=%t duplicated=%t outcome=%s pending=%s", sl.Task.Name, sl.State,
		sl.Current.ID, pick, sl.Held, sl.Duplicated, ruled(sl.Outcome), ruled(sl.Pending))
	if sl.Dropped != nil {
		p.line("  dropped %s spared=%t", sl.Dropped.DataSet, sl.Spared)
	}
	for _, a := range sl.Attempts {
		p.line("  attempt %s of %s at %s depth=%d stands=%d wrote=%s tries=%d", a.ID, a.Task.Name, a.Partner, a.Depth,
			a.stands, shortName(a.wrote), a.tries)
		p.line("    assigned=%s kept=%s %s", shortName(a.assigned), shortName(a.kept), p.course(a))
		if a.weighed != nil {
			p.line("    weighed by %s", shortName(a.weighed))
		}
		if a.undo != nil {
			p.line("    compensation of=%s %s", a.success().id.Short(), p.course(a.undo))
		}
		for _, n := range slices.SortedFunc(slices.Values(a.assigns),
			func(x, y *Attempt) int { return byTime(x.assigned, y.assigned) }) {
			p.line("    followed by %s", n.ID)
		}
		if to := p.s.takenOver(a); to != nil {
			p.line("    passed on to %s", to.ID)
		}
	}
}

// course is what happened to an attempt.
func (p *statePrinter) course(a *Attempt) string {
	out := fmt.Sprintf("ready=%s start=%s successes=%s failed=%s off=%s", shortName(a.ready),
		shortName(a.start), shortNames(a.successes), shortName(a.failed), shortName(a.off))
	for _, r := range slices.SortedStableFunc(slices.Values(a.rulings),
		func(x, y *ruling) int { return byTime(x.at, y.at) }) {
		out += "\n    ruling " + ruled(r)
	}
	return out
}

func (p *statePrinter) data() {
	for _, n := range slices.Sorted(maps.Keys(p.s.data)) {
		w := p.s.data[n]
		p.line("data %s = %s by %s conflict=%t", n, spell(w.value), shortName(w.by), p.s.conflicts[n])
	}
}

func shortName(e *entry) string {
	if e == nil {
		return "none"
	}
	return e.id.Short()
}

func shortNames(es []*entry) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = shortName(e)
	}
	return cmp.Or(strings.Join(out, ","), "none")
}

func ruled(r *ruling) string {
	if r == nil {
		return "none"
	}
	next := "none"
	if r.next != nil {
		next = r.next.ID.String()
	}
	return fmt.Sprintf("%s %s %s at %s final=%t next=%s", shortName(r.at), r.action.Kind, r.action.Task,
		r.action.Partner, r.final, next)
}

// spell writes a value unmistakably: 1 and 1.0, null and absent differ.
func spell(v workflow.Value) string {
	raw, err := encMode.Marshal(v)
	if err != nil {
		return "unencodable: " + err.Error()
	}
	text, err := cbor.Diagnose(raw)
	if err != nil {
		return fmt.Sprintf("%x", raw)
	}
	return text
}
