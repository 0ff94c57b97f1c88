package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// weighing has a task that workers do.
const weighing = `
workflow: weighing
data: {lot: {type: string}, weight: {type: integer}}
tasks:
  weigh: {application: weigh, in: [lot], out: [weight], timeout: 10m}
`

// scales are a partner where an instance of it waits for a worker.
func scales(t *testing.T) (tm *team, id string) {
	t.Helper()
	tm = newTeamOf(t, func(c *configs.Config) {
		c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
	}, "one")
	tm.add("one", weighing)
	id = tm.begin("one", "weighing", nil)
	pass(time.Second)
	return tm, id
}

// by is a program with the token of a worker.
func by(token string) api.Program { return api.Program{Token: token, Admits: true} }

// take has a worker take a job at once; nil: there is none.
func (tm *team) take(worker string) *api.Job {
	tm.t.Helper()
	job, err := tm.p["one"].api.TakeJob(tm.t.Context(), by(worker),
		api.TakeRequest{Application: "weigh", Worker: worker})
	if err != nil {
		tm.t.Fatal(err)
	}
	return job
}

// mustTake is take where there is a job.
func (tm *team) mustTake(worker string) *api.Job {
	tm.t.Helper()
	job := tm.take(worker)
	if job == nil {
		tm.t.Fatalf("no job for %s", worker)
	}
	return job
}

// complete has a worker bring a result.
func (tm *team) complete(worker string, job *api.Job, outputs string) error {
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(outputs), &out); err != nil {
		tm.t.Fatal(err)
	}
	return tm.p["one"].api.CompleteJob(tm.t.Context(), by(worker), job.Lease, api.CompleteRequest{Outputs: out})
}

// beat is a worker's sign of life.
func (tm *team) beat(worker string, job *api.Job, r api.KeepRequest) error {
	_, err := tm.p["one"].api.KeepJob(tm.t.Context(), by(worker), job.Lease, r)
	return err
}

// isNo wants an error with a code that says something.
func isNo(t *testing.T, what string, err error, code api.Code, says string) {
	t.Helper()
	var no *api.Error
	if !errors.As(err, &no) || no.Code != code || !strings.Contains(no.Error(), says) {
		t.Errorf("%s: %v, want %s that says %q", what, err, code, says)
	}
}

// wantWeight wants the task to have ended so.
func (tm *team) wantWeight(id string, state workflow.State, weight any) {
	tm.t.Helper()
	pass(time.Second)
	in := tm.show("one", id)
	if in.Tasks[0].State != state || in.Data["weight"] != weight {
		tm.t.Errorf("%s with %v (%s), want %s with %v", in.Tasks[0].State, in.Data["weight"], in.Tasks[0].Reason, state,
			weight)
	}
}

