package runner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestCallSendsTheJob(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body struct {
			Task  string
			Input map[string]any
		}
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"saw": "%s %s %s %s %s %s", "n": 3}`, req.Method, req.Header.Get("Idempotency-Key"),
			req.Header.Get("Mutirao-Try"), req.Header.Get("Authorization"), body.Task, body.Input["address"])
	}))
	defer srv.Close()
	r := runner.New(map[workflow.ApplicationName]configs.Application{
		"put": {URL: srv.URL, Method: http.MethodPut, Headers: map[string]string{"Authorization": "Bearer b"}},
	}, runner.Options{})
	defer r.Close()
	want := runner.Result{Outputs: map[workflow.DataName]workflow.Value{
		"saw": "PUT " + keyOfJob + " 2 Bearer b close Rua 1", "n": int64(3),
	}}
	if diff := cmp.Diff(want, run(r, job("put"))); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersOfCalls(t *testing.T) {
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("come\nback later ", 200), http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "/empty", http.StatusFound)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"a": %q}`, strings.Repeat("x", 100))
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-hang })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	defer close(hang)
	gone := httptest.NewServer(mux)
	gone.Close()

	r := runner.New(map[workflow.ApplicationName]configs.Application{
		"empty": {URL: srv.URL + "/empty"},
		"busy":  {URL: srv.URL + "/busy"},
		"moved": {URL: srv.URL + "/moved"},
		"large": {URL: srv.URL + "/large", MaxOutput: 50},
		"hang":  {URL: srv.URL + "/hang", Timeout: 100 * time.Millisecond},
		"gone":  {URL: gone.URL + "/?token=secret"},
	}, runner.Options{})
	defer r.Close()
	if diff := cmp.Diff(runner.Result{}, run(r, job("empty"))); diff != "" {
		t.Error(diff)
	}
	for app, want := range map[workflow.ApplicationName]string{
		"busy":  "answered 503 Service Unavailable: come back later come back",
		"moved": "answered 302 Found",
		"large": "answered more than the output limit of 50 bytes",
		"hang":  "no answer within its time limit of 100ms",
		"gone":  "connect",
	} {
		got := run(r, job(app))
		if !got.Failed || !strings.Contains(got.Reason, want) || len(got.Reason) > 700 {
			t.Errorf("%s:\n got: %+v\nwant: …%s…", app, got, want)
		}
		if strings.Contains(got.Reason, "secret") {
			t.Errorf("%s: the reason gives the URL's secret away: %s", app, got.Reason)
		}
	}
}
