// Package profile keeps what a node says of itself: its record, its signs of life, and
// what a user set in its profile.
//
// Promises: each record and each sign of life has a number of its own, higher than the
// last; a profile is durable before a record says it, and nothing is taken over that a
// record could not say. An [Own] is used by many goroutines at once; while it holds its
// lock it asks for this node's certificate and for what it offers, and publishes.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports configs, membership, membership/trust, node/api, node/codec,
// node/store/kv, node/wire and workflow; node imports it.
package profile

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Key is the key under which is stored what was set in the profile, as the node's keys
// for single values are.
const Key = "mprofile"

// Store keeps the profile.
type Store interface {
	CommitWait(writes []kv.Write) error
	Get(key []byte) ([]byte, error)
}

// Surroundings are what a profile needs of the rest of a node.
type Surroundings struct {
	Self   workflow.PartnerID
	Key    ed25519.PrivateKey
	Config configs.Config
	Store  Store
	// Chain is this node's present certificate.
	Chain func() trust.Chain
	// Offer enters the data sets that this node has to give.
	Offer func(*membership.Record)
	// List puts a record of this node's on its own partner list.
	List func(membership.Record) error
}

// Own is this node's own record. It may be used by several goroutines.
type Own struct {
	in Surroundings

	mu     sync.Mutex // guards what follows
	record membership.Record
	beat   uint64 // the last record's number, or sign of life's
	set    stored
}

// Load reads the profile of a node in its present incarnation and boot.
func Load(in Surroundings, inc trust.Incarnation, boot uint64) (*Own, error) {
	first := membership.Version{Boot: boot}
	o := &Own{in: in, record: membership.Record{Partner: in.Self, Incarnation: inc, Version: first}}
	b, err := in.Store.Get([]byte(Key))
	if errors.Is(err, kv.ErrNotFound) {
		return o, nil
	}
	if err == nil {
		err = codec.Decode(b, &o.set)
	}
	if err != nil {
		return nil, fmt.Errorf("the stored profile cannot be read: %w", err)
	}
	return o, nil
}

// Publish signs and lists this node's record, changed by fn.
func (o *Own) Publish(fn func(*membership.Record)) (membership.Record, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat++
	o.record.Version.Seq, o.record.Chain = o.beat, o.in.Chain()
	fn(&o.record)
	o.record = o.record.Sign(o.in.Key)
	return o.record, o.in.List(o.record)
}

// Republish is Publish with what this node says of itself now, and where it is, before fn.
func (o *Own) Republish(addrs []string, fn func(*membership.Record)) (membership.Record, error) {
	return o.Publish(func(r *membership.Record) {
		r.Addresses = addrs
		o.set.fill(r, o.in.Config)
		o.in.Offer(r)
		fn(r)
	})
}

// Check returns an error if this node's record could not say what fn changes in it.
func (o *Own) Check(fn func(*membership.Record)) error {
	o.mu.Lock()
	r := o.record
	r.Chain = o.in.Chain()
	o.mu.Unlock()
	fn(&r)
	return r.Sign(o.in.Key).Verify()
}

// Reborn and Rebooted have the node's later records tell a new incarnation, and a boot
// counter from which versions begin again.
func (o *Own) Reborn(inc trust.Incarnation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record.Incarnation = inc
}

// Rebooted has later records tell a boot counter: see Reborn.
func (o *Own) Rebooted(boot uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.record.Version.Boot = boot
}

// Heartbeat signs that the own record still holds, with this node's load and what it
// knows of work.
func (o *Own) Heartbeat(load membership.PerMille, work []membership.Work) membership.Beat {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat++
	return membership.Beat{
		Partner: o.in.Self, Version: membership.Version{Boot: o.record.Version.Boot, Seq: o.beat},
		Base: o.record.Version.Seq, Load: load, Work: membership.EncodeWork(work),
	}.Sign(o.in.Key)
}

// Pulse is that for partners that need no signature.
func (o *Own) Pulse(load membership.PerMille) *wire.Pulse {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &wire.Pulse{Record: o.record.Version, Load: load}
}

// ConnectionTime is how long others may go without hearing of this node.
func (o *Own) ConnectionTime() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cmp.Or(o.set.ConnectionTime, o.in.Config.ConnectionTime)
}

// LoadPause is how long a changed load waits after a beat before it is told: beats for
// its sake are at most five times those that are due anyway.
func (o *Own) LoadPause() time.Duration { return o.ConnectionTime() / 16 }

// Described is a record with what this node says of itself.
func (o *Own) Described() membership.Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := membership.Record{Partner: o.in.Self, Chain: o.in.Chain()}
	o.set.fill(&r, o.in.Config)
	return r
}

// Announced are the applications that a user said this node runs, beside the configured
// ones.
func (o *Own) Announced() []workflow.ApplicationName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.set.Applications)
}

// Runs reports whether this node has an application, as a user said or as it is configured.
func (o *Own) Runs(a workflow.ApplicationName) bool {
	_, configured := o.in.Config.Applications[a]
	return configured || slices.Contains(o.Announced(), a)
}

// Set checks, stores and takes over a change. Its errors are for users.
func (o *Own) Set(c api.ProfileChange) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, err := o.set.changed(c)
	if err != nil {
		return err
	}
	r := o.record
	r.Chain = o.in.Chain()
	s.fill(&r, o.in.Config)
	if err := r.Sign(o.in.Key).Verify(); err != nil {
		return api.Judge(api.Invalid, err)
	}
	if err := o.in.Store.CommitWait([]kv.Write{{Key: []byte(Key), Value: codec.Encode(s)}}); err != nil {
		return err
	}
	o.set = s
	return nil
}
