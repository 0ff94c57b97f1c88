package node

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// life is which life of the store this is: how often the node was started, and the
// incarnation under which it writes facts. A new one begins whenever the store may lack
// what the node has said.
type life struct {
	*tools

	mu   sync.Mutex // guards what follows
	boot uint64
	inc  fact.Incarnation
}

const (
	metaBoot        = "boot"
	metaIncarnation = "incarnation"
)

// begin counts the boot and finds the incarnation. If reborn is not nil it begins a new
// one, with that in the same commit.
func (l *life) begin(reborn *kv.Write) error {
	b, err := l.store.Get(metaKey(metaBoot))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if len(b) == 8 {
		l.boot = binary.BigEndian.Uint64(b)
	}
	l.boot++
	inc, err := l.store.Get(metaKey(metaIncarnation))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if err != nil || reborn != nil {
		inc = l.random(len(l.inc))
	}
	copy(l.inc[:], inc)
	writes := []kv.Write{bootWrite(l.boot), {Key: metaKey(metaIncarnation), Value: inc}}
	if reborn != nil {
		writes = append(writes, *reborn)
	}
	return l.store.CommitWait(writes)
}

func bootWrite(boot uint64) kv.Write {
	return kv.Write{Key: metaKey(metaBoot), Value: binary.BigEndian.AppendUint64(nil, boot)}
}

// bootCount is how often this node was started.
func (l *life) bootCount() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.boot
}

func (l *life) incarnation() fact.Incarnation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inc
}

// again begins a new incarnation, durably, with another write in the same commit.
func (l *life) again(with kv.Write) (fact.Incarnation, error) {
	inc := fact.Incarnation(l.random(len(l.inc)))
	if err := l.store.CommitWait([]kv.Write{{Key: metaKey(metaIncarnation), Value: inc[:]}, with}); err != nil {
		return inc, err
	}
	l.mu.Lock()
	l.inc = inc
	l.mu.Unlock()
	return inc, nil
}

// outrun raises the boot counter above the one that a partner knows, durably.
func (l *life) outrun(known membership.Version) (boot uint64, err error) {
	boot = max(known.Boot, l.bootCount()) + 1
	if err := l.store.CommitWait([]kv.Write{bootWrite(boot)}); err != nil {
		return 0, err
	}
	l.mu.Lock()
	l.boot = boot
	l.mu.Unlock()
	return boot, nil
}
