package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

// connect returns the node that runs in --dir.
func connect(cmd *cobra.Command) (*httpapi.Client, error) {
	node, err := httpapi.Dial(nodeDir(cmd))
	if isAway(err) && assemble.LeftForGood(nodeDir(cmd)) {
		err = api.Errorf(api.NoNode, "the node in %s left its mesh for good: it does not run any more", nodeDir(cmd)).
			WithHint("join again with an empty folder and a new invitation")
	}
	return node, err
}

// asking is a command that asks the running node for something.
type asking func(ctx context.Context, u *ui, node api.Service, args []string) error

// ask makes a cobra RunE of it.
func ask(fn asking) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		node, err := connect(cmd)
		if err != nil {
			return err
		}
		putOffCollecting()
		return fn(cmd.Context(), uiOf(cmd), node, args)
	}
}

// putOffCollecting has what is needed no more collected only once a command has run for a second, or holds much: most
// end before, and what is given back then takes no time.
func putOffCollecting() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	const much = 256 << 20 // bytes
	usual, most := debug.SetGCPercent(-1), debug.SetMemoryLimit(much)
	time.AfterFunc(time.Second, func() {
		debug.SetGCPercent(usual)
		debug.SetMemoryLimit(most)
	})
}

// What a command's parts ask of a node, beside what the command itself does.
type (
	watched interface {
		Watch(ctx context.Context, fn func(api.Event) error) error
	}
	shower interface {
		Show(ctx context.Context, id string) (*api.Instance, error)
	}
	// followed is a node that shows an instance as it goes on.
	followed interface {
		watched
		shower
	}
)

const (
	// lookAgain bounds how long a change can stay unseen when an event was lost.
	lookAgain = 2 * time.Second
	// patience is how long a node may be away, e.g. to be started again, while a
	// command follows something.
	patience = 20 * time.Second
)

// follow calls look now and whenever something has changed that concerns it, until look
// is done, fails, or ctx ends; the end of ctx is no error. A node that goes away
// meanwhile is waited for.
func follow(
	ctx context.Context, node watched, concerns func(api.Event) bool, look func() (done bool, err error),
) error {
	// What look is stopped by is asked below, and not this: a context is canceled a
	// moment before those made of it.
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	go func() { // events only make it look sooner: without them it looks at every tick
		_ = node.Watch(watching, func(e api.Event) error {
			if !concerns(e) && e.Kind != api.EventGap { // after a gap nobody knows
				return nil
			}
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	var seen time.Time // when the node last answered
	for {
		done, err := look()
		switch {
		case ctx.Err() != nil:
			return nil
		case done && err == nil:
			return nil
		case err == nil:
			seen = time.Now()
		case !isAway(err) || time.Since(seen) > patience:
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// anything is for commands that look at more than one thing: each event concerns them.
func anything(api.Event) bool { return true }

func isAway(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.NoNode
}
