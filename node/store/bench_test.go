package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkCommit measures durable commits of 1 KiB with some callers that each
// wait for their own. Its floor, an append and fsync of 1 KiB to a file, is
// BenchmarkFsync: run both in one go and compare.
func BenchmarkCommit(b *testing.B) {
	for _, preset := range []Preset{Default, Small} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", preset, callers), func(b *testing.B) {
				s := open(b, b.TempDir(), Options{Preset: preset})
				defer s.Close()
				value := make([]byte, 1024)
				var next atomic.Int64
				var all sync.WaitGroup
				b.ResetTimer()
				for range callers {
					all.Go(func() {
						for {
							n := next.Add(1)
							if n > int64(b.N) {
								return
							}
							if err := s.CommitWait([]Write{{Key: fmt.Appendf(nil, "key/%012d", n), Value: value}}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			})
		}
	}
}

func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := make([]byte, 1024)
	for b.Loop() {
		if _, err := f.Write(record); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
}

func BenchmarkGet(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	defer s.Close()
	for i := range 1000 {
		s.Commit([]Write{{Key: fmt.Appendf(nil, "key/%04d", i), Value: make([]byte, 1024)}}, func(error) {})
	}
	if err := s.CommitWait(nil); err != nil {
		b.Fatal(err)
	}
	key := []byte("key/0500")
	for b.Loop() {
		if _, err := s.Get(key); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a store of so many MiB in entries of 700 bytes, which reads and
// checks all of it.
func BenchmarkOpen(b *testing.B) {
	for _, mib := range []int{10, 100} {
		b.Run(fmt.Sprintf("%d-MiB", mib), func(b *testing.B) {
			dir, value := b.TempDir(), make([]byte, 700)
			o := Options{Preset: Small, Range: func(key []byte) []byte { return key[:min(len(key), 9)] }}
			s := open(b, dir, o)
			for n := range mib << 20 / 720 {
				value[n%700]++
				s.Commit([]Write{{Key: fmt.Appendf(nil, "f%08d/%04d", n/50, n%50), Value: value}}, func(error) {})
				if n%1000 == 999 {
					if err := s.CommitWait(nil); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				open(b, dir, o).Close()
			}
		})
	}
}
