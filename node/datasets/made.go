package datasets

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file registers by itself what tasks with produces made here, so that the
// Optimizer finds it. Partners learn of it with this node's record, which goes out on this
// account no more often than news of its load.

// Register is what is to be stored of a data set that a task of a workflow made, and
// what is to be done once that is durable; nothing where it is not to be registered.
// Anybody can have tasks done here by starting what they wrote themselves: only what a
// workflow made that is listed counts, for the author that lists it.
func (ds *Topic) Register(made choreo.Made, of workflow.Hash) ([]kv.Write, func(error)) {
	d, why := dataOf(made)
	d.author = ds.in.Author(of)
	var writes []kv.Write
	switch {
	case why != "":
	case d.author == "":
		why = "its workflow is not listed"
	default:
		writes, why = ds.sets.replace(d)
	}
	if why != "" {
		ds.in.Log.Info("what a task made is not registered",
			"task", made.Task.Name, "data", made.Task.Produces.Name, "why", why)
		return nil, nil
	}
	return writes, func(err error) {
		if ds.sets.register(d, err == nil); err == nil {
			ds.made.any.Store(true)
			ds.in.Nudge()
		}
	}
}

// dataOf is the data set that a task made; why says what it lacks for one.
func dataOf(made choreo.Made) (d stored, why string) {
	p := made.Task.Produces
	for _, name := range made.Task.Out {
		if made.Values[name] == nil {
			return d, "it wrote no " + string(name)
		}
	}
	switch {
	case len(made.Task.Out) == 0:
		return d, "it names no data under out"
	case made.Unsure != "":
		return d, "it is not certain that the task read " + string(made.Unsure) + " as it is now"
	}
	content, err := json.Marshal(made.Values)
	if err != nil {
		return d, err.Error()
	}
	if len(content) > MaxData {
		return d, "it is too large"
	}
	d = stored{Name: p.Name, Content: content}
	d.Terms = terms{ByTask: true, Made: made.At, Until: until(made.At, p.Valid), Readers: p.Readers}
	if len(partition.MadeFrom(made.Task)) > 0 {
		d.Terms.From = madeFrom(made.From)
	}
	return d, ""
}

// madeFrom says in short of which values something was made. JSON writes them in
// one way, whatever they came through.
func madeFrom(values map[workflow.DataName]workflow.Value) []byte {
	b, err := json.Marshal(values)
	if err != nil {
		return []byte(err.Error()) // no other data is like it
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}

// replace is what is to be stored for a data set that a task made, in place of what
// a task of the same author made under this name before, whatever the clock said then.
// What was made for other authors has keys of its own, and stays; so does what a user
// registered. Each replace is followed by register.
func (s *Sets) replace(d stored) (writes []kv.Write, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered(d.Name, s.clock.Now().Wall.UnixMilli()) {
		return nil, "a user registered data under this name"
	}
	if s.pending == nil {
		s.pending = map[string]int{}
	}
	s.pending[d.id()]++
	return []kv.Write{{Key: d.key(), Value: codec.Encode(d)}}, ""
}

// superfluous gives the IDs of the data sets that go when another is made: those that are not
// valid any more, and of those that tasks made, where there are more than a record
// holds, the oldest of whose author has most. The caller holds mu.
func (s *Sets) superfluous(but string, now int64) []string {
	var gone []string
	made, n := map[workflow.PartnerID][]stored{}, 0
	for id, d := range s.data {
		switch {
		case d.Terms.ByTask && (id == but || d.Terms.valid(now)):
			made[d.author] = append(made[d.author], d)
			n++
		case id != but && s.pending[id] == 0 && !d.Terms.valid(now):
			gone = append(gone, id)
		}
	}
	for _, of := range made {
		slices.SortFunc(of, func(a, b stored) int {
			return cmp.Or(cmp.Compare(a.Terms.Made, b.Terms.Made), cmp.Compare(a.Name, b.Name))
		})
	}
	authors := slices.Sorted(maps.Keys(made))
	for ; n > membership.MaxItems; n-- {
		most := slices.MaxFunc(authors, func(a, b workflow.PartnerID) int {
			return cmp.Compare(len(made[a]), len(made[b]))
		})
		i := slices.IndexFunc(made[most], func(d stored) bool { return d.id() != but && s.pending[d.id()] == 0 })
		if i < 0 {
			break // the next one that is made finds them stored
		}
		gone = append(gone, made[most][i].id())
		made[most] = slices.Delete(made[most], i, i+1)
	}
	slices.Sort(gone)
	return gone
}

// register takes up a data set that is durable, or not if it could not be stored. What
// it takes the place of is deleted only now: with the lock held, so that the store is
// told in the same order.
func (s *Sets) register(d stored, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[d.id()]--; s.pending[d.id()] == 0 {
		delete(s.pending, d.id())
	}
	if !durable {
		return
	}
	now := s.clock.Now().Wall.UnixMilli()
	if s.registered(d.Name, now) { // meanwhile
		s.clear([]stored{d})
		return
	}
	s.data[d.id()] = d
	var gone []stored
	for _, id := range s.superfluous(d.id(), now) {
		gone = append(gone, s.data[id])
		delete(s.data, id)
	}
	s.clear(gone)
}

// clear deletes data sets from the store. What a crash leaves of them is found at the
// next start (Load). The caller holds mu.
func (s *Sets) clear(gone []stored) {
	var writes []kv.Write
	for _, d := range gone {
		writes = append(writes, kv.Write{Key: d.key(), Delete: true})
	}
	if len(writes) > 0 {
		s.store.Commit(writes, func(error) {}) // troubled hears of an error
	}
}
