package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// justRead notes that a content was read and is right. The caller holds s.mu.
func (s *Store) justRead(c *content) {
	s.reads++
	c.read = s.reads
}

// verify reads all of a content and reports whether it fits its hash. What was lost beside it is
// made again; a content that does not fit is one that the disk damaged. An error says that it
// could not be found out.
func (s *Store) verify(ctx context.Context, n name) (fits bool, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	r, chunks, err := s.readAll(ctx, n)
	if r != nil {
		defer r.Close() // it was only read
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, s.missed(n.file(), err)
	}
	var bad *badContent
	if errors.As(err, &bad) {
		return false, s.damaged(n, r, bad.why)
	}
	if err != nil {
		return false, err
	}
	_, lacking := s.storedSums(n.file())
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[n]
	if c == nil || c.state != whole { // it was removed meanwhile
		return false, nil
	}
	if lacking != nil {
		if c.fault == "" {
			c.fault = noSums
			s.tell(n, c)
		}
		if err := s.writeSums(n, chunks); err != nil {
			return false, err
		}
	}
	if !c.unsure {
		c.fault = ""
	}
	s.justRead(c)
	if c.unrecorded {
		if err := s.record(n, c); err != nil {
			return true, err
		}
		c.unrecorded = false
	}
	return true, nil
}

// badContent says why a content is not what was kept.
type badContent struct{ why string }

func (e *badContent) Error() string { return e.why }

// readAll reads a content, and returns its open file and the hashes of its chunks.
func (s *Store) readAll(ctx context.Context, n name) (*os.File, sums, error) {
	r, err := os.Open(s.path(n, wholeFile))
	if err != nil {
		return nil, nil, err
	}
	chunks := make(sums, 0, chunksOf(n.size))
	buffer := make([]byte, Chunk)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return r, nil, err
		}
		m, err := io.ReadFull(r, buffer)
		if m > 0 {
			chunks, size = append(chunks, sha256.Sum256(buffer[:m])), size+int64(m)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || size > n.size {
			break
		}
		if err != nil {
			return r, nil, &badContent{fmt.Sprintf("its content cannot be read from byte %d on: %v", size, err)}
		}
	}
	switch {
	case size != n.size:
		return r, nil, &badContent{fmt.Sprintf("its content has other than its %d bytes", n.size)}
	case chunks.root(size) != n.root:
		return r, nil, &badContent{notWhatWasKept}
	}
	return r, chunks, nil
}

// file is a file of that content.
func (n name) file() workflow.File { return workflow.File{Root: n.root, Size: n.size} }

// missed notes that the content of a file is gone, if that is why it could not be opened.
func (s *Store) missed(f workflow.File, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.damaged(nameOf(f), nil, "its content is gone")
}

// damaged makes of a content that the disk changed what there is so far of one: what is
// right of it need not be fetched again. It was found in r, which may be no longer what is here.
func (s *Store) damaged(n name, r *os.File, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.held[n]
	if c == nil || c.state != whole {
		return nil
	}
	is, gone := os.Stat(s.path(n, wholeFile))
	if r == nil && gone == nil {
		return nil // it came back meanwhile
	}
	if r != nil && gone == nil {
		if was, err := r.Stat(); err != nil || !os.SameFile(was, is) {
			return err
		}
	}
	c.fault, c.read, c.part = why, 0, n.size
	c.become(damaged)
	s.tell(n, c)
	return s.setAside(n)
}

// setAside keeps what is here of a damaged content as what is here so far. The caller holds
// s.mu, but for Open.
func (s *Store) setAside(n name) error {
	part := s.path(n, partFile)
	err := errors.Join(gone(s.rename(s.path(n, wholeFile), part)), gone(os.Chmod(part, 0o600)))
	return errors.Join(err, s.record(n, s.of(n)))
}

// Sound reports whether all of a file is here and fits its hash: it is read, unless that was
// done since the start and again is false.
func (s *Store) Sound(ctx context.Context, f workflow.File, again bool) (bool, error) {
	n := nameOf(f)
	s.mu.Lock()
	c := s.held[n]
	here := c != nil && c.state == whole
	known := here && c.read > 0 && !again
	s.mu.Unlock()
	if !here || known {
		return known, nil
	}
	return s.verify(ctx, n)
}

// Reader reads the content of a file that is here, each chunk only once it is known to be what
// was kept. Its first chunk is verified when it returns.
func (s *Store) Reader(f workflow.File) (io.ReadCloser, error) {
	chunks, err := s.sums(f)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(s.path(nameOf(f), wholeFile))
	if err != nil {
		return nil, errors.Join(err, s.missed(f, err))
	}
	r := &reader{store: s, of: f, file: file, chunks: chunks, buffer: make([]byte, min(f.Size, Chunk))}
	if err := r.fill(); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

// reader is what Reader returns.
type reader struct {
	store  *Store
	of     workflow.File
	file   *os.File
	chunks sums
	next   int    // the chunk after those that were read
	buffer []byte // for a chunk
	left   []byte // what is left to be given of the last
}

// ErrDamaged is the answer to who reads a content that the disk changed.
var ErrDamaged = errors.New("its content is damaged on the disk of this node")

// fill reads the next chunk.
func (r *reader) fill() error {
	if r.next == len(r.chunks) {
		return io.EOF
	}
	ok, err := good(r.file, r.of, r.chunks, r.next, r.buffer)
	if err != nil {
		return err
	}
	if !ok {
		err := fmt.Errorf("file %s: %w, which fetches it again from a partner that has it: try again", r.of.Name,
			ErrDamaged)
		return errors.Join(err, r.store.damaged(nameOf(r.of), r.file, notWhatWasKept))
	}
	r.left = r.buffer[:chunkSize(r.of, r.next)]
	r.next++
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.file.Close() }

// readOrder are the contents that should be here, those first that were read longest ago.
func (s *Store) readOrder(again bool) (out []name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.held {
		if c.state == whole && (again || c.read == 0) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b name) int {
		if d := s.held[a].read - s.held[b].read; d != 0 {
			return d
		}
		return slices.Compare(a.root[:], b.root[:])
	})
	return out
}

// Examine reads all of a folder of files whose node does not run, and changes nothing there. It
// returns what is wrong, and how many files are kept in it.
func Examine(ctx context.Context, dir string) (wrong []Fault, kept int, err error) {
	s, err := load(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range s.readOrder(true) {
		r, _, err := s.readAll(ctx, n)
		if r != nil {
			_ = r.Close() // it was only read
		}
		c := s.held[n]
		var bad *badContent
		switch {
		case errors.As(err, &bad):
			c.fault = also(c.fault, bad.why)
			c.become(damaged)
		case err != nil:
			return nil, 0, err
		default:
			kept++
			if _, err := s.storedSums(n.file()); err != nil && c.fault == "" {
				c.fault = noSums
			}
		}
	}
	return s.faults(), kept, nil
}
