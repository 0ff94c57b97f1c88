package worklist

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"strings"

	"github.com/mutirao-mesh/mutirao/internal/canon"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says how what happens to people's work is written down: in one way only, so
// that a person's signature is for exactly these bytes. Of the kinds of fact.go those have an
// encoding that the core makes: grant, release, revoke, transfer, result, close, adopt, order,
// extend, offer, notify, reserve, keep.

// Limits of what is written down.
const (
	// MaxSays bounds what a fact about people's work says, in bytes.
	MaxSays = 128 << 10
	// MaxGranted bounds the items of one grant.
	MaxGranted = 64
	// MaxLease is the longest lease that is granted.
	MaxLease = 366 * 24 * time.Hour

	// MaxBack bounds the reason for which something is given back, in bytes: there is always room to give back.
	MaxBack = 500
	// MaxAmend bounds what an amendment says, in bytes.
	MaxAmend = 4 << 10
	// MaxPlaced bounds the partitions of which an amendment says where they are.
	MaxPlaced = 16

	maxReason  = 4 << 10
	maxOutputs = 1024
)

// says is what a body says as it is written down: exactly one field is set.
type says struct {
	Grant   *saysGrant   `cbor:"1,keyasint,omitempty"`
	Release *saysRelease `cbor:"2,keyasint,omitempty"`
	Revoke  *saysRevoke  `cbor:"3,keyasint,omitempty"`
	Result  *saysResult  `cbor:"4,keyasint,omitempty"`
	Close   *saysClose   `cbor:"5,keyasint,omitempty"`
	Order   *saysOrder   `cbor:"6,keyasint,omitempty"`
	Stop    *saysStop    `cbor:"7,keyasint,omitempty"` // a Close by an order
	Pass    *saysPass    `cbor:"8,keyasint,omitempty"` // a Transfer
	Adopt   *saysAdopt   `cbor:"9,keyasint,omitempty"`
	Due     *saysDue     `cbor:"10,keyasint,omitempty"` // a Transfer as a deadline is near
	Extend  *saysExtend  `cbor:"11,keyasint,omitempty"`
	Offer   *saysOffer   `cbor:"12,keyasint,omitempty"`
	Notify  *saysNotify  `cbor:"13,keyasint,omitempty"`
	Reserve *saysReserve `cbor:"14,keyasint,omitempty"`
	Keep    *saysKeep    `cbor:"15,keyasint,omitempty"`
	Joint   *saysJoint   `cbor:"16,keyasint,omitempty"` // a Grant together with items of other holders
	Later   *saysLater   `cbor:"17,keyasint,omitempty"` // a Result that was made from others
	Anew    *saysAnew    `cbor:"18,keyasint,omitempty"` // a Grant of what its user may have already
	Amend   *saysAmend   `cbor:"19,keyasint,omitempty"`
	Back    *saysBack    `cbor:"20,keyasint,omitempty"` // a Release with a reason
	Placed  *saysPlaced  `cbor:"21,keyasint,omitempty"` // an Amend that says where partitions are
}

type saysItem struct {
	_        struct{} `cbor:",toarray"`
	Assigned ID
	Slot     workflow.TaskName
}

type saysGrant struct {
	_     struct{} `cbor:",toarray"`
	Items []saysItem
	Mode  Mode
	Lease time.Duration
}

// saysJoint names those of other holders sorted.
type saysJoint struct {
	_     struct{} `cbor:",toarray"`
	Items []saysItem
	Mode  Mode
	Lease time.Duration
	With  []saysItem
}

// saysAnew names those of other holders, if any, and the words sorted.
type saysAnew struct {
	_    struct{} `cbor:",toarray"`
	Of   saysJoint
	Anew []ID
}

type saysRelease struct {
	_     struct{} `cbor:",toarray"`
	Item  saysItem
	Grant ID
}

type saysBack struct {
	_      struct{} `cbor:",toarray"`
	Of     saysRelease
	Reason string
}

