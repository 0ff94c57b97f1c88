package evictions_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/evictions"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// world is all that surrounds the evictions of one node, and what happened in it.
type world struct {
	issuer  trust.Issuer
	members []membership.Partner
	full    bool // the disk
	stored  map[string][]byte
	said    []string // what happened, in order
}

func (w *world) CommitWait(writes []kv.Write) error {
	if w.full {
		return kv.ErrFull
	}
	w.say("stored")
	for _, x := range writes {
		w.stored[string(x.Key)] = x.Value
	}
	return nil
}

func (w *world) Scan(prefix []byte, fn func(key, value []byte) error) error {
	for k, v := range w.stored {
		if strings.HasPrefix(k, string(prefix)) {
			if err := fn([]byte(k), v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// happened is what happened since it was last asked.
func (w *world) happened() string {
	out := strings.Join(w.said, ", ")
	w.said = nil
	return out
}

func (w *world) Now() moment.Now { return moment.Now{Wall: time.Unix(1000, 0)} }

func (w *world) UpPeers() []workflow.PartnerID { return []workflow.PartnerID{"ana", "bea"} }

func (w *world) Transmit(p workflow.PartnerID, m *wire.Message) {
	switch e := m.Evictions; {
	case e.Asks:
		w.say("%s is asked", p)
	case len(e.List) > 0:
		w.say("%s is sent %d", p, len(e.List))
	default:
		w.say("%s is told the digest", p)
	}
}

func (w *world) Broadcast(m *wire.Message) { w.Transmit("everybody", m) }

func (w *world) Refuse(why string, p workflow.PartnerID) { w.say("%s of %s refused", why, p) }

func (w *world) Asks() bool { return false }

func (w *world) Request(context.Context, workflow.PartnerID, []string, string, []byte, time.Duration) ([]byte, error) {
	return nil, errors.New("nobody answers")
}

func (w *world) All() []membership.Partner { return w.members }

func (w *world) Get(p workflow.PartnerID) (membership.Partner, bool) {
	i := slices.IndexFunc(w.members, func(x membership.Partner) bool { return x.Record.Partner == p })
	if i < 0 {
		return membership.Partner{}, false
	}
	return w.members[i], true
}

func (w *world) Review() []membership.Event { return nil }

func (w *world) Announce([]membership.Event) { w.say("announced") }

func (w *world) ResolveWhole(ref string) (workflow.PartnerID, error) {
	return workflow.PartnerID(ref), nil
}

func (w *world) Name(p workflow.PartnerID) string { return string(p) }

func (w *world) MayAdminister(string) error { return nil }

func (w *world) Issuer() trust.Issuer { return w.issuer }

func (w *world) CutUnwelcome() { w.say("the unwelcome cut") }

func (w *world) CheckStanding() error { return nil }

// found is the world of a founder's node, with mal among the members.
func found(t *testing.T) (w *world, set *evictions.Set, topic *evictions.Topic, mal trust.Chain) {
	t.Helper()
	key := func(seed byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
	}
	id := func(k ed25519.PrivateKey) workflow.PartnerID { return trust.IDOf(k.Public().(ed25519.PublicKey)) }
	mesh := trust.Mesh{Name: "team", Founder: id(key(1))}
	w = &world{issuer: trust.Issuer{Mesh: mesh, Key: key(1)}, stored: map[string][]byte{}}
	mal, err := w.issuer.Issue(trust.Certificate{
		Partner: id(key(2)), Name: "mal", Serial: trust.Serial{2}, NotAfter: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.members = []membership.Partner{{Record: membership.Record{Partner: id(key(2)), Chain: mal}}}
	set, err = evictions.Load(mesh, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	topic = evictions.New(set, evictions.Surroundings{
		Self: mesh.Founder, Mesh: mesh, Peers: w, Members: w, Certificates: w, Clock: w,
		Log: slog.New(slog.DiscardHandler), Nudge: func() {}, Chance: func() float64 { return 0 },
		Aside: func(fn func()) { fn() }, Issued: func(workflow.PartnerID) []trust.Serial { return nil },
		Unseen: func(string) []trust.Chain { return nil },
	})
	return w, set, topic, mal
}

// An eviction is durable before anybody hears of it; it is there after a restart, and
// partners that do not have it are sent it.
func TestAnEvictionIsStoredThenTold(t *testing.T) {
	w, set, topic, mal := found(t)
	set.Digest() // of none
	w.full = true
	id := mal.Leaf().Partner
	if _, err := topic.Evict(api.EvictRequest{Partner: string(id)}); !errors.Is(err, kv.ErrFull) || w.happened() != "" {
		t.Errorf("with a full disk: %v", err)
	}
	w.full = false
	if _, err := topic.Evict(api.EvictRequest{Partner: string(id)}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.happened(), "stored, ana is sent 1, bea is sent 1, announced, the unwelcome cut"; got != want {
		t.Errorf("what happened: %s; want %s", got, want)
	}
	again, err := evictions.Load(w.issuer.Mesh, w, nil)
	if err != nil || !errors.Is(again.Check(mal), trust.ErrRevoked) || !again.KeyEvicted(id) || again.Proof(id) == nil {
		t.Errorf("after a restart the evicted is let in: %v, %v", again.Check(mal), err)
	}
	if set.Digest() != again.Digest() || testing.AllocsPerRun(10, func() { set.Digest() }) > 0 {
		t.Error("the digest is not that of what is known, or is worked out each time")
	}
	topic.Take("ana", &wire.Message{Evictions: &wire.Records{Asks: true}})
	if got, want := w.happened(), "ana is sent 1"; got != want {
		t.Errorf("ana asks: %s; want %s", got, want)
	}
}

// An eviction of another's making counts at once, even if it cannot be stored, and is
// passed on to all but the one that told of it. What is no eviction is refused; that this
// node's disk is full is no fault of whoever sent it.
func TestAnEvictionCountsAtOnce(t *testing.T) {
	teller, _, telling, mal := found(t)
	if _, err := telling.Evict(api.EvictRequest{Partner: string(mal.Leaf().Partner)}); err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	for _, b := range teller.stored {
		list = append(list, b)
	}
	w, set, topic, _ := found(t)
	var greeting wire.Message
	telling.Greet("us", &greeting)
	topic.Take("ana", &greeting)
	if got, want := w.happened(), "ana is asked"; got != want {
		t.Errorf("ana has another digest: %s; want %s", got, want)
	}
	w.full = true
	topic.Take("bea", &wire.Message{Evictions: &wire.Records{
		List: append(list, []byte("junk")),
	}}) // before ana answers
	if got, want := w.happened(), "eviction of bea refused, ana is sent 1, announced, the unwelcome cut"; got != want { // the junk
		t.Errorf("what happened: %s; want %s", got, want)
	}
	if err := set.Check(mal); !errors.Is(err, trust.ErrRevoked) {
		t.Errorf("the evicted is let in: %v", err)
	}
	topic.Take("bea", &wire.Message{Evictions: &wire.Records{List: list}})
	if got := w.happened(); got != "" {
		t.Errorf("what is known already: %s", got)
	}
}
