package node

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// A watcher that takes nothing for a while learns that it missed something, and what there was room for; those who tell
// do not wait for it.
func TestASlowWatcherLearnsThatItMissedSomething(t *testing.T) {
	f := newFeed(stillClock{})
	ctx, cancel := context.WithCancel(t.Context())
	var heard []string
	err := f.watch(ctx, func(e api.Event) error {
		if e.Kind == api.EventGap {
			e.Text = api.EventGap
		}
		switch heard = append(heard, e.Text); {
		case len(heard) == 1: // the watch has begun
			for i := range 3 * feedSize {
				f.publish(api.Event{Kind: "instance", Text: strconv.Itoa(i)})
			}
		case len(heard) == 2+feedSize:
			f.publish(api.Event{Kind: "instance", Text: "last"})
		case e.Text == "last":
			cancel()
		}
		return nil
	})
	want := []string{api.EventGap, api.EventGap}
	for i := range feedSize {
		want = append(want, strconv.Itoa(i))
	}
	if want = append(want, "last"); !errors.Is(err, context.Canceled) || !slices.Equal(heard, want) {
		t.Errorf("heard %q, and then %v", heard, err)
	}
}

// Whatever happens once a watch has begun is told: what a watcher reads after the gap with which it begins is not old for
// good.
func TestAWatchBeginsWithAGap(t *testing.T) {
	f := newFeed(stillClock{})
	ctx, cancel := context.WithCancel(t.Context())
	var heard []string
	err := f.watch(ctx, func(e api.Event) error {
		if heard = append(heard, e.Kind); len(heard) == 1 {
			f.publish(api.Event{Kind: "instance"})
		} else {
			cancel()
		}
		return nil
	})
	if want := []string{api.EventGap, "instance"}; !errors.Is(err, context.Canceled) || !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q, and then %v", heard, want, err)
	}
}
