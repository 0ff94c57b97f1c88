package runner

import (
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup makes cmd the root of a process group of its own. Windows has no
// signal for a group, so ending it walks the tree while its root still lives.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	cmd.Cancel = func() error {
		return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}

// killGroup has nothing left to do: Cancel ended the whole tree.
func killGroup(*exec.Cmd) {}
