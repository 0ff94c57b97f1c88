// Package datasets keeps materialised data for the Optimizer: data sets are registered
// where they are, advertised in the partner record, and read by nodes that start an
// instance that would otherwise produce them. A data set is small: its values go into the
// instance.
//
// Promises: what is offered is stored; a data set that a task made is stored in front of
// the fact that the task succeeded, so that after a crash it may be there without the fact
// and never the fact without it. What users register goes before what tasks make, and no
// author of workflows can take the room of another. [Sets] are used by many goroutines at
// once; while they hold their lock they ask nobody but the store.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports choreo, choreo/fact, internal/once, membership, membership/moment, membership/trust,
// node/api, node/codec, node/store/kv, node/wire, partition and workflow; node imports it.
package datasets

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Prefix is the first byte of the keys under which data sets are stored, by their IDs.
const Prefix = 's'

// MaxData is the largest data set that can be registered, in bytes.
const MaxData = 64 << 10

// Store keeps data sets.
type Store interface {
	Commit(writes []kv.Write, done func(error))
	CommitWait(writes []kv.Write) error
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Sets are the data sets that a node has. They may be used by several goroutines.
type Sets struct {
	store Store
	clock Clock

	// changing is held while a user registers one, or takes one off.
	changing sync.Mutex

	mu      sync.Mutex        // guards what follows
	data    map[string]stored // by stored.id
	pending map[string]int    // how many tasks make a data set of which the store is told now, by its ID
}

// stored is a data set as it is kept.
type stored struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Content []byte
	Terms   terms
	// author lists the workflow of which a task made it. It is stored in the key.
	author workflow.PartnerID
}

// terms are what holds of a data set besides its content.
type terms struct {
	_       struct{} `cbor:",toarray"`
	ByTask  bool     // a task made it; else a user registered it
	Made    int64    // ms since 1970, this node's clock
	Until   int64    // when it ceases to be valid; 0: never
	Readers []string
	From    []byte // of what it was made; see membership.DataSet
}

// valid reports whether a data set may still be used at a moment, in ms since 1970.
func (d terms) valid(now int64) bool { return d.Until == 0 || now < d.Until }

// dataKey is the key of what a user registered, d.key that of any data set: what users
// register and what tasks make is stored side by side.
func dataKey(name string) []byte { return append([]byte{Prefix}, name...) }

func (d stored) key() []byte { return dataKey(d.id()) }

// id tells data sets of one name apart.
func (d stored) id() string {
	if !d.Terms.ByTask {
		return dataID(d.Name, "")
	}
	return dataID(d.Name, d.author)
}

// dataID is how a data set is asked for: by its name, and the author for whom a task
// made it; none: a user registered it.
func dataID(name string, author workflow.PartnerID) string {
	if author == "" {
		return name
	}
	return name + "\x00" + string(author)
}

// decode reads a stored data set. Those from before there were terms have none.
func decode(value []byte) (stored, error) {
	var d stored
	err := codec.Decode(value, &d)
	if err == nil {
		return d, nil
	}
	var old struct {
		_       struct{} `cbor:",toarray"`
		Name    string
		Content []byte
	}
	if codec.Decode(value, &old) != nil {
		return d, err
	}
	return stored{Name: old.Name, Content: old.Content}, nil
}

// Decodes returns an error if a stored data set cannot be read.
func Decodes(value []byte) error {
	_, err := decode(value)
	return err
}

// Load reads the data sets that are stored. What a crash left beside what a user registered goes, and
// what is more than there may be.
func Load(store Store, clock Clock) (*Sets, error) {
	s := &Sets{store: store, clock: clock}
	return s, s.load()
}

// load is Load.
func (s *Sets) load() error {
	s.data = map[string]stored{}
	var gone []stored
	err := s.store.Scan([]byte{Prefix}, func(key, value []byte) error {
		d, err := decode(value)
		if err != nil {
			return fmt.Errorf("a stored data set cannot be read: %w", err)
		}
		_, author, _ := strings.Cut(string(key[1:]), "\x00")
		if d.author = workflow.PartnerID(author); d.Terms.ByTask && author == "" {
			gone = append(gone, stored{Name: string(key[1:])}) // whose workflow that was is not known
			return nil
		}
		s.data[d.id()] = d
		return nil
	})
	now := s.clock.Now().Wall.UnixMilli()
	for id, d := range s.data {
		if d.Terms.ByTask && s.registered(d.Name, now) {
			gone = append(gone, d)
			delete(s.data, id)
		}
	}
	for _, id := range s.superfluous("", 0) {
		gone = append(gone, s.data[id])
		delete(s.data, id)
	}
	s.clear(gone)
	return err
}

// registered reports whether a user registered a data set of a name that is valid at a
// moment: as long as it is, no task makes another here. The caller holds mu, or is
// the only one that knows s.
func (s *Sets) registered(name string, now int64) bool {
	d, known := s.data[dataID(name, "")]
	return known && d.Terms.valid(now)
}

// offer is a data set as a partner's record has it.
func (d stored) offer() membership.DataSet {
	return membership.DataSet{
		Name: d.Name, Hash: sha256.Sum256(d.Content), Size: uint64(len(d.Content)),
		Made: d.Terms.Made, Until: d.Terms.Until, Readers: d.Terms.Readers, From: d.Terms.From, Author: d.author,
	}
}

