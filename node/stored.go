package node

import (
	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about how facts are kept. What one round adds to an instance lies together, in one entry of the
// store: each entry costs about as much as a small fact. Its key names the place of the first.

// storedFact is how a fact is kept; an entry has a list of them.
type storedFact struct {
	_    struct{} `cbor:",toarray"`
	Raw  []byte
	Att  *fact.Attestation
	Came int64 // when it was stored here, ms by the wall clock; 0: it is our own
}

// maxTogether is how many bytes of facts lie in one entry, unless a single one has more: what cannot be read
// any more is lost with the whole entry.
const maxTogether = 16 << 10

// storeFacts appends the writes of facts that came or were made at a moment (ms), in the order of their places.
func (b *batch) storeFacts(id workflow.InstanceID, facts []choreo.Stored, now int64) {
	for len(facts) > 0 {
		n := together(facts)
		entry := make([]storedFact, n)
		for i, f := range facts[:n] {
			entry[i] = storedFact{Raw: f.Raw, Att: f.Att}
			if !f.Own {
				entry[i].Came = now
			}
		}
		if facts[n-1].Open {
			b.opens(len(b.writes))
		}
		b.writes = append(b.writes, kv.Write{Key: factKey(id, facts[0].Place), Value: encode(entry), New: true})
		facts = facts[n:]
	}
}

// together is how many facts, from the first, lie in one entry: their places follow one another.
func together(facts []choreo.Stored) int {
	size := len(facts[0].Raw)
	for i := 1; i < len(facts); i++ {
		if size += len(facts[i].Raw); size > maxTogether || facts[i].Place != facts[0].Place+i {
			return i
		}
	}
	return len(facts)
}

// readFacts calls fn for each fact of an entry that can be read, with when it came. The error is that of one
// that cannot.
func readFacts(value []byte, fn func(f fact.Received, came int64)) error {
	var entry []storedFact
	if err := decode(value, &entry); err != nil {
		return err
	}
	var failed error
	for _, sf := range entry {
		f, id, err := fact.Decode(sf.Raw)
		if err != nil {
			failed = err
			continue
		}
		fn(fact.Received{Fact: f, ID: id, Raw: sf.Raw, Att: sf.Att}, sf.Came)
	}
	return failed
}
