package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// What goes through the client arrives at the service, and its answer comes back.
func TestRejectTaskThroughTheClient(t *testing.T) {
	var saw api.RejectRequest
	fake := &apitest.Fake{WorkFake: apitest.WorkFake{OnRejectTask: func(r api.RejectRequest) (*api.Passed, error) {
		saw = r
		return &api.Passed{Task: r.Task, Partner: "engine-8", Reason: "the only one able"}, nil
	}}}
	dir, _ := serve(t, "127.0.0.1:0", fake, httpapi.Options{})
	sent := api.RejectRequest{ID: "ab", Task: "procedure-1", Reason: "no water"}
	got, err := dial(t, dir).RejectTask(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, saw); diff != "" {
		t.Errorf("the service saw (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&api.Passed{Task: "procedure-1", Partner: "engine-8", Reason: "the only one able"}, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}
