// Package storetest is the conformance suite of a durable key-value store: what
// the node relies on, as tests. Whatever stands in for the real store (a fake in
// memory, the simulator's crashing disk) must pass it too.
//
// It imports node/store/kv; only tests import it.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// Store is what is tested. The contract of each method is that of store.Store.
type Store interface {
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
	Scan(prefix []byte, fn func(key, value []byte) error) error
	Close() error
}

// Open opens the store that lives at a place, empty at first. Opening the place
// again after Close finds what was committed. It fails the test when it cannot.
type Open func(t testing.TB, place string) Store

// Run runs the suite. Each test has a place of its own.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"an empty store has nothing", testEmpty},
		{"what was committed can be read", testReadBack},
		{"a deleted key is gone", testDelete},
		{"a value may be empty", testEmptyValue},
		{"the last write of a unit wins", testLastWins},
		{"scan is ordered and keeps to its prefix", testScanOrder},
		{"an error ends a scan", testScanError},
		{"a scan sees one moment and may use the store", testScanSnapshot},
		{"get returns a copy", testGetCopies},
		{"done is called in order", testDoneOrder},
		{"done may commit", testDoneCommits},
		{"a unit without writes waits for the earlier ones", testBarrier},
		{"a refused unit leaves nothing", testRefused},
		{"a unit of the greatest size fits", testGreatest},
		{"units are atomic to readers", testAtomicReads},
		{"everything is there after reopening", testReopen},
		{"close commits what is queued", testCloseDrains},
		{"a closed store says so", testClosed},
		{"it behaves like a map", testModel},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

func opened(t *testing.T, open Open) Store {
	t.Helper()
	s := open(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	return s
}

// set is a write of strings.
func set(key, value string) kv.Write { return kv.Write{Key: []byte(key), Value: []byte(value)} }

func del(key string) kv.Write { return kv.Write{Key: []byte(key), Delete: true} }

func commit(t testing.TB, s Store, writes ...kv.Write) {
	t.Helper()
	if err := s.CommitWait(writes); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func wantValue(t testing.TB, s Store, key, want string) {
	t.Helper()
	got, err := s.Get([]byte(key))
	if err != nil || string(got) != want {
		t.Fatalf("get %q = %q, %v; want %q", key, got, err, want)
	}
}

func wantNone(t testing.TB, s Store, key string) {
	t.Helper()
	if got, err := s.Get([]byte(key)); !errors.Is(err, kv.ErrNotFound) {
		t.Fatalf("get %q = %q, %v; want ErrNotFound", key, got, err)
	}
}

// pairs are a scan's keys and values as key=value.
func pairs(t testing.TB, s Store, prefix string) []string {
	t.Helper()
	var all []string
	err := s.Scan([]byte(prefix), func(key, value []byte) error {
		all = append(all, string(key)+"="+string(value))
		return nil
	})
	if err != nil {
		t.Fatalf("scan %q: %v", prefix, err)
	}
	return all
}

func wantPairs(t testing.TB, s Store, prefix string, want ...string) {
	t.Helper()
	if got := pairs(t, s, prefix); !slices.Equal(got, want) {
		t.Fatalf("scan %q = %q, want %q", prefix, got, want)
	}
}

func testEmpty(t *testing.T, open Open) {
	s := opened(t, open)
	wantNone(t, s, "a")
	wantPairs(t, s, "")
}

func testReadBack(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "1"), set("b", "2"))
	wantValue(t, s, "a", "1")
	wantValue(t, s, "b", "2")
	wantNone(t, s, "c")
}

func testDelete(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "1"), set("b", "2"))
	commit(t, s, del("a"), del("never-there"))
	wantNone(t, s, "a")
	wantPairs(t, s, "", "b=2")
}

func testEmptyValue(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", ""))
	wantValue(t, s, "a", "")
	wantPairs(t, s, "", "a=")
}

func testLastWins(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "1"), del("a"), set("a", "2"), set("b", "1"), del("b"))
	wantPairs(t, s, "", "a=2")
}

