package node

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// holed is a store of which some entries cannot be read: a scan stops there.
type holed struct {
	Store
	keys [][]byte
	bad  map[int]bool
	asks int
	most int    // asks; 0: as many as there are
	rest []byte // from this key on every scan fails, also one that would find nothing
}

func (h *holed) Scan(prefix []byte, fn func(key, value []byte) error) error {
	h.asks++
	if h.most > 0 && h.asks > h.most {
		return fmt.Errorf("%d scans", h.asks)
	}
	if h.rest != nil && bytes.Compare(prefix, h.rest[:min(len(prefix), len(h.rest))]) >= 0 {
		return fmt.Errorf("hole: %w", kv.ErrDamaged)
	}
	for i, key := range h.keys {
		switch {
		case !bytes.HasPrefix(key, prefix):
		case h.bad[i]:
			return fmt.Errorf("hole: %w", kv.ErrDamaged)
		default:
			if err := fn(key, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// What can be read of an instance is all that lies before, between and behind what cannot.
func TestScanPastWhatIsDamaged(t *testing.T) {
	id := workflow.InstanceID{1, 2, 3}
	h := &holed{}
	for place := range 700 {
		h.keys = append(h.keys, factKey(id, place))
	}
	for _, bad := range [][]int{nil, {0}, {3}, {256, 257, 300}, {699}} {
		h.bad, h.asks = map[int]bool{}, 0
		for _, i := range bad {
			h.bad[i] = true
		}
		var got, want [][]byte
		if err := scanPast(h, factPrefix(id), len(factKey(id, 0)), func(key, _ []byte) { got = append(got, key) }); err != nil {
			t.Fatal(err)
		}
		for i, key := range h.keys {
			if !h.bad[i] {
				want = append(want, key)
			}
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("without %v %d entries are read, want %d", bad, len(got), len(want))
		}
		if h.asks > 1+4*256 {
			t.Errorf("without %v it takes %d scans", bad, h.asks)
		}
	}
}

// Where reading fails everywhere, it is given up after so many scans, and what was read
// until then is kept.
func TestScanPastIsBounded(t *testing.T) {
	id := workflow.InstanceID{1, 2, 3}
	h := &holed{rest: factKey(id, 300)}
	for place := range 700 {
		h.keys = append(h.keys, factKey(id, place))
	}
	read := 0
	h.most = 3 * maxFailedScans
	if err := scanPast(h, factPrefix(id), len(factKey(id, 0)), func([]byte, []byte) { read++ }); err != nil {
		t.Fatal(err)
	}
	if read != 300 {
		t.Errorf("%d entries are read, want 300", read)
	}
}
