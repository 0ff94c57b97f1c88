package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
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
	key, err := newKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const facts = 3 * kv.UnitWrites
	id := workflow.InstanceID{7}
	sum := summary{State: workflow.InstanceSucceeded, Ended: 1, Settled: true, With: "one two", Facts: [endedDigest]byte{1}, Number: facts}
	for units := range 10 {
		t.Run(fmt.Sprint(units, " units"), func(t *testing.T) {
			k := &killed{Shelf: kvtest.New(), units: units}
			for i := range facts {
				k.Shelf.Data[string(factKey(id, int(i)))] = []byte("fact")
			}
			k.Shelf.Data[string(instanceKey(id))] = encode(sum)
			open := func() *instances {
				tools := newTools(Parts{Member: Member{Key: key}, Store: k, Clock: stillClock{100 * 24 * time.Hour}, Config: configs.Default(configs.LAN)})
				c, w, index := newContacts(tools, nil), &crew{executor: steps{}}, newIndex()
				n := &instances{contacts: c, crew: w, index: index, retention: newRetention(c, w, index, nil, nil)}
				n.shards = []*shard{newShard(n, 0)}
				if err := n.retention.loadClosed(); err != nil {
					t.Fatal(err)
				}
				if err := n.index.load(k, func(workflow.InstanceID, summary) error { return nil }); err != nil {
					t.Fatal(err)
				}
				return n
			}
			give := func(n *instances) error {
				return n.shards[0].close(n.index.closable(n.config.Limits, n.retention.age()))
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
			got, listed := n.index.get(id)
			if whole := listed && !got.Closed; whole && left < facts || !listed && left > 0 {
				t.Errorf("%d of %d facts are left, and it is listed as %+v", left, facts, got)
			}
			if c, found, err := n.retention.closedOf(id); err != nil || found != (left < facts || got.Closed) || found && c.Number != facts {
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

// scanned counts what a store's scans read.
type scanned struct {
	*kvtest.Shelf
	entries int
}

func (s *scanned) Scan(prefix []byte, fn func(key, value []byte) error) error {
	return s.Shelf.Scan(prefix, func(key, value []byte) error {
		s.entries++
		return fn(key, value)
	})
}

// A member that ends instances without end loses its own oldest, and nobody else's:
// what is kept of them is bounded, what it costs for each does not grow with what there
// may be, and none comes back, nor after a restart.
func TestInstancesWithoutEnd(t *testing.T) {
	for _, limit := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := &scanned{Shelf: kvtest.New()}
			n := newRetention(newContacts(newTools(Parts{Member: Member{Key: make([]byte, 64)}, Store: s, Clock: stillClock{}, Config: configs.Default(configs.LAN)}), nil), nil, newIndex(), nil, nil)
			n.config.Limits.Ended = limit
			number := 0
			end := func(by workflow.PartnerID) (id workflow.InstanceID) {
				number++
				binary.BigEndian.PutUint32(id[:], uint32(number))
				c := closing{Instance: id, By: by, Started: int64(number), Closed: int64(number), Signer: "me"}
				if err := s.CommitWait([]kv.Write{{Key: closingKey(id), Value: encode(c)}}); err != nil {
					t.Fatal(err)
				}
				n.closed.Number++
				n.forget()
				return id
			}
			var honest []workflow.InstanceID
			for range limit / 4 {
				honest = append(honest, end("ana"))
			}
			for range 20 * limit {
				end("mal")
			}
			if most := limit*maxForgotten + limit; len(s.Data) > most+2 || len(s.Data) < most*9/10 {
				t.Errorf("%d entries are kept, want %d", len(s.Data), most)
			}
			if each := s.entries / number; each > 12*maxForgotten {
				t.Errorf("%d entries are read for each instance", each)
			}
			again := newRetention(newContacts(&tools{store: s}, nil), nil, newIndex(), nil, nil)
			if err := again.loadClosed(); err != nil {
				t.Fatal(err)
			}
			for _, id := range honest {
				if c, found, err := again.closedOf(id); err != nil || !found || c.Signer == "" {
					t.Fatalf("the summary of an honest member's instance is %+v, %v, %v", c, found, err)
				}
			}
			for started := range int64(number) {
				id := workflow.InstanceID{}
				binary.BigEndian.PutUint32(id[:], uint32(started+1))
				c, found, err := again.closedOf(id)
				if err != nil || !found && !again.index.mayBeDropped("mal", started+1) || found && c.By == "mal" && c.Started != started+1 {
					t.Fatalf("instance %d: %+v, %v, %v", started+1, c, found, err)
				}
			}
			if again.index.mayBeDropped("mal", int64(number)+1) || again.index.mayBeDropped("ana", 1) {
				t.Error("new instances are refused")
			}
		})
	}
}

func TestLevelOf(t *testing.T) {
	for _, c := range []struct {
		numbers     []int
		limit, want int
	}{{[]int{1, 2, 3}, 6, math.MaxInt}, {[]int{9, 1}, 6, 5}, {[]int{9, 9, 1}, 7, 3}, {[]int{5}, 0, 0}, {nil, 3, math.MaxInt}} {
		if got := levelOf(slices.Clone(c.numbers), c.limit); got != c.want {
			t.Errorf("of %v, %d in all, each may have %d, want %d", c.numbers, c.limit, got, c.want)
		}
	}
}
