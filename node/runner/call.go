package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// call makes an HTTP call once per job.
type call struct {
	configs.Application
	client *http.Client
}

func newCall(c configs.Application) *call {
	return &call{Application: c, client: &http.Client{
		// A redirect would carry the job, and the headers' secrets, to a place
		// that the operator did not name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *call) allows(o configs.Origin) bool { return c.Allows(o) }

func (c *call) run(ctx context.Context, j Job) (map[workflow.DataName]workflow.Value, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit(),
		fmt.Errorf("no answer within its time limit of %v", c.Limit()))
	defer cancel()
	req, err := c.request(ctx, j)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.OutputLimit()+1))
	switch {
	case err != nil:
		return nil, c.explain(ctx, err)
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s answered %s: %s", req.URL.Host, resp.Status, excerpt(body, 500))
	case int64(len(body)) > c.OutputLimit():
		return nil, fmt.Errorf("%s answered more than the output limit of %d bytes", req.URL.Host, c.OutputLimit())
	}
	return DecodeOutputs(body)
}

func (c *call) request(ctx context.Context, j Job) (*http.Request, error) {
	body, err := j.encode()
	if err != nil {
		return nil, err
	}
	method := c.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", c.URL, err)
	}
	for k, v := range c.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Idempotency-Key", j.IdempotencyKey())
	req.Header.Set("Mutirao-Instance", j.Instance)
	req.Header.Set("Mutirao-Task", string(j.Task))
	req.Header.Set("Mutirao-Attempt", j.Attempt)
	req.Header.Set("Mutirao-Try", strconv.Itoa(j.Try))
	return req, nil
}

// explain says why a call failed without repeating its URL, which may hold a
// secret and goes into facts that spread.
func (c *call) explain(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	host := "the called address"
	if at, parseErr := url.Parse(c.URL); parseErr == nil {
		host = at.Host
	}
	return fmt.Errorf("%s: %w", host, err)
}
