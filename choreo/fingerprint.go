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
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/choreo/state"
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
	for _, sl := range m.state.Slots() {
		p.slot(sl)
	}
	p.data()
	for _, l := range slices.Concat(m.state.ClaimLines(), m.state.FlowLines()) {
		p.line("%s", l)
	}
	return p.out.Bytes()
}

// statePrinter writes a fingerprint.
type statePrinter struct {
	s   *state.State
	out bytes.Buffer
}

func (p *statePrinter) line(format string, args ...any) {
	fmt.Fprintf(&p.out, format+"\n", args...)
}

func (p *statePrinter) instance() {
	s := p.s
	p.line("instance %s %s idle=%t contested=%t cancel=%s", s.Log().Instance(), s.Overall(), s.Idle(), s.Contested(),
		state.ShortName(s.Cancelled()))
	for _, who := range s.Participants() {
		p.line("participant %s", who)
	}
	for _, h := range s.Log().Forks() {
		p.line("fork %s %s %d", h.Chain.Author, h.Chain.Incarnation, h.Seq)
	}
	for _, who := range slices.Sorted(maps.Keys(s.WrittenOff())) {
		p.line("written off %s by %s", who, state.ShortName(s.WrittenOff()[who]))
	}
	for _, a := range s.Amendments() {
		p.line("amended by %s: %s", state.ShortName(a.At), a.Patch.Text())
	}
	for _, why := range slices.Sorted(maps.Keys(s.Refused())) {
		p.line("refused %d: %s", s.Refused()[why], why)
	}
}

func (p *statePrinter) facts() {
	for _, e := range slices.SortedFunc(slices.Values(p.s.Log().Order()), log.ByTime) {
		p.line("fact %d %s %s counted=%t", e.Time, e.ID, e.Fact.Body.Kind(), e.Counted)
	}
}

func (p *statePrinter) slot(sl *state.Slot) {
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
			a.Stands, state.ShortName(a.Wrote), a.Tries)
		p.line("    assigned=%s kept=%s %s", state.ShortName(a.Assigned), state.ShortName(a.Kept), p.course(a))
		if a.Weighed != nil {
			p.line("    weighed by %s", state.ShortName(a.Weighed))
		}
		if a.Undo != nil {
			p.line("    compensation of=%s %s", a.Success().ID.Short(), p.course(a.Undo))
		}
		for _, n := range slices.SortedFunc(slices.Values(a.Assigns),
			func(x, y *state.Attempt) int { return log.ByTime(x.Assigned, y.Assigned) }) {
			p.line("    followed by %s", n.ID)
		}
		if to := p.s.TakenOver(a); to != nil {
			p.line("    passed on to %s", to.ID)
		}
	}
}

// course is what happened to an attempt.
func (p *statePrinter) course(a *state.Attempt) string {
	out := fmt.Sprintf("ready=%s start=%s successes=%s failed=%s off=%s", state.ShortName(a.Ready),
		state.ShortName(a.Start), shortNames(a.Successes), state.ShortName(a.Failed), state.ShortName(a.Off))
	for _, r := range slices.SortedStableFunc(slices.Values(a.Rulings),
		func(x, y *state.Ruling) int { return log.ByTime(x.At, y.At) }) {
		out += "\n    ruling " + ruled(r)
	}
	return out
}

func (p *statePrinter) data() {
	for _, n := range slices.Sorted(maps.Keys(p.s.Data())) {
		w := p.s.Data()[n]
		p.line("data %s = %s by %s conflict=%t", n, spell(w.Value), state.ShortName(w.By), p.s.Conflicts()[n])
	}
}

func shortNames(es []*log.Entry) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = state.ShortName(e)
	}
	return cmp.Or(strings.Join(out, ","), "none")
}

func ruled(r *state.Ruling) string {
	if r == nil {
		return "none"
	}
	next := "none"
	if r.Next != nil {
		next = r.Next.ID.String()
	}
	return fmt.Sprintf("%s %s %s at %s final=%t next=%s", state.ShortName(r.At), r.Action.Kind, r.Action.Task,
		r.Action.Partner, r.Final, next)
}

// spell writes a value unmistakably: 1 and 1.0, null and absent differ.
func spell(v workflow.Value) string {
	raw, err := fact.EncMode.Marshal(v)
	if err != nil {
		return "unencodable: " + err.Error()
	}
	text, err := cbor.Diagnose(raw)
	if err != nil {
		return fmt.Sprintf("%x", raw)
	}
	return text
}
