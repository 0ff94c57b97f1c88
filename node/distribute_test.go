package node_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// job is a workflow of one piece of work for which five partners are apt to
// different degrees.
const job = `
workflow: job
tasks:
  work: {application: saw, duration: 10s, suitability: {one: 1.0, two: 0.9, three: 0.8, four: 0.7, five: 0.5}}
`

var (
	five   = []string{"one", "two", "three", "four", "five"}
	aptFor = map[string]float64{"one": 1, "two": 0.9, "three": 0.8, "four": 0.7, "five": 0.5}
)

// sawyers is a mesh of five who can saw, each a piece after the other.
func sawyers(t *testing.T) *team {
	tm := newTeam(t, five...)
	for _, name := range five {
		tm.p[name].hand.work(10 * time.Second)
		tm.profile(name, api.ProfileChange{Applications: &[]string{"saw"}})
	}
	tm.add("one", job)
	return tm
}

func (tm *team) profile(name string, c api.ProfileChange) {
	tm.t.Helper()
	if _, err := tm.p[name].api.SetProfile(tm.t.Context(), c); err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
}

// give starts an instance of job by a mechanism and returns its holder.
func (tm *team) give(at, mechanism string) (id, partner string) {
	tm.t.Helper()
	st, err := tm.p[at].api.Start(tm.t.Context(), api.StartRequest{Workflow: "job", Mechanism: mechanism})
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return st.ID, tm.show(at, st.ID).Partitions[0].Partner
}

func (tm *team) show(at, id string) *api.Instance {
	tm.t.Helper()
	in, err := tm.p[at].api.Show(tm.t.Context(), id)
	if err != nil {
		tm.t.Fatal(err)
	}
	return in
}

// shares is how a hundred instances were distributed.
type shares struct {
	quality float64 // Q_total: all that can be had is 1 for each
	most    int     // of one partner
	of      map[string]int
}

// hundred starts a hundred instances of job by a mechanism, one every so often,
// lets them end, and tells how they were distributed.
func hundred(t *testing.T, mechanism string, every time.Duration) (out shares) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		out.of = map[string]int{}
		var last string
		for range 100 {
			id, partner := tm.give("one", mechanism)
			out.of[partner]++
			out.most = max(out.most, out.of[partner])
			out.quality += aptFor[partner] / 100
			last = id
			pass(every)
		}
		pass(1000 * time.Second)
		if s := tm.state("one", last); s != workflow.InstanceSucceeded {
			t.Errorf("%s: the last instance is %s", mechanism, s)
		}
		done := 0
		for _, name := range five {
			done += tm.p[name].hand.runs("work")
		}
		if done != 100 {
			t.Errorf("%s: %d pieces of work were done for a hundred instances", mechanism, done)
		}
	})
	return out
}

// On a mesh of five with unequal suitabilities the mechanisms order as in the
// study: quality Push ≥ Sel-push ≥ Selective ≥ Pull, and the Sel-push family
// piles less up on one partner than Push does.
func TestMechanismsOrderAsInTheStudy(t *testing.T) {
	const every = 6 * time.Second // a third of what the five could do
	got := map[string]shares{}
	for _, m := range workflow.Mechanisms {
		got[m] = hundred(t, m, every)
		t.Logf("%-17s quality %.3f, %v", m, got[m].quality, got[m].of)
	}
	for _, p := range [][2]string{{"Push", "Sel-push"}, {"Sel-push", "Selective"}, {"Selective", "Pull"}} {
		if better, worse := got[p[0]].quality, got[p[1]].quality; better < worse {
			t.Errorf("quality by %s is %.3f, by %s %.3f: want the first at least as good", p[0], better, p[1], worse)
		}
	}
	for _, m := range []string{"Sel-push", "Sel-push-10", "Sel-push-flowtime", "Sel-push-pull"} {
		if got[m].most >= got["Push"].most {
			t.Errorf("%s gives %d of a hundred to one partner, Push %d: want less", m, got[m].most, got["Push"].most)
		}
	}
}

