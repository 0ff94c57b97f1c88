package node

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/lineup"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// faultyShard is a shard with nothing around it but what failed needs.
func faultyShard(t *testing.T, loud bool) *shard {
	t.Helper()
	key, _, err := newKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tools := newTools(Parts{
		Member: Member{Key: key}, Store: kvtest.New(), Clock: stillClock{1}, Config: configs.Default(configs.LAN),
	})
	x := &instances{
		contacts: newContacts(tools, nil), crew: &crew{executor: steps{}}, index: index.New(), usage: newUsage(),
		lineup: lineup.New(), ledger: assignment.NewLedger("me", stillClock{1}), faults: newFaults(loud),
	}
	s := newShard(x, 0)
	x.shards = []*shard{s}
	return s
}

// torn panics below package choreo.
func torn() { new(choreo.Machine).Instance() }

// What panics below a machine is contained. What panics in the node itself goes on, unless
// an instance is read; whoever looks for mistakes has everything go on.
func TestTheBorderIsTheMachine(t *testing.T) {
	own := func() { panic("ours") }
	for _, c := range []struct {
		name          string
		loud, reading bool
		does          func()
		ends, aside   bool
	}{
		{"a machine", false, false, torn, false, true},
		{"a machine that is read", false, true, torn, false, true},
		{"the node", false, false, own, true, false},
		{"the node as it reads", false, true, own, false, false},
		{"a machine, loud", true, false, torn, true, false},
		{"a machine that is read, loud", true, true, torn, true, false},
		{"the node after a machine", false, false, func() {
			defer own()
			torn()
		}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyShard(t, c.loud)
			s.reading = c.reading
			id := workflow.InstanceID{7}
			s.n.index.Put(id, index.Summary{State: workflow.InstanceRunning})
			whole, ended := false, true
			func() {
				defer func() {
					if ended {
						_ = recover()
					}
				}()
				whole = s.contained(id, c.does)
				ended = false
			}()
			if ended != c.ends || whole {
				t.Errorf("it ended the shard: %v, want %v; whole: %v", ended, c.ends, whole)
			}
			if q, aside := s.aside[id]; aside != c.aside || s.n.faults.has(id) != c.aside {
				t.Errorf("the instance is set aside: %v (%s), want %v", aside, q.Why, c.aside)
			}
			if s.within != (workflow.InstanceID{}) {
				t.Error("the shard is still at the instance")
			}
			if ran := false; !c.ends {
				s.reading = false
				s.contained(id, func() { ran = true })
				if ran == c.aside {
					t.Errorf("its machine is used again: %v, want %v", ran, !c.aside)
				}
			}
		})
	}
}

// A machine that is used within its own use ends both, and nothing goes on with it.
func TestAFaultEndsAllThatIsDoneWithTheInstance(t *testing.T) {
	s, id, other := faultyShard(t, false), workflow.InstanceID{7}, workflow.InstanceID{8}
	s.n.index.Put(id, index.Summary{State: workflow.InstanceRunning})
	wentOn := false
	whole := s.contained(other, func() {
		s.contained(id, func() {
			s.contained(id, torn)
			wentOn = true
		})
	})
	if !whole || wentOn || !s.n.faults.has(id) || s.n.faults.has(other) {
		t.Errorf("the other is whole: %v, and it went on with the broken one: %v", whole, wentOn)
	}
}

// The instances that were not taken in are remembered up to a bound, those that were set
// aside always; and of as many places as a liar finds few stacks are logged.
func TestFaultsAreRememberedWithinBounds(t *testing.T) {
	f := newFaults(false)
	kept := workflow.InstanceID{0xff}
	f.add(kept, true)
	for i := range 3 * maxUntaken {
		var id workflow.InstanceID
		binary.BigEndian.PutUint32(id[:], uint32(i+1))
		f.add(id, false)
		f.add(id, false)
		if !f.has(id) || f.untaken() > maxUntaken || len(f.of) > maxUntaken+1 {
			t.Fatalf("after %d instances: the last is known: %v; %d are remembered", i+1, f.has(id), f.untaken())
		}
	}
	if !f.has(kept) {
		t.Error("an instance that was set aside is forgotten")
	}
	logged := 0
	for i := range 3 * maxPlaces {
		if f.first(strings.Repeat("x", i)) {
			logged++
		}
	}
	if logged != maxPlaces || f.first("x") {
		t.Errorf("%d stacks are logged, want %d", logged, maxPlaces)
	}
}

