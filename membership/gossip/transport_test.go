package gossip

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// lonely is a mesh in which nobody is connected.
type lonely struct{ id workflow.PartnerID }

func (l lonely) ID() workflow.PartnerID { return l.id }
func (lonely) Open(ctx context.Context, _ workflow.PartnerID, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (lonely) HandleStreams(string, func(workflow.PartnerID, net.Conn)) {}
func (lonely) Connected(workflow.PartnerID) bool                        { return false }
func (lonely) Doubt(workflow.PartnerID)                                 {}

func newLonely(t *testing.T) *transport {
	tr := newTransport(lonely{"self"}, func(workflow.PartnerID) {})
	t.Cleanup(func() {
		if err := tr.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// Writing never waits and never fails, no matter which members are away: memberlist reads,
// answers and acknowledges in one goroutine, and takes most errors for its own.
func TestWritingNeverWaits(t *testing.T) {
	tr := newLonely(t)
	tr.know("away")
	start := time.Now()
	for range 10 * queuedPackets {
		for _, to := range []memberlist.Address{
			{Name: "away"}, {Name: "unheard-of"}, {Addr: address("away").String()},
		} {
			if _, err := tr.WriteToAddress([]byte("packet"), to); err != nil {
				t.Fatalf("to %v: %v", to, err)
			}
		}
	}
	if took := time.Since(start); took > openTimeout/2 {
		t.Errorf("writing took %s", took)
	}
}

// A stream that cannot be opened is an error that memberlist knows.
func TestDialErrorIsANetworkError(t *testing.T) {
	_, err := newLonely(t).DialAddressTimeout(memberlist.Address{Name: "away"}, time.Millisecond)
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || op.Net != "tcp" {
		t.Errorf("got %#v, want a *net.OpError of dialling", err)
	}
}

// Of too many packets the oldest are dropped, and the caller may use its slice
// again.
func TestOldestPacketsAreDropped(t *testing.T) {
	o := newOutbox(lonely{"self"}, "away")
	for i := range queuedPackets + 3 {
		o.put([]byte{byte(i)})
	}
	got := o.take()
	if len(got) != queuedPackets || got[0][0] != 3 {
		t.Errorf("%d packets wait, the first is %d: want %d and 3", len(got), got[0], queuedPackets)
	}
}

// An address follows from the ID, is a private one, and belongs to nobody else.
func TestSyntheticAddress(t *testing.T) {
	ip := syntheticIP("one")
	if ip[0] != 0xfd || !isOwn("one", ip) || isOwn("two", ip) || isOwn("one", net.IP{1}) {
		t.Errorf("address of one: %s", ip)
	}
	if _, _, err := net.SplitHostPort(address("one").String()); err != nil {
		t.Error(err)
	}
}

// Whatever a partner writes, a packet is within the limits or refused.
func FuzzReadPacket(f *testing.F) {
	f.Add([]byte{3, 'a', 'b', 'c'})
	f.Add([]byte{0})
	f.Add(binary.AppendUvarint(nil, maxPacket+1))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readPacket(bufio.NewReader(bytes.NewReader(b)))
		if err == nil && (len(p) == 0 || len(p) > maxPacket || !bytes.HasSuffix(b[:bytes.Index(b, p)+len(p)], p)) {
			t.Errorf("packet of %d bytes", len(p))
		}
	})
}
