//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What is given as a file, and is a pipe or a device, is refused at once: it may have no end, or nobody who writes into
// it.
func TestWhatIsNoRegularFileIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		done := make(chan error, 1)
		go func() {
			_, err := putFile(t.Context(), nil, path)
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "is no file but a device, a pipe or the like") {
				t.Errorf("of %s it says %v", path, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s is read", path)
		}
	}
}

// Of an application that is taken off the list nothing is said to be refused, as nothing is.
func TestWhatBecomesOfANameIsSaid(t *testing.T) {
	said := leaves([]api.Workflow{{Name: "application/form", Kind: "application"}})
	if strings.Contains(said, "refused") || !strings.Contains(said, "it is a program's name") {
		t.Errorf("of an application it says %q", said)
	}
	if said = leaves([]api.Workflow{{Name: "model/visit", Kind: "model"}}); !strings.Contains(said, "are refused") {
		t.Errorf("of a model it says %q", said)
	}
}

// Whoever is asked before a sign-out sees by their instances what is lost, and how much.
func TestTheFirstItemsAreNamed(t *testing.T) {
	var items []string
	for range 12 {
		items = append(items, "b of Rua 3")
	}
	if said := firstOf(items); !strings.HasSuffix(said, "b of Rua 3 and 2 more") || strings.Count(said, "b of") != 10 {
		t.Errorf("it says %q", said)
	}
	if said := firstOf(items[:2]); said != "b of Rua 3, b of Rua 3" {
		t.Errorf("it says %q", said)
	}
}
