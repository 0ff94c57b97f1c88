package mesh

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Handler is told what comes from partners. Its methods for one partner are
// called one at a time; each must return in the end, also while Close waits.
type Handler interface {
	// OnFrame gets a frame, which is the handler's until it returns. While it blocks,
	// no more is read from that partner.
	OnFrame(peer workflow.PartnerID, frame []byte)
	// OnUp says that Send to the partner works from now on.
	OnUp(peer workflow.PartnerID)
	// OnDown says that it does not any more, and that the last frames may be lost.
	// OnUp may follow at once, over another connection.
	OnDown(peer workflow.PartnerID)
}

// Config is what a Mesh needs. Key, Admit and Handler are required.
type Config struct {
	// Key is the node's identity.
	Key ed25519.PrivateKey
	// Listen are multiaddrs to listen on, QUIC (/udp/…/quic-v1) and TCP; port 0
	// lets the system choose. Default: QUIC and TCP on all interfaces.
	Listen []string
	// Prefer are addresses that the node had before: where Listen leaves the port
	// to the system, the same one is taken again if it is free.
	Prefer []string
	// Boot is a counter that grows with each start of this node.
	Boot uint64
	// Hello returns our credentials for a new connection, at most Limits.Hello
	// bytes; nil means none. It may be called from many goroutines.
	Hello func() []byte
	// Admit decides whether a peer, which has proved to hold its key, is a member:
	// nil lets it in, an error keeps it out and is told to it (up to 256 bytes).
	// It may be called from many goroutines.
	Admit func(peer workflow.PartnerID, hello []byte, boot uint64) error
	// Evicted, if set, tells that a key is not admitted whatever it shows, so that
	// its connections are refused before there is a hello.
	Evicted func(peer workflow.PartnerID) bool
	// Prepare, if set, is called before anybody can be admitted: it may register
	// further protocols (HandleStreams, Members).
	Prepare func(*Mesh) error
	// Handler gets frames and connection changes.
	Handler Handler
	// OnAddrs, if set, is called when the node's own addresses have changed.
	OnAddrs func(addrs []string)
	// Plain has nothing that is sent packed (pack.go).
	Plain bool
	// Silent has the mesh begin in silence: nobody is talked to until Silence(false).
	Silent bool
	// Relay says how to go round what keeps partners from connecting directly.
	Relay Relay
	// Discovery is the name, at most 15 bytes, under which nodes of this mesh find
	// each other on the local network by multicast DNS; empty: they do not.
	Discovery string
	// Logger may be nil.
	Logger *slog.Logger
	Preset Preset
	Limits Limits
}

var defaultListen = []string{
	"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0",
	"/ip6/::/udp/0/quic-v1", "/ip6/::/tcp/0",
}

// complete checks c and fills in defaults.
func (c Config) complete() (Config, error) {
	c.Preset = or(c.Preset, Default)
	defaults, known := presets[c.Preset]
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return c, fmt.Errorf("mesh: the key has %d bytes, an Ed25519 key has %d", len(c.Key), ed25519.PrivateKeySize)
	case c.Admit == nil:
		return c, errors.New("mesh: Admit is not set: nothing would decide who is a member")
	case c.Handler == nil:
		return c, errors.New("mesh: Handler is not set: frames would go nowhere")
	case !known:
		return c, fmt.Errorf("mesh: unknown preset %q: want %q or %q", c.Preset, Default, Small)
	}
	if c.Hello == nil {
		c.Hello = func() []byte { return nil }
	}
	if c.Evicted == nil {
		c.Evicted = func(workflow.PartnerID) bool { return false }
	}
	if c.Prepare == nil {
		c.Prepare = func(*Mesh) error { return nil }
	}
	if c.OnAddrs == nil {
		c.OnAddrs = func([]string) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if len(c.Listen) == 0 {
		c.Listen = defaultListen
	}
	c.Limits = c.Limits.withDefaults(defaults)
	return c, nil
}
