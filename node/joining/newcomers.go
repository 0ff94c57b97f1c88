package joining

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// NewcomerPrefix is the first byte of the keys under which those are stored, by their IDs, who joined
// by this node's invitations and have not been seen yet.
const NewcomerPrefix = 'a'

func newcomerKey(id workflow.PartnerID) []byte { return append([]byte{NewcomerPrefix}, id...) }

// loadNewcomers reads who joined and was not seen yet.
func (j *Topic) loadNewcomers() error {
	err := j.in.Store.Scan([]byte{NewcomerPrefix}, func(_, value []byte) error {
		ch, err := trust.DecodeChain(value)
		if err == nil {
			j.newcomers[ch.Leaf().Partner] = ch
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("what is stored of those who joined cannot be read: %w", err)
	}
	for _, e := range j.invites.Entries() { // of those of an earlier version nothing else is stored
		for _, ch := range e.Redeemed {
			j.newcomers[ch.Leaf().Partner] = ch
		}
	}
	return nil
}

// forgetNewcomers forgets those who were seen, whom the partner list has, and those whose
// certificates ran out.
func (j *Topic) forgetNewcomers(at time.Time) {
	for id, ch := range j.newcomers {
		_, listed := j.in.Members.Get(id)
		if listed || ch.Leaf().NotAfter < trust.WallOf(at.Add(-trust.ClockSkew)) {
			delete(j.newcomers, id)
			j.in.Store.Commit([]kv.Write{{Key: newcomerKey(id), Delete: true}}, func(error) {})
		}
	}
}

// Unseen are the certificates of those who joined by this node's invitations, were never seen, and are
// named so: by name or whole ID.
func (j *Topic) Unseen(ref string) (out []trust.Chain) {
	ref = workflow.UsualForm(ref)
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, ch := range j.newcomers {
		if _, listed := j.in.Members.Get(id); !listed && (string(id) == ref || ch.Leaf().Name == ref) {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b trust.Chain) int {
		return cmp.Compare(a.Leaf().Partner, b.Leaf().Partner)
	})
	return out
}
