package study

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// report runs a whole study, trials in any order.
func report(t testing.TB, s *Scenario, seed uint64, order []int, ms ...aptitude.Mechanism) *Report {
	t.Helper()
	trials := s.Trials()
	results := make([][]Result, len(trials))
	if order == nil {
		order = rand.New(rand.NewPCG(seed, seed)).Perm(len(trials))
	}
	for _, i := range order {
		var err error
		if results[i], err = Run(s, trials[i], ms, seed); err != nil {
			t.Fatal(err)
		}
	}
	return Summarize(s, ms, seed, results)
}

// small is the published scenario with few repetitions.
func small() *Scenario {
	s := Five()
	s.Repetitions = 2
	return s
}

// The acceptance of the study: with the default seed at least 26 of the 30
// published cells of the first scenario come out.
func TestPublishedStudy(t *testing.T) {
	s := Five()
	r := report(t, s, DefaultSeed, nil, aptitude.Mechanisms()...)
	if len(r.ByCondition) != 27 || r.Simulations != 4320 {
		t.Errorf("%d conditions, %d simulations, want 27 and 4320", len(r.ByCondition), r.Simulations)
	}
	if p := r.Published; p.Older.Same < 26 || p.Older.Cells != 30 || p.Family != (Tally{6, 6}) {
		t.Errorf("%+v against the older, %+v within the family came out as published, want at least 26 of 30, and 6",
			p.Older, p.Family)
	}
	mean := func(m aptitude.Mechanism) float64 { return r.Quality.Means[m].Mean }
	if !(mean(aptitude.Push) > mean(aptitude.SelPush) && mean(aptitude.SelPush) > mean(aptitude.Selective) &&
		mean(aptitude.Selective) > mean(aptitude.Typical) && mean(aptitude.Typical) > mean(aptitude.Receptive) &&
		mean(aptitude.Receptive) > mean(aptitude.Pull)) {
		t.Error("quality is not in the published order")
	}
}

// The tables that reports are compared with are the source's, whose signs are in
// a file of their own; those of the family among itself are in docs/study.md.
func TestTablesAreThePublishedOnes(t *testing.T) {
	src, err := os.ReadFile("testdata/published.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]map[aptitude.Mechanism]map[aptitude.Mechanism]Sign
	if err := json.Unmarshal(src, &want); err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, name := range Builtins() {
		s := Builtin(name)
		s.Repetitions = 2
		r := report(t, s, 1, nil, aptitude.Mechanisms()...)
		if r.Published != nil {
			t.Errorf("%s with fewer repetitions counts as published", name)
		}
		r.Published = compareToSource(r)
		inFamily := 0
		for _, c := range r.Published.Cells {
			sign, known := want[name][c.Measure+"_test"][c.Row][c.Column]
			if !known {
				inFamily++
			} else if sign != c.Published {
				t.Errorf("%s, %s of %s against %s: %s, published %s", name, c.Measure, c.Row, c.Column, c.Published,
					sign)
			}
		}
		family := map[string]int{"five": 6}[name]
		if r.Published.Older.Cells != 30 || inFamily != family || r.Published.Family.Cells != family {
			t.Errorf("%s: %+v, %d cells within the family, want 30 and %d", name, r.Published.Older, inFamily, family)
		}
		for _, c := range r.Published.Unknown {
			if c.Published != "" || c.Obtained == "" || slices.Contains(older, c.Column) {
				t.Errorf("%s: %+v counts as not known", name, c)
			}
		}
		all += len(r.Published.Cells) + len(r.Published.Unknown)
		for _, c := range r.signCharts(nil) {
			holdsTable(t, name+", "+c.Name, string(c.SVG), r)
		}
	}
	if all != PublishedCells {
		t.Errorf("%d cells are known or said not to be, want %d", all, PublishedCells)
	}
}

// holdsTable finds each published cell in the chart of its measure, what was obtained above
// what was published, in a frame where the two differ; and whose sign is not known is said so.
func holdsTable(t *testing.T, name, svg string, r *Report) {
	t.Helper()
	measure, _, _ := strings.Cut(strings.TrimPrefix(name, r.Scenario+", "), "-")
	var want []string
	frames := 0
	for _, row := range family {
		for _, column := range columns {
			if c, ok := r.Published.At(measure, row, column); ok {
				want = append(want, string(c.Obtained)+string(c.Published))
				if !c.Same() {
					frames++
				}
			} else if c, ok := at(r.Published.Unknown, measure, row, column); ok {
				want = append(want, string(c.Obtained)+"not known here")
			}
		}
	}
	var got []string
	for _, m := range regexp.MustCompile(`font-weight="600">([-+=])</text>\s*<text[^>]*>published: ([^<]*)</text>`).
		FindAllStringSubmatch(svg, -1) {
		got = append(got, m[1]+m[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has %v, want %v", name, got, want)
	}
	if n := strings.Count(svg, `stroke="`+colour(1)); n != frames {
		t.Errorf("%s has %d frames, %d cells differ", name, n, frames)
	}
}

// What comes out of the published scenarios with the default seed: the cells and
// the claims that do not, by name, as docs/study.md tells them.
func TestWhatDoesNotComeOut(t *testing.T) {
	datadriven.RunTest(t, "testdata/published.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := report(t, Builtin(d.Cmd), DefaultSeed, nil, aptitude.Mechanisms()...).Published
		var b strings.Builder
		fmt.Fprintf(&b, "%d of %d against the older, %d of %d within the family\n", p.Older.Same, p.Older.Cells,
			p.Family.Same, p.Family.Cells)
		for _, c := range p.Cells {
			if !c.Same() {
				fmt.Fprintf(&b, "%s of %s against %s: %s, published %s\n", c.Measure, c.Row, c.Column, c.Obtained,
					c.Published)
			}
		}
		for _, c := range p.Claims {
			fmt.Fprintf(&b, "%s: %v\n  %s\n", c.Claim, c.Holds, c.Found)
		}
		return b.String()
	})
}

// The default seed was chosen for its outcome, so it proves little. In the
// median of twenty seeds at least 26 of the 30 published cells come out, too
// (docs/study.md, How far to trust that number), and in that of the first six.
func TestMedianOfTwentySeeds(t *testing.T) {
	cells := make([]int, sample.Of(6, 20))
	t.Run("seeds", func(t *testing.T) {
		for i := range cells {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				cells[i] = report(t, Five(), uint64(i+1), nil, aptitude.Mechanisms()...).Published.Older.Same
			})
		}
	})
	sorted := slices.Sorted(slices.Values(cells))
	if half := len(sorted) / 2; float64(sorted[half-1]+sorted[half])/2 < 26 {
		t.Errorf("the median is less than 26 of 30 cells: %v", sorted)
	}
	t.Logf("cells as published, by seed from 1: %v", cells)
}

