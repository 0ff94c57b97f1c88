package assemble_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	p2phost "github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/store"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/web"
)

// The figures of people's work, each beside its floor: run both at once, as
// -bench 'Grant|DurableMessage' -benchtime 100x (nobody may ask
// much oftener at once) and -bench 'File|Stream' -benchtime 3x.

// BenchmarkGrant: how long a person at one node waits for an item that another node holds:
// until the grant is durable there, and known here; of a lock, until what the item needs is kept here as well.
func BenchmarkGrant(b *testing.B) {
	for _, claim := range []string{api.ClaimSelect, api.ClaimLock} {
		b.Run(claim, func(b *testing.B) { benchEach(b, newGrantBench(b, claim)) })
	}
}

// BenchmarkDurableMessage is the floor of a grant: 1 KiB that its sender commits and sends,
// and its receiver commits and acknowledges, over a stream of its own between two plain hosts.
func BenchmarkDurableMessage(b *testing.B) { benchEach(b, newMessageBench(b)) }

// benchEach does something again and again, and reports how long it took.
func benchEach(b *testing.B, each func() time.Duration) {
	b.ResetTimer()
	took := make([]time.Duration, 0, b.N)
	for range b.N {
		took = append(took, each())
	}
	b.StopTimer()
	report(b, took)
}

// BenchmarkGrantBesideMessage does a grant and its floor in turn, so that what else the machine does weighs on either, and
// each once what the one before left to be done is over. It says how many times the p50 of the floor the p50 of the grant
// is: the aim is two.
func BenchmarkGrantBesideMessage(b *testing.B) {
	const rest = 2 * time.Millisecond
	for _, claim := range []string{api.ClaimSelect, api.ClaimLock} {
		b.Run(claim, func(b *testing.B) {
			grant, message := newGrantBench(b, claim), newMessageBench(b)
			var grants, messages []time.Duration
			for range b.N {
				<-time.After(rest)
				grants = append(grants, grant())
				<-time.After(rest)
				messages = append(messages, message())
			}
			g, m := median(grants), median(messages)
			b.ReportMetric(float64(g.Microseconds()), "grant-µs")
			b.ReportMetric(float64(m.Microseconds()), "message-µs")
			b.ReportMetric(g.Seconds()/m.Seconds(), "ratio")
		})
	}
}

