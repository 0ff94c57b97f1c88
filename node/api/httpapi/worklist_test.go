package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// What is asked of people's work arrives at the service as it was asked, and so do the answers.
func TestWorklistThroughTheClient(t *testing.T) {
	var saw []any
	item := api.Item{ID: "0011223344556677", Task: "weigh", State: api.ItemReady, Offline: true}
	fake := &apitest.Fake{WorklistFake: apitest.WorklistFake{
		OnWorklist: func(q api.WorklistQuery) ([]api.Item,
			error) {
			saw = append(saw, q)
			return []api.Item{item}, nil
		},
		OnClaimItems: func(r api.ClaimRequest) ([]api.Item,
			error) {
			saw = append(saw, r)
			return []api.Item{item}, nil
		},
		OnItemSheet: func(q api.ItemQuery) (*api.ItemSheet, error) {
			saw = append(saw, q)
			return &api.ItemSheet{Item: item, Fields: []api.Field{{Name: "weight", Type: "integer"}}}, nil
		},
		OnOrderTask: func(r api.TaskOrder) (*api.TaskOrdered, error) {
			saw = append(saw, r)
			return &api.TaskOrdered{ID: r.ID, Task: r.Task, Order: r.Order}, nil
		},
		OnFinishItem: func(r api.ItemResult) (*api.Item, error) { saw = append(saw, r); return &item, nil },
	}}
	dir, _ := serve(t, "127.0.0.1:0", fake, httpapi.Options{})
	c := dial(t, dir)
	asked := []any{
		api.WorklistQuery{}, api.WorklistQuery{User: "bia", Order: api.OrderPriority},
		api.ClaimRequest{User: "bia", Claim: api.ClaimLock, Items: []string{"00", "11"}},
		api.ItemResult{User: "bia", Item: "00", Outputs: map[string]string{"x": "1"}},
		api.ItemResult{Item: "00", Failed: true, Reason: "no scales"},
		api.ItemQuery{Item: "00"}, api.ItemQuery{User: "bia", Item: "00"},
	}
	var got []api.Item
	for _, q := range asked {
		var list []api.Item
		var one *api.Item
		var err error
		switch q := q.(type) {
		case api.WorklistQuery:
			list, err = c.Worklist(t.Context(), q)
		case api.ClaimRequest:
			list, err = c.ClaimItems(t.Context(), q)
		case api.ItemResult:
			one, err = c.FinishItem(t.Context(), q)
		case api.ItemQuery:
			var s *api.ItemSheet
			if s, err = c.ItemSheet(t.Context(), q); err == nil && len(s.Fields) == 1 {
				one = &s.Item
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if one != nil {
			list = []api.Item{*one}
		}
		got = append(got, list...)
	}
	order := api.TaskOrder{User: "ana", ID: "ab", Task: "weigh", Order: api.TaskAgain, Reason: "the scales are here"}
	done, err := c.OrderTask(t.Context(), order)
	if diff := cmp.Diff(&api.TaskOrdered{ID: "ab", Task: "weigh", Order: api.TaskAgain}, done); err != nil || diff != "" {
		t.Errorf("an order is answered with %+v, %v", done, err)
	}
	asked = append(asked, order)
	if diff := cmp.Diff(asked, saw); diff != "" {
		t.Errorf("the service saw (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]api.Item{item, item, item, item, item, item, item}, got); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
}
