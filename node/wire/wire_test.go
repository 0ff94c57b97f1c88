package wire_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What somebody says to be as old as can be said, and is passed on later, can be said still.
func TestAgesThatAreSentCanBeRead(t *testing.T) {
	oldest := wire.MaxAge * time.Millisecond
	for _, age := range []time.Duration{0, 1, time.Second, oldest, oldest + time.Second, math.MaxInt64} {
		m := &wire.Message{Records: [][]byte{{1}}, Ages: []uint64{wire.Millis(age)}}
		b, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Decode(b)
		if err != nil {
			t.Fatalf("an age of %s: %v", age, err)
		}
		if want := min(age, oldest); got.Age(0) < want {
			t.Errorf("an age of %s is read as %s", age, got.Age(0))
		}
	}
}

// author is a partner with a key.
type author struct {
	key ed25519.PrivateKey
	id  workflow.PartnerID
}

func newAuthor(seed byte) author {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return author{key, trust.IDOf(key.Public().(ed25519.PublicKey))}
}

// attest signs a batch of facts.
func (a author) attest(ids ...fact.ID) []*fact.Attestation {
	return fact.Attest(ids, func(domain string, msg []byte) []byte { return trust.Sign(a.key, domain, msg) })
}

// chain writes n facts of an author, each after the one before.
func chain(t testing.TB, a author, n int) (facts []wire.Fact, ids []fact.ID) {
	t.Helper()
	return chainOf(t, a, slices.Repeat([]fact.Body{{Seen: &fact.Seen{}}}, n)...)
}

func chainOf(t testing.TB, a author, bodies ...fact.Body) (facts []wire.Fact, ids []fact.ID) {
	t.Helper()
	prev := fact.ID{}
	for i, body := range bodies {
		f := &fact.Fact{
			Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: a.id},
			Seq: uint64(i + 1), Prev: prev,
			Seen: []fact.Head{{Chain: fact.Chain{Author: "genesis"}, Seq: 1}}, Body: body,
		}
		raw, id, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		facts, ids, prev = append(facts, wire.Fact{Raw: raw}), append(ids, id), id
	}
	return facts, ids
}

func report() wire.Report {
	return wire.Report{
		Instance: workflow.InstanceID{1}, Definition: workflow.Hash{2}, Workflow: "fire-call", Version: 3,
		State: workflow.InstanceRunning, Started: 4, Ended: 5,
		Facts: 6, Done: 7, Tasks: 8, At: []workflow.PartnerID{"a"}, Participants: []workflow.PartnerID{"a", "b"},
		Needs: []wire.Need{{Kind: "failed", Number: 9, Tasks: []workflow.TaskName{"t"}, Presumed: 1}},
	}
}

// message has every part.
func message(t testing.TB) *wire.Message {
	facts, ids := chain(t, newAuthor(1), 3)
	facts[2].Att = newAuthor(1).attest(ids[2], ids[0])[0]
	stamp := wire.DefinitionStamp{Claim: wire.ClaimOf(workflow.Hash{3}, "p"), Number: 2}
	return &wire.Message{
		Facts: []wire.Facts{{Instance: workflow.InstanceID{1}, Definition: []byte("{}"), Facts: facts}},
		Heads: []wire.Heads{{Instance: workflow.InstanceID{1}, Incarnation: fact.Incarnation{4},
			Heads: []fact.Head{{Chain: fact.Chain{Author: "a"}, Seq: 7, ID: ids[1]}}, Mode: wire.Answer}},
		Records:     [][]byte{{1, 2}},
		Beats:       [][]byte{{3}},
		Definitions: []wire.Definition{{Notices: [][]byte{{1}}, Canonical: []byte("{}")}},
		Have:        []wire.DefinitionStamp{stamp},
		Greeting:    true,
		Digest:      []byte{5},
		Evictions:   &wire.Records{Digest: []byte{6}, Asks: true, IDs: [][]byte{{7}}, List: [][]byte{{8}}},
		Users:       &wire.Records{Digest: []byte{6}, Asks: true, IDs: [][]byte{{7}}, List: [][]byte{{8}}},
		Election:    [][]byte{{9}},
		Renewal:     []byte{10},
		Wall:        1772352000000,
		Reports:     []wire.Report{report()},
		Pulse:       &wire.Pulse{Record: membership.Version{Boot: 11, Seq: 12}, Load: 13},
		Ended:       bytes.Repeat([]byte{11}, wire.EndedDigest),
		Ages:        []uint64{4000},
		Wanted:      []workflow.PartnerID{"b"},
		Refusals:    []wire.Refusal{{Instance: workflow.InstanceID{1}, Why: wire.RefusedClosed, Closing: []byte{12}}},
	}
}