// newGrantBench has as many items at one node as the benchmark takes, of which a person at another takes one whenever what
// it returns is called: that returns how long it took.
func newGrantBench(b *testing.B, claim string) func() time.Duration {
	ctx := context.Background()
	m := newBenchMesh(b, "one", "two")
	w, err := m.hosts[0].Service().AddWorkflow(ctx, "call.yaml",
		[]byte("workflow: call\ntasks:\n  call: {type: manual, role: crew, offline: true}\npartitions:\n  all: [call]\n"))
	if err != nil {
		b.Fatal(err)
	}
	crew := m.hosts[1].Service()
	for range b.N {
		if _, err := m.hosts[0].Service().
			Start(ctx, api.StartRequest{Workflow: string(w.Name), Assign: map[string]string{"all": "one"}}); err != nil {
			b.Fatal(err)
		}
	}
	var items []api.Item
	for len(items) < b.N {
		if items, err = crew.Worklist(ctx, api.WorklistQuery{}); err != nil {
			b.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if at := items[0].Partner; at != "one" {
		b.Fatalf("an item is with %s, want one", at)
	}
	return func() time.Duration {
		x := items[0]
		items = items[1:]
		begun := time.Now()
		if _, err := crew.ClaimItems(ctx, api.ClaimRequest{Claim: claim, Items: []string{x.ID}}); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
}

// newMessageBench is newGrantBench for a durable message.
func newMessageBench(b *testing.B) func() time.Duration {
	at, to := benchHosts(b)
	var stores [2]*store.Store
	for i := range stores {
		s, err := store.Open(b.TempDir(), store.Options{Preset: store.Default})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		stores[i] = s
	}
	commit := func(s *store.Store, n uint64, message []byte) error {
		return s.CommitWait([]kv.Write{{Key: fmt.Appendf(nil, "message/%012d", n), Value: message}})
	}
	to.SetStreamHandler("/bench", func(s network.Stream) {
		message := make([]byte, 1024)
		for n := uint64(0); ; n++ {
			if _, err := io.ReadFull(s, message); err != nil {
				return
			}
			if err := commit(stores[1], n, bytes.Clone(message)); err != nil {
				b.Error(err)
			}
			if _, err := s.Write([]byte{1}); err != nil {
				return
			}
		}
	})
	s, err := at.NewStream(context.Background(), to.ID(), "/bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Reset() })
	sent, ack := uint64(0), make([]byte, 1)
	return func() time.Duration {
		message := make([]byte, 1024)
		begun := time.Now()
		if err := commit(stores[0], sent, message); err != nil {
			b.Fatal(err)
		}
		sent++
		if _, err := s.Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(s, ack); err != nil {
			b.Fatal(err)
		}
		return time.Since(begun)
	}
}

// benchFile is how long the files of these benchmarks are.
const benchFile = 200 << 20

// BenchmarkFile: a file comes from another node, verified and synced.
func BenchmarkFile(b *testing.B) {
	comes := newFileBench(b)
	b.SetBytes(benchFile)
	b.StopTimer()
	b.ResetTimer()
	for range b.N {
		comes()
	}
}

// newFileBench has two nodes, between which a file comes whenever what it returns is called: that returns how long it
// took. What is done before is not timed.
func newFileBench(b *testing.B) func() time.Duration {
	ctx := context.Background()
	m := newBenchMesh(b, "one", "two")
	w, err := m.hosts[0].Service().AddWorkflow(ctx, "survey.yaml",
		[]byte("workflow: survey\ndata:\n  plan: {type: file, readers: [two]}\ntasks:\n  look: {type: manual, in: [plan]}\n  tell: {type: manual, after: look}\npartitions:\n  p1: [look]\n  p2: [tell]\n"))
	if err != nil {
		b.Fatal(err)
	}
	content := make([]byte, benchFile)
	return func() time.Duration {
		rand.Read(content)
		f, err := m.hosts[0].Service().PutFile(ctx, "plan.bin", bytes.NewReader(content))
		if err != nil {
			b.Fatal(err)
		}
		st, err := m.hosts[0].Service().
			Start(ctx, api.StartRequest{
				Workflow: string(w.Name), Input: map[string]string{"plan": f.Value},
				Assign: map[string]string{"p1": "one", "p2": "two"},
			})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := m.hosts[1].Service().Show(ctx, st.ID); err == nil {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
		b.StartTimer()
		began := time.Now()
		_, r, err := m.hosts[1].Service().File(ctx, st.ID, "plan")
		took := time.Since(began)
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
		return took
	}
}

// BenchmarkStream is the floor of BenchmarkFile: as many bytes over a stream between two
// plain hosts, kept by nobody.
func BenchmarkStream(b *testing.B) {
	comes := newStreamBench(b)
	b.SetBytes(benchFile)
	for b.Loop() {
		comes()
	}
}

// newStreamBench is newFileBench for a plain stream.
func newStreamBench(b *testing.B) func() time.Duration {
	at, to := benchHosts(b)
	content := make([]byte, benchFile)
	rand.Read(content)
	to.SetStreamHandler("/bench", func(s network.Stream) {
		defer s.Close()
		if _, err := s.Write(content); err != nil {
			b.Error(err)
		}
	})
	return func() time.Duration {
		began := time.Now()
		s, err := at.NewStream(context.Background(), to.ID(), "/bench")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, s); n != benchFile || err != nil {
			b.Fatalf("%d bytes came: %v", n, err)
		}
		return time.Since(began)
	}
}

// BenchmarkFileBesideStream does both in turn, so that what else the machine does weighs on either, and says how much of
// the stream's speed the file has: the aim is half.
func BenchmarkFileBesideStream(b *testing.B) {
	file, stream := newFileBench(b), newStreamBench(b)
	var files, streams time.Duration
	for range b.N {
		files += file()
		streams += stream()
	}
	speed := func(d time.Duration) float64 { return float64(b.N) * benchFile / 1e6 / d.Seconds() }
	b.ReportMetric(speed(files), "file-MB/s")
	b.ReportMetric(speed(streams), "stream-MB/s")
	b.ReportMetric(streams.Seconds()/files.Seconds(), "ratio")
}

// BenchmarkAtSize: lists of a node that holds 10,000 instances, each with an item of its user's:
// the worklist in its orders, a move by hand, messages, instances, and the page with each of them, compressed. Sixteen
// thousand and more are reached by nobody's hand, so what grows is time for people.
func BenchmarkAtSize(b *testing.B) {
	const held = 10_000
	ctx := context.Background()
	m := newBenchMesh(b, "one")
	svc := m.hosts[0].Service()
	w, err := svc.AddWorkflow(ctx, "call.yaml",
		[]byte("workflow: call\ndata:\n  street: {type: string, required: true}\ntasks:\n  call: {type: manual, role: crew, doc: Call them., deadline: 2h, warnings: [1h, 119m59s]}\n  note: {type: manual, after: call}\npartitions:\n  all: [call, note]\n"))
	if err != nil {
		b.Fatal(err)
	}
	for i := range held {
		if _, err := svc.Start(ctx, api.StartRequest{
			Workflow: string(w.Name), Input: map[string]string{"street": fmt.Sprintf("Harbour Street %d", i)},
			Assign: map[string]string{"all": "one"},
		}); err != nil {
			b.Fatal(err)
		}
	}
	page := web.New(svc.(web.Node), slog.New(slog.DiscardHandler))
	user := ""
	show := func(path string) (status, size int) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		out := httptest.NewRecorder()
		page.Inside(out, r, httpapi.Session{User: user, Acts: true})
		var z bytes.Buffer
		c := gzip.NewWriter(&z)
		c.Write(out.Body.Bytes())
		c.Close()
		return out.Code, z.Len()
	}
	list := func(order string) func(b *testing.B) {
		return func(b *testing.B) {
			eachLoop(b, func() {
				if items, err := svc.Worklist(ctx, api.WorklistQuery{Order: order}); err != nil || len(items) < held {
					b.Fatal(len(items), err)
				}
			})
		}
	}
	b.Run("worklist/"+api.OrderArrival, list(api.OrderArrival))
	b.Run("worklist/"+api.OrderPriority, list(api.OrderPriority))
	b.Run("worklist/"+api.OrderDeadline, list(api.OrderDeadline))
	b.Run("worklist/"+api.OrderSize, list(api.OrderSize))
	items, err := svc.Worklist(ctx, api.WorklistQuery{})
	if err != nil {
		b.Fatal(err)
	}
	moved := 0
	b.Run("move", func(b *testing.B) { // each another item; it answers with the list by hand
		eachLoop(b, func() {
			r := api.MoveRequest{Item: items[moved%len(items)].ID, Before: items[(moved+held/2)%len(items)].ID}
			if all, err := svc.MoveItem(ctx, r); err != nil || len(all) < held {
				b.Fatal(len(all), err)
			}
			moved += 7
		})
	})
	b.Run("worklist/"+api.OrderHand, list(api.OrderHand))
	b.Run("messages", func(b *testing.B) {
		eachLoop(b, func() {
			if all, err := svc.Messages(ctx, api.MessagesQuery{}); err != nil || len(all) < 1000 {
				b.Fatal(len(all), err)
			}
		})
	})
	b.Run("instances", func(b *testing.B) {
		eachLoop(b, func() {
			if all, err := svc.Instances(ctx, false); err != nil || len(all) < held {
				b.Fatal(len(all), err)
			}
		})
	})
	b.Run("instances/client", func(b *testing.B) { // as the command line has them, from another process
		dir := b.TempDir()
		served, err := httpapi.Serve(dir, "127.0.0.1:0", svc, httpapi.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer served.Close(ctx)
		client, err := httpapi.Dial(dir)
		if err != nil {
			b.Fatal(err)
		}
		eachLoop(b, func() {
			if all, err := client.Instances(ctx, false); err != nil || len(all) < held {
				b.Fatal(len(all), err)
			}
		})
	})
	for _, path := range []string{"/", "/instances", "/instances?q=street+777", "/messages"} {
		if path == "/messages" {
			user = "one"
		}
		b.Run("page"+path, func(b *testing.B) {
			size := 0
			eachLoop(b, func() {
				var status int
				if status, size = show(path); status != http.StatusOK {
					b.Fatal(status)
				}
			})
			b.ReportMetric(float64(size), "gzip-bytes")
		})
	}
}

// benchHosts are two hosts that are connected by QUIC.
func benchHosts(b *testing.B) (at, to p2phost.Host) {
	b.Helper()
	var hosts [2]p2phost.Host
	for i := range hosts {
		h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/udp/0/quic-v1"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	if err := hosts[0].Connect(context.Background(), peer.AddrInfo{ID: hosts[1].ID(), Addrs: hosts[1].Addrs()}); err != nil {
		b.Fatal(err)
	}
	return hosts[0], hosts[1]
}

// eachLoop is a benchmark's loop that reports how long each turn took: of lists, whoever waits sees one, and now and then
// the collector works beside it.
func eachLoop(b *testing.B, fn func()) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		fn()
		took = append(took, time.Since(began))
	}
	report(b, took)
}

// report says how long what was measured one by one took.
func report(b *testing.B, took []time.Duration) {
	b.ReportMetric(float64(median(took).Microseconds()), "p50-µs") // it sorts them
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// median sorts them, and is the one in the middle.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