type saysRevoke struct {
	_     struct{} `cbor:",toarray"`
	Item  saysItem
	Grant ID
	Cause Cause
}

type saysResult struct {
	_       struct{} `cbor:",toarray"`
	Item    saysItem
	Grant   ID
	Failed  bool
	Reason  string
	Outputs map[workflow.DataName]string // as the person wrote them
}

// saysLater names those that it was made from sorted by item, each item once.
type saysLater struct {
	_    struct{} `cbor:",toarray"`
	Of   saysResult
	Upon []saysBasis
}

type saysBasis struct {
	_    struct{} `cbor:",toarray"`
	Item saysItem
	Word ID
}

type saysClose struct {
	_      struct{} `cbor:",toarray"`
	Item   saysItem
	Result ID
}

type saysOrder struct {
	_      struct{} `cbor:",toarray"`
	Item   saysItem // no slot: the instance
	What   string
	Reason string
	To     workflow.PartnerID
}

type saysStop struct {
	_     struct{} `cbor:",toarray"`
	Item  saysItem
	Order ID
}

// saysPass names a user, a role, or neither.
type saysPass struct {
	_      struct{} `cbor:",toarray"`
	Item   saysItem
	Grant  ID
	To     User
	Role   workflow.RoleName
	Reason string
}

type saysAdopt struct {
	_      struct{} `cbor:",toarray"`
	Item   saysItem
	Result ID
}

type saysDue struct {
	_    struct{} `cbor:",toarray"`
	Item saysItem
	To   User
}

// saysExtend has a span or a point in time, in ms since 1970; the other is 0.
type saysExtend struct {
	_     struct{} `cbor:",toarray"`
	Item  saysItem
	After time.Duration
	At    int64
}

// saysOffer names those to whom an item is offered, sorted.
type saysOffer struct {
	_     struct{} `cbor:",toarray"`
	Item  saysItem
	To    []User
	Under ID
}

// saysNotify is a policy as people write it.
type saysNotify struct {
	_      struct{} `cbor:",toarray"`
	Policy string
}

// saysAmend is a patch as it is written down.
type saysAmend struct {
	_     struct{} `cbor:",toarray"`
	Patch string
}

// saysPlaced is a patch with the places of partitions, sorted by their names.
type saysPlaced struct {
	_  struct{} `cbor:",toarray"`
	Of saysAmend
	At []saysPlace
}

type saysPlace struct {
	_         struct{} `cbor:",toarray"`
	Partition workflow.PartitionName
	Partner   workflow.PartnerID
	Moves     bool
}

// saysReserve names resources, sorted.
type saysReserve struct {
	_         struct{} `cbor:",toarray"`
	Item      saysItem
	Resources []Resource
}

type saysKeep struct {
	_         struct{} `cbor:",toarray"`
	Partition workflow.PartitionName
	After     ID
}

var (
	encMode = canon.Encoder()
	decMode = canon.Decoder(canon.Limits{Elements: maxOutputs})
)

// About are the items that a body is about.
func About(b Body) []Item { return b.about() }