// why is how the only partition of an instance came to its partner.
func (tm *team) why(at, id string) *api.Why {
	tm.t.Helper()
	return tm.show(at, id).Partitions[0].Why
}

func verdicts(w *api.Why) map[string]string {
	out := map[string]string{}
	for _, c := range w.Candidates {
		out[c.Partner] = c.Verdict
	}
	return out
}

// A partner that becomes busy, says that it takes nothing, cannot be reached or
// leaves is passed over at once, and the assignment says so.
func TestPassedOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := sawyers(t)
		expect := func(mechanism, want string) *api.Why {
			t.Helper()
			id, got := tm.give("five", mechanism)
			if got != want {
				t.Errorf("by %s %s got it, want %s:\n%+v", mechanism, got, want, tm.why("five", id))
			}
			return tm.why("five", id)
		}
		none, high := 0.0, 1.0

		w := expect("Sel-push", "one")
		if len(w.Candidates) != 5 || w.Candidates[0].Partner != "one" || w.Candidates[0].AbsAlloc != 0.8 ||
			w.Threshold != 0.6 || w.Load != 1 {
			t.Errorf("the first assignment says %+v", w)
		}
		w = expect("Sel-push", "two")                            // one is busy with the first
		if v := verdicts(w); v["one"] != "below the threshold" { // the first takes half of what it has
			t.Errorf("of one, which is busy, the second assignment says %q", v["one"])
		}
		pass(time.Minute) // both are done
		tm.profile("one", api.ProfileChange{Availability: &none})
		if v := verdicts(expect("Push", "two")); v["one"] != "absent" {
			t.Errorf("of one, which takes nothing, the assignment says %q", v["one"])
		}
		pass(time.Minute)
		for _, name := range five {
			tm.profile(name, api.ProfileChange{Availability: &none})
		}
		if _, err := tm.p["five"].api.Start(t.Context(), api.StartRequest{Workflow: "job"}); err == nil ||
			!strings.Contains(err.Error(), "all who are suited are absent (have one of them raise its availability") {
			t.Errorf("where nobody takes anything, the start says %v", err)
		}
		for _, name := range five {
			tm.profile(name, api.ProfileChange{Availability: &high})
		}
		expect("Push", "one")
		tm.disconnect("one", "five")
		synctest.Wait()
		if v := verdicts(expect("Push", "two")); v["one"] != "absent" {
			t.Errorf("of one, which cannot be reached, the assignment says %q", v["one"])
		}
		tm.connect("one", "five")
		synctest.Wait()
		expect("Push", "one")
		tm.p["one"].leave()
		expect("Push", "two")
	})
}

// A node shows its own load as its partners see it.
func TestOwnLoadIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", `
workflow: watch
tasks:
  look: {type: manual, duration: 1h}
partitions: {p: {tasks: [look], partner: one}}
`)
		tm.begin("one", "watch", nil)
		pass(30 * time.Second) // a heartbeat or two
		for _, at := range []string{"one", "two"} {
			ps, err := tm.p[at].api.Partners(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(ps, func(p api.Partner) bool { return p.Name == "one" }); ps[i].Load != 0.5 {
				t.Errorf("at %s the load of one is %v, want 0.5 for an hour of work", at, ps[i].Load)
			}
			spare, err := tm.p[at].api.Resources(t.Context(), "capacity one")
			if err != nil || len(spare) != 1 || spare[0].Holders[0].Spare != 0.5 {
				t.Errorf("at %s one has to spare: %+v, %v", at, spare, err)
			}
		}
	})
}

// A partner that rejects what it was given passes it on to the next most apt,
// in one step; a partner that has rejected it does not get it again.
func TestRejectedWorkGoesToTheNextMostApt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, five...)
		tm.add("five", `
workflow: rescue
tasks:
  climb: {type: manual, duration: 10s, suitability: {one: 1.0, two: 0.9, three: 0.8}}
  report: {after: climb}
