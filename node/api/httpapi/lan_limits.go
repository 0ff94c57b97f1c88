package httpapi

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// addressOf is the address in HOST:PORT; without one it is invalid, and all who have none count as one.
func addressOf(hostport string) netip.Addr {
	at, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// places are the connections that there may be at once: so many from one address, so many in all.
type places struct {
	mu  sync.Mutex // guards what follows
	all int
	by  map[netip.Addr]int
}

func newPlaces() *places { return &places{by: map[netip.Addr]int{}} }

func (p *places) take(who netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxConnections || p.by[who] >= maxPerAddress {
		return false
	}
	p.all++
	p.by[who]++
	return true
}

func (p *places) leave(who netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.by[who]--; p.by[who] == 0 {
		delete(p.by, who)
	}
}

// limited accepts connections as long as there are places, and closes others at once.
type limited struct {
	net.Listener
	places *places
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who := addressOf(c.RemoteAddr().String())
		if l.places.take(who) {
			return &placed{Conn: c, leave: sync.OnceFunc(func() { l.places.leave(who) })}, nil
		}
		_ = c.Close() //nolint:errcheck // nothing was sent
	}
}

// placed is a connection that has a place until it is closed.
type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}

const (
	maxTries   = 10          // of links that are none, from one address
	triesSpan  = time.Minute // in which they are counted
	maxTriers  = 1024        // addresses that are counted apart; others share one count
	retryAfter = "60"        // seconds
)

// tries counts by address how often somebody came with a link that is none. No link can be guessed; this
// is so that trying costs the node little.
type tries struct {
	mu    sync.Mutex // guards what follows
	since time.Time
	by    map[netip.Addr]int
}

func newTries() *tries { return &tries{by: map[netip.Addr]int{}} }

// over reports whether somebody has tried too often.
func (t *tries) over(who netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[t.key(who)] >= maxTries
}

func (t *tries) count(who netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[t.key(who)]++
}

// key is under what an address is counted. A new span forgets all.
func (t *tries) key(who netip.Addr) netip.Addr {
	if now := time.Now(); now.Sub(t.since) >= triesSpan {
		t.since = now
		clear(t.by)
	}
	if _, known := t.by[who]; !known && len(t.by) >= maxTriers {
		return netip.Addr{}
	}
	return who
}
