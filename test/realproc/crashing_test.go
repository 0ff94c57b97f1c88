package realproc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/gossip"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/mesh"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The moments around an effect at which a process can be killed.
const (
	beforeCommit = "before-commit" // nothing of it is on disk
	afterCommit  = "after-commit"  // it is on disk, and nobody knows
	beforeSend   = "before-send"
	afterSend    = "after-send" // it was handed to the mesh
	countOnly    = "count"      // none: the effects are counted in files
)

// The files in which a counting process says how many commits and sends it has
// made so far.
const (
	commitsFile = "commits"
	sendsFile   = "sends"
)

// selfKill kills the process at the n-th effect of a kind.
type selfKill struct {
	at      string
	n       int64
	dir     string
	commits atomic.Int64
	sends   atomic.Int64
}

func parseCrash(dir, text string) (*selfKill, error) {
	s := &selfKill{dir: dir}
	var ok bool
	var n string
	if s.at, n, ok = strings.Cut(text, ":"); !ok {
		return s, nil
	}
	_, err := fmt.Sscan(n, &s.n)
	return s, err
}

func (s *selfKill) reach(at string, n int64) {
	if s.at == at && s.n == n {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill() // ends here
		}
		select {}
	}
	if s.at == countOnly {
		name := map[string]string{beforeCommit: commitsFile, beforeSend: sendsFile}[at]
		if name != "" {
			_ = os.WriteFile(filepath.Join(s.dir, name), fmt.Append(nil, n),
				0o600) // read by the parent, which notices if it is missing
		}
	}
}

// mortalStore kills the process around commits.
type mortalStore struct {
	node.Store
	*selfKill
}

func (m mortalStore) Commit(writes []kv.Write, done func(error)) {
	n := m.commits.Add(1)
	m.reach(beforeCommit, n)
	m.Store.Commit(writes, func(err error) {
		m.reach(afterCommit, n)
		done(err)
	})
}

func (m mortalStore) CommitWait(writes []kv.Write) error {
	n := m.commits.Add(1)
	m.reach(beforeCommit, n)
	err := m.Store.CommitWait(writes)
	m.reach(afterCommit, n)
	return err
}

// mortalCarrier kills the process around sends.
type mortalCarrier struct {
	*mesh.Mesh
	*selfKill
}

// Refused implements node.Carrier: nobody looks at it here.
func (mortalCarrier) Refused() map[string]uint64 { return nil }
func (mortalCarrier) Traffic() api.Traffic       { return api.Traffic{} }

func (m mortalCarrier) Send(p workflow.PartnerID, frame []byte) error {
	n := m.sends.Add(1)
	m.reach(beforeSend, n)
	err := m.Mesh.Send(p, frame)
	m.reach(afterSend, n)
	return err
}

// runCrashing runs a node as package assemble does, with a store and a carrier
// that kill the process at one point.
func runCrashing(ctx context.Context, dir string, cfg configs.Config, log *slog.Logger, crash string) error {
	die, err := parseCrash(dir, crash)
	if err != nil {
		return err
	}
	member, err := node.LoadMember(dir)
	if err != nil {
		return err
	}
	st, err := store.Open(filepath.Join(dir, "store"), store.Options{Preset: store.Small, Logger: log})
	if err != nil {
		return err
	}
	n, err := node.New(node.Parts{
		Member: member, Config: cfg, Store: mortalStore{st, die}, Clock: node.NewSystemClock(), Version: "test",
		Logger: log,
		Runner: runner.New(cfg.Applications, runner.Options{Parallel: cfg.Parallel, Dir: dir, Logger: log}),
	})
	if err != nil {
		return err
	}
	var g *gossip.Gossip
	m, err := mesh.New(mesh.Config{
		Key: member.Key, Listen: cfg.Listen, Boot: n.Boot(), Hello: n.Hello, Admit: n.Admit, Handler: n,
		OnAddrs: n.OnAddrs, Logger: log, Preset: mesh.Small,
		Prepare: func(m *mesh.Mesh) (err error) {
			g, err = gossip.New(gossip.Config{
				Mesh: m, Host: m.Members(), Handler: n, Timing: gossip.Local(), Logger: log,
			})
			return err
		},
	})
	if err != nil {
		return err
	}
	if err := n.Begin(node.Network{Carrier: mortalCarrier{m, die}, Requester: m, Gossip: g}); err != nil {
		return err
	}
	server, err := httpapi.Serve(dir, cfg.API, n.Service(), httpapi.Options{Logger: log})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return errors.Join(n.Run(ctx), server.Close(context.Background()), g.Close(), m.Close(), st.Close())
}