// A worker takes a job, says how far it is, and brings its result, which counts once
// however often it is brought.
func TestAWorkerDoesAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		if task := tm.show("one", id).Tasks[0]; !task.WaitsForWorker || task.Worker != nil {
			t.Errorf("before: %+v", task)
		}
		job := tm.mustTake("ana")
		if job.Task != "weigh" || job.Instance != id || job.Workflow != "weighing" || job.Try != 1 ||
			job.IdempotencyKey == "" {
			t.Errorf("the job is %+v", job)
		}
		if err := tm.beat("ana", job, api.KeepRequest{Progress: 0.4, Note: "on the scales"}); err != nil {
			t.Fatal(err)
		}
		w := tm.show("one", id).Tasks[0].Worker
		if w == nil || w.Name != "ana" || w.Progress != 0.4 || w.Note != "on the scales" || w.Until == nil {
			t.Errorf("shown as %+v", w)
		}
		list, err := tm.p["one"].api.Jobs(t.Context())
		if err != nil || len(list) != 1 || list[0].Worker == nil || list[0].Worker.Progress != 0.4 {
			t.Errorf("listed as %+v, %v", list, err)
		}
		for range 2 {
			if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
				t.Fatal(err)
			}
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
		isNo(t, "another result", tm.complete("ana", job, `{"weight": 13}`), api.Refused,
			"another result of this lease was recorded")
		isNo(t, "what it may not set", tm.complete("ana", job, `{"colour": "red"}`), api.Refused, "another result")
		isNo(t, "a failure", tm.p["one"].api.FailJob(t.Context(), by("ana"), job.Lease, api.FailRequest{Reason: "no luck"}),
			api.Refused, "another result")
		tm.wantWeight(id, workflow.Succeeded, int64(12))
		isNo(t, "a sign of life after that", tm.beat("ana", job, api.KeepRequest{}), api.Refused,
			"a result of this lease was recorded")
		isNo(t, "an unknown lease", tm.beat("ana", &api.Job{Lease: "none"}, api.KeepRequest{}), api.NotFound,
			"no such lease")
		log, err := tm.p["one"].api.Log(t.Context(), id)
		if text := strings.Join(texts(log), "\n"); err != nil || !strings.Contains(text, "given to worker ana") ||
			strings.Count(text, "succeeded") != 1 {
			t.Errorf("%v, the log is\n%s", err, text)
		}
	})
}

// A worker of a flow is given the data of the state that fired its transition, and of these what its task reads, though
// they were changed since, also after a restart of the node. Its result goes to the state that there is by then.
func TestAWorkerGetsTheStateThatFired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}, "label": {Worker: true}}
		}, "one")
		tm.add("one", `
workflow: weighing
data: {lot: {type: string, default: a}, label: {type: integer, default: 0}, note: {type: string}, weight: {type: integer}}
tasks:
  weigh: {when: weight == null, repeat: true, application: weigh, in: [lot, label], out: [weight], timeout: 10m}
  relabel: {when: label == 0, repeat: true, application: label, out: [lot, label, note], timeout: 10m}
final: weight != null and label == 1
`)
		id := tm.begin("one", "weighing", nil)
		pass(time.Second)
		label, err := tm.p["one"].api.TakeJob(t.Context(), by("ana"), api.TakeRequest{Application: "label", Worker: "ana"})
		if err != nil || label == nil || len(label.Input) > 0 {
			t.Fatalf("whoever labels is given %+v, %v", label, err)
		}
		if err := tm.complete("ana", label, `{"lot": "b", "label": 1, "note": "new"}`); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if data := tm.show("one", id).Data; data["lot"] != "b" || data["label"] != int64(1) {
			t.Fatalf("before somebody takes the job the data are %v", data)
		}
		fired := map[workflow.DataName]workflow.Value{"lot": "a", "label": int64(0)}
		wantInput := func(job *api.Job) {
			t.Helper()
			if fmt.Sprint(job.Input) != fmt.Sprint(fired) {
				t.Errorf("the worker is given %v, want %v", job.Input, fired)
			}
		}
		wantInput(tm.mustTake("ana"))
		tm.p["one"].crash()
		tm.p["one"].start()
		pass(2 * time.Minute) // of ana nothing is heard any more
		job := tm.mustTake("bia")
		wantInput(job)
		if err := tm.complete("bia", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		history, err := tm.p["one"].api.History(t.Context(), id)
		if err != nil || len(history) != 3 {
			t.Fatalf("the history is %+v, %v", history, err)
		}
		last := history[2]
		if *last.FiredBy != 0 || *last.Input != 1 || last.Attributes["lot"] != "b" || last.Attributes["weight"] != int64(12) ||
			last.Status != "final" {
			t.Errorf("the last state is %+v", last)
		}
	})
}

// stocked answers all queries with a list of as many rows as it was asked often.
type stocked struct{ asked *atomic.Int64 }

func (x stocked) Ask(j runner.Job, done func(runner.Result)) {
	rows := make([]any, x.asked.Add(1))
	for i := range rows {
		rows[i] = map[string]any{"shelf": int64(i)}
	}
	go done(runner.Result{Outputs: map[workflow.DataName]workflow.Value{j.Asks[0].Data: rows}})
}

