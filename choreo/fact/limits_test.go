package fact_test

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

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// unchecked is the encoding of a fact that a node in order may not write.
func unchecked(t testing.TB, f *fact.Fact) []byte {
	t.Helper()
	raw, err := fact.EncMode.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// mustAgree checks that a fact is written if and only if it is read.
func mustAgree(t testing.TB, f *fact.Fact) (accepted bool) {
	t.Helper()
	raw, id, werr := f.Encode()
	bare := unchecked(t, f)
	_, read, rerr := fact.Decode(bare)
	switch {
	case (werr == nil) != (rerr == nil):
		t.Errorf("a %s fact: writing it gives %v, reading it %v", f.Body.Kind(), werr, rerr)
	case werr == nil && (!bytes.Equal(raw, bare) || id != read):
		t.Errorf("a %s fact is not what was written", f.Body.Kind())
	case werr != nil && (!errors.Is(werr, fact.ErrInvalid) || !errors.Is(rerr, fact.ErrInvalid)):
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
	a := fact.AttemptID{Slot: "a"}
	success := func(v workflow.Value) fact.Body {
		return fact.Body{Success: &fact.Success{Attempt: a, Try: 1,
			Outputs: map[workflow.DataName]workflow.Value{"x": v}}}
	}
	verdict := func(n int) fact.Body {
		v := &fact.Verdict{Cause: fact.CauseTimeout}
		for range n {
			v.Actions = append(v.Actions, fact.Action{Attempt: a, Kind: workflow.FailBlock})
		}
		return fact.Body{Verdict: v}
	}
	heads := func(n int) (hs []fact.Head) {
		for i := range n {
			hs = append(hs, fact.Head{
				Chain: fact.Chain{Author: "two", Incarnation: fact.Incarnation{byte(i >> 8),
					byte(i)}}, Seq: 1, ID: fact.ID{1},
			})
		}
		return hs
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	part := func(depth, try int) fact.Parent {
		return fact.Parent{
			Instance: workflow.InstanceID{9}, Attempt: a, Try: try,
			Line: slices.Repeat([]workflow.PartnerID{"one"}, depth),
		}
	}
	nested := func(p fact.Parent, uses ...fact.Pin) fact.Body {
		return fact.Body{Genesis: &fact.Genesis{
			Nonce: p.Nonce(), Succession: []workflow.PartnerID{"one"},
			Assign: []fact.Placement{{Partition: "main", Partner: "one"}},
		}, Annex: &fact.Annex{Parent: &p, Uses: uses}}
	}
	many := func(n int) (out []fact.Pin) {
		for i := range n {
			out = append(out, fact.Pin{Workflow: workflow.Name(fmt.Sprintf("w%03d", i))})
		}
		return out
	}
	genesis := func(f *fact.Fact) { f.Seq, f.Instance, f.Prev = 1, workflow.InstanceID{}, fact.ID{} }
	for _, c := range []struct {
		what string
		body fact.Body
		make func(*fact.Fact)
		want string // what the error names; "": none
	}{
		{"the last moment of 9999", fact.Body{Seen: &fact.Seen{}},
			func(f *fact.Fact) { f.At = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli() }, ""},
		{"the year 10000", fact.Body{Seen: &fact.Seen{}},
			func(f *fact.Fact) {
				f.At = time.Date(10000, 1, 1, 0, 0, 0, 0,
					time.UTC).UnixMilli()
			}, "years 1970 to 9999"},
		{"before 1970", fact.Body{Seen: &fact.Seen{}}, func(f *fact.Fact) { f.At = -1 }, "years 1970 to 9999"},
		{"the end of time", fact.Body{Seen: &fact.Seen{}}, func(f *fact.Fact) { f.At = math.MaxInt64 },
			"years 1970 to 9999"},
		{"as many heads as may be", fact.Body{Seen: &fact.Seen{}},
			func(f *fact.Fact) { f.Seen = heads(fact.MaxHeadsSeen) }, ""},
		{"a head too many", fact.Body{Seen: &fact.Seen{}}, func(f *fact.Fact) { f.Seen = heads(fact.MaxHeadsSeen + 1) },
			"at most 256"},
		{"a head twice", fact.Body{Seen: &fact.Seen{}}, func(f *fact.Fact) { f.Seen = append(heads(2), heads(2)...) },
			"not sorted"},
		{"heads out of order", fact.Body{Seen: &fact.Seen{}},
			func(f *fact.Fact) { f.Seen = []fact.Head{heads(2)[1], heads(2)[0]} },
			"not sorted"},
		{"no instance", fact.Body{Seen: &fact.Seen{}}, func(f *fact.Fact) { f.Instance = workflow.InstanceID{} },
			"no instance"},
		{"an author's name of any length", fact.Body{Seen: &fact.Seen{}},
			func(f *fact.Fact) { f.Chain.Author = workflow.PartnerID(long(129)) }, "at most 128"},
		{"two things at once", fact.Body{Seen: &fact.Seen{}, Cancel: &fact.Cancel{}}, nil, "exactly one thing"},
		{"a verdict as large as may be", verdict(fact.MaxActions), nil, ""},
		{"a verdict too large", verdict(fact.MaxActions + 1), nil, "want 1 to 128"},
		{"a verdict on nothing", verdict(0), nil, "want 1 to 128"},
		{"an unknown action", fact.Body{Verdict: &fact.Verdict{
			Cause: fact.CauseTimeout, Actions: []fact.Action{{Attempt: a, Kind: "explode"}},
		}}, nil, "explode"},
		{"an unknown cause", fact.Body{Verdict: &fact.Verdict{
			Cause: "envy", Actions: []fact.Action{{Attempt: a, Kind: workflow.FailBlock}},
		}}, nil, "envy"},
		{"a proof too large", fact.Body{Verdict: &fact.Verdict{Cause: fact.CauseTimeout,
			Actions: []fact.Action{{Attempt: a, Kind: workflow.FailBlock}},
			Office:  &fact.Office{Proof: make([]byte, election.MaxCredentials+1)}}}, nil, "at most 65536"},
		{"a reason as long as may be", fact.Body{Cancel: &fact.Cancel{Reason: long(4096)}}, nil, ""},
		{"a reason too long", fact.Body{Cancel: &fact.Cancel{Reason: long(4097)}}, nil, "at most 4096"},
		{"a reason that is no text", fact.Body{TryFailed: &fact.TryFailed{Attempt: a, Try: 1, Reason: "no\xff"}}, nil,
			"not UTF-8"},
		{"a child that is no instance", fact.Body{Child: &fact.Child{Attempt: a, Try: 1}}, nil, "no instance"},
		{"a child of try zero", fact.Body{Child: &fact.Child{Attempt: a, Instance: workflow.InstanceID{1}}}, nil,
			"want 1 to"},
		{"a child as deep as may be", nested(part(fact.MaxNesting, 1)), genesis, ""},
		{"a child too deep", nested(part(fact.MaxNesting+1, 1)), genesis, "want 1 to 8"},
		{"a child of nothing", nested(fact.Parent{Attempt: a, Try: 1, Line: []workflow.PartnerID{"one"}}), genesis,
			"part of none"},
		{"a child with another nonce", nested(part(1, 1)), func(f *fact.Fact) { genesis(f); f.Body.Genesis.Nonce[0]++ },
			"whose nonce"},
		{"a name that stands for two", nested(part(1, 1), fact.Pin{Workflow: "w"}, fact.Pin{Workflow: "w"}), genesis,
			"named twice"},
		{"too many workflows", nested(part(1, 1), many(fact.MaxPins+1)...), genesis, "at most 64"},
		{"as many workflows as may be", nested(part(1, 1), many(fact.MaxPins)...), genesis, ""},
		{"a parent outside a genesis", fact.Body{
			Assign: &fact.Assign{After: a, Task: "b",
				Partner: "one"}, Annex: &fact.Annex{Uses: []fact.Pin{{Workflow: "w"}}},
		}, nil, "in its genesis"},
		{"a worker's name too long", fact.Body{Lease: &fact.Lease{Attempt: a, Try: 1, Worker: long(129)}}, nil,
			"at most 128"},
		{"try zero", fact.Body{Start: &fact.Start{Attempt: a}}, nil, "want 1 to"},
		{"a try without end", fact.Body{Start: &fact.Start{Attempt: a, Try: math.MaxInt64}}, nil, "want 1 to"},
		{"a slot consumed twice", fact.Body{Start: &fact.Start{
			Attempt: a, Try: 1, Consumed: []fact.Consumption{{Slot: "b"}, {Slot: "b"}},
		}}, nil, "named twice"},
		{"one fact about two attempts", fact.Body{
			Start: &fact.Start{Attempt: a, Try: 1}, Success: &fact.Success{Attempt: fact.AttemptID{Slot: "b"}, Try: 1},
		}, nil, "about one try"},
		{"one fact about two tries", fact.Body{
			Start: &fact.Start{Attempt: a, Try: 1}, Success: &fact.Success{Attempt: a, Try: 2},
		}, nil, "about one try"},
		{"done with a try that cannot be", fact.Body{
			Start: &fact.Start{Attempt: a}, Success: &fact.Success{Attempt: a},
		}, nil, "want 1 to"},
		{"two things", fact.Body{Start: &fact.Start{Attempt: a, Try: 1}, Cancel: &fact.Cancel{}}, nil, "exactly one thing"},
		{"three things", fact.Body{
			Start: &fact.Start{Attempt: a, Try: 1}, Success: &fact.Success{Attempt: a, Try: 1}, Cancel: &fact.Cancel{},
		}, nil, "exactly one thing"},
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
		{"a result too large", success(long(fact.MaxFact)), nil, "at most 262144"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := &fact.Fact{
				Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: "one"}, Seq: 2,
				Prev: fact.ID{1}, Body: c.body,
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
func bendFact(r *rand.Rand, f *fact.Fact) {
	name := strings.Repeat("n", 126+r.IntN(4))
	if r.IntN(8) == 0 {
		name = "n\xff"
	}
	switch r.IntN(6) {
	case 0:
		f.At = []int64{0, -1, fact.MaxAt, fact.MaxAt + 1, math.MinInt64}[r.IntN(5)]
	case 1:
		f.Seq, f.Prev = uint64(r.IntN(3)), fact.ID{byte(r.IntN(2))}
	case 2:
		f.Chain.Author = workflow.PartnerID(name)
	case 3:
		f.Seen = nil
		for i := range r.IntN(fact.MaxHeadsSeen + 10) {
			f.Seen = append(f.Seen, fact.Head{
				Chain: fact.Chain{Author: "a", Incarnation: fact.Incarnation{byte(i >> 8), byte(i)}}, Seq: 1,
			})
		}
	}
	b := &f.Body
	switch {
	case b.Success != nil:
		b.Success = &fact.Success{
			Attempt: fact.AttemptID{Slot: "a"}, Try: r.IntN(3),
			Outputs: map[workflow.DataName]workflow.Value{"x": anyValue(r, 0)},
		}
	case b.Genesis != nil:
		g := *b.Genesis
		g.Input = map[workflow.DataName]workflow.Value{workflow.DataName(name): anyValue(r, 0)}
		b.Genesis = &g
	case b.Start != nil:
		b.Start = &fact.Start{Attempt: fact.AttemptID{Slot: workflow.TaskName(name)}, Try: 1}
	case b.Verdict != nil:
		v := &fact.Verdict{Cause: fact.CauseTimeout, Reason: strings.Repeat("é", r.IntN(2060))}
		for range r.IntN(fact.MaxActions + 20) {
			v.Actions = append(v.Actions, fact.Action{Kind: workflow.FailBlock})
		}
		b.Verdict = v
	case b.Assign != nil && b.Annex != nil:
		b.Annex = &fact.Annex{Waited: time.Duration(r.Int64()) - fact.MaxWaited, Rejected: name}
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

// TestReasonsAreText: whatever a program says when it fails becomes a reason that
// can be recorded.
func TestReasonsAreText(t *testing.T) {
	for _, s := range []string{
		"", "short", "\xff\xfe", strings.Repeat("é", 3000), strings.Repeat("\xe2", 5000),
		strings.Repeat("x", fact.MaxReason-1) + "é",
	} {
		got := fact.Clip(s)
		if err := fact.Reason(got); err != nil {
			t.Errorf("a reason of %d bytes: %v", len(s), err)
		}
	}
}
