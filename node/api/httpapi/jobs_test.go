package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A worker's token takes jobs of its application, in its own name, and does nothing else.
func TestAWorkersToken(t *testing.T) {
	svc := obliging()
	var took []api.Program
	svc.OnTakeJob = func(by api.Program, r api.TakeRequest) (*api.Job, error) {
		took = append(took, by)
		return &api.Job{Lease: "A1", Application: r.Application}, nil
	}
	dir, s := serve(t, "127.0.0.1:0", svc, httpapi.Options{})
	c := dial(t, dir)
	made, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: "scales", Scope: "worker:weigh"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/v1/jobs/take", `{"application":"weigh"}`, http.StatusOK, `"lease":"A1"`},
		{"POST", "/v1/jobs/take", `{"application":"climb"}`, http.StatusForbidden, "may take no jobs of"},
		{"POST", "/v1/leases/A1/heartbeat", `{}`, http.StatusOK, "until"},
		{"POST", "/v1/leases/A1/complete", `{"outputs":{"weight":12}}`, http.StatusNoContent, ""},
		{"POST", "/v1/leases/A1/fail", `{"reason":"no"}`, http.StatusNoContent, ""},
		{"POST", "/v1/leases/A1/give-back", `{}`, http.StatusNoContent, ""},
		{"GET", "/v1/jobs", "", http.StatusForbidden, "needs a token with the scope read"},
		{"GET", "/v1/status", "", http.StatusForbidden, "needs a token with the scope read"},
		{"GET", "/v1/events", "", http.StatusForbidden, "needs a token with the scope read"},
		{"POST", "/v1/instances", `{"workflow":"w"}`, http.StatusForbidden, "needs a token with the scope work"},
		{"POST", "/v1/tokens", `{}`, http.StatusForbidden, "needs a token with the scope admin"},
	} {
		if status, body := asks(t, s, made.Token, q.method, q.path, q.body); status != q.status ||
			!strings.Contains(body, q.says) {
			t.Errorf("%s %s: status %d, %s; want %d that says %q", q.method, q.path, status, body, q.status, q.says)
		}
	}
	if len(took) != 1 || !strings.HasPrefix(took[0].Token, "scales ") || !took[0].Admits {
		t.Errorf("jobs were taken by %+v", took)
	}
	reading, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: "board", Scope: "read"})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := asks(t, s, reading.Token, "POST", "/v1/jobs/take", `{"application":"weigh"}`); status != http.StatusForbidden || !strings.Contains(body, "worker:APPLICATION") {
		t.Errorf("with a token that reads: status %d, %s", status, body)
	}
	if job, err := c.TakeJob(t.Context(), api.Program{},
		api.TakeRequest{Application: workflow.ApplicationName("weigh")}); err != nil || job == nil || job.Lease != "A1" {
		t.Errorf("the client got %+v, %v", job, err)
	}
	svc.OnTakeJob = func(api.Program, api.TakeRequest) (*api.Job, error) { return nil, nil }
	if job, err := c.TakeJob(t.Context(), api.Program{}, api.TakeRequest{Application: "weigh"}); err != nil ||
		job != nil {
		t.Errorf("without a job the client got %+v, %v", job, err)
	}
}

// A job is kept for the token with which it was taken, also when the node has started again; a later token of the same
// name is another.
func TestALaterTokenOfTheSameNameIsAnother(t *testing.T) {
	svc := obliging()
	var came []string
	svc.OnTakeJob = func(by api.Program, r api.TakeRequest) (*api.Job, error) {
		came = append(came, by.Token)
		return &api.Job{Lease: "A1", Application: r.Application}, nil
	}
	dir := t.TempDir()
	add := func(c *httpapi.Client) string {
		made, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: "scales", Scope: "worker:weigh"})
		if err != nil {
			t.Fatal(err)
		}
		return made.Token
	}
	var token string
	for start := range 2 {
		s, err := httpapi.Serve(dir, "127.0.0.1:0", svc, httpapi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if start == 0 {
			token = add(dial(t, dir))
		}
		asks(t, s, token, "POST", "/v1/jobs/take", `{"application":"weigh"}`)
		if start == 1 {
			if err := dial(t, dir).RemoveToken(t.Context(), "scales"); err != nil {
				t.Fatal(err)
			}
			asks(t, s, add(dial(t, dir)), "POST", "/v1/jobs/take", `{"application":"weigh"}`)
		}
		closeServer(t, s)
	}
	if len(came) != 3 || came[0] == "" || came[1] != came[0] || came[2] == came[0] {
		t.Errorf("jobs were taken with the tokens %q; want one twice, then another", came)
	}
}
