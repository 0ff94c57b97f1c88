package closings

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/codec/codectest"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// still is a clock that stands still.
type still struct{}

func (still) Now() moment.Now { return moment.Now{} }

// What is stored can be read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	codectest.ReadBack(t, &Closing{}, &forgotten{}, &storedDropped{}, &storedAge{}, &Account{})
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
			n := New(Whose{Store: s, Clock: still{}, Limit: limit})
			number := 0
			end := func(by workflow.PartnerID) (id workflow.InstanceID) {
				number++
				binary.BigEndian.PutUint32(id[:], uint32(number))
				c := Closing{Instance: id, By: by, Started: int64(number), Closed: int64(number), Signer: "me"}
				if err := s.CommitWait([]kv.Write{{Key: Key(id), Value: c.Encode()}}); err != nil {
					t.Fatal(err)
				}
				n.account.Number++
				if err := n.Forget(); err != nil {
					t.Fatal(err)
				}
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
			again := New(Whose{Store: s, Clock: still{}, Limit: limit})
			if err := again.Load(); err != nil {
				t.Fatal(err)
			}
			for _, id := range honest {
				if c, found, err := again.Of(id); err != nil || !found || c.Signer == "" {
					t.Fatalf("the summary of an honest member's instance is %+v, %v, %v", c, found, err)
				}
			}
			for started := range int64(number) {
				id := workflow.InstanceID{}
				binary.BigEndian.PutUint32(id[:], uint32(started+1))
				c, found, err := again.Of(id)
				if err != nil || !found && !again.MayBeDropped("mal", started+1) ||
					found && c.By == "mal" && c.Started != started+1 {
					t.Fatalf("instance %d: %+v, %v, %v", started+1, c, found, err)
				}
			}
			if again.MayBeDropped("mal", int64(number)+1) || again.MayBeDropped("ana", 1) {
				t.Error("new instances are refused")
			}
		})
	}
}

func TestLevelOf(t *testing.T) {
	for _, c := range []struct {
		numbers     []int
		limit, want int
	}{
		{[]int{1, 2, 3}, 6, math.MaxInt}, {[]int{9, 1}, 6, 5}, {[]int{9, 9, 1}, 7, 3}, {[]int{5}, 0, 0},
		{nil, 3, math.MaxInt},
	} {
		if got := levelOf(slices.Clone(c.numbers), c.limit); got != c.want {
			t.Errorf("of %v, %d in all, each may have %d, want %d", c.numbers, c.limit, got, c.want)
		}
	}
}

// Summaries are given in the order of their IDs, from any of them on, and no more of the store is read than a
// small part beyond what is given.
func TestSummariesOneAfterTheOther(t *testing.T) {
	s := &scanned{Shelf: kvtest.New()}
	b := New(Whose{Store: s, Clock: still{}, Limit: 10_000})
	ids := make([]workflow.InstanceID, 2_000)
	for i := range ids {
		binary.BigEndian.PutUint64(ids[i][:], uint64(i)*(math.MaxUint64/uint64(len(ids))))
		c := Closing{Instance: ids[i], By: "one", Signer: "me"}
		if err := s.CommitWait([]kv.Write{{Key: Key(ids[i]), Value: c.Encode()}}); err != nil {
			t.Fatal(err)
		}
	}
	var after *workflow.InstanceID
	for page := 0; ; page++ {
		s.entries = 0
		var got []workflow.InstanceID
		if err := b.After(after, func(c Closing) bool { got = append(got, c.Instance); return len(got) < 300 }); err != nil {
			t.Fatal(err)
		}
		rest := ids[min(page*300, len(ids)):]
		if !slices.Equal(got, rest[:min(300, len(rest))]) {
			t.Fatalf("page %d has %d summaries, or others", page, len(got))
		}
		if s.entries > len(got)+20 {
			t.Errorf("page %d of %d summaries read %d entries", page, len(got), s.entries)
		}
		if len(got) < 300 {
			break
		}
		after = &got[len(got)-1]
	}
}
