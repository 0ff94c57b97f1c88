package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/worker"
)

// made is a node that gives each of some jobs once, and answers what is said of them as they want.
type made struct {
	mu    sync.Mutex
	jobs  []string
	said  []string
	none  func()            // called when there is no job left
	wants map[string]string // by lease and what is said of it: the code of a refusal
}

func (m *made) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.URL.Path {
	case "/v1/jobs/events":
		http.NotFound(w, r)
		return
	case "/v1/jobs/take":
		if len(m.jobs) == 0 {
			m.none()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		job := m.jobs[0]
		m.jobs = m.jobs[1:]
		_ = json.NewEncoder(w).Encode(map[string]any{"lease": job, "lease_for": "30s", "task": job, "instance": "i"})
		return
	}
	what := strings.TrimPrefix(r.URL.Path, "/v1/leases/")
	m.said = append(m.said, what)
	if code := m.wants[what]; code != "" {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]string{"code": code, "message": "no: " + what})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// How jobs ended is told apart: a result that came when the job was over is no failure of its task, and one that is
// wrong is.
func TestHowJobsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	node := &made{
		none: cancel, jobs: []string{"good", "bad", "back", "wrong", "late", "unknown", "late-bad"},
		wants: map[string]string{
			"wrong/complete": "refused",
			"late/complete":  "refused", "late/fail": "refused",
			"unknown/complete": "not-found",
			"late-bad/fail":    "refused",
		},
	}
	server := httptest.NewServer(node)
	defer server.Close()
	got, texts := map[string]worker.Ending{}, []string{}
	c := &worker.Client{URL: server.URL, Token: "t", HTTP: server.Client()}
	err := c.Run(ctx, worker.Options{
		Application: "weigh", Log: func(text string) { texts = append(texts, text) },
		Ended: func(job *worker.Job, end worker.Ending) { got[job.Task] = end },
	}, func(_ context.Context, job *worker.Job, _ worker.Report) (map[string]any, error) {
		switch job.Task {
		case "bad", "late-bad":
			return nil, errors.New("no scales")
		case "back":
			return nil, worker.ErrGiveBack
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]worker.Ending{
		"good": worker.Done, "bad": worker.Failed, "back": worker.GivenBack, "wrong": worker.Failed,
		"late": worker.NotTaken, "unknown": worker.NotTaken, "late-bad": worker.NotTaken,
	} {
		if got[task] != want {
			t.Errorf("%s: %q, want %q", task, got[task], want)
		}
	}
	said := strings.Join(texts, "\n")
	for _, want := range []string{
		"good of i: done\n", "bad of i: failed: no scales\n", "back of i: given back\n",
		"wrong of i: failed: its result was refused: no: wrong/complete\n",
		"late of i: its result was not taken: no: late/complete\n",
		"unknown of i: its result was not taken: no: unknown/complete\n",
		"late-bad of i: failed: no scales, which was not taken: no: late-bad/fail",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the log is\n%s\nwant in it %s", said, want)
		}
	}
}

// away is a node that gives one job, and cannot be reached after that.
type away struct{ given bool }

func (a *away) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || a.given {
		return nil, errors.New("no route")
	}
	a.given = true
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(
		`{"lease": "l", "lease_for": "30s", "task": "t", "instance": "i"}`))}, nil
}

// A worker that is to end gives back what is in hand, and waits for the node: as long as for a result, and in a hurry
// for seconds. What the node was not told is not called given back.
func TestHowLongTheEndWaits(t *testing.T) {
	for _, soon := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			hurry := make(chan struct{})
			var ended []worker.Ending
			c := &worker.Client{URL: "http://node", HTTP: &http.Client{Transport: &away{}}}
			start := time.Now()
			err := c.Run(ctx, worker.Options{
				Application: "x", Hurry: hurry,
				Ended: func(_ *worker.Job, e worker.Ending) { ended = append(ended, e) },
			}, func(ctx context.Context, _ *worker.Job, _ worker.Report) (map[string]any, error) {
				end()
				if soon {
					close(hurry)
				}
				return nil, ctx.Err()
			})
			if err != nil || !slices.Equal(ended, []worker.Ending{worker.Unheard}) {
				t.Errorf("hurry %t: %v, %v", soon, err, ended)
			}
			if took := time.Since(start); soon && took > 5*time.Second || !soon && took < time.Minute {
				t.Errorf("hurry %t: it took %s", soon, took)
			}
		})
	}
}
