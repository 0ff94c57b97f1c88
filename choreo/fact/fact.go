package fact

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/mutirao-mesh/mutirao/internal/canon"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Fact is something that happened to an instance, as its author tells it. It
// is immutable and named by the hash of its encoding (docs/design.md, idea 1).
type Fact struct {
	_ struct{} `cbor:",toarray"`
	// Format is the version of the encoding, Format.
	Format uint8
	// Instance is zero in a genesis, whose hash gives the ID.
	Instance workflow.InstanceID
	Chain    Chain
	// Seq numbers a chain's facts from 1 without gaps; Prev is the one before.
	Seq  uint64
	Prev ID
	// Seen are the heads of other chains that the author had seen and that the
	// past of Prev does not contain, sorted.
	Seen []Head
	// At is the author's wall clock in milliseconds since 1970, until the year
	// 9999. It is shown to people and decides nothing.
	At   int64
	Body Body
}

// Format is the version of the encoding of facts. 1 (2026-11): the first, which no release had. 2: of an
// attempt that the genesis assigned only the slot is said.
const Format = 2

// Body says what happened: exactly one field is set, beside the annex. A start and the success of
// the same try together are one thing as well (Done).
type Body struct {
	Genesis   *Genesis   `cbor:"1,keyasint,omitempty"`
	Ready     *ReadyBody `cbor:"2,keyasint,omitempty"`
	Start     *Start     `cbor:"3,keyasint,omitempty"`
	Success   *Success   `cbor:"4,keyasint,omitempty"`
	TryFailed *TryFailed `cbor:"5,keyasint,omitempty"`
	Verdict   *Verdict   `cbor:"6,keyasint,omitempty"`
	Assign    *Assign    `cbor:"7,keyasint,omitempty"`
	CalledOff *CalledOff `cbor:"8,keyasint,omitempty"`
	Cancel    *Cancel    `cbor:"9,keyasint,omitempty"`
	Seen      *Seen      `cbor:"10,keyasint,omitempty"`
	WriteOff  *WriteOff  `cbor:"11,keyasint,omitempty"`
	Claim     *Claim     `cbor:"12,keyasint,omitempty"`
	Child     *Child     `cbor:"13,keyasint,omitempty"`
	Fire      *Fire      `cbor:"14,keyasint,omitempty"`
	Lease     *Lease     `cbor:"17,keyasint,omitempty"`
	Aged      *Aged      `cbor:"18,keyasint,omitempty"`

	// Annex may go with a genesis, a verdict, an assignment or an offer of people's work.
	Annex *Annex `cbor:"20,keyasint,omitempty"`
	// Credentials are the certificate chain of the author's key, which proves its
	// roles (trust.EncodeChain). They go with the first fact of a chain for
	// which they matter: a genesis of a workflow with a creator role, and the start
	// of a task with a role.
	Credentials []byte `cbor:"21,keyasint,omitempty"`
}

// ErrInvalid is wrapped by the error of a fact that no correct node writes.
var ErrInvalid = errors.New("invalid fact")

// EncMode writes what is said in its one form.
var EncMode = canon.Encoder()

var decMode = canon.Decoder(canon.Limits{Elements: MaxCollection, Levels: maxDepth})

