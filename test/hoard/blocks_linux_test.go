package hoard_test

import (
	"io/fs"
	"syscall"
)

// blocks is how many bytes of its disk a file takes.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}
