package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A command that only says its version makes little first: what only a node, or its page, needs is made there. So many
// allocations of our own packages are a fraction of a millisecond.
func TestACommandStartsWithLittle(t *testing.T) {
	const most = 5_000
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "version")
	cmd.Args[0] = "mutirao" // as for the scripts
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	ours, seen := 0, false
	for line := range strings.Lines(string(said)) {
		// init PACKAGE @0.5 ms, 0.1 ms clock, 1234 bytes, 56 allocs
		f := strings.Fields(line)
		if len(f) != 11 || f[0] != "init" || f[10] != "allocs" {
			continue
		}
		seen = true
		if n, err := strconv.Atoi(f[9]); err == nil && (f[1] == "main" || strings.Contains(f[1], "/mutirao")) {
			ours += n
		}
	}
	if !seen {
		t.Fatalf("the Go runtime does not say what is made at the start:\n%s", said)
	}
	if ours > most {
		t.Errorf("%d allocations before a command begins, at most %d:\n%s", ours, most, said)
	}
}
