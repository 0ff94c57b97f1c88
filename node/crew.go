package node

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// crew are the shards, and what has them work.
type crew struct {
	executor
	shards  []*shard
	stopped chan struct{}  // closed when the node stops
	running sync.WaitGroup // what has to end before it has

	recalls  atomic.Int32  // shards that go on with all that was here before the node began
	recalled func()        // called when all shards do
	ready    chan struct{} // closed after that
}

// An executor says who does what is to be done: goroutines of the node's own, or whoever
// drives it step by step.
type executor interface {
	// post hands an event to a shard, and may wait for room in its queue. False: the
	// node stops.
	post(s *shard, e event) bool
	// postOwn is post from what may be the shard's own goroutine.
	postOwn(s *shard, e event)
	// side does something beside what goes on, where that might wait for itself.
	side(fn func())
	// handed has a shard see to an event that somebody waits for.
	handed(s *shard)
	// waits reports whether waiting for partners makes sense: they act meanwhile.
	waits() bool
}

// goroutines drive a node that Run keeps going.
type goroutines struct{ stopped <-chan struct{} }

func (g goroutines) post(s *shard, e event) bool {
	select {
	case s.events <- e:
		return true
	case <-g.stopped:
		return false
	}
}

// postOwn waits for a full queue elsewhere: the runner may end a task before its Start
// returns, which is on the shard's own goroutine.
func (g goroutines) postOwn(s *shard, e event) {
	select {
	case s.events <- e:
	default:
		g.side(func() { g.post(s, e) })
	}
}

func (goroutines) side(fn func()) { go fn() }

func (goroutines) handed(*shard) {}

func (goroutines) waits() bool { return true }

// steps drive a node that Step keeps going, all in the goroutine of its caller.
type steps struct{}

func (steps) post(s *shard, e event) bool {
	s.local = append(s.local, e)
	return true
}

func (x steps) postOwn(s *shard, e event) { x.post(s, e) }

func (steps) side(fn func()) { fn() }

func (steps) handed(s *shard) { s.turn() }

func (steps) waits() bool { return false }

func newCrew() *crew {
	stopped := make(chan struct{})
	return &crew{executor: goroutines{stopped}, stopped: stopped, ready: make(chan struct{})}
}

// recall notes that one more shard goes on with all that was here before the node began.
func (c *crew) recall() {
	if int(c.recalls.Add(1)) == len(c.shards) {
		c.recalled()
		close(c.ready)
	}
}

func (c *crew) shardOf(id workflow.InstanceID) *shard {
	return c.shards[binary.BigEndian.Uint32(id[:])%uint32(len(c.shards))]
}

// have hands all shards something to do, without waiting for it.
func (c *crew) have(fn func(*shard) error) {
	for _, s := range c.shards {
		c.side(func() { c.post(s, event{apply: fn}) })
	}
}

// do has fn run on the owner of an instance and waits until what it did is durable.
func (c *crew) do(ctx context.Context, id workflow.InstanceID, fn func(*shard) error) error {
	return c.doAndRead(ctx, id, nil, fn)
}

// doAndRead is do; read: nil, or what reads the instance as it is then. What is done is not undone because it could not
// be read.
func (c *crew) doAndRead(
	ctx context.Context, id workflow.InstanceID, read func(*held), fn func(*shard) error,
) error {
	done := make(chan error, 1)
	return c.hand(ctx, c.shardOf(id), event{of: id, apply: fn, read: read, after: func(err error) { done <- err }}, done)
}

// peek has fn read an instance on its owner.
func (c *crew) peek(ctx context.Context, id workflow.InstanceID, fn func(*held)) error {
	done := make(chan error, 1)
	return c.hand(ctx, c.shardOf(id), event{look: func(s *shard) { done <- s.read(id, fn) }}, done)
}

// visit is peek for what does more than to read (shard.visit).
func (c *crew) visit(ctx context.Context, id workflow.InstanceID, fn func(*held)) error {
	done := make(chan error, 1)
	return c.hand(ctx, c.shardOf(id), event{look: func(s *shard) { done <- s.visit(id, fn) }}, done)
}

// lookAt has all shards look at what they hold, beside each other, and returns what they found,
// in their order; an error, if one of them failed at what it holds outside its machine. Whoever
// stops waiting leaves it to them.
func lookAt[T any](ctx context.Context, c *crew, look func(s *shard) T) ([]T, error) {
	found, done := make([]T, len(c.shards)), make([]chan error, len(c.shards))
	for i, s := range c.shards {
		done[i] = make(chan error, 1)
		if !c.post(s, event{look: func(s *shard) {
			s.reading, s.unread = true, nil
			found[i] = look(s)
			s.reading = false
			done[i] <- s.unread // else what could not be read would be passed over
		}}) {
			return nil, api.ErrStopping
		}
		c.handed(s)
	}
	for i := range c.shards {
		if err := c.await(ctx, done[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// hand hands an event to a shard and waits for the answer.
func (c *crew) hand(ctx context.Context, s *shard, e event, done <-chan error) error {
	if !c.post(s, e) {
		return api.ErrStopping
	}
	c.handed(s)
	return c.await(ctx, done)
}

// await waits for the answer of a shard.
func (c *crew) await(ctx context.Context, done <-chan error) error {
	select { // what is done is answered, even if the time is over
	case err := <-done:
		return err
	default:
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return api.ErrStopping
	}
}

func (c *crew) stopping() <-chan struct{} { return c.stopped }

// driving is the crew for topics in packages of their own.
type driving struct{ *crew }

func (d driving) Waits() bool { return d.waits() }

func (d driving) Stopping() <-chan struct{} { return d.stopped }
