// Package livestudy holds live distribution against the study: real nodes in virtual
// time give out the work of the study's own problems, and reach the same quality.
package livestudy

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	each      = flag.Int("trials", 23, "with -whole: trials of each of the nine conditions")
	whole     = flag.Bool("whole", false, "run all trials, and not only a sample")
	mechanism = flag.String("mechanism", "", "only this one")
	scenario  = flag.String("scenario", "five", "which published scenario: five, selective, or as partitions three, where a task is for two roles")
	rule      = flag.String("shares", "", "hold it against the study with these shares, and not those of live: kept (as published), renewed, earlier")
	only      = flag.String("only", "", "with -whole: only levels and ways whose name contains this")
)

// way is how live work corresponds to the tasks of the study.
type way string

const (
	// people: tasks for people, given out when they are ready.
	people way = "people's tasks"
	// partitions: each task is a partition, given out when its instance starts.
	partitions way = "partitions"
)

// shares is the rule for shares by which the study chooses among what live chooses among.
// A partition is given out when its instance starts: what is started after that is not known
// then, though it may be in the way once the partition is ready.
func (w way) shares() study.Shares {
	switch {
	case *rule != "":
		return study.Shares(*rule)
	case w == partitions:
		return study.EarlierShares
	}
	return study.RenewedShares
}

// unit is a time unit of the study.
const unit = time.Second

// level is how much is under way.
type level struct {
	name   string
	set    func(*study.Scenario)
	sample int // how many trials are run where not all are
}

var levels = []level{
	{"one", func(s *study.Scenario) { s.Instances, s.Loads = 10, []float64{0.02} }, 1},
	{"five", func(s *study.Scenario) { s.Instances, s.Loads, s.Together = 5, []float64{1}, true }, 3},
	{"fifty", func(s *study.Scenario) { s.Instances, s.Loads, s.Together = 50, []float64{1}, true }, 1},
	{"load 0.6", func(s *study.Scenario) { s.Instances, s.Loads = 20, []float64{0.6} }, 0},
}

// trial runs one problem live and gives its quality.
type trial struct {
	t       testing.TB
	s       *study.Scenario
	p       *study.Problem
	mech    aptitude.Mechanism
	way     way
	givers  int
	m       *mesh
	took    map[string]bool // what a performer has before it
	busy    map[int]bool    // resources that are doing what they took from a worklist
	looks   bool            // those who are idle are about to look at their worklists
	done    int
	last    time.Duration // when the last task that was begun so far will have ended
	quality aptitude.Quality
	best    []float64
}

const seed = 11

func live(
	t testing.TB, s *study.Scenario, at study.Trial, mech aptitude.Mechanism, w way, givers int,
	connectionTime time.Duration,
) (quality, took float64) {
	x := &trial{
		t: t, s: s, p: study.NewProblem(s, at, seed), mech: mech, way: w, givers: givers, took: map[string]bool{},
		busy: map[int]bool{},
	}
	var places []place
	for i := range givers {
		places = append(places, place{name: fmt.Sprintf("giver%d", i)})
	}
	for i, r := range s.Resources {
		p := place{name: fmt.Sprintf("r%d", i)}
		for _, role := range r.Roles {
			p.roles = append(p.roles, workflow.RoleName(strings.ReplaceAll(role, " ", "")))
		}
		places = append(places, p)
	}
	for _, task := range s.Tasks {
		best := 0.0
		for _, r := range s.Resources {
			best = max(best, r.Suitability[task.Name])
		}
		x.best = append(x.best, best)
	}
	hubs := givers // nobody else has anything to say to others about people's tasks
	if w == partitions {
		hubs = len(places)
	}
	x.m = newMesh(t, uint64(at.Index*1000+at.Repetition)<<8+uint64(len(mech)), connectionTime, places, hubs)
	if _, err := x.m.nodes[0].api.AddWorkflow(context.Background(), "study.yaml", []byte(x.definition())); err != nil {
		t.Fatalf("%v\n%s", err, x.definition())
	}
	x.m.nodes[0].step()
	for i, r := range x.m.nodes {
		r.takes = func(j runner.Job) time.Duration {
			n := int(j.Input["n"].(float64))
			return x.perform(i-givers, n, x.task(j.Task))
		}
		if w == partitions && i >= givers {
			apps := []string{"work"}
			r.act(func() {
				if _, err := r.api.SetProfile(context.Background(), api.ProfileChange{Applications: &apps}); err != nil {
					t.Fatal(err)
				}
			})
		}
		switch {
		case w == people && mech.Pulls() && i < givers:
			r.wrote = func(workflow.InstanceID) { x.pull() }
		case w == people && i >= givers:
			r.wrote = func(id workflow.InstanceID) { x.m.at(x.m.now, func() { x.look(r, id.String()) }) }
		}
	}
	began := x.m.now + time.Second
	for i, arrives := range x.p.Arrival {
		x.m.at(began+time.Duration(arrives*float64(unit)), func() { x.start(i) })
	}
	for end := began + 10_000_000*unit; x.done < len(x.p.Arrival)*len(s.Tasks); {
		if x.m.now > end || len(x.m.queue) == 0 {
			t.Fatalf("%s, %s: %d of %d tasks were done", mech, w, x.done, len(x.p.Arrival)*len(s.Tasks))
		}
		x.m.next()
	}
	return x.quality.Total(), (x.last - began).Seconds() / unit.Seconds()
}

