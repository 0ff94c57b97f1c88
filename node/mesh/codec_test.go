package mesh

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	manet "github.com/multiformats/go-multiaddr/net"
)

// Whatever arrives, a frame is read as it was written or there is an error, and no
// more memory is taken than the limit, also where one frame after the other is read into
// the same room.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0})
	f.Add(appendFrame(nil, []byte("a")))
	f.Add(appendFrame(appendFrame(nil, bytes.Repeat([]byte("b"), 200)), []byte("c")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{0x81, 0x00, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 300
		r := bufio.NewReader(bytes.NewReader(b))
		var again, room []byte
		for {
			frame, err := readFrameInto(room, r, limit)
			if err != nil {
				if errors.Is(err, io.EOF) && !bytes.Equal(again, b) {
					t.Fatalf("read %x, which encodes as %x", b, again)
				}
				if !bytes.HasPrefix(b, again) {
					t.Fatalf("read %x from %x", again, b)
				}
				return
			}
			if len(frame) == 0 || len(frame) > limit {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			again, room = appendFrame(again, frame), frame
		}
	})
}

func FuzzDecodeHello(f *testing.F) {
	f.Add([]byte{})
	f.Add(hello{boot: 1 << 40, credentials: []byte("card")}.encode())
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHello(b)
		if err == nil && !bytes.Equal(h.encode(), b) {
			t.Fatalf("%x decodes to %+v, which encodes as %x", b, h, h.encode())
		}
	})
}

func FuzzDecodeVerdict(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeVerdict(nil))
	f.Add(encodeVerdict(errors.New("not \x1b[31m welcome")))
	f.Add(encodeVerdict(errors.New(strings.Repeat("long", 100))))
	f.Fuzz(func(t *testing.T, b []byte) {
		refusal, err := decodeVerdict(b)
		if err != nil && refusal != nil {
			t.Fatal("both a refusal and an error")
		}
		if refusal == nil {
			if err == nil && !bytes.Equal(b, encodeVerdict(nil)) {
				t.Fatalf("%x was taken for a yes", b)
			}
			return
		}
		for _, r := range refusal.Error() {
			if r < ' ' || r == 0x7f {
				t.Fatalf("the refusal %q holds a control character", refusal)
			}
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte{answerOK})
	f.Add([]byte{answerError, 'n', 'o'})
	f.Add([]byte{7})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return // readFrame gives no empty frame
		}
		got, err := readAnswer(b)
		if err == nil && (b[0] != answerOK || !bytes.Equal(got, b[1:])) {
			t.Fatalf("%x was read as %x", b, got)
		}
	})
}

// Anybody on the local network may announce anything.
func FuzzReadAnnouncement(f *testing.F) {
	const id = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
	f.Add("id="+id, "a=/ip4/192.0.2.7/udp/4001/quic-v1", "a=/ip4/127.0.0.1/tcp/1")
	f.Add("id="+id, "a=/dns4/example.org/tcp/1", "a=")
	f.Add("id=", "id=x", "a=/ip4/192.0.2.7/tcp/80")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		const limit = 2
		who, addrs, err := readAnnouncement([]string{a, b, c, c, b}, limit)
		if err != nil {
			return
		}
		if who.Validate() != nil || len(addrs) == 0 || len(addrs) > limit {
			t.Fatalf("%q %q %q: %s at %v", a, b, c, who, addrs)
		}
		for _, x := range addrs {
			if manet.IsIPLoopback(x) {
				t.Fatalf("%s leads nowhere but here", x)
			}
		}
	})
}