// Encode gives a fact's canonical bytes and its name. It refuses what Decode
// refuses; its error wraps ErrInvalid.
func (f *Fact) Encode() ([]byte, ID, error) {
	if err := f.validate(); err != nil {
		return nil, ID{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	raw, err := EncMode.Marshal(f)
	if err != nil {
		return nil, ID{}, fmt.Errorf("encode fact: %w", err)
	}
	if len(raw) > MaxFact {
		return nil, ID{}, fmt.Errorf("%w: %s fact of %d bytes, at most %d may be recorded: keep large results in files",
			ErrInvalid, f.Body.Kind(), len(raw), MaxFact)
	}
	return raw, NameOf(raw), nil
}

// Decode reads a fact. Its error wraps ErrInvalid.
func Decode(raw []byte) (*Fact, ID, error) {
	if len(raw) > MaxFact {
		return nil, ID{}, fmt.Errorf("%w: %d bytes, at most %d", ErrInvalid, len(raw), MaxFact)
	}
	var f Fact
	if err := decMode.Unmarshal(raw, &f); err != nil {
		return nil, ID{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := f.validate(); err != nil {
		return nil, ID{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &f, NameOf(raw), nil
}

var factDomain = []byte("mutirao/fact/2\x00")

// NameOf is what names a fact with those bytes.
func NameOf(raw []byte) ID {
	h := sha256.New()
	h.Write(factDomain)
	h.Write(raw)
	var id ID
	h.Sum(id[:0])
	return id
}

// InstanceOf gives the ID of the instance that a genesis with that name creates.
func InstanceOf(id ID) workflow.InstanceID {
	return workflow.InstanceID(id[:16])
}

// Parents are what a fact names as its past.
func (f *Fact) Parents() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		if f.Seq > 1 && !yield(f.Prev) {
			return
		}
		for _, h := range f.Seen {
			if !yield(h.ID) {
				return
			}
		}
	}
}

// Aside are the heads that a fact sets aside.
func (f *Fact) Aside() iter.Seq[Head] {
	return func(yield func(Head) bool) {
		if f.Body.Seen == nil {
			return
		}
		for _, h := range f.Body.Seen.Aside {
			if h.Chain.Author != f.Chain.Author && !yield(h) {
				return
			}
		}
	}
}

// Says is what the body says; nil: not exactly one thing.
func (b *Body) Says() (what Statement) {
	n := 0
	for _, x := range []struct {
		says Statement
		set  bool
	}{
		{b.Genesis, b.Genesis != nil}, {b.Ready, b.Ready != nil}, {b.Start, b.Start != nil},
		{b.Success, b.Success != nil},
		{b.TryFailed, b.TryFailed != nil}, {b.Verdict, b.Verdict != nil}, {b.Assign, b.Assign != nil},
		{b.CalledOff, b.CalledOff != nil}, {b.Cancel, b.Cancel != nil}, {b.Seen, b.Seen != nil},
		{b.WriteOff, b.WriteOff != nil},
		{b.Claim, b.Claim != nil}, {b.Child, b.Child != nil}, {b.Lease, b.Lease != nil},
		{b.Fire, b.Fire != nil}, {b.Aged, b.Aged != nil},
	} {
		if x.set {
			what = x.says
			n++
		}
	}
	switch {
	case n == 1:
		return what
	case n == 2 && b.Start != nil && b.Success != nil:
		return (*Done)(b)
	}
	return nil
}

// Kind names what a body says, for people and for counters; "" means that it does not
// say exactly one thing.
func (b *Body) Kind() string {
	if what := b.Says(); what != nil {
		return what.kind()
	}
	return ""
}

// Appoints are the partners to whom a fact gives work, after the genesis.
func (b *Body) Appoints() iter.Seq[workflow.PartnerID] {
	if what, ok := b.Says().(appointing); ok {
		return what.appoints
	}
	return func(func(workflow.PartnerID) bool) {}
}

// BringsIn reports whether a fact with this body may bring somebody into the instance.
// Such a fact goes with an attestation of its own: so nothing else of its chain is needed
// to show a newcomer that it takes part, whatever its author wrote after it.
func (b *Body) BringsIn() bool {
	what, may := b.Says().(appointing)
	if !may { // most kinds: an iterator would cost memory for each fact
		return b.Genesis != nil
	}
	if b.Claim != nil && !b.Claim.places() { // as nearly all
		return false
	}
	for range what.appoints {
		return true
	}
	return false
}

// validate checks what can be told of a fact by itself.
func (f *Fact) validate() error {
	says := f.Body.Says()
	switch {
	case f.Format != Format:
		return fmt.Errorf("format %d, this node reads %d", f.Format, Format)
	case says == nil:
		return errors.New("a body says exactly one thing")
	case f.Chain.Author == "":
		return errors.New("no author")
	case f.Seq == 0:
		return errors.New("numbers start at 1")
	case (f.Seq == 1) != f.Prev.IsZero():
		return fmt.Errorf("number %d and previous fact %s do not go together", f.Seq, f.Prev.Short())
	case f.At < MinAt || f.At > MaxAt:
		return fmt.Errorf("it is dated %d ms after 1970: want 0 to %d, the years 1970 to 9999", f.At, MaxAt)
	}
	if err := f.validateSeen(); err != nil {
		return err
	}
	if err := says.Validate(f.Chain.Author); err != nil {
		return fmt.Errorf("%s: %w", says.kind(), err)
	}
	if n := len(f.Body.Credentials); n > trust.MaxChain*trust.MaxCertificate {
		return fmt.Errorf("credentials of %d bytes, at most %d", n, trust.MaxChain*trust.MaxCertificate)
	}
	return f.validateAnnex()
}

// validateSeen checks the chain and the heads.
func (f *Fact) validateSeen() error {
	switch {
	case f.Body.Genesis != nil && (f.Seq != 1 || len(f.Seen) > 0 || f.Instance != (workflow.InstanceID{})):
		return errors.New("a genesis is the first of its instance")
	case f.Body.Genesis == nil && f.Instance == (workflow.InstanceID{}):
		return errors.New("no instance")
	case f.Body.Genesis == nil && f.Seq == 1 && len(f.Seen) == 0:
		return errors.New("a chain's first fact must have seen the genesis")
	}
	if err := heads(f.Seen); err != nil {
		return fmt.Errorf("seen: %w", err)
	}
	return names(f.Chain.Author)
}

// validateAnnex checks what can be told of an annex by itself.
func (f *Fact) validateAnnex() error {
	a := f.Body.Annex
	switch {
	case a == nil:
		return nil
	case f.Body.Genesis == nil && f.Body.Verdict == nil && f.Body.Assign == nil &&
		!(f.Body.Claim != nil && IsOffer(f.Body.Claim.Body())):
		return fmt.Errorf("a %s fact has no annex", f.Body.Kind())
	case (a.Mechanism != "" || len(a.Dropped) > 0 || a.Responsible != "" || a.Parent != nil || len(a.Uses) > 0 ||
		a.dates() || a.Notify != "" || len(a.Word) > 0) && f.Body.Genesis == nil:
		return errors.New("an instance's mechanism, who began it and answers for it, what is dropped of it, what it uses and what it is for, when people are warned and what they are offered, is in its genesis")
	case (a.Offered || a.Waited != 0) && (f.Body.Assign == nil || !f.Body.Assign.Verdict.IsZero()):
		return errors.New("only a holder that passes work on says that it is offered, and for how long it waited")
	case a.Order != nil && (f.Body.Assign == nil || f.Body.Assign.Verdict.IsZero()):
		return errors.New("by order only what a verdict ended is done once more")
	case a.Waited < 0 || a.Waited > MaxWaited:
		return fmt.Errorf("work that waited for %s, want 0 to %s", a.Waited, MaxWaited)
	case len(a.Word) > MaxWord:
		return fmt.Errorf("a person's word of %d bytes, at most %d", len(a.Word), MaxWord)
	case len(a.Why) > maxWhy || len(a.Dropped) > MaxCollection:
		return fmt.Errorf("%d reasons and %d dropped tasks, at most %d and %d", len(a.Why), len(a.Dropped), maxWhy,
			MaxCollection)
	}
	for i := range a.Why {
		if err := a.Why[i].validate(); err != nil {
			return err
		}
	}
	for _, d := range a.Dropped {
		if err := errors.Join(names(d.Task), names(d.DataSet), names(d.Holder)); err != nil {
			return err
		}
	}
	return errors.Join(names(a.Mechanism), names(a.Responsible), Reason(a.Rejected), a.Parent.validate(f.Body.Genesis),
		pins(a.Uses), a.validateDates(), a.validateNotify())
}

// Follows checks that a fact goes on with the one that it names as previous.
func (f *Fact) Follows(prev *Fact) error {
	if prev.Chain != f.Chain || prev.Seq != f.Seq-1 {
		return fmt.Errorf("%w: it does not follow the fact that it names as previous", ErrInvalid)
	}
	return nil
}

// Names checks that a head says of the fact that it names which chain and number it has.
func (h Head) Names(f *Fact) error {
	if f.Chain != h.Chain || f.Seq != h.Seq {
		return fmt.Errorf("%w: it misnames a head that it has seen", ErrInvalid)
	}
	return nil
}

// Received is a fact as it came from elsewhere, its attestation verified.
type Received struct {
	Fact *Fact
	ID   ID
	Raw  []byte
	Att  *Attestation
}

// Instance is the instance that the fact is of; a genesis says so by its name.
func (r Received) Instance() workflow.InstanceID {
	if r.Fact.Body.Genesis != nil {
		return InstanceOf(r.ID)
	}
	return r.Fact.Instance
}
