package choreo

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// unchecked is the encoding of a fact that a node in order may not write.
func unchecked(t testing.TB, f *Fact) []byte {
	t.Helper()
	raw, err := encMode.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// mustAgree checks that a fact is written if and only if it is read.
func mustAgree(t testing.TB, f *Fact) (accepted bool) {
	t.Helper()
	raw, id, werr := f.Encode()
	bare := unchecked(t, f)
	_, read, rerr := DecodeFact(bare)
	switch {
	case (werr == nil) != (rerr == nil):
		t.Errorf("a %s fact: writing it gives %v, reading it %v", f.Body.Kind(), werr, rerr)
	case werr == nil && (!bytes.Equal(raw, bare) || id != read):
		t.Errorf("a %s fact is not what was written", f.Body.Kind())
	case werr != nil && (!errors.Is(werr, ErrFactInvalid) || !errors.Is(rerr, ErrFactInvalid)):
		t.Errorf("a %s fact: %v and %v, want ErrFactInvalid", f.Body.Kind(), werr, rerr)
	}
	return werr == nil
}

func deep(n int) workflow.Value {
	var v workflow.Value = "end"
	for range n {
		v = []any{v}
	}
	return v
}

// TestLimitsOfFacts: what is at a limit is written and read, what is beyond it is
// neither, and the error says the limit.
func TestLimitsOfFacts(t *testing.T) {
	a := AttemptID{Slot: "a"}
	success := func(v workflow.Value) Body {
		return Body{Success: &Success{Attempt: a, Try: 1, Outputs: map[workflow.DataName]workflow.Value{"x": v}}}
	}
	verdict := func(n int) Body {
		v := &Verdict{Cause: CauseTimeout}
		for range n {
			v.Actions = append(v.Actions, Action{Attempt: a, Kind: workflow.FailBlock})
		}
		return Body{Verdict: v}
	}
	heads := func(n int) (hs []Head) {
		for i := range n {
			hs = append(hs, Head{
				Chain: Chain{Author: "two", Incarnation: Incarnation{byte(i >> 8), byte(i)}}, Seq: 1, ID: FactID{1},
			})
		}
		return hs
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	part := func(depth, try int) Parent {
		return Parent{
			Instance: workflow.InstanceID{9}, Attempt: a, Try: try,
			Line: slices.Repeat([]workflow.PartnerID{"one"}, depth),
		}
	}
	nested := func(p Parent, uses ...Pin) Body {
		return Body{Genesis: &Genesis{
			Nonce: p.Nonce(), Succession: []workflow.PartnerID{"one"},
			Assign: []Placement{{Partition: "main", Partner: "one"}},
		}, Annex: &Annex{Parent: &p, Uses: uses}}
	}
	many := func(n int) (out []Pin) {
		for i := range n {
			out = append(out, Pin{Workflow: workflow.Name(fmt.Sprintf("w%03d", i))})
		}
		return out
	}
	genesis := func(f *Fact) { f.Seq, f.Instance, f.Prev = 1, workflow.InstanceID{}, FactID{} }
	for _, c := range []struct {
		what string
		body Body
		make func(*Fact)
		want string // what the error names; "": none
	}{
		{"the last moment of 9999", Body{Seen: &Seen{}},
			func(f *Fact) { f.At = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli() }, ""},
		{"the year 10000", Body{Seen: &Seen{}},
			func(f *Fact) { f.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() }, "years 1970 to 9999"},
		{"before 1970", Body{Seen: &Seen{}}, func(f *Fact) { f.At = -1 }, "years 1970 to 9999"},
		{"the end of time", Body{Seen: &Seen{}}, func(f *Fact) { f.At = math.MaxInt64 }, "years 1970 to 9999"},
		{"as many heads as may be", Body{Seen: &Seen{}}, func(f *Fact) { f.Seen = heads(MaxHeadsSeen) }, ""},
		{"a head too many", Body{Seen: &Seen{}}, func(f *Fact) { f.Seen = heads(MaxHeadsSeen + 1) }, "at most 256"},
		{"a head twice", Body{Seen: &Seen{}}, func(f *Fact) { f.Seen = append(heads(2), heads(2)...) }, "not sorted"},
		{"heads out of order", Body{Seen: &Seen{}}, func(f *Fact) { f.Seen = []Head{heads(2)[1], heads(2)[0]} },
			"not sorted"},
		{"no instance", Body{Seen: &Seen{}}, func(f *Fact) { f.Instance = workflow.InstanceID{} }, "no instance"},
		{"an author's name of any length", Body{Seen: &Seen{}},
			func(f *Fact) { f.Chain.Author = workflow.PartnerID(long(129)) }, "at most 128"},
		{"two things at once", Body{Seen: &Seen{}, Cancel: &Cancel{}}, nil, "exactly one thing"},
		{"a verdict as large as may be", verdict(MaxActions), nil, ""},
		{"a verdict too large", verdict(MaxActions + 1), nil, "want 1 to 128"},
		{"a verdict on nothing", verdict(0), nil, "want 1 to 128"},
		{"an unknown action", Body{Verdict: &Verdict{
			Cause: CauseTimeout, Actions: []Action{{Attempt: a, Kind: "explode"}},
		}}, nil, "explode"},
		{"an unknown cause", Body{Verdict: &Verdict{
			Cause: "envy", Actions: []Action{{Attempt: a, Kind: workflow.FailBlock}},
		}}, nil, "envy"},
		{"a proof too large", Body{Verdict: &Verdict{Cause: CauseTimeout,
			Actions: []Action{{Attempt: a, Kind: workflow.FailBlock}},
			Office:  &Office{Proof: make([]byte, election.MaxCredentials+1)}}}, nil, "at most 65536"},
		{"a reason as long as may be", Body{Cancel: &Cancel{Reason: long(4096)}}, nil, ""},
		{"a reason too long", Body{Cancel: &Cancel{Reason: long(4097)}}, nil, "at most 4096"},
		{"a reason that is no text", Body{TryFailed: &TryFailed{Attempt: a, Try: 1, Reason: "no\xff"}}, nil,
			"not UTF-8"},
		{"a child that is no instance", Body{Child: &Child{Attempt: a, Try: 1}}, nil, "no instance"},
		{"a child of try zero", Body{Child: &Child{Attempt: a, Instance: workflow.InstanceID{1}}}, nil, "want 1 to"},
		{"a child as deep as may be", nested(part(MaxNesting, 1)), genesis, ""},
		{"a child too deep", nested(part(MaxNesting+1, 1)), genesis, "want 1 to 8"},
		{"a child of nothing", nested(Parent{Attempt: a, Try: 1, Line: []workflow.PartnerID{"one"}}), genesis,
			"part of none"},
		{"a child with another nonce", nested(part(1, 1)), func(f *Fact) { genesis(f); f.Body.Genesis.Nonce[0]++ },
			"whose nonce"},
		{"a name that stands for two", nested(part(1, 1), Pin{Workflow: "w"}, Pin{Workflow: "w"}), genesis,
			"named twice"},
		{"too many workflows", nested(part(1, 1), many(MaxPins+1)...), genesis, "at most 64"},
		{"as many workflows as may be", nested(part(1, 1), many(MaxPins)...), genesis, ""},
		{"a parent outside a genesis", Body{
			Assign: &Assign{After: a, Task: "b", Partner: "one"}, Annex: &Annex{Uses: []Pin{{Workflow: "w"}}},
		}, nil, "in its genesis"},
		{"a worker's name too long", Body{Lease: &Lease{Attempt: a, Try: 1, Worker: long(129)}}, nil, "at most 128"},
		{"try zero", Body{Start: &Start{Attempt: a}}, nil, "want 1 to"},
		{"a try without end", Body{Start: &Start{Attempt: a, Try: math.MaxInt64}}, nil, "want 1 to"},
		{"a slot consumed twice", Body{Start: &Start{
			Attempt: a, Try: 1, Consumed: []Consumption{{Slot: "b"}, {Slot: "b"}},
		}}, nil, "named twice"},
		{"values of all kinds", success([]any{nil, true, int64(-1 << 63), 0.5, "é", map[string]any{"k": int64(1)}}),
			nil, ""},
		{"not a number", success(math.NaN()), nil, "NaN"},
		{"infinity in a list", success([]any{math.Inf(-1)}), nil, "-Inf"},
		{"bytes", success([]byte{1}), nil, "[]uint8"},
		{"text that is no text", success("\xc3"), nil, "not UTF-8"},
		{"a key that is no text", success(map[string]any{"\xc3": nil}), nil, "not UTF-8"},
		{"as deep as may be", success(deep(workflow.MaxDepth)), nil, ""},
		{"too deep", success(deep(workflow.MaxDepth + 1)), nil, "more than 32 deep"},
		{"a list too long", success(make([]any, 16<<10+1)), nil, "at most 16384"},
		{"a result too large", success(long(MaxFact)), nil, "at most 262144"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := &Fact{
				Format: FormatFact, Instance: workflow.InstanceID{1}, Chain: Chain{Author: "one"}, Seq: 2,
				Prev: FactID{1}, Body: c.body,
			}
			if c.make != nil {
				c.make(f)
			}
			_, _, err := f.Encode()
			switch accepted := mustAgree(t, f); {
			case accepted != (c.want == ""):
				t.Errorf("accepted %t: %v", accepted, err)
			case !accepted && !strings.Contains(err.Error(), c.want):
				t.Errorf("the error is %q, want something about %q", err, c.want)
			}
		})
	}
}

// TestWhatIsWrittenIsRead: facts of every kind with anything in them, at and beyond
// their limits, are written if and only if they are read.
func TestWhatIsWrittenIsRead(t *testing.T) {
	accepted, samples := 0, sampleFacts()
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := *samples[r.IntN(len(samples))]
		bendFact(r, &f)
		if mustAgree(t, &f) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if accepted < 400 || accepted > 3600 {
		t.Errorf("%d of 4000 accepted: too few of one kind to show anything", accepted)
	}
}

// bendFact changes something of a fact, mostly near a limit.
func bendFact(r *rand.Rand, f *Fact) {
	name := strings.Repeat("n", 126+r.IntN(4))
	if r.IntN(8) == 0 {
		name = "n\xff"
	}
	switch r.IntN(6) {
	case 0:
		f.At = []int64{0, -1, maxAt, maxAt + 1, math.MinInt64}[r.IntN(5)]
	case 1:
		f.Seq, f.Prev = uint64(r.IntN(3)), FactID{byte(r.IntN(2))}
	case 2:
		f.Chain.Author = workflow.PartnerID(name)
	case 3:
		f.Seen = nil
		for i := range r.IntN(MaxHeadsSeen + 10) {
			f.Seen = append(f.Seen, Head{
				Chain: Chain{Author: "a", Incarnation: Incarnation{byte(i >> 8), byte(i)}}, Seq: 1,
			})
		}
	}
	b := &f.Body
	switch {
	case b.Success != nil:
		b.Success = &Success{
			Attempt: AttemptID{Slot: "a"}, Try: r.IntN(3),
			Outputs: map[workflow.DataName]workflow.Value{"x": anyValue(r, 0)},
		}
	case b.Genesis != nil:
		g := *b.Genesis
		g.Input = map[workflow.DataName]workflow.Value{workflow.DataName(name): anyValue(r, 0)}
		b.Genesis = &g
	case b.Start != nil:
		b.Start = &Start{Attempt: AttemptID{Slot: workflow.TaskName(name)}, Try: 1}
	case b.Verdict != nil:
		v := &Verdict{Cause: CauseTimeout, Reason: strings.Repeat("é", r.IntN(2060))}
		for range r.IntN(MaxActions + 20) {
			v.Actions = append(v.Actions, Action{Kind: workflow.FailBlock})
		}
		b.Verdict = v
	case b.Assign != nil && b.Annex != nil:
		b.Annex = &Annex{Waited: time.Duration(r.Int64()) - maxWaited, Rejected: name}
	}
}

func anyValue(r *rand.Rand, depth int) workflow.Value {
	switch r.IntN(12) {
	case 0:
		return deep(workflow.MaxDepth - 1 + r.IntN(3))
	case 1:
		return []float64{0, 1.5, math.NaN(), math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64}[r.IntN(6)]
	case 2:
		return []string{"", "é", "\xff", strings.Repeat("x", 260<<10)}[r.IntN(4)]
	case 3, 4, 5:
		if depth > 5 {
			return nil
		}
		return []any{anyValue(r, depth+1), anyValue(r, depth+1)}
	case 6, 7:
		if depth > 5 {
			return true
		}
		return map[string]any{"": anyValue(r, depth+1), "k": anyValue(r, depth+1)}
	case 8:
		return []byte{1}
	}
	return r.Int64() - 1<<62
}

// A node's clock may be anywhere: what it writes is dated in the years that facts
// may say.
func TestClocksBeyondTheYearsOfFacts(t *testing.T) {
	for _, year := range []int{-40000, 1, 1969, 2026, 10000, 200000} {
		w := newMesh(t, parse(t, relay))
		at := map[workflow.PartitionName]workflow.PartnerID{"p1": "one", "p2": "two"}
		now := Moment{Wall: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
		m, err := Create(Self{Partner: "one", Trust: testTrust{}}, w.def, w.plan, w.genesis(at, "one", "two"), nil, now)
		if err != nil {
			t.Fatalf("in the year %d: %v", year, err)
		}
		for _, s := range m.Decide(now, w).Persist {
			if _, _, err := DecodeFact(s.Raw); err != nil {
				t.Errorf("in the year %d: %v", year, err)
			}
		}
	}
}

// TestReasonsAreText: whatever a program says when it fails becomes a reason that
// can be recorded.
func TestReasonsAreText(t *testing.T) {
	for _, s := range []string{
		"", "short", "\xff\xfe", strings.Repeat("é", 3000), strings.Repeat("\xe2", 5000),
		strings.Repeat("x", maxReason-1) + "é",
	} {
		got := clip(s)
		if err := reason(got); err != nil {
			t.Errorf("a reason of %d bytes: %v", len(s), err)
		}
	}
}

// TestTheLargestVerdictFits: with the longest names, all reasons and a proof of
// office a verdict still fits into one fact.
func TestTheLargestVerdictFits(t *testing.T) {
	name := func(i int) workflow.TaskName { return workflow.TaskName(fmt.Sprintf("%0128d", i)) }
	partner := workflow.PartnerID(strings.Repeat("p", 52))
	v := &Verdict{
		Cause: CauseReported, Reason: strings.Repeat("r", maxReason),
		Office: &Office{Proof: make([]byte, election.MaxCredentials)},
	}
	chosen := map[workflow.TaskName]*partition.Choice{}
	for i := range MaxActions {
		c := manyCandidates(20)
		c.Why = strings.Repeat("w", maxReason)
		for k := range c.Assignment.Candidates {
			c.Assignment.Candidates[k].Resource = c.Assignment.Candidates[k].Resource[:0] +
				"12D3KooWRgtEBV1PLztE3R1ZVBCGphvBfuSZ8MJxxfoXX4iym2Hz"
		}
		chosen[name(i)] = &c
		v.Actions = append(v.Actions, Action{
			Attempt: AttemptID{Fact: FactID{1}, Slot: name(i)}, Kind: workflow.FailContingency, Task: name(i),
			Partner: partner,
		})
	}
	f := &Fact{Format: FormatFact, Instance: workflow.InstanceID{1}, Chain: Chain{Author: partner}, Seq: 1 << 40,
		Prev: FactID{1},
		Body: Body{Verdict: v, Annex: reasoned(whysOf(v.Actions, chosen)...)}}
	for i := range MaxHeadsSeen {
		f.Seen = append(f.Seen, Head{
			Chain: Chain{Author: partner, Incarnation: Incarnation{byte(i >> 8), byte(i)}}, Seq: 1 << 40, ID: FactID{1},
		})
	}
	if _, _, err := f.Encode(); err != nil {
		f.Seen = nil
		raw, _, err2 := f.Encode()
		t.Errorf("with all heads: %v; without any: %d bytes, %v", err, len(raw), err2)
	}
}

// Errors say partners by their short IDs, as all texts do that know no names.
func TestErrorsHaveShortIDs(t *testing.T) {
	id := workflow.PartnerID(workflow.CommonID + "GRUVh8nPZkZtSjKvEfGhqYVbCkF1q9sB6b4Xq3o4jLpC")
	for _, err := range []error{&Elsewhere{Task: "a", Partner: id}, &Unanswerable{By: id}} {
		if text := err.Error(); strings.Contains(text, string(id)) || !strings.Contains(text, id.Short()) {
			t.Errorf("%s: want %s in it", text, id.Short())
		}
	}
}
