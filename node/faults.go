package node

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A fault is a mistake in this program at which a machine panics: a fact of some member
// leads to it, and since facts are durable, a node that ended with it would end with it at
// each start. So it stops that one instance, which is set aside, and nothing else.
//
// The border is the machine. Every use of one by its shard goes through contained, and what
// panics below a function of package choreo, in what it calls and asks as well, is a fault
// of the instance. The machine may be torn: it is dropped and never used again, with all
// that the round would have done of the instance and that is not durable yet. What panics
// elsewhere ends the node, as nobody knows what is torn then; only where an instance is
// read for somebody, which changes nothing, that answer alone fails.
//
// The instance stays aside as long as the process runs: its facts would lead to the same,
// so nobody is asked for them, and what is said of it is neither read nor answered. The
// next start tries it once more, which may be of a newer version.
//
// What Go cannot recover from ends the node all the same: memory that is full, a stack
// that is, and maps that are written by two at once.

// faults are the instances at which machines panicked in this process. Shards and those
// who receive ask it.
type faults struct {
	loud bool         // nothing is contained (Parts.Loud)
	n    atomic.Int64 // how many there are, to be asked without the lock

	mu sync.Mutex // guards what follows; it calls nobody
	// of says whether an instance was stored, and so is set aside; another one is not
	// taken in.
	of      map[workflow.InstanceID]bool
	refused int             // of those, how many were not stored
	places  map[string]bool // from which the stack was logged

	lines *ration.Budgets // of the log, by whose instances they are about
}

const (
	// maxUntaken bounds how many instances are known that were not taken in. Those that
	// were set aside have room of their own (quota.go).
	maxUntaken = 1024
	// maxPlaces bounds how many stacks are logged.
	maxPlaces = 64
	// maxFaultText bounds how much of what a panic says is kept.
	maxFaultText = 200
	// maxFrames bounds how much of a stack is looked at.
	maxFrames = 4096
)

// faultLines is how many lines of the log a member may bring about with instances at which
// this program fails; a liar can make up as many of those as it likes. The counter "faults"
// has all of them.
var faultLines = ration.Ration{Burst: 16, Each: time.Minute}

func newFaults(loud bool) *faults {
	return &faults{
		loud: loud, of: map[workflow.InstanceID]bool{}, places: map[string]bool{}, lines: ration.New(faultLines),
	}
}

// has reports whether a machine panicked at an instance.
func (f *faults) has(id workflow.InstanceID) bool {
	if f.n.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, has := f.of[id]
	return has
}

// add notes one more; of too many that were not taken in, those before are forgotten: each
// panics once more if it comes again.
func (f *faults) add(id workflow.InstanceID, stored bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.of[id]; !known && !stored {
		f.refused++
	}
	f.of[id] = stored
	if f.refused > maxUntaken {
		for x, stored := range f.of {
			if !stored && x != id {
				delete(f.of, x)
			}
		}
		f.refused = 1
	}
	f.n.Store(int64(len(f.of)))
}

// untaken is how many instances were not taken in, as far as is remembered.
func (f *faults) untaken() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// first reports whether a place was not named before.
func (f *faults) first(place string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places[place] || len(f.places) >= maxPlaces {
		return false
	}
	f.places[place] = true
	return true
}

// fault is what is known of one.
type fault struct {
	what, place string
	machine     bool // it happened in a machine
}

func (f *fault) String() string {
	return fmt.Sprintf("this program failed at it: %s, in %s", f.what, f.place)
}