partitions: {p: [climb], q: {tasks: [report], partner: five}}
distribution: {mechanism: Push}
`)
		id := tm.begin("five", "rescue", nil)
		for _, step := range [][2]string{{"one", "two"}, {"two", "three"}} {
			to, err := tm.p[step[0]].api.RejectTask(t.Context(),
				api.RejectRequest{ID: id, Task: "climb", Reason: "no rope"})
			if err != nil {
				t.Fatal(err)
			}
			if to.Partner != step[1] {
				t.Fatalf("%s passed it on to %s, want %s", step[0], to.Partner, step[1])
			}
			synctest.Wait()
		}
		if _, err := tm.p["three"].api.RejectTask(t.Context(), api.RejectRequest{ID: id, Task: "climb"}); err == nil ||
			!strings.Contains(err.Error(), "all who are suited have rejected it") {
			t.Errorf("the last rejection: %v", err)
		}
		task := tm.show("five", id).Tasks[0]
		if task.Partner != "three" || task.State != workflow.Ready || task.Attempt != 3 || task.Reason != "no rope" ||
			task.Why == nil {
			t.Errorf("at the initiator the task is %+v", task)
		}
		if v := verdicts(task.Why); v["one"] != "rejected it" || v["two"] != "rejected it" {
			t.Errorf("the assignment says %v", v)
		}
		if err := tm.p["three"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "climb"}); err != nil {
			t.Fatal(err)
		}
		tm.succeeds(id, time.Minute, "one", "three", "five")
	})
}

// A contingency goes to the most apt by the mechanism of its instance, also
// where that was chosen at the start, no matter which node assigns it.
func TestContingencyByTheMechanismOfTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, five...)
		tm.add("five", `
workflow: rescue
tasks:
  climb: {type: manual, contingency: dig}
  dig: {type: manual, suitability: {one: 0.5, two: 0.9, three: 0.8}}
partitions: {p: {tasks: [climb], partner: four}}
`)
		st, err := tm.p["five"].api.Start(t.Context(), api.StartRequest{Workflow: "rescue", Mechanism: "push"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := tm.p["four"].api.FinishTask(t.Context(), api.FinishRequest{ID: st.ID, Task: "climb", Failed: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		in := tm.show("five", st.ID)
		dig := in.Tasks[slices.IndexFunc(in.Tasks, func(x api.Task) bool { return x.Name == "dig" })]
		if in.Mechanism != "Push" || dig.Partner != "two" || dig.Why == nil || dig.Why.Mechanism != "Push" ||
			len(dig.Why.Candidates) != 3 {
			t.Errorf("by %q: %+v, why %+v", in.Mechanism, dig, dig.Why)
		}
	})
}

// A contingency that nobody can take goes to the first partner that comes to be
// able, the one that judged included, at once: no timer is due for a quarter of
// an hour.
func TestNewResourceIsOfferedToWaitingWork(t *testing.T) {
	for _, who := range []string{"one", "three"} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeam(t, "one", "two", "three")
			tm.add("one", `
workflow: flood
tasks:
  dam: {type: manual, contingency: pump}
  pump: {application: pump, suitability: {one: 0.5, three: 1}}
partitions: {main: [dam]}
`)
			id := tm.begin("one", "flood", map[string]string{"main": "two"})
			if err := tm.p["two"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: "dam", Failed: true}); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			if in := tm.show("one", id); !strings.Contains(in.Tasks[0].Reason, "nobody can take the contingency pump yet: task pump: no partner has application pump") {
				t.Fatalf("the instance does not wait for a pump: %+v", in.Tasks)
			}
			began := time.Now()
			tm.profile(who, api.ProfileChange{Applications: &[]string{"pump"}})
			if s := tm.state("one", id); s != workflow.InstanceSucceeded || time.Since(began) > 0 {
				t.Errorf("after %s the instance is %s", time.Since(began), s)
			}
			in := tm.show("one", id)
			if pump := in.Tasks[1]; pump.Partner != who || pump.Why == nil || pump.Why.Mechanism != "Sel-push" {
				t.Errorf("the contingency: %+v", pump)
			}
		})
	}
}

// What a partner does badly is given to it less, and a restart forgets nothing.
func TestLearningFromFinishedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("three", `
workflow: job
tasks:
  work: {type: manual, duration: 10m, suitability: {one: 1.0, two: 0.7}, on-failure: release}
