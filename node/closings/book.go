package closings

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// Prefix begins the keys under which summaries are stored, by instance.
	Prefix = 'x'
	// KeyAge is the key under which is stored the node's own time, KeyAccount what was
	// given up so far, and KeyDropped of which instances even the IDs were dropped, as the
	// node's keys for single values are.
	KeyAge     = "mage"
	KeyAccount = "mclosed"
	KeyDropped = "mdropped"
)

// Key is the key of an instance's summary.
func Key(id workflow.InstanceID) []byte { return append([]byte{Prefix}, id[:]...) }

// Store is where summaries are kept.
type Store interface {
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Whose says whose book it is, where it is kept, and how much room there is.
type Whose struct {
	Self  workflow.PartnerID
	Key   ed25519.PrivateKey
	Store Store
	Clock Clock
	Limit int // of summaries
}

// Book is what is kept of instances whose facts were deleted.
type Book struct {
	in       Whose
	lifetime lifetime
	aged     time.Duration // the age that was written last

	changing sync.Mutex // held while instances are given up; guards account
	account  Account

	mu sync.Mutex // guards dropped
	// dropped is up to when (ms) members began instances of which the IDs were dropped.
	dropped map[workflow.PartnerID]int64
}

// Account is what was given up so far: the number of summaries and, for each partner, the
// digest of the instances that were given up and in which it took part.
type Account struct {
	_       struct{} `cbor:",toarray"`
	Number  int
	Digests map[workflow.PartnerID]Digest
}

// Add adds an instance to the account, with who took part in it.
func (a *Account) Add(with []workflow.PartnerID, facts Digest) {
	a.Number++
	for _, p := range with {
		a.Digests[p] = Xored(a.Digests[p], facts)
	}
}

func (a Account) clone() Account {
	out := Account{Number: a.Number, Digests: make(map[workflow.PartnerID]Digest, len(a.Digests))}
	maps.Copy(out.Digests, a.Digests)
	return out
}

// storedDropped says, for each member, up to when (ms, its clock) it began instances of
// which the IDs were dropped.
type storedDropped struct {
	_     struct{} `cbor:",toarray"`
	Until map[workflow.PartnerID]int64
}

// DecodesAge, DecodesAccount and DecodesDropped return an error for a value of the key
// named so that cannot be read.
func DecodesAge(b []byte) error     { return codec.Decode(b, &storedAge{}) }
func DecodesAccount(b []byte) error { return codec.Decode(b, &Account{}) }
func DecodesDropped(b []byte) error { return codec.Decode(b, &storedDropped{}) }

// New is a book of which nothing was read yet.
func New(in Whose) *Book { return &Book{in: in, dropped: map[workflow.PartnerID]int64{}} }

// Load reads what is stored, but for the summaries, which are read when they are asked for.
func (b *Book) Load() (err error) {
	if err := b.loadAge(); err != nil {
		return err
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	if b.account, err = stored[Account](b, KeyAccount); err != nil {
		return err
	}
	d, err := stored[storedDropped](b, KeyDropped)
	b.drop(d.Until)
	return err
}

// stored is the value of a key; the zero value, where there is none.
func stored[T any](b *Book, key string) (T, error) {
	return codec.Read(b.in.Store, []byte(key), func(v []byte) (x T, err error) { return x, codec.Decode(v, &x) })
}

// Digests are, by partner, of the instances that were given up and are shared with it.
func (b *Book) Digests() map[workflow.PartnerID]Digest {
	b.changing.Lock()
	defer b.changing.Unlock()
	return b.account.clone().Digests
}

// Of reads the summary of an instance whose facts were deleted. Found without a signer:
// that was so long ago that only its ID is left, with who began it and when.
func (b *Book) Of(id workflow.InstanceID) (c Closing, found bool, err error) {
	v, err := b.in.Store.Get(Key(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return c, false, nil
	case err != nil:
		return c, false, err
	}
	return read(id, v), true, nil
}

// List lists the summaries whose IDs begin so, in hexadecimal, as the store has them.
func (b *Book) List(prefix string) (out []Closing, err error) {
	begin, _ := hex.DecodeString(prefix[:len(prefix)/2*2])
	err = b.in.Store.Scan(append([]byte{Prefix}, begin...), func(key, value []byte) error {
		if id := workflow.InstanceID(key[1:]); strings.HasPrefix(id.String(), prefix) {
			out = append(out, read(id, value))
		}
		return nil
	})
	return out, err
}

// After gives the summaries in the order of their IDs, those after one (nil: all), until fn returns false. It
// reads no more of the store than a 256th part beyond what it gives.
func (b *Book) After(after *workflow.InstanceID, fn func(Closing) bool) error {
	first := 0
	if after != nil {
		first = int(after[0])
	}
	for begin := first; begin < 256; begin++ {
		err := b.in.Store.Scan([]byte{Prefix, byte(begin)}, func(key, value []byte) error {
			id := workflow.InstanceID(key[1:])
			if (after == nil || id.Compare(*after) > 0) && !fn(read(id, value)) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends a scan of the store.
var errEnough = errors.New("enough was read")

// Close signs the summary of an instance that is given up now. With are all that took part.
func (b *Book) Close(c Closing) Closing {
	c.Closed, c.Signer = b.in.Clock.Now().Wall.UnixMilli(), b.in.Self
	c.Others = max(len(c.With)-maxWith, 0)
	c.With = c.With[:min(len(c.With), maxWith)]
	c.Sig = trust.Sign(b.in.Key, domain, c.signed())
	return c
}

// GiveUp has fn give instances up, one caller at a time. fn adds them to the account;
// commit makes that durable, in one unit with what fn writes.
func (b *Book) GiveUp(fn func(account *Account, commit func([]kv.Write) error) error) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	next := b.account.clone()
	return fn(&next, func(writes []kv.Write) error {
		account := kv.Write{Key: []byte(KeyAccount), Value: codec.Encode(next)}
		if err := b.in.Store.CommitWait(append(writes, account)); err != nil {
			return err
		}
		b.account = next.clone()
		return nil
	})
}

// drop notes up to when members began instances of which the IDs are dropped, and
// returns that of all members.
func (b *Book) drop(until map[workflow.PartnerID]int64) map[workflow.PartnerID]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p, at := range until {
		b.dropped[p] = max(b.dropped[p], at)
	}
	return maps.Clone(b.dropped)
}

// MayBeDropped reports whether an instance that a member began then (ms, its clock) may be
// one of which the ID was dropped.
func (b *Book) MayBeDropped(by workflow.PartnerID, started int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, some := b.dropped[by]
	return some && started <= until
}
