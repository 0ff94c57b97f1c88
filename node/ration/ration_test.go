package ration

import (
	"testing"
	"time"
)

// A ration is spent at once, and comes back with time.
func TestRation(t *testing.T) {
	b := New(Ration{10, time.Second})
	now := time.Hour
	for i, c := range []struct {
		wait time.Duration
		much int
		want bool
	}{
		{0, 6, true}, {0, 5, false}, {0, 4, true}, {time.Second / 2, 1, false}, {time.Second / 2, 1, true},
		{0, 1, false},
		{time.Hour, 10, true}, {0, 1, false},
	} {
		now += c.wait
		if got := b.Spend("p", c.much, now); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
	if !b.Spend("q", 10, now) {
		t.Error("another member pays for it")
	}
}
