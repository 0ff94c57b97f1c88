package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/store/storetest"
)

// childDir tells the test binary to be a writer on that folder until it is killed.
const childDir = "STORE_TEST_CHILD_DIR"

// unitsDir tells it to be the writer of TestCorruption.
const unitsDir = "STORE_TEST_UNITS_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := writeForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	if dir := os.Getenv(unitsDir); dir != "" {
		if err := writeUnits(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// pairKeys are the two keys of unit n, which a reader must see both or not at all.
func pairKeys(n uint64) (a, b []byte) {
	return binary.BigEndian.AppendUint64([]byte("a/"), n), binary.BigEndian.AppendUint64([]byte("b/"), n)
}

// writeForEver commits numbered units with 16 in flight, and prints a number once
// its unit is durable.
func writeForEver(dir string) error {
	s, err := Open(dir, Options{Preset: Small})
	if err != nil {
		return err
	}
	var next uint64
	err = s.Scan([]byte("a/"), func(key, _ []byte) error {
		next = binary.BigEndian.Uint64(key[2:]) + 1
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println("from", next)
	failed := make(chan error)
	inFlight := make(chan struct{}, 16)
	value := make([]byte, 3000)
	for n := next; ; n++ {
		select {
		case err := <-failed:
			return err
		case inFlight <- struct{}{}:
		}
		a, b := pairKeys(n)
		s.Commit([]Write{{Key: a, Value: value}, {Key: b, Value: value[:n%500]}}, func(err error) {
			if err != nil {
				failed <- err
				return
			}
			fmt.Println(n)
			<-inFlight
		})
	}
}

// What a killed process said was durable is there afterwards, units are whole, and
// nothing stands in the way of the next process. The moments of death are random;
// the seed is printed.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("STORE_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STORE_TEST_SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var acked uint64
	for range 12 {
		last := runAndKill(t, dir, time.Duration(chance.IntN(int(250*time.Millisecond))))
		acked = max(acked, last)
		there := checkPairs(t, dir)
		if there < acked {
			t.Fatalf("%d units were acknowledged, %d are there", acked, there)
		}
	}
	if acked < 1000 {
		t.Fatalf("only %d units were acknowledged in all runs: the test shows little", acked)
	}
	t.Logf("%d units acknowledged", acked)
}

// runAndKill runs the writer until some time after it is open, and returns how many
// units are acknowledged.
func runAndKill(t *testing.T, dir string, after time.Duration) (acked uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if from, ok := strings.CutPrefix(line, "from "); ok {
			if acked, err = strconv.ParseUint(from, 10, 64); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(after, func() { child.Process.Kill() })
			continue
		}
		n, err := strconv.ParseUint(line, 10, 64)
		if err != nil {
			break // the last line, cut by the kill
		}
		if n != acked {
			t.Fatalf("unit %d was acknowledged after unit %d", n, acked)
		}
		acked = n + 1
	}
	if err := child.Wait(); err == nil || ctx.Err() != nil {
		t.Fatalf("the writer ended by itself: %v, %v", err, ctx.Err())
	}
	return acked
}

// checkPairs returns how many units are there; they must be whole and without gap.
func checkPairs(t *testing.T, dir string) uint64 {
	t.Helper()
	s := open(t, dir, Options{Preset: Small})
	defer s.Close()
	var n uint64
	err := s.Scan([]byte("a/"), func(key, _ []byte) error {
		a, b := pairKeys(n)
		if string(key) != string(a) {
			return fmt.Errorf("unit %d is missing", n)
		}
		value, err := s.Get(b)
		if err != nil || uint64(len(value)) != n%500 {
			return fmt.Errorf("half of unit %d: %d bytes, %w", n, len(value), err)
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	halves := 0
	err = s.Scan([]byte("b/"), func(_, _ []byte) error { halves++; return nil })
	if err != nil || uint64(halves) != n {
		t.Fatalf("%d second halves of %d units, %v", halves, n, err)
	}
	return n
}

// A second process is told which process has the folder.
func TestLockIsHeldByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child did not open the store")
	}
	_, err = Open(dir, Options{Preset: Small})
	want := fmt.Sprintf("is in use by process %d", child.Process.Pid)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("open: %v, want %q", err, want)
	}
	cancel()
	for lines.Scan() { // Wait must not close the pipe before all is read
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	open(t, dir, Options{Preset: Small}).Close()
}

var _ storetest.Store = (*Store)(nil)