// What a round was to do of an instance that failed is left out of it; all else stays as
// it was, and in its order.
func TestWhatIsLeftOutOfARound(t *testing.T) {
	s, bad, good := faultyShard(t, false), workflow.InstanceID{7}, workflow.InstanceID{8}
	s.n.index.Put(bad, index.Summary{State: workflow.InstanceRunning})
	s.contained(bad, torn)
	errFull := errors.New("disk full")
	var heard []error
	waits := func(err error) { heard = append(heard, err) }
	b := batch{
		touched:  []*held{{id: bad}, {id: good}},
		heads:    map[headsKey][]workflow.InstanceID{{to: "p"}: {good, bad, good}},
		supplies: []supply{{&held{id: bad}, "p"}, {&held{id: good}, "p"}},
		after: []ending{{bad, waits}, {good, func(err error) {
			if err != errFull {
				t.Error("who waits for the other is told too early")
			}
		}}},
		ready: []readied{{h: &held{id: bad}}, {h: &held{id: good}}},
	}
	for i, id := range []workflow.InstanceID{bad, good, bad, good} {
		b.writes = append(b.writes, kv.Write{Key: factKey(id, i)})
	}
	b.opens(0)
	b.opens(1)
	s.leaveOut(&b)
	if len(b.touched) != 1 || len(b.supplies) != 1 || len(b.ready) != 1 || len(b.after) != 1 {
		t.Errorf("left is %+v", b)
	}
	if told := b.heads[headsKey{to: "p"}]; len(told) != 2 {
		t.Errorf("told is what is here of %v, want of the other", told)
	}
	key := func(i int) string { return string(b.writes[i].Key) }
	if len(b.writes) != 3 || key(0) != string(factKey(good, 1)) || key(2) != string(quarantineKey(bad)) {
		t.Errorf("written is %v", b.writes)
	}
	if len(b.open) != 1 || !b.open[0] {
		t.Errorf("what nothing vouches for is %v, want the first", b.open)
	}
	if len(heard) != 1 || heard[0] == nil {
		t.Errorf("who waits for it heard %v, want one error", heard)
	}
	s.lose(b, errFull)
	again := batch{}
	s.leaveOut(&again)
	if len(again.writes) != 1 || string(again.writes[0].Key) != string(quarantineKey(bad)) {
		t.Errorf("after a commit that failed, written is %v, want that it is set aside", again.writes)
	}
}

// Ended instances are compared at once when a digest of theirs has changed, and ever less
// often, up to once an hour, as long as both stay as they are.
func TestWhatDiffersForGoodIsComparedEverLessOften(t *testing.T) {
	l, now := &link{}, time.Hour
	ours, its := []byte("ours"), []byte("its")
	compared := func(want bool, what string) {
		t.Helper()
		if got := l.differs(ours, its, now); got != want {
			t.Errorf("compared %s: %v, want %v", what, got, want)
		}
	}
	compared(true, "at first")
	compared(false, "at once again")
	times := 0
	for range 24 * 60 {
		now += time.Minute
		if l.differs(ours, its, now) {
			times++
		}
	}
	if times < 24 || times > 32 {
		t.Errorf("compared %d times in a day, want once an hour in the end", times)
	}
	its = []byte("other")
	compared(true, "when the partner's digest changed")
	ours = []byte("other ours")
	compared(true, "when our digest changed")
	l.compareSoon()
	compared(true, "when not all could be compared")
	ours = its
	compared(false, "what is the same")
	ours = []byte("ours")
	compared(true, "what was the same meanwhile")
}