// The same seed gives the same bytes, in whatever order trials run and
// whichever other mechanisms are studied; another seed gives others.
func TestResultsDependOnTheSeedAlone(t *testing.T) {
	s := small()
	forth := make([]int, len(s.Trials()))
	for i := range forth {
		forth[i] = i
	}
	back := slices.Clone(forth)
	slices.Reverse(back)
	bytes := func(r *Report) string {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Charts() {
			b = append(b, c.SVG...)
		}
		return string(b)
	}
	one := report(t, s, 7, forth, aptitude.Mechanisms()...)
	if bytes(one) != bytes(report(t, s, 7, back, aptitude.Mechanisms()...)) {
		t.Error("the order of the trials matters")
	}
	alone := report(t, s, 7, nil, aptitude.Selective)
	if alone.Time.Means[aptitude.Selective] != one.Time.Means[aptitude.Selective] {
		t.Error("a mechanism's results depend on the others")
	}
	if bytes(one) == bytes(report(t, s, 8, nil, aptitude.Mechanisms()...)) {
		t.Error("two seeds give the same")
	}
}

// Whatever the scenario and the mechanism: each task of each instance is done
// once, by someone suited, after its predecessors, and nobody does two at a
// time.
func TestRunsAreLawful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := aScenario(t)
		m := rapid.SampledFrom(append(aptitude.Mechanisms(), aptitude.SelPushPull)).Draw(t, "mechanism")
		trial := rapid.SampledFrom(s.Trials()).Draw(t, "trial")
		result, work, err := Trace(s, trial, m, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if len(work) != s.Instances*len(s.Tasks) {
			t.Fatalf("%d tasks were done, want %d", len(work), s.Instances*len(s.Tasks))
		}
		if !(result.Quality > 0 && result.Quality <= 1+epsilon) {
			t.Fatalf("quality %v", result.Quality)
		}
		ended := map[[2]int]float64{}
		free := make([]float64, len(s.Resources))
		last := 0.0
		for _, w := range work {
			ended[[2]int{w.Instance, w.Task}] = w.End
			last = max(last, w.End)
			if s.Resources[w.Resource].Suitability[s.Tasks[w.Task].Name] == 0 {
				t.Fatalf("not suited: %+v", w)
			}
			if w.Start < w.Ready || w.End < w.Start+1 || w.Start < free[w.Resource] {
				t.Fatalf("out of time: %+v, resource free from %v", w, free[w.Resource])
			}
			free[w.Resource] = w.End
		}
		for _, w := range work {
			for _, before := range s.Tasks[w.Task].After {
				if end := ended[[2]int{w.Instance, before}]; end > w.Ready {
					t.Fatalf("%+v was ready before task %d ended at %v", w, before, end)
				}
			}
		}
		checkInstances(t, s, trial, work, result)
		if len(ended) != len(work) || result.Time != last {
			t.Fatalf("%d different tasks of %d; time %v, last end %v", len(ended), len(work), result.Time, last)
		}
	})
}

