package assemble

import "golang.org/x/sys/windows"

// diskSpace tells how many bytes of a folder's disk are free to this user, of
// how many.
func diskSpace(dir string) (free, total uint64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, &total, nil)
	return free, total, err
}

// notWritable: no file system of Windows tells that without writing.
func notWritable(string) error { return nil }