func TestMessageSurvivesItsFrame(t *testing.T) {
	want := message(t)
	frame, err := wire.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("came out as %+v, went in as %+v", got, want)
	}
	for i := range reflect.TypeFor[wire.Message]().NumField() {
		if reflect.ValueOf(*want).Field(i).IsZero() {
			t.Errorf("the test's message has no %s", reflect.TypeFor[wire.Message]().Field(i).Name)
		}
	}
}

// TestVectors holds frames against testdata/vectors.txt: nodes of different
// ages speak with each other, so a change here means a new Version.
func TestVectors(t *testing.T) {
	full := message(t)
	messages := map[string]*wire.Message{
		"empty": {}, "heads": {Heads: full.Heads}, "facts": {Facts: full.Facts},
		"definitions": {Definitions: full.Definitions, Have: full.Have},
		"partners":    {Records: full.Records, Beats: full.Beats, Digest: full.Digest, Greeting: true, Wall: full.Wall},
		"reports":     {Reports: full.Reports},
		"pulse":       {Pulse: full.Pulse},
		"ended":       {Ended: full.Ended},
		"trust":       {Evictions: full.Evictions, Election: full.Election, Renewal: full.Renewal},
	}
	datadriven.RunTest(t, "testdata/vectors.txt", func(t *testing.T, d *datadriven.TestData) string {
		m := messages[d.Cmd]
		if m == nil {
			d.Fatalf(t, "no message %s", d.Cmd)
		}
		frame, err := wire.Encode(m)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		hex := fmt.Sprintf("%x", frame)
		var out []string
		for ; len(hex) > 96; hex = hex[96:] {
			out = append(out, hex[:96])
		}
		return strings.Join(append(out, hex), "\n")
	})
}

