package node

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// asked is a database that answers when the test says so, and a runner that starts programs and calls them off.
type asked struct {
	Runner

	mu      sync.Mutex // guards all
	answers map[string]func(runner.Result)
	running map[string]func(runner.Result)
	began   int
	input   map[workflow.DataName]workflow.Value // of the program that began last
}

func newAsked() (*asked, *asksFirst) {
	x := &asked{answers: map[string]func(runner.Result){}, running: map[string]func(runner.Result){}}
	return x, &asksFirst{Runner: x, databases: x, asking: map[string]*question{}}
}

func (x *asked) Ask(j runner.Job, done func(runner.Result)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answers[j.Key] = done
}

func (x *asked) Start(j runner.Job, done func(runner.Result)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running[j.Key], x.began, x.input = done, x.began+1, j.Input
}

// Cancel calls off a question, or a program, whichever there is; as a real runner it knows nothing of others.
func (x *asked) Cancel(key string) {
	x.mu.Lock()
	done := x.running[key]
	delete(x.running, key)
	x.mu.Unlock()
	if done != nil {
		done(runner.Result{Cancelled: true, Reason: "cancelled"})
	}
}

// answer has the database answer a job.
func (x *asked) answer(key string, r runner.Result) {
	x.mu.Lock()
	done := x.answers[key]
	delete(x.answers, key)
	x.mu.Unlock()
	done(r)
}

// ends has the program of a job end.
func (x *asked) ends(key string, r runner.Result) {
	x.mu.Lock()
	done := x.running[key]
	delete(x.running, key)
	x.mu.Unlock()
	if done != nil {
		done(r)
	}
}

// askingJob is one that asks for stock.
func askingJob(key string) runner.Job {
	q := workflow.Question{Query: workflow.Query{Data: "stock", Database: "depot"}}
	return runner.Job{Key: key, Asks: []workflow.Question{q}, Input: map[workflow.DataName]workflow.Value{}}
}

func stockOf(n int64) runner.Result {
	return runner.Result{Outputs: map[workflow.DataName]workflow.Value{"stock": n}}
}

// A job that is cancelled while a database answers it ends as cancelled, once, and its program is called off or never
// begun, whichever comes first.
func TestCancelledWhileADatabaseAnswers(t *testing.T) {
	x, r := newAsked()
	for n := range 500 {
		var ends []runner.Result
		var mu sync.Mutex // guards ends
		r.Start(askingJob("a"), func(res runner.Result) {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, res)
		})
		var both sync.WaitGroup
		both.Go(func() { x.answer("a", stockOf(3)) })
		both.Go(func() { r.Cancel("a") })
		both.Wait()
		mu.Lock()
		if len(ends) != 1 || !ends[0].Cancelled {
			t.Fatalf("try %d ended as %+v, want once as cancelled", n, ends)
		}
		mu.Unlock()
		if len(x.running) > 0 || len(r.asking) > 0 {
			t.Fatalf("try %d: %d programs run, %d jobs ask", n, len(x.running), len(r.asking))
		}
	}
}

// A job whose database answers after it was cancelled does not begin, nor does another under the same key hear of that.
func TestAnsweredAfterItWasCancelled(t *testing.T) {
	x, r := newAsked()
	var first, second runner.Result
	r.Start(askingJob("a"), func(res runner.Result) { first = res })
	r.Cancel("a")
	x.answer("a", stockOf(3))
	if !first.Cancelled || x.began != 0 {
		t.Errorf("it ended as %+v, and %d programs began", first, x.began)
	}
	r.Start(askingJob("a"), func(res runner.Result) { second = res })
	x.answer("a", stockOf(4))
	x.ends("a", runner.Result{})
	if second.Cancelled || second.Failed || second.Outputs["stock"] != int64(4) {
		t.Errorf("the next try ended as %+v", second)
	}
}

