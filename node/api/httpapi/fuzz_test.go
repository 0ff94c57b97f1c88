package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whatever is sent with the right token: the server does not fail, and what it
// refuses it refuses with a code and a message.
func FuzzServer(f *testing.F) {
	server := httpapi.NewServer(obliging(), "token", httpapi.Options{})
	for _, s := range [][4]string{
		{"GET", "/v1/instances/x", "all=true", ""}, {"POST", "/v1/instances", "", `{"workflow":"w","input":{"a":"b"}}`},
		{"POST", "/v1/tasks/finish", "", `{"id":"x","task":"t","failed":true}`},
		{"POST", "/v1/invitations", "", `{"expires":1e99}`},
		{"DELETE", "/v1/workflows/a%2Fb", "", ""}, {"GET", "/v1/instances/x/diagram", "format=dot", ""},
		{"PUT", "//", "%", "{"},
	} {
		f.Add(s[0], s[1], s[2], s[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target, err := url.Parse("http://localhost" + path)
		if err != nil || strings.HasPrefix(path, "/v1/events") || !validMethod(method) {
			return // never gets as far as the server, or is a stream
		}
		target.RawQuery = query
		req := httptest.NewRequest(http.MethodGet, "http://localhost/", strings.NewReader(body))
		req.Method, req.URL, req.RequestURI = method, target, ""
		req.Header.Set("Authorization", "Bearer token")
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, req)
		if w.Code >= 500 {
			t.Errorf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
		}
		if w.Code >= 400 {
			var e api.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || e.Message == "" {
				t.Errorf("%s %s: %d without a message: %s", method, path, w.Code, w.Body)
			}
		}
	})
}

