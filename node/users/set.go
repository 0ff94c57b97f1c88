// Package users keeps who works here besides the partners themselves: it keeps the records
// about users equal among partners, signs users in and out at this node, and certifies
// their keys where this node may.
//
// Promises: what this node says of a user is durable before anybody hears of it, and a use
// of a sign-in token before the certificate is given out; the same key gets the same
// certificate again. A record of others counts here from the moment that it is known,
// whether it can be stored or not. One administrator, and one user, fill no more than a
// share of the room, and verifying what a partner sends is rationed. The key of a user
// leaves the node never.
//
// It has two sides: [Set] is what is known, behind a lock; [Topic] is the conversation, and
// what a user asks for. While a [Set] holds its lock it asks nobody but who is evicted. What
// it needs of the rest of a node it names in small interfaces; nothing but the node puts it
// together.
//
// It imports internal/said, membership, membership/invitation, membership/moment,
// membership/trust, membership/users, node/api, node/ration, node/records, node/store/kv,
// node/wire and workflow; node and node/worklists import it.
package users

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/records"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// Prefix is the first byte of the keys under which records are stored, by their IDs.
	Prefix = 'u'
	// PrefixTicket is that of the sign-in tokens that may still be used.
	PrefixTicket = 'y'
)

// maxAway bounds how many records are remembered that were not taken in: one message names
// them beside all that are here.
const maxAway = wire.MaxUserRecords - users.MaxAll

// Store keeps records and sign-in tokens.
type Store interface {
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Set is what a node knows of users. It may be used by several goroutines.
type Set struct {
	store Store

	mu    sync.RWMutex // guards what follows
	known *users.Set
	// digest is that of known; nil: it is to be worked out, which is dear, and asked for
	// with each frame about users.
	digest *[sha256.Size]byte
	// away are records for which there was no room: they are not asked for again.
	away map[users.RecordID]bool
	// all are the users that there were at allAt, roles those that they had; nil: they are to be worked out.
	all   []users.User
	roles []workflow.RoleName
	allAt time.Time
}

// Load reads the records that are stored.
func Load(m trust.Mesh, store Store, evicted trust.Evictions) (*Set, error) {
	s := &Set{store: store, known: users.NewSet(m, evicted), away: map[users.RecordID]bool{}}
	err := store.Scan([]byte{Prefix}, func(_, value []byte) error {
		r, err := users.DecodeRecord(value)
		if err == nil {
			_, _, err = s.known.Add(r)
		}
		if errors.Is(err, users.ErrNoRoom) {
			return nil // limits may have been wider
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the stored records about users cannot be read: %w", err)
	}
	return s, nil
}

func recordKey(id users.RecordID) []byte { return append([]byte{Prefix}, id[:]...) }

// ask gives what is known to a function that reads it.
func (s *Set) ask(fn func(*users.Set)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	fn(s.known)
}

// make counts records of this node's own from the moment that they are durable, together
// with other writes.
func (s *Set) make(records []users.Record, writes ...kv.Write) error {
	for _, r := range records {
		s.mu.RLock()
		err := s.known.Room(r)
		s.mu.RUnlock()
		if err != nil {
			return err
		}
		writes = append(writes, write(r))
	}
	if err := s.store.CommitWait(writes); err != nil {
		return err
	}
	var over []kv.Write
	for _, r := range records {
		_, replaced, err := s.add(r)
		if err != nil {
			return err
		}
		over = append(over, replaced...)
	}
	if len(over) > 0 {
		// If it stays for a crash or a full disk, it is passed over when it is read.
		_ = s.store.CommitWait(over)
	}
	return nil
}

func write(r users.Record) kv.Write {
	return kv.Write{Key: recordKey(r.ID()), Value: users.EncodeRecord(r)}
}

// add counts a record from now on, and reports whether it was new here. What it takes the
// place of is to be forgotten on the disk, too.
func (s *Set) add(r users.Record) (fresh bool, replaced []kv.Write, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, fresh, err := s.known.Add(r)
	if fresh {
		s.digest, s.all = nil, nil
	}
	if errors.Is(err, users.ErrNoRoom) && len(s.away) < maxAway {
		s.away[r.ID()] = true
	}
	if c.Again {
		replaced = []kv.Write{{Key: recordKey(c.Replaced), Delete: true}}
	}
	return fresh, replaced, err
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

// IDs name what is here, and what is not taken in.
func (s *Set) IDs() [][]byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return records.Names(slices.AppendSeq(s.known.IDs(), maps.Keys(s.away)))
}

// retry has what was not taken in be asked for again.
func (s *Set) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.away)
}

// LackedBy are the encoded records that a peer with these IDs lacks, up to so many bytes.
func (s *Set) LackedBy(ids [][]byte, bytes int) (out [][]byte) {
	s.ask(func(k *users.Set) { out = k.LackedBy(records.Named[users.RecordID](ids), bytes) })
	return out
}

// IssuedBy are the serials of what an administrator said of users, as far as it is known
// here.
func (s *Set) IssuedBy(p workflow.PartnerID) (out []trust.Serial) {
	s.ask(func(k *users.Set) { out = k.IssuedBy(p) })
	return out
}

// Namesake is the name of a user that people could take for that name; empty: there is none.
func (s *Set) Namesake(name string, at time.Time) (taken string) {
	s.ask(func(k *users.Set) {
		if u, ok := k.Namesake(name, at); ok {
			taken = u.Name
		}
	})
	return taken
}

// User is a user that is not removed.
func (s *Set) User(id users.ID, at time.Time) (u users.User, err error) {
	s.ask(func(k *users.Set) { u, err = k.User(id, at) })
	return u, err
}

// LacksByTime says of a user who has no key at a moment whether that is for the moment alone: a key of the user's is not
// valid yet, or has ended.
func (s *Set) LacksByTime(id users.ID, at time.Time) (notYet, ended bool) {
	s.ask(func(k *users.Set) { notYet, ended = k.LacksByTime(id, at) })
	return notYet, ended
}

// allFor is how long it is not worked out again who the users are, which is dear and asked for
// with each instance of a list. An eviction may take some away meanwhile.
const allFor = time.Second

// Users are those who were not removed, in an order of their own. They are not to be changed.
func (s *Set) Users(at time.Time) []users.User {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lately(at)
}

// RolesOfUsers are the roles that they have, sorted.
func (s *Set) RolesOfUsers(at time.Time) []workflow.RoleName {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lately(at)
	return s.roles
}

func (s *Set) lately(at time.Time) []users.User {
	if age := at.Sub(s.allAt); s.all != nil && age >= 0 && age < allFor {
		return s.all
	}
	s.all, s.roles, s.allAt = append([]users.User{}, s.known.Users(at)...), []workflow.RoleName{}, at
	for _, u := range s.all {
		s.roles = append(s.roles, u.Roles...)
	}
	slices.Sort(s.roles)
	s.roles = slices.Compact(s.roles)
	return s.all
}

// Called is the name of a user, removed or not; empty: it is not known.
func (s *Set) Called(id users.ID) (name string) {
	s.ask(func(k *users.Set) { name = k.Named(id) })
	return name
}

// users are those that are not removed.
func (s *Set) users(at time.Time) (out []users.User) {
	s.ask(func(k *users.Set) { out = k.Users(at) })
	return out
}

// resolve finds the user that a person names, by a name or a whole ID.
func (s *Set) resolve(ref string, at time.Time) (u users.User, err error) {
	s.ask(func(k *users.Set) { u, err = k.Resolve(ref, at) })
	return u, err
}
