package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LockFile is the file of a store's folder that is locked; it holds nothing.
const LockFile = "LOCK"

// errHeld is what lockFile returns when another open file has the lock.
var errHeld = errors.New("lock is held")

// dirLock is the right to use a folder. The kernel's lock on the file decides and
// ends with its process, however that ends; the process ID inside is only told.
// The file stays when the lock is released: removing it would let two processes
// lock two files of one name.
type dirLock struct{ f *os.File }

func acquireLock(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: cannot make the lock file: %w", noSpace(err))
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errHeld) {
			return nil, &LockedError{Dir: dir, PID: readPID(f)}
		}
		return nil, fmt.Errorf("store: cannot lock %s: %w", dir, err)
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("store: cannot write the lock file: %w", noSpace(err))
	}
	return &dirLock{f}, nil
}

// holdStill keeps others from opening the store of a folder until release. It makes
// nothing: a folder without a lock file was never opened.
func holdStill(dir string) (release func(), err error) {
	f, err := os.Open(filepath.Join(dir, LockFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errHeld) {
			return nil, &LockedError{Dir: dir, PID: readPID(f)}
		}
		return nil, fmt.Errorf("store: cannot lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil // nothing was written
}

func (l *dirLock) release() error { return l.f.Close() }

// writePID writes before it truncates, so that a reader meanwhile, or a full
// disk, finds no empty file.
func writePID(f *os.File) error {
	n, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	if err != nil {
		return err
	}
	return f.Truncate(int64(n))
}

func readPID(f *os.File) int {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return pid
}
