package realproc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A process is stopped or killed, and a file of its store is damaged. It starts, goes
// on, says what it lost, and gets back from its partners what they have: in the end all
// nodes have the same facts, and everything that waited goes on.
func TestDamagedDisk(t *testing.T) {
	rnd := randomly(t)
	tm := newTeam(t, "one", "two", "three")
	tm.workflow(`
workflow: relay
tasks:
  a: {application: sleep, with: {for: 1ms}}
  b: {after: a, type: manual}
  c: {application: sleep, with: {for: 1ms}, after: b}
partitions: {pa: [a], pb: [b], pc: [c]}
`)
	assign := map[string]string{"pa": "one", "pb": "two", "pc": "three"}
	two := tm.node("two")
	for round := range sample.Of(4, 60) {
		var done, waiting []string
		leaves := rnd.IntN(2) == 0 // then the others do not wait for its work
		for i := range 6 {
			id := tm.begin("relay", assign)
			until(t, "b is ready at two", patience, func() bool { return waits(two.task(id, "b")) })
			if leaves || i%2 == 0 {
				two.finish(t, id, "b")
				tm.succeeded(id, "a", "b", "c")
				done = append(done, id)
			} else {
				waiting = append(waiting, id)
			}
		}
		how := "killed"
		if leaves {
			how = "stopped"
			two.terminate()
		} else {
			two.kill()
		}
		what := damage(t, filepath.Join(two.dir, "store", "data"), rnd)
		two.start()
		told := two.losses(t)
		t.Logf("round %d: %s, %s: %s", round, how, what, told)
		if told == "" && strings.HasPrefix(what, "remove") {
			t.Errorf("round %d: %s, and nothing is said of it", round, what)
		}
		tm.together()
		until(t, "nothing is set aside", patience, func() bool {
			rows, err := two.client.Instances(context.Background(), true)
			return err == nil && !slices.ContainsFunc(rows,
				func(r api.InstanceSummary) bool { return r.Quarantine != nil })
		})
		for _, id := range waiting {
			for began := time.Now(); !waits(two.task(id, "b")); <-time.After(50 * time.Millisecond) {
				if time.Since(began) > patience {
					t.Fatalf("b is %q at two\n%s", two.task(id, "b"), tm.tell(id))
				}
			}
			two.finish(t, id, "b")
		}
		for _, id := range append(done, waiting...) {
			tm.succeeded(id, "a", "b", "c")
		}
	}
}

// waits reports whether a person's task waits for that person.
func waits(s workflow.State) bool { return s == workflow.Ready || s == workflow.Running }

func (p *proc) finish(t *testing.T, id, task string) {
	t.Helper()
	if err := p.client.FinishTask(context.Background(), finish(id, task)); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
}

// losses are what doctor says of the disk.
func (p *proc) losses(t *testing.T) string {
	t.Helper()
	d, err := p.client.Doctor(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range d.Findings {
		if (f.Check == "losses" || f.Check == "quarantine" || f.Check == "store") && f.State != api.FindingOK {
			out = append(out, f.State+" "+f.Check+": "+f.What)
		}
	}
	return strings.Join(out, "\n    ")
}

// damage flips a bit in a table or log, zeroes a part of it, or removes a file.
func damage(t *testing.T, dir string, rnd *rand.Rand) string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.sst", "*.mem", "MANIFEST"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	path := files[rnd.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(b), "\x00"))
	name := filepath.Base(path)
	switch rnd.IntN(3) {
	case 0:
		at := rnd.IntN(used)
		b[at] ^= 1 << rnd.IntN(8)
		err, name = os.WriteFile(path, b, 0o600), fmt.Sprintf("flip a bit of byte %d in %s", at, name)
	case 1:
		at := rnd.IntN(used)
		to := min(used, at+1000)
		clear(b[at:to])
		err, name = os.WriteFile(path, b, 0o600), fmt.Sprintf("zero bytes %d to %d of %s", at, to, name)
	default:
		err, name = os.Remove(path), "remove "+name
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}
