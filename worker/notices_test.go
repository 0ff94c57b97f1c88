package worker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/worker"
)

// pretended is a node that gives jobs, and tells of them as a test wants.
type pretended struct {
	mu     sync.Mutex
	jobs   int            // that wait
	takes  []string       // how long each request waits for a job
	more   chan struct{}  // closed when a job comes
	stream *io.PipeWriter // of the stream that is open; nil: none is
	opened int            // how many streams were opened
	none   int            // the status with which streams are refused; 0: they are not
	deaf   bool           // streams are opened, and nothing is told
}

// add has jobs come.
func (p *pretended) add(n int) {
	p.mu.Lock()
	p.jobs += n
	close(p.more)
	p.more = make(chan struct{})
	stream, waiting := p.stream, p.jobs
	if p.deaf {
		stream = nil
	}
	p.mu.Unlock()
	if stream != nil {
		fmt.Fprintf(stream, "data: {\"application\":\"weigh\",\"waiting\":%d}\n\n", waiting)
	}
}

// breakStream ends the stream that is open.
func (p *pretended) breakStream() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream.Close()
	p.stream = nil
}

// streams is how many streams were opened, and asked how often a job was asked for.
func (p *pretended) counts() (streams, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened, len(p.takes)
}

func (p *pretended) RoundTrip(r *http.Request) (*http.Response, error) {
	reply := func(status int, body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
	switch {
	case r.URL.Path == "/v1/jobs/events":
		return p.open(r)
	case r.URL.Path != "/v1/jobs/take":
		return reply(http.StatusNoContent, "")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(string(body), `"wait":"`)
	text, _, _ := strings.Cut(after, `"`)
	wait, err := time.ParseDuration(text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.takes = append(p.takes, text)
	p.mu.Unlock()
	for over := time.After(wait); ; {
		p.mu.Lock()
		if p.jobs > 0 {
			p.jobs--
			p.mu.Unlock()
			return reply(http.StatusOK, `{"lease": "l", "lease_for": "30s", "task": "t", "instance": "i"}`)
		}
		more := p.more
		p.mu.Unlock()
		select {
		case <-more:
			continue
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-over:
			return reply(http.StatusNoContent, "")
		}
	}
}

// open opens a stream, which is alive as long as it is not deaf.
func (p *pretended) open(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.none != 0 {
		return &http.Response{StatusCode: p.none, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(
			`{"code": "not-found", "message": "there is no such thing"}`))}, nil
	}
	p.opened++
	from, to := io.Pipe()
	p.stream = to
	context.AfterFunc(r.Context(), func() { to.CloseWithError(r.Context().Err()) })
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: from,
	}, nil
}

// live gives a stream its signs of life until a test ends.
func (p *pretended) live(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(15 * time.Second):
		}
		p.mu.Lock()
		stream := p.stream
		p.mu.Unlock()
		if stream != nil {
			_, _ = io.WriteString(stream, ": alive\n\n") // it may have ended
		}
	}
}

