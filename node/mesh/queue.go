package mesh

import (
	"errors"
	"fmt"
	"sync"
)

// Errors of Send.
var (
	// ErrNotConnected: there is no connection to the partner now; OnUp will say
	// when there is.
	ErrNotConnected = errors.New("not connected")
	// ErrQueueFull: the partner takes frames more slowly than they come.
	ErrQueueFull = errors.New("queue full")
	// ErrFrameSize: the frame is empty or too long.
	ErrFrameSize = errors.New("frame size")
)

// queue holds the frames that wait to be written to one partner. It takes frames
// only while open, between OnUp and OnDown.
type queue struct {
	maxFrames, maxBytes int
	filled              chan struct{} // capacity 1: there may be frames

	mu     sync.Mutex
	open   bool
	frames [][]byte
	count  int // frames waiting or being written
	bytes  int
}

func newQueue(l Limits) *queue {
	return &queue{maxFrames: l.QueueFrames, maxBytes: l.QueueBytes, filled: make(chan struct{}, 1)}
}

// put queues a frame, or says why not. A single frame always fits in an empty
// queue.
func (q *queue) put(frame []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return ErrNotConnected
	}
	if q.count > 0 && (q.count >= q.maxFrames || q.bytes+len(frame) > q.maxBytes) {
		return fmt.Errorf("%w: %d frames of %d bytes wait, at most %d of %d may", ErrQueueFull, q.count, q.bytes,
			q.maxFrames, q.maxBytes)
	}
	q.frames = append(q.frames, frame)
	q.count++
	q.bytes += len(frame)
	select {
	case q.filled <- struct{}{}:
	default:
	}
	return nil
}

// take returns the waiting frames, none if there are none. They count as waiting
// until written is called. spent is a slice to use again.
func (q *queue) take(spent [][]byte) [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	q.frames = spent[:0]
	return frames
}

// written says that frames that were taken are gone.
func (q *queue) written(frames, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count -= frames
	q.bytes -= bytes
}

// setOpen opens the queue, or closes it and drops what it holds.
func (q *queue) setOpen(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	q.frames, q.count, q.bytes = nil, 0, 0
}

// waiting is how much waits.
func (q *queue) waiting() (frames, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count, q.bytes
}
