// Package private writes and reads the files that make a node what it is: its
// key, the certificate of its membership, the tokens of its API. A user who can
// read them is the node, and one who can replace them decides what it is.
//
// Promises: such a file is only ever made new, in a name that was free, readable
// by its owner alone from its first byte on, and complete when it appears under
// its own name; what somebody else has planted is refused, and so is what others
// can read or replace. Every refusal says what to type. On systems without Unix
// permissions nothing is checked, and Unchecked says so.
//
// It imports no other package of ours; cmd/mutirao, node, node/api/httpapi, node/assemble
// and node/doctor import it.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LooseError tells that a file is not its owner's alone.
type LooseError struct {
	Path string
	What string // what is wrong with it
	Mend string // what to type
}

func (e *LooseError) Error() string { return fmt.Sprintf("%s %s", e.Path, e.What) }

// Folder makes dir where it is missing, for its owner alone. One in which others
// can replace files is refused.
func Folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkFolder(dir)
}

// Write puts a file into a folder, which must be nobody else's to write to, so
// that after a crash it is there as it was or as it is to be.
func Write(path string, b []byte) error {
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := clearWay(tmp); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|noFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// clearWay removes what a crash has left of an earlier Write. What Write would
// not have made is not touched.
func clearWay(tmp string) error {
	info, err := os.Lstat(tmp)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if loose := judge(tmp, info, 0o077); loose != nil {
		return &LooseError{tmp, "lies where a private file is to be written, and was not made by this program: it " +
			loose.What,
			"find out who made it, then: rm -r " + Quote(tmp)}
	}
	return os.Remove(tmp)
}

// Read reads a file that Write has written.
func Read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if loose := judge(path, info, 0o077); loose != nil {
		return nil, loose
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // of what was opened, whatever was there before
		return nil, err
	}
	if loose := judge(path, info, 0o077); loose != nil {
		return nil, loose
	}
	return io.ReadAll(f)
}

// Check says what is wrong with a folder and with those of its private files
// that are there. A name in names is relative to the folder.
func Check(dir string, names ...string) []*LooseError {
	var out []*LooseError
	add := func(err error) {
		var loose *LooseError
		if errors.As(err, &loose) {
			out = append(out, loose)
		}
	}
	add(checkFolder(dir))
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil {
			if loose := judge(path, info, 0o077); loose != nil {
				out = append(out, loose)
			}
		}
	}
	return out
}

// CheckKey judges a key that an operator put somewhere, e.g. of a TLS
// certificate: it may be reached through links, and a group may read it.
func CheckKey(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if loose := judge(path, info, 0o037); loose != nil {
		return loose
	}
	return nil
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode(); Unchecked == "" && mode.Perm()&0o022 != 0 {
		return &LooseError{dir, fmt.Sprintf("can be changed by other users (mode %04o), who could replace the node's key", mode.Perm()), "chmod 700 " + Quote(dir)}
	}
	return nil
}

// judge tells what is wrong with a file that nobody but its owner may have the
// permissions in forbidden; nil: nothing.
func judge(path string, info fs.FileInfo, forbidden fs.FileMode) *LooseError {
	if Unchecked != "" {
		return nil
	}
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		return &LooseError{
			path, "is a symbolic link, which may lead to somebody else's file",
			fmt.Sprintf("put the file itself there: cp -p \"$(readlink -f %s)\" %[2]s && mv %[2]s %[1]s", Quote(path),
				Quote(path+".own")),
		}
	case !mode.IsRegular():
		return &LooseError{path, "is not a regular file", "find out who made it, then: rm -r " + Quote(path)}
	case !ownedHere(info):
		return &LooseError{
			path, "belongs to another user", "if the file is the right one: chown " + "$(id -u) " + Quote(path),
		}
	case mode.Perm()&forbidden != 0:
		return &LooseError{
			path, fmt.Sprintf("can be read or changed by other users (mode %04o)", mode.Perm()),
			"chmod 600 " + Quote(path),
		}
	}
	return nil
}

// Quote writes a path so that a shell takes it as it is.
func Quote(path string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	if strings.Trim(path, safe) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// syncDir makes a rename durable where the system lets folders be synced.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) {
		return err
	}
	return nil
}