func TestFramesThatAreRefused(t *testing.T) {
	good, err := wire.Encode(message(t))
	if err != nil {
		t.Fatal(err)
	}
	many := func(m *wire.Message) []byte {
		t.Helper()
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for _, c := range []struct {
		what  string
		frame []byte
		want  error
	}{
		{"nothing", nil, wire.ErrMalformed},
		{"a version alone", []byte{wire.Version}, wire.ErrMalformed},
		{"another version", append([]byte{wire.Version + 1}, good[1:]...), wire.ErrVersion},
		{"too long", make([]byte, wire.MaxFrame+1), wire.ErrMalformed},
		{"cut short", good[:len(good)-1], wire.ErrMalformed},
		{"something behind it", append(bytes.Clone(good), 0), wire.ErrMalformed},
		{"a part that nobody knows", []byte{wire.Version, 0xa1, 0x18, 0x63, 0x01}, wire.ErrMalformed},
		{"one part twice", []byte{wire.Version, 0xa2, 0x07, 0xf5, 0x07, 0xf5}, wire.ErrMalformed},
		{"an array without length", []byte{wire.Version, 0xa1, 0x03, 0x9f, 0xff}, wire.ErrMalformed},
		{"a tag", []byte{wire.Version, 0xa1, 0x08, 0xc2, 0x41, 0x01}, wire.ErrMalformed},
		{"an array that promises too much", []byte{wire.Version, 0xa1, 0x03, 0x9a, 0xff, 0xff, 0xff, 0xff},
			wire.ErrMalformed},
		{"a string that promises too much", []byte{wire.Version, 0xa1, 0x08, 0x5a, 0xff, 0xff, 0xff, 0xff},
			wire.ErrMalformed},
		{"too many instances", many(&wire.Message{Heads: make([]wire.Heads, wire.MaxInstances+1)}), wire.ErrMalformed},
		{"facts of too many instances", many(&wire.Message{Facts: make([]wire.Facts, wire.MaxInstances+1)}),
			wire.ErrMalformed},
		{"a part of heads too many", many(&wire.Message{Heads: []wire.Heads{{Part: wire.MaxParts}}}),
			wire.ErrMalformed},
		{"too many heads", many(&wire.Message{Heads: []wire.Heads{{Heads: make([]fact.Head, wire.MaxHeads+1)}}}),
			wire.ErrMalformed},
		{"more ages than records", many(&wire.Message{Records: [][]byte{{1}}, Ages: []uint64{1, 2}}),
			wire.ErrMalformed},
		{"an age beyond all bounds", many(&wire.Message{Records: [][]byte{{1}}, Ages: []uint64{wire.MaxAge + 1}}),
			wire.ErrMalformed},
		{"too many records", many(&wire.Message{Records: make([][]byte, wire.MaxRecords), Beats: make([][]byte, 1)}),
			wire.ErrMalformed},
		{"a definition of nobody's", many(&wire.Message{Definitions: []wire.Definition{{Canonical: []byte("{}")}}}),
			wire.ErrMalformed},
		{"too many notices", many(&wire.Message{Definitions: []wire.Definition{{Notices: make([][]byte,
			trust.MaxNotices+1)}}}), wire.ErrMalformed},
		{"too large a definition", many(&wire.Message{Definitions: []wire.Definition{{Notices: [][]byte{{1}},
			Canonical: make([]byte, wire.MaxDefinition+1)}}}), wire.ErrMalformed},
		{"a digest that is too short", many(&wire.Message{Ended: []byte{1}}), wire.ErrMalformed},
		{"too many reports", many(&wire.Message{Reports: make([]wire.Report, wire.MaxReports+1)}), wire.ErrMalformed},
		{"a report that names too many partners",
			many(&wire.Message{Reports: []wire.Report{{At: make([]workflow.PartnerID, wire.MaxReported+1)}}}),
			wire.ErrMalformed},
		{"a report with too long a name",
			many(&wire.Message{Reports: []wire.Report{{Workflow: workflow.Name(strings.Repeat("w", 257))}}}),
			wire.ErrMalformed},
		{"a report with too long a partner",
			many(&wire.Message{Reports: []wire.Report{{At: []workflow.PartnerID{
				workflow.PartnerID(strings.Repeat("p", 257)),
			}}}}), wire.ErrMalformed},
		{"a report of too many needs", many(&wire.Message{Reports: []wire.Report{{Needs: make([]wire.Need,
			wire.MaxNeeds+1)}}}), wire.ErrMalformed},
		{"a report of a need of too many tasks",
			many(&wire.Message{Reports: []wire.Report{{Needs: []wire.Need{{Tasks: make([]workflow.TaskName,
				wire.MaxNeeds+1)}}}}}), wire.ErrMalformed},
		{"a report of more presumed than there are",
			many(&wire.Message{Reports: []wire.Report{{Needs: []wire.Need{{Number: 1, Presumed: 2}}}}}),
			wire.ErrMalformed},
		{"a report of more done than there is", many(&wire.Message{Reports: []wire.Report{{Done: 2, Tasks: 1}}}),
			wire.ErrMalformed},
		{"a refusal of too long an author",
			many(&wire.Message{Refusals: []wire.Refusal{{Why: wire.RefusedFacts,
				Author: workflow.PartnerID(strings.Repeat("p", 257))}}}), wire.ErrMalformed},
		{"an unknown mode", many(&wire.Message{Heads: []wire.Heads{{Mode: wire.Answer + 1}}}), wire.ErrMalformed},
	} {
		if _, err := wire.Decode(c.frame); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.what, err, c.want)
		}
	}
}

