//go:build linux

package liar_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// victims are two honest partners: ana, the founder, at which attacks are
// aimed, and bea. The liar joined as mal, and was listed, before it began to
// lie.
type victims struct {
	t         *testing.T
	ana, bea  *testnode.Node
	malFolder string
}

// small is what a small device has: the figures are for it.
var small = []string{
	"preset: mobile", "connection-time: 1m", "hole-punching: false", "listen: [/ip4/127.0.0.1/udp/0/quic-v1]",
}

// applications has a node write a file when a workflow uses its siren, which only its
// own user's fire-call may.
const applications = "applications: {siren: {command: [touch, %s/howls], allow: [fire-call]}}"

func newVictims(t *testing.T) *victims { return newVictimsBy(t, nil) }

// newVictimsBy has a command run the victims' processes; nil: they run as they are.
func newVictimsBy(t *testing.T, command []string) *victims {
	t.Helper()
	v := &victims{t: t, ana: testnode.New(t, "ana"), bea: testnode.New(t, "bea")}
	v.ana.Roles = []string{"commander", "medic"}
	mal := testnode.New(t, "mal")
	for _, n := range []*testnode.Node{v.ana, v.bea, mal} {
		n.Command = command
		n.Configure(append(slices.Clone(small), fmt.Sprintf(applications, n.Dir))...)
	}
	v.ana.Found(v.bea, mal)
	testnode.Within(t, time.Minute, "ana and bea see each other and mal", func() bool {
		return v.ana.Sees("active", "bea", "mal") && v.bea.Sees("active", "ana", "mal")
	})
	v.add(honest)
	v.add(pictured)
	v.add(shared)
	mal.End()
	v.malFolder = mal.Dir
	return v
}

const honest = `
workflow: honest
tasks:
  a: {}
  b: {after: a}
  c: {after: b}
partitions:
  here: [a, c]
  there: [b]
`

// shared is a workflow in which the liar takes part: its task waits for the others.
const shared = `
workflow: shared
tasks:
  c: {type: manual}
  b: {after: c}
  a: {after: b, type: manual}
partitions:
  pa: [a]
  pb: [b]
  pc: [c]
`

func (v *victims) add(source string) {
	v.t.Helper()
	if _, err := v.ana.API.AddWorkflow(v.t.Context(), "w.yaml", []byte(source)); err != nil {
		v.t.Fatal(err)
	}
}

// begins starts an instance of shared, in which the liar takes part.
func (v *victims) begins() (id string) {
	v.t.Helper()
	s, err := v.ana.API.Start(v.t.Context(),
		api.StartRequest{Workflow: "shared", Assign: map[string]string{"pa": "mal", "pb": "bea", "pc": "ana"}})
	if err != nil {
		v.t.Fatal(err)
	}
	return s.ID
}

// work runs an instance over ana and bea, and returns how long it took.
func (v *victims) work() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*time.Minute)
	defer cancel()
	begun := time.Now()
	s, err := v.ana.API.Start(ctx, api.StartRequest{
		Workflow: "honest", Assign: map[string]string{"here": "ana", "there": "bea"},
	})
	if err != nil {
		return 0, fmt.Errorf("ana cannot start an instance: %w", err)
	}
	for {
		in, err := v.bea.API.Show(ctx, s.ID)
		if err == nil && in.State == "succeeded" {
			return time.Since(begun), nil
		}
		select {
		case <-ctx.Done():
			if in != nil {
				return 0, fmt.Errorf("the instance does not end: it is %s at bea", in.State)
			}
			return 0, fmt.Errorf("the instance does not end: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// holds checks that the victims work as if nothing had happened.
func (v *victims) holds() {
	v.t.Helper()
	if _, err := v.work(); err != nil {
		v.t.Error(err)
	}
	v.ana.End()
	begun := time.Now()
	v.ana.Start()
	v.t.Logf("ana answers %s after kill -9, and has then used %.1f s of processor time",
		time.Since(begun).Round(10*time.Millisecond),
		cpuOf(v.ana.Process.Pid).Seconds())
	testnode.Within(v.t, time.Minute, "ana and bea see each other again", func() bool {
		return v.ana.Sees("active", "bea") && v.bea.Sees("active", "ana")
	})
	if _, err := v.work(); err != nil {
		v.t.Errorf("after a restart: %v", err)
	}
}

// usage is what a process has used until now.
type usage struct {
	cpu       time.Duration
	anon, rss int64 // MiB, at most
	disk      int64 // MiB
}

func (u usage) String() string {
	return fmt.Sprintf("%.1f s of processor time, %d MiB anonymous and %d MiB resident at most, %d MiB on disk",
		u.cpu.Seconds(), u.anon, u.rss, u.disk)
}

// meter watches a process.
type meter struct {
	pid  int
	dir  string
	from time.Duration
	stop context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex
	most usage
}

func measure(n *testnode.Node) *meter {
	n.T.Helper()
	ctx, stop := context.WithCancel(n.T.Context())
	m := &meter{pid: n.Process.Pid, dir: n.Dir, from: cpuOf(n.Process.Pid), stop: stop}
	m.work.Go(func() {
		for ctx.Err() == nil {
			m.look()
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return m
}

func (m *meter) look() {
	anon, rss := memoryOf(m.pid)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most.anon, m.most.rss = max(m.most.anon, anon), max(m.most.rss, rss)
}

// ends returns what the process used since measure.
func (m *meter) ends() usage {
	m.look()
	m.stop()
	m.work.Wait()
	m.most.cpu = cpuOf(m.pid) - m.from
	m.most.disk = diskOf(m.dir)
	return m.most
}

// cpuOf is the processor time that a process has used, of 10 ms each tick.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func memoryOf(pid int) (anon, rss int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64) // only numbers are used
		switch f[0] {
		case "RssAnon:":
			anon = n >> 10
		case "VmRSS:":
			rss = n >> 10
		}
	}
	return anon, rss
}

func diskOf(dir string) int64 {
	out, err := exec.Command("du", "-sk", filepath.Clean(dir)).Output()
	if err != nil {
		return -1
	}
	n, _ := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64) // du writes numbers
	return n >> 10
}
