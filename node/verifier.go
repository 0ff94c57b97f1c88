package node

import (
	"sync"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
)

// verifier checks signatures of facts for all links, and remembers those that were
// right: what an author signs, others bring as well.
type verifier struct {
	mu    sync.Mutex // guards known
	known map[fact.Signature]struct{}
}

// maxVerified bounds what a verifier remembers, which is all forgotten then: it costs no
// more than to check again.
const maxVerified = 4096

// Verify checks a signature. Its error wraps fact.ErrForged.
func (v *verifier) Verify(s fact.Signature) error {
	v.mu.Lock()
	_, known := v.known[s]
	v.mu.Unlock()
	if known {
		return nil
	}
	if err := s.Verify(); err != nil { // without the lock: others need not wait
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxVerified {
		v.known = map[fact.Signature]struct{}{}
	}
	v.known[s] = struct{}{}
	return nil
}
