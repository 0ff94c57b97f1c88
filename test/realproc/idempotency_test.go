package realproc_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// calls is a server that remembers which idempotency keys each instance sent.
type calls struct {
	mu   sync.Mutex
	keys map[string][]string // by instance
	free chan struct{}       // closed: from now on it answers
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	in := r.Header.Get("Mutirao-Instance")
	c.keys[in] = append(c.keys[in], r.Header.Get("Idempotency-Key"))
	c.mu.Unlock()
	<-c.free
	w.WriteHeader(http.StatusNoContent)
}

func (c *calls) of(id string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.keys[id]...)
}

// Two instances of each of two workflows call a server that honours idempotency
// keys. The node is killed while it waits for the answers: it calls again with
// the same keys, and no two instances have one in common.
func TestIdempotencyKeysNameTheTryAndSurviveAKill(t *testing.T) {
	server := &calls{keys: map[string][]string{}, free: make(chan struct{})}
	srv := httptest.NewServer(server)
	defer srv.Close()
	tm := newTeam(t, "one")
	p := tm.ps[0]
	p.kill()
	config := filepath.Join(p.dir, configs.File)
	b, err := os.ReadFile(config)
	if err == nil {
		b = fmt.Appendf(b, "applications: {ring: {url: %q}}\n", srv.URL)
		err = os.WriteFile(config, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.start()

	var ids []string
	for _, name := range []string{"fire", "flood"} {
		tm.workflow("workflow: " + name + "\ntasks: {alarm: {application: ring, retries: 1}}\n")
		ids = append(ids, tm.begin(name, nil), tm.begin(name, nil))
	}
	for _, id := range ids {
		until(t, id+" has called", patience, func() bool { return len(server.of(id)) > 0 })
	}
	p.kill()
	close(server.free) // nobody hears the answers to the first calls
	p.start()
	owner := map[string]string{}
	for _, id := range ids {
		until(t, id+" has succeeded", patience, func() bool { return p.state(id) == workflow.InstanceSucceeded })
		keys := server.of(id)
		if len(keys) < 2 || keys[0] != keys[len(keys)-1] || len(keys[0]) != 32 {
			t.Errorf("%s called with the keys %q; want one of 32 digits, twice", id, keys)
		}
		if other, taken := owner[keys[0]]; taken {
			t.Errorf("%s and %s both called with the key %s", other, id, keys[0])
		}
		owner[keys[0]] = id
	}
}
