package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// serve serves svc in a folder of its own until the test ends.
func serve(t *testing.T, address string, svc api.Service, o httpapi.Options) (dir string, s *httpapi.Server) {
	t.Helper()
	dir = t.TempDir()
	s, err := httpapi.Serve(dir, address, svc, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return dir, s
}

func closeServer(t *testing.T, s *httpapi.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A browser opens connections beforehand, and asks nothing over them. They do not make it an error to end.
func TestEndingWithAConnectionThatAsksNothing(t *testing.T) {
	s, err := httpapi.Serve(t.TempDir(), "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	idle, err := net.Dial("tcp", strings.TrimPrefix(fmt.Sprint(s.Access().Address), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("the connection was answered")
	}
}

func dial(t *testing.T, dir string) *httpapi.Client {
	t.Helper()
	c, err := httpapi.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var noon = time.Date(2025, 6, 1, 12, 0, 0, 123456789, time.UTC)

// What goes into the client comes out of the service, and back.
func TestClientAndServerAgree(t *testing.T) {
	status := &api.Status{
		Name: "ana", ID: "12D3", Mesh: "m", Version: "1", Roles: []string{"crew"}, Addresses: []string{}, Since: noon,
		Boot: 1 << 60, Trouble: []string{}, Counters: map[string]uint64{"facts": 1 << 63},
	}
	partners := []api.Partner{{Name: "é", ID: "12D3", Roles: []string{}, State: "active",
		Addresses: []string{"/ip4/1.2.3.4/tcp/1"}, LastValidated: noon, ConnectionTime: "15s", Load: 0.25, Self: true,
		Refused: []api.Refusal{}}}
	canonical := json.RawMessage(`{"workflow":"a<b&c","doc":"\u2028é"}`)
	wf := &api.Workflow{
		Name: "fire-call", Version: 3, Hash: "9f", Doc: "d", Tasks: 4, Partitions: []string{"station"}, Added: noon,
		Definition: canonical,
	}
	name := workflow.TaskName("t")
	instance := &api.Instance{
		ID: "ab", Workflow: "fire-call", Version: 3, State: workflow.InstanceRunning,
		Incidents:    []api.Incident{{At: noon, What: "w", Task: "t"}},
		Conflicts:    []api.Conflict{{Data: "d", Values: []any{"x", json.Number("1.5"), nil}}},
		Coordination: workflow.Choreography, Responsible: "ana", Started: noon, Ended: &noon,
		Partitions: []api.Partition{{Name: "p", Partner: "ana", Attempt: 1, State: "s", Timeout: new("1h0m0s"),
			Due: []api.Due{{Kind: "timeout", At: noon, Left: "4m0s"}}}},
		Tasks: []api.Task{{Name: "t", Partition: "p", State: workflow.Running, Started: &noon,
			Outputs: map[string]any{"k": "v"}, ContingencyOf: &name,
			Superseded: []api.Superseded{{Task: "u", Ended: noon}}, AsOf: &noon, Known: "as known 2 h ago",
			Due: []api.Due{{Kind: "trigger", At: noon, Left: "1s", About: true}}}},
		Data: map[string]any{"list": []any{"a"}},
	}
	log := []api.LogEntry{{At: noon, Time: 1, Fact: "f", Author: "ana", Seq: 2, Kind: "start", Task: "t", Text: "x",
		Counted: true}}
	start := api.StartRequest{
		Workflow: "fire-call", Input: map[string]string{"address": "a=b"}, Assign: map[string]string{"engine": "e7"},
		Coordination: "choreography", Mechanism: "m", Responsible: "ana", Notify: "all", Warnings: "24h",
		Transfer: "2h",
	}
	refreshed := &api.Refreshed{Answered: []string{"engine-7"}, Silent: []string{"reserve"}}
	begin := api.BeginRequest{ID: "ab", Task: "t/1"}
	finish := api.FinishRequest{ID: "ab", Task: "t/1", Failed: true, Reason: "r", Outputs: map[string]string{"k": "v"}}

	var got []any
	saw := func(v any) { got = append(got, v) }
	fake := &apitest.Fake{
		OnStatus:   func() (*api.Status, error) { return status, nil },
		OnPartners: func() ([]api.Partner, error) { return partners, nil },
		OnInvite: func(r api.InviteRequest) (*api.Invitation, error) {
			saw(r)
			return &api.Invitation{Token: "tok", Expires: noon, Uses: 2}, nil
		},
		OnAddWorkflow: func(f string, src []byte) (*api.Workflow,
			error) {
			saw(f)
			saw(string(src))
			return wf, nil
		},
		OnWorkflows:      func() ([]api.Workflow, error) { return []api.Workflow{*wf}, nil },
		OnWorkflow:       func(ref string) (*api.Workflow, error) { saw(ref); return wf, nil },
		OnRemoveWorkflow: func(ref string) ([]api.Workflow, error) { saw(ref); return []api.Workflow{*wf}, nil },
		OnStart: func(r api.StartRequest) (*api.Started, error) {
			saw(r)
			return &api.Started{ID: "ab", HeldOnlyHere: true, Notes: []string{"n"}}, nil
		},
		OnInstances: func(all bool) ([]api.InstanceSummary, error) {
			saw(all)
			return []api.InstanceSummary{{ID: "ab", Workflow: "fire-call", State: workflow.InstanceBlocked,
				Started: noon, Ended: &noon, At: []string{"engine-7"},
				Needs: []api.Need{{Kind: "failed", Number: 1, Tasks: []workflow.TaskName{"t"}}}, AsOf: &noon,
				KnownBy: []api.Witness{{Name: "reserve", State: "active", At: noon}}}}, nil
		},
		OnShow: func(id string) (*api.Instance, error) { saw(id); return instance, nil },
		OnLog:  func(id string) ([]api.LogEntry, error) { saw(id); return log, nil },
		OnDiagram: func(id, format string) ([]byte,
			error) {
			saw(id)
			saw(format)
			return []byte("<svg>\xff</svg>"), nil
		},
		OnCancel:     func(id, reason string) error { saw(id); saw(reason); return nil },
		OnWriteOff:   func(id, partner string, check bool) error { saw(id); saw(partner); saw(check); return nil },
		OnRefresh:    func(id string) (*api.Refreshed, error) { saw(id); return refreshed, nil },
		OnBeginTask:  func(r api.BeginRequest) error { saw(r); return nil },
		OnFinishTask: func(r api.FinishRequest) error { saw(r); return nil },
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "unix:api.sock"} {
		if runtime.GOOS == "windows" && strings.HasPrefix(address, "unix:") {
			continue
		}
		t.Run(address, func(t *testing.T) {
			got = nil
			dir, _ := serve(t, address, fake, httpapi.Options{})
			c, ctx := dial(t, dir), t.Context()
			same := func(what string, want, have any, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if diff := cmp.Diff(want, have); diff != "" {
					t.Errorf("%s: -want +got\n%s", what, diff)
				}
			}
			s, err := c.Status(ctx)
			same("status", status, s, err)
			p, err := c.Partners(ctx)
			same("partners", partners, p, err)
			i, err := c.Invite(ctx, api.InviteRequest{Roles: []string{"crew"}, Expires: api.Span(time.Hour), Uses: 2})
			same("invite", &api.Invitation{Token: "tok", Expires: noon, Uses: 2}, i, err)
			w, err := c.AddWorkflow(ctx, "a b.yaml", []byte("workflow: \xff\n"))
			same("add", wf, w, err)
			ws, err := c.Workflows(ctx)
			same("workflows", []api.Workflow{*wf}, ws, err)
			w, err = c.Workflow(ctx, "fire-call@3")
			same("workflow", wf, w, err)
			ws, err = c.RemoveWorkflow(ctx, "odd/name %2F")
			same("remove", []api.Workflow{*wf}, ws, err)
			st, err := c.Start(ctx, start)
			same("start", &api.Started{ID: "ab", HeldOnlyHere: true, Notes: []string{"n"}}, st, err)
			is, err := c.Instances(ctx, true)
			same("instances", []api.InstanceSummary{{ID: "ab", Workflow: "fire-call", State: workflow.InstanceBlocked,
				Started: noon, Ended: &noon, At: []string{"engine-7"},
				Needs: []api.Need{{Kind: "failed", Number: 1, Tasks: []workflow.TaskName{"t"}}}, AsOf: &noon,
				KnownBy: []api.Witness{{Name: "reserve", State: "active", At: noon}}}}, is, err)
			in, err := c.Show(ctx, "ab")
			same("show", instance, in, err)
			l, err := c.Log(ctx, "ab")
			same("log", log, l, err)
			d, err := c.Diagram(ctx, "ab", "svg")
			same("diagram", []byte("<svg>\xff</svg>"), d, err)
			same("cancel", nil, nil, c.Cancel(ctx, "ab", "why not"))
			same("write off", nil, nil, c.WriteOff(ctx, "ab", "engine-7", true))
			rf, err := c.Refresh(ctx, "ab")
			same("refresh", refreshed, rf, err)
			same("begin", nil, nil, c.BeginTask(ctx, begin))
			same("finish", nil, nil, c.FinishTask(ctx, finish))

			want := []any{
				api.InviteRequest{Roles: []string{"crew"}, Expires: api.Span(time.Hour), Uses: 2}, "a b.yaml", "workflow: \xff\n",
				"fire-call@3",
				"odd/name %2F", start, true, "ab", "ab", "ab", "svg", "ab", "why not", "ab", "engine-7", true, "ab",
				begin, finish,
			}
			same("what the service saw", want, got, nil)
		})
	}
}

// A definition's canonical form is hashed: not one byte may change on its way.
func TestCanonicalFormArrivesByteForByte(t *testing.T) {
	canonical := json.RawMessage(`{"doc":"a<b>&c é` + "\u2028" + `","n":1.0,"workflow":"w"}`)
	dir, _ := serve(t, "127.0.0.1:0", &apitest.Fake{OnWorkflow: func(string) (*api.Workflow, error) {
		return &api.Workflow{Definition: canonical}, nil
	}}, httpapi.Options{})
	w, err := dial(t, dir).Workflow(t.Context(), "w")
	if err != nil || !bytes.Equal(w.Definition, canonical) {
		t.Errorf("got %s, %v\nwant %s", w.Definition, err, canonical)
	}
}

// Whoever prints what the API answers is not steered by texts of others, and gets the same texts.
func TestNothingOfOthersSteersWhoeverPrintsAnAnswer(t *testing.T) {
	const reason = "\x1b[2Jgone \u202etxt.exe\u2066 \u200b"
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{
		OnShow: func(string) (*api.Instance, error) { return nil, api.Errorf(api.Refused, "%s", reason) },
		OnInstances: func(bool) ([]api.InstanceSummary, error) {
			return []api.InstanceSummary{{ID: "ab", Known: reason}}, nil
		},
	}, httpapi.Options{})
	for _, path := range []string{"/v1/instances", "/v1/instances/ab"} {
		if _, body := get(t, s, path, nil); !plain.IsPlain(body) {
			t.Errorf("%s answers %q", path, body)
		}
	}
	list, err := dial(t, dir).Instances(t.Context(), false)
	if err != nil || len(list) != 1 || list[0].Known != reason {
		t.Errorf("the program gets %+v, %v", list, err)
	}
}

// Lists and maps that a service left out are empty, not null, in the JSON; the
// service's own value stays as it was.
func TestMissingListsAreEmpty(t *testing.T) {
	held := &api.Instance{Tasks: []api.Task{{Name: "t"}}}
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{
		OnShow:     func(string) (*api.Instance, error) { return held, nil },
		OnPartners: func() ([]api.Partner, error) { return nil, nil },
	}, httpapi.Options{})
	_ = dir
	for path, want := range map[string]string{
		"/v1/partners":    "[]\n",
		"/v1/instances/x": `"incidents":[],"conflicts":[],`,
	} {
		_, body := get(t, s, path, nil)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s does not contain %s", path, body, want)
		}
	}
	_, body := get(t, s, "/v1/instances/x", nil)
	if !strings.Contains(body, `"outputs":{}`) || !strings.Contains(body, `"superseded":[]`) {
		t.Errorf("inside a task: %s", body)
	}
	if held.Incidents != nil || held.Tasks[0].Outputs != nil {
		t.Error("the service's own value was changed")
	}
}

