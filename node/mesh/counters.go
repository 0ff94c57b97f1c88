package mesh

import "sync/atomic"

// Counters are totals since the mesh was made.
type Counters struct {
	FramesIn, FramesOut uint64
	// BytesIn and BytesOut count what frames are on their streams, packed, without what
	// transports add.
	BytesIn, BytesOut uint64
	// Dials and DialsFailed count attempts to connect to wanted partners.
	Dials, DialsFailed uint64
	// Refused counts, by reason, what was not accepted; see the Reason constants.
	Refused map[Reason]uint64
}

// Reason says why something was refused, dropped or cut.
type Reason string

// The reasons.
const (
	// ReasonNotAdmitted: a hello that Admit did not accept.
	ReasonNotAdmitted Reason = "not admitted"
	// ReasonNoHello: a connection without a complete hello in time, or a stream
	// before it.
	ReasonNoHello Reason = "no hello"
	// ReasonStranger: a stream of a peer that was not admitted.
	ReasonStranger Reason = "stranger"
	// ReasonTooMany: more strangers, streams or requests than the limits permit.
	ReasonTooMany Reason = "too many"
	// ReasonMalformed: an oversized or malformed frame, hello or ping.
	ReasonMalformed Reason = "malformed"
	// ReasonFaults: a connection cut because of repeated faults.
	ReasonFaults Reason = "repeated faults"
	// ReasonSilent: a connection cut because its partner was silent.
	ReasonSilent Reason = "silent"
	// ReasonStale: a connection to a former process of a partner.
	ReasonStale Reason = "stale"
	// ReasonQueueFull: a frame that Send did not take.
	ReasonQueueFull Reason = "queue full"
	// ReasonSlow: a frame that did not come to its end.
	ReasonSlow Reason = "slow"
	// ReasonShut: a connection of somebody evicted, or distrusted (Mesh.Distrust).
	ReasonShut Reason = "shut out"
	// ReasonBookFull: addresses that did not fit in the address book.
	ReasonBookFull Reason = "address book full"
)

var reasons = []Reason{ReasonNotAdmitted, ReasonNoHello, ReasonStranger, ReasonTooMany, ReasonMalformed,
	ReasonFaults, ReasonSilent, ReasonStale, ReasonQueueFull, ReasonSlow, ReasonShut, ReasonBookFull}

// traffic counts frames and their bytes.
type traffic struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
}

func (t *traffic) received(bytes int) {
	t.framesIn.Add(1)
	t.bytesIn.Add(uint64(bytes))
}

func (t *traffic) sent(frames, bytes int) {
	t.framesOut.Add(uint64(frames))
	t.bytesOut.Add(uint64(bytes))
}

type counters struct {
	traffic
	dials, dialsFailed atomic.Uint64
	refused            map[Reason]*atomic.Uint64 // never changed after making
}

func newCounters() *counters {
	c := &counters{refused: make(map[Reason]*atomic.Uint64, len(reasons))}
	for _, r := range reasons {
		c.refused[r] = new(atomic.Uint64)
	}
	return c
}

func (c *counters) refuse(r Reason) { c.refused[r].Add(1) }

func (c *counters) read() Counters {
	out := Counters{
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Dials: c.dials.Load(), DialsFailed: c.dialsFailed.Load(),
		Refused: make(map[Reason]uint64, len(c.refused)),
	}
	for r, n := range c.refused {
		out.Refused[r] = n.Load()
	}
	return out
}