// definition is the study's process.
func (x *trial) definition() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow: study\ndata: {n: {type: number, required: true}}\ndistribution: {mechanism: %s, learning: false}\ntasks:\n", x.mech)
	var tasks, parts []string
	for i, task := range x.s.Tasks {
		var suits, after []string
		for r, of := range x.s.Resources {
			if s := of.Suitability[task.Name]; s > 0 {
				suits = append(suits, fmt.Sprintf("r%d: %v", r, s))
			}
		}
		for _, p := range task.After {
			after = append(after, fmt.Sprintf("t%d", p))
		}
		kind := "application: work"
		if x.way == people {
			kind = "type: manual, role: " + strings.ReplaceAll(task.Roles[0], " ", "")
		}
		rule := ""
		if len(after) > 0 {
			rule = fmt.Sprintf("after: [%s], ", strings.Join(after, ", "))
		}
		fmt.Fprintf(&b, "  t%d: {%s%s, in: [n], duration: %ds, urgency: %v, suitability: {%s}}\n", i, rule, kind,
			int(x.p.Mean[i]*unit.Seconds()), x.s.Urgency.Initial, strings.Join(suits, ", "))
		tasks, parts = append(tasks, fmt.Sprintf("t%d", i)), append(parts, fmt.Sprintf("p%d: [t%d]", i, i))
	}
	if x.way == people {
		parts = []string{fmt.Sprintf("all: [%s]", strings.Join(tasks, ", "))}
	}
	fmt.Fprintf(&b, "partitions: {%s}\n", strings.Join(parts, ", "))
	return b.String()
}

func (x *trial) task(name workflow.TaskName) (i int) {
	fmt.Sscanf(string(name), "t%d", &i)
	return i
}

// start starts an instance, at the givers in turn.
func (x *trial) start(i int) {
	g := x.m.nodes[i%x.givers]
	req := api.StartRequest{Workflow: "study", Input: map[string]string{"n": fmt.Sprint(i)}}
	if x.way == people {
		req.Assign = map[string]string{"all": string(g.member.ID())}
	}
	g.act(func() {
		if _, err := g.api.Start(context.Background(), req); err != nil {
			x.t.Fatal(err)
		}
	})
}

// perform counts a task that a resource does, and says how long it takes.
func (x *trial) perform(resource, instance, task int) time.Duration {
	x.done++
	takes := time.Duration(x.p.Duration[instance][task][resource] * float64(unit))
	x.last = max(x.last, max(x.m.nodes[x.givers+resource].free, x.m.now)+takes)
	x.quality.Add(x.s.Resources[resource].Suitability[x.s.Tasks[task].Name], x.best[task])
	return takes
}

// look has the person at a node do what has come to it.
func (x *trial) look(at *machine, id string) {
	in, err := at.api.Show(context.Background(), id)
	if err != nil {
		return
	}
	me := fmt.Sprintf("r%d", at.i-x.givers)
	for _, task := range in.Tasks {
		key := fmt.Sprint(me, id, task.Name)
		if task.Partner != me || task.State != workflow.Ready || x.took[key] {
			continue
		}
		x.took[key] = true
		n := int(in.Data["n"].(float64))
		at.does(x.perform(at.i-x.givers, n, x.task(task.Name)), func() {
			at.act(func() {
				if err := at.api.FinishTask(context.Background(), api.FinishRequest{ID: id, Task: task.Name}); err != nil {
					x.t.Fatal(err)
				}
			})
		})
	}
}

// pull has those who are idle look at their worklists, once all that goes on at this moment is over.
func (x *trial) pull() {
	if x.looks {
		return
	}
	x.looks = true
	x.m.at(x.m.now, func() {
		x.looks = false
		for _, r := range x.m.r.Perm(len(x.s.Resources)) {
			if !x.busy[r] {
				x.take(r)
			}
		}
	})
}

