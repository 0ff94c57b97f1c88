package node

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// killed is a store that takes so many units more, and then nothing.
type killed struct {
	*shelf
	units int
}

var errKilled = errors.New("killed")

func (k *killed) CommitWait(writes []kv.Write) error {
	if k.units--; k.units < 0 {
		return errKilled
	}
	return k.shelf.CommitWait(writes)
}

type stillClock struct{ at time.Duration }

func (c stillClock) Now() membership.Now {
	return membership.Now{Awake: c.at, Boot: c.at, Wall: time.UnixMilli(0).Add(c.at)}
}
func (stillClock) BootID() string                       { return "boot" }
func (stillClock) After(time.Duration) <-chan time.Time { return nil }

// However a node is killed while it gives up an instance with more facts than a unit
// takes: at the next start the instance is there whole, or its summary is, and what is
// left of its facts goes.
func TestKilledWhileGivingUp(t *testing.T) {
	key, err := newKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const facts = 3 * unitWrites
	id := workflow.InstanceID{7}
	sum := summary{State: workflow.InstanceSucceeded, Ended: 1, Settled: true, With: "one two", Facts: [endedDigest]byte{1}, Number: facts}
	for units := range 10 {
		t.Run(fmt.Sprint(units, " units"), func(t *testing.T) {
			k := &killed{shelf: newShelf(), units: units}
			for i := range facts {
				k.shelf.data[string(factKey(id, int(i)))] = []byte("fact")
			}
			k.shelf.data[string(instanceKey(id))] = encode(sum)
			open := func() *Node {
				n := &Node{
					member: Member{Key: key}, store: k, index: newIndex(), clock: stillClock{100 * 24 * time.Hour}, log: slog.New(slog.DiscardHandler),
					config: configs.Default(configs.LAN), stepped: true, counters: map[string]*atomic.Uint64{},
				}
				n.shards = []*shard{newShard(n, 0)}
				if err := n.loadClosed(); err != nil {
					t.Fatal(err)
				}
				if err := n.index.load(k, func(workflow.InstanceID, summary) error { return nil }); err != nil {
					t.Fatal(err)
				}
				return n
			}
			give := func(n *Node) error { return n.shards[0].close(n.index.closable(n.config.Limits, n.age())) }
			err := give(open())
			if units >= 5 { // marked, three of facts, the end of the entry
				if err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, errKilled) {
				t.Fatalf("with %d units: %v", units, err)
			}
			k.units = 1 << 30
			n := open()
			left := 0
			_ = k.Scan(factPrefix(id), func(_, _ []byte) error { left++; return nil })
			got, listed := n.index.get(id)
			if whole := listed && !got.Closed; whole && left < facts || !listed && left > 0 {
				t.Errorf("%d of %d facts are left, and it is listed as %+v", left, facts, got)
			}
			if c, found, err := n.closing(id); err != nil || found != (left < facts || got.Closed) || found && c.Number != facts {
				t.Errorf("its summary: %+v, %v, %v", c, found, err)
			}
			if err := give(n); err != nil {
				t.Fatal(err)
			}
			left = 0
			_ = k.Scan(factPrefix(id), func(_, _ []byte) error { left++; return nil })
			if _, listed := n.index.get(id); listed || left > 0 {
				t.Errorf("after the next start %d facts are left", left)
			}
			if d := open().index.endedWith("two"); [endedDigest]byte(d) != sum.Facts {
				t.Errorf("the digest with two is %x, want that of the instance", d)
			}
		})
	}
}
