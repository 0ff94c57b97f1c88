package turns_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/turns"
)

// What is about one thing is done one after the other, whoever stops waiting has no turn, and other things wait for none.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var of turns.Of[string]
		over, err := of.Take(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := of.Take(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := of.Take(soon, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("whoever waits too long is told %v", err)
		}
		done := make(chan string)
		for range 2 {
			go func() {
				over, err := of.Take(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				done <- "begun"
				time.Sleep(time.Minute)
				done <- "over"
				over()
			}()
		}
		synctest.Wait()
		select {
		case <-done:
			t.Error("a second began while the first was at it")
		default:
		}
		over()
		got := []string{<-done, <-done, <-done, <-done}
		if want := []string{"begun", "over", "begun", "over"}; !slices.Equal(got, want) {
			t.Errorf("it went %q, want %q", got, want)
		}
	})
}
