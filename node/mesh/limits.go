package mesh

import "time"

// Limits bound what partners and strangers can make this node spend. A zero
// field takes the preset's value.
type Limits struct {
	// Frame is the greatest length of a frame, and of a request or response, in
	// bytes.
	Frame int
	// Hello is the greatest length of credentials in bytes.
	Hello int
	// QueueFrames and QueueBytes bound what waits to be sent to one partner.
	QueueFrames int
	QueueBytes  int
	// Connections bounds all connections, Strangers those that were not admitted,
	// StrangersPerAddress the latter from one address.
	Connections         int
	Strangers           int
	StrangersPerAddress int
	// StreamsPerPeer bounds the streams that one peer may have open here.
	StreamsPerPeer int
	// Memory bounds what libp2p may reserve for buffers, in bytes.
	Memory int64
	// Requests bounds the requests that are handled at one time, RequestsPerPeer
	// those of one member; a stranger may have one.
	Requests        int
	RequestsPerPeer int
	// Partners and Addresses bound the address book: partners in it, addresses of
	// each.
	Partners  int
	Addresses int
	// Faults is how many violations (oversized, malformed or slow frames, broken
	// streams) end a connection. A peer that committed them, broken streams aside,
	// may connect again after PenaltyTime, and an evicted one as often.
	Faults      int
	PenaltyTime time.Duration

	// HelloTimeout bounds the exchange of credentials; a connection of a peer that
	// was not admitted is closed after StrangerTime.
	HelloTimeout time.Duration
	StrangerTime time.Duration
	// PingEvery is the silence after which a partner is pinged; one that then says
	// nothing for PingTimeout is cut. ProbeTimeout is the shorter wait when there
	// is reason for doubt: its addresses or ours changed.
	PingEvery    time.Duration
	PingTimeout  time.Duration
	ProbeTimeout time.Duration
	// WriteTimeout is how long a partner may refuse to take frames, FrameTime how
	// long it may take to send one that it has begun.
	WriteTimeout time.Duration
	FrameTime    time.Duration
	// RequestTimeout bounds a request, where its context does not. A long answer that is taken slowly may go on
	// (writeAnswer).
	RequestTimeout time.Duration
	// DialTimeout bounds one attempt to connect; between attempts the wait doubles
	// from BackoffMin to BackoffMax, with jitter.
	DialTimeout time.Duration
	BackoffMin  time.Duration
	BackoffMax  time.Duration
	// WatchEvery is how often the own network interfaces are looked at.
	WatchEvery time.Duration
}

// Preset is a set of limits for a kind of machine.
type Preset string

const (
	// Default suits PCs and servers on a LAN.
	Default Preset = "lan"
	// Small suits phones and small boards: little memory, dear radio time.
	Small Preset = "small"
)

var presets = map[Preset]Limits{
	Default: {
		Frame: 1 << 20, Hello: 64 << 10,
		QueueFrames: 8192, QueueBytes: 8 << 20,
		Connections: 1024, Strangers: 64, StrangersPerAddress: 16, StreamsPerPeer: 64, Memory: 512 << 20,
		Requests: 64, RequestsPerPeer: 8, Partners: 4096, Addresses: 16, Faults: 3, PenaltyTime: 30 * time.Second,
		HelloTimeout: 10 * time.Second, StrangerTime: 15 * time.Second,
		PingEvery: 5 * time.Second, PingTimeout: 5 * time.Second, ProbeTimeout: time.Second,
		WriteTimeout: time.Minute, FrameTime: time.Minute, RequestTimeout: 30 * time.Second,
		DialTimeout: 10 * time.Second, BackoffMin: 250 * time.Millisecond, BackoffMax: 15 * time.Second,
		WatchEvery: 2 * time.Second,
	},
	Small: {
		Frame: 1 << 20, Hello: 64 << 10,
		QueueFrames: 2048, QueueBytes: 2 << 20,
		Connections: 160, Strangers: 32, StrangersPerAddress: 8, StreamsPerPeer: 32, Memory: 64 << 20,
		Requests: 16, RequestsPerPeer: 4, Partners: 1024, Addresses: 16, Faults: 3, PenaltyTime: 30 * time.Second,
		HelloTimeout: 15 * time.Second, StrangerTime: 20 * time.Second,
		PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second, ProbeTimeout: 2 * time.Second,
		WriteTimeout: time.Minute, FrameTime: time.Minute, RequestTimeout: time.Minute,
		DialTimeout: 15 * time.Second, BackoffMin: 500 * time.Millisecond, BackoffMax: time.Minute,
		WatchEvery: 3 * time.Second,
	},
}

// or returns v, or def where v is zero: a field that was not set.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// withDefaults fills the zero fields of l from d.
func (l Limits) withDefaults(d Limits) Limits {
	return Limits{
		Frame: or(l.Frame, d.Frame), Hello: or(l.Hello, d.Hello),
		QueueFrames: or(l.QueueFrames, d.QueueFrames), QueueBytes: or(l.QueueBytes, d.QueueBytes),
		Connections: or(l.Connections, d.Connections), Strangers: or(l.Strangers, d.Strangers),
		StrangersPerAddress: or(l.StrangersPerAddress, d.StrangersPerAddress),
		StreamsPerPeer:      or(l.StreamsPerPeer, d.StreamsPerPeer), Memory: or(l.Memory, d.Memory),
		Requests: or(l.Requests, d.Requests), RequestsPerPeer: or(l.RequestsPerPeer, d.RequestsPerPeer),
		Partners:  or(l.Partners, d.Partners),
		Addresses: or(l.Addresses, d.Addresses), Faults: or(l.Faults, d.Faults),
		PenaltyTime:  or(l.PenaltyTime, d.PenaltyTime),
		HelloTimeout: or(l.HelloTimeout, d.HelloTimeout), StrangerTime: or(l.StrangerTime, d.StrangerTime),
		PingEvery: or(l.PingEvery, d.PingEvery), PingTimeout: or(l.PingTimeout, d.PingTimeout),
		ProbeTimeout: or(l.ProbeTimeout, d.ProbeTimeout),
		WriteTimeout: or(l.WriteTimeout, d.WriteTimeout), FrameTime: or(l.FrameTime, d.FrameTime),
		RequestTimeout: or(l.RequestTimeout, d.RequestTimeout),
		DialTimeout:    or(l.DialTimeout, d.DialTimeout),
		BackoffMin:     or(l.BackoffMin, d.BackoffMin), BackoffMax: or(l.BackoffMax, d.BackoffMax),
		WatchEvery: or(l.WatchEvery, d.WatchEvery),
	}
}
