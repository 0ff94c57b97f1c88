package files

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// Chunk is how many bytes are verified together.
	Chunk = 1 << 20
	// Piece is how many are asked for at once: less than a frame of the carrier.
	Piece = Chunk / 2
)

// Root names a content.
type Root = [32]byte

// sums are the hashes of a file's chunks, in order.
type sums [][32]byte

// chunksOf is how many chunks a file of that length has.
func chunksOf(size int64) int { return int((size + Chunk - 1) / Chunk) }

// root is what the reference to a file of these chunks carries.
func (s sums) root(size int64) Root {
	h := sha256.New()
	h.Write([]byte("mutirao file 1\x00")) // a hash never fails to be written to
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	for _, c := range s {
		h.Write(c[:])
	}
	return Root(h.Sum(nil))
}

// bytes and readSums are how chunks' hashes are stored and sent.
func (s sums) bytes() []byte {
	b := make([]byte, 0, len(s)*32)
	for _, c := range s {
		b = append(b, c[:]...)
	}
	return b
}

// readSums reads the hashes of a file's chunks, which must be those of its root.
func readSums(b []byte, f workflow.File) (sums, error) {
	if len(b) != 32*chunksOf(f.Size) {
		return nil, fmt.Errorf("the hashes of %d chunks have %d bytes", chunksOf(f.Size), len(b))
	}
	s := make(sums, chunksOf(f.Size))
	for i := range s {
		copy(s[i][:], b[32*i:])
	}
	if s.root(f.Size) != f.Root {
		return nil, errors.New("the hashes of the chunks are not those of the file")
	}
	return s, nil
}

// chunkSize is the length of the n-th chunk of a file.
func chunkSize(f workflow.File, n int) int {
	return int(min(f.Size-int64(n)*Chunk, Chunk))
}

// good reports whether a file on disk has the n-th chunk as it should be. An error says that
// it could not be read.
func good(r io.ReaderAt, f workflow.File, s sums, n int, buffer []byte) (bool, error) {
	b := buffer[:chunkSize(f, n)]
	if m, err := r.ReadAt(b, int64(n)*Chunk); m < len(b) {
		if errors.Is(err, io.EOF) {
			err = nil // it is too short
		}
		return false, err
	}
	return sha256.Sum256(b) == s[n], nil
}

// copyIn copies what r gives into a file, up to most bytes, and hashes it on the way. It ends where spare says
// that the disk has no room: others may write at the same time.
func copyIn(
	ctx context.Context, to *os.File, r io.Reader, most int64, spare func(bytes int64) error,
) (size int64, s sums, err error) {
	buffer, r := make([]byte, Chunk), unbroken{r}
	for {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			if size += int64(n); size > most {
				return 0, nil, &tooLarge{most: most}
			}
			if err := spare(int64(n)); err != nil {
				return 0, nil, err
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return 0, nil, err
			}
			s = append(s, sha256.Sum256(buffer[:n]))
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return size, s, nil
		default:
			return 0, nil, err
		}
	}
}

// unbroken is content of which it is not taken for its end that it broke off: io.ReadFull says the same of both.
type unbroken struct{ of io.Reader }

func (u unbroken) Read(b []byte) (int, error) {
	n, err := u.of.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it broke off before its end")
	}
	return n, err
}

type tooLarge struct {
	most int64
	size int64 // 0: more than that, which is all that is known
}

// IsFull reports whether a file is not kept since there is no room for it here.
func IsFull(err error) bool {
	if large := (*tooLarge)(nil); errors.As(err, &large) {
		return large.most < workflow.MaxFile
	}
	return errors.As(err, new(*noRoom)) || errors.As(err, new(*fullDisk))
}

func (e *tooLarge) Error() string {
	if e.most == workflow.MaxFile {
		return fmt.Sprintf("the file is too large: at most %s are kept of one", workflow.FormatSize(e.most))
	}
	if e.size > 0 {
		return fmt.Sprintf("it has %s, and there is room for %s here", workflow.FormatSize(e.size), workflow.FormatSize(e.most))
	}
	return fmt.Sprintf("there is room for %s here, and it is larger", workflow.FormatSize(e.most))
}