// stockedScales are scales whose task asks a database.
func stockedScales(t *testing.T, asked *atomic.Int64) (tm *team, id string) {
	t.Helper()
	tm = newTeamWith(t, func(c *configs.Config) {
		c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		c.Databases = map[workflow.DatabaseName]configs.Database{"depot": {File: "depot.db"}}
	}, func(p *node.Parts) { p.Asker = stocked{asked} }, "one")
	tm.add("one", `
workflow: weighing
data:
  weight: {type: integer}
  stock: {type: query, database: depot, expression: "select shelf from parts"}
tasks:
  weigh: {application: weigh, out: [weight, stock], timeout: 10m}
`)
	id = tm.begin("one", "weighing", nil)
	pass(time.Second)
	return tm, id
}

// A job whose task asks a database is given to a worker with the answer, which its result has besides. Given to another
// after a restart, the database is asked again, and the first worker's lease, which had another answer, is over.
func TestAWorkerGetsWhatADatabaseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := stockedScales(t, new(atomic.Int64))
		first := tm.mustTake("ana")
		if got := fmt.Sprint(first.Input["stock"]); !strings.Contains(got, "shelf") || strings.Count(got, "shelf") != 1 {
			t.Errorf("the worker is given %s", got)
		}
		tm.p["one"].crash()
		tm.p["one"].start()
		pass(time.Second)
		isNo(t, "a result of the lease from before", tm.complete("ana", first, `{"weight": 11}`), api.NotFound,
			"no such lease")
		second := tm.mustTake("bia")
		if got := fmt.Sprint(second.Input["stock"]); strings.Count(got, "shelf") != 2 {
			t.Errorf("the second worker is given %s", got)
		}
		if err := tm.complete("bia", second, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
		if stock, _ := tm.show("one", id).Data["stock"].([]any); len(stock) != 2 {
			t.Errorf("the instance has stock %v", stock)
		}
	})
}

// A worker that sets what a database answers is told so, its task goes on and it still has the job, so that it can
// bring the result without that.
func TestAWorkerSetsWhatADatabaseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := stockedScales(t, new(atomic.Int64))
		job := tm.mustTake("ana")
		for _, outputs := range []string{`{"weight": 11, "stock": []}`, `{"stock": [{"shelf": 0}]}`,
			`{"stock": null}`} {
			err := tm.complete("ana", job, outputs)
			isNo(t, outputs, err, api.Refused, "it sets stock, which database depot answered")
			var no *api.Error
			if !errors.As(err, &no) || !strings.Contains(no.Hint, "complete it without stock") {
				t.Errorf("%s: the next step is not said: %+v", outputs, no)
			}
		}
		if err := tm.beat("ana", job, api.KeepRequest{}); err != nil {
			t.Error(err)
		}
		if in := tm.show("one", id); in.Tasks[0].State != workflow.Running || in.Data["weight"] != nil {
			t.Errorf("it is %s with %v (%s)", in.Tasks[0].State, in.Data, in.Tasks[0].Reason)
		}
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// texts are what a log says.
func texts(log []api.LogEntry) (out []string) {
	for _, e := range log {
		out = append(out, e.Text)
	}
	return out
}

// Of two workers that come at once one gets the job; the other waits, and gets the next.
func TestTwoWorkersRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		got := make(chan *api.Job, 2)
		for _, worker := range []string{"ana", "bia"} {
			go func() {
				job, err := tm.p["one"].api.TakeJob(t.Context(), by(worker),
					api.TakeRequest{Application: "weigh", Worker: worker, Wait: "40s"})
				if err != nil {
					t.Error(err)
				}
				got <- job
			}()
		}
		first := <-got
		pass(10 * time.Second)
		if first == nil || first.Instance != id || len(got) != 0 {
			t.Fatalf("the first got %+v, the second had an answer: %v", first, len(got) > 0)
		}
		next := tm.begin("one", "weighing", nil)
		if second := <-got; second == nil || second.Instance != next {
			t.Errorf("the second got %+v", second)
		}
	})
}