// working runs a worker of a pretended node in a bubble, which ends when the test does.
func working(t *testing.T, p *pretended, o worker.Options, test func(done *atomic.Int64)) {
	synctest.Test(t, func(t *testing.T) {
		p.more = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { p.live(ctx) })
		var done atomic.Int64
		c := &worker.Client{URL: "http://node", HTTP: &http.Client{Transport: p}}
		o.Application = "weigh"
		all.Go(func() {
			err := c.Run(ctx, o, func(context.Context, *worker.Job, worker.Report) (map[string]any, error) {
				done.Add(1)
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		test(&done)
		cancel()
		all.Wait()
	})
}

// let lets time go by.
func let(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// While the stream is open a worker asks at once when it is told, for as many jobs as it may, and waits in no request.
func TestAWorkerIsToldOfJobs(t *testing.T) {
	p := &pretended{}
	working(t, p, worker.Options{Jobs: 4}, func(done *atomic.Int64) {
		let(5 * time.Second)
		streams, before := p.counts()
		if streams != 1 {
			t.Errorf("%d streams were opened for four jobs at once, want 1", streams)
		}
		for _, n := range []int{1, 3, 20} {
			was := done.Load()
			p.add(n)
			synctest.Wait()
			if got := done.Load() - was; got != int64(n) {
				t.Errorf("of %d jobs %d were done at once", n, got)
			}
		}
		if _, asked := p.counts(); asked-before > 24+3*4 {
			t.Errorf("for 24 jobs it asked %d times", asked-before)
		}
		for _, wait := range p.takes {
			if wait != "0s" {
				t.Errorf("a request waited %s", wait)
			}
		}
	})
}

// A job of which a worker was not told is taken at the wake-up interval, and a stream on which nothing comes any
// more is begun again.
func TestLostNoticesAreHarmless(t *testing.T) {
	p := &pretended{}
	working(t, p, worker.Options{Wake: 10 * time.Second}, func(done *atomic.Int64) {
		let(time.Minute)
		if _, asked := p.counts(); asked < 6 || asked > 10 {
			t.Errorf("in a minute without a job it asked %d times", asked)
		}
		p.deaf = true
		p.add(1)
		let(10 * time.Second)
		if done.Load() != 1 {
			t.Error("a job of which nothing was told was not taken at the wake-up interval")
		}
	})
	silent := &pretended{}
	silent.deaf = true
	working(t, silent, worker.Options{}, func(done *atomic.Int64) {
		p := silent
		p.mu.Lock()
		p.stream = nil // no sign of life
		p.mu.Unlock()
		let(50 * time.Second)
		if streams, _ := p.counts(); streams != 2 {
			t.Errorf("%d streams were opened, want a second in place of one that is silent", streams)
		}
	})
}

// While there is no stream a request waits for a job, so none comes later than before there were streams; when the
// stream is back, the worker is told again.
func TestAStreamBreaks(t *testing.T) {
	p := &pretended{}
	working(t, p, worker.Options{Jobs: 2}, func(done *atomic.Int64) {
		let(10 * time.Second)
		p.mu.Lock()
		p.none = http.StatusServiceUnavailable
		p.mu.Unlock()
		p.breakStream()
		synctest.Wait()
		p.add(2)
		synctest.Wait()
		if done.Load() != 2 {
			t.Errorf("when the stream had broken, %d of 2 jobs were done at once", done.Load())
		}
		p.mu.Lock()
		p.none = 0
		p.mu.Unlock()
		let(time.Minute)
		if streams, _ := p.counts(); streams != 2 {
			t.Errorf("%d streams were opened, want another one", streams)
		}
		p.add(2)
		synctest.Wait()
		if done.Load() != 4 {
			t.Errorf("when the stream was back, %d of 2 jobs were done at once", done.Load()-2)
		}
		if last := p.takes[len(p.takes)-1]; last != "0s" {
			t.Errorf("when the stream was back, a request waited %s", last)
		}
	})
}

// A worker works with a node that has no streams, or gives it none, as if there were none, and says so once.
func TestAStreamIsRefused(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusConflict} {
		p := &pretended{}
		p.none = status
		var said atomic.Int64
		o := worker.Options{Log: func(text string) {
			if strings.HasPrefix(text, "the node does not tell this worker of jobs") {
				said.Add(1)
			}
		}}
		working(t, p, o, func(done *atomic.Int64) {
			let(3 * time.Minute)
			p.add(1)
			synctest.Wait()
			if done.Load() != 1 || said.Load() != 1 {
				t.Errorf("%d jobs were done, want 1; it said %d times that it is not told", done.Load(), said.Load())
			}
			if _, asked := p.counts(); asked > 9 {
				t.Errorf("in three minutes it asked %d times: its requests do not wait", asked)
			}
		})
	}
}
