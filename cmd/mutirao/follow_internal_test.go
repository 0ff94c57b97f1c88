package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// busy is a node on which much happens: it has events, and counts how often an instance is asked for.
type busy struct {
	events chan api.Event
	asked  int
	state  workflow.InstanceState
}

func (b *busy) Watch(ctx context.Context, fn func(api.Event) error) error {
	for {
		select {
		case e := <-b.events:
			if err := fn(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *busy) Show(_ context.Context, id string) (*api.Instance, error) {
	b.asked++
	return &api.Instance{ID: id, State: b.state}, nil
}

// A command that waits for an instance asks for it when something becomes of it, and hardly otherwise, whatever else happens
// on the node: now, once in two seconds in case an event was lost, and after a gap.
func TestWaitingAsksOnlyWhenItConcernsTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &busy{events: make(chan api.Event), state: workflow.InstanceRunning}
		wantAsked := func(what string, n int) {
			t.Helper()
			if synctest.Wait(); node.asked != n {
				t.Fatalf("%s the instance was asked for %d times, want %d", what, node.asked, n)
			}
		}
		u := &ui{out: t.Output(), err: t.Output(), quiet: true}
		ended := make(chan error, 1)
		go func() {
			in, err := (waiting{timeout: -1}).until(t.Context(), u, node, "mine")
			if err == nil && in.State != workflow.InstanceSucceeded {
				err = errors.New("it is " + string(in.State))
			}
			ended <- err
		}()
		wantAsked("at first", 1)
		for range 500 {
			node.events <- api.Event{Kind: "instance", Instance: "another"}
			node.events <- api.Event{Kind: "partner", Partner: "somebody"}
		}
		wantAsked("after a thousand events of others", 1)
		node.events <- api.Event{Kind: api.EventGap}
		wantAsked("after a gap", 2)
		time.Sleep(10 * time.Second)
		wantAsked("ten seconds later", 7)
		node.state = workflow.InstanceSucceeded
		node.events <- api.Event{Kind: "instance", Instance: "mine"}
		wantAsked("when it ended", 8)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