// get makes a raw request with the right token; edit may change it.
func get(t *testing.T, s *httpapi.Server, path string, edit func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Access().URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Access().Token)
	if edit != nil {
		edit(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestErrorsArriveAsTheyWere(t *testing.T) {
	statuses := map[api.Code]int{
		api.Failed: 500, api.Invalid: 400, api.NotFound: 404, api.NoNode: 503, api.NotAllowed: 403, api.Refused: 409,
		api.NotYet: 503, api.Internal: 500,
	}
	for code, status := range statuses {
		t.Run(string(code), func(t *testing.T) {
			sent := api.Errorf(code, "what <%s>", code).WithHint("next")
			dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{
				OnShow: func(string) (*api.Instance, error) { return nil, fmt.Errorf("wrapped: %w", sent) },
			}, httpapi.Options{})
			_, err := dial(t, dir).Show(t.Context(), "x")
			var got *api.Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(sent, got, cmpopts.IgnoreUnexported(api.Error{})); diff != "" {
				t.Error(diff)
			}
			if resp, _ := get(t, s, "/v1/instances/x", nil); resp.StatusCode != status {
				t.Errorf("status %d, want %d", resp.StatusCode, status)
			}
		})
	}
}

func TestInnerCausesAreNotShown(t *testing.T) {
	dir, _ := serve(t, "127.0.0.1:0", &apitest.Fake{
		OnStatus: func() (*api.Status, error) { return nil, errors.New("badger: value log 7 is broken") },
	}, httpapi.Options{})
	_, err := dial(t, dir).Status(t.Context())
	var got *api.Error
	if !errors.As(err, &got) || got.Code != api.Internal || strings.Contains(err.Error(), "badger") {
		t.Errorf("got %v", err)
	}
}

func TestForeignersAreRefused(t *testing.T) {
	_, s := serve(t, "127.0.0.1:0", &apitest.Fake{OnStatus: func() (*api.Status, error) { return &api.Status{}, nil }},
		httpapi.Options{})
	host := s.Access().Address
	port := host[strings.LastIndex(host, ":"):]
	tests := []struct {
		name   string
		edit   func(*http.Request)
		status int
	}{
		{"ours", nil, 200},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"wrong token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		{"token of another kind", func(r *http.Request) { r.Header.Set("Authorization", "Basic "+s.Access().Token) },
			401},
		{"a name that points here", func(r *http.Request) { r.Host = "evil.example" + port }, 403},
		{"an address that is not ours", func(r *http.Request) { r.Host = "192.0.2.1" + port }, 403},
		{"localhost", func(r *http.Request) { r.Host = "localhost" + port }, 200},
		{"IPv6 loopback", func(r *http.Request) { r.Host = "[::1]" + port }, 200},
		{"our own page", func(r *http.Request) { r.Header.Set("Origin", "http://"+host) }, 200},
		{"a foreign page", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"a page of another port", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"a page of another scheme", func(r *http.Request) { r.Header.Set("Origin", "https://"+host) }, 403},
		{"a page without origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := get(t, s, "/v1/status", tt.edit)
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.status, body)
			}
			if tt.status != 200 && !strings.Contains(body, `"code":"not-allowed"`) {
				t.Errorf("body %s", body)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	_, s := serve(t, "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{})
	post := func(body string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}
	}
	tests := []struct {
		name, path string
		edit       func(*http.Request)
		status     int
		want       string
	}{
		{"no such path", "/v1/nothing", nil, 404, `there is no /v1/nothing`},
		{"no such version", "/v9/status", nil, 404, `"code":"not-found"`},
		{"wrong method", "/v1/status", post("{}"), 405, `POST cannot be used on /v1/status: want GET`},
		{"unknown parameter", "/v1/instances?every=true", nil, 400, `has no parameter \"every\"`},
		{"bad value", "/v1/instances?all=maybe", nil, 400, `all=maybe: want one value: true or false`},
		{"twice", "/v1/instances?all=true&all=false", nil, 400, `all=true,false`},
		{"bad format", "/v1/instances/x/diagram?format=png", nil, 400, `format=png`},
		{"not JSON", "/v1/instances", post("workflow: x"), 400, `is not what is wanted here`},
		{"unknown field", "/v1/instances", post(`{"workfow": "x"}`), 400, `unknown field \"workfow\"`},
		{"one key twice", "/v1/instances", post(`{"workflow": "a", "workflow": "b"}`), 400, `the key \"workflow\" is there twice`},
		{"two values", "/v1/instances", post(`{}{}`), 400, `something follows`},
		{"null", "/v1/instances", post(`null`), 400, `an empty one is {}`},
		{"empty", "/v1/instances", post(""), 400, `EOF`},
		{"wrong type", "/v1/instances", post(`{"workflow": 3}`), 400, `workflow: want a string, have a number`},
		{"wrong type of a lease", "/v1/leases/x/heartbeat", post(`{"lease": 30}`), 400, `here: lease: want a string, have a number`},
		{"wrong type of a step", "/v1/instances/x/recovery/outlook", post(`{"set": [1]}`), 400, `here: set: want an object, have an array`},
		{"wrong type of all", "/v1/instances", post(`[1]`), 400, `here: want an object, have an array`},
		{"form", "/v1/instances", func(r *http.Request) {
			post("workflow=x")(r)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, 415, `want application/json`},
		{"too large", "/v1/instances", post(`{"workflow": "` + strings.Repeat("x", httpapi.MaxBody) + `"}`), 413,
			`larger than 1048576 bytes`},
		{"definition too large", "/v1/workflows", post(strings.Repeat("x", httpapi.MaxBody+1)), 413,
			`larger than 1048576 bytes`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := get(t, s, tt.path, tt.edit)
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s\nwant %d …%s…", resp.StatusCode, body, tt.status, tt.want)
			}
		})
	}
}

