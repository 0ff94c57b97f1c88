package web_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/web"
)

func init() { web.StartNode, web.StartMesh = startNode, startMesh }

// startNode starts a whole node in this process.
func startNode(t *testing.T) *httpapi.Client {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "jetty")
	if _, err := node.Init(dir, node.InitOptions{Mesh: "boats", Name: "jetty"}); err != nil {
		t.Fatal(err)
	}
	return run(t, dir)
}

// startMesh starts whole nodes of one mesh in this process, which talk over loopback. The roles are the first one's.
func startMesh(t *testing.T, roles []string, names ...string) map[string]*httpapi.Client {
	t.Helper()
	all := map[string]*httpapi.Client{}
	for i, name := range names {
		dir := filepath.Join(t.TempDir(), name)
		if i == 0 {
			if _, err := node.Init(dir, node.InitOptions{Mesh: "workshop", Name: name, Roles: roles}); err != nil {
				t.Fatal(err)
			}
		} else {
			inv, err := all[names[0]].Invite(t.Context(), api.InviteRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := assemble.Join(t.Context(), dir, assemble.JoinOptions{Invitation: inv.Token, Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		all[name] = run(t, dir)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		see := 0
		for _, n := range all {
			if list, err := n.Partners(t.Context()); err == nil {
				for _, p := range list {
					if p.State == "active" {
						see++
					}
				}
			}
		}
		if see == len(names)*len(names) {
			return all
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("not everybody sees everybody: %d of %d", see, len(names)*len(names))
		}
	}
}

// run runs the node of a folder until the test ends.
func run(t *testing.T, dir string) *httpapi.Client {
	t.Helper()
	h, err := assemble.Open(dir, configs.Default(configs.Local), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-h.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	client, err := httpapi.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