// maxMade bounds what a record says of data sets that tasks made, in bytes: every
// partner gets it, and what users registered comes first.
const maxMade = 4 << 10

// spareRecord is what a record keeps free for its signature and for longer addresses.
const spareRecord = 1 << 10

// Offer enters the data sets that are valid now into a record of this node's.
func (s *Sets) Offer(r *membership.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fill(r, s.data, s.clock.Now().Wall.UnixMilli())
}

// fill enters the data sets that are valid now into a record: those that users
// registered, and of those that tasks made the newest of each author, in turn, as far as
// there is room.
func fill(r *membership.Record, data map[string]stored, now int64) {
	r.DataSets = nil
	var made []stored
	for _, id := range slices.Sorted(maps.Keys(data)) {
		switch d := data[id]; {
		case !d.Terms.valid(now):
		case d.Terms.ByTask:
			made = append(made, d)
		default:
			r.DataSets = append(r.DataSets, d.offer())
		}
	}
	slices.SortStableFunc(made, func(a, b stored) int { return cmp.Compare(b.Terms.Made, a.Terms.Made) })
	turn, of := map[string]int{}, map[workflow.PartnerID]int{}
	for _, d := range made {
		turn[d.id()] = of[d.author]
		of[d.author]++
	}
	slices.SortStableFunc(made, func(a, b stored) int { return cmp.Compare(turn[a.id()], turn[b.id()]) })
	room := min(maxMade, membership.MaxRecord-spareRecord-len(membership.EncodeRecord(*r)))
	for _, d := range made {
		its := d.offer()
		if room -= len(codec.Encode(its)); room < 0 || len(r.DataSets) == membership.MaxItems {
			break
		}
		r.DataSets = append(r.DataSets, its)
	}
	slices.SortFunc(r.DataSets, func(a, b membership.DataSet) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Author, b.Author))
	})
}

// keep stores what a user registers, in the place of all that is here under its name.
// check returns an error if this node's record could not say what fn changes in it.
func (s *Sets) keep(d stored, check func(fn func(*membership.Record)) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	all, _, err := s.with(d)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := check(func(r *membership.Record) { fill(r, all, d.Terms.Made) }); err != nil {
		return api.Judge(api.Invalid, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all, gone, err := s.with(d) // tasks may have made more
	if err == nil {
		err = s.store.CommitWait([]kv.Write{{Key: d.key(), Value: codec.Encode(d)}})
	}
	if err != nil {
		return err
	}
	s.clear(gone)
	s.data = all
	return nil
}

// with are all data sets with one that a user registers, and those that go for it. The
// caller holds mu.
func (s *Sets) with(d stored) (all map[string]stored, gone []stored, err error) {
	all = maps.Clone(s.data)
	for _, x := range s.named(d.Name) {
		delete(all, x.id())
		if x.id() != d.id() {
			gone = append(gone, x)
		}
	}
	if n := byUsers(all); n >= membership.MaxItems { // a clock that is ahead costs no more than it must
		for _, x := range longestExpired(all, d.Terms.Made, 1+n-membership.MaxItems) {
			delete(all, x.id())
			gone = append(gone, x)
		}
	}
	if n := byUsers(all); n >= membership.MaxItems {
		return nil, nil, api.Errorf(api.Refused,
			"there are %d data sets here, no more can be registered: remove one (mutirao resources remove NAME)", n)
	}
	all[d.id()] = d
	return all, gone, nil
}

// named are the data sets of a name, by their authors. The caller holds mu.
func (s *Sets) named(name string) []stored {
	var out []stored
	for _, d := range s.data {
		if d.Name == name {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b stored) int { return cmp.Compare(a.author, b.author) })
	return out
}

// longestExpired are up to so many of the data sets that users registered, and that are not
// valid any more: those that were so for the longest.
func longestExpired(data map[string]stored, now int64, most int) []stored {
	var expired []stored
	for _, d := range data {
		if !d.Terms.ByTask && !d.Terms.valid(now) {
			expired = append(expired, d)
		}
	}
	slices.SortFunc(expired, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.Terms.Until, b.Terms.Until), cmp.Compare(a.Name, b.Name))
	})
	return expired[:min(most, len(expired))]
}

// byUsers counts the data sets that users registered.
func byUsers(data map[string]stored) int {
	n := 0
	for _, d := range data {
		if !d.Terms.ByTask {
			n++
		}
	}
	return n
}

// drop takes all data sets of a name off, durably.
func (s *Sets) drop(name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.named(name)
	if len(gone) == 0 {
		return api.Errorf(api.NotFound, "no data set %s is registered here", name).
			WithHint("list them: mutirao resources data")
	}
	var writes []kv.Write
	for _, d := range gone {
		writes = append(writes, kv.Write{Key: d.key(), Delete: true})
	}
	if err := s.store.CommitWait(writes); err != nil {
		return err
	}
	for _, d := range gone {
		delete(s.data, d.id())
	}
	return nil
}

// content is that of a data set which is valid, and who may read it.
func (s *Sets) content(id string) (content []byte, readers []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.data[id]
	switch {
	case !ok:
		return nil, nil, errors.New("no such data set is registered here")
	case !d.Terms.valid(s.clock.Now().Wall.UnixMilli()):
		return nil, nil, errors.New("the data set is not valid any more")
	}
	return d.Content, d.Terms.Readers, nil
}
