package sim_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/sim"
	"github.com/mutirao-mesh/mutirao/internal/test/sample"
)

var (
	seeds   = flag.Int("seeds", 60, "how many seeds to run")
	first   = flag.Uint64("first", 1, "the first seed")
	within  = flag.Duration("for", 0, "run fresh seeds for as long as this, from the first; 0: as many as -seeds says")
	variant = flag.String("variant", "", "a broken variant of the world: no-sync or wall-clock")
	keep    = flag.Bool("keep-going", false, "report each failing seed in one line and go on")
	fast    = flag.Bool("fail-fast", false, "report the first failing seed in one line and stop")
)

// Of the seeds that failed once the newest are in the sample, and one of so many of the others: what was wrong with most
// has a test of its own since, and the messages of a run are in another order than they were then.
const (
	newest = 9
	oneOf  = 10
)

// TestMain has memory collected less often, unless GOGC says how often: runs are short, and
// that is a fifth of their processor time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// TestSeeds runs a fixed set of seeds, one after the other; -seeds and -first choose others,
// -for explores until the time is over.
func TestSeeds(t *testing.T) {
	t.Parallel()
	total, start := sim.Total{}, time.Now()
	for seed := *first; ; seed++ {
		if *within > 0 && time.Since(start) > *within || *within == 0 && seed >= *first+uint64(*seeds) {
			break
		}
		total.Add(explore(t, seed))
	}
	t.Logf("%s, in %s", total, time.Since(start).Round(time.Millisecond))
}

// TestRoughSeeds runs a fixed set of rough ones.
func TestRoughSeeds(t *testing.T) { fifty(t, sim.Rough) }

// TestPeopledSeeds runs a fixed set of those with roles and mechanisms.
func TestPeopledSeeds(t *testing.T) { fifty(t, sim.Peopled) }

// TestStoppedSeeds runs a fixed set of those with nodes that are stopped in good order.
func TestStoppedSeeds(t *testing.T) { several(t, sim.Stopped, 20) }

// TestStrainedSeeds runs a fixed set of those that bring situations about on purpose,
// with members that lie.
func TestStrainedSeeds(t *testing.T) { several(t, sim.Strained, 10) }

// TestClaimedSeeds runs a fixed set of those whose people's tasks are claimed by users.
func TestClaimedSeeds(t *testing.T) { several(t, sim.Claimed, uint64(sample.Of(6, 12))) }

// TestAbsentSeeds runs a fixed set of those with nodes that announce that they are away.
func TestAbsentSeeds(t *testing.T) {
	if total := several(t, sim.Absences+3, uint64(sample.Of(4, 6))); total.Faults[sim.Away] == 0 {
		t.Error("no node went out of reach as it announced")
	}
}

// TestLoopedSeeds runs a fixed set of those whose definitions have loops, and whose users amend what becomes of tasks.
func TestLoopedSeeds(t *testing.T) {
	total := several(t, 20_064_001, uint64(sample.Of(5, 8)))
	if min(total.Loops, total.Resteered) == 0 {
		t.Errorf("%d tasks were done in a later round, %d amendments changed what becomes of tasks: none may be 0",
			total.Loops, total.Resteered)
	}
}

// TestStandInSeeds runs a fixed set of those whose users amend who stands in for a task.
func TestStandInSeeds(t *testing.T) {
	if total := several(t, 20_600_003, uint64(sample.Of(4, 8))); total.StandIns == 0 {
		t.Error("no amendment said who stands in for a task")
	}
}

// TestEquippedSeeds runs a fixed set of those whose tasks hold resources.
func TestEquippedSeeds(t *testing.T) { several(t, sim.Equipped, uint64(sample.Of(6, 12))) }

