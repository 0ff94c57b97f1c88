package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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
		{"GET", "/v1/jobs/events?application=climb", "", http.StatusForbidden, "may take no jobs of"},
		{"GET", "/v1/jobs/events", "", http.StatusBadRequest, "application is not given"},
		{"GET", "/v1/jobs/events?application=", "", http.StatusBadRequest, "application is not given"},
		{"POST", "/v1/jobs/take", `{}`, http.StatusBadRequest, "application is not given"},
		{"GET", "/v1/jobs/events?application=weigh", "", http.StatusConflict, "there is nothing to watch"},
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
	for _, q := range [][3]string{
		{"POST", "/v1/jobs/take", `{"application":"weigh"}`}, {"GET", "/v1/jobs/events?application=weigh", ""},
	} {
		if status, body := asks(t, s, reading.Token, q[0], q[1], q[2]); status != http.StatusForbidden ||
			!strings.Contains(body, "worker:APPLICATION") {
			t.Errorf("%s with a token that reads: status %d, %s", q[1], status, body)
		}
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

// notifying is a watch for jobs that tells what a test has it tell.
type notifying struct {
	notices chan *api.JobNotice // capacity 1
	closed  chan struct{}
}

func newNotifying() *notifying {
	return &notifying{notices: make(chan *api.JobNotice, 1), closed: make(chan struct{})}
}

func (n *notifying) Next(ctx context.Context) (*api.JobNotice, error) {
	select {
	case notice := <-n.notices:
		return notice, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *notifying) Close() { close(n.closed) }

// jobStream is what a worker reads of its stream, line by line.
type jobStream struct {
	t     *testing.T
	lines chan string // closed when the stream ends
}

// openJobs opens the stream of a worker's token.
func openJobs(t *testing.T, s *httpapi.Server, token string) *jobStream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.Access().URL+"/v1/jobs/events?application=weigh",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	out := &jobStream{t: t, lines: make(chan string)}
	go func() {
		defer resp.Body.Close()
		defer close(out.lines)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			out.lines <- lines.Text()
		}
	}()
	out.want("retry: 1000", "")
	return out
}

// want wants these lines to come next.
func (s *jobStream) want(lines ...string) {
	s.t.Helper()
	for _, want := range lines {
		select {
		case got, more := <-s.lines:
			if got != want || !more {
				s.t.Fatalf("the stream says %q (it goes on: %t), want %q", got, more, want)
			}
		case <-time.After(time.Minute):
			s.t.Fatalf("nothing comes, want %q", want)
		}
	}
}

// wantEnd wants the stream to end with nothing more, before a sign of life is due.
func (s *jobStream) wantEnd() {
	s.t.Helper()
	select {
	case line, more := <-s.lines:
		if more {
			s.t.Errorf("before its end the stream says %q", line)
		}
	case <-time.After(10 * time.Second):
		s.t.Error("the stream does not end")
	}
}

// A worker hears over HTTP that there may be a job, and nothing of the job. Its stream ends when its token is removed, at
// once, and when the node stops; and the watch with it.
func TestStreamsOfJobs(t *testing.T) {
	svc := obliging()
	watches := make(chan *notifying, 8)
	var came []string
	svc.OnWatchJobs = func(_ context.Context, by api.Program, app workflow.ApplicationName) (api.JobWatch, error) {
		came = append(came, by.Token+" for "+string(app))
		w := newNotifying()
		watches <- w
		return w, nil
	}
	dir := t.TempDir()
	s, err := httpapi.Serve(dir, "127.0.0.1:0", svc, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	stream := map[string]*jobStream{}
	watch := map[string]*notifying{}
	for _, name := range []string{"gone", "kept"} {
		made, err := c.AddToken(t.Context(), httpapi.TokenRequest{Name: name, Scope: "worker:weigh"})
		if err != nil {
			t.Fatal(err)
		}
		stream[name] = openJobs(t, s, made.Token)
		watch[name] = <-watches
		watch[name].notices <- &api.JobNotice{Application: "weigh", Waiting: 2}
		stream[name].want(`data: {"application":"weigh","waiting":2}`, "")
	}
	if len(came) != 2 || !strings.HasPrefix(came[0], "gone ") || !strings.HasSuffix(came[0], " for weigh") {
		t.Errorf("who watches are %q", came)
	}
	if err := c.RemoveToken(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	watch["gone"].notices <- &api.JobNotice{Application: "weigh"}
	stream["gone"].wantEnd()
	<-watch["gone"].closed
	watch["kept"].notices <- &api.JobNotice{Application: "weigh"}
	stream["kept"].want(`data: {"application":"weigh","waiting":0}`, "")

	client, err := c.WatchJobs(t.Context(), api.Program{}, "weigh")
	if err != nil {
		t.Fatal(err)
	}
	(<-watches).notices <- &api.JobNotice{Application: "weigh", Waiting: 7}
	if n, err := client.Next(t.Context()); err != nil || n.Waiting != 7 || n.Application != "weigh" {
		t.Errorf("the client hears %+v, %v", n, err)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := client.Next(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while nothing comes the client has %v", err)
	}
	closeServer(t, s)
	stream["kept"].wantEnd()
	<-watch["kept"].closed
	var lost *api.Error
	if _, err := client.Next(t.Context()); !errors.As(err, &lost) {
		t.Errorf("without the node the client has %v", err)
	}
}

// A worker that reads nothing costs the node no more than what the connection holds; what it is told is told as one.
func TestASlowReaderOfJobs(t *testing.T) {
	t.Parallel()
	svc := obliging()
	told := make(chan struct{})
	svc.OnWatchJobs = func(context.Context, api.Program, workflow.ApplicationName) (api.JobWatch, error) {
		return endless{told}, nil
	}
	dir, s := serve(t, "127.0.0.1:0", svc, httpapi.Options{})
	conn, err := net.Dial("tcp", s.Access().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /v1/jobs/events?application=weigh HTTP/1.1\r\nHost: localhost\r\n"+
		"Authorization: Bearer %s\r\n\r\n", dial(t, dir).Access().Token); err != nil {
		t.Fatal(err)
	}
	select { // it is let go when it has not read for as long as one write may take
	case <-told:
	case <-time.After(time.Minute):
		t.Error("who reads nothing is written to for ever")
	}
}

// endless always has something to tell.
type endless struct{ closed chan struct{} }

func (endless) Next(context.Context) (*api.JobNotice, error) {
	return &api.JobNotice{Application: "weigh", Waiting: 1}, nil
}

func (e endless) Close() { close(e.closed) }
