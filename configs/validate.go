package configs

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multiformats/go-multiaddr"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// mistakes collects what is wrong, one line each.
type mistakes []error

const day = 24 * time.Hour

func (m *mistakes) add(key string, value any, want string, args ...any) {
	*m = append(*m, &mistake{key, fmt.Sprintf("%v: %s", value, fmt.Sprintf(want, args...))})
}

// mistake is one wrong value, with the key as a path: limits.facts, listen[1].
type mistake struct{ key, text string }

func (m *mistake) Error() string { return m.key + ": " + m.text }

func within[T int | int64 | time.Duration](m *mistakes, key string, v, low, high T) {
	if v < low || v > high {
		m.add(key, shown(v), "want %v to %v", shown(low), shown(high))
	}
}

// shown is a value as it is written in the file.
func shown(v any) any {
	if d, ok := v.(time.Duration); ok {
		return workflow.FormatDuration(d)
	}
	return v
}

func oneOf[T ~string](m *mistakes, key string, v T, allowed ...T) {
	if slices.Contains(allowed, v) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	m.add(key, fmt.Sprintf("%q", v), "want one of %s", strings.Join(words, ", "))
}

// Validate reports every mistake, one line each: the key, its value, and what
// is allowed. Nil: the configuration can be used.
func (c Config) Validate() error { return errors.Join(c.mistakes()...) }

// ValidateIn is Validate for the node of a folder: with the files that the configuration
// names, which may be relative to it.
func (c Config) ValidateIn(dir string) error {
	return errors.Join(append(c.mistakes(), c.fileMistakes(dir)...)...)
}

