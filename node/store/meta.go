package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Format is the version of what this package keeps in a folder. It grows when an
// older program could no longer read it.
const Format = 1

const metaName = "store.json"

// meta is what must be known about a folder before Badger opens it.
type meta struct {
	Format int `json:"format"`
	// Memtable is the greatest memtable, in bytes, that ever was in use here. A
	// log left by a killed process fits only into one that is as large, so the
	// memtable never shrinks.
	Memtable int64 `json:"memtable"`
}

// readMeta returns the folder's meta, or, for a new folder, its first one.
func readMeta(dir string) (meta, error) {
	path := filepath.Join(dir, metaName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if entries, _ := os.ReadDir(filepath.Join(dir, dataName)); len(entries) > 0 {
			return meta{}, fmt.Errorf("store %s is damaged: it holds data but no %s: restore the folder from a backup", dir, metaName)
		}
		return meta{Format: Format}, nil
	}
	if err != nil {
		return meta{}, fmt.Errorf("store: %w", err)
	}
	return parseMeta(path, b)
}

func parseMeta(path string, b []byte) (meta, error) {
	var m meta
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("store: %s is damaged: %w", path, err)
	}
	switch {
	case m.Format > Format:
		return m, fmt.Errorf("store: %s has format %d, this program knows formats up to %d: use a newer mutirao", path, m.Format, Format)
	case m.Format < 1:
		return m, fmt.Errorf("store: %s is damaged: format %d, want 1 to %d", path, m.Format, Format)
	case m.Memtable < 0 || m.Memtable > maxMemtable:
		return m, fmt.Errorf("store: %s is damaged: memtable of %d bytes, want 0 to %d", path, m.Memtable, int64(maxMemtable))
	}
	return m, nil
}

// maxMemtable bounds what a damaged meta file can make us allocate.
const maxMemtable = 256 << 20

// write replaces the meta file in one step and makes it durable.
func (m meta) write(dir string) error {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // two integers always marshal
	}
	tmp := filepath.Join(dir, metaName+".new")
	if err := writeSynced(tmp, append(b, '\n')); err != nil {
		return fmt.Errorf("store: cannot write %s: %w", tmp, noSpace(err))
	}
	if err := os.Rename(tmp, filepath.Join(dir, metaName)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncDir(dir)
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