// What takes no body refuses one, in whatever form, before anything is done: whoever sends it means something by it. An
// empty object says nothing.
func TestABodyWhereNoneIsTaken(t *testing.T) {
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{MeshFake: apitest.MeshFake{OnResign: func() error { return nil }}},
		httpapi.Options{})
	_ = dir
	with := func(method, body string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method = method
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			if body == "" {
				r.Body = nil
			}
		}
	}
	const resign = "POST /v1/coordinator/resign"
	if all := httpapi.Bodiless(); !slices.Contains(all, resign) || !slices.Contains(all, "POST /v1/lan") {
		t.Fatalf("these take no body: %q", all)
	}
	for _, rt := range httpapi.Bodiless() {
		method, path, _ := strings.Cut(rt, " ")
		for _, body := range []string{`{"user": "ana"}`, "x", "null", "[]", "{}{}"} {
			resp, said := get(t, s, path, with(method, body))
			if resp.StatusCode != 400 || !strings.Contains(said, `"code":"invalid"`) ||
				!strings.Contains(said, "takes no body, and this request has one of") {
				t.Errorf("%s with %s: %d %s", rt, body, resp.StatusCode, said)
			}
		}
	}
	for _, body := range []string{"", "{}", " { }\n"} {
		if resp, said := get(t, s, "/v1/coordinator/resign", with(http.MethodPost, body)); resp.StatusCode != 204 {
			t.Errorf("with %q: %d %s", body, resp.StatusCode, said)
		}
	}
}