func validMethod(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// obliging is a service that does whatever it is asked, and has nothing.
func obliging() *apitest.Fake {
	f := &apitest.Fake{
		OnStatus:         func() (*api.Status, error) { return &api.Status{}, nil },
		OnPartners:       func() ([]api.Partner, error) { return nil, nil },
		OnInvite:         func(api.InviteRequest) (*api.Invitation, error) { return &api.Invitation{}, nil },
		OnAddWorkflow:    func(string, []byte) (*api.Workflow, error) { return &api.Workflow{}, nil },
		OnForeseeAmend:   func(string, string, []byte) (*api.Amendment, error) { return &api.Amendment{}, nil },
		OnAmend:          func(api.AmendRequest) (*api.Amended, error) { return &api.Amended{}, nil },
		OnWorkflows:      func() ([]api.Workflow, error) { return nil, nil },
		OnWorkflow:       func(string) (*api.Workflow, error) { return &api.Workflow{}, nil },
		OnRemoveWorkflow: func(string) ([]api.Workflow, error) { return nil, nil },
		OnStart:          func(api.StartRequest) (*api.Started, error) { return &api.Started{}, nil },
		OnInstances:      func(bool) ([]api.InstanceSummary, error) { return nil, nil },
		OnShow: func(string) (*api.Instance, error) {
			return &api.Instance{Tasks: []api.Task{{State: workflow.Ready}}}, nil
		},
		OnLog:        func(string) ([]api.LogEntry, error) { return nil, nil },
		OnDiagram:    func(string, string) ([]byte, error) { return nil, nil },
		OnCancel:     func(string, string) error { return nil },
		OnWriteOff:   func(string, string, bool) error { return nil },
		OnBeginTask:  func(api.BeginRequest) error { return nil },
		OnFinishTask: func(api.FinishRequest) error { return nil },
		WorkFake: apitest.WorkFake{
			OnRejectTask: func(api.RejectRequest) (*api.Passed, error) { return &api.Passed{}, nil },
		},
	}
	f.OnEvict = func(api.EvictRequest) (*api.Evicted, error) { return &api.Evicted{}, nil }
	f.OnLeave = func(api.LeaveRequest) (*api.Leaving, error) { return &api.Leaving{}, nil }
	f.OnCoordinatorStatus = func() (*api.Coordinator, error) { return &api.Coordinator{}, nil }
	f.OnElect = func(api.ElectRequest) (*api.Coordinator, error) { return &api.Coordinator{}, nil }
	f.OnResign = func() error { return nil }
	f.OnElectorate = func() (*api.Electorate, error) { return &api.Electorate{}, nil }
	f.OnSetElectorate = func(api.ElectorateRequest) (*api.Electorate, error) { return &api.Electorate{}, nil }
	f.OnProfile = func() (*api.Profile, error) { return &api.Profile{}, nil }
	f.OnSetProfile = func(api.ProfileChange) (*api.Profile, error) { return &api.Profile{}, nil }
	f.OnResources = func(string) ([]api.Resource, error) { return nil, nil }
	f.OnDoctor = func() (*api.Diagnosis, error) { return &api.Diagnosis{}, nil }
	f.OnRejectTask = func(api.RejectRequest) (*api.Passed, error) { return &api.Passed{}, nil }
	f.OnAddData = func(string, []byte, api.DataTerms) (*api.DataSet, error) { return &api.DataSet{}, nil }
	f.OnRemoveData = func(string) error { return nil }
	f.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) { return nil, nil }
	f.OnItemSheet = func(api.ItemQuery) (*api.ItemSheet, error) { return &api.ItemSheet{}, nil }
	f.OnClaimItems = func(api.ClaimRequest) ([]api.Item, error) { return nil, nil }
	f.OnTransferItem = func(api.TransferRequest) (*api.Transferred, error) { return &api.Transferred{}, nil }
	f.OnAdoptResult = func(api.AdoptRequest) (*api.Adopted, error) { return &api.Adopted{}, nil }
	f.OnHistory = func(string) ([]api.DataState, error) { return nil, nil }
	f.OnChangeNotify = func(api.NotifyRequest) (*api.Notified, error) { return &api.Notified{}, nil }
	f.OnExtendDeadline = func(api.ExtendRequest) (*api.Extended, error) { return &api.Extended{}, nil }
	f.OnOrderTask = func(api.TaskOrder) (*api.TaskOrdered, error) { return &api.TaskOrdered{}, nil }
	f.OnItemFile = func(api.ItemQuery, string) (*api.File, io.ReadCloser, error) {
		return &api.File{}, io.NopCloser(strings.NewReader("")), nil
	}
	f.OnMoveItem = func(api.MoveRequest) ([]api.Item, error) { return nil, nil }
	f.OnPrefetch = func(string) (*api.Prefetch, error) { return &api.Prefetch{}, nil }
	f.OnSetPrefetch = func(api.PrefetchRequest) (*api.Prefetch, error) { return &api.Prefetch{}, nil }
	f.OnDisconnect = func(api.DisconnectRequest) (*api.Contact, error) { return &api.Contact{}, nil }
	f.OnReconnect = func() (*api.Contact, error) { return &api.Contact{}, nil }
	f.OnContact = func() (*api.Contact, error) { return &api.Contact{}, nil }
	f.OnOutbox = func() ([]api.Undelivered, error) { return nil, nil }
	f.OnDropRefused = func(api.DropRequest) (*api.Undelivered, error) { return &api.Undelivered{}, nil }
	f.OnMessages = func(api.MessagesQuery) ([]api.Message, error) { return nil, nil }
	f.OnReadMessages = func(api.MessagesRead) error { return nil }
	f.OnFinishItem = func(api.ItemResult) (*api.Item, error) { return &api.Item{}, nil }
	f.OnUsers = func() ([]api.User, error) { return nil, nil }
	f.OnAddUser = func(api.UserRequest) (*api.SignInToken, error) { return &api.SignInToken{}, nil }
	f.OnRemoveUser = func(string) (*api.RemovedUser, error) { return &api.RemovedUser{}, nil }
	f.OnSignInUser = func(string) (*api.SignedIn, error) { return &api.SignedIn{}, nil }
	f.OnSignOutUser = func(api.SignOutRequest) (*api.SignedOut, error) { return &api.SignedOut{}, nil }
	f.OnLinkUser = func(string, time.Duration) (*api.SignInToken, error) { return &api.SignInToken{}, nil }
	f.OnRoles = func() ([]api.Role, error) { return nil, nil }
	f.OnGrantRole = func(api.RoleRequest) (*api.UserRoles, error) { return &api.UserRoles{}, nil }
	f.OnRevokeRole = func(api.RoleRequest) (*api.UserRoles, error) { return &api.UserRoles{}, nil }
	f.OnTakeJob = func(api.Program, api.TakeRequest) (*api.Job, error) { return nil, nil }
	f.OnWatchJobs = func(context.Context, api.Program, workflow.ApplicationName) (api.JobWatch, error) {
		return nil, api.Errorf(api.Refused, "there is nothing to watch")
	}
	f.OnKeepJob = func(api.Program, string, api.KeepRequest) (*api.Lease, error) { return &api.Lease{}, nil }
	f.OnCompleteJob = func(api.Program, string, api.CompleteRequest) error { return nil }
	f.OnFailJob = func(api.Program, string, api.FailRequest) error { return nil }
	f.OnGiveBackJob = func(api.Program, string) error { return nil }
	f.OnJobs = func() ([]api.PooledJob, error) { return nil, nil }
	return f
}