// Encode writes a body down, in the only way in which Decode reads it.
func Encode(b Body) ([]byte, error) {
	var s says
	switch x := b.(type) {
	case Grant:
		joint := saysJoint{Items: saidAll(x.Items), Mode: x.Mode, Lease: x.Lease, With: saidAll(x.With)}
		if len(x.Anew) > 0 {
			s.Anew = &saysAnew{Of: joint, Anew: x.Anew}
			break
		}
		if len(x.With) > 0 {
			s.Joint = &joint
			break
		}
		s.Grant = &saysGrant{Items: saidAll(x.Items), Mode: x.Mode, Lease: x.Lease}
	case Release:
		r := saysRelease{Item: said(x.Item), Grant: x.Grant}
		if x.Reason != "" {
			s.Back = &saysBack{Of: r, Reason: x.Reason}
			break
		}
		s.Release = &r
	case Revoke:
		if !x.Order.IsZero() {
			return nil, errors.New("a grant is not yet revoked by an order")
		}
		s.Revoke = &saysRevoke{Item: said(x.Item), Grant: x.Grant, Cause: x.Cause}
	case Result:
		r := saysResult{
			Item: said(x.Item), Grant: x.Grant, Failed: x.Failed, Reason: x.Reason,
			Outputs: map[workflow.DataName]string{},
		}
		for n, v := range x.Outputs {
			r.Outputs[n], _ = v.(string) // validate refuses others
		}
		if len(x.Upon) == 0 {
			s.Result = &r
			break
		}
		s.Later = &saysLater{Of: r}
		for _, of := range x.Upon {
			s.Later.Upon = append(s.Later.Upon, saysBasis{Item: said(of.Item), Word: of.Word})
		}
	case Close:
		if x.Order.IsZero() {
			s.Close = &saysClose{Item: said(x.Item), Result: x.Result}
		} else {
			s.Stop = &saysStop{Item: said(x.Item), Order: x.Order}
		}
	case Order:
		s.Order = &saysOrder{Item: said(x.Item), What: x.What, Reason: x.Reason, To: x.To}
	case Transfer:
		if x.Cause == ByDeadline {
			s.Due = &saysDue{Item: said(x.Item), To: x.To}
			break
		}
		s.Pass = &saysPass{Item: said(x.Item), Grant: x.Grant, To: x.To, Role: x.Role, Reason: x.Reason}
	case Adopt:
		s.Adopt = &saysAdopt{Item: said(x.Item), Result: x.Result}
	case Extend:
		s.Extend = &saysExtend{Item: said(x.Item), After: x.Due.After}
		if !x.Due.At.IsZero() {
			s.Extend.At = x.Due.At.UnixMilli()
		}
	case Offer:
		s.Offer = &saysOffer{Item: said(x.Item), To: x.To, Under: x.Under}
	case Notify:
		s.Notify = &saysNotify{Policy: x.Policy.String()}
	case Amend:
		if of := (saysAmend{Patch: x.Patch}); len(x.At) == 0 {
			s.Amend = &of
		} else {
			s.Placed = &saysPlaced{Of: of}
			for _, p := range x.At {
				s.Placed.At = append(s.Placed.At, saysPlace{Partition: p.Partition, Partner: p.Partner, Moves: p.Moves})
			}
		}
	case Reserve:
		s.Reserve = &saysReserve{Item: said(x.Item), Resources: x.Resources}
	case Keep:
		s.Keep = &saysKeep{Partition: x.Partition, After: x.After}
	default:
		return nil, fmt.Errorf("a %s is not yet written down", b.kind())
	}
	if err := validate(b); err != nil {
		return nil, err
	}
	raw, err := encMode.Marshal(s)
	if err == nil && len(raw) > MaxSays {
		err = fmt.Errorf("a %s of %d bytes, at most %d: keep large results in files", b.kind(), len(raw), MaxSays)
	}
	return raw, err
}

// Decode reads what Encode wrote, and nothing else.
func Decode(raw []byte) (Body, error) {
	if len(raw) > MaxSays {
		return nil, fmt.Errorf("%d bytes about people's work, at most %d", len(raw), MaxSays)
	}
	var s says
	if err := decMode.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	b, err := s.body()
	if err != nil {
		return nil, err
	}
	again, err := Encode(b)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, raw) {
		return nil, errors.New("it is not written down in the one way")
	}
	return b, nil
}

