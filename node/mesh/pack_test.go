package mesh

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// inBlock is b in a block, as it is.
func inBlock(b []byte) []byte { return append(appendLength(nil, len(b)<<1), b...) }

// said is a frame of some length in which names repeat.
func said(r *rand.Rand) []byte {
	b := fmt.Appendf(nil, "node %d says of instance %d:", r.IntN(3), r.IntN(5))
	for range r.IntN(4) {
		b = append(b, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(20))...)
	}
	if r.IntN(50) == 0 {
		for range r.IntN(3 * maxBlock) {
			b = append(b, byte(r.Uint32()))
		}
	}
	return b
}

// Frames are read as they were written, however they were put together, whether they fill a block or several, and
// however the stream cuts them; and both sides count the same bytes.
func TestFramesArePackedAndUnpacked(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		var stream bytes.Buffer
		p := &packer{w: &stream, plain: seed%8 == 0}
		var frames [][]byte
		wrote := 0
		for range 60 {
			var batch [][]byte
			for range 1 + r.IntN(6) {
				batch = append(batch, said(r))
			}
			if _, err := writeBatch(p, batch); err != nil {
				t.Fatal(err)
			}
			wrote += p.taken()
			frames = append(frames, batch...)
		}
		if wrote != stream.Len() {
			t.Errorf("seed %d: %d bytes are counted, %d were written", seed, wrote, stream.Len())
		}
		fr := newFrameReader(piecemeal{r, &stream})
		read := 0
		for i, want := range frames {
			got, err := readFrame(fr.Reader, 1<<20)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("seed %d: frame %d is %d bytes, want %d: %v", seed, i, len(got), len(want), err)
			}
			read += fr.blocks.taken()
		}
		if _, err := readFrame(fr.Reader, 1<<20); !errors.Is(err, io.EOF) || read != wrote {
			t.Errorf("seed %d: %d bytes read, want %d; then %v", seed, read, wrote, err)
		}
	}
}

// piecemeal gives a few bytes at a time.
type piecemeal struct {
	rand *rand.Rand
	r    io.Reader
}

func (p piecemeal) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 1+p.rand.IntN(5000))]) }

// What was named shortly before costs next to nothing, also in a frame of its own; and nothing is packed where that is
// not wanted.
func TestNamesAreSentOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	name := make([]byte, 200)
	for i := range name {
		name[i] = byte(r.Uint32())
	}
	for _, plain := range []bool{false, true} {
		p := &packer{w: io.Discard, plain: plain}
		var each []int
		for range 3 {
			if _, err := writeBatch(p, [][]byte{name}); err != nil {
				t.Fatal(err)
			}
			each = append(each, p.taken())
		}
		if each[0] < len(name) || plain != (each[1] > len(name)/10) || each[1] != each[2] {
			t.Errorf("plain %t: a frame of %d bytes, sent three times, took %v bytes", plain, len(name), each)
		}
	}
}

// Whatever comes, no block holds more than it may, and what is read again as it was packed is the same.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{})
	f.Add(inBlock([]byte("a frame")))
	f.Add((&packer{}).pack(nil, bytes.Repeat([]byte("again and "), 30)))
	f.Add([]byte{0x82, 0x80, 0x08, 'x'})
	f.Add(append(appendLength(appendLength(nil, maxBlock<<1|1), 4), 0x4b, 0x4c, 0x04, 0x00)) // much of little
	f.Fuzz(func(t *testing.T, b []byte) {
		u := &unpacker{r: bufio.NewReader(bytes.NewReader(b))}
		var all []byte
		for {
			if err := u.next(); err != nil {
				break
			}
			if len(u.rest) == 0 || len(u.rest) > maxBlock || len(u.past) > memory {
				t.Fatalf("a block of %d bytes, %d are kept", len(u.rest), len(u.past))
			}
			all = append(all, u.rest...)
			u.drop()
		}
		if n := u.taken(); n > len(b) {
			t.Fatalf("%d bytes are counted of %d", n, len(b))
		}
		if len(all) == 0 {
			return
		}
		var stream bytes.Buffer
		p := &packer{w: &stream}
		if _, err := p.Write(all); err != nil {
			t.Fatal(err)
		}
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
		again, err := io.ReadAll(newFrameReader(&stream))
		if err != nil || !bytes.Equal(again, all) {
			t.Fatalf("%d bytes are read again as %d: %v", len(all), len(again), err)
		}
	})
}
