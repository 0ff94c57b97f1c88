//go:build unix && !linux

package main

import "syscall"

// endWithUs: here a command goes on where this process is killed (docs/workers.md).
func endWithUs(*syscall.SysProcAttr) {}
