package datasets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// shelf is a store in memory.
type shelf struct{ data map[string][]byte }

func newShelf() *shelf { return &shelf{data: map[string][]byte{}} }

func (s *shelf) Commit(writes []kv.Write, done func(error)) { done(s.CommitWait(writes)) }

func (s *shelf) CommitWait(writes []kv.Write) error {
	for _, w := range writes {
		if s.data[string(w.Key)] = w.Value; w.Delete {
			delete(s.data, string(w.Key))
		}
	}
	return nil
}

func (s *shelf) Scan(prefix []byte, fn func(key, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(s.data)) {
		if strings.HasPrefix(k, string(prefix)) {
			if err := fn([]byte(k), s.data[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// epoch is a clock that stands still at the beginning of 1970.
type epoch struct{}

func (epoch) Now() moment.Now { return moment.Now{Wall: time.UnixMilli(0)} }

// However much tasks make, the record has room for what users registered, and of
// what tasks made it has the newest.
func TestRecordsHoldTheNewestOfWhatTasksMade(t *testing.T) {
	data := map[string]stored{}
	put := func(name string, terms terms) {
		data[name] = stored{Name: name, Content: []byte("x"), Terms: terms}
	}
	long := strings.Repeat("r", 100)
	for i := range 500 {
		put(fmt.Sprintf("made-%03d", i), terms{ByTask: true, Made: int64(i), Readers: []string{long, long}})
	}
	for i := range 20 {
		put(fmt.Sprintf("user-%02d", i), terms{Made: 1})
	}
	put("over", terms{Made: 1, Until: 1000})
	put("made-over", terms{ByTask: true, Made: 999, Until: 1000})
	var r membership.Record
	fill(&r, data, 1000)
	users, made := 0, 0
	for _, d := range r.DataSets {
		if strings.HasPrefix(d.Name, "user-") {
			users++
		} else if d.Name > "made-480" && d.Name < "made-500" {
			made++
		}
	}
	if size := len(membership.EncodeRecord(r)); users != 20 || made < 10 || users+made != len(r.DataSets) ||
		size > membership.MaxRecord-spareRecord {
		t.Errorf("the record of %d bytes has %d sets of users, and %d of the newest that tasks made, of %d", size,
			users, made, len(r.DataSets))
	}
	// Where users leave no room, there is none for what tasks made.
	for i := range 120 {
		put(fmt.Sprintf("user-long-%03d", i), terms{Made: 1, Readers: []string{long}})
	}
	fill(&r, data, 1000)
	for _, d := range r.DataSets {
		if strings.HasPrefix(d.Name, "made-") {
			t.Fatalf("%s is offered, in a record of %d bytes", d.Name, len(membership.EncodeRecord(r)))
		}
	}
}

// What tasks make is kept within bounds here, too: the oldest goes, and what is not
// valid any more.
func TestOldestOfWhatTasksMadeGoes(t *testing.T) {
	p := &Sets{data: map[string]stored{"user": {Name: "user"}}}
	put := func(d stored) { p.data[d.id()] = d }
	for i := range membership.MaxItems {
		name := fmt.Sprintf("made-%03d", i)
		put(stored{Name: name, Terms: terms{ByTask: true, Made: int64(i + 1)}})
	}
	p.data["over"] = stored{Name: "over", Terms: terms{Until: 1000}}
	if gone := fmt.Sprint(p.superfluous("made-007", 1000)); gone != "[over]" {
		t.Errorf("for one that is replaced %v go", gone)
	}
	put(stored{Name: "new", Terms: terms{ByTask: true, Made: 1000}})
	if gone := fmt.Sprint(p.superfluous("new", 1000)); gone != "[made-000 over]" {
		t.Errorf("for a new one %v go", gone)
	}
	for i := range 3 { // of another author they stay, however old
		put(stored{Name: fmt.Sprintf("other-%d", i), author: "other", Terms: terms{ByTask: true}})
	}
	if gone := fmt.Sprint(p.superfluous("new", 1000)); gone != "[made-000 made-001 made-002 made-003 over]" {
		t.Errorf("beside those of another author %v go", gone)
	}
	// In the record, too, each author has its turn.
	var r membership.Record
	fill(&r, p.data, 1000)
	if n := slices.IndexFunc(r.DataSets, func(d membership.DataSet) bool { return d.Name == "other-2" }); n < 0 {
		t.Errorf("the record has nothing for those that little was made for, but %d others", len(r.DataSets))
	}
}

// What tasks make at the same time is stored side by side with what a user registers
// meanwhile, and in the end the store has what is offered, and no more than there may be.
func TestStoredIsWhatIsOffered(t *testing.T) {
	s := newShelf()
	p := &Sets{store: s, clock: epoch{}, data: map[string]stored{}}
	made := func(name string, at int64, author workflow.PartnerID) stored {
		return stored{Name: name, Content: []byte(author), author: author, Terms: terms{ByTask: true, Made: at}}
	}
	begin := func(d stored) (end func(stored bool)) {
		t.Helper()
		writes, why := p.replace(d)
		if why != "" {
			t.Fatalf("%s of %s: %s", d.Name, d.author, why)
		}
		return func(stored bool) {
			if stored {
				s.Commit(writes, func(error) {})
			}
			p.register(d, stored)
		}
	}
	for i := range membership.MaxItems {
		begin(made(fmt.Sprintf("made-%03d", i), int64(i+1), "a"))(true)
	}
	one, two, other := begin(made("x", 1000, "a")), begin(made("y", 1001, "b")),
		begin(made("x", 1002, "b")) // of one round
	one(true)
	two(true)
	other(true)
	begin(made("z", 1002, "b"))(false)
	begin(made("x", 1004, "a"))(true)
	if a, b := p.data["x\x00a"], p.data["x\x00b"]; string(a.Content) != "a" || a.Terms.Made != 1004 ||
		string(b.Content) != "b" || b.Terms.Made != 1002 {
		t.Errorf("what was made under one name for two authors is %+v and %+v", a, b)
	}
	user := begin(made("w", 1005, "b"))
	if err := s.CommitWait([]kv.Write{{Key: stored{Name: "w"}.key(),
		Value: codec.Encode(stored{Name: "w", Content: []byte("by hand")})}}); err != nil {
		t.Fatal(err)
	}
	p.data["w"] = stored{Name: "w", Content: []byte("by hand")}
	user(true)
	if len(s.data) != len(p.data) || len(p.data) != membership.MaxItems+1 {
		t.Errorf("%d are stored, %d offered, want %d", len(s.data), len(p.data), membership.MaxItems+1)
	}
	for name, d := range p.data {
		if s.data[string(d.key())] == nil {
			t.Errorf("%s of %s is not stored", name, d.author)
		}
	}
	if got := string(p.data["w"].Content); got != "by hand" {
		t.Errorf("what a user registered is %q", got)
	}
	for i := range 50 { // as a crash leaves them
		d := made(fmt.Sprintf("left-%02d", i), 1, "a")
		s.data[string(d.key())] = codec.Encode(d)
	}
	d := made("w", 2000, "a")
	s.data[string(d.key())] = codec.Encode(d)
	before := slices.Sorted(maps.Keys(p.data))
	if err := p.load(); err != nil {
		t.Fatal(err)
	}
	if after := slices.Sorted(maps.Keys(p.data)); !slices.Equal(before, after) || len(s.data) != len(p.data) ||
		p.data["x\x00a"].author != "a" || p.data["x\x00b"].author != "b" || string(p.data["w"].Content) != "by hand" {
		t.Errorf("after a start there are %v, %d stored; want %v", after, len(s.data), before)
	}
}

// A data set from before there were terms is read as one that a user registered for
// ever and for everybody.
func TestOldDataSetsAreRead(t *testing.T) {
	old := struct {
		_       struct{} `cbor:",toarray"`
		Name    string
		Content []byte
	}{Name: "map", Content: []byte("x")}
	b, err := cbor.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decode(b)
	if err != nil || d.Name != "map" || string(d.Content) != "x" || d.Terms.ByTask || !d.Terms.valid(1<<60) {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := decode([]byte("junk")); err == nil {
		t.Error("junk is accepted")
	}
}
