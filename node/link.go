package node

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

// antiEntropy is how often peers compare what they have.
const antiEntropy = 30 * time.Second

// link is this node's side of the conversation with one partner.
type link struct {
	contact contact
	// reading has the partner's facts verified one bundle at a time, however many
	// connections it has.
	reading sync.Mutex

	mu sync.Mutex // guards what follows, as frames may come over two connections
	// waiting is how many bytes of the partner's facts wait for their shards, freed is
	// closed when that becomes less; nil: nobody waits for it.
	waiting int
	freed   chan struct{}
	// ended is how the digests of ended instances differed last (ended.go); nil: they did not.
	ended *differing
}

// maxWaiting bounds how many bytes of one partner's facts wait for their shards; what
// comes beyond that waits on the connection.
const maxWaiting = 2 << 20

// read verifies facts of the partner.
func (l *link) read(f *wire.Facts, v wire.Verifier) ([]fact.Received, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	return wire.DecodeFacts(f, v)
}

// queue waits until there is room for so many bytes of a partner's facts, and takes it.
// False: the node stops.
func (l *link) queue(size int, d driver) bool {
	for {
		l.mu.Lock()
		if !d.waits() || l.waiting == 0 || l.waiting+size <= maxWaiting {
			l.waiting += size
			l.mu.Unlock()
			return true
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-d.stopping():
			return false
		}
	}
}

// done gives the room back.
func (l *link) done(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= size
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// contact is when the last connection with a partner began, and when it last said
// anything over it (Boot, in nanoseconds).
type contact struct{ since, heard atomic.Int64 }

func (c *contact) begin(at time.Duration) {
	c.since.Store(int64(at))
	c.heard.Store(int64(at))
}

func (c *contact) hear(at time.Duration) { c.heard.Store(int64(at)) }

// differing are two digests of the ended instances shared with a partner, which differ.
type differing struct {
	ours, its string
	due       time.Duration // Awake from which on the instances are compared again
	pause     time.Duration // from comparing them until then
}

// The pause after ended instances were compared, doubled each time while both digests stay
// as they are.
const (
	firstEndedPause = antiEntropy
	maxEndedPause   = time.Hour
)

// differs reports whether digests differ and it is time to compare what they are of.
func (l *link) differs(ours, its []byte, now time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Equal(ours, its) {
		l.ended = nil
		return false
	}
	d := l.ended
	if d == nil || d.ours != string(ours) || d.its != string(its) {
		l.ended = &differing{string(ours), string(its), now + firstEndedPause, firstEndedPause}
		return true
	}
	if now < d.due {
		return false
	}
	d.pause = min(2*d.pause, maxEndedPause)
	d.due = now + d.pause
	return true
}

// compareSoon has no pause kept, as not all could be compared.
func (l *link) compareSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = nil
}

// driver says whether somebody acts while one waits, and until when.
type driver interface {
	waits() bool
	stopping() <-chan struct{}
}
