package device

import (
	"testing"
	"time"
)

// Over a good link files are opened; over a weak one they come meanwhile; what takes hours is looked at elsewhere.
func TestAdvise(t *testing.T) {
	for _, x := range []struct {
		name string
		link Link
		want Advice
	}{
		{"nobody has them here", Link{Takes: time.Second, Offline: true}, Wait},
		{"no room for them", Link{Reachable: true, NoRoom: true, Offline: true, Prefetches: true}, Room},
		{"not measured", Link{Reachable: true, Offline: true}, Open},
		{"quick", Link{Reachable: true, Takes: 20 * time.Second, Offline: true}, Open},
		{"minutes, free to lock", Link{Reachable: true, Takes: time.Minute, Offline: true}, Lock},
		{"minutes, locked", Link{Reachable: true, Takes: time.Minute, Offline: true, Locked: true}, Prefetch},
		{"minutes, on their way", Link{Reachable: true, Takes: time.Minute, Offline: true, Prefetches: true}, Coming},
		{"minutes, only while connected", Link{Reachable: true, Takes: time.Minute, Prefetches: true}, Open},
		{"hours", Link{Reachable: true, Takes: 3 * time.Hour, Offline: true, Locked: true}, Elsewhere},
	} {
		if got := Advise(x.link); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}
