package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file takes instances up again that were set aside (quarantine.go).

// askForAside asks a partner for the instances that are set aside here and that it
// may have.
func (s *shard) askForAside(p workflow.PartnerID) {
	for _, id := range slices.SortedFunc(maps.Keys(s.aside), workflow.InstanceID.Compare) {
		if s.aside[id].Fault {
			continue // what comes would lead to the same
		}
		if sum, _ := s.n.index.Get(id); sum.With == "" || slices.Contains(strings.Fields(sum.With), string(p)) {
			s.sendHeads(p, id, wire.Ask)
		}
	}
}

// readmit takes an instance up again that was set aside: as it is stored, if only its
// definition was missing, else with the facts that a partner sent. Those that can
// still be read here are kept for it (see keep).
func (s *shard) readmit(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) (*held, error) {
	id, q := f.Instance, s.aside[f.Instance]
	h, err := s.reopen(id, q, f)
	if err != nil {
		h, err = s.rebuild(from, f, facts)
	}
	if err != nil {
		s.aside[id] = q
		return nil, err
	}
	s.batch.writes = append(s.batch.writes, kv.Write{Key: quarantineKey(id), Delete: true})
	h.was = &q
	return h, nil
}

// reopenAlone takes up the damaged instances in which nobody else takes part, as far as
// can be read, with what is left of them: there is nobody to ask.
func (s *shard) reopenAlone() error {
	for _, id := range slices.SortedFunc(maps.Keys(s.aside), workflow.InstanceID.Compare) {
		if !s.aside[id].Lost {
			continue
		}
		kept, _, err := s.salvage(id)
		if err != nil {
			return err
		}
		s.contained(id, func() { s.reopenIfAlone(id, kept) })
	}
	return nil
}

// reopenIfAlone is reopenAlone of one, of which so much can be read.
func (s *shard) reopenIfAlone(id workflow.InstanceID, kept []fact.Received) {
	if !s.n.isOwnAffair(id, kept) {
		return
	}
	h, err := s.readmit(s.n.member.ID(), &wire.Facts{Instance: id}, kept[:1])
	if err != nil {
		s.log.Error("an instance cannot be opened with what is left of it", "instance", id, "error", err)
		return
	}
	s.putBack(h)
	s.touch(h)
	s.n.losses.lost("some facts of instance %s, in which nobody else takes part: it goes on with what is left", id)
}

// isOwnAffair reports whether facts begin an instance, and name nobody but this node.
func (x *instances) isOwnAffair(id workflow.InstanceID, facts []fact.Received) bool {
	self := x.member.ID()
	if len(facts) == 0 || facts[0].Fact.Body.Genesis == nil || fact.InstanceOf(facts[0].ID) != id {
		return false
	}
	def, err := x.definitions.Get(facts[0].Fact.Body.Genesis.Definition)
	if err != nil {
		return false
	}
	m, err := choreo.Open(x.self(), def.Def, def.Plan, facts[0])
	return err == nil && !slices.ContainsFunc(m.Audience(), func(p workflow.PartnerID) bool { return p != self }) &&
		!slices.ContainsFunc(facts, func(f fact.Received) bool { return f.Fact.Chain.Author != self })
}

// reopen loads an instance of which nothing is lost, with the definition that a
// partner sent.
func (s *shard) reopen(id workflow.InstanceID, q index.SetAside, f *wire.Facts) (*held, error) {
	delete(s.aside, id)
	if q.Lost {
		return nil, errUnknownInstance
	}
	// see library.Topic.ReadAhead
	if def := s.n.definitions.Fresh(workflow.Hash(sha256.Sum256(f.Definition))); def != nil {
		if err := s.n.definitions.Keep(def); err != nil {
			return nil, err
		}
	}
	return s.find(id)
}

