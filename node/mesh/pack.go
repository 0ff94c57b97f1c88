package mesh

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// This file packs what goes over a frames stream: partners, instances, tasks and facts are named in frame
// after frame, and most of them were named shortly before.
//
// The stream is a sequence of blocks, and what they hold, one after the other, is the frames:
//
//	block   = length [packed] bytes
//	length  = uvarint: twice the number of bytes that it holds, 1 to maxBlock; plus 1 if they are packed
//	packed  = uvarint: how many bytes they are packed; fewer than they are
//
// They are packed by DEFLATE (RFC 1951), with the last memory bytes of the stream before them as its dictionary.
// Nothing but these bytes is kept of a stream, at either side, while nothing is sent.
//
// What is said in packed blocks can be guessed by their length, if somebody who takes part may write beside it
// and sees the lengths: docs/security.md says to whom that matters, and Config.Plain has nothing packed.

const (
	// maxBlock is how much is packed, and written, at once.
	maxBlock = 64 << 10
	// memory is how much of a stream can be named again: more is no use to flate.StatelessDeflate.
	memory = 8 << 10
)

// blocks are for what is being packed or read.
var blocks = sync.Pool{New: func() any {
	b := make([]byte, 0, maxBlock+2*binary.MaxVarintLen32)
	return &b
}}

// past is the end of a stream.
type past []byte

// add appends a block.
func (p *past) add(b []byte) {
	if len(b) >= memory {
		*p = append((*p)[:0], b[len(b)-memory:]...)
		return
	}
	if over := len(*p) + len(b) - memory; over > 0 {
		*p = (*p)[:copy(*p, (*p)[over:])]
	}
	*p = append(*p, b...)
}

// packer writes blocks.
type packer struct {
	w     io.Writer
	plain bool // nothing is packed
	past  past
	block *[]byte // what is not written yet; nil: nothing
	wrote int     // bytes since taken
}

// Write takes bytes of frames, and writes them when there are enough of them.
func (p *packer) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		if p.block == nil {
			p.block = blocks.Get().(*[]byte)
			*p.block = (*p.block)[:0]
		}
		n := min(len(rest), maxBlock-len(*p.block))
		*p.block, rest = append(*p.block, rest[:n]...), rest[n:]
		if len(*p.block) == maxBlock {
			if err := p.flush(); err != nil {
				return len(b) - len(rest), err
			}
		}
	}
	return len(b), nil
}

// flush writes what is not written yet.
func (p *packer) flush() error {
	if p.block == nil {
		return nil
	}
	b, out := *p.block, blocks.Get().(*[]byte)
	defer func() {
		blocks.Put(p.block)
		blocks.Put(out)
		p.block = nil
	}()
	*out = p.pack((*out)[:0], b)
	p.past.add(b)
	n, err := p.w.Write(*out)
	p.wrote += n
	return err
}

// pack appends b as a block.
func (p *packer) pack(dst, b []byte) []byte {
	if !p.plain {
		packed := blocks.Get().(*[]byte)
		defer blocks.Put(packed)
		into := bytes.NewBuffer((*packed)[:0])
		err := flate.StatelessDeflate(into, b, true, p.past)
		if err == nil && into.Len() < len(b) {
			dst = appendLength(appendLength(dst, len(b)<<1|1), into.Len())
			return append(dst, into.Bytes()...)
		}
	}
	return append(appendLength(dst, len(b)<<1), b...)
}

// taken is how many bytes were written since it was asked last.
func (p *packer) taken() (n int) {
	n, p.wrote = p.wrote, 0
	return n
}

// unpacker reads blocks: Read gives what they hold.
type unpacker struct {
	r     *bufio.Reader
	past  past
	block *[]byte // that is being read; nil: none
	rest  []byte  // what is not read of it
	read  int     // bytes since taken
}

func (u *unpacker) Read(b []byte) (int, error) {
	if u.block == nil {
		if err := u.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, u.rest)
	if u.rest = u.rest[n:]; len(u.rest) == 0 {
		u.drop()
	}
	return n, nil
}

// drop gives a block back.
func (u *unpacker) drop() {
	if u.block != nil {
		blocks.Put(u.block)
		u.block = nil
	}
}

// next reads a block. The error is errMalformed for what no packer writes, else that of the stream; io.EOF
// only between blocks.
func (u *unpacker) next() error {
	length, err := readLength(u.r)
	if err != nil {
		return err
	}
	n := length >> 1
	if n == 0 || n > maxBlock {
		return fmt.Errorf("%w: block of %d bytes, 1 to %d are possible", errMalformed, n, maxBlock)
	}
	u.read += lengthOf(length)
	block := blocks.Get().(*[]byte)
	if length&1 == 0 {
		err = u.fill((*block)[:n])
	} else {
		err = u.unpack((*block)[:n])
	}
	if err != nil {
		blocks.Put(block)
		return err
	}
	u.block, u.rest = block, (*block)[:n]
	u.past.add(u.rest)
	return nil
}

// fill reads bytes as they are.
func (u *unpacker) fill(b []byte) error {
	n, err := io.ReadFull(u.r, b)
	u.read += n
	return cutShort(err)
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack reads what is packed to fill b.
func (u *unpacker) unpack(b []byte) error {
	n, err := readLength(u.r)
	if err != nil {
		return cutShort(err)
	}
	if n == 0 || n >= uint64(len(b)) {
		return fmt.Errorf("%w: %d bytes are packed in %d, 1 to %d are possible", errMalformed, len(b), n, len(b)-1)
	}
	u.read += lengthOf(n)
	packed := blocks.Get().(*[]byte)
	defer blocks.Put(packed)
	if err := u.fill((*packed)[:n]); err != nil {
		return err
	}
	from := bytes.NewReader((*packed)[:n])
	z := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(z)
	if err := z.(flate.Resetter).Reset(from, u.past); err != nil {
		return err
	}
	_, err = io.ReadFull(z, b)
	if err == nil {
		var more [1]byte
		if _, err = io.ReadFull(z, more[:]); err == io.EOF && from.Len() == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: what is packed in %d bytes is not the %d bytes it is said to be", errMalformed, n, len(b))
}

// taken is how many bytes were read since it was asked last.
func (u *unpacker) taken() (n int) {
	n, u.read = u.read, 0
	return n
}
