package gossip

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// listener is a memberlist in which nobody takes part, over our transport: what it
// is told by members is decoded by it.
func listener(f *testing.F) *Gossip {
	f.Helper()
	g := &Gossip{
		cfg:     Config{Mesh: lonely{"self"}, Timing: LAN(), Logger: slog.New(slog.DiscardHandler)},
		members: map[workflow.PartnerID]*member{"peer": {}}, verdicts: make(chan verdict, verdictsWaiting),
		wake: make(chan struct{}, 1),
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if err := g.startMemberlist(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		g.cancel()
		if err := g.list.Shutdown(); err != nil {
			f.Error(err)
		}
	})
	return g
}

// said are packets as memberlist makes them: types and bodies in msgpack.
var said = [][]byte{
	{}, {0}, {0, 0x82, 0xa5, 'S', 'e', 'q', 'N', 'o', 1, 0xa4, 'N', 'o', 'd', 'e', 0xa4, 's', 'e', 'l', 'f'}, // ping
	{3, 0x83, 0xab, 'I', 'n', 'c', 'a', 'r', 'n', 'a', 't', 'i', 'o', 'n', 1, 0xa4, 'N', 'o', 'd', 'e', 0xa4, 's', 'e',
		'l', 'f', 0xa4, 'F', 'r', 'o', 'm', 0xa4, 'p', 'e', 'e', 'r'}, // suspect
	{4, 0x83, 0xab, 'I', 'n', 'c', 'a', 'r', 'n', 'a', 't', 'i', 'o', 'n', 1, 0xa4, 'N', 'o', 'd', 'e', 0xa4, 'p', 'e',
		'e', 'r', 0xa3, 'V', 's', 'n', 0x91, 1}, // alive, versions cut short
	{6, 0x81, 0xa5, 'N', 'o', 'd', 'e', 's', 0xff}, // state
	{7, 2, 0, 1, 0, 1, 0, 0},                       // compound
	{8, 'u'},                                       // user
	{9, 0x82, 0xa4, 'A', 'l', 'g', 'o', 0, 0xa3, 'B', 'u', 'f', 0xa1, 0}, // compressed
	{12, 0, 0, 0, 0, 0},                   // checksummed
	{244, 1, 'x', 0, 0x80},                // labelled
	{10, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}, // encrypted
}

// Whatever a member puts in a packet, memberlist goes on.
func FuzzMemberlistPacket(f *testing.F) {
	for _, b := range said {
		f.Add(b)
	}
	g := listener(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > maxPacket {
			return // readPacket refuses it
		}
		for _, p := range [][]byte{b, {255}} { // the second is taken when the first has been looked at
			g.transport.packets <- &memberlist.Packet{
				Buf: append([]byte{}, p...), From: address("peer"), Timestamp: time.Now(),
			}
		}
		if g.list.LocalNode().Name != "self" {
			t.Error("memberlist forgot who it is")
		}
	})
}

// Whatever a member writes to a stream, memberlist ends it and goes on.
func FuzzMemberlistStream(f *testing.F) {
	for _, b := range said {
		f.Add(b)
	}
	g := listener(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		theirs, ours := net.Pipe()
		g.transport.streams <- stream{ours, "self", "peer"}
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = theirs.Write(b) // it may be cut off
			_ = theirs.Close()
		}()
		_, _ = io.Copy(io.Discard, theirs) // until one of both ends it
		<-written
	})
}
