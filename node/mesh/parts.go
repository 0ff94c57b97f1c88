package mesh

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	libp2pevent "github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	relayed "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	quicgo "github.com/quic-go/quic-go"
)

// The libp2p host is put together here from its parts, and not by libp2p.New: that links every transport that
// libp2p has (WebRTC, WebTransport, WebSocket) and a framework that wires them, all for nothing.

// parts is a libp2p host, and what runs beside it.
type parts struct {
	*basichost.BasicHost
	net    *swarm.Swarm
	beside []io.Closer // in the order in which it began
	closed sync.Once
}

// Close ends what began last first, then the host and what it was given. Once is enough: a second time does nothing.
func (p *parts) Close() (err error) {
	p.closed.Do(func() { err = p.end() })
	return err
}

func (p *parts) end() error {
	var errs []error
	for _, c := range slices.Backward(p.beside) {
		errs = append(errs, c.Close())
	}
	if p.BasicHost != nil {
		errs = append(errs, p.BasicHost.Close())
	}
	return errors.Join(errs...)
}

// managers are what a libp2p host asks before it does something.
type managers struct {
	resources   network.ResourceManager
	connections connmgr.ConnManager
	gate        connmgr.ConnectionGater
}

// putTogether makes a libp2p host that listens nowhere yet.
func putTogether(key crypto.PrivKey, m managers, r relaying) (p *parts, err error) {
	p = &parts{}
	defer func() {
		if err != nil {
			p, err = nil, errors.Join(err, p.Close())
		}
	}()
	bus := eventbus.NewBus()
	sockets, err := quicSockets(key, m.resources)
	if err != nil {
		return p, fmt.Errorf("QUIC: %w", err)
	}
	p.beside = append(p.beside, sockets)
	if p.net, err = newSwarm(key, m, bus); err != nil {
		return p, err
	}
	p.beside = append(p.beside, p.net)
	secure, err := addTransports(p.net, key, m, sockets)
	if err != nil {
		return p, err
	}
	observed, err := observedaddrs.NewManager(bus, p.net)
	if err != nil {
		return p, fmt.Errorf("observed addresses: %w", err)
	}
	observed.Start(p.net)
	p.beside = append(p.beside, observed)
	p.BasicHost, err = basichost.NewHost(p.net, &basichost.HostOpts{
		EventBus: bus, ConnManager: m.connections, UserAgent: userAgent, ObservedAddrsManager: observed,
		EnableRelayService: r.serve != nil, RelayServiceOpts: r.serve,
	})
	if err != nil {
		return p, err
	}
	return p, p.begin(secure, r)
}

// begin starts a host, and its part in relaying.
func (p *parts) begin(secure transport.Upgrader, r relaying) error {
	if r.dial {
		if err := relayed.AddTransport(p.BasicHost, secure); err != nil {
			return fmt.Errorf("relays: %w", err)
		}
	}
	if r.via != nil {
		finder, err := autorelay.NewAutoRelay(p.BasicHost, r.via...)
		if err != nil {
			return fmt.Errorf("relays: %w", err)
		}
		finder.Start()
		p.beside = append(p.beside, finder)
	}
	p.BasicHost.Start()
	public := autonat.UsingAddresses(p.publicAddrs)
	reachable, err := autonat.New(p.BasicHost, append(r.reachable, public)...)
	if err != nil {
		return fmt.Errorf("reachability: %w", err)
	}
	p.BasicHost.SetAutoNat(reachable)
	return nil
}

// publicAddrs are the addresses at which others see this host on public networks.
func (p *parts) publicAddrs() []ma.Multiaddr {
	return slices.DeleteFunc(slices.Clone(p.AllAddrs()), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
}

// forgive has a peer be dialled at once: libp2p would wait longer after each time in vain, and when to dial again is
// decided here.
func (p *parts) forgive(id peer.ID) { p.net.Backoff().Clear(id) }

// newSwarm makes the network of a host: its connections. The black-hole detectors are off: they would stop UDP or
// IPv6 for a node that dials partners that are away.
func newSwarm(key crypto.PrivKey, m managers, bus libp2pevent.Bus) (*swarm.Swarm, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	book, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, fmt.Errorf("address book: %w", err)
	}
	if err := errors.Join(book.AddPrivKey(id, key), book.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, errors.Join(fmt.Errorf("address book: %w", err), book.Close())
	}
	net, err := swarm.NewSwarm(id, book, bus, swarm.WithResourceManager(m.resources), swarm.WithConnectionGater(m.gate),
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, errors.Join(err, book.Close())
	}
	return net, nil
}

// addTransports has connections be made by QUIC and by TCP, and returns what secures those that are not secure by
// themselves.
func addTransports(
	net *swarm.Swarm, key crypto.PrivKey, m managers, sockets *quicreuse.ConnManager,
) (transport.Upgrader, error) {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	byNoise, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	byTLS, err := tls.New(tls.ID, key, muxers)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	secure, err := upgrader.New([]sec.SecureTransport{byNoise, byTLS}, muxers, nil, m.resources, m.gate)
	if err != nil {
		return nil, err
	}
	overQUIC, err := quic.NewTransport(key, sockets, nil, m.gate, m.resources)
	if err != nil {
		return nil, fmt.Errorf("QUIC: %w", err)
	}
	overTCP, err := tcp.NewTCPTransport(secure, m.resources, nil)
	if err != nil {
		return nil, fmt.Errorf("TCP: %w", err)
	}
	return secure, errors.Join(net.AddTransport(overQUIC), net.AddTransport(overTCP))
}

// quicSockets makes what shares UDP sockets among connections by QUIC. Each that comes in is counted before its
// handshake, and has to show that it is where it says once there are many.
func quicSockets(key crypto.PrivKey, resources network.ResourceManager) (*quicreuse.ConnManager, error) {
	secret, err := key.Raw()
	if err != nil {
		return nil, err
	}
	// A connection to a process that is gone is ended at once, since the next one has the same keys.
	reset, err := hkdf.Key(sha256.New, secret, nil, "mutirao quic stateless reset", len(quicgo.StatelessResetKey{}))
	if err != nil {
		return nil, err
	}
	token, err := hkdf.Key(sha256.New, secret, nil, "mutirao quic address token", len(quicgo.TokenGeneratorKey{}))
	if err != nil {
		return nil, err
	}
	counted := func(ctx context.Context, from *quicgo.ClientInfo) (context.Context, error) {
		addr, err := quicreuse.ToQuicMultiaddr(from.RemoteAddr, quicgo.Version1)
		if err != nil {
			return nil, err
		}
		scope, err := resources.OpenConnection(network.DirInbound, false, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, scope.Done)
		return network.WithConnManagementScope(ctx, scope), nil
	}
	return quicreuse.NewConnManager(quicgo.StatelessResetKey(reset), quicgo.TokenGeneratorKey(token),
		quicreuse.ConnContext(counted), quicreuse.VerifySourceAddress(resources.VerifySourceAddress))
}
