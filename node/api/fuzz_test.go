package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whatever is sent with the right token: the server does not fail, and what it
// refuses it refuses with a code and a message.
func FuzzServer(f *testing.F) {
	nothing := &apitest.Fake{
		OnStatus:         func() (*api.Status, error) { return &api.Status{}, nil },
		OnPartners:       func() ([]api.Partner, error) { return nil, nil },
		OnInvite:         func(api.InviteRequest) (*api.Invitation, error) { return &api.Invitation{}, nil },
		OnAddWorkflow:    func(string, []byte) (*api.Workflow, error) { return &api.Workflow{}, nil },
		OnWorkflows:      func() ([]api.Workflow, error) { return nil, nil },
		OnWorkflow:       func(string) (*api.Workflow, error) { return &api.Workflow{}, nil },
		OnRemoveWorkflow: func(string) error { return nil },
		OnStart:          func(api.StartRequest) (*api.Started, error) { return &api.Started{}, nil },
		OnInstances:      func(bool) ([]api.InstanceSummary, error) { return nil, nil },
		OnShow: func(string) (*api.Instance, error) {
			return &api.Instance{Tasks: []api.Task{{State: workflow.Ready}}}, nil
		},
		OnLog:        func(string) ([]api.LogEntry, error) { return nil, nil },
		OnDiagram:    func(string, string) ([]byte, error) { return nil, nil },
		OnCancel:     func(string, string) error { return nil },
		OnFinishTask: func(api.FinishRequest) error { return nil },
	}
	server := api.NewServer(nothing, "token", api.Options{})
	for _, s := range [][4]string{
		{"GET", "/v1/instances/x", "all=true", ""}, {"POST", "/v1/instances", "", `{"workflow":"w","input":{"a":"b"}}`},
		{"POST", "/v1/tasks/finish", "", `{"id":"x","task":"t","failed":true}`}, {"POST", "/v1/invitations", "", `{"expires":1e99}`},
		{"DELETE", "/v1/workflows/a%2Fb", "", ""}, {"GET", "/v1/instances/x/diagram", "format=dot", ""}, {"PUT", "//", "%", "{"},
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
