package assemble_test

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

// host is a node of a test, in its own folder.
type host struct {
	t    *testing.T
	dir  string
	h    *assemble.Host
	stop context.CancelFunc
	done chan error
}

func (x *host) start() {
	x.t.Helper()
	cfg := configs.Default(configs.Local)
	var log *slog.Logger
	if os.Getenv("MUTIRAO_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).
			With("node", filepath.Base(x.dir))
	}
	h, err := assemble.Open(x.dir, cfg, "test", log)
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.h, x.stop, x.done = h, cancel, make(chan error, 1)
	go func() { x.done <- h.Run(ctx) }()
	select {
	case <-h.Ready():
	case err := <-x.done:
		x.t.Fatalf("%s: %v", filepath.Base(x.dir), err)
	}
}

func (x *host) close() {
	x.stop()
	if err := <-x.done; err != nil {
		x.t.Errorf("%s: %v", filepath.Base(x.dir), err)
	}
}

// team makes a mesh of running nodes that all see each other.
func team(t *testing.T, names ...string) map[string]*host {
	t.Helper()
	ctx := context.Background()
	all := map[string]*host{}
	root := t.TempDir()
	for i, name := range names {
		x := &host{t: t, dir: filepath.Join(root, name)}
		if i == 0 {
			if _, err := node.Init(x.dir, node.InitOptions{Mesh: "test", Name: name}); err != nil {
				t.Fatal(err)
			}
		} else {
			inv, err := all[names[0]].h.Service().Invite(ctx, api.InviteRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := assemble.Join(ctx, x.dir, assemble.JoinOptions{Invitation: inv.Token, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		x.start()
		all[name] = x
		t.Cleanup(x.close)
	}
	for _, x := range all {
		eventually(t, "everybody sees everybody", func() bool {
			ps, err := x.h.Service().Partners(ctx)
			active := 0
			for _, p := range ps {
				if p.State == "active" {
					active++
				}
			}
			return err == nil && active == len(names)
		})
	}
	return all
}

// eventually polls cond for a minute.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

//go:embed testdata/eleven.yaml
var eleven string

func TestElevenTasksOverThreeNodes(t *testing.T) {
	ctx := context.Background()
	all := team(t, "one", "two", "three")
	svc := all["one"].h.Service()
	if _, err := svc.AddWorkflow(ctx, "eleven.yaml", []byte(eleven)); err != nil {
		t.Fatal(err)
	}
	st, err := svc.Start(ctx, api.StartRequest{
		Workflow: "eleven", Assign: map[string]string{"p1": "one", "p2": "two", "p3": "three"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range all {
		eventually(t, name+" sees the instance succeed", func() bool {
			in, err := x.h.Service().Show(ctx, st.ID)
			return err == nil && in.State == "succeeded"
		})
	}
	for _, x := range all {
		s, _ := x.h.Service().Status(ctx)
		fmt.Println(s.Counters)
	}
	log, _ := svc.Log(ctx, st.ID)
	for _, e := range log {
		fmt.Println(e.Time, e.Author, e.Seq, e.Kind, e.Task, e.Text)
	}
}

func TestOrchestrationGoesOnWithoutItsCoordinator(t *testing.T) {
	ctx := context.Background()
	all := team(t, "one", "two", "three", "four")
	svc := all["one"].h.Service()
	if _, err := svc.AddWorkflow(ctx, "eleven.yaml", []byte(eleven)); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Elect(ctx, api.ElectRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two knows that one is the coordinator", func() bool {
		c, err := all["two"].h.Service().CoordinatorStatus(ctx)
		return err == nil && c.Coordinator != nil && *c.Coordinator == "one"
	})
	assign := map[string]string{"p1": "two", "p2": "three", "p3": "four"}
	start := func() string {
		eventually(t, "two has the workflow", func() bool {
			_, err := all["two"].h.Service().Workflow(ctx, "eleven")
			return err == nil
		})
		st, err := all["two"].h.Service().
			Start(ctx, api.StartRequest{Workflow: "eleven", Assign: assign, Coordination: "orchestration"})
		if err != nil {
			t.Fatal(err)
		}
		return st.ID
	}
	ends := func(id string, at ...string) {
		for _, name := range at {
			eventually(t, name+" sees the instance succeed", func() bool {
				in, err := all[name].h.Service().Show(ctx, id)
				return err == nil && in.State == "succeeded" && in.Coordination == "orchestration"
			})
		}
	}
	ends(start(), "one", "two", "three", "four")
	id := start()
	all["one"].close()
	ends(id, "two", "three", "four")
	all["one"].start()
	ends(id, "one")
}

// Doctor reads the whole store of a node that runs, and says what its disk damaged meanwhile.
func TestDoctorReadsTheStore(t *testing.T) {
	x := &host{t: t, dir: filepath.Join(t.TempDir(), "one")}
	if _, err := node.Init(x.dir, node.InitOptions{Mesh: "test", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	x.start()
	x.close() // which writes a table
	x.start()
	store := func() api.Finding {
		t.Helper()
		d, err := x.h.Service().Doctor(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings {
			if f.Check == "store" {
				return f
			}
		}
		return api.Finding{}
	}
	if f := store(); f.State != api.FindingOK {
		t.Errorf("before anything happened doctor says of the store: %+v", f)
	}
	tables, err := filepath.Glob(filepath.Join(x.dir, "*", "data", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("tables %q: %v", tables, err)
	}
	whole, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/3] ^= 4
	if err := os.WriteFile(tables[0], damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := store(); f.State != api.FindingWrong || !strings.Contains(f.What, "the store was read and is damaged") ||
		!strings.Contains(f.What, filepath.Base(tables[0])) {
		t.Errorf("a bit of a table flipped, and doctor says of the store: %+v", f)
	}
	if err := os.WriteFile(tables[0], whole, 0o600); err != nil { // the node closes as any other
		t.Fatal(err)
	}
	x.close()
}