func (s *says) body() (out Body, err error) {
	n := 0
	set := func(b Body) { out, n = b, n+1 }
	if x := s.Grant; x != nil {
		set(Grant{Items: items(x.Items), Mode: x.Mode, Lease: x.Lease})
	}
	if x := s.Joint; x != nil {
		set(x.grant())
	}
	if x := s.Anew; x != nil {
		g := x.Of.grant()
		g.Anew = x.Anew
		set(g)
	}
	if x := s.Release; x != nil {
		set(Release{Item: x.Item.item(), Grant: x.Grant})
	}
	if x := s.Back; x != nil {
		set(Release{Item: x.Of.Item.item(), Grant: x.Of.Grant, Reason: x.Reason})
	}
	if x := s.Revoke; x != nil {
		set(Revoke{Item: x.Item.item(), Grant: x.Grant, Cause: x.Cause})
	}
	if x := s.Result; x != nil {
		set(x.result())
	}
	if x := s.Later; x != nil {
		r := x.Of.result()
		for _, of := range x.Upon {
			r.Upon = append(r.Upon, Basis{Item: of.Item.item(), Word: of.Word})
		}
		set(r)
	}
	if x := s.Close; x != nil {
		set(Close{Item: x.Item.item(), Result: x.Result})
	}
	if x := s.Order; x != nil {
		set(Order{Item: x.Item.item(), What: x.What, Reason: x.Reason, To: x.To})
	}
	if x := s.Stop; x != nil {
		set(Close{Item: x.Item.item(), Order: x.Order})
	}
	if x := s.Pass; x != nil {
		set(NewTransfer(x.Item.item(), x.Grant, x.To, x.Role, x.Reason))
	}
	if x := s.Adopt; x != nil {
		set(Adopt{Item: x.Item.item(), Result: x.Result})
	}
	if x := s.Due; x != nil {
		set(NewDueTransfer(x.Item.item(), x.To))
	}
	if x := s.Extend; x != nil {
		e := Extend{Item: x.Item.item(), Due: Due{After: x.After}}
		if x.At != 0 {
			e.Due.At = time.UnixMilli(x.At).UTC()
		}
		set(e)
	}
	if x := s.Offer; x != nil {
		set(Offer{Item: x.Item.item(), To: x.To, Under: x.Under})
	}
	if x := s.Notify; x != nil {
		p, err := ParsePolicy(x.Policy)
		if err != nil {
			return nil, err
		}
		set(Notify{Policy: p})
	}
	if x := s.Amend; x != nil {
		set(Amend{Patch: x.Patch})
	}
	if x := s.Placed; x != nil {
		a := Amend{Patch: x.Of.Patch}
		for _, p := range x.At {
			a.At = append(a.At, Placed{Partition: p.Partition, Partner: p.Partner, Moves: p.Moves})
		}
		set(a)
	}
	if x := s.Reserve; x != nil {
		set(Reserve{Item: x.Item.item(), Resources: x.Resources})
	}
	if x := s.Keep; x != nil {
		set(Keep{Partition: x.Partition, After: x.After})
	}
	if n != 1 {
		return nil, errors.New("it says more than one thing of people's work, or nothing")
	}
	return out, nil
}

func (x *saysJoint) grant() Grant {
	return Grant{Items: items(x.Items), Mode: x.Mode, Lease: x.Lease, With: items(x.With)}
}

func (x *saysResult) result() Result {
	r := Result{
		Item: x.Item.item(), Grant: x.Grant, Failed: x.Failed, Reason: x.Reason,
		Outputs: map[workflow.DataName]workflow.Value{},
	}
	for n, v := range x.Outputs {
		r.Outputs[n] = v
	}
	return r
}

func saidAll(of []Item) (out []saysItem) {
	for _, i := range of {
		out = append(out, said(i))
	}
	return out
}

func items(of []saysItem) (out []Item) {
	for _, i := range of {
		out = append(out, i.item())
	}
	return out
}

func said(i Item) saysItem    { return saysItem{Assigned: i.Assigned, Slot: i.Slot} }
func (i saysItem) item() Item { return Item{Assigned: i.Assigned, Slot: i.Slot} }

func name(what, s string) error {
	if s == "" || len(s) > workflow.MaxName || !utf8.ValidString(s) {
		return fmt.Errorf("%s has a name of %d bytes: want 1 to %d, in UTF-8", what, len(s), workflow.MaxName)
	}
	return nil
}

