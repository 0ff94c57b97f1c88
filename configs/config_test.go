package configs_test

import (
	_ "embed"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/configs"
)

//go:embed config.example.yaml
var example []byte

func TestPresetsAreValid(t *testing.T) {
	for _, p := range []configs.Preset{"", configs.LAN, configs.Mobile, configs.Local} {
		if err := configs.Default(p).Validate(); err != nil {
			t.Errorf("preset %q: %v", p, err)
		}
	}
}

func TestNoFileMeansDefaults(t *testing.T) {
	got, err := configs.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(configs.Default(configs.LAN), got); diff != "" {
		t.Error(diff)
	}
}

// What is far too large is refused before memory is full of it, also where the file is a device that never ends.
func TestWhatIsTooLargeIsRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /dev/zero")
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(dir, configs.File)); err != nil {
		t.Fatal(err)
	}
	_, err := configs.Load(dir)
	var wrong *configs.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a configuration without an end: %v", err)
	}
	if at := configs.Place(dir, "api"); at != "" {
		t.Errorf("a key in it is at %s", at)
	}
}

func TestFileOverridesItsPreset(t *testing.T) {
	dir := t.TempDir()
	src := "preset: mobile\nconnection-time: 1d12h\nlimits: {instances: 7}\n"
	if err := os.WriteFile(filepath.Join(dir, configs.File), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := configs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := configs.Default(configs.Mobile)
	want.ConnectionTime = 36 * time.Hour
	want.Limits.Instances = 7 // connections keep the preset's value
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A file that a disk, or somebody, has changed into something else that makes sense is obeyed
// as it stands. What makes no sense is refused, so a change passes for no default.
func TestAChangedFileThatMakesSenseIsObeyed(t *testing.T) {
	const meant = "connection-time: 15m\nlimits: {instances: 700}\n"
	was, err := configs.Parse("c.yaml", []byte(meant))
	if err != nil || was.ConnectionTime != 15*time.Minute || was.Limits.Instances != 700 {
		t.Fatalf("%v, %+v", err, was)
	}
	for _, c := range []struct {
		from, to string
		makes    func(*configs.Config) // nil: no sense
	}{
		{"15m", "15s", func(c *configs.Config) { c.ConnectionTime = 15 * time.Second }},
		{"700", "100", func(c *configs.Config) { c.Limits.Instances = 100 }},
		{"limits", "# imits", func(c *configs.Config) { c.Limits = configs.Default(configs.LAN).Limits }},
		{"15m", "15q", nil},
		{"700", "7o0", nil},
		{"limits", "limitz", nil},
	} {
		got, err := configs.Parse("c.yaml", []byte(strings.Replace(meant, c.from, c.to, 1)))
		if (err == nil) != (c.makes != nil) {
			t.Errorf("%s in place of %s: %v", c.to, c.from, err)
		}
		if c.makes == nil || err != nil {
			continue
		}
		want := was
		c.makes(&want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s in place of %s:\n%s", c.to, c.from, diff)
		}
	}
}

// The example shows the defaults and every key there is.
func TestExample(t *testing.T) {
	got, err := configs.Parse("config.example.yaml", example)
	if err != nil {
		t.Fatal(err)
	}
	want := configs.Default(configs.LAN)
	want.Shards, want.Candidate, want.Relays = got.Shards, got.Candidate, got.Relays
	want.Capabilities, want.Applications, want.Databases = got.Capabilities, got.Applications, got.Databases
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example differs from the defaults:\n%s", diff)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(example, &doc); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "top level", keysOf(reflect.TypeFor[configs.Config]()), slices.Collect(maps.Keys(doc)))
	var used []string
	for _, app := range doc["applications"].(map[string]any) {
		used = slices.AppendSeq(used, maps.Keys(app.(map[string]any)))
	}
	sameKeys(t, "applications", keysOf(reflect.TypeFor[configs.Application]()), used)
	used = nil
	for _, db := range doc["databases"].(map[string]any) {
		used = slices.AppendSeq(used, maps.Keys(db.(map[string]any)))
	}
	sameKeys(t, "databases", keysOf(reflect.TypeFor[configs.Database]()), used)
	sameKeys(t, "limits", keysOf(reflect.TypeFor[configs.Limits]()),
		slices.Collect(maps.Keys(doc["limits"].(map[string]any))))
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		keys = append(keys, name)
	}
	return keys
}

func sameKeys(t *testing.T, where string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("%s: keys of the struct and of the example differ:\n%s", where, diff)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"unknown key", "paralel: 3", "c.yaml:1:1: there is no key \"paralel\"; did you mean \"parallel\"?"},
		{"wrong type", "preset: lan\nparallel: many",
			"c.yaml:2:11: parallel: \"many\": want a whole number from 1 to 1024"},
		{"a fraction", "parallel: 1.9", "c.yaml:1:11: parallel: \"1.9\": want a whole number from 1 to 1024"},
		{"a fraction below", "limits:\n  instances: 10.5\nstore: big",
			"c.yaml:2:14: limits.instances: \"10.5\": want a whole number from 1 to 1000000\nc.yaml:3:8: store: "},
		{"a list in place of a duration", "connection-time: [3s]",
			"c.yaml:1:18: connection-time: want a duration such as 90s, 15m, 1h30m or 3d, and not a list"},
		{"a mapping in place of a duration", "limits:\n  keep: {a: b}",
			"limits.keep: want a duration such as 90s, 15m, 1h30m or 3d, and not a mapping"},
		{"wrong type below", "limits: {facts: many}",
			"c.yaml:1:17: limits.facts: \"many\": want a whole number from 1000 to 10000000"},
		{"a directive", "%TAG !! x\npreset: lan", "c.yaml:1:1: YAML directives are not part of the language"},
		{"text in place of a list", "listen: here", "c.yaml:1:9: listen: \"here\": want a list"},
		{"list in place of keys", "limits: [a]", "want keys with values"},
		{"number in place of a switch", "relay: 7", "relay: \"7\": want true or false"},
		{"where a mistake is", "preset: lan\nlimits:\n  facts: 10\n", "c.yaml:3:10: limits.facts: 10: want"},
		{"where a mistake in a list is", "listen:\n- /ip4/0.0.0.0/tcp/0\n- here\n", "c.yaml:3:3: listen[1]:"},
		{"where a mistake of an application is", "applications:\n  a.b:\n    command: [x]\n    timeout: 1000d\n",
			"c.yaml:4:14: applications.a.b.timeout:"},
		{"not YAML", "a: b: c", "c.yaml:1:5: here is a second colon"},
		{"an equals sign", "preset = lan\nshards: 2\n",
			`c.yaml:1:1: "preset = lan" is no key with a value (write preset: lan, with a colon and a space)`},
		{"an arrow", "preset => lan\nshards: 2\n",
			`c.yaml:1:1: "preset => lan" is no key with a value (write preset: lan, with a colon and a space)`},
		{"equals signs on each line", "preset = lan\nshards = 2\n",
			`c.yaml:1:1: "preset = lan shards = 2": want keys with values, e.g. {key: value}; write preset: lan, with a colon and a space, and so each of these lines`},
		{"an arrow between brackets", "limits: {facts => 3000}",
			"c.yaml:1:10: there is no key \"facts => 3000\"; write facts: 3000, with a colon and a space"},
		{"a tab", "limits:\n\tfacts: 3000\n",
			"c.yaml:2:1: this line is indented with a tab (indent with spaces, not with tabs)"},
		{"wrong indentation", "limits:\n    facts: 3000\n  memory: 3\n",
			"c.yaml:3:3: this line begins in column 3, and none above that it could belong to does (begin it in column 1 or 5)"},
		{"a key twice", "shards: 2\nshards: 3\n", "c.yaml:2:1: key shards is there twice (leave one of them out)"},
		{"a tag that the YAML library cannot read", "capabilities: !x\n  a: 1\n  b: 2\nlisten:",
			"c.yaml:1:15: tags have no meaning here: leave them out"},
		{"bad duration", "connection-time: soon", `"soon" is not a duration: write for example 90s, 15m, 1h30m or 3d`},
		{"negative duration", "connection-time: -5s", `"-5s" is negative`},
		{"short connection time", "connection-time: 10ms",
			"connection-time: 10ms: want 3s to 7d: a partner gives three signs of life in that time, at least a second apart"},
		{"long connection time", "connection-time: 8d", "connection-time: 8d: want 3s to 7d"},
		{"a list for a text", "api: [a]", "c.yaml:1:6: api: want a text, and not a list"},
		{"a list of lines for a text", "api:\n  - a", "api: want a text, and not a list"},
		{"keys for a text", "store: {x: 1}", "c.yaml:1:8: store: want a text, and not keys with values"},
		{"keys on lines for a number", "shards:\n  x: 1",
			"shards: want a whole number from 1 to 256, and not keys with values"},
		{"unknown preset", "preset: wan", `preset: "wan": want one of lan, mobile, local`},
		{"unknown store", "store: big", `store: "big": want one of default, small`},
		{"no shards", "shards: -1", "shards: -1: want 1 to 256"},
		{"too parallel", "parallel: 5000", "parallel: 5000: want 1 to 1024"},
		{"too few facts", "limits: {facts: 10}", "limits.facts: 10: want 1000 to 10000000"},
		{"kept for too short", "limits: {keep: 1m}", "limits.keep: 1m: want 1h to 3650d"},
		{"too few connections", "limits: {connections: 1}", "limits.connections: 1: want 2 to 10000"},
		{"no multiaddress", "listen: [0.0.0.0:4001]", `listen[0]: "0.0.0.0:4001": not a multiaddress`},
		{"wrong transport", "listen: [/ip4/0.0.0.0/udp/4001]", "listen[0]: /ip4/0.0.0.0/udp/4001: want QUIC"},
		{"listens nowhere", "listen: []", "listen: []: want at least one"},
		{"open API", "api: 0.0.0.0:8080", "api: 0.0.0.0:8080: other devices could reach it"},
		{"API on a port that is none", "api: 127.0.0.1:99999",
			`c.yaml:1:6: api: 127.0.0.1:99999: port "99999": want a number from 0 to 65535`},
		{"API on a negative port", "api: 127.0.0.1:-1", `port "-1": want a number from 0 to 65535`},
		{"API on a port without number", "api: '127.0.0.1:'", `port "": want a number from 0 to 65535`},
		{"API without port", "api: localhost", `api: "localhost": want HOST:PORT`},
		{"API on a nameless socket", "api: 'unix:'", "api: unix:: want unix:PATH"},
		{"half a certificate", "tls: {key: k.pem}", `tls: certificate "", key "k.pem": want both or neither`},
		{"capability", "capabilities: ['fire engine']", `capabilities[0]: "fire engine": want letters, digits`},
		{"built-in application", "applications: {noop: {command: [x]}}", "applications.noop: noop: is built in"},
		{"application of two kinds", "applications: {a: {command: [x], url: 'http://h/'}}",
			"applications.a: has a command and a url"},
		{"application of no kind", "applications: {a: {}}", "applications.a: runs nothing"},
		{"application name", "applications: {'a b': {command: [x]}}", `applications.a b: "a b": want letters, digits`},
		{"no program", "applications: {a: {command: ['']}}", "applications.a.command: []: want a program first"},
		{"URL", "applications: {a: {url: 'ftp://h/'}}", `applications.a.url: "ftp://h/": want http://… or https://…`},
		{"method", "applications: {a: {url: 'http://h/', method: GET}}", `applications.a.method: "GET": want one of`},
		{"method of a command", "applications: {a: {command: [x], method: PUT}}", "are for a url, not for a command"},
		{"folder of a URL", "applications: {a: {url: 'http://h/', folder: f}}", "are for a command, not for a url"},
		{"environment", "applications: {a: {command: [x], env: ['1X']}}",
			`applications.a.env[0]: "1X": want NAME or NAME=VALUE`},
		{"environment of ours", "applications: {a: {command: [x], env: ['MUTIRAO_TRY=9']}}", "are set by the node"},
		{"time limit", "applications: {a: {command: [x], timeout: 1000d}}",
			"applications.a.timeout: 1000d: want 1ms to 30d"},
		{"output limit", "applications: {a: {command: [x], max-output: -1}}",
			"applications.a.max-output: -1: want 1 to 67108864"},
		{"who may use it", "applications: {a: {command: [x], allow: ['?']}}",
			`applications.a.allow[0]: "?": want a workflow: NAME, NAME by AUTHOR, or NAME@HASH`},
		{"nobody may use it", "applications: {a: {command: [x], allow: []}}",
			"applications.a.allow: is empty: want the workflows that it is for, or no allow at all"},
		{"no rows", "databases:\n  a:\n    file: a.db\n    rows: 0", "c.yaml:4:11: databases.a.rows: 0: want 1 to 100000"},
		{"no time", "databases:\n  a: {file: a.db, timeout: 0s}", "c.yaml:2:28: databases.a.timeout: 0s: want 1ms to 1h"},
		{"no bytes", "databases: {a: {file: a.db, bytes: 0}}", "databases.a.bytes: 0: want 1 to 65536"},
		{"sslmode", "databases: {a: {url: 'postgres://u@h/d?sslmode=on'}}",
			`databases.a.url: has the sslmode "on": want one of disable, allow, prefer, require, verify-ca, verify-full`},
		{"port", "databases: {a: {url: 'postgres://u:secret@h:70000/d'}}",
			"c.yaml:1:22: databases.a.url: has the port 70000: want 1 to 65535"},
		{"port among several", "databases: {a: {url: 'postgres://u@h:5432,i:0/d'}}", "has the port 0: want 1 to 65535"},
		{"port as a parameter", "databases: {a: {url: 'postgres:///d?host=h&port=x'}}", "has the port x: want 1 to 65535"},
		{"port that is none", "databases: {a: {url: 'postgres://u@h:five/d'}}",
			"databases.a.url: is no address of PostgreSQL: want postgres://user@host:5432/name, with a port from 1 to 65535"},
		{"password that looks like a port", "databases: {a: {url: 'postgres://u:77777/7@h/d'}}",
			"has the port what stands after the host: want 1 to 65535"},
		{"nobody may ask it", "databases: {a: {file: a.db, allow: []}}",
			"databases.a.allow: is empty: want the workflows that it is for, or no allow at all"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := configs.Parse("c.yaml", []byte(tt.src))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s\n got: %v\nwant: …%s…", tt.src, err, tt.want)
			}
		})
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	_, err := configs.Parse("c.yaml", []byte("preset: wan\nstore: big\nparallel: -3\napi: 0.0.0.0:1\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four lines, got: %v", err)
	}
}

