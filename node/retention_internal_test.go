package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// killed is a store that takes so many units more, and then nothing.
type killed struct {
	*kvtest.Shelf
	units int
}

var errKilled = errors.New("killed")

func (k *killed) CommitWait(writes []kv.Write) error {
	if k.units--; k.units < 0 {
		return errKilled
	}
	return k.Shelf.CommitWait(writes)
}

type stillClock struct{ at time.Duration }

func (c stillClock) Now() moment.Now {
	return moment.Now{Awake: c.at, Boot: c.at, Wall: time.UnixMilli(0).Add(c.at)}
}
func (stillClock) BootID() string                       { return "boot" }
func (stillClock) After(time.Duration) <-chan time.Time { return nil }

// However a node is killed while it gives up an instance with more facts than a unit
// takes: at the next start the instance is there whole, or its summary is, and what is
// left of its facts goes.
func TestKilledWhileGivingUp(t *testing.T) {
	key, _, err := newKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const facts = 3 * kv.UnitWrites
	id := workflow.InstanceID{7}
	sum := index.Summary{
		State: workflow.InstanceSucceeded, Ended: 1, Settled: true, With: "one two", Facts: closings.Digest{1},
		Number: facts,
	}
	for units := range 10 {
		t.Run(fmt.Sprint(units, " units"), func(t *testing.T) {
			k := &killed{Shelf: kvtest.New(), units: units}
			for i := range facts {
				k.Shelf.Data[string(factKey(id, int(i)))] = []byte("fact")
			}
			k.Shelf.Data[string(index.Key(id))] = encode(sum)
			open := func() *instances {
				tools := newTools(Parts{
					Member: Member{Key: key}, Store: k, Clock: stillClock{100 * 24 * time.Hour},
					Config: configs.Default(configs.LAN),
				})
				c, w, list := newContacts(tools, nil), &crew{executor: steps{}}, index.New()
				book := closings.New(closings.Whose{
					Key: key, Store: k, Clock: tools.clock, Limit: tools.config.Limits.Ended,
				})
				n := &instances{
					contacts: c, crew: w, index: list, retention: newRetention(c, w, list, nil, nil, book),
				}
				n.shards = []*shard{newShard(n, 0)}
				if err := book.Load(); err != nil {
					t.Fatal(err)
				}
				list.Gone(book.Digests())
				if err := n.index.Load(k, func(workflow.InstanceID, index.Summary) error { return nil }); err != nil {
					t.Fatal(err)
				}
				return n
			}
			give := func(n *instances) error {
				return n.shards[0].close(n.index.Closable(n.config.Limits, 100*24*time.Hour, n.member.ID(), 9))
			}
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
			got, listed := n.index.Get(id)
			if whole := listed && !got.Closed; whole && left < facts || !listed && left > 0 {
				t.Errorf("%d of %d facts are left, and it is listed as %+v", left, facts, got)
			}
			if c, found, err := n.retention.closings.Of(id); err != nil || found != (left < facts || got.Closed) ||
				found && c.Number != facts {
				t.Errorf("its summary: %+v, %v, %v", c, found, err)
			}
			if err := give(n); err != nil {
				t.Fatal(err)
			}
			left = 0
			_ = k.Scan(factPrefix(id), func(_, _ []byte) error { left++; return nil })
			if _, listed := n.index.Get(id); listed || left > 0 {
				t.Errorf("after the next start %d facts are left", left)
			}
			if d := open().index.EndedWith("two"); closings.Digest(d) != sum.Facts {
				t.Errorf("the digest with two is %x, want that of the instance", d)
			}
		})
	}
}
