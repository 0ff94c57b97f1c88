// Package worker is a client for programs that do the automatic tasks of a Mutirão node:
// workers. A worker comes for the jobs of one application, keeps each by signs of life, and
// brings its result.
//
// Promises: a job's result is brought once, and repeated only where it is not known whether
// it arrived; a handler whose job is over is told so by its context; when [Client.Run] ends,
// what is in hand is given back. The node's stream of events tells a worker to come; whatever
// of that is lost, it comes in half a minute all the same. It speaks plain HTTP, as docs/workers.md says, and may be
// used by many goroutines at once.
//
// It imports no other package of ours; cmd/mutirao imports it.
package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Client asks one node for jobs.
type Client struct {
	// URL is the node's API, e.g. http://127.0.0.1:7878, and Token one of its tokens, with
	// the scope worker:APPLICATION.
	URL, Token string
	// HTTP makes the requests; nil: http.DefaultClient. A time-out of its own must be longer
	// than Options.Wait, and ends the stream of events, which is then begun again.
	HTTP *http.Client
	// Again, unless nil, is called when the node cannot be reached or does not know the
	// token, and returns where it is now: a node that starts again may be elsewhere.
	Again func() (url, token string, client *http.Client, err error)

	mu sync.Mutex // guards URL, Token and HTTP once Again is used
}

// Job is a try of an automatic task, as it was given to this worker.
type Job struct {
	Lease          string         `json:"lease"`     // names the hold on the job
	LeaseFor       string         `json:"lease_for"` // how long that lasts after each sign of life, e.g. 30s
	Until          time.Time      `json:"until"`     // when it ends without one
	Limit          *time.Time     `json:"limit"`     // when the time of its task is over, signs of life or not; nil: never
	Instance       string         `json:"instance"`
	Workflow       string         `json:"workflow"`
	Task           string         `json:"task"`
	Application    string         `json:"application"`
	Attempt        string         `json:"attempt"`
	Try            int            `json:"try"`
	IdempotencyKey string         `json:"idempotency_key"` // of this try: the same whenever it is done again
	Age            string         `json:"age"`             // of the instance, for people
	Args           map[string]any `json:"args"`            // what the task has under with
	Input          map[string]any `json:"input"`           // what it has under in; whole numbers are json.Number
	Files          string         `json:"files,omitempty"` // a folder for files that it makes

	// Raw is the job as the node sent it.
	Raw json.RawMessage `json:"-"`
}

// Error is what a node refuses, and why.
type Error struct {
	Status  int    `json:"-"`    // of HTTP
	Code    string `json:"code"` // refused, not-allowed, not-found, …
	Message string `json:"message"`
	Hint    string `json:"hint"` // the next step
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// ErrGiveBack is returned by a handler that leaves its job to another worker.
var ErrGiveBack = errors.New("the job is given back")

// Take asks for a job of an application and waits for one at most so long (0 to 60 s); nil:
// none came. lease is how long the job is kept after each sign of life, 2 s to 10 min; 0: 30 s.
// name is what the worker is called in the log. What the node refuses is an [*Error].
func (c *Client) Take(ctx context.Context, application, name string, wait, lease time.Duration) (*Job, error) {
	in := map[string]string{"application": application, "worker": name, "wait": wait.String()}
	if lease > 0 {
		in["lease"] = lease.String()
	}
	b, err := c.post(ctx, "/v1/jobs/take", in)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	job := &Job{Raw: b}
	if err := dec.Decode(job); err != nil {
		return nil, fmt.Errorf("the node's reply cannot be read: %w", err)
	}
	return job, nil
}

// Heartbeat is a sign of life, with how far the worker is (0 to 1) and, at most 200 bytes,
// the same in words. An [*Error] says that the worker has the job no more.
func (c *Client) Heartbeat(ctx context.Context, lease string, progress float64, note string) error {
	_, err := c.post(ctx, "/v1/leases/"+lease+"/heartbeat", map[string]any{"progress": progress, "note": note})
	return err
}

// Complete brings a result, and returns when it is durable. An [*Error] with the code refused
// says why it was not taken.
func (c *Client) Complete(ctx context.Context, lease string, outputs map[string]any) error {
	if outputs == nil {
		outputs = map[string]any{}
	}
	_, err := c.post(ctx, "/v1/leases/"+lease+"/complete", map[string]any{"outputs": outputs})
	return err
}

// Fail says that the try has failed, and why, and returns when that is durable.
func (c *Client) Fail(ctx context.Context, lease, reason string) error {
	_, err := c.post(ctx, "/v1/leases/"+lease+"/fail", map[string]string{"reason": reason})
	return err
}

// GiveBack leaves the job to another worker.
func (c *Client) GiveBack(ctx context.Context, lease string) error {
	_, err := c.post(ctx, "/v1/leases/"+lease+"/give-back", struct{}{})
	return err
}

// maxReply is the greatest reply that is read, in bytes.
const maxReply = 16 << 20

// post makes a request and reads the reply.
func (c *Client) post(ctx context.Context, path string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("what the worker says cannot be written as JSON: %w", err)
	}
	resp, err := c.request(ctx, http.MethodPost, path, b)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // it was only read
	return io.ReadAll(io.LimitReader(resp.Body, maxReply))
}

// request makes a request, whose reply is a success. One that the node has not heard is made once more where it is now.
func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	resp, err := c.once(ctx, method, path, body)
	var no *Error
	stranger := errors.As(err, &no) && no.Status == http.StatusUnauthorized
	if c.Again == nil || err == nil || ctx.Err() != nil || no != nil && !stranger {
		return resp, err
	}
	url, token, client, lost := c.Again()
	if lost != nil {
		return nil, err
	}
	c.mu.Lock()
	same := url == c.URL && token == c.Token
	c.URL, c.Token, c.HTTP = url, token, client
	c.mu.Unlock()
	if same {
		return nil, err
	}
	return c.once(ctx, method, path, body)
}

func (c *Client) once(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	c.mu.Lock()
	url, token, client := c.URL, c.Token, c.HTTP
	c.mu.Unlock()
	if client == nil {
		client = http.DefaultClient
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(url, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	defer resp.Body.Close() // it was only read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, err
	}
	no := &Error{Status: resp.StatusCode}
	if json.Unmarshal(b, no) != nil || no.Code == "" {
		return nil, fmt.Errorf("%s answered %s: is it a node?", url, resp.Status)
	}
	return nil, no
}
