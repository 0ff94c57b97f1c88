package mesh

import (
	"errors"
	"sync"
)

// errSilent says why nobody is dialled.
var errSilent = errors.New("mesh: this node talks to nobody until it is told to")

// ends is closed when all conversations are to end in good order.
func (m *Mesh) ends() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.leaving
}

// Silence begins or ends a silence, in which this node talks to nobody: it connects with
// no other node, lets none in, and neither looks for partners on the local network nor
// answers those that look. What is queued is sent first, as with Close. When it returns,
// no frame of a partner comes any more; with false, wanted partners are dialled at once.
func (m *Mesh) Silence(on bool) {
	m.hushing.Lock()
	defer m.hushing.Unlock()
	m.mu.Lock()
	if m.closed || m.silent.Load() == on {
		m.mu.Unlock()
		return
	}
	m.silent.Store(on)
	if !on {
		for _, p := range m.partners {
			if p.wanted != nil {
				p.wanted.hurryLocked()
			}
		}
		m.mu.Unlock()
		return
	}
	close(m.leaving)
	m.mu.Unlock()
	m.awaitFarewells()
	for _, l := range m.allLinks() {
		l.cut()
	}
	var closing sync.WaitGroup
	for _, c := range m.host.Network().Conns() { // also those that libp2p has for itself
		closing.Go(func() { _ = c.Close() }) // it is gone either way
	}
	closing.Wait()
	m.mu.Lock()
	if !m.closed {
		m.leaving = make(chan struct{})
	}
	m.mu.Unlock()
}