// A worker that vanished loses its job to another, and what it brings later is refused.
func TestAWorkerVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		gone := tm.mustTake("ana")
		pass(25 * time.Second)
		if tm.take("bia") != nil {
			t.Error("a job whose worker may live went to another")
		}
		pass(10 * time.Second) // 30 s without a sign of life, and the pause
		job := tm.mustTake("bia")
		isNo(t, "the first's result", tm.complete("ana", gone, `{"weight": 99}`), api.Refused, "the lease lapsed")
		if job.IdempotencyKey != gone.IdempotencyKey {
			t.Error("the same try has another key")
		}
		if err := tm.complete("bia", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// The task's time-out is the limit, whatever signs of life come.
func TestAResultAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		job := tm.mustTake("ana")
		begun := time.Now()
		over := begun.Add(10*time.Minute - time.Second) // it was ready a second before
		if job.Limit == nil || !job.Limit.Equal(over) || !job.Until.Equal(begun.Add(30*time.Second)) {
			t.Errorf("it is given until %v, with the limit %v", job.Until, job.Limit)
		}
		for range 29 {
			pass(20 * time.Second)
			if err := tm.beat("ana", job, api.KeepRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		l, err := tm.p["one"].api.KeepJob(t.Context(), by("ana"), job.Lease, api.KeepRequest{Lease: "1m"})
		if err != nil || l.Limit == nil || !l.Limit.Equal(over) || !l.Until.Equal(over) {
			t.Errorf("the lease goes on for %+v, %v; no job outlasts its limit at %v", l, err, over)
		}
		pass(25 * time.Second)
		isNo(t, "a sign of life", tm.beat("ana", job, api.KeepRequest{}), api.Refused, "the job is over")
		isNo(t, "the result", tm.complete("ana", job, `{"weight": 12}`), api.Refused, "the job is over")
		tm.wantWeight(id, workflow.Failed, nil)
	})
}