func TestMessageTooLargeForAFrame(t *testing.T) {
	if _, err := wire.Encode(&wire.Message{Digest: make([]byte, wire.MaxFrame)}); err == nil {
		t.Error("a message larger than a frame was encoded")
	}
	fits := &wire.Message{Digest: make([]byte, wire.MaxFrame-64)}
	frame, err := wire.Encode(fits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Decode(frame); err != nil {
		t.Errorf("what may be sent is refused: %v", err)
	}
}

// verifier remembers nothing.
type verifier struct{}

func (verifier) Verify(s fact.Signature) error { return s.Verify() }

// TestDecodeFacts: one attestation vouches for all facts of a chain before it,
// and for nobody else's.
func TestDecodeFacts(t *testing.T) {
	a, b := newAuthor(1), newAuthor(2)
	mine, ids := chain(t, a, 3)
	his, hisIDs := chain(t, b, 2)
	assign := fact.Body{Assign: &fact.Assign{After: fact.AttemptID{Slot: "t"}, Task: "t", Partner: b.id}}
	bringing, bringingIDs := chainOf(t, a, assign, fact.Body{Seen: &fact.Seen{}})
	with := func(f wire.Fact, att *fact.Attestation) wire.Fact { f.Att = att; return f }
	other := &fact.Fact{
		Format: fact.Format, Instance: workflow.InstanceID{2}, Chain: fact.Chain{Author: a.id}, Seq: 1,
		Seen: []fact.Head{{Chain: fact.Chain{Author: "genesis"}, Seq: 1}}, Body: fact.Body{Seen: &fact.Seen{}},
	}
	raw, elsewhere, err := other.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		facts []wire.Fact
		want  error
	}{
		{"none", nil, nil},
		{"a chain whose last is attested", []wire.Fact{mine[0], mine[1], with(mine[2], a.attest(ids[2])[0])}, nil},
		{"each attested in one batch", []wire.Fact{
			with(mine[0], a.attest(ids...)[0]), with(mine[1], a.attest(ids...)[1]), with(mine[2], a.attest(ids...)[2]),
		}, nil},
		{"two chains", []wire.Fact{
			mine[0], his[0], with(his[1], b.attest(hisIDs[1])[0]), mine[1], with(mine[2], a.attest(ids[2])[0]),
		}, nil},
		{"a last without attestation", []wire.Fact{mine[0], with(mine[1], a.attest(ids[1])[0]), mine[2]},
			fact.ErrForged},
		{"one chain vouched for, the other not", []wire.Fact{his[0], mine[0], with(mine[1], a.attest(ids[1])[0])},
			fact.ErrForged},
		{"attested by another", []wire.Fact{with(mine[0], b.attest(ids[0])[0])}, fact.ErrForged},
		{"another fact's attestation", []wire.Fact{mine[0], with(mine[1], a.attest(ids[0])[0])}, fact.ErrForged},
		{"a fact between missing", []wire.Fact{mine[0], with(mine[2], a.attest(ids[2])[0])}, fact.ErrForged},
		{"a fact that brings somebody in, attested itself",
			[]wire.Fact{with(bringing[0], a.attest(bringingIDs[0])[0]), with(bringing[1], a.attest(bringingIDs[1])[0])},
			nil},
		{"a fact that brings somebody in, only a later one attested",
			[]wire.Fact{bringing[0], with(bringing[1], a.attest(bringingIDs[1])[0])}, fact.ErrForged},
		{"effects before causes", []wire.Fact{with(mine[1], a.attest(ids[1])[0]), mine[0]}, fact.ErrForged},
		{"a fact whose first attestation is wrong although a later one vouches",
			[]wire.Fact{with(mine[0], b.attest(ids[0])[0]), with(mine[1], a.attest(ids[1])[0])}, fact.ErrForged},
		{"no fact at all", []wire.Fact{{Raw: []byte{0xff}}}, fact.ErrInvalid},
		{"a fact of another instance", []wire.Fact{
			with(mine[0], a.attest(ids[0])[0]), {Raw: raw, Att: a.attest(elsewhere)[0]},
		}, fact.ErrInvalid},
		{"a fact that was changed", []wire.Fact{{Raw: flipped(mine[0].Raw), Att: a.attest(ids[0])[0]}},
			fact.ErrForged},
	} {
		got, err := wire.DecodeFacts(&wire.Facts{Instance: workflow.InstanceID{1}, Facts: c.facts}, verifier{})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.what, err, c.want)
		}
		if err == nil && len(got) != len(c.facts) {
			t.Errorf("%s: %d facts of %d", c.what, len(got), len(c.facts))
		}
	}
}