// checkInstances checks what is said of each instance of a run against its work.
func checkInstances(t *rapid.T, s *Scenario, trial Trial, work []Work, result Result) {
	p := NewProblem(s, trial, 1)
	if s.Together != (p.Arrival[len(p.Arrival)-1] == 0) {
		t.Fatalf("together %v: the last instance arrives at %v", s.Together, p.Arrival[len(p.Arrival)-1])
	}
	for i := range p.Arrival {
		p.Arrival[i] = float64(-i)
	}
	times, tasks := 0.0, 0
	for i, run := range s.instanceRuns(p, work) {
		actual, ideal := 0.0, 0.0
		for _, w := range work {
			if w.Instance != i {
				continue
			}
			task := s.Tasks[w.Task].Name
			best := 0.0
			for _, r := range s.Resources {
				best = max(best, r.Suitability[task])
			}
			actual, ideal = actual+s.Resources[w.Resource].Suitability[task], ideal+best
			if w.End > run.Ended {
				t.Fatalf("instance %d ended at %v, and %+v later", i+1, run.Ended, w)
			}
		}
		if math.Abs(run.Quality-actual/ideal) > epsilon || run.Instance != i+1 || run.Time != run.Ended+float64(i) {
			t.Fatalf("%+v of instance %d, want quality %v", run, i+1, actual/ideal)
		}
		times += run.Time
		tasks += len(run.Tasks)
	}
	if mean := times / float64(s.Instances); tasks != len(work) || math.Abs(p.instanceTime(work)-mean) > epsilon {
		t.Fatalf("%d tasks, %v on average, want %d and %v", tasks, p.instanceTime(work), len(work), mean)
	}
	if result.InstanceTime <= 0 || result.InstanceTime > result.Time+epsilon {
		t.Fatalf("an instance took %v on average, all together %v", result.InstanceTime, result.Time)
	}
}

