package node

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// shelf is a store in memory that can be slow, and of which parts can be unreadable.
type shelf struct {
	mu    sync.Mutex
	data  map[string][]byte
	takes func() time.Duration
	blind map[string]error
}

func newShelf() *shelf {
	return &shelf{data: map[string][]byte{}, takes: func() time.Duration { return 0 }, blind: map[string]error{}}
}

// Commit is not used by definitions.
func (s *shelf) Commit(writes []kv.Write, done func(error)) { done(s.CommitWait(writes)) }

// CommitWait implements Store.
func (s *shelf) CommitWait(writes []kv.Write) error {
	s.mu.Lock()
	d := s.takes()
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range writes {
		if s.data[string(w.Key)] = w.Value; w.Delete {
			delete(s.data, string(w.Key))
		}
	}
	return nil
}

// Get implements Store.
func (s *shelf) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.blind[string(key)]; err != nil {
		return nil, err
	}
	v, ok := s.data[string(key)]
	if !ok {
		return nil, kv.ErrNotFound
	}
	return v, nil
}

// Scan implements Store.
func (s *shelf) Scan(prefix []byte, fn func(key, value []byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.data {
		if strings.HasPrefix(k, string(prefix)) {
			if err := fn([]byte(k), v); err != nil {
				return err
			}
		}
	}
	return nil
}

func shelved(t *testing.T, limit int) (*definitions, *shelf) {
	t.Helper()
	s := newShelf()
	d, err := loadDefinitions(s, limit, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

// tiny is the n-th of many definitions.
func tiny(t *testing.T, n int) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("test.yaml", fmt.Appendf(nil, "workflow: tiny-%d\ntasks: {a: {}}\n", n))
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, def).def
}

// decoded is a definition as it comes from elsewhere.
func decoded(t *testing.T, def *workflow.Definition) *definition {
	t.Helper()
	e, err := decodeDefinition(def.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func entryOf(def *workflow.Definition, edit uint64, removed bool) wire.Definition {
	return wire.Definition{Stamp: wire.DefinitionStamp{Hash: def.Hash(), Edit: edit, Removed: removed}, Canonical: def.Canonical()}
}

// A removal of what is not listed here says nothing new: it is not kept, however
// often it comes, whatever comes with it.
func TestRemovalOfWhatIsNotListed(t *testing.T) {
	d, s := shelved(t, 2)
	for i := range 10 {
		if news, err := d.merge(entryOf(tiny(t, i), 2, true)); news || err != nil {
			t.Errorf("the removal of what was never here is news: %t, %v", news, err)
		}
	}
	if len(s.data) > 0 {
		t.Errorf("%d removals of what was never here are kept", len(s.data))
	}
	for i := range 5 {
		l, err := d.add(tiny(t, i))
		if err == nil {
			_, err = d.remove(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		w := entryOf(tiny(t, i), 2, true)
		w.Canonical = nil
		if news, err := d.merge(w); news || err != nil {
			t.Errorf("the removal %d that was forgotten is news when a partner repeats it: %t, %v", i, news, err)
		}
	}
}

// What there was no room for is no trouble any more when whoever listed it
// removes it.
func TestNoRoomForWhatIsRemoved(t *testing.T) {
	d, _ := shelved(t, 1)
	if _, err := d.add(tiny(t, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.merge(entryOf(tiny(t, 1), 1, false)); !errors.Is(err, errNoRoom) || d.trouble() == "" {
		t.Fatalf("a second workflow: %v, trouble %q", err, d.trouble())
	}
	w := entryOf(tiny(t, 1), 2, true)
	w.Canonical = nil
	if _, err := d.merge(w); err != nil || d.trouble() != "" {
		t.Errorf("after its removal: %v, trouble %q", err, d.trouble())
	}
}

// A definition that came with an instance while it was being listed stays listed.
func TestDefinitionsChangeOneAfterTheOther(t *testing.T) {
	d, s := shelved(t, 10)
	first := make(chan struct{})
	takes := []time.Duration{50 * time.Millisecond, 0}
	s.takes = func() time.Duration {
		next := takes[0]
		if takes = takes[1:]; len(takes) == 1 {
			close(first)
		}
		return next
	}
	def := tiny(t, 0)
	kept, came := make(chan error, 1), decoded(t, def)
	go func() { kept <- d.keep(came) }()
	<-first
	if news, err := d.merge(entryOf(def, 1, false)); !news || err != nil {
		t.Errorf("what a partner lists is news: %t, %v", news, err)
	}
	if err := <-kept; err != nil {
		t.Error(err)
	}
	if len(d.list()) != 1 {
		t.Error("it is not listed")
	}
}

// Nobody can make a definition's removal or addition impossible by numbering it
// as highly as is allowed.
func TestEditsDoNotRunOut(t *testing.T) {
	d, _ := shelved(t, 10)
	other, _ := shelved(t, 10)
	for _, x := range []*definitions{d, other} {
		if _, err := x.merge(entryOf(tiny(t, 0), maxEdit, false)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := d.remove(d.list()[0])
	if err != nil {
		t.Fatal(err)
	}
	if news, err := other.merge(w); !news || err != nil || len(other.list()) > 0 {
		t.Errorf("its removal is news to a partner: %t, %v; listed there: %d", news, err, len(other.list()))
	}
	if _, err := d.add(tiny(t, 0)); err == nil {
		t.Error("what nobody else would list can be added again")
	}
}

// One definition that cannot be read keeps no other from a partner.
func TestUnreadableDefinition(t *testing.T) {
	d, s := shelved(t, 10)
	for i := range 5 {
		if _, err := d.add(tiny(t, i)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := loadDefinitions(s, 10, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range d.entries {
		l.parsed = weak.Pointer[definition]{}
	}
	s.blind[string(definitionKey(d.stamps()[0].Hash))] = errors.New("bad block")
	sent, failed := 0, 0
	for _, err := range d.newer(nil) {
		if sent++; err != nil {
			sent, failed = sent-1, failed+1
		}
	}
	if sent != 4 || failed != 1 {
		t.Errorf("%d were sent, %d could not be read", sent, failed)
	}
}
