package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// connect returns the node that runs in --dir.
func connect(cmd *cobra.Command) (*api.Client, error) { return api.Dial(nodeDir(cmd)) }

// asking is a command that asks the running node for something.
type asking func(ctx context.Context, u *ui, node api.Service, args []string) error

// ask makes a cobra RunE of it.
func ask(fn asking) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		node, err := connect(cmd)
		if err != nil {
			return err
		}
		return fn(cmd.Context(), uiOf(cmd), node, args)
	}
}

// lookAgain bounds how long a change can stay unseen when an event was lost.
const lookAgain = 2 * time.Second

// follow calls look now and whenever something has changed, until look is
// done, fails, or ctx ends; the end of ctx is no error.
func follow(ctx context.Context, node api.Service, look func() (done bool, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, broken := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		broken <- node.Watch(ctx, func(api.Event) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case err := <-broken:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}
