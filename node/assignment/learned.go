package assignment

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Learned is what this node has learned of partners from the instances that it
// took part in. It is not told to others: everybody learns from the facts that
// it has verified itself, so that nobody can praise itself or slander another.
//
// Each shard stores what its own instances taught, with the summary that says
// that an instance has ended, so that a crash counts nothing twice.
type Learned struct {
	off   bool // by the node's configuration
	store lessons

	mu  sync.Mutex // guards what follows
	by  map[Lesson][]taught
	end map[workflow.PartnerID]int64 // ms, its clock: when the last work known here ended
}

// Lesson is what was learned about: a partner at a task of a workflow.
type Lesson struct {
	_        struct{} `cbor:",toarray"`
	Partner  workflow.PartnerID
	Workflow workflow.Name
	Task     workflow.TaskName
}

func (l Lesson) compare(o Lesson) int {
	return strings.Compare(l.String()+"\x00"+string(l.Partner), o.String()+"\x00"+string(o.Partner))
}

// String names the task.
func (l Lesson) String() string { return string(l.Workflow) + "/" + string(l.Task) }

// taught is what one shard's instances taught.
type taught struct {
	shard int
	is    aptitude.Experience
}

// storedLesson is how it is kept, under a key that names shard and lesson.
type storedLesson struct {
	_          struct{} `cbor:",toarray"`
	Lesson     Lesson
	Shard      int
	Experience aptitude.Experience
}

// maxLessons bounds what is learned about; what would be more is not learned.
const maxLessons = 20_000

// lessons is where it is stored.
type lessons interface {
	Get(key []byte) ([]byte, error)
	Scan(prefix []byte, fn func(key, value []byte) error) error
}

// NewLearned has nothing learned yet; off: nothing is, by the node's configuration.
func NewLearned(off bool, store lessons) *Learned {
	return &Learned{off: off, store: store, by: map[Lesson][]taught{}, end: map[workflow.PartnerID]int64{}}
}

// Load reads what is stored.
func (l *Learned) Load() error {
	return l.store.Scan([]byte{Prefix}, func(_, value []byte) error {
		var x storedLesson
		if err := codec.Decode(value, &x); err != nil {
			return fmt.Errorf("what was learned of partners cannot be read: %w", err)
		}
		l.set(x.Lesson, x.Shard, x.Experience)
		return nil
	})
}

func (l *Learned) set(about Lesson, shard int, e aptitude.Experience) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.by[about]
	if i := slices.IndexFunc(list, func(t taught) bool { return t.shard == shard }); i >= 0 {
		list[i].is = e
		return
	}
	l.by[about] = append(list, taught{shard, e})
}

// Of is what is known of a partner at a task, and what of it one shard taught.
// full tells that no more can be learned about.
func (l *Learned) Of(about Lesson, shard int) (all, part aptitude.Experience, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.by[about] {
		all = all.Plus(t.is)
		if t.shard == shard {
			part = t.is
		}
	}
	return all, part, len(l.by) >= maxLessons && l.by[about] == nil
}

// alone reports whether work had its performer to itself, as far as is known
// here: only then does the time that it took say something about the performer.
func (l *Learned) alone(o state.Outcome) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	by := workflow.PartnerID(o.Performer)
	before := l.end[by]
	if o.Ended > before {
		l.end[by] = o.Ended
	}
	return o.Began >= before
}

// factors are what was learned of a partner for the tasks of a definition; none where
// learning is off.
func (l *Learned) factors(p workflow.PartnerID, def *workflow.Definition) map[workflow.TaskName]float64 {
	out := map[workflow.TaskName]float64{}
	if l.off || def.Distribution.NoLearning {
		return out
	}
	for _, t := range def.Tasks {
		about := Lesson{Partner: p, Workflow: def.Name, Task: t.Name}
		if all, _, _ := l.Of(about, 0); all != (aptitude.Experience{}) {
			out[t.Name] = all.Factor()
		}
	}
	return out
}

// About is all that something was learned about, by task and partner.
func (l *Learned) About() []Lesson {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Lesson
	for about := range l.by {
		out = append(out, about)
	}
	slices.SortFunc(out, Lesson.compare)
	return out
}

// Prefix is the first byte of the keys under which it is stored.
const Prefix = 'l'

// DecodesLesson reads what is stored of a lesson, to find what is damaged.
func DecodesLesson(b []byte) error { return codec.Decode(b, new(storedLesson)) }

func lessonKey(shard int, about Lesson) []byte {
	return bytes.Join([][]byte{
		{Prefix, byte(shard)}, []byte(about.Partner), []byte(about.Workflow), []byte(about.Task),
	}, []byte{0})
}

// Take takes in how the attempts of an instance ended that has just ended and that a shard
// owns, and returns what is to be stored of it; full is of how many more no more can be
// learned. Where the plain rule distributes, nobody asks for suitability, and nothing is
// learned.
func (l *Learned) Take(shard int, m *choreo.Machine, def *workflow.Definition) (writes []kv.Write, full int) {
	if m.Mechanism() == partition.PlainRule || def.Distribution.NoLearning || l.off {
		return nil, 0
	}
	changed := map[Lesson]aptitude.Experience{}
	for _, o := range m.Outcomes() {
		if _, err := users.ParseID(string(o.Performer)); err == nil {
			continue // a user took it from a worklist: that says nothing of the partner that holds it
		}
		about := Lesson{Partner: workflow.PartnerID(o.Performer), Workflow: def.Name, Task: o.Task.Name}
		_, part, none := l.Of(about, shard)
		if none {
			full++
			continue
		}
		x := aptitude.Execution{Failed: o.Failed, Redone: o.Tries > 1}
		if l.alone(o) && o.Task.Duration > 0 {
			x.Took, x.Expected = o.Took(), o.Task.Duration
		}
		changed[about] = part.After(x)
		l.set(about, shard, changed[about])
	}
	for about, e := range changed {
		writes = append(writes, kv.Write{
			Key:   lessonKey(shard, about),
			Value: codec.Encode(storedLesson{Lesson: about, Shard: shard, Experience: e}),
		})
	}
	slices.SortFunc(writes, func(a, b kv.Write) int { return bytes.Compare(a.Key, b.Key) })
	return writes, full
}

// TakeBack goes back to what is stored, after writes of Take that failed. An error tells
// what cannot be read of that; nothing is known of it then.
func (l *Learned) TakeBack(shard int, writes []kv.Write) error {
	var unread error
	for _, w := range writes {
		if len(w.Key) == 0 || w.Key[0] != Prefix {
			continue
		}
		var now, was storedLesson
		if codec.Decode(w.Value, &now) != nil {
			continue // it was encoded here
		}
		b, err := l.store.Get(w.Key)
		if err == nil {
			err = codec.Decode(b, &was)
		}
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			unread = errors.Join(unread, err)
		}
		l.set(now.Lesson, shard, was.Experience)
	}
	return unread
}