// validate checks what can be told of a body by itself.
func validate(b Body) error {
	seen := map[Item]bool{}
	for _, i := range b.about() {
		if err := name("the task", string(i.Slot)); err != nil {
			return err
		}
		if seen[i] {
			return fmt.Errorf("it names task %s twice", i.Slot)
		}
		seen[i] = true
	}
	switch x := b.(type) {
	case Grant:
		return x.validate()
	case Release:
		if len(x.Reason) > MaxBack || !utf8.ValidString(x.Reason) {
			return fmt.Errorf("a reason to give back of %d bytes: at most %d, in UTF-8", len(x.Reason), MaxBack)
		}
	case Revoke:
		if x.Cause != ByLease && x.Cause != ByRemoval {
			return fmt.Errorf("a grant revoked for the cause %q: there is no such one", x.Cause)
		}
	case Result:
		return x.validate()
	case Order:
		return x.validate()
	case Transfer:
		return x.validate()
	case Offer:
		return x.validate()
	case Notify:
		if why := x.Policy.wrong(); why != "" {
			return errors.New(why)
		}
	case Amend:
		return x.validate()
	case Extend:
		if why := x.Due.wrong(); why != "" {
			return errors.New(why)
		}
	case Reserve:
		return x.validate()
	case Keep:
		return name("the partition", string(x.Partition))
	case Adopt:
		if x.Result.IsZero() {
			return errors.New("an adoption that names no result")
		}
	case Close:
		if !x.Result.IsZero() && !x.Order.IsZero() {
			return errors.New("an item that is closed with a result and by an order")
		}
	}
	return nil
}

func (x Order) validate() error {
	switch x.What {
	case Continue, Stop, Again, Skip, Undo, Recover:
		if x.Item.Slot == "" {
			return fmt.Errorf("an order to %s that names no task", x.What)
		}
		if x.What == Skip && strings.TrimSpace(x.Reason) == "" {
			return fmt.Errorf("an order to skip %s that gives no reason", x.Item.Slot)
		}
	case Cancel:
		if x.Item != (Item{}) {
			return errors.New("an order to cancel the instance that names a task")
		}
	default:
		return fmt.Errorf("an order to %q: want %s, %s, %s, %s, %s, %s or %s", x.What, Again, Skip, Continue, Stop,
			Undo, Cancel, Recover)
	}
	switch {
	case x.To != "" && x.What != Again:
		return fmt.Errorf("an order to %s that names a partner: only what is done again goes to another", x.What)
	case len(x.To) > workflow.MaxName:
		return fmt.Errorf("an order that names a partner with %d bytes, at most %d", len(x.To), workflow.MaxName)
	}
	return reason(x.Reason)
}

func (x Offer) validate() error {
	switch {
	case x.All:
		return errors.New("an offer to all of the role: that is so without one")
	case len(x.To) == 0 || len(x.To) > workflow.MaxNotified:
		return fmt.Errorf("an offer to %d people: want 1 to %d", len(x.To), workflow.MaxNotified)
	}
	return inOrder("somebody to whom an item is offered", x.To, "an offer does not name people in order, each once")
}

func (x Reserve) validate() error {
	if err := name("the task", string(x.Item.Slot)); err != nil {
		return err
	}
	switch {
	case x.Round != 0:
		return errors.New("units for an item that was reopened: it has another attempt")
	case len(x.Resources) == 0 || len(x.Resources) > workflow.MaxHolds:
		return fmt.Errorf("units of %d resources: want 1 to %d", len(x.Resources), workflow.MaxHolds)
	}
	return inOrder("a resource", x.Resources, "it does not name resources in order, each once")
}

// inOrder checks names that are listed: what each of them names, and what is said where they are in another order than
// sorted, or one is there twice.
func inOrder[T ~string](what string, names []T, wrong string) error {
	for n, x := range names {
		if err := name(what, string(x)); err != nil {
			return err
		}
		if n > 0 && x <= names[n-1] {
			return errors.New(wrong)
		}
	}
	return nil
}

func reason(s string) error {
	if len(s) > maxReason || !utf8.ValidString(s) {
		return fmt.Errorf("a reason of %d bytes: at most %d, in UTF-8", len(s), maxReason)
	}
	return nil
}

