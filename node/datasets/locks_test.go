package datasets_test

import (
	"crypto/ed25519"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// nowhere is a store in which nothing is, and a clock that stands still.
type nowhere struct{}

func (nowhere) Now() moment.Now { return moment.Now{Wall: time.UnixMilli(1)} }

func (nowhere) Commit(_ []kv.Write, done func(error)) { done(nil) }

func (nowhere) CommitWait([]kv.Write) error { return nil }

func (nowhere) Get([]byte) ([]byte, error) { return nil, kv.ErrNotFound }

func (nowhere) Scan([]byte, func(key, value []byte) error) error { return nil }

// nobody is a partner list on which nobody is.
type nobody struct{}

func (nobody) All() []membership.Partner { return nil }

func (nobody) Get(workflow.PartnerID) (membership.Partner, bool) { return membership.Partner{}, false }

func (nobody) Label(p workflow.PartnerID) string { return string(p) }

// This node's record asks for the data sets with its lock held, and who registers a data
// set asks whether the record could say it: neither waits for the other for ever.
func TestRecordAndDataSetsDoNotWaitForEachOther(t *testing.T) {
	const times = 50
	var (
		none nowhere
		key  = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		self = trust.IDOf(key.Public().(ed25519.PublicKey))
		mesh = trust.Mesh{Name: "team", Founder: self}
	)
	chain, err := trust.Issuer{Mesh: mesh, Key: key}.Issue(trust.Certificate{
		Partner: self, Name: "ana", Serial: trust.Serial{1}, NotAfter: 1 << 30,
	})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := datasets.Load(none, none)
	if err != nil {
		t.Fatal(err)
	}
	own, err := profile.Load(profile.Surroundings{
		Self: self, Key: key, Config: configs.Default(configs.LAN), Store: none, Offer: sets.Offer,
		Chain: func() trust.Chain { return chain }, List: func(membership.Record) error { return nil },
	}, trust.Incarnation{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	announce := func() error {
		_, err := own.Republish(nil, func(*membership.Record) {})
		return err
	}
	if err := announce(); err != nil {
		t.Fatal(err)
	}
	topic := datasets.New(sets, datasets.Surroundings{
		Self: self, Mesh: mesh, Clock: none, Members: nobody{}, Check: own.Check, Announce: announce,
	})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range times {
				if err := announce(); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range times {
				if _, err := topic.Add(fmt.Sprintf("map-%d", i), []byte("x"), api.DataTerms{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	r, err := own.Publish(func(*membership.Record) {})
	if err != nil || len(r.DataSets) != 4 || r.Version.Seq < 8*times {
		t.Errorf("record %s offers %d data sets, %v: want 4", r.Version, len(r.DataSets), err)
	}
}
