package main

import "os/exec"

// ownGroup: a command ends with its process when its context does.
func ownGroup(c *exec.Cmd) {
	c.Cancel = func() error { return c.Process.Kill() }
}

// kill ends a command at once.
func kill(c *exec.Cmd) { _ = c.Process.Kill() }
