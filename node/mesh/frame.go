package mesh

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// errMalformed marks what a correct partner never sends.
var errMalformed = errors.New("malformed")

// appendFrame appends b as a frame: its length as a uvarint, then itself.
func appendFrame(dst, b []byte) []byte {
	return append(appendLength(dst, len(b)), b...)
}

func appendLength(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

// lengthOf is how many bytes a length takes.
func lengthOf(n uint64) int {
	var room [binary.MaxVarintLen64]byte
	return len(appendLength(room[:0], int(n)))
}

// readFrame reads one frame of 1 to limit bytes into a fresh slice. The error is
// errMalformed for a frame that is empty, too long or has a bad length, else that
// of the reader; io.EOF only between frames.
func readFrame(r *bufio.Reader, limit int) ([]byte, error) { return readFrameInto(nil, r, limit) }

// readFrameInto is readFrame into a slice of the caller's, where that has room.
func readFrameInto(room []byte, r *bufio.Reader, limit int) ([]byte, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	if n == 0 || n > uint64(limit) {
		return nil, fmt.Errorf("%w: frame of %d bytes, 1 to %d are possible", errMalformed, n, limit)
	}
	if n > uint64(cap(room)) {
		room = make([]byte, n)
	}
	frame := room[:n]
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, cutShort(err)
	}
	return frame, nil
}

// frameBuffered reports whether r need not wait for the rest of its next frame.
func frameBuffered(r *bufio.Reader) bool {
	b, err := r.Peek(min(r.Buffered(), binary.MaxVarintLen32))
	if err != nil {
		return false
	}
	n, k := binary.Uvarint(b)
	return k > 0 && n <= uint64(r.Buffered()-k)
}

// readLength reads a uvarint in its shortest form, so that a frame has one
// encoding.
func readLength(r *bufio.Reader) (uint64, error) {
	var n uint64
	for i := range binary.MaxVarintLen32 {
		b, err := r.ReadByte()
		if err != nil {
			if i > 0 {
				err = cutShort(err)
			}
			return 0, err
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if b == 0 && i > 0 {
				return 0, fmt.Errorf("%w: length not in its shortest form", errMalformed)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: length of more than %d bytes", errMalformed, binary.MaxVarintLen32)
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