func testScanOrder(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("b/2", "x"), set("b/10", "y"), set("a", "z"), set("b", "w"), set("c", "v"), set("b/\xff", "u"))
	wantPairs(t, s, "b/", "b/10=y", "b/2=x", "b/\xff=u")
	wantPairs(t, s, "b", "b=w", "b/10=y", "b/2=x", "b/\xff=u")
	wantPairs(t, s, "d")
}

func testScanError(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "1"), set("b", "2"), set("c", "3"))
	stop, seen := errors.New("stop"), 0
	err := s.Scan(nil, func(key, _ []byte) error {
		seen++
		if string(key) == "b" {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 2 {
		t.Fatalf("scan = %v after %d keys, want the error of fn after 2", err, seen)
	}
}

func testScanSnapshot(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "1"), set("b", "2"), set("c", "3"))
	committed := make(chan error, 1)
	var seen []string
	err := s.Scan(nil, func(key, value []byte) error {
		if len(seen) == 0 {
			go func() { committed <- s.CommitWait([]kv.Write{set("b", "new"), set("d", "new")}) }()
			if err := <-committed; err != nil {
				return err
			}
			wantValue(t, s, "b", "new")
		}
		seen = append(seen, string(key)+"="+string(value))
		return nil
	})
	if err != nil || !slices.Equal(seen, []string{"a=1", "b=2", "c=3"}) {
		t.Fatalf("scan saw %q, %v; want the moment of its start", seen, err)
	}
}

func testGetCopies(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("a", "abc"))
	got, err := s.Get([]byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	got[0] = 'x'
	wantValue(t, s, "a", "abc")
}

func testDoneOrder(t *testing.T, open Open) {
	s := opened(t, open)
	const units = 2000
	var order []int // written by the committer's goroutine only
	var all sync.WaitGroup
	for i := range units {
		all.Add(1)
		w := set(fmt.Sprint("k", i%50), fmt.Sprint(i))
		if i%7 == 3 {
			w.Key = nil // refused, and still in its turn
		}
		s.Commit([]kv.Write{w}, func(err error) {
			if (err != nil) != (i%7 == 3) {
				t.Errorf("unit %d: %v", i, err)
			}
			order = append(order, i)
			all.Done()
		})
	}
	all.Wait()
	if len(order) != units || !slices.IsSorted(order) {
		t.Fatalf("done was called %d times, sorted %v; want %d, in order", len(order), slices.IsSorted(order), units)
	}
}

func testDoneCommits(t *testing.T, open Open) {
	s := opened(t, open)
	end := make(chan error)
	var next func(i int)
	next = func(i int) {
		s.Commit([]kv.Write{set("chain", fmt.Sprint(i))}, func(err error) {
			if err != nil || i == 100 {
				end <- err
				return
			}
			next(i + 1)
		})
	}
	next(0)
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	wantValue(t, s, "chain", "100")
}

func testBarrier(t *testing.T, open Open) {
	s := opened(t, open)
	for i := range 100 {
		s.Commit([]kv.Write{set(fmt.Sprintf("%03d", i), "x")}, func(error) {})
	}
	commit(t, s)
	if got := len(pairs(t, s, "")); got != 100 {
		t.Fatalf("%d keys are there after the barrier, want 100", got)
	}
}

