package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	// multicastPort is the port of multicast DNS.
	multicastPort = 5353
	// answerEvery is the pause between answers: everybody hears each. It is shorter than those who ask listen.
	answerEvery = time.Second
	// answerSoon keeps those who hear the same question from answering at one moment.
	answerSoon = 100 * time.Millisecond
	// readAgain is the pause after packets could not be read.
	readAgain = time.Second
	// maxHeard is how many texts wait to be looked at.
	maxHeard = 64
)

// lan is the node's mouth and ear on the local networks: it answers who asks for the service, and keeps what
// others answer until it is looked at.
type lan struct {
	service  string
	question []byte
	answer   []byte
	groups   []*group
	asked    chan struct{}
	texts    chan []string
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// group is a multicast group, of IPv4 or of IPv6, as seen from all interfaces.
type group struct {
	conn    *net.UDPConn
	options groupOptions
	addr    *net.UDPAddr
	ifaces  []net.Interface

	mu sync.Mutex // one sends at a time: the interface is an option of the socket
}

// groupOptions are the options of a socket that are the same for IPv4 and IPv6.
type groupOptions interface {
	JoinGroup(*net.Interface, net.Addr) error
	SetMulticastInterface(*net.Interface) error
	SetMulticastLoopback(bool) error
}

// openLAN begins to answer with a text, and says once that it does.
func openLAN(ctx context.Context, service, instance string, text []string) (*lan, error) {
	question, err := questionPacket(service)
	if err != nil {
		return nil, err
	}
	answer, err := answerPacket(service, instance, text)
	if err != nil {
		return nil, err
	}
	groups, err := joinGroups()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lan{
		service: service, question: question, answer: answer, groups: groups,
		asked: make(chan struct{}, 1), texts: make(chan []string, maxHeard), cancel: cancel,
	}
	l.asked <- struct{}{}
	l.work.Go(func() { answerAll(ctx, l.asked, func() { l.send(l.answer) }) })
	for _, g := range groups {
		l.work.Go(func() { l.listen(ctx, g) })
	}
	return l, nil
}

// joinGroups joins the group of each kind of IP that this machine speaks; one is enough.
func joinGroups() ([]*group, error) {
	ifaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("mesh: the network interfaces are not known: %w", err)
	}
	ifaces = slices.DeleteFunc(ifaces, func(i net.Interface) bool {
		return i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0
	})
	g4, err4 := joinIPv4(ifaces)
	g6, err6 := joinIPv6(ifaces)
	switch {
	case err4 != nil && err6 != nil:
		return nil, errors.Join(err4, err6)
	case err4 != nil:
		return []*group{g6}, nil
	case err6 != nil:
		return []*group{g4}, nil
	}
	return []*group{g4, g6}, nil
}

func joinIPv4(ifaces []net.Interface) (*group, error) {
	// A multicast address has Go share the port with others on this machine.
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(224, 0, 0, 0), Port: multicastPort})
	if err != nil {
		return nil, fmt.Errorf("mesh: no multicast by IPv4: %w", err)
	}
	p := ipv4.NewPacketConn(conn)
	_ = p.SetMulticastTTL(255) // others may insist on it; we do not
	return join(conn, p, net.IPv4(224, 0, 0, 251), ifaces)
}

func joinIPv6(ifaces []net.Interface) (*group, error) {
	conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.ParseIP("ff02::"), Port: multicastPort})
	if err != nil {
		return nil, fmt.Errorf("mesh: no multicast by IPv6: %w", err)
	}
	p := ipv6.NewPacketConn(conn)
	_ = p.SetMulticastHopLimit(255) // others may insist on it; we do not
	return join(conn, p, net.ParseIP("ff02::fb"), ifaces)
}

// join joins a group on those interfaces that can.
func join(conn *net.UDPConn, o groupOptions, ip net.IP, ifaces []net.Interface) (*group, error) {
	g := &group{conn: conn, options: o, addr: &net.UDPAddr{IP: ip, Port: multicastPort}}
	errs := []error{o.SetMulticastLoopback(true)} // other nodes on this machine hear us, too
	for _, i := range ifaces {
		err := o.JoinGroup(&i, &net.UDPAddr{IP: ip})
		if err == nil {
			g.ifaces = append(g.ifaces, i)
		}
		errs = append(errs, err)
	}
	if len(g.ifaces) == 0 {
		return nil, errors.Join(fmt.Errorf("mesh: no interface takes part in %s", ip), errors.Join(errs...),
			conn.Close())
	}
	return g, nil
}

// ask asks who is there.
func (l *lan) ask() { l.send(l.question) }

// send sends a packet on all local networks. It may get lost, as any packet.
func (l *lan) send(packet []byte) {
	for _, g := range l.groups {
		g.send(packet)
	}
}

func (g *group) send(packet []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range g.ifaces {
		if g.options.SetMulticastInterface(&i) == nil {
			_, _ = g.conn.WriteTo(packet, g.addr)
		}
	}
}

// listen takes in what arrives until it is closed.
func (l *lan) listen(ctx context.Context, g *group) {
	buf := make([]byte, maxPacket)
	for ctx.Err() == nil {
		n, _, err := g.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			pause(ctx, readAgain)
			continue
		}
		h := readPacket(buf[:n], l.service)
		if h.asked {
			select {
			case l.asked <- struct{}{}:
			default: // an answer is due already
			}
		}
		for _, text := range h.texts {
			select {
			case l.texts <- text:
			default: // more than anybody waits for
			}
		}
	}
}

// answerAll answers questions: one answer for all that came since the last, soon, and no more often than
// answerEvery, however many ask.
func answerAll(ctx context.Context, asked <-chan struct{}, answer func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		pause(ctx, jitter(answerSoon))
		if ctx.Err() != nil {
			return
		}
		answer()
		pause(ctx, answerEvery)
	}
}

// close ends it and waits for that.
func (l *lan) close() {
	l.cancel()
	for _, g := range l.groups {
		_ = g.conn.Close()
	}
	l.work.Wait()
}
