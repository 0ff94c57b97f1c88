package mesh

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// tap is somebody on the line: it passes all on between a node and those that come to its
// port, and keeps a copy.
type tap struct {
	mu   sync.Mutex
	seen bytes.Buffer
}

func (w *tap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(b)
}

func (w *tap) copied() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.seen.Bytes())
}

// onTCP puts a tap before a TCP port, and returns the port at which it is reached.
func (w *tap) onTCP(t *testing.T, port string) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", "127.0.0.1:"+port)
			if err != nil {
				in.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				io.Copy(to, io.TeeReader(from, w)) // an error is the end of the line
				to.Close()
			}
			go pass(out, in)
			go pass(in, out)
		}
	}()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// onUDP puts a tap before a UDP port for one that comes to it.
func (w *tap) onUDP(t *testing.T, port string) string {
	in, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	var mu sync.Mutex
	var from net.Addr
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, addr, err := in.ReadFrom(b)
			if err != nil {
				return
			}
			mu.Lock()
			from = addr
			mu.Unlock()
			w.Write(b[:n])
			out.Write(b[:n]) // what is lost is sent again
		}
	}()
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, err := out.Read(b)
			if err != nil {
				return
			}
			w.Write(b[:n])
			mu.Lock()
			addr := from
			mu.Unlock()
			if addr != nil {
				in.WriteTo(b[:n], addr)
			}
		}
	}()
	return fmt.Sprint(in.LocalAddr().(*net.UDPAddr).Port)
}

// Somebody on the line between two partners sees that they talk, at which addresses, when and
// how much; what they say, and who they are to the mesh, it does not see.
func TestWhoIsOnTheLineSeesThatPartnersTalkAndNotWhat(t *testing.T) {
	for name, listen := range map[string][]string{"quic": overQUIC, "tcp": overTCP} {
		t.Run(name, func(t *testing.T) {
			const credentials, secret = "who-i-am-to-the-mesh", "where-the-insulin-is"
			shows := func(c *Config) {
				c.Hello, c.Plain = func() []byte { return []byte(credentials) }, true
			}
			a, b := start(t, listen, shows), start(t, listen, shows)
			var line tap
			at := strings.Split(b.Addrs()[0], "/")
			put := line.onTCP
			if name == "quic" {
				put = line.onUDP
			}
			at[4] = put(t, at[4])
			if err := a.SetAddrs(b.ID(), []string{strings.Join(at, "/")}); err != nil {
				t.Fatal(err)
			}
			if err := a.Want(b.ID(), true); err != nil {
				t.Fatal(err)
			}
			a.untilUp(t, b)
			b.untilUp(t, a)
			quiet := len(line.copied())
			said := strings.Repeat(secret, 20_000)
			a.send(t, b, said)
			b.until(t, "what a says", func() bool { return b.count("frame", a.ID()) == 1 })
			if got := b.frames(a)[0]; got != said {
				t.Fatalf("b hears %d bytes, a said %d", len(got), len(said))
			}
			seen := line.copied()
			if quiet == 0 || len(seen)-quiet < len(said) {
				t.Errorf("on the line %d bytes are seen before a says anything, and %d while it says %d: want all",
					quiet, len(seen)-quiet, len(said))
			}
			for _, what := range []string{credentials, secret, string(a.ID()), string(b.ID())} {
				if bytes.Contains(seen, []byte(what)) {
					t.Errorf("%q is read on the line", what)
				}
			}
		})
	}
}