// What is wrong with a definition is wrong with the request; a program gets the places, too.
func TestAWrongDefinitionIsABadRequest(t *testing.T) {
	_, wrong := workflow.Parse("bad.yaml", []byte("workflow: bad\ntasks:\n  a: {after: b, tyope: manual}\n"))
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{
		OnAddWorkflow: func(string, []byte) (*api.Workflow, error) { return nil, api.WrongDefinition(wrong) },
	}, httpapi.Options{})
	resp, body := get(t, s, "/v1/workflows", func(r *http.Request) { r.Method = http.MethodPost })
	if resp.StatusCode != 400 || !strings.Contains(body, `"code":"invalid"`) ||
		!strings.Contains(body, `"file":"bad.yaml","line":3,"col":14,`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	_, err := dial(t, dir).AddWorkflow(t.Context(), "bad.yaml", nil)
	var got *api.Error
	if !errors.As(err, &got) || len(got.Problems) != 2 || got.Exit() != 1 || !strings.Contains(got.Message, "bad.yaml:3:14: ") {
		t.Errorf("the program gets %#v", got)
	}
}

func TestOpenRoutes(t *testing.T) {
	ready := make(chan struct{})
	_, s := serve(t, "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{Ready: ready})
	anonymous := func(r *http.Request) { r.Header.Del("Authorization") }
	for path, want := range map[string]int{"/healthz": 204, "/readyz": 503, "/v1/openapi.json": 200} {
		resp, body := get(t, s, path, anonymous)
		if resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, resp.StatusCode, body, want)
		}
		if after := resp.Header.Get("Retry-After"); (after != "") != (want == 503) {
			t.Errorf("%s: %d, to be asked again after %q", path, want, after)
		}
	}
	close(ready)
	if resp, _ := get(t, s, "/readyz", anonymous); resp.StatusCode != 204 {
		t.Errorf("/readyz when ready: %d", resp.StatusCode)
	}
}

