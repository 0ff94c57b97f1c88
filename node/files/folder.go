package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// This file is what is done to the folder, and in which order it becomes durable. After each of these steps the node
// may be killed, and each may fail: TestKilledInEachWindow and TestEachStepFails go through all of them.

// step has a test have something fail, or count it.
func (s *Store) step(what string) error {
	if s.o.step == nil {
		return nil
	}
	return s.o.step(what)
}

// rename gives a file another name in the folder, which is durable after syncFolder.
func (s *Store) rename(from, to string) error {
	if err := s.step("rename to " + filepath.Ext(to)); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// unlink removes a file, if it is there.
func (s *Store) unlink(path string) error {
	if err := s.step("remove " + filepath.Ext(path)); err != nil {
		return err
	}
	return gone(os.Remove(path))
}

// sync has what was written into a file be durable. After an error nobody knows what of it is, also
// if it can be read: it is to be written again, into another file.
func (s *Store) sync(f *os.File) error {
	if err := s.step("sync " + filepath.Ext(f.Name())); err != nil {
		return err
	}
	return f.Sync()
}

// writeAt writes into a file.
func (s *Store) writeAt(f *os.File, b []byte, at int64) error {
	if err := s.step("write " + filepath.Ext(f.Name())); err != nil {
		return err
	}
	_, err := f.WriteAt(b, at)
	return err
}

// syncFolder has names in the folder be durable.
func (s *Store) syncFolder() error {
	if err := s.step("sync the folder"); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || os.IsPermission(err) { // not all systems can
		err = nil
	}
	return errors.Join(err, d.Close())
}

// gone is err, unless the file was not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// replace stores a small file in the folder, durably, in place of what it held. After an error it holds
// what it held before, or, if only the folder could not be synced, perhaps that.
func (s *Store) replace(path string, b []byte) error {
	tmp, err := os.CreateTemp(s.dir, newFile)
	if err != nil {
		return err
	}
	if err = s.writeAt(tmp, b, 0); err == nil {
		err = s.sync(tmp)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = s.rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, s.unlink(tmp.Name()))
	}
	return s.syncFolder()
}