// flipped changes the time of a fact: it stays well formed.
func flipped(raw []byte) []byte {
	f, _, err := fact.Decode(raw)
	if err != nil {
		panic(err)
	}
	f.At++
	out, _, err := f.Encode()
	if err != nil {
		panic(err)
	}
	return out
}

// A fact of one author cannot be vouched for by another that names it as its previous.
func TestAnotherCannotVouch(t *testing.T) {
	a, b := newAuthor(1), newAuthor(2)
	mine, ids := chain(t, a, 1)
	f := &fact.Fact{
		Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: b.id}, Seq: 2,
		Prev: ids[0], Body: fact.Body{Seen: &fact.Seen{}},
	}
	raw, id, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.DecodeFacts(&wire.Facts{
		Instance: workflow.InstanceID{1}, Facts: []wire.Fact{mine[0], {Raw: raw, Att: b.attest(id)[0]}},
	}, verifier{})
	if !errors.Is(err, fact.ErrForged) {
		t.Errorf("error %v, want ErrForged", err)
	}
}

// FuzzDecode: a frame decodes to a message within the limits that encodes
// again, or is refused with one of the two errors.
func FuzzDecode(f *testing.F) {
	full := message(f)
	for _, m := range []*wire.Message{
		full, {}, {Greeting: true}, {Heads: full.Heads}, {Evictions: full.Evictions}, {Reports: full.Reports},
	} {
		frame, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := wire.Decode(frame)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrVersion) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again, err := wire.Encode(m)
		if err != nil {
			t.Fatalf("a message that decoded cannot be encoded: %v", err)
		}
		n, err := wire.Decode(again)
		if err != nil {
			t.Fatalf("its encoding does not decode: %v", err)
		}
		if third, err := wire.Encode(n); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("the encoding is not stable (%v)", err)
		}
		for i := range m.Facts {
			if _, err := wire.DecodeFacts(&m.Facts[i], verifier{}); err != nil &&
				!errors.Is(err, fact.ErrInvalid) && !errors.Is(err, fact.ErrForged) {
				t.Fatalf("unexpected error of facts: %v", err)
			}
		}
	})
}