// What is wrong in the form of a file is all reported, each at its place, and what is wrong
// with values besides; not what follows from a mistake of form.
func TestEveryMistakeOfFormIsReported(t *testing.T) {
	_, err := configs.Parse("c.yaml", []byte(`preset: lan
paralel: 3
shards: many
connection-time: soon
limits:
  keep: soon
  instances: [1]
  facts: 1
listen: here
applications:
  alarm: {comand: [ring]}
  horn: {command: [blow], timeout: long}
  bell: {}
store: big
`))
	got := ""
	if err != nil {
		got = err.Error()
	}
	for _, at := range []string{"2:1: ", "3:9: shards: ", "4:18: connection-time: ", "6:9: limits.keep: ",
		"7:14: limits.instances: ",
		"8:10: limits.facts: ",
		"9:9: listen: ", "11:11: ", "12:36: applications.horn.timeout: ", "14:8: store: "} {
		if !strings.Contains(got, "c.yaml:"+at) {
			t.Errorf("nothing is said of c.yaml:%s", at)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 11 {
		t.Errorf("%d mistakes, want 11", n)
	}
	t.Log(got)
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add([]byte("listen: [/ip4/1.2.3.4/tcp/1]\nconnection-time: 3d"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := configs.Parse("fuzz.yaml", src)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("accepted what does not validate: %v", err)
		}
	})
}

// A duration that cannot be read is told with its place.
func TestWrongDuration(t *testing.T) {
	_, err := configs.Parse("config.yaml",
		[]byte("preset: lan\n# connection-time: banana\nconnection-time: banana   # often\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "config.yaml:3:18: connection-time: ") {
		t.Errorf("got %v", err)
	}
}