distribution: {mechanism: Push}
`)
		suitability := func() float64 {
			t.Helper()
			id, _ := tm.give("three", "")
			for _, c := range tm.why("three", id).Candidates {
				if c.Partner == "one" {
					return c.Suitability
				}
			}
			return 0
		}
		if s := suitability(); s != 1 {
			t.Fatalf("without experience the suitability is %v", s)
		}
		for n := range 3 {
			id, who := tm.give("three", "")
			if n < 2 && who != "one" {
				t.Fatalf("instance %d went to %s", n, who)
			}
			if err := tm.p[who].api.FinishTask(t.Context(),
				api.FinishRequest{ID: id, Task: "work", Failed: who == "one"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if s := suitability(); s != 0.667 { // two failures, four assumed successes
			t.Errorf("after two failures the suitability is %v", s)
		}
		want := []api.Resource{{Kind: "experience", Name: "job/work", Holders: []api.Holder{
			{Name: "one", Note: "0 done, 2 failed: × 0.67"}, {Name: "two", Note: "1 done, 0 failed: × 1.00"}}}}
		check := func() {
			t.Helper()
			got, err := tm.p["three"].api.Resources(t.Context(), "experience")
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				for j := range got[i].Holders {
					got[i].Holders[j] = api.Holder{Name: got[i].Holders[j].Name, Note: got[i].Holders[j].Note}
				}
				slices.SortFunc(got[i].Holders, func(a, b api.Holder) int { return strings.Compare(a.Name, b.Name) })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what was learned (-want +got):\n%s", diff)
			}
		}
		check()
		tm.p["three"].crash()
		tm.p["three"].start()
		tm.connect("three", "one")
		tm.connect("three", "two")
		synctest.Wait()
		check()
		if s := suitability(); s != 0.667 {
			t.Errorf("after a restart the suitability is %v", s)
		}
	})
}

const survey = `
workflow: survey
data: {area: {type: string}, level: {type: number}}
tasks:
  permit: {type: manual}
  fly:  {after: permit, needs: [drone], type: manual, produces: flood-map, out: [area, level]}
  plan: {after: fly, type: manual, in: [area, level]}
