package worker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/mutirao-mesh/mutirao/worker"
)

// A worker that weighs: the token has the scope worker:weigh.
func ExampleClient_Run() {
	ctx, stop := context.WithCancel(context.Background())
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // stands in for a node
		switch r.URL.Path {
		case "/v1/jobs/take":
			fmt.Fprint(w, `{"lease": "A1", "lease_for": "30s", "task": "weigh", "instance": "45ca", "workflow": "branches", "input": {"lot": "A7"}}`)
			return
		case "/v1/jobs/events":
			http.NotFound(w, r) // the worker asks again and again
			return
		}
		fmt.Println(r.URL.Path)
		stop()
		w.WriteHeader(http.StatusNoContent)
	}))
	defer node.Close()

	c := &worker.Client{URL: node.URL, Token: "mutirao_…"}
	err := c.Run(ctx, worker.Options{Application: "weigh", Name: "scales-2"},
		func(_ context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
			return map[string]any{"weight": len(fmt.Sprint(job.Input["lot"])) * 6}, nil
		})
	fmt.Println(err)
	// Output:
	// /v1/leases/A1/complete
	// <nil>
}