// take has a resource do the first item that it sees.
func (x *trial) take(r int) {
	at, ctx := x.m.nodes[x.givers+r], context.Background()
	list, err := at.api.Worklist(ctx, api.WorklistQuery{})
	if err != nil {
		x.t.Fatal(err)
	}
	if len(list) == 0 {
		return
	}
	item := list[0]
	if _, err := at.api.ClaimItems(ctx, api.ClaimRequest{Claim: api.ClaimSelect, Items: []string{item.ID}}); err != nil {
		x.t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(x.instance(item.Instance), &n); err != nil {
		x.t.Fatal(err)
	}
	x.busy[r] = true
	at.does(x.perform(r, n, x.task(workflow.TaskName(item.Task))), func() {
		if _, err := at.api.FinishItem(ctx, api.ItemResult{Item: item.ID}); err != nil {
			x.t.Fatal(err)
		}
		x.busy[r] = false
		x.pull()
	})
}

// instance is which one of the problem's an instance is.
func (x *trial) instance(id string) string {
	in, err := x.m.nodes[0].api.Show(context.Background(), id)
	if err != nil {
		x.t.Fatal(err)
	}
	return fmt.Sprint(in.Data["n"])
}

// sample is a mean with the half width of its 95 % confidence interval.
type sample struct{ mean, margin float64 }

func summarize(xs []float64) (s sample) {
	n := float64(len(xs))
	for _, x := range xs {
		s.mean += x / n
	}
	ss := 0.0
	for _, x := range xs {
		ss += (x - s.mean) * (x - s.mean)
	}
	if n > 1 {
		s.margin = 1.96 * math.Sqrt(ss/(n-1)/n)
	}
	return s
}

func (s sample) String() string { return fmt.Sprintf("%+.4f ± %.4f", s.mean, s.margin) }

// scenario is a published one with as much under way as the level says.
func (l level) scenario(name string, w way) *study.Scenario {
	s := study.Builtin(name)
	l.set(s)
	s.Shares = w.shares()
	return s
}

// trials are those of a level: of each condition so many, or a sample of them.
func trials(l level, w way) (*study.Scenario, []study.Trial) {
	s := l.scenario(*scenario, w)
	s.Repetitions = 1
	if *whole {
		s.Repetitions = *each
		return s, s.Trials()
	}
	return s, s.Trials()[4 : 4+l.sample]
}

// Where a sample is run, its mean must be near that of the study; where all are, the
// whole 95 % interval of the difference must be.
const (
	near  = 0.05
	equal = 0.03
)

// compare runs trials live and in the study.
func compare(
	t *testing.T, s *study.Scenario, ts []study.Trial, mech aptitude.Mechanism, w way, givers int,
	connectionTime time.Duration,
) (got, want, diff, longer sample) {
	var gots, wants, diffs, times []float64
	for _, at := range ts {
		r, _, err := study.Trace(s, at, mech, seed)
		if err != nil {
			t.Fatal(err)
		}
		q, took := live(t, s, at, mech, w, givers, connectionTime)
		gots, wants, diffs = append(gots, q), append(wants, r.Quality), append(diffs, q-r.Quality)
		times = append(times, took/r.Time-1)
	}
	return summarize(gots), summarize(wants), summarize(diffs), summarize(times)
}

// Live distribution reaches the quality of the study: by each mechanism, for the
// same problems, with as much under way, and with the same rule for shares. One node
// gives out all of the work. How much longer all of it takes than in the study is logged.
func TestLiveQualityIsTheStudys(t *testing.T) {
	for _, l := range levels {
		for _, w := range []way{people, partitions} {
			if l.sample == 0 && !*whole || !strings.Contains(l.name+" "+string(w), *only) {
				continue
			}
			s, ts := trials(l, w)
			for _, mech := range aptitude.Mechanisms() {
				if *mechanism != "" && string(mech) != *mechanism {
					continue
				}
				got, want, d, longer := compare(t, s, ts, mech, w, 1, time.Hour)
				t.Logf("%s, %s, %d trials, %s: live %.3f, study %.3f, difference %s, time %s", l.name, w, len(ts),
					mech, got.mean, want.mean, d, longer)
				if *whole && math.Abs(d.mean)+d.margin > equal || math.Abs(d.mean) > near {
					t.Errorf("%s, %s, %s: the difference is %s", l.name, w, mech, d)
				}
			}
		}
	}
}

// Where the best for a later task have earlier tasks of other instances to do, who is idle for
// it depends on which instances are known when it is given out: live partitions are drawn as
// in a study that knows of no later ones, and not as in one that knows of all.
func TestIdleByWhatIsKnown(t *testing.T) {
	const most = 0.015 // half of what lies between the two studies
	s := levels[2].scenario("three", partitions)
	s.Repetitions = 1
	got, want, d, _ := compare(t, s, s.Trials(), aptitude.Pull, partitions, 1, time.Hour)
	t.Logf("three, fifty, partitions, Pull: live %.3f, study %.3f, difference %s", got.mean, want.mean, d)
	if math.Abs(d.mean) > most {
		t.Errorf("three, fifty, partitions, Pull: the difference is %s, want at most %v", d, most)
	}
}

// What changes where two give out the same work in turn, and hear of each other's only
// with the beats of its holders: the best get more, and the work is less spread.
func TestTwoGivers(t *testing.T) {
	l := levels[1]
	s, ts := trials(l, people)
	for _, mech := range []aptitude.Mechanism{aptitude.SelPush, aptitude.SelPush10, aptitude.SelPushFlowtime} {
		got, want, d, longer := compare(t, s, ts, mech, people, 2, 15*time.Second)
		t.Logf("two givers, %s, %d trials, %s: live %.3f, study %.3f, difference %s, time %s", l.name, len(ts), mech,
			got.mean, want.mean, d, longer)
		if math.Abs(d.mean) > near {
			t.Errorf("two givers, %s: the difference is %s", mech, d)
		}
	}
}