// rebuild adopts an instance as if it were new. What is stored of it is kept beside it,
// as far as it can be read.
func (s *shard) rebuild(from workflow.PartnerID, f *wire.Facts, facts []fact.Received) (*held, error) {
	delete(s.aside, f.Instance)
	kept, keys, err := s.salvage(f.Instance)
	if err != nil {
		return nil, err
	}
	h, err := s.adopt(from, f, facts)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		s.batch.writes = append(s.batch.writes, kv.Write{Key: key, Delete: true})
	}
	for i, k := range kept {
		s.batch.writes = append(s.batch.writes,
			kv.Write{Key: keptKey(f.Instance, i), Value: encode([]storedFact{{Raw: k.Raw, Att: k.Att}})})
	}
	h.kept = kept
	waits, err := s.readWaits(f.Instance)
	if err != nil {
		return h, err
	}
	waits.Waits.Known = 0 // these are other facts, in other places
	h.m.RestoreWaits(waits)
	return h, nil
}

// salvage reads what can be read of an instance's facts, each once, and says where they lie: what was kept beside an
// instance before may have come again from partners since, which can happen any number of times.
func (s *shard) salvage(id workflow.InstanceID) (kept []fact.Received, keys [][]byte, err error) {
	at := map[fact.ID]int{}
	keep := func(r fact.Received, _ int64) {
		switch i, known := at[r.ID]; {
		case !known:
			at[r.ID] = len(kept)
			kept = append(kept, r)
		case kept[i].Att == nil:
			kept[i] = r
		}
	}
	for _, prefix := range [][]byte{factPrefix(id), keptPrefix(id)} {
		err := scanPast(s.n.store, prefix, len(factKey(id, 0)), func(key, value []byte) {
			keys = append(keys, bytes.Clone(key))
			// what cannot be read partners have
			_ = readFacts(value, keep)
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return kept, keys, nil
}

// maxFailedScans bounds how often reading may fail while an instance is saved. Each
// place that is damaged costs two at most, beside those of the instance as a whole.
const maxFailedScans = 4096

// scanPast calls fn for each entry under a prefix that can be read, in order: where
// reading stops at one that is damaged, it goes on with the next, by prefixes that are
// longer by a byte, up to whole keys. When it has failed too often, it ends with what
// was read: as for what is damaged, partners have the rest.
func scanPast(store Store, prefix []byte, whole int, fn func(key, value []byte)) error {
	failed := 0
	return scanParts(store, prefix, whole, &failed, fn)
}

func scanParts(store Store, prefix []byte, whole int, failed *int, fn func(key, value []byte)) error {
	type entry struct{ key, value []byte }
	var read []entry
	err := store.Scan(prefix, func(key, value []byte) error {
		read = append(read, entry{bytes.Clone(key), bytes.Clone(value)})
		return nil
	})
	if err == nil {
		for _, e := range read {
			fn(e.key, e.value)
		}
		return nil
	}
	if !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	*failed++
	for b := 0; b < 256 && len(prefix) < whole && *failed < maxFailedScans; b++ {
		if err := scanParts(store, append(bytes.Clone(prefix), byte(b)), whole, failed, fn); err != nil {
			return err
		}
	}
	return nil
}

// putBack inserts saved facts whose past is here by now and that something vouches for;
// own ones that were never sent have no attestation yet. It reports whether any was new.
func (s *shard) putBack(h *held) bool {
	if len(h.kept) == 0 {
		return false
	}
	self := s.n.member.ID()
	for i, k := range h.kept {
		if k.Att == nil && k.Fact.Chain.Author == self {
			h.kept[i].Att = fact.Attest([]fact.ID{k.ID},
				func(domain string, msg []byte) []byte { return trust.Sign(s.n.member.Key, domain, msg) })[0]
		}
	}
	added, all := h.m.PutBack(h.kept)
	if all { // else some lack their past or what vouches for them, or are worth nothing
		for i := range h.kept {
			s.batch.writes = append(s.batch.writes, kv.Write{Key: keptKey(h.m.Instance(), i), Delete: true})
		}
		h.kept = nil
	}
	return added > 0
}

// readmitted notes that an instance is whole again, once that is durable.
func (s *shard) readmitted(h *held) {
	if h.was == nil {
		return
	}
	h.was = nil
	id := h.m.Instance()
	s.n.index.TakeBack(id)
	s.n.count("readmitted", 1)
	s.n.log.Info("an instance that was set aside goes on", "instance", id)
}