// What is stored is set aside, also what is not listed: the list was lost, or only a part of
// what the instance began with is durable. What cannot be read may be stored.
func TestAFaultAtWhatIsStoredButNotListed(t *testing.T) {
	id, other := workflow.InstanceID{7}, workflow.InstanceID{8}
	for _, c := range []struct {
		name   string
		stored kv.Write
		deaf   bool
		aside  bool
	}{
		{name: "a fact", stored: kv.Write{Key: factKey(id, 0), Value: []byte{1}}, aside: true},
		{name: "a summary", stored: kv.Write{Key: index.Key(id), Value: encode(index.Summary{})}, aside: true},
		{name: "a summary of what is deleted",
			stored: kv.Write{Key: index.Key(id), Value: encode(index.Summary{Closed: true})}},
		{name: "a fact of another", stored: kv.Write{Key: factKey(other, 0), Value: []byte{1}}},
		{name: "a store that cannot be read", stored: kv.Write{Key: factKey(other, 0), Value: []byte{1}}, deaf: true,
			aside: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyShard(t, false)
			if err := s.n.store.CommitWait([]kv.Write{c.stored}); err != nil {
				t.Fatal(err)
			}
			if c.deaf {
				s.n.store = deafStore{s.n.store}
			}
			s.contained(id, torn)
			if _, aside := s.aside[id]; aside != c.aside || !s.n.faults.has(id) {
				t.Errorf("set aside: %v, want %v", aside, c.aside)
			}
		})
	}
}

// deafStore cannot be read.
type deafStore struct{ Store }

func (deafStore) Get([]byte) ([]byte, error) { return nil, errors.New("no answer") }

func (deafStore) Scan([]byte, func(key, value []byte) error) error { return errors.New("no answer") }

// An instance comes out of quarantine and fails in the round in which a new incarnation
// begins: it is set aside for the fault, not for what it was set aside for before.
func TestAFaultInARoundThatIsDropped(t *testing.T) {
	s, id := faultyShard(t, false), workflow.InstanceID{7}
	before := index.SetAside{Since: 1, Why: "its workflow cannot be read"}
	s.n.index.SetAside(id, before)
	h := &held{id: id, was: &before}
	s.enlist(h)
	s.touch(h)
	s.contained(id, torn)
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if q := s.aside[id]; !q.Fault {
		t.Errorf("it is set aside since %s", q.Why)
	}
	b := batch{}
	s.leaveOut(&b)
	if len(b.writes) != 1 || string(b.writes[0].Key) != string(quarantineKey(id)) || b.writes[0].Delete {
		t.Errorf("the next round writes %v, want that it is set aside", b.writes)
	}
}

// looks has a shard do nothing but look.
type looks struct{ steps }

func (looks) handed(s *shard) {
	for _, e := range s.local {
		e.look(s)
	}
	s.local = nil
}

// A list of what all shards hold is not given without what could not be read; the next one is.
func TestAMistakeAsAListIsReadFailsTheList(t *testing.T) {
	s, id := faultyShard(t, false), workflow.InstanceID{7}
	s.enlist(&held{id: id})
	broken := true
	list := func() ([]int, error) {
		return lookAt(t.Context(), s.n.crew, func(s *shard) (n int) {
			s.each(func(workflow.InstanceID, *held) {
				if broken {
					panic("ours")
				}
				n++
			})
			return n
		})
	}
	s.n.crew.executor = looks{}
	if found, err := list(); err == nil {
		t.Errorf("the list is %v although an instance could not be read", found)
	}
	broken = false
	if found, err := list(); err != nil || len(found) != 1 || found[0] != 1 {
		t.Errorf("afterwards the list is %v, %v", found, err)
	}
}

// Whoever makes up instances at which this program fails fills the log no faster than a
// line a minute, and takes no lines from others. The first at each place is always there.
func TestFaultsInTheLogAreRationed(t *testing.T) {
	s := faultyShard(t, false)
	lines := &bytes.Buffer{}
	s.log = slog.New(slog.NewTextHandler(lines, nil))
	fail := func(from workflow.PartnerID, i uint32, place string) {
		var id workflow.InstanceID
		binary.BigEndian.PutUint32(id[:], i)
		s.heard = from
		s.failed(id, &fault{"what", place, true})
	}
	for i := range uint32(1000) {
		fail("liar", i, "a place")
	}
	logged := func() int { return strings.Count(lines.String(), "level=ERROR") }
	if n := logged(); n != faultLines.Burst+1 {
		t.Errorf("a liar brings about %d lines, want %d", n, faultLines.Burst+1)
	}
	before := logged()
	fail("other", 1000, "a place")
	fail("liar", 1001, "another place")
	if n := logged() - before; n != 2 {
		t.Errorf("of another member, and of another place, are %d lines, want 2", n)
	}
}