// TestLinkedSeeds runs a fixed set of those with people's tasks that wait for one another. In such a set all of it
// happens: items of several holders are locked together, somebody else takes one or the device is lost in the middle,
// and results are put off and come to count.
func TestLinkedSeeds(t *testing.T) {
	total := several(t, sim.Linked, 12)
	if min(total.Joint, total.Beaten, total.Lost, total.Anew, total.PutOff, total.Came) == 0 {
		t.Errorf("%d joint locks of several holders, %d times somebody else took one of the items, %d devices lost in "+
			"the middle of one, %d times locked at another meanwhile, %d results put off, of which %d came to count: "+
			"none may be 0", total.Joint, total.Beaten, total.Lost, total.Anew, total.PutOff, total.Came)
	}
}

// TestDrivenSeeds runs a fixed set of those whose instances are driven by their data. In such a set all of it happens:
// what is interrupted is recovered, and histories lose against others and are undone.
func TestDrivenSeeds(t *testing.T) {
	total := several(t, sim.Driven, 12)
	if min(total.States, total.Aside, total.Recovered, total.Undone) == 0 {
		t.Errorf("%d data states, %d superseded in histories, %d steps of recovery, %d compensations: none may be 0",
			total.States, total.Aside, total.Recovered, total.Undone)
	}
}

// fifty runs so many seeds, or some of them.
func fifty(t *testing.T, first uint64) {
	several(t, first, uint64(sample.Of(10, 50)))
}

func several(t *testing.T, first, n uint64) (total sim.Total) {
	var list []uint64
	for seed := first; seed < first+n; seed++ {
		list = append(list, seed)
	}
	return beside(t, list)
}

// beside runs seeds beside each other, as many as there are processors.
func beside(t *testing.T, list []uint64) (total sim.Total) {
	t.Parallel()
	outcomes := make([]*sim.Outcome, len(list))
	t.Run("seed", func(t *testing.T) {
		for i, seed := range list {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				outcomes[i] = explore(t, seed)
			})
		}
	})
	if t.Failed() {
		return total
	}
	for _, out := range outcomes {
		if out != nil { // -run chose others
			total.Add(out)
		}
	}
	t.Log(total)
	return total
}

// TestFailedSeeds runs seeds that failed once.
func TestFailedSeeds(t *testing.T) {
	text, err := os.ReadFile("testdata/failed-seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []uint64
	for line := range strings.Lines(string(text)) {
		line, what, _ := strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" || !sample.Whole() && strings.Contains(what, "takes minutes") {
			continue
		}
		seed, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			t.Fatalf("failed-seeds.txt: %v", err)
		}
		list = append(list, seed)
	}
	if n := len(list) - newest; !sample.Whole() && n > 0 {
		var some []uint64
		for i := 0; i < n; i += oneOf {
			some = append(some, list[i])
		}
		list = append(some, list[n:]...)
	}
	beside(t, list)
}

// explore runs a seed. A failing plan is shrunk and told.
func explore(t *testing.T, seed uint64) *sim.Outcome {
	p := sim.NewPlan(seed)
	out := sim.Run(p, sim.Variant(*variant))
	if len(out.Violations) == 0 {
		return out
	}
	switch {
	case *keep:
		t.Errorf("seed %d: %s", seed, out.Violations[0])
		return out
	case *fast:
		t.Fatalf("seed %d: %s", seed, out.Violations[0])
	}
	small := sim.Shrink(p, sim.Variant(*variant))
	again := sim.Run(small, sim.Variant(*variant))
	t.Fatalf("seed %d\n%s\n\nthe same in short:\n%s\n%s\n%s", seed,
		strings.Join(out.Violations, "\n"),
		small, strings.Join(again.Violations, "\n"), strings.Join(again.Notes, "\n"))
	return out
}

// TestFinalWhereOneHasNoRoom: that a node has no room for facts of an instance until the end does
// not keep from what is checked that the instance is final where there is room.
func TestFinalWhereOneHasNoRoom(t *testing.T) {
	t.Parallel()
	all := 0
	out := sim.Run(sim.NewPlan(2000691), sim.Variant(*variant))
	for _, n := range out.Instances {
		all += n
	}
	if out.Settled != all {
		t.Errorf("of %d of %d instances it was checked that they are final", out.Settled, all)
	}
}
