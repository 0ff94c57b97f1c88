package httpapi

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// exposition is Prometheus's text format as a reply.
type exposition string

const expositionKind = "text/plain; version=0.0.4; charset=utf-8"

// metricsRoute is open to this machine's programs: it tells numbers, and no names.
var metricsRoute = &route{
	name: "metrics", method: http.MethodGet, path: "/metrics", scope: mayRead, local: true,
	summary: "Numbers for Prometheus; from this machine without a token", reply: exposition(""),
	raw: (*handler).metrics,
}

// fromHere reports whether a request comes from this machine.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.TLS == nil // a Unix socket has no address
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (h *handler) metrics(w http.ResponseWriter, r *http.Request) error {
	st, err := h.svc.Status(r.Context())
	if err != nil {
		return err
	}
	partners, err := h.svc.Partners(r.Context())
	if err != nil {
		return err
	}
	c, err := h.svc.CoordinatorStatus(r.Context())
	if err != nil {
		return err
	}
	var b metrics
	b.family("mutirao_build_info", "gauge", "The program's version.")
	b.sample("mutirao_build_info", 1, "version", st.Version)
	b.gauge("mutirao_start_time_seconds", "When the node started, in seconds since 1970.",
		float64(st.Since.UnixMilli())/1000)
	b.gauge("mutirao_boots", "How often the node was started.", float64(st.Boot))
	b.gauge("mutirao_instances_running", "Instances that this node takes part in and that have not ended.",
		float64(st.Instances))
	b.gauge("mutirao_trouble", "What is wrong with the node now, counted; its status says what.",
		float64(len(st.Trouble)))
	b.partners(partners)
	known := 0.0
	if c.Coordinator != nil {
		known = 1
	}
	b.gauge("mutirao_coordinator_known", "1 if the node knows of a coordinator, which need not be.", known)
	b.gauge("mutirao_coordinator_term", "The highest term that is known.", float64(c.Term))
	b.family("mutirao_events_total", "counter", "What happened since the start, and what was refused.")
	for _, name := range slices.Sorted(maps.Keys(st.Counters)) {
		b.sample("mutirao_events_total", float64(st.Counters[name]), "event", name)
	}
	b.family("mutirao_mesh_frames_total", "counter", "Frames to and from partners.")
	b.sample("mutirao_mesh_frames_total", float64(st.Traffic.FramesIn), "direction", "in")
	b.sample("mutirao_mesh_frames_total", float64(st.Traffic.FramesOut), "direction", "out")
	b.family("mutirao_mesh_bytes_total", "counter",
		"Bytes in frames to and from partners, without what transports add.")
	b.sample("mutirao_mesh_bytes_total", float64(st.Traffic.BytesIn), "direction", "in")
	b.sample("mutirao_mesh_bytes_total", float64(st.Traffic.BytesOut), "direction", "out")
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.gauge("go_goroutines", "Goroutines that exist.", float64(runtime.NumGoroutine()))
	b.gauge("go_memstats_sys_bytes", "Memory obtained from the system.", float64(mem.Sys))
	b.gauge("go_memstats_heap_alloc_bytes", "Memory of the heap that is in use.", float64(mem.HeapAlloc))
	w.Header().Set("Content-Type", expositionKind)
	_, _ = b.WriteTo(w) // a reader that went away wants no error
	return nil
}

// metrics is written in Prometheus's text format.
type metrics struct{ bytes.Buffer }

func (m *metrics) family(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (m *metrics) gauge(name, help string, v float64) {
	m.family(name, "gauge", help)
	fmt.Fprintf(m, "%s %v\n", name, v)
}

// sample writes a value with one label.
func (m *metrics) sample(name string, v float64, label, is string) {
	fmt.Fprintf(m, "%s{%s=\"%s\"} %v\n", name, label, labelEscaper.Replace(is), v)
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// partners counts those of each state, this node not among them.
func (m *metrics) partners(list []api.Partner) {
	of := map[string]int{"active": 0, "unreachable": 0, "expired": 0, "left": 0, "evicted": 0}
	for _, p := range list {
		if !p.Self {
			of[p.State]++
		}
	}
	m.family("mutirao_partners", "gauge", "Other partners, by their state in the partner list.")
	for _, state := range slices.Sorted(maps.Keys(of)) {
		m.sample("mutirao_partners", float64(of[state]), "state", state)
	}
}