// FuzzDecodeFacts bends facts and attestations that were good: what passes is
// by the author it names.
func FuzzDecodeFacts(f *testing.F) {
	a := newAuthor(1)
	facts, ids := chain(f, a, 3)
	att := a.attest(ids...)[2]
	f.Add(facts[2].Raw, att.Sig, att.Path[0][:], att.Index, uint8(1))
	f.Add(facts[1].Raw, att.Sig, att.Path[1][:], uint32(0), uint8(2))
	f.Fuzz(func(t *testing.T, raw, sig, sibling []byte, index uint32, at uint8) {
		bent := &fact.Attestation{Index: index, Path: bytes32(att.Path), Sig: sig}
		copy(bent.Path[int(at)%len(bent.Path)][:], sibling)
		got, err := wire.DecodeFacts(&wire.Facts{
			Instance: workflow.InstanceID{1}, Facts: []wire.Fact{facts[0], facts[1], {Raw: raw, Att: bent}},
		}, verifier{})
		if err != nil {
			if !errors.Is(err, fact.ErrInvalid) && !errors.Is(err, fact.ErrForged) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if got[2].ID != ids[2] {
			t.Fatalf("fact %s passed, which nobody signed", got[2].ID)
		}
	})
}

func bytes32(in [][32]byte) [][32]byte { return append([][32]byte(nil), in...) }

// TestPartsOfHeads: any number of heads is told in parts that a receiver takes, and
// that make up the whole.
func TestPartsOfHeads(t *testing.T) {
	for _, n := range []int{
		0, 1, wire.MaxHeads, wire.MaxHeads + 1, 3*wire.MaxHeads + 7, wire.MaxHeads * wire.MaxParts,
	} {
		all := wire.Heads{Instance: workflow.InstanceID{1}, Mode: wire.Ask}
		for i := range n {
			all.Heads = append(all.Heads,
				fact.Head{Chain: fact.Chain{
					Author:      workflow.PartnerID(strings.Repeat("a", 52)),
					Incarnation: fact.Incarnation{byte(i >> 8), byte(i)},
				}, Seq: 1})
		}
		var got []fact.Head
		parts := all.Parts()
		for i, p := range parts {
			frame, err := wire.Encode(&wire.Message{Heads: []wire.Heads{p}})
			if err != nil {
				t.Fatal(err)
			}
			m, err := wire.Decode(frame)
			if err != nil {
				t.Fatalf("%d heads: part %d is refused: %v", n, i, err)
			}
			h := m.Heads[0]
			if int(h.Part) != i || h.More != (i < len(parts)-1) || h.Mode != wire.Ask || h.Instance != all.Instance {
				t.Errorf("%d heads: part %d is %d, more %t", n, i, h.Part, h.More)
			}
			got = append(got, h.Heads...)
		}
		if !slices.Equal(got, all.Heads) {
			t.Errorf("%d heads: %d came out of their parts", n, len(got))
		}
	}
	if n := len((wire.Heads{Heads: make([]fact.Head, wire.MaxHeads*wire.MaxParts+1)}).Parts()); n != wire.MaxParts {
		t.Errorf("too many heads are told in %d parts, want %d", n, wire.MaxParts)
	}
}

// A bundle that would not become durable at once is not taken in: after a crash in the middle there could be facts for
// which nothing vouches.
func TestBundleOfManyFacts(t *testing.T) {
	for name, f := range map[string]wire.Fact{
		"small":    {Raw: make([]byte, 90)},
		"attested": {Raw: make([]byte, 90), Att: &fact.Attestation{Sig: make([]byte, 64), Path: make([][32]byte, fact.MaxPath)}},
	} {
		w := kv.Write{Key: make([]byte, 41), Value: f.Raw}
		if f.Att != nil {
			w.Value = append(slices.Clone(f.Raw), make([]byte, f.Att.Size())...)
		}
		most := wire.MaxStored / (256 + len(w.Value))
		if !kv.Fits(slices.Repeat([]kv.Write{w}, most)) {
			t.Errorf("%s: %d facts are taken in, and have no room in a unit", name, most)
		}
		fs := &wire.Facts{Facts: slices.Repeat([]wire.Fact{f}, most+1)}
		if _, err := wire.DecodeFacts(fs, verifier{}); !errors.Is(err, fact.ErrInvalid) ||
			!strings.Contains(err.Error(), "at most 1048576") {
			t.Errorf("%s: decoding %d facts gives %v", name, len(fs.Facts), err)
		}
	}
}

// A bundle that nobody could pass on as one is not taken in.
func TestBundleTooLarge(t *testing.T) {
	f := &wire.Facts{}
	for range 3 {
		f.Facts = append(f.Facts, wire.Fact{Raw: make([]byte, wire.MaxBundle/3+1)})
	}
	if _, err := wire.DecodeFacts(f, verifier{}); !errors.Is(err, fact.ErrInvalid) ||
		!strings.Contains(err.Error(), "at most 524288") {
		t.Errorf("decoding gives %v", err)
	}
}
