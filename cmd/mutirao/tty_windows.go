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
