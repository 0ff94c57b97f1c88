package mesh

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A long answer may be taken for longer than a request may take else, as long as it is taken steadily, and only by
// whoever says that it looks at what comes.
func TestALongAnswerIsTakenSlowly(t *testing.T) {
	for name, listen := range map[string][]string{"tcp": overTCP, "quic": overQUIC} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hasty := func(c *Config) { c.Limits.RequestTimeout = time.Second }
			a, b := start(t, listen, hasty), start(t, listen, hasty)
			long := bytes.Repeat([]byte("long"), 1<<18-1)
			b.HandleRequest("/test/long/1", false,
				func(workflow.PartnerID, []byte) ([]byte, error) { return long, nil })
			came := 0
			ctx, cancel := context.WithTimeout(wire.WithCame(t.Context(), func(n int) {
				came += n
				time.Sleep(time.Duration(n) * time.Second / (400 << 10))
			}), 20*time.Second)
			defer cancel()
			began := time.Now()
			got, err := a.Request(ctx, b.ID(), b.Addrs(), "/test/long/1", nil)
			if took := time.Since(began); err != nil || !bytes.Equal(got, long) || took < 2*time.Second ||
				came < len(long) {
				t.Errorf("%d bytes in %v, %d were said to come: %v", len(got), took, came, err)
			}
			// One that takes nothing loses the answer, and its place, after the time that each has.
			ended := make(chan struct{})
			stuck, end := context.WithCancel(wire.WithCame(t.Context(), func(int) { <-ended }))
			defer end()
			go func() {
				for began := time.Now(); len(b.requests) > 0 || time.Since(began) < time.Second/2; {
					if time.Sleep(time.Second / 20); time.Since(began) > 8*time.Second {
						break
					}
				}
				close(ended)
			}()
			if _, err := a.Request(stuck, b.ID(), nil, "/test/long/1", nil); err == nil {
				t.Error("an answer that nobody took came whole")
			}
			if len(b.requests) > 0 {
				t.Error("it still has a place among the requests")
			}
		})
	}
}
