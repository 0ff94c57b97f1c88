package store

import (
	"os"
	"path/filepath"
	"testing"
)

// A process killed between making a log and giving it its size leaves an empty
// file; the store opens all the same, with all that it had.
func TestOpenWithAStillbornLog(t *testing.T) {
	for _, name := range []string{"00099.mem", "000099.vlog"} {
		t.Run(name, func(t *testing.T) { openWithEmpty(t, name) })
	}
}

func openWithEmpty(t *testing.T, name string) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Preset: Small})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CommitWait([]Write{{Key: []byte("k"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dataName, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, Options{Preset: Small})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v, err := s.Get([]byte("k")); err != nil || string(v) != "v" {
		t.Fatalf("got %q, %v", v, err)
	}
}