// What counts as in hand when an item is given out depends on the rule for shares: the best
// for b has the second instance's a in hand when the first instance's b is ready. Only who
// looks at no later instance takes no notice of that. By Pull chance decides among the two then.
func TestSharesOfLaterInstances(t *testing.T) {
	never, always := [2]bool{false, true}, [2]bool{true, false}
	for _, c := range []struct {
		rule      Shares
		mechanism aptitude.Mechanism
		by        [2]bool // it is done by the best, and by the other, in some trials
	}{
		{KeptShares, aptitude.SelPush, never}, {RenewedShares, aptitude.SelPush, never},
		{EarlierShares, aptitude.SelPush, always},
		{KeptShares, aptitude.Pull, never}, {RenewedShares, aptitude.Pull, never},
		{EarlierShares, aptitude.Pull, [2]bool{true, true}},
	} {
		s, err := Parse("pair.yaml", []byte(`
tasks: [{name: a, role: x}, {name: b, roles: [x, y]}]
resources:
  - {name: best, role: x, suitability: {a: 1, b: 1}}
  - {name: other, role: y, suitability: {b: 0.7}}
arrivals: together
instances: 2
shares: `+string(c.rule)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var by [2]bool
		for _, trial := range s.Trials() {
			_, work, err := Trace(s, trial, c.mechanism, 1)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(work, func(w Work) bool { return w.Instance == 0 && w.Task == 1 })
			by[work[i].Resource] = true
		}
		if by != c.by {
			t.Errorf("%s, shares %s: b of the first instance is done by the best, by the other: %v, want %v",
				c.mechanism, c.rule, by, c.by)
		}
	}
}

// The order of distribution is that of the dispatching rule, whatever the rule for shares.
func TestSharesKeepTheOrderOfDispatching(t *testing.T) {
	for _, rule := range []Shares{KeptShares, RenewedShares, EarlierShares} {
		s, err := Parse("order.yaml", []byte(`
tasks: [{name: a, role: x}]
resources:
  - {name: best, role: x, suitability: {a: 1}}
  - {name: other, role: x, suitability: {a: 0.7}}
arrivals: together
instances: 2
dispatching: fifo
shares: `+string(rule)), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := NewProblem(s, s.Trials()[0], 1)
		sim := newSimulation(s, p, aptitude.SelPush, source(1, s.Trials()[0], aptitude.SelPush))
		p.Arrival[0], p.Arrival[1] = 1, 0 // the second has started first
		sim.now = 1
		sim.arrive(0)
		sim.arrive(1)
		if as := sim.allocate(); as[0].Item != "2/a" {
			t.Errorf("shares %s: %s is given out first, want that of the instance that started first", rule, as[0].Item)
		}
	}
}

// aScenario draws a process graph, resources in several roles and tasks open
// to several.
func aScenario(t *rapid.T) *Scenario {
	s := defaults("drawn.yaml")
	s.Instances, s.Repetitions, s.ResourcesPerRole = rapid.IntRange(1, 6).Draw(t, "instances"), 1, 2
	s.Together = rapid.Bool().Draw(t, "together")
	s.Shares = rapid.SampledFrom([]Shares{KeptShares, RenewedShares, EarlierShares}).Draw(t, "shares")
	s.Rejection = rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "rejection")
	s.Urgency.Growth = rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "growth")
	s.DueFactor = rapid.SampledFrom([]float64{0, 2}).Draw(t, "due")
	s.Relax = s.DueFactor > 0
	s.Dispatching = rapid.SampledFrom([]aptitude.Dispatching{
		aptitude.AsReady, aptitude.FIFO, aptitude.SPT, aptitude.EDD,
	}).Draw(t, "dispatching")
	for i := range rapid.IntRange(1, 5).Draw(t, "tasks") {
		task := Task{Name: aptitude.TaskID(fmt.Sprint("t", i)), Time: 10}
		for b := range i {
			if rapid.Bool().Draw(t, "after") {
				task.After = append(task.After, b)
			}
		}
		s.Tasks = append(s.Tasks, task)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "resources") {
		r := Resource{Name: aptitude.ResourceID(fmt.Sprint("r", i)), Suitability: map[aptitude.TaskID]float64{}}
		r.Availability = rapid.SampledFrom([]float64{0.5, 0.8, 1}).Draw(t, "availability")
		for _, task := range s.Tasks {
			if x := rapid.SampledFrom([]float64{0, 0.3, 0.7, 1}).Draw(t, "suitability"); x > 0 || i == 0 {
				r.Suitability[task.Name] = max(0.1, x)
			}
		}
		s.Resources = append(s.Resources, r)
	}
	return s
}

// With one resource per role nothing is left to choose, so that every
// mechanism takes the same time.
func TestOneResourceLeavesNoChoice(t *testing.T) {
	s := small()
	s.Resources = []Resource{s.Resources[0], s.Resources[8], s.Resources[11]}
	ms := append(aptitude.Mechanisms(), aptitude.SelPushPull)
	for _, trial := range s.Trials() {
		results, err := Run(s, trial, ms, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r != results[0] {
				t.Fatalf("%+v: %s gives %+v, Push %+v", trial, ms[i], r, results[0])
			}
		}
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	s := small()
	r := report(t, s, 1, nil, aptitude.Mechanisms()...)
	trial := s.Example()
	_, work, err := Trace(s, trial, aptitude.SelPush, 1)
	if err != nil {
		t.Fatal(err)
	}
	charts := append(r.Charts(), Chart{"gantt", s.Gantt(aptitude.SelPush, trial, work)},
		Chart{"allocation", s.AllocationChart(aptitude.SelPush, trial, work)}, Chart{"graph", s.SchedulingGraph()})
	together := small()
	together.Together, together.Loads = true, []float64{1}
	charts = append(charts, report(t, together, 1, nil, aptitude.Push).Charts()...)
	for _, c := range charts {
		name, svg := c.Name, c.SVG
		d := xml.NewDecoder(strings.NewReader(string(svg)))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, part := range []string{`role="img"`, "<title id=", "<desc id="} {
			if !strings.Contains(string(svg), part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
		if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") {
			t.Errorf("%s has a place that is no number", name)
		}
	}
	for i, row := range s.AllocationTable(work) {
		if slices.Contains(row, -1) {
			t.Errorf("instance %d is incomplete: %v", i+1, row)
		}
	}
}

// Every condition is in a chart of its own load, and the scheduling graph shows
// the whole process with its costliest path, also where only that is allocated.
func TestChartsShowEverything(t *testing.T) {
	s := small()
	r := report(t, s, 1, nil, aptitude.Push, aptitude.SelPush)
	of := make(map[string]string)
	for _, c := range r.Charts() {
		of[c.Name] = string(c.SVG)
	}
	for _, at := range r.ByCondition {
		for _, m := range r.Mechanisms {
			name := fmt.Sprintf("quality-load-%v", at.Load)
			tip := fmt.Sprintf("tasks %v, resources %v, by %s: %s ±", at.TaskVariability, at.ResourceVariability, m,
				number(at.Quality.Means[m].Mean))
			if !strings.Contains(of[name], tip) {
				t.Errorf("%s does not say %q", name, tip)
			}
		}
	}
	if _, drawn := of["quality-published"]; drawn {
		t.Error("published signs are drawn beside those of a scenario that is not published")
	}
	if _, drawn := of["quality-mean"]; drawn {
		t.Error("a mean of the older mechanisms is drawn, which were not studied")
	}
	graph, err := Parse("graph.yaml", []byte("process: office.lxpdl\ncritical-path: true\n"+
		"resources: [{name: x, role: clerk, suitability: {A: 1, B: 1, C: 1, D: 1}}]\n"), files)
	if err != nil {
		t.Fatal(err)
	}
	svg := string(graph.SchedulingGraph())
	for _, part := range []string{
		"The costliest path is A, C, D, and takes 10 time units", "only it is allocated",
		"A, clerk: time 5, from 0 to 5", "B, clerk: time 3, from 5 to 8", "C, clerk: time 4, from 5 to 9",
		"D, clerk: time 1, from 9 to 10",
	} {
		if !strings.Contains(svg, part) {
			t.Errorf("the scheduling graph does not say %q", part)
		}
	}
	if n := strings.Count(svg, `fill="`+colour(1)+`"><title>`); n != 3 {
		t.Errorf("%d tasks are in the colour of the costliest path, want 3", n)
	}
}

func TestAxisHoldsItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		high := low + rapid.Float64Range(1e-3, 1e6).Draw(t, "span")
		a := newAxis(low, high, 0, 100, 7)
		if a.at(low) < -1e-6 || a.at(high) > 100+1e-6 || a.at(low) > a.at(high) {
			t.Fatalf("%v..%v on %+v: %v..%v", low, high, a, a.at(low), a.at(high))
		}
	})
}

