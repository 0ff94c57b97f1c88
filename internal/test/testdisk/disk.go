//go:build linux

// Package testdisk makes small disks for tests and fills them up.
//
// Promises: what Small mounted is unmounted when the test ends. Mounting needs
// root: in CI it is a failure where that is not permitted, elsewhere the test
// is told.
//
// It imports no other package of ours; only tests import it.
package testdisk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// T is what a test is told by: *testing.T.
type T interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Small mounts a tmpfs of some MiB and returns where. Where mounting is not
// permitted it fails the test in CI; elsewhere it logs that what was to be tested
// is not, and returns "".
func Small(t T, mib, what string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+mib+"m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("NOT TESTED: %s: cannot mount a tmpfs: %v", what, err)
		}
		t.Logf("NOT TESTED: %s: cannot mount a tmpfs (run as root): %v", what, err)
		return ""
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fill writes a file until the disk is full.
func Fill(t T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<16)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}