func TestNoNode(t *testing.T) {
	code := func(err error) api.Code {
		var e *api.Error
		if !errors.As(err, &e) {
			return ""
		}
		return e.Code
	}
	absent := filepath.Join(t.TempDir(), "absent")
	if _, err := httpapi.Dial(absent); code(err) != api.NoNode || !strings.Contains(err.Error(), "mutirao init") {
		t.Errorf("no folder: %v", err)
	}
	dir := t.TempDir()
	if _, err := httpapi.Dial(dir); code(err) != api.NoNode || !strings.Contains(err.Error(), "mutirao init") ||
		strings.Contains(err.Error(), "mutirao up") {
		t.Errorf("a folder that is no node's: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, api.MemberFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := httpapi.Dial(dir); code(err) != api.NoNode || !strings.Contains(err.Error(), "mutirao up --dir "+dir) {
		t.Errorf("no %s: %v", api.AccessFile, err)
	}
	s, err := httpapi.Serve(dir, "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(filepath.Join(dir, api.AccessFile))
	if err != nil {
		t.Fatal(err)
	}
	closeServer(t, s)
	if _, err := os.Stat(filepath.Join(dir, api.AccessFile)); !os.IsNotExist(err) {
		t.Errorf("%s was not removed: %v", api.AccessFile, err)
	}
	if err := os.WriteFile(filepath.Join(dir, api.AccessFile), left, 0o600); err != nil { // as after kill -9
		t.Fatal(err)
	}
	if _, err := dial(t, dir).Status(t.Context()); code(err) != api.NoNode {
		t.Errorf("nobody listens: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, api.AccessFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := httpapi.Dial(dir); code(err) != api.Failed || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("damaged: %v", err)
	}
}

// A client that was made before the node's restart finds it again, and says
// nothing twice.
func TestClientOutlivesARestart(t *testing.T) {
	calls := 0
	fake := &apitest.Fake{OnCancel: func(string, string) error { calls++; return nil }}
	dir := t.TempDir()
	first, err := httpapi.Serve(dir, "127.0.0.1:0", fake, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	closeServer(t, first)
	second, err := httpapi.Serve(dir, "127.0.0.1:0", fake, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, second)
	if err := c.Cancel(t.Context(), "x", ""); err != nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if c.Access().Token != second.Access().Token {
		t.Error("the client still has the old token")
	}
	// The same address with another token is a restart, too.
	closeServer(t, second)
	third, err := httpapi.Serve(dir, second.Access().Address, fake, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, third)
	if err := c.Cancel(t.Context(), "x", ""); err != nil || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestAccessFile(t *testing.T) {
	dir, s := serve(t, "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{})
	path := filepath.Join(dir, api.AccessFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want only its owner to read it", info.Mode())
	}
	var got map[string]any
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &got) != nil {
		t.Fatal(err, string(b))
	}
	a := s.Access()
	want := map[string]any{
		"address": a.Address, "url": "http://" + a.Address, "token": a.Token, "pid": float64(os.Getpid()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A node that took over the folder keeps its file.
	other, err := httpapi.Serve(dir, "127.0.0.1:0", &apitest.Fake{}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, other)
	closeServer(t, s)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the first server removed the second one's file: %v", err)
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:0": "other devices could reach it", ":0": "other devices could reach it",
		"[::]:0":         "other devices could reach it",
		"example.org:80": "other devices could reach it", "8080": "want HOST:PORT",
		"127.0.0.1:99999": "want a number from 0 to 65535", "127.0.0.1:-1": "want a number from 0 to 65535",
		"unix:" + strings.Repeat("x", 200): "path must be short",
	} {
		dir := t.TempDir()
		_, err := httpapi.Serve(dir, address, &apitest.Fake{}, httpapi.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", address, err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v behind", address, left)
		}
	}
}

// A socket that a killed node left behind does not keep the next one from
// starting; any other file does.
func TestOldSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	first, err := httpapi.Serve(dir, "unix:s", &apitest.Fake{}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, first)
	second, err := httpapi.Serve(dir, "unix:s", &apitest.Fake{}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, second)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := httpapi.Serve(dir, "unix:file", &apitest.Fake{}, httpapi.Options{}); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "file")); string(b) != "precious" {
		t.Errorf("the file now holds %q", b)
	}
}

func TestRawEventStream(t *testing.T) {
	_, s := serve(t, "127.0.0.1:0", &apitest.Fake{OnWatch: func(ctx context.Context, fn func(api.Event) error) error {
		_ = fn(api.Event{At: noon, Kind: "instance", Instance: "ab", Text: "a\nb\u202ec"})
		<-ctx.Done()
		return ctx.Err()
	}}, httpapi.Options{})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Access().URL+"/v1/events", nil)
	req.Header.Set("Authorization", "Bearer "+s.Access().Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("Content-Type %q", kind)
	}
	want := []string{
		"retry: 1000", "",
		`data: {"at":"2025-06-01T12:00:00.123456789Z","kind":"instance","instance":"ab","text":"a\nb\u202ec"}`, "",
	}
	lines := bufio.NewScanner(resp.Body)
	for _, w := range want {
		if !lines.Scan() || lines.Text() != w {
			t.Fatalf("got %q, want %q", lines.Text(), w)
		}
	}
}

// The list of instances comes in pages, each with a link to the next; a client follows them.
func TestPagesOfInstances(t *testing.T) {
	rows := make([]api.InstanceSummary, 2*api.MaxPage+10)
	for i := range rows {
		rows[i] = api.InstanceSummary{ID: fmt.Sprintf("%032x", i), Started: noon.Add(-time.Duration(i) * time.Second)}
	}
	dir := t.TempDir()
	asked := []api.InstanceQuery{}
	s, err := httpapi.Serve(dir, "127.0.0.1:0", paged{&apitest.Fake{}, rows, &asked}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	c := dial(t, dir)
	got, err := c.Instances(t.Context(), true)
	if err != nil || len(got) != len(rows) || got[0].ID != rows[0].ID || got[len(rows)-1].ID != rows[len(rows)-1].ID ||
		len(asked) != 3 {
		t.Errorf("%d instances in %d pages, %v", len(got), len(asked), err)
	}
	for _, q := range asked {
		if !q.All || q.Limit != api.MaxPage {
			t.Errorf("asked for %+v", q)
		}
	}
	page, err := c.InstancePage(t.Context(), api.InstanceQuery{Limit: 2, After: "1 &;>2"})
	if last := asked[len(asked)-1]; err != nil || page.Next != "" || last.All || last.Limit != 2 ||
		last.After != "1 &;>2" {
		t.Errorf("%+v, %v: asked for %+v", page, err, last)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Access().URL+"/v1/instances?limit=1001", nil)
	req.Header.Set("Authorization", "Bearer "+c.Access().Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a page of 1001: %s", resp.Status)
	}
}

// Whoever gives up a list of instances while a page is made has an answer at once.
func TestAListOfInstancesIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	s, err := httpapi.Serve(dir, "127.0.0.1:0", slow{Fake: &apitest.Fake{}}, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	c := dial(t, dir)
	for range 32 { // which of two things is noticed first is chance
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if list, err := c.Instances(ctx, true); err == nil {
			t.Errorf("got %d instances", len(list))
		}
		cancel()
	}
}

// slow makes one page, and the next not before it is given up.
type slow struct{ *apitest.Fake }

func (slow) InstancePage(ctx context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	if q.After == "" {
		return &api.InstancePage{Instances: []api.InstanceSummary{{ID: "1"}}, Next: "2"}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// paged has rows in pages whose marks are their numbers.
type paged struct {
	*apitest.Fake
	rows  []api.InstanceSummary
	asked *[]api.InstanceQuery
}

func (p paged) InstancePage(_ context.Context, q api.InstanceQuery) (*api.InstancePage, error) {
	*p.asked = append(*p.asked, q)
	from, _ := strconv.Atoi(q.After)
	if from == 0 && q.After != "" {
		return &api.InstancePage{}, nil
	}
	to := min(from+q.Limit, len(p.rows))
	page := &api.InstancePage{Instances: p.rows[from:to]}
	if to < len(p.rows) {
		page.Next = strconv.Itoa(to)
	}
	return page, nil
}