// A result with what the task may not set changes nothing, and its worker may mend it.
func TestAWorkerLies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		job := tm.mustTake("ana")
		isNo(t, "another's data", tm.complete("ana", job, `{"lot": "B1"}`), api.Refused, `returned "lot"`)
		isNo(t, "no data at all", tm.complete("ana", job, `{"colour": "red"}`), api.Refused, `returned "colour"`)
		isNo(t, "a wrong type", tm.complete("ana", job, `{"weight": "heavy"}`), api.Refused, "a wrong weight")
		if in := tm.show("one", id); in.Tasks[0].State != workflow.Running || in.Data["weight"] != nil {
			t.Errorf("it is %s with %v", in.Tasks[0].State, in.Data)
		}
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A lease counts with the token with which the job was taken, and no other.
func TestAnothersToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		job := tm.mustTake("ana")
		says := "given to another token"
		isNo(t, "a result", tm.complete("bia", job, `{"weight": 99}`), api.NotAllowed, says)
		isNo(t, "a sign of life", tm.beat("bia", job, api.KeepRequest{}), api.NotAllowed, says)
		isNo(t, "a failure", tm.p["one"].api.FailJob(t.Context(), by("bia"), job.Lease, api.FailRequest{}),
			api.NotAllowed, says)
		isNo(t, "giving back", tm.p["one"].api.GiveBackJob(t.Context(), by("bia"), job.Lease), api.NotAllowed, says)
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A worker keeps its job over a crash of the node, and nobody else gets it meanwhile; a lease
// from before does not count with another token. What was recorded stays recorded.
func TestTheNodeCrashesWhileAWorkerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		job := tm.mustTake("ana")
		tm.p["one"].crash()
		tm.p["one"].start()
		pass(time.Second)
		if tm.take("bia") != nil {
			t.Error("after the restart another got the job as well")
		}
		isNo(t, "another's token", tm.complete("bia", job, `{"weight": 99}`), api.NotFound, "no such lease")
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.p["one"].crash() // the worker may not have heard the answer
		tm.p["one"].start()
		tm.wantWeight(id, workflow.Succeeded, int64(12))
		isNo(t, "the result again", tm.complete("ana", job, `{"weight": 13}`), api.NotFound, "no such lease")
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A worker that comes back while the node takes up its instances is told to ask again, and its result counts then. The
// node is not ready before it knows the lease.
func TestAWorkerComesBackBeforeItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}, "climb": {}}
		}, "one")
		tm.add("one", weighing)
		tm.add("one", "workflow: climbing\ntasks: {climb: {application: climb}}\n")
		one, id := tm.p["one"], tm.begin("one", "weighing", nil)
		one.hand.hold("climb")
		for before := false; !before; {
			before = tm.begin("one", "climbing", nil) < id // in this order they are taken up
		}
		job := tm.mustTake("ana")
		one.crash()
		goOn := make(chan struct{})
		one.hand.begins = func(runner.Job) { <-goOn }
		one.start()
		synctest.Wait()
		isReady := func() bool {
			select {
			case <-one.node.Ready():
				return true
			default:
				return false
			}
		}
		if isReady() {
			t.Error("the node is ready, and knows no lease")
		}
		unknown := &api.Job{Lease: "none"}
		for what, err := range map[string]error{
			"a result": tm.complete("ana", job, `{"weight": 12}`), "a sign of life": tm.beat("ana", job, api.KeepRequest{}),
			"a failure":          one.api.FailJob(t.Context(), by("ana"), job.Lease, api.FailRequest{}),
			"giving back":        one.api.GiveBackJob(t.Context(), by("ana"), job.Lease),
			"what never was one": tm.beat("ana", unknown, api.KeepRequest{}),
		} {
			isNo(t, what, err, api.NotYet, "does not know yet")
		}
		close(goOn)
		synctest.Wait()
		if !isReady() {
			t.Error("the node is not ready")
		}
		isNo(t, "what never was one", tm.beat("ana", unknown, api.KeepRequest{}), api.NotFound, "no such lease")
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A worker that brings its result while the node goes down is told that it stops, and not that the job is over.
func TestAWorkerBringsAResultWhileTheNodeStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		job := tm.mustTake("ana")
		stopping := tm.p["one"].api
		tm.p["one"].leave()
		isNo(t, "a sign of life", func() error {
			_, err := stopping.KeepJob(t.Context(), by("ana"), job.Lease, api.KeepRequest{})
			return err
		}(), api.NoNode, "is stopping")
		isNo(t, "a result", stopping.CompleteJob(t.Context(), by("ana"), job.Lease, api.CompleteRequest{}), api.NoNode,
			"is stopping")
		tm.p["one"].start()
		pass(time.Second)
		if err := tm.complete("ana", job, `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A worker that does not come back after a crash of the node loses its job.
func TestTheWorkerDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		tm.mustTake("ana")
		tm.p["one"].crash()
		tm.p["one"].start()
		pass(70 * time.Second)
		if err := tm.complete("bia", tm.mustTake("bia"), `{"weight": 12}`); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// A job that is given back goes to the next worker, each time after a longer pause.
func TestAJobIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, id := scales(t)
		for _, rest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			job := tm.mustTake("ana")
			for range 2 {
				if err := tm.p["one"].api.GiveBackJob(t.Context(), by("ana"), job.Lease); err != nil {
					t.Fatal(err)
				}
			}
			isNo(t, "its result", tm.complete("ana", job, `{"weight": 1}`), api.Refused, "given back")
			pass(rest - 100*time.Millisecond)
			if tm.take("bia") != nil {
				t.Errorf("it was offered again before %v", rest)
			}
			pass(200 * time.Millisecond)
		}
		job := tm.mustTake("bia")
		if err := tm.p["one"].api.FailJob(t.Context(), by("bia"), job.Lease, api.FailRequest{Reason: "no scales"}); err != nil {
			t.Fatal(err)
		}
		tm.wantWeight(id, workflow.Failed, nil)
		if why := tm.show("one", id).Tasks[0].Reason; why != "no scales" {
			t.Errorf("it failed because of %q", why)
		}
	})
}

// What cannot be asked for is refused.
func TestJobsThatCannotBeTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := scales(t)
		for what, c := range map[string]struct {
			by   api.Program
			r    api.TakeRequest
			code api.Code
			says string
		}{
			"a built-in one": {by("a"), api.TakeRequest{Application: "set"}, api.Invalid, "is built in"},
			"no name":        {by("a"), api.TakeRequest{Application: "a b"}, api.Invalid, "application"},
			"a long wait": {by("a"), api.TakeRequest{Application: "weigh", Wait: "61s"}, api.Invalid,
				"want a duration from"},
			"a short lease": {by("a"), api.TakeRequest{Application: "weigh", Lease: "1s"}, api.Invalid,
				"want a duration from"},
			"one that nobody may open": {api.Program{Token: "w"}, api.TakeRequest{Application: "climb"}, api.Refused,
				"workers do not do application climb"},
		} {
			_, err := tm.p["one"].api.TakeJob(t.Context(), c.by, c.r)
			isNo(t, what, err, c.code, c.says)
		}
		job := tm.mustTake("ana")
		isNo(t, "progress", tm.beat("ana", job, api.KeepRequest{Progress: 1.5}), api.Invalid, "want 0 to 1")
		isNo(t, "a note", tm.beat("ana", job, api.KeepRequest{Note: strings.Repeat("x", 201)}), api.Invalid,
			"at most 200")
	})
}

// A worker does a job that another partner holds, through the node beside it; the holder
// decides, and its own workers do not get the job meanwhile.
func TestAWorkerBesideAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		tm.add("one", weighing)
		pass(time.Second)
		two := tm.p["two"].api
		r := api.TakeRequest{Application: "weigh", Worker: "bia", Wait: "50s"}
		got := make(chan *api.Job, 1)
		go func() {
			job, err := two.TakeJob(t.Context(), by("bia"), r)
			if err != nil {
				t.Error(err)
			}
			got <- job
		}()
		pass(5 * time.Second)
		id := tm.begin("one", "weighing", map[string]string{"main": "one"})
		job := <-got
		if job == nil || job.Instance != id {
			t.Fatalf("beside two came %+v", job)
		}
		if tm.take("ana") != nil {
			t.Error("the holder's own worker got it as well")
		}
		says := "given to another token"
		_, err := two.KeepJob(t.Context(), by("ana"), job.Lease, api.KeepRequest{})
		isNo(t, "another token there", err, api.NotAllowed, says)
		own, _, _ := strings.Cut(job.Lease, ".")
		for what, lease := range map[string]string{"its name here": own, "the whole of it": job.Lease} {
			isNo(t, "the same token here, "+what, tm.complete("bia", &api.Job{Lease: lease}, `{"weight": 99}`),
				api.NotAllowed, says)
		}
		_, err = two.KeepJob(t.Context(), by("bia"), own+".bogus", api.KeepRequest{})
		isNo(t, "a holder that there never was", err, api.NotFound, "no partner bogus is known")
		isNo(t, "no lease of this node", tm.complete("bia", &api.Job{Lease: "." + string(tm.p["one"].id())}, `{}`),
			api.NotFound, "no such lease")
		if _, err := two.KeepJob(t.Context(), by("bia"), job.Lease, api.KeepRequest{Progress: 0.5}); err != nil {
			t.Fatal(err)
		}
		if w := tm.show("one", id).Tasks[0].Worker; w == nil || w.Name != "bia" || w.At != "two" || w.Progress != 0.5 {
			t.Errorf("shown as %+v", w)
		}
		lie := map[string]json.RawMessage{"lot": json.RawMessage(`"B1"`)}
		isNo(t, "a lie", two.CompleteJob(t.Context(), by("bia"), job.Lease, api.CompleteRequest{Outputs: lie}),
			api.Refused, `returned "lot"`)
		tm.disconnect("one", "two")
		pass(time.Second)
		out := api.CompleteRequest{Outputs: map[string]json.RawMessage{"weight": json.RawMessage(`12`)}}
		isNo(t, "out of reach", two.CompleteJob(t.Context(), by("bia"), job.Lease, out), api.NoNode,
			"cannot be asked now")
		tm.connect("one", "two")
		pass(time.Second)
		for range 2 {
			if err := two.CompleteJob(t.Context(), by("bia"), job.Lease, out); err != nil {
				t.Fatal(err)
			}
		}
		tm.wantWeight(id, workflow.Succeeded, int64(12))
	})
}

// Nobody is told to ask again for a lease that counts no more, since its holder was evicted.
func TestALeaseOfWhoWasEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		tm.add("two", weighing)
		pass(time.Second)
		tm.begin("two", "weighing", map[string]string{"main": "two"})
		pass(time.Second)
		one := tm.p["one"].api
		job := tm.mustTake("bia")
		if _, err := one.Evict(t.Context(), api.EvictRequest{Partner: "two", Reason: "stolen"}); err != nil {
			t.Fatal(err)
		}
		isNo(t, "an evicted holder", one.CompleteJob(t.Context(), by("bia"), job.Lease, api.CompleteRequest{}),
			api.NotFound, "two, which gave this lease, is evicted")
	})
}

// A job goes only to workers beside a partner at which its author lets the work be done.
func TestWhoLacksWhatATaskNeedsGetsNoJobOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one", "two")
		tm.add("one", strings.Replace(weighing, "out: [weight]", "out: [weight], needs: [is-one]", 1))
		pass(time.Second)
		tm.begin("one", "weighing", nil)
		r := api.TakeRequest{Application: "weigh", Worker: "bia", Wait: "10s"}
		if job, err := tm.p["two"].api.TakeJob(t.Context(), by("bia"), r); err != nil || job != nil {
			t.Errorf("beside two came %+v, %v", job, err)
		}
		tm.mustTake("ana")
	})
}

// A worker is told that its result is not taken now, as its state would be final while another transition is pending.
// The job is tried again later, by whichever worker takes it then.
func TestAResultThatIsTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamOf(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, "one")
		tm.add("one", `
workflow: twice
data: {weight: {type: integer, default: 0}, seen: {type: boolean}}
tasks:
  weigh: {when: weight < 9, repeat: true, application: weigh, out: [weight]}
  watch: {when: seen == null, repeat: true, type: manual, out: [seen]}
final: weight == 9
`)
		id := tm.begin("one", "twice", nil)
		pass(time.Second)
		job := tm.mustTake("ana")
		isNo(t, "too early", tm.complete("ana", job, `{"weight": 9}`), api.Refused,
			"final while other transitions are pending: wait until these have ended: watch")
		isNo(t, "once more", tm.complete("ana", job, `{"weight": 9}`), api.Refused, "")
		if again := tm.take("bia"); again != nil {
			t.Errorf("there is a job at once: %+v", again)
		}
		err := tm.p["one"].api.FinishTask(t.Context(),
			api.FinishRequest{ID: id, Task: "watch", Outputs: map[string]string{"seen": "true"}})
		if err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		if err := tm.complete("bia", tm.mustTake("bia"), `{"weight": 9}`); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		if in := tm.show("one", id); in.State != workflow.InstanceSucceeded {
			t.Errorf("the instance is %s", in.State)
		}
	})
}