partitions: {main: [permit, plan], air: [fly]}
`

// A task whose only purpose is data that exists somewhere is dropped, with what
// it asks of a partner; what it waited for is still waited for.
func TestOptimizerDropsWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", survey)
		start := func() (string, error) {
			st, err := tm.p["one"].api.Start(t.Context(),
				api.StartRequest{Workflow: "survey", Assign: map[string]string{"main": "two"}})
			if err != nil {
				return "", err
			}
			synctest.Wait()
			return st.ID, nil
		}
		if _, err := start(); err == nil || !strings.Contains(err.Error(), "no partner has capability drone") {
			t.Fatalf("without a drone and without the data: %v", err)
		}
		add := func(content string) {
			t.Helper()
			if _, err := tm.p["three"].api.AddData(t.Context(), "flood-map", []byte(content), api.DataTerms{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		add(`{"area": "north"}`)
		if _, err := start(); err == nil || !strings.Contains(err.Error(), "no partner has capability drone") ||
			!strings.Contains(err.Error(),
				"task fly is not dropped although data set flood-map exists: from three: it has no value for level") {
			t.Errorf("without a drone and with half of the data: %v", err)
		}
		add(`{"area": "north", "level": 4.5}`)
		id, err := start()
		if err != nil {
			t.Fatal(err)
		}
		in := tm.show("two", id)
		if d := in.Tasks[1].Dropped; d == nil || d.Holder != "three" ||
			!strings.HasPrefix(in.Tasks[1].Reason, "dropped: its only purpose, data set flood-map, exists") {
			t.Errorf("the dropped task is %+v", in.Tasks[1])
		}
		if tm.task("two", id, "plan") != workflow.NotReady || in.Data["area"] != "north" || in.Data["level"] != 4.5 {
			t.Errorf("before the permit: %+v, data %v", in.Tasks, in.Data)
		}
		for _, task := range []workflow.TaskName{"permit", "plan"} {
			if err := tm.p["two"].api.FinishTask(t.Context(), api.FinishRequest{ID: id, Task: task}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		tm.succeeds(id, time.Minute, "one", "two")
		if s := tm.task("one", id, "fly"); s != workflow.Skipped {
			t.Errorf("the dropped task is %s", s)
		}
		if err := tm.p["three"].api.RemoveData(t.Context(), "flood-map"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := start(); err == nil {
			t.Error("the data set is removed, and the task is dropped all the same")
		}
	})
}

// What cannot be read, or does not fit, drops nothing, and the start says why.
func TestOptimizerNeedsTheWholeData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two")
		tm.add("one", strings.ReplaceAll(survey, "needs: [drone], ", ""))
		for content, want := range map[string]string{
			`{"area": "north"}`:               "from two: it has no value for level",
			`{"area": "north", "level": "x"}`: "want a number",
			"north":                           "it has no value for area",
		} {
			if _, err := tm.p["two"].api.AddData(t.Context(), "flood-map", []byte(content), api.DataTerms{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			st, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "survey"})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(st.Notes, func(n string) bool { return strings.Contains(n, want) }) {
				t.Errorf("with %s: %q, want %q", content, st.Notes, want)
			}
			synctest.Wait()
			if d := tm.show("one", st.ID).Tasks[1].Dropped; d != nil {
				t.Errorf("with %s the task is dropped", content)
			}
		}
		if _, err := tm.p["two"].api.AddData(t.Context(), "big", make([]byte, datasets.MaxData+1), api.DataTerms{}); err == nil || !strings.Contains(err.Error(), "at most 65536 can be registered") {
			t.Errorf("a data set that is too large: %v", err)
		}
	})
}

// Of instances that are started at once each assignment sees those before it:
// they are distributed like those that are started one after the other.
func TestBurstIsDistributedLikeASequence(t *testing.T) {
	distribute := func(start func(n int, give func())) map[string]int {
		got := map[string]int{}
		synctest.Test(t, func(t *testing.T) {
			tm := sawyers(t)
			start(20, func() {
				st, err := tm.p["one"].api.Start(t.Context(), api.StartRequest{Workflow: "job", Mechanism: "Sel-push"})
				if err != nil {
					t.Error(err)
				} else if _, err := tm.p["one"].api.Show(t.Context(), st.ID); err != nil {
					t.Error(err)
				}
			})
			list, err := tm.p["one"].api.Instances(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range list {
				got[tm.show("one", in.ID).Partitions[0].Partner]++
			}
		})
		return got
	}
	sequence := distribute(func(n int, give func()) {
		for range n {
			give()
		}
	})
	burst := distribute(func(n int, give func()) {
		var all sync.WaitGroup
		for range n {
			all.Go(give)
		}
		all.Wait()
	})
	if diff := cmp.Diff(sequence, burst); diff != "" {
		t.Errorf("a burst is distributed otherwise (-sequence +burst):\n%s", diff)
	}
	want := map[string]int{
		"one": 8, "two": 6, "three": 4, "four": 2,
	} // each costs a twentieth: 0.6 × 1.0, 0.7 × 0.9, 0.8 × 0.8, 0.9 × 0.7
	if diff := cmp.Diff(want, burst); diff != "" {
		t.Errorf("twenty at once (-want +got):\n%s", diff)
	}
}