// mistakes are what Validate reports.
func (c Config) mistakes() (m mistakes) {
	oneOf(&m, "preset", c.Preset, LAN, Mobile, Local)
	oneOf(&m, "store", c.Store, StoreDefault, StoreSmall)
	c.validateConnectionTime(&m)
	c.ranges(&m)
	c.validateListen(&m)
	c.validateRelays(&m)
	c.validateAPI(&m)
	for i, k := range c.Capabilities {
		if rule := workflow.NameRule(string(k)); rule != "" {
			m.add(fmt.Sprintf("capabilities[%d]", i), fmt.Sprintf("%q", k), "want %s", rule)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Applications)) {
		c.Applications[name].validate(&m, name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		c.Databases[name].validate(&m, name)
	}
	return m
}

func (c Config) validateConnectionTime(m *mistakes) {
	why := ""
	if c.ConnectionTime < MinConnectionTime {
		why = ": a partner gives three signs of life in that time, at least a second apart, so that one may be lost"
	}
	if c.ConnectionTime < MinConnectionTime || c.ConnectionTime > MaxConnectionTime {
		m.add("connection-time", shown(c.ConnectionTime), "want %v to %v%s", shown(MinConnectionTime),
			shown(MaxConnectionTime), why)
	}
}

// ranges are the numbers that have to be within bounds.
func (c Config) ranges(m *mistakes) {
	within(m, "shards", c.Shards, 1, 256)
	within(m, "parallel", c.Parallel, 1, 1024)
	within(m, "lock-above", c.LockAbove, 0, 99)
	within(m, "limits.instances", c.Limits.Instances, 1, 1_000_000)
	within(m, "limits.ended", c.Limits.Ended, 1, 10_000_000)
	within(m, "limits.keep", c.Limits.Keep, time.Hour, 3650*day)
	within(m, "limits.facts", c.Limits.Facts, 1_000, 10_000_000)
	within(m, "limits.bytes", c.Limits.Bytes, 1<<20, 1<<30)
	within(m, "limits.memory", c.Limits.Memory, 1<<20, 64<<30)
	within(m, "limits.disk", c.Limits.Disk, 1<<20, 1<<40)
	within(m, "limits.workflows", c.Limits.Workflows, 1,
		4_000) // those of others and of this node, removed and turned away ones fit into one greeting
	within(m, "limits.files", c.Limits.Files, 1<<20, 1<<40)
	within(m, "limits.connections", c.Limits.Connections, 2, 10_000)
}

// rangeOf is the range of a key that takes a whole number, as words that follow "a whole number"; empty: it is none.
func rangeOf(key string) string {
	var m mistakes
	Config{LockAbove: -1}.ranges(&m) // each is below its range
	for _, err := range m {
		var is *mistake
		if errors.As(err, &is) && is.key == key {
			if _, bounds, ok := strings.Cut(is.text, "want "); ok {
				return " from " + bounds
			}
		}
	}
	return ""
}

func (c Config) validateListen(m *mistakes) {
	if len(c.Listen) == 0 {
		m.add("listen", "[]", "want at least one multiaddress, e.g. /ip4/0.0.0.0/udp/4001/quic-v1")
	}
	for i, a := range c.Listen {
		key := fmt.Sprintf("listen[%d]", i)
		addr, err := multiaddr.NewMultiaddr(a)
		switch {
		case err != nil:
			m.add(key, fmt.Sprintf("%q", a),
				"not a multiaddress: want e.g. /ip4/0.0.0.0/udp/4001/quic-v1 or /ip4/0.0.0.0/tcp/4001")
		case !hasProtocol(addr, multiaddr.P_QUIC_V1) && !hasProtocol(addr, multiaddr.P_TCP):
			m.add(key, a, "want QUIC (/udp/PORT/quic-v1) or TCP (/tcp/PORT)")
		}
	}
}

// maxRelays bounds the relays of a node: each keeps a reservation.
const maxRelays = 8

func (c Config) validateRelays(m *mistakes) {
	if len(c.Relays) > maxRelays {
		m.add("relays", len(c.Relays), "want at most %d", maxRelays)
	}
	for i, a := range c.Relays {
		addr, err := multiaddr.NewMultiaddr(a)
		if err != nil || !hasProtocol(addr, multiaddr.P_P2P) || hasProtocol(addr, multiaddr.P_CIRCUIT) {
			m.add(fmt.Sprintf("relays[%d]", i), fmt.Sprintf("%q", a),
				"want the multiaddress of a member, e.g. /ip4/192.0.2.7/udp/4001/quic-v1/p2p/12D3Koo…")
		}
	}
}

func hasProtocol(a multiaddr.Multiaddr, code int) bool {
	_, err := a.ValueForProtocol(code)
	return err == nil
}

func (c Config) validateAPI(m *mistakes) {
	if (c.TLS.Certificate == "") != (c.TLS.Key == "") {
		m.add("tls", fmt.Sprintf("certificate %q, key %q", c.TLS.Certificate, c.TLS.Key), "want both or neither")
	}
	if path, ok := strings.CutPrefix(c.API, "unix:"); ok {
		if path == "" {
			m.add("api", c.API, "want unix:PATH, e.g. unix:api.sock")
		}
		return
	}
	host, port, err := net.SplitHostPort(c.API)
	if err != nil {
		m.add("api", fmt.Sprintf("%q", c.API), "want HOST:PORT, e.g. 127.0.0.1:0, or unix:PATH")
		return
	}
	if wrong := PortRule(port); wrong != "" {
		m.add("api", c.API, "port %q: %s", port, wrong)
	}
	if !Loopback(host) && c.TLS.Certificate == "" {
		m.add("api", c.API, "other devices could reach it: want a loopback address such as 127.0.0.1:0, or set tls")
	}
}

// PortRule says what the port of the API has to be where this is none; empty: it is one.
func PortRule(port string) string {
	if n, err := strconv.ParseUint(port, 10, 16); err == nil && strconv.FormatUint(n, 10) == port {
		return ""
	}
	return "want a number from 0 to 65535; 0: any that is free"
}

// Loopback reports whether a host name or address can only be reached from this
// machine.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

var variableRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var envRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(=.*)?$`)

func (a Application) validate(m *mistakes, name workflow.ApplicationName) {
	key := func(field string) string { return fmt.Sprintf("applications.%s%s", name, field) }
	switch name {
	case workflow.AppNoop, workflow.AppSleep, workflow.AppSet, workflow.AppFail:
		m.add(key(""), name, "is built in: want another name")
	default:
		if rule := workflow.NameRule(string(name)); rule != "" {
			m.add(key(""), fmt.Sprintf("%q", name), "want %s", rule)
		}
	}
	switch {
	case a.Worker:
		a.validateWorker(m, key)
	case len(a.Command) == 0 && a.URL == "":
		m.add(key(""), "runs nothing", "want a command, a url, or worker: true")
	case len(a.Command) > 0 && a.URL != "":
		m.add(key(""), "has a command and a url", "want one of them")
	case a.URL != "":
		a.validateCall(m, key)
	default:
		a.validateCommand(m, key)
	}
	if a.Timeout != 0 {
		within(m, key(".timeout"), a.Timeout, time.Millisecond, 30*day)
	}
	if a.MaxOutput != 0 {
		within(m, key(".max-output"), a.MaxOutput, 1, 64<<20)
	}
	if a.Allow != nil && len(a.Allow) == 0 {
		m.add(key(".allow"), "is empty", emptyAllow)
	}
	for i, w := range a.Allow {
		if wrong := w.validate(); wrong != "" {
			m.add(key(fmt.Sprintf(".allow[%d]", i)), fmt.Sprintf("%q", w), "%s", wrong)
		}
	}
}

func (a Application) validateWorker(m *mistakes, key func(string) string) {
	for _, x := range []struct {
		set  bool
		name string
	}{
		{len(a.Command) > 0, "command"}, {a.URL != "", "url"}, {a.Folder != "", "folder"}, {len(a.Env) > 0, "env"},
		{a.Method != "", "method"},
		{len(a.Headers) > 0, "headers"}, {a.Timeout != 0, "timeout"}, {a.MaxOutput != 0, "max-output"},
	} {
		if x.set {
			m.add(key("."+x.name), "is set", "workers do this application: leave it out, or leave worker out")
		}
	}
}

func (a Application) validateCommand(m *mistakes, key func(string) string) {
	if a.Command[0] == "" {
		m.add(key(".command"), a.Command, "want a program first")
	}
	if a.Method != "" || len(a.Headers) > 0 {
		m.add(key(""), "method or headers", "are for a url, not for a command")
	}
	for i, e := range a.Env {
		if !envRE.MatchString(e) || strings.ContainsRune(e, 0) {
			m.add(key(fmt.Sprintf(".env[%d]", i)), fmt.Sprintf("%q", e), "want NAME or NAME=VALUE")
		}
		if strings.HasPrefix(e, "MUTIRAO_") {
			m.add(key(fmt.Sprintf(".env[%d]", i)), fmt.Sprintf("%q", e),
				"names that start with MUTIRAO_ are set by the node")
		}
	}
}

func (a Application) validateCall(m *mistakes, key func(string) string) {
	u, err := url.Parse(a.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		m.add(key(".url"), fmt.Sprintf("%q", a.URL), "want http://… or https://…")
	}
	if a.Folder != "" || len(a.Env) > 0 {
		m.add(key(""), "folder or env", "are for a command, not for a url")
	}
	if a.Method != "" {
		oneOf(m, key(".method"), a.Method, http.MethodPost, http.MethodPut, http.MethodPatch)
	}
}
