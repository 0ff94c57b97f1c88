// Package kvtest is a store in memory for tests, which can be slow, and of which parts
// can be unreadable. It keeps no promise beyond its process.
//
// It imports node/store/kv; only tests import it.
package kvtest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// Shelf is a store in memory. Its fields may be set while nobody uses it.
type Shelf struct {
	mu    sync.Mutex
	Data  map[string][]byte
	Reads int                  // of single values, and values that were scanned
	Takes func() time.Duration // how long the next commit takes
	Blind map[string]error     // keys that cannot be read, and why
}

// New is an empty one.
func New() *Shelf {
	return &Shelf{Data: map[string][]byte{}, Takes: func() time.Duration { return 0 }, Blind: map[string]error{}}
}

// Commit makes writes at once.
func (s *Shelf) Commit(writes []kv.Write, done func(error)) { done(s.CommitWait(writes)) }

// CommitWait makes writes, all or none.
func (s *Shelf) CommitWait(writes []kv.Write) error {
	s.mu.Lock()
	d := s.Takes()
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		if s.Data[string(w.Key)] = w.Value; w.Delete {
			delete(s.Data, string(w.Key))
		}
	}
	return nil
}

// Get is the value of a key.
func (s *Shelf) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Reads++
	if err := s.Blind[string(key)]; err != nil {
		return nil, err
	}
	v, ok := s.Data[string(key)]
	if !ok {
		return nil, kv.ErrNotFound
	}
	return v, nil
}

// Scan calls fn for each key that begins so, in no order, until it returns an error.
func (s *Shelf) Scan(prefix []byte, fn func(key, value []byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(s.Data)) { // as storetest wants it of a store
		if strings.HasPrefix(k, string(prefix)) {
			s.Reads++
			if err := fn([]byte(k), s.Data[k]); err != nil {
				return err
			}
		}
	}
	return nil
}