func testRefused(t *testing.T, open Open) {
	s := opened(t, open)
	many := make([]kv.Write, 10_000)
	for i := range many {
		many[i] = set(fmt.Sprintf("many%05d", i), "x")
	}
	for _, c := range []struct {
		name string
		unit []kv.Write
		want error
	}{
		{"empty key", []kv.Write{set("a", "1"), set("", "x")}, kv.ErrInvalid},
		{"long key", []kv.Write{set("a", "1"), set(string(make([]byte, 2<<10)), "x")}, kv.ErrTooBig},
		{"large value", []kv.Write{set("a", "1"), {Key: []byte("b"), Value: make([]byte, 1<<20)}}, kv.ErrTooBig},
		{"large unit", []kv.Write{
			set("a", "1"), {Key: []byte("b"), Value: make([]byte, 700<<10)},
			{Key: []byte("c"), Value: make([]byte, 700<<10)},
		}, kv.ErrTooBig},
		{"many writes", many, kv.ErrTooBig},
	} {
		if err := s.CommitWait(c.unit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	wantPairs(t, s, "")
}

func testGreatest(t *testing.T, open Open) {
	place := t.TempDir()
	s := open(t, place)
	big := bytes.Repeat([]byte{7}, 1<<20-1)
	for i := range 10 {
		commit(t, s, kv.Write{Key: fmt.Appendf(nil, "big%d", i), Value: big}, set(fmt.Sprint("small", i), "x"))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, place)
	defer s.Close()
	for i := range 10 {
		got, err := s.Get(fmt.Appendf(nil, "big%d", i))
		if err != nil || !bytes.Equal(got, big) {
			t.Fatalf("big%d: %d bytes, %v; want %d", i, len(got), err, len(big))
		}
	}
}

func testAtomicReads(t *testing.T, open Open) {
	s := opened(t, open)
	commit(t, s, set("x", "0"), set("y", "0"))
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range 300 {
			v := fmt.Sprint(i)
			s.Commit([]kv.Write{set("x", v), set("y", v)}, func(error) {})
		}
		commit(t, s)
	})
	for range 300 {
		if got := pairs(t, s, ""); len(got) != 2 || got[0][2:] != got[1][2:] {
			t.Fatalf("a reader saw %q: half a unit", got)
		}
	}
	writers.Wait()
}

func testReopen(t *testing.T, open Open) {
	place := t.TempDir()
	for round := range 3 {
		s := open(t, place)
		for i := range round {
			wantValue(t, s, fmt.Sprint("round", i), "x")
		}
		commit(t, s, set(fmt.Sprint("round", round), "x"), set("gone", "x"))
		commit(t, s, del("gone"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, place)
	defer s.Close()
	wantPairs(t, s, "", "round0=x", "round1=x", "round2=x")
}

func testCloseDrains(t *testing.T, open Open) {
	place := t.TempDir()
	s := open(t, place)
	var mu sync.Mutex
	acked := 0
	for i := range 500 {
		s.Commit([]kv.Write{set(fmt.Sprintf("%03d", i), "x")}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				acked++
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if acked != 500 {
		t.Fatalf("%d units of 500 were committed when Close returned", acked)
	}
	s = open(t, place)
	defer s.Close()
	if got := len(pairs(t, s, "")); got != 500 {
		t.Fatalf("%d keys after reopening, want 500", got)
	}
}

func testClosed(t *testing.T, open Open) {
	s := open(t, t.TempDir())
	commit(t, s, set("a", "1"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if err := s.CommitWait([]kv.Write{set("a", "2")}); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("commit: %v, want ErrClosed", err)
	}
	if _, err := s.Get([]byte("a")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("get: %v, want ErrClosed", err)
	}
	if err := s.Scan(nil, func(_, _ []byte) error { return nil }); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("scan: %v, want ErrClosed", err)
	}
}

// testModel compares random commits, reads and reopenings with a map.
func testModel(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		place := t.TempDir()
		s := open(t, place)
		defer func() { s.Close() }()
		model := map[string]string{}
		key := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 1, 3, -1)
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				var unit []kv.Write
				for range rapid.IntRange(0, 5).Draw(rt, "writes") {
					k := key.Draw(rt, "key")
					if rapid.Bool().Draw(rt, "delete") {
						unit = append(unit, del(k))
						delete(model, k)
					} else {
						v := rapid.StringN(0, 20, 40).Draw(rt, "value")
						unit = append(unit, set(k, v))
						model[k] = v
					}
				}
				commit(t, s, unit...)
			},
			"reopen": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "rarely") != 0 {
					rt.Skip()
				}
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = open(t, place)
			},
			"": func(rt *rapid.T) {
				prefix := rapid.SampledFrom([]string{"", "a", "bc"}).Draw(rt, "prefix")
				var want []string
				for _, k := range slices.Sorted(maps.Keys(model)) {
					if len(k) >= len(prefix) && k[:len(prefix)] == prefix {
						want = append(want, k+"="+model[k])
					}
				}
				wantPairs(t, s, prefix, want...)
			},
		})
	})
}