// BenchmarkStudy runs the 4,320 simulations on one processor.
func BenchmarkStudy(b *testing.B) {
	s := Five()
	for b.Loop() {
		report(b, s, DefaultSeed, nil, aptitude.Mechanisms()...)
	}
}

// With compensation a violation that nobody could avoid changes nothing; without
// it the metric falls below thresholds. One that somebody avoids keeps counting.
func TestUnavoidableViolationsAreCompensated(t *testing.T) {
	study := func(penalty float64, except aptitude.ResourceID, compensate bool) *Report {
		s := small()
		s.Compensate = compensate
		for _, r := range s.Resources {
			for task := range r.Suitability {
				if r.Name != except {
					r.Violations[task] = []aptitude.Violation{{Penalty: penalty}}
				}
			}
		}
		return report(t, s, 1, nil, aptitude.Selective, aptitude.SelPush)
	}
	none := study(0, "", false).Time.Means
	if diff := cmp.Diff(none, study(0.5, "", true).Time.Means); diff != "" {
		t.Errorf("what nobody could avoid is compensated, and yet changes (-want +got):\n%s", diff)
	}
	if cmp.Equal(none, study(0.5, "", false).Time.Means) {
		t.Error("violations that are not compensated change nothing")
	}
	if cmp.Equal(none, study(0.5, "resource 3", true).Time.Means) {
		t.Error("violations that resource 3 avoids change nothing")
	}
}

// Q_total counts violations: Push gives the work to the most suitable all the same.
func TestViolationsCostQuality(t *testing.T) {
	s := small()
	s.Resources[0].Violations["task 1"] = []aptitude.Violation{{Penalty: 0.5}}
	want := (0.5 + 1 + 1) / (0.9 + 1 + 1)
	if got := report(t, s, 1, nil, aptitude.Push).Quality.Means[aptitude.Push].Mean; math.Abs(got-want) > 1e-9 {
		t.Errorf("quality by Push is %v, want %v", got, want)
	}
}
