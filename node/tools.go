package node

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// tools are what every part of a node works with: who it is, its disk, its clocks, chance,
// and where it says what people should see. All of it may be used by several goroutines.
type tools struct {
	member   Member // with the certificate that it was started with
	config   configs.Config
	store    Store
	clock    Clock
	chance   func() float64   // a number in [0, 1)
	random   func(int) []byte // so many random bytes
	log      *slog.Logger
	events   *feed
	counters *counters
	troubles *troubles
	nudged   chan struct{} // capacity 1: something is due earlier
}

// newTools takes them from the parts, with what is missing made up.
func newTools(p Parts) *tools {
	p.Member.id = p.Member.ID()
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Chance == nil {
		p.Chance = rand.Float64
	}
	if p.Random == nil {
		p.Random = random
	}
	t := &tools{
		member: p.Member, config: p.Config, clock: p.Clock, chance: p.Chance, random: p.Random, log: p.Logger,
		events: newFeed(p.Clock), nudged: make(chan struct{}, 1),
		counters: &counters{of: map[string]*atomic.Uint64{}}, troubles: &troubles{of: map[string]string{}},
	}
	t.store = watchedStore{p.Store, t.troubled}
	return t
}

// count counts something for people.
func (t *tools) count(name string, by uint64) { t.counters.add(name, by) }

// spread is a chance part of d, which keeps nodes from acting at one moment.
func (t *tools) spread(d time.Duration) time.Duration {
	return time.Duration(t.chance() * float64(d))
}

// nudge has the node look at once for what is due.
func (t *tools) nudge() {
	select {
	case t.nudged <- struct{}{}:
	default:
	}
}

// counters count what people may want to know, by name.
type counters struct {
	mu sync.Mutex // guards of
	of map[string]*atomic.Uint64
}

func (c *counters) add(name string, by uint64) {
	c.mu.Lock()
	x := c.of[name]
	if x == nil {
		x = &atomic.Uint64{}
		c.of[name] = x
	}
	c.mu.Unlock()
	x.Add(by)
}

// all are the counters as they stand.
func (c *counters) all() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]uint64, len(c.of))
	for name, x := range c.of {
		out[name] = x.Load()
	}
	return out
}

// troubles are what is wrong with this node and lasts, in words for people.
type troubles struct {
	mu sync.Mutex // guards of
	of map[string]string
}

// note says that something is wrong, or if why is empty that it is not any more.
func (t *troubles) note(what, why string) (was string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was = t.of[what]
	delete(t.of, what)
	if why != "" {
		t.of[what] = why
	}
	return was
}

// set is note for those that do not ask what was wrong before.
func (t *troubles) set(what, why string) { t.note(what, why) }

// why is what is wrong with something; empty: nothing.
func (t *troubles) why(what string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[what]
}

// list is all that is wrong, in the order of what it is about.
func (t *troubles) list() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(t.of)) {
		out = append(out, t.of[what])
	}
	return out
}

// texts are names as texts.
func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, x := range in {
		out[i] = string(x)
	}
	return out
}

// errUnwritten is the error of a commit that failed. Whether it is on the disk all the same
// may not be known; nothing follows from it before it is read there.
var errUnwritten = errors.New("it could not be stored")

// errRestored ends what was under way when it turned out that the store had
// been put back.
var errRestored = errors.New(
	"the node's store was restored from a backup and its instances are being loaded again: look, and try once more")

// unwritten is the error of a commit, which went as err says.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnwritten, err)
}

// watchedStore reports how every commit went, by whatever part of the node.
type watchedStore struct {
	Store
	told func(error)
}

func (w watchedStore) Commit(writes []kv.Write, done func(error)) {
	w.Store.Commit(writes, func(err error) {
		w.told(err)
		done(unwritten(err))
	})
}

func (w watchedStore) CommitWait(writes []kv.Write) error {
	err := w.Store.CommitWait(writes)
	w.told(err)
	return unwritten(err)
}

// troubled notes how the last commit went, for status and for people.
func (t *tools) troubled(err error) {
	why := ""
	if err != nil {
		why = "cannot write: " + err.Error()
	}
	was := t.troubles.note("store", why)
	switch {
	case err == nil && was != "":
		t.log.Info("the store takes writes again")
	case err != nil && was == "":
		t.events.publish(api.Event{At: t.clock.Now().Wall, Kind: "trouble", Text: why})
	}
}

// random is n random bytes.
func random(n int) []byte {
	b := make([]byte, n)
	if _, err := cryptorand.Read(b); err != nil {
		panic(err) // crypto/rand never fails on the systems that Go supports
	}
	return b
}
