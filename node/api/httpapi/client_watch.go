package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// maxEvent is the longest line of an event stream, in bytes.
const maxEvent = 64 << 10

// stopped wraps what fn returned, to tell it from a broken connection.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

// Watch implements Service. A broken connection is mended, also across a
// restart of the node, and fn is told by an EventGap that it may have missed
// something. A node that stays away ends the watch with NoNode.
func (c *Client) Watch(ctx context.Context, fn func(api.Event) error) error {
	resumed, away := false, time.Time{}
	for pause := c.pause; ; pause = min(2*pause, c.give/4) {
		err := c.watchOnce(ctx, func() { pause, resumed, away = c.pause, true, time.Time{} }, fn)
		var own stopped
		switch {
		case errors.As(err, &own):
			return own.error
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !resumed:
			return err // never got through
		case away.IsZero():
			away = time.Now()
		case time.Since(away) > c.give:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watchOnce follows one event stream until it breaks. It calls connected when
// the node has answered.
func (c *Client) watchOnce(ctx context.Context, connected func(), fn func(api.Event) error) error {
	resp, err := c.do(ctx, eventsRoute, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	connected()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e api.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return stopped{api.Errorf(api.Failed, "an event of the node cannot be read: %v", err)}
		}
		if err := fn(e); err != nil {
			return stopped{err}
		}
	}
	if err := lines.Err(); err != nil {
		return c.lost(ctx, err)
	}
	return c.lost(ctx, io.ErrUnexpectedEOF)
}
