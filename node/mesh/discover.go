package mesh

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Discovery on the local network, by multicast DNS: each node answers those that
// ask for the mesh's service with its ID and addresses, and asks while a partner
// that is wanted has no connection: at once, then ever more rarely. So a mesh
// that is whole sends nothing. What it learns is a hint, beside the address
// book: a node that answers at an address has to prove its key, and to be
// admitted, as always.

const (
	// lookEvery is how often somebody may be found to be missing.
	lookEvery = 2 * time.Second
	// listenTime is how long answers are collected.
	listenTime = 1500 * time.Millisecond
	// askFirst and askLast are the pauses between questions for the same missing.
	askFirst = 5 * time.Second
	askLast  = 5 * time.Minute
	idKey    = "id="
	addrKey  = "a="
	// maxAnnounced keeps an answer within one packet.
	maxAnnounced = 12
)

// discovery is the state of the goroutine that runs it.
type discovery struct {
	mesh      *Mesh
	announced []string
	lan       *lan             // nil: it could not be opened
	missing   map[peer.ID]bool // as of the last look
	pause     time.Duration
	due       time.Time // of the next question
}

// discover runs until the mesh is closed.
func (m *Mesh) discover() {
	d := &discovery{mesh: m}
	defer d.stop()
	for m.ctx.Err() == nil {
		if m.silent.Load() {
			d.stop()
			pause(m.ctx, lookEvery)
			continue
		}
		if addrs := announceable(m.Addrs()); d.lan == nil || !slices.Equal(addrs, d.announced) {
			d.announce(addrs)
		}
		if d.askNow() {
			d.ask()
		}
		pause(m.ctx, lookEvery)
	}
}

// announceable are the addresses that mean something to others on the local network.
func announceable(addrs []string) []string {
	var all []string
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			continue
		}
		_, err = manet.ToIP(a) // names would have to be asked for elsewhere
		if err == nil && !manet.IsIPLoopback(a) && !strings.Contains(s, "/p2p-circuit") && len(all) < maxAnnounced {
			all = append(all, s)
		}
	}
	return all
}

// announce answers with these addresses from now on, and has missing partners
// asked for at once: we may be on another network.
func (d *discovery) announce(addrs []string) {
	d.stop()
	d.announced, d.missing = addrs, nil
	if len(addrs) == 0 {
		return
	}
	id := d.mesh.host.ID().String()
	text := []string{idKey + id}
	for _, s := range addrs {
		text = append(text, addrKey+s)
	}
	var err error
	if d.lan, err = openLAN(d.mesh.ctx, d.mesh.service(), id[len(id)-16:], text); err != nil {
		d.mesh.cfg.Logger.Debug("not announced on the local network", "error", err)
	}
}

func (d *discovery) stop() {
	if d.lan != nil {
		d.lan.close()
		d.lan = nil
	}
}

// service is the name that nodes of this mesh answer to.
func (m *Mesh) service() string { return "_" + m.cfg.Discovery + "._udp.local." }

// askNow reports whether to ask: a partner that has just gone missing is asked for at once.
func (d *discovery) askNow() bool {
	missing := d.mesh.missing()
	fresh := false
	for id := range missing {
		fresh = fresh || !d.missing[id]
	}
	d.missing = missing
	switch now := time.Now(); {
	case len(missing) == 0 || d.lan == nil:
		return false
	case fresh:
		d.pause = askFirst
	case now.Before(d.due):
		return false
	default:
		d.pause = min(2*d.pause, askLast)
	}
	d.due = time.Now().Add(d.pause + jitter(d.pause/4))
	return true
}

// missing are the wanted partners without a connection.
func (m *Mesh) missing() map[peer.ID]bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := map[peer.ID]bool{}
	for id, p := range m.partners {
		if p.wanted != nil && len(p.admitted) == 0 {
			all[id] = true
		}
	}
	return all
}

// ask asks once, collects what is answered and takes it in.
func (d *discovery) ask() {
	ctx, cancel := context.WithTimeout(d.mesh.ctx, listenTime)
	defer cancel()
	found := map[peer.ID][]ma.Multiaddr{}
	d.lan.ask()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case text := <-d.lan.texts:
			if id, addrs, err := readAnnouncement(text, d.mesh.limits.Addresses); err == nil && d.missing[id] {
				found[id] = addrs
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		d.mesh.seen(id, found[id])
	}
}

// readAnnouncement reads what some node, or anybody, says about a partner.
func readAnnouncement(text []string, limit int) (id peer.ID, addrs []ma.Multiaddr, err error) {
	var list []string
	for _, t := range text {
		if s, ok := strings.CutPrefix(t, idKey); ok {
			if id, err = peer.Decode(s); err != nil {
				return "", nil, fmt.Errorf("%w announcement: %w", errMalformed, err)
			}
		}
		if s, ok := strings.CutPrefix(t, addrKey); ok {
			list = append(list, s)
		}
	}
	addrs, bad := parseAddrs(announceable(list), limit)
	if id == "" || len(addrs) == 0 {
		return "", nil, fmt.Errorf("%w announcement: an ID and addresses are needed: %v", errMalformed, bad)
	}
	return id, addrs, nil
}

// seen takes in where a partner was seen on the local network. If that is new, it
// is dialled at once.
func (m *Mesh) seen(id peer.ID, addrs []ma.Multiaddr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.partners[id]
	if p == nil || p.wanted == nil || slices.EqualFunc(p.seen, addrs, ma.Multiaddr.Equal) {
		return
	}
	m.cfg.Logger.Info("seen on the local network", "partner", p.id, "addresses", texts(addrs))
	p.seen = addrs
	if len(p.admitted) == 0 {
		p.wanted.hurryLocked()
	}
}

// knownLocked are the addresses to dial a partner at: those in the book, which
// come from itself, and those that it was seen at on the local network.
func (p *partner) knownLocked() []ma.Multiaddr { return slices.Concat(p.addrs, p.seen) }
