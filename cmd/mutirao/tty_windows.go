package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTTY reports whether a file is a console.
func isTTY(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// windowOf is how many columns and lines a console has; not ok for other files.
func windowOf(f *os.File) (columns, lines int, ok bool) {
	var b windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &b); err != nil {
		return 0, 0, false
	}
	return int(b.Window.Right-b.Window.Left) + 1, int(b.Window.Bottom-b.Window.Top) + 1, true
}