// Started twice, a job asks once; a failure of a database is one of the job, and what a database answers the program
// may not say.
func TestWhatADatabaseAnswers(t *testing.T) {
	x, r := newAsked()
	var got []runner.Result
	done := func(res runner.Result) { got = append(got, res) }
	r.Start(askingJob("a"), done)
	r.Start(askingJob("a"), done)
	x.answer("a", runner.Result{Failed: true, Reason: "out of reach"})
	if len(got) != 1 || !got[0].Failed || got[0].Reason != "out of reach" || x.began != 0 {
		t.Errorf("it ended as %+v", got)
	}
	r.Start(askingJob("a"), done)
	x.answer("a", stockOf(3))
	x.ends("a", stockOf(5))
	if want := "output stock: a database answers that, and not the application"; !got[1].Failed || got[1].Reason != want {
		t.Errorf("it ended as %+v, want %s", got[1], want)
	}
	none := &asksFirst{Runner: x, asking: map[string]*question{}}
	none.Start(askingJob("b"), done)
	if want := "this node has no databases"; got[2].Reason != want {
		t.Errorf("it ended as %+v, want %s", got[2], want)
	}
}

// A job that reads nothing but what a database answers has that as its whole input, and the input that it came with,
// which others may read, stays as it was.
func TestAJobThatReadsNothingElse(t *testing.T) {
	x, r := newAsked()
	for _, input := range []map[workflow.DataName]workflow.Value{nil, {}, {"lot": "B1"}} {
		j := askingJob("a")
		j.Input = input
		had := len(input)
		r.Start(j, func(runner.Result) {})
		x.answer("a", stockOf(3))
		if x.input["stock"] != int64(3) || len(x.input) != had+1 || len(input) != had {
			t.Errorf("with the input %v its program gets %v", input, x.input)
		}
		x.ends("a", runner.Result{})
	}
}

// inBetween calls something off at the moments at which it is neither with the databases any more nor with a program
// yet.
type inBetween struct {
	*runner.Runner
	off    func() // nil: it is not called off
	before bool   // the answer is handed over
	began  int    // programs
}

func (x *inBetween) Ask(j runner.Job, done func(runner.Result)) {
	x.Runner.Ask(j, func(res runner.Result) {
		if x.before && x.off != nil {
			x.off()
		}
		done(res)
	})
}

func (x *inBetween) Start(j runner.Job, done func(runner.Result)) {
	x.began++
	if !x.before && x.off != nil {
		x.off()
	}
	x.Runner.Start(j, done)
}

// shelves answers every query with one row.
type shelves struct{}

func (shelves) Ask(context.Context, configs.Origin, workflow.Question) ([]any, error) {
	return []any{map[string]any{"shelf": int64(7)}}, nil
}

// With the runner that nodes have, what is called off in between ends as cancelled, once and at once, though neither
// the runner's questions nor its programs knew of it then.
func TestCalledOffBetweenAnswerAndProgram(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			x := &inBetween{Runner: runner.New(nil, runner.Options{Databases: shelves{}}), before: before}
			r := &asksFirst{Runner: x, databases: x, asking: map[string]*question{}}
			j := askingJob("a")
			j.Application, j.With.For = workflow.AppSleep, time.Hour
			for _, off := range []bool{true, false, true} {
				if x.off = nil; off {
					x.off = func() { r.Cancel("a") }
				}
				began := time.Now()
				ended := make(chan runner.Result, 2)
				r.Start(j, func(res runner.Result) { ended <- res })
				res := <-ended
				took := time.Since(began)
				if res.Cancelled != off || (took == 0) != off || (res.Outputs["stock"] == nil) != off {
					t.Errorf("before=%t, called off: %t: it ended after %s as %+v", before, off, took, res)
				}
				synctest.Wait()
				if before && x.began > 0 && off {
					t.Error("the program began of what had been called off before")
				}
				x.began = 0
				if len(ended) > 0 || len(r.asking) > 0 {
					t.Errorf("before=%t: it ended %d times more, %d jobs ask", before, len(ended), len(r.asking))
				}
			}
			x.Close()
		})
	}
}
