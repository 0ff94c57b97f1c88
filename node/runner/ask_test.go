package runner_test

import (
	"context"
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// silent is a database that does not answer.
type silent struct{ asked chan struct{} }

func (s silent) Ask(ctx context.Context, _ configs.Origin, _ workflow.Question) ([]any, error) {
	close(s.asked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A query that is called off says nothing about its task, which is asked again.
func TestACancelledQueryIsNoFailure(t *testing.T) {
	db := silent{make(chan struct{})}
	r := runner.New(nil, runner.Options{Databases: db})
	defer r.Close()
	j := job("noop")
	j.Asks = []workflow.Question{{Query: workflow.Query{Data: "stock", Database: "depot"}}}
	answer := make(chan runner.Result, 1)
	r.Ask(j, func(res runner.Result) { answer <- res })
	<-db.asked
	r.Cancel(j.Key)
	if res := <-answer; !res.Cancelled {
		t.Errorf("%+v", res)
	}
}
