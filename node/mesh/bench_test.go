package mesh

import (
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// listener is a handler that gives each frame to a function.
type listener struct {
	up chan struct{} // capacity 1
	on func(p workflow.PartnerID, frame []byte)
}

func (l *listener) OnUp(workflow.PartnerID)                    { poke(l.up) }
func (l *listener) OnDown(workflow.PartnerID)                  {}
func (l *listener) OnFrame(p workflow.PartnerID, frame []byte) { l.on(p, frame) }

func benchPair(b *testing.B, listen []string) (m, n *Mesh, at, bt *listener) {
	at, bt = &listener{up: make(chan struct{}, 1)}, &listener{up: make(chan struct{}, 1)}
	var meshes []*Mesh
	for _, h := range []*listener{at, bt} {
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
				if err := n.Send(p, slices.Clone(frame)); err != nil {
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

// BenchmarkPipelined: frames of 1 KiB one way, at most window on their way.
func BenchmarkPipelined(b *testing.B) {
	const window, step = 4096, 256
	for name, listen := range map[string][]string{"quic": overQUIC, "tcp": overTCP} {
		b.Run(name, func(b *testing.B) {
			m, n, _, bt := benchPair(b, listen)
			room := make(chan struct{}, window/step) // a token is step frames
			for range window / step {
				room <- struct{}{}
			}
			arrived, done := 0, make(chan struct{})
			bt.on = func(workflow.PartnerID, []byte) {
				if arrived++; arrived%step == 0 {
					room <- struct{}{}
				}
				if arrived == b.N {
					close(done)
				}
			}
			frame := make([]byte, 1024)
			b.SetBytes(1024)
			b.ResetTimer()
			for i := range b.N {
				if i%step == 0 {
					<-room
				}
				if err := m.Send(n.ID(), frame); err != nil {
					b.Fatal(err)
				}
			}
			<-done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}
