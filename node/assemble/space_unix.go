//go:build unix

package assemble

import "golang.org/x/sys/unix"

// diskSpace tells how many bytes of a folder's disk are free to this user, of
// how many.
func diskSpace(dir string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	size := uint64(st.Bsize)
	return uint64(st.Bavail) * size, uint64(st.Blocks) * size, nil
}

// notWritable is why this user cannot write into a folder; nil: it can. Nothing is written to find out.
func notWritable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
