//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unchecked says why this system cannot tell whose a file is; empty: it can.
const Unchecked = ""

const noFollow = unix.O_NOFOLLOW

// ownedHere reports whether a file is this user's or the system's. The system's
// own user may use everybody's.
func ownedHere(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	me := os.Geteuid()
	return !ok || me == 0 || st.Uid == 0 || int(st.Uid) == me
}
