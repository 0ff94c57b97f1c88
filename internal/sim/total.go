package sim

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Total sums up runs.
type Total struct {
	Seeds   int
	Virtual time.Duration // summed over nodes
	Facts   int
	Frames  int
	Commits int
	Lies    int
	// Superseded are successes that do not count; Undone those compensated.
	Superseded, Undone int
	// Kept are people's tasks whose holder was chosen to perform them, Passed those
	// that went to somebody else.
	Kept, Passed int
	// What users were told: items that they took, results that count, that their device keeps, and that
	// came too late. Requests are those between nodes.
	Requests, Taken, Ahead, PassedOn, Recorded, Away, TooLate, PutOff, Came, Joint, Lost, Anew, Beaten int
	Ordered, Adopted, Added, AddedData, Placed, Resteered, StandIns, Loops, Recovered, States, Aside   int

	Failed int // runs with a violation
	// Fingerprint is of those of the runs, in their order.
	Fingerprint [sha256.Size]byte
	Ended       map[string]int
	Faults      map[FaultKind]int
}

// Add adds a run.
func (t *Total) Add(o *Outcome) {
	if t.Faults == nil {
		t.Faults, t.Ended = map[FaultKind]int{}, map[string]int{}
	}
	t.Seeds++
	t.Fingerprint = sha256.Sum256(append(t.Fingerprint[:], o.Fingerprint[:]...))
	t.Virtual += o.Virtual
	t.Facts += o.Facts
	t.Frames += o.Frames
	t.Commits += o.Commits
	t.Lies += o.Lies
	t.Superseded += o.Superseded
	t.Undone += o.Undone
	t.Kept += o.Kept
	t.Passed += o.Passed
	t.Requests += o.Requests
	t.Taken += o.Taken
	t.Ahead += o.Ahead
	t.Joint += o.Joint
	t.Lost += o.Lost
	t.Anew += o.Anew
	t.Beaten += o.Beaten
	t.PutOff += o.PutOff
	t.Came += o.Came
	t.Recorded += o.Recorded
	t.Away += o.Away
	t.TooLate += o.TooLate
	t.PassedOn += o.PassedOn
	t.Ordered += o.Ordered
	t.Added += o.Added
	t.AddedData += o.AddedData
	t.Resteered += o.Resteered
	t.StandIns += o.StandIns
	t.Loops += o.Loops
	t.Placed += o.Placed
	t.Adopted += o.Adopted
	t.Recovered += o.Recovered
	t.States += o.States
	t.Aside += o.Aside
	if len(o.Violations) > 0 {
		t.Failed++
	}
	for k, n := range o.Faults {
		t.Faults[k] += n
	}
	for k, n := range o.Instances {
		t.Ended[string(k)] += n
	}
}

func (t Total) String() string {
	counts := func(m map[string]int) string {
		var out []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out = append(out, fmt.Sprintf("%d %s", m[k], k))
		}
		return strings.Join(out, ", ")
	}
	faults := map[string]int{}
	for k, n := range t.Faults {
		faults[string(k)] = n
	}
	people := ""
	if t.Requests > 0 {
		people = fmt.Sprintf("; users took %d items, %d of them together with or after others that they wait for (%d times of several holders; %d times somebody else took one meanwhile; %d times the device was lost in the middle, and %d times something was locked at another before it was back), and passed %d on, %d results counted, of which %d were put off first, %d that were put off came to count, %d were kept for later, %d came too late and %d were adopted, %d orders, of which %d added a task, %d of them with data and %d with a partition, %d changed what becomes of one and %d who stands in for one, %d requests", t.Taken, t.Ahead, t.Joint, t.Beaten, t.Lost, t.Anew, t.PassedOn, t.Recorded, t.PutOff, t.Came, t.Away, t.TooLate, t.Adopted, t.Ordered, t.Added, t.AddedData, t.Placed, t.Resteered, t.StandIns, t.Requests)
	}
	if t.States > 0 {
		people += fmt.Sprintf("; %d data states (and %d superseded in histories), %d steps of recovery", t.States, t.Aside, t.Recovered)
	}
	return fmt.Sprintf("%d seeds (%d with violations), %.0f node-hours, %d facts, %d frames, %d commits\ninstances: %s\nfaults: %s; %d forged facts; %d successes superseded, %d compensations; %d tasks kept by the chosen node, %d passed on%s; fingerprint %x",
		t.Seeds, t.Failed, t.Virtual.Hours(), t.Facts, t.Frames, t.Commits, counts(t.Ended), counts(faults), t.Lies,
		t.Superseded, t.Undone, t.Kept, t.Passed, people, t.Fingerprint[:8])
}