func (x Grant) validate() error {
	switch {
	case len(x.Items) == 0 || len(x.Items)+len(x.With) > MaxGranted:
		return fmt.Errorf("a grant of %d items: want 1 to %d", len(x.Items)+len(x.With), MaxGranted)
	case len(x.With) > 0 && x.Mode != Handed && x.Mode != Lock:
		return fmt.Errorf("items of several holders in mode %q: want %s or %s", x.Mode, Handed, Lock)
	case len(x.With) == 0 && x.Mode != Select && x.Mode != Lock:
		return fmt.Errorf("a grant in mode %q: want %s or %s", x.Mode, Select, Lock)
	case x.Lease < 0 || x.Lease > MaxLease:
		return fmt.Errorf("a lease of %s: want 0 to %s", x.Lease, MaxLease)
	}
	switch {
	case len(x.Anew) > 0 && x.Mode != Lock:
		return fmt.Errorf("what somebody has is given once more in mode %q: want %s", x.Mode, Lock)
	case len(x.Anew) > MaxGranted:
		return fmt.Errorf("a grant that names %d earlier words, at most %d", len(x.Anew), MaxGranted)
	}
	for n, id := range x.Anew {
		if id.IsZero() || n > 0 && bytes.Compare(x.Anew[n-1][:], id[:]) >= 0 {
			return errors.New("the words by which somebody has the items are not named in order, each once")
		}
	}
	for n, i := range x.With {
		if err := name("the task", string(i.Slot)); err != nil {
			return err
		}
		if n > 0 && x.With[n-1].Compare(i) >= 0 || slices.Contains(x.Items, i) {
			return errors.New("the items of other holders are not named in order, each once")
		}
	}
	return nil
}

func (x Result) validate() error {
	if err := reason(x.Reason); err != nil {
		return err
	}
	switch {
	case len(x.Outputs) > maxOutputs:
		return fmt.Errorf("a result with %d data, at most %d", len(x.Outputs), maxOutputs)
	case len(x.Upon) > MaxGranted:
		return fmt.Errorf("a result that was made from %d others, at most %d", len(x.Upon), MaxGranted)
	case x.Failed && len(x.Outputs) > 0:
		return errors.New("a failure that brings data")
	}
	for n, of := range x.Upon {
		if err := name("the task", string(of.Item.Slot)); err != nil {
			return err
		}
		switch {
		case of.Item == x.Item || of.Word.IsZero():
			return errors.New("a result that was made from itself, or from no word")
		case n > 0 && x.Upon[n-1].Item.Compare(of.Item) >= 0:
			return errors.New("what a result was made from is not named in order, each item once")
		}
	}
	for n, v := range x.Outputs {
		if err := name("the data", string(n)); err != nil {
			return err
		}
		if text, is := v.(string); !is || !utf8.ValidString(text) {
			return fmt.Errorf("the value of %s is not the text that the person wrote", n)
		}
	}
	return nil
}

func (x Amend) validate() error {
	if n := len(x.Patch); n == 0 || n > MaxAmend {
		return fmt.Errorf("an amendment of %d bytes: want 1 to %d", n, MaxAmend)
	}
	if n := len(x.At); n > MaxPlaced {
		return fmt.Errorf("an amendment that places %d partitions: at most %d", n, MaxPlaced)
	}
	for i, p := range x.At {
		switch {
		case p.Partition == "" || len(p.Partition) > workflow.MaxName || !utf8.ValidString(string(p.Partition)),
			p.Partner == "" || len(p.Partner) > workflow.MaxName || !utf8.ValidString(string(p.Partner)):
			return fmt.Errorf("an amendment that places a partition with a name of %d bytes at one of %d: want 1 to %d bytes "+
				"of text", len(p.Partition), len(p.Partner), workflow.MaxName)
		case i > 0 && x.At[i-1].Partition >= p.Partition:
			return errors.New("an amendment that places partitions out of their order")
		}
	}
	return nil
}
