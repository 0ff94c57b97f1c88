//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTTY reports whether a file is a terminal: only terminals have a window.
func isTTY(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
