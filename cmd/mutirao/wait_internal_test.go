package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// doubted is a node that shows an instance as it is after such a time.
type doubted struct {
	began time.Time
	shows func(since time.Duration) *api.Instance
}

func (d *doubted) Watch(ctx context.Context, _ func(api.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d *doubted) Show(context.Context, string) (*api.Instance, error) {
	return d.shows(time.Since(d.began)), nil
}

// Whoever waits for the end goes on waiting while others only presume that it failed, and who holds the task is not
// gone: until its success counts, until it is gone as well, or until the time-out, which says what is waited for.
func TestWhatIsOnlyPresumedIsNoEnd(t *testing.T) {
	presumed := func(orders ...string) *api.Instance {
		return &api.Instance{ID: "mine", State: workflow.InstanceFailed,
			Asks: []api.Ask{{Task: "search", Partner: "boat", Presumed: true, Orders: orders}}}
	}
	for _, tt := range []struct {
		what    string
		then    *api.Instance
		timeout time.Duration
		want    int
		says    string
	}{
		{"it succeeds", &api.Instance{ID: "mine", State: workflow.InstanceSucceeded}, -1, 0, ""},
		{"the holder is gone", presumed(api.TaskAgain, api.TaskSkip), -1, 1, "the instance failed"},
		{"the time-out", presumed(), time.Minute, exitTimeout,
			"undecided after 1m: others presume that it failed: task search, which boat holds; "},
	} {
		synctest.Test(t, func(t *testing.T) {
			node := &doubted{began: time.Now(), shows: func(since time.Duration) *api.Instance {
				if since < 30*time.Second {
					return presumed()
				}
				return tt.then
			}}
			u, wt := &ui{out: t.Output(), err: t.Output(), quiet: true}, waiting{timeout: tt.timeout}
			in, err := wt.until(t.Context(), u, node, "mine")
			if err != nil {
				t.Fatal(err)
			}
			if passed := time.Since(node.began); passed < 30*time.Second {
				t.Errorf("%s: it waited for %s", tt.what, passed)
			}
			err = wt.verdict(u, in)
			var e *exitError
			status := 0
			if errors.As(err, &e) {
				status = e.status
			} else if err != nil {
				status = 1
			}
			if status != tt.want || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: exit status %d (%v), want %d", tt.what, status, err, tt.want)
			}
		})
	}
}
