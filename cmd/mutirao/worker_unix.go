//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command run in a process group of its own, all of which is asked to end
// when its context does; what does not within the grace is ended with its first process.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(c.SysProcAttr)
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
}

// kill ends such a command at once, with all that it started.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