// operations are the methods and paths of the OpenAPI document, but for the
// stream of events.
func operations(f *testing.F) (out [][2]string) {
	f.Helper()
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		f.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		f.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			if path != "/v1/events" && method != "parameters" {
				out = append(out, [2]string{strings.ToUpper(method), path})
			}
		}
	}
	return out
}

// FuzzRoutes has every route decode what it is sent: it answers, or refuses with
// a code and a message.
func FuzzRoutes(f *testing.F) {
	all := operations(f)
	server := httpapi.NewServer(obliging(), "token", httpapi.Options{})
	for i := range all {
		f.Add(uint8(i), "3f9a", "", `{}`)
		f.Add(uint8(i), "../..", "all=true", `{"set":["a"],"lease":1e400,"partner":7,"suitability":{"a":"b"}}`)
		f.Add(uint8(i), "%2f", "format=svg&format=dot", `[[[[{"a":null}]]]]`)
	}
	param := regexp.MustCompile(`\{[^}]*\}`)
	f.Fuzz(func(t *testing.T, which uint8, id, query, body string) {
		op := all[int(which)%len(all)]
		req := httptest.NewRequest(op[0], "http://localhost/", strings.NewReader(body))
		req.URL.Path, req.URL.RawQuery, req.RequestURI = param.ReplaceAllLiteralString(op[1], id), query, ""
		req.Header.Set("Authorization", "Bearer token")
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, req)
		var e api.Error
		switch {
		case w.Code >= 500:
			t.Errorf("%s %s?%s: %d %s", op[0], req.URL.Path, query, w.Code, w.Body)
		case w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Code == "" || e.Message == ""):
			t.Errorf("%s %s: %d without a message: %s", op[0], req.URL.Path, w.Code, w.Body)
		}
	})
}

// FuzzReply has the client read whatever answers in the node's place: it returns
// an error that can be shown, or what could be read.
func FuzzReply(f *testing.F) {
	var mu sync.Mutex
	status, reply := 200, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(reply))
	}))
	f.Cleanup(s.Close)
	dir := f.TempDir()
	access := fmt.Sprintf(`{"address":%q,"url":%q,"token":"t","pid":1}`, strings.TrimPrefix(s.URL, "http://"), s.URL)
	if err := os.WriteFile(filepath.Join(dir, api.AccessFile), []byte(access), 0o600); err != nil {
		f.Fatal(err)
	}
	c, err := httpapi.Dial(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(200), `{"id":"ab","tasks":[{"state":"READY","started":"2025-06-01T12:00:00Z"}],"told":{"by":{}}}`)
	f.Add(uint16(200), "data: {\"kind\":\"instance\"}\n\n: alive\n\ndata: 7\n\n")
	f.Add(uint16(409), `{"code":"refused","message":"no"}`)
	f.Add(uint16(500), "<html>")
	f.Fuzz(func(t *testing.T, code uint16, body string) {
		mu.Lock()
		status, reply = 200+int(code)%400, body
		mu.Unlock()
		_, show := c.Show(t.Context(), "ab")
		_, list := c.Instances(t.Context(), true)
		brief, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond,
			errEnough) // a broken stream is mended, after a while
		watch := c.Watch(brief, func(api.Event) error { return errEnough })
		cancel()
		for _, err := range []error{show, list, watch} {
			var e *api.Error
			if err != nil && !errors.Is(err, errEnough) && (!errors.As(err, &e) || e.Message == "" && e.Code == "") {
				t.Errorf("%d %q: the client says %v", 200+int(code)%400, body, err)
			}
		}
	})
}

var errEnough = errors.New("enough")
