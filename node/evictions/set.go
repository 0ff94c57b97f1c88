// Package evictions keeps equal among partners who was put out of the mesh, stores it,
// and lets a node that nobody admits any more find out why.
//
// Promises: an eviction counts here from the moment that it is known, whether it can be
// stored or not; one that this node makes is durable before anybody hears of it. Every
// answer is a function of the set of evictions, so that nodes that know the same refuse
// the same. A [Set] is asked by many goroutines at once, and asks nobody while it holds
// its lock.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports membership, membership/moment, membership/trust, node/api, node/records,
// node/store/kv, node/wire and workflow; node imports it.
package evictions

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/records"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Prefix is the first byte of the keys under which evictions are stored, by their IDs.
const Prefix = 'e'

// Store keeps evictions.
type Store interface {
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Set is what a node knows of evictions. It may be used by several goroutines.
type Set struct {
	store Store

	mu    sync.RWMutex // guards what follows
	known *trust.Revocations
	// digest is that of known; nil: it is to be worked out, which is dear, and asked for
	// with each frame about evictions.
	digest *[sha256.Size]byte
}

// Load reads the evictions of mesh m that are stored, and adds those that joining brought.
func Load(m trust.Mesh, store Store, welcome []trust.Eviction) (*Set, error) {
	s := &Set{store: store, known: trust.NewRevocations(m)}
	err := store.Scan([]byte{Prefix}, func(_, value []byte) error {
		e, err := trust.DecodeEviction(value)
		if err == nil {
			_, err = s.known.Add(e)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stored evictions cannot be read: %w", err)
	}
	for _, e := range welcome {
		if _, err := s.known.Add(e); err != nil {
			continue // what the mesh would refuse as well
		}
	}
	return s, nil
}

// Check returns an error, which wraps [trust.ErrRevoked], if a chain was evicted
// that is authentic.
func (s *Set) Check(ch trust.Chain) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known.Check(ch)
}

// KeyEvicted reports whether a key is kept out whatever certificate it shows.
func (s *Set) KeyEvicted(p workflow.PartnerID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known.KeyEvicted(p)
}

// Proof is an encoded eviction of a partner's key; nil: there is none.
func (s *Set) Proof(p workflow.PartnerID) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.known.Against(p) {
		return trust.EncodeEviction(e)
	}
	return nil
}

// Remark is the reason that was given for a partner's eviction; empty: none.
func (s *Set) Remark(p workflow.PartnerID) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.known.Against(p) {
		if e.Reason != "" {
			return e.Reason
		}
	}
	return ""
}

// Some are as many of the evictions as fit into one frame.
func (s *Set) Some() (out []trust.Eviction) {
	s.some(func(e trust.Eviction, _ []byte) { out = append(out, e) }, func(trust.Eviction) bool { return true })
	return out
}

// about are the encoded evictions of these partners, as many as fit into one frame.
func (s *Set) about(who ...workflow.PartnerID) (out [][]byte) {
	s.some(func(_ trust.Eviction, b []byte) { out = append(out, b) }, func(e trust.Eviction) bool {
		for _, p := range who {
			if e.Partner == p {
				return true
			}
		}
		return false
	})
	return out
}

// some gives those of the wanted that fit into one frame.
func (s *Set) some(give func(trust.Eviction, []byte), wanted func(trust.Eviction) bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	size := 0
	for _, e := range s.known.All() {
		if !wanted(e) {
			continue
		}
		b := trust.EncodeEviction(e)
		if size += len(b); size > records.MaxBytes {
			return
		}
		give(e, b)
	}
}

// make signs an eviction, stores it, and counts it from then on. listed are the chains
// of those that are on the partner list, issued the serials of what else hangs on the evicted.
func (s *Set) make(
	by trust.Issuer, e trust.Eviction, listed []trust.Chain, issued []trust.Serial,
) (trust.Eviction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := by.Evict(e, s.known, listed, issued...)
	if err != nil {
		return e, err
	}
	if err := s.store.CommitWait([]kv.Write{write(e)}); err != nil {
		return e, err
	}
	s.digest = nil
	_, err = s.known.Add(e)
	return e, err
}

// add counts an eviction from now on, and reports whether it was new here.
func (s *Set) add(e trust.Eviction) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.digest = nil
	return s.known.Add(e)
}

func write(e trust.Eviction) kv.Write {
	id := e.ID()
	return kv.Write{Key: append([]byte{Prefix}, id[:]...), Value: trust.EncodeEviction(e)}
}

// keep stores evictions that count already.
func (s *Set) keep(list []trust.Eviction) error {
	var writes []kv.Write
	for _, e := range list {
		writes = append(writes, write(e))
	}
	return kv.CommitAll(s.store, writes)
}

// Digest is what partners compare on contact and at intervals.
func (s *Set) Digest() [sha256.Size]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digest == nil {
		d := s.known.Digest()
		s.digest = &d
	}
	return *s.digest
}

// IDs name all evictions that are known here.
func (s *Set) IDs() [][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return records.Names(s.known.IDs())
}

// LackedBy are the encoded evictions that a peer with these IDs lacks, up to so many bytes.
func (s *Set) LackedBy(ids [][]byte, bytes int) (out [][]byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.known.LackedBy(records.Named[trust.EvictionID](ids)) {
		if bytes <= 0 {
			break
		}
		b := trust.EncodeEviction(e)
		out, bytes = append(out, b), bytes-len(b)
	}
	return out
}
