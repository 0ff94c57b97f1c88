package closings

import (
	"time"

	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// lifetime is this node's own time, by which it forgets: how long its store has been in
// use. It goes on while the node runs, and for a time in which it did not run by what
// the wall clock says, at most a day: a clock that jumped by years ages nothing.
type lifetime struct {
	base  time.Duration // when the process began
	began time.Duration // Boot
}

// maxAsleep is how much the time in which a node did not run counts at most.
const maxAsleep = 24 * time.Hour

type storedAge struct {
	_    struct{}      `cbor:",toarray"`
	Age  time.Duration // so far
	Wall int64         // ms, when it was written
}

func (b *Book) loadAge() error {
	now := b.in.Clock.Now()
	was, err := stored[storedAge](b, KeyAge)
	if err != nil {
		return err
	}
	b.lifetime.began, b.lifetime.base = now.Boot, was.Age
	if was.Wall != 0 {
		b.lifetime.base += min(max(now.Wall.Sub(time.UnixMilli(was.Wall)), 0), maxAsleep)
	}
	return nil
}

// Age is this node's own time.
func (b *Book) Age() time.Duration {
	return b.lifetime.base + b.in.Clock.Now().Boot - b.lifetime.began
}

// KeepAge has the node's own time written down once an hour, and does not wait for that.
// One goroutine calls it.
func (b *Book) KeepAge() {
	if b.Age()-b.aged < time.Hour {
		return
	}
	b.aged = b.Age()
	now := storedAge{Age: b.aged, Wall: b.in.Clock.Now().Wall.UnixMilli()}
	b.in.Store.Commit([]kv.Write{{Key: []byte(KeyAge), Value: codec.Encode(now)}},
		func(error) {}) // the store tells of it
}
