package mesh

import (
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// interfaceAddrs are the addresses of this machine; a variable for tests.
var interfaceAddrs = manet.InterfaceMultiaddrs

// Addrs are the addresses under which this node can be reached, as far as it
// knows: what it listens on, with "all interfaces" resolved as of now (libp2p
// remembers interfaces for a minute). Loopback is there only if listened on
// explicitly, or if there is nothing else.
func (m *Mesh) Addrs() []string {
	ifaces, err := interfaceAddrs()
	if err != nil { // Android may forbid to ask: what libp2p knows must do
		return texts(m.host.Addrs())
	}
	return texts(append(resolve(m.host.Network().ListenAddresses(), ifaces), m.relayAddrs()...))
}

// relayAddrs are the addresses by which relays lead here: those that the
// configuration names, as long as we are connected with them. libp2p itself would
// tell of relays with public addresses only, and a team's relay may have none.
func (m *Mesh) relayAddrs() []ma.Multiaddr {
	var all []ma.Multiaddr
	for _, via := range m.relays {
		if _, id := peer.SplitAddr(via); m.memberLink(id) != nil {
			all = append(all, via.Encapsulate(circuit))
		}
	}
	return all
}

var circuit = ma.StringCast("/p2p-circuit")

// resolve replaces unspecified addresses by those of the interfaces.
func resolve(listen, ifaces []ma.Multiaddr) []ma.Multiaddr {
	usable := slices.DeleteFunc(slices.Clone(ifaces), func(a ma.Multiaddr) bool {
		return manet.IsIPLoopback(a) || manet.IsIP6LinkLocal(a)
	})
	if len(usable) == 0 {
		usable = ifaces
	}
	var all []ma.Multiaddr
	for _, a := range listen {
		if first, _ := ma.SplitFirst(a); first.Protocol().Code == ma.P_CIRCUIT {
			continue // that we listen by relays; relayAddrs says by which
		}
		if !manet.IsIPUnspecified(a) {
			all = append(all, a)
			continue
		}
		resolved, err := manet.ResolveUnspecifiedAddress(a, usable)
		if err == nil { // an error: no interface speaks this version of IP
			all = append(all, resolved...)
		}
	}
	return all
}

// texts are the text forms, sorted, each once.
func texts(addrs []ma.Multiaddr) []string {
	all := make([]string, 0, len(addrs))
	for _, a := range addrs {
		all = append(all, a.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SetAddrs replaces what the address book says of p; no addresses forget p. If
// they changed and p is wanted, it is dialled at once; a connection that exists is
// made to prove that it is alive. Addresses that cannot be understood are left
// out and reported; more than Limits.Addresses are cut off.
func (m *Mesh) SetAddrs(p workflow.PartnerID, addrs []string) error {
	id, err := peerID(p)
	if err != nil {
		return err
	}
	parsed, bad := parseAddrs(addrs, m.limits.Addresses)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || id == m.host.ID() {
		return bad
	}
	to := m.partnerLocked(id)
	if len(parsed) > 0 && len(to.addrs) == 0 && m.bookedLocked() >= m.limits.Partners {
		m.forgetLocked(to)
		m.counters.refuse(ReasonBookFull)
		return fmt.Errorf("mesh: the address book is full: it holds %d partners", m.limits.Partners)
	}
	if slices.EqualFunc(to.addrs, parsed, ma.Multiaddr.Equal) {
		m.forgetLocked(to)
		return bad
	}
	to.addrs = parsed
	m.renewLocked(to)
	m.forgetLocked(to)
	return bad
}

// bookedLocked counts the partners in the address book.
func (m *Mesh) bookedLocked() int {
	n := 0
	for _, p := range m.partners {
		if len(p.addrs) > 0 {
			n++
		}
	}
	return n
}

// renewLocked acts on changed addresses, the partner's or ours.
func (m *Mesh) renewLocked(p *partner) {
	if p.wanted == nil {
		return
	}
	for _, l := range p.admitted {
		l.doubt()
	}
	p.wanted.hurryLocked()
}

// parseAddrs parses and sorts at most limit addresses.
func parseAddrs(addrs []string, limit int) (parsed []ma.Multiaddr, bad error) {
	for _, s := range slices.Compact(slices.Sorted(slices.Values(addrs))) {
		a, err := ma.NewMultiaddr(s)
		switch {
		case err != nil:
			bad = fmt.Errorf("mesh: %q is not a multiaddr (want e.g. /ip4/192.0.2.7/udp/4001/quic-v1): %w", s, err)
		case len(parsed) < limit:
			parsed = append(parsed, a)
		}
	}
	return parsed, bad
}

// watchAddrs notices when this node's own addresses change, tells those that
// want to know, and makes connections prove themselves or come again.
func (m *Mesh) watchAddrs() {
	ticker := time.NewTicker(m.limits.WatchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
		}
		now := m.Addrs()
		if slices.Equal(now, m.own) {
			continue
		}
		m.cfg.Logger.Info("own addresses changed", "from", m.own, "to", now)
		m.own = now
		m.cfg.OnAddrs(slices.Clone(now))
		m.renewAll()
	}
}

func (m *Mesh) renewAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.partners {
		m.renewLocked(p)
	}
}
