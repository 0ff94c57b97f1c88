//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTTY reports whether a file is a terminal: only terminals have a window.
func isTTY(f *os.File) bool {
	_, _, ok := windowOf(f)
	return ok
}

// windowOf is how many columns and lines a terminal has; not ok for other files.
func windowOf(f *os.File) (columns, lines int, ok bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(w.Col), int(w.Row), true
}
