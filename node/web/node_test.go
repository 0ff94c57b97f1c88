package web_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/node/web"
)

func init() { web.StartNode = startNode }

// startNode starts a whole node in this process.
func startNode(t *testing.T) *httpapi.Client {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "jetty")
	if _, err := node.Init(dir, node.InitOptions{Mesh: "boats", Name: "jetty"}); err != nil {
		t.Fatal(err)
	}
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
