// Package configs is a node's own configuration: the file config.yaml in the
// node's folder, its defaults and presets, and the check of every value.
//
// Promises: a file that says nothing is a working configuration; every mistake
// is reported at once, each with what it is, its value and what is allowed;
// what an application name runs is decided here and nowhere else, so that no
// partner can make this device run anything.
//
// It imports workflow; many packages import it.
package configs

import (
	"runtime"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Config is a node's configuration. Default fills every field; the file
// overrides what it names.
type Config struct {
	// Preset names the defaults that the file starts from; empty: lan.
	Preset Preset `yaml:"preset,omitempty"`

	// Listen are the multiaddresses at which partners reach this node, over
	// QUIC (/udp/PORT/quic-v1) or TCP. Port 0: any free port.
	Listen []string `yaml:"listen,omitempty"`

	// Relays are members that relay for this node where partners cannot connect
	// to it: multiaddresses that end in /p2p/ID.
	Relays []string `yaml:"relays,omitempty"`
	// Relay has this node relay for members; it should be reachable from
	// wherever they are.
	Relay bool `yaml:"relay,omitempty"`
	// HolePunching has nodes that met by a relay try to connect directly.
	HolePunching bool `yaml:"hole-punching,omitempty"`

	// Discovery has the node find partners whose addresses changed on the local
	// network, by multicast DNS. Others there see its ID, its addresses and a
	// part of the mesh's fingerprint, and no more.
	Discovery bool `yaml:"discovery,omitempty"`

	// Compression has what this node sends to partners packed: a third of the bytes. Somebody on the line who
	// may also have text of its own sent there can guess by lengths what is sent beside it (docs/security.md).
	Compression bool `yaml:"compression,omitempty"`

	// API is where the local API and the web page are served: HOST:PORT on
	// loopback (port 0: the one of its first start, 7878 if that was free, else the one it had instead before,
	// else any free port), "unix:PATH"
	// (relative to the node's folder), or another address together with TLS.
	API string `yaml:"api,omitempty"`
	// TLS is the certificate of the API; needed off loopback only.
	TLS TLS `yaml:"tls,omitempty"`

	// ConnectionTime is how long a partner may go without being validated
	// before it counts as expired and its unfinished work as failed.
	ConnectionTime time.Duration `yaml:"connection-time,omitempty"`

	// Candidate makes this node stand for election of its own accord whenever
	// nobody coordinates. Else it stands only when a person asks it to.
	Candidate bool `yaml:"candidate,omitempty"`

	// Learning has the node learn from ended instances how suited partners are, and
	// weigh that when it gives work out.
	Learning bool `yaml:"learning,omitempty"`

	// Store sizes the embedded store.
	Store StoreSize `yaml:"store,omitempty"`
	// Shards is how many goroutines own instances; one per processor is best.
	Shards int `yaml:"shards,omitempty"`
	// Parallel is how many configured applications run at once. Tasks beyond
	// it wait their turn; sleeping takes no turn.
	Parallel int `yaml:"parallel,omitempty"`

	// Capabilities are what this partner can do or has, beside its
	// applications; a task's or partition's needs are matched against both.
	Capabilities []workflow.Capability `yaml:"capabilities,omitempty"`
	// Applications say what each application name runs here.
	Applications map[workflow.ApplicationName]Application `yaml:"applications,omitempty"`
	// Databases say where each database name leads from here.
	Databases map[workflow.DatabaseName]Database `yaml:"databases,omitempty"`

	// LockAbove is how full this device's battery has to be, in percent, to lock items: at so much or less
	// nothing is, unless it runs on the mains. 0: whatever it has.
	LockAbove int `yaml:"lock-above,omitempty"`

	// Limits keep the node within its device's means.
	Limits Limits `yaml:"limits,omitempty"`
}

// TLS names a certificate and its key, both PEM files; paths may be relative to
// the node's folder.
type TLS struct {
	Certificate string `yaml:"certificate,omitempty"`
	Key         string `yaml:"key,omitempty"`
}

// The bounds of ConnectionTime: partners take no other (membership.Record).
const (
	MinConnectionTime = 3 * time.Second
	MaxConnectionTime = 7 * day
)

// StoreSize says how much memory and disk the store takes for itself.
type StoreSize string

// The sizes of the store.
const (
	StoreDefault StoreSize = "default"
	StoreSmall   StoreSize = "small" // phones and single-board computers: less memory, less throughput
)

// Limits bound what others can make this node hold. Reaching one is refused
// with a reason, or held back at the sender; nothing is dropped silently. Of
// instances, facts and bytes one member may fill a quarter of a limit, and all
// others together seven eighths: the rest is for this node's own user.
type Limits struct {
	// Instances is how many unfinished instances the node takes part in.
	Instances int `yaml:"instances,omitempty"`
	// Ended is how many ended instances the node keeps with all their facts: of
	// more, the oldest are replaced by their summaries before their time.
	Ended int `yaml:"ended,omitempty"`
	// Keep is how long after its end an instance is kept with all its facts.
	Keep time.Duration `yaml:"keep,omitempty"`
	// Facts is how many facts one instance has, Bytes how many bytes of them.
	Facts int   `yaml:"facts,omitempty"`
	Bytes int64 `yaml:"bytes,omitempty"`
	// Memory is how many bytes of facts are in memory: those of all instances that
	// have not ended, or that some participant may not have whole. A fact counts
	// with what the node keeps beside it. Disk is the same for all instances.
	Memory int64 `yaml:"memory,omitempty"`
	Disk   int64 `yaml:"disk,omitempty"`
	// Workflows is how many definitions the node lists.
	Workflows int `yaml:"workflows,omitempty"`
	// Files is how many bytes of files the node keeps.
	Files int64 `yaml:"files,omitempty"`
	// Connections is how many partners are connected at once.
	Connections int `yaml:"connections,omitempty"`
}

// Preset names a set of defaults.
type Preset string

// The presets.
const (
	LAN    Preset = "lan"    // partners on good links: a lost one is noticed in seconds
	Mobile Preset = "mobile" // radios and batteries: few heartbeats, small store
	Local  Preset = "local"  // several nodes on one machine: trials and tests
)

// Default returns the defaults of a preset; an unknown or empty one gives LAN,
// with the name kept for Validate to report.
func Default(p Preset) Config {
	c := Config{
		Preset: p,
		Listen: []string{
			"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0",
			"/ip6/::/udp/0/quic-v1", "/ip6/::/tcp/0",
		},
		HolePunching:   true,
		Discovery:      true,
		Compression:    true,
		API:            "127.0.0.1:0",
		ConnectionTime: 15 * time.Second,
		Learning:       true,
		Store:          StoreDefault,
		Shards:         runtime.GOMAXPROCS(0),
		Parallel:       8,
		Limits: Limits{
			Instances: 10_000, Ended: 100_000, Keep: 30 * day, Facts: 200_000, Bytes: 64 << 20, Memory: 256 << 20,
			Disk:      4 << 30,
			Workflows: 2_000, Files: 16 << 30, Connections: 256,
		},
	}
	switch p {
	case "":
		c.Preset = LAN
	case Mobile:
		c.Discovery = false // multicast wakes every device on the network
		c.ConnectionTime = 5 * time.Minute
		c.Store = StoreSmall
		c.Parallel = 2
		c.Limits = Limits{
			Instances: 1_000, Ended: 5_000, Keep: 30 * day, Facts: 20_000, Bytes: 4 << 20, Memory: 16 << 20,
			Disk:      128 << 20,
			Workflows: 500, Files: 1 << 30, Connections: 64,
		}
	case Local:
		c.Discovery = false
		c.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}
		c.ConnectionTime = 5 * time.Second
		c.Store = StoreSmall
	}
	return c
}
