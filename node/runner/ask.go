package runner

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Databases answer the queries of tasks. Errors are for people.
type Databases interface {
	Ask(ctx context.Context, o configs.Origin, q workflow.Question) ([]any, error)
}

// asking is what a job does before its application begins: it puts its queries, one after the
// other.
type asking struct{ Databases }

func (a asking) run(ctx context.Context, j Job) (map[workflow.DataName]workflow.Value, error) {
	if a.Databases == nil {
		return nil, errors.New("this node has no databases")
	}
	out := make(map[workflow.DataName]workflow.Value, len(j.Asks))
	for _, q := range j.Asks {
		rows, err := a.Ask(ctx, j.Origin, q)
		if err != nil {
			return nil, err
		}
		out[q.Data] = rows
	}
	return out, nil
}

func (asking) allows(configs.Origin) bool { return true } // Ask says for each database

// Ask puts a job's queries; its application does not begin. The answers are the outputs of the
// result. It is as Start in everything else: the job waits for its turn, and Cancel and Close
// cut it short.
func (r *Runner) Ask(j Job, done func(Result)) {
	if !r.admit(j, asking{r.databases}, done) {
		done(Result{Cancelled: true, Reason: "the node is stopping"})
	}
}
