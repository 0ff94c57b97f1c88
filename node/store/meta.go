package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mutirao-mesh/mutirao/node/store/kv"
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

// storedMeta is the file: a meta and its checksum.
type storedMeta struct {
	meta
	Sum uint32 `json:"sum"`
}

// readMeta returns the folder's meta or, for a new folder, its first one. Without the
// file the logs' sizes say how large the memtable was.
func readMeta(dir string) (meta, error) {
	path := filepath.Join(dir, metaName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		m := meta{Format: Format}
		logs, err := numbered(filepath.Join(dir, dataName), ".mem")
		for _, log := range logs {
			if info, err := os.Stat(log); err == nil {
				m.Memtable = min(max(m.Memtable, info.Size()/2), maxMemtable) // as Badger makes them
			}
		}
		return m, err
	}
	if err != nil {
		return meta{}, fmt.Errorf("store: %w", err)
	}
	return parseMeta(path, b)
}

func parseMeta(path string, b []byte) (meta, error) {
	var m storedMeta
	if err := json.Unmarshal(b, &m); err != nil {
		return m.meta, damagedMeta(path, fmt.Sprintf("it is not JSON of the right form (%d bytes)", len(b)))
	}
	switch {
	case m.Sum != m.meta.sum():
		return m.meta, damagedMeta(path, "its checksum is wrong")
	case m.Format > Format:
		return m.meta, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer mutirao",
			kv.ErrUnfit, path, m.Format, Format)
	case m.Format < 1:
		return m.meta, damagedMeta(path, fmt.Sprintf("format %d, want 1 to %d", m.Format, Format))
	case m.Memtable < 0 || m.Memtable > maxMemtable:
		return m.meta, damagedMeta(path,
			fmt.Sprintf("memtable of %d bytes, want 0 to %d", m.Memtable, int64(maxMemtable)))
	}
	return m.meta, nil
}

func damagedMeta(path, why string) error {
	return fmt.Errorf("%w: %s is damaged: %s: remove that file and start again, it is made again from the data",
		kv.ErrUnfit, path, why)
}

// sum is the checksum of a meta.
func (m meta) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d", m.Format, m.Memtable), castagnoli)
}

// maxMemtable bounds what a damaged meta file can make us allocate.
const maxMemtable = 256 << 20

// write replaces the meta file in one step and makes it durable.
func (m meta) write(dir string) error {
	b, err := json.Marshal(storedMeta{m, m.sum()})
	if err != nil {
		panic(err) // integers always marshal
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
