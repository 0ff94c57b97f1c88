package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

func busy() *apitest.Fake {
	f := &apitest.Fake{
		OnStatus: func() (*api.Status, error) {
			return &api.Status{Name: "station", Version: `v1 "dirty"`, Since: noon, Boot: 2, Instances: 3,
				Trouble:  []string{"the disk is full"},
				Counters: map[string]uint64{"refused.look": 1, "sent.frames": 1 << 40},
				Traffic:  api.Traffic{FramesIn: 5, FramesOut: 6, BytesIn: 700, BytesOut: 800}}, nil
		},
		OnPartners: func() ([]api.Partner, error) {
			return []api.Partner{
				{Name: "station", State: "active", Self: true}, {Name: "engine-7", State: "active"},
				{Name: "reserve", State: "expired"},
			}, nil
		},
	}
	name := "engine-7"
	f.OnCoordinatorStatus = func() (*api.Coordinator,
		error) {
		return &api.Coordinator{Coordinator: &name, Term: 4}, nil
	}
	return f
}

// Every family is described before its samples, and no name of a person, partner
// or mesh is in them.
func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
	req.RemoteAddr = "127.0.0.1:5000"
	httpapi.NewServer(busy(), "token", httpapi.Options{}).ServeHTTP(w, req)
	text := w.Body.String()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %v %s", w.Code, w.Header(), text)
	}
	for _, line := range []string{
		`mutirao_build_info{version="v1 \"dirty\""} 1`, "mutirao_start_time_seconds 1.748779200123e+09",
		"mutirao_boots 2", "mutirao_instances_running 3", "mutirao_trouble 1",
		`mutirao_partners{state="active"} 1`, `mutirao_partners{state="evicted"} 0`,
		`mutirao_partners{state="expired"} 1`,
		"mutirao_coordinator_known 1", "mutirao_coordinator_term 4",
		`mutirao_events_total{event="refused.look"} 1`, `mutirao_events_total{event="sent.frames"} 1.099511627776e+12`,
		`mutirao_mesh_frames_total{direction="in"} 5`, `mutirao_mesh_frames_total{direction="out"} 6`,
		`mutirao_mesh_bytes_total{direction="in"} 700`, `mutirao_mesh_bytes_total{direction="out"} 800`,
		"# TYPE mutirao_events_total counter", "# TYPE go_goroutines gauge",
	} {
		if !strings.Contains(text, "\n"+line+"\n") && !strings.HasPrefix(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	described := map[string]bool{}
	for line := range strings.Lines(text) {
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			described[strings.Fields(kind)[0]] = true
		} else if name := line[:strings.IndexAny(line, "{ ")]; !strings.HasPrefix(line, "#") && !described[name] {
			t.Errorf("%s has no type", name)
		}
	}
	for _, name := range []string{"station", "engine-7", "reserve"} {
		if strings.Contains(text, name) {
			t.Errorf("%s is named:\n%s", name, text)
		}
	}
}

// Other machines need the token, and no web page may read it.
func TestMetricsAreForThisMachine(t *testing.T) {
	s := httpapi.NewServer(busy(), "token", httpapi.Options{})
	for _, c := range []struct {
		what, from, token, origin string
		want                      int
	}{
		{"from here", "127.0.0.1:5000", "", "", 200},
		{"from here by IPv6", "[::1]:5000", "", "", 200},
		{"over a Unix socket", "@", "", "", 200},
		{"from elsewhere", "10.0.0.9:5000", "", "", 401},
		{"from elsewhere with the token", "10.0.0.9:5000", "token", "", 200},
		{"by a web page", "127.0.0.1:5000", "", "https://other.example", 403},
	} {
		req := httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
		req.RemoteAddr = c.from
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", c.what, w.Code, c.want, w.Body)
		}
	}
}
