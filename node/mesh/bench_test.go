package mesh

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// counting is a handler that counts frames, or gives each to a function.
type counting struct {
	frames atomic.Int64
	target int64
	done   chan struct{}
	up     chan struct{}
	on     func(p workflow.PartnerID, frame []byte)
}

func newCounting() *counting {
	return &counting{done: make(chan struct{}, 1), up: make(chan struct{}, 1)}
}

func (c *counting) OnUp(workflow.PartnerID)   { poke(c.up) }
func (c *counting) OnDown(workflow.PartnerID) {}
func (c *counting) OnFrame(p workflow.PartnerID, frame []byte) {
	if c.on != nil {
		c.on(p, frame)
		return
	}
	if c.frames.Add(1) == c.target {
		poke(c.done)
	}
}

func benchPair(b *testing.B, listen []string) (m, n *Mesh, at, bt *counting) {
	at, bt = newCounting(), newCounting()
	var meshes []*Mesh
	for _, h := range []*counting{at, bt} {
		m, err := New(Config{Key: newKey(b), Listen: listen, Handler: h, Boot: 1,
			Admit: func(workflow.PartnerID, []byte, uint64) error { return nil }})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { m.Close() })
		meshes = append(meshes, m)
	}
	m, n = meshes[0], meshes[1]
	if err := m.SetAddrs(n.ID(), n.Addrs()); err != nil {
		b.Fatal(err)
	}
	if err := m.Want(n.ID(), true); err != nil {
		b.Fatal(err)
	}
	<-at.up
	<-bt.up
	return m, n, at, bt
}

// BenchmarkRoundTrip: a frame of 1 KiB there and back, one in flight.
func BenchmarkRoundTrip(b *testing.B) {
	for name, listen := range map[string][]string{"quic": overQUIC, "tcp": overTCP} {
		b.Run(name, func(b *testing.B) {
			m, n, at, bt := benchPair(b, listen)
			back := make(chan struct{}, 1)
			bt.on = func(p workflow.PartnerID, frame []byte) {
				if err := n.Send(p, frame); err != nil {
					b.Error(err)
				}
			}
			at.on = func(workflow.PartnerID, []byte) { back <- struct{}{} }
			frame := make([]byte, 1024)
			for b.Loop() {
				if err := m.Send(n.ID(), frame); err != nil {
					b.Fatal(err)
				}
				<-back
			}
		})
	}
}

// BenchmarkPipelined: frames of 1 KiB one way, as fast as the queue takes them.
func BenchmarkPipelined(b *testing.B) {
	for name, listen := range map[string][]string{"quic": overQUIC, "tcp": overTCP} {
		b.Run(name, func(b *testing.B) {
			m, n, _, bt := benchPair(b, listen)
			bt.target = int64(b.N)
			frame := make([]byte, 1024)
			b.SetBytes(1024)
			b.ResetTimer()
			for range b.N {
				for m.Send(n.ID(), frame) != nil { // full: give the writer the processor
					waitForRoom(m, n.ID())
				}
			}
			<-bt.done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// waitForRoom returns when the queue to p is half empty.
func waitForRoom(m *Mesh, p workflow.PartnerID) {
	for range 1_000_000 {
		for _, info := range m.Peers() {
			if info.ID == p && info.QueueFrames < m.limits.QueueFrames/2 {
				return
			}
		}
	}
	panic(fmt.Sprintf("the queue to %s does not move", p))
}
