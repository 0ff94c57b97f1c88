package httpapi

import (
	"github.com/mutirao-mesh/mutirao/node/api"
)

import "net/http"

// Members, the coordinator, and this partner's place among them.
var (
	evictRoute = &route{
		name: "evict", method: http.MethodPost, path: "/v1/evictions", scope: mayAll,
		summary: "Remove a member for good", body: api.EvictRequest{}, reply: api.Evicted{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.EvictRequest) (any, error) { return svc.Evict(r.Context(), in) })
		},
	}
	leaveRoute = &route{
		name: "leave", method: http.MethodPost, path: "/v1/leave", scope: mayAll,
		summary: "Give this node's work on, and have it go when nothing stays", body: api.LeaveRequest{},
		reply: api.Leaving{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.LeaveRequest) (any, error) { return svc.Leave(r.Context(), in) })
		},
	}
	coordinatorRoute = &route{
		name: "coordinatorStatus", method: http.MethodGet, path: "/v1/coordinator", scope: mayRead,
		summary: "Who coordinates", reply: api.Coordinator{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.CoordinatorStatus(r.Context()) },
	}
	electRoute = &route{
		name: "elect", method: http.MethodPost, path: "/v1/coordinator/elect", scope: mayAll,
		summary: "Have this node or another stand for election, and wait for the outcome", body: api.ElectRequest{},
		reply: api.Coordinator{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ElectRequest) (any, error) { return svc.Elect(r.Context(), in) })
		},
	}
	resignRoute = &route{
		name: "resign", method: http.MethodPost, path: "/v1/coordinator/resign", scope: mayAll,
		summary: "Give this node's office up",
		handle:  func(svc api.Service, r *http.Request) (any, error) { return nil, svc.Resign(r.Context()) },
	}
	electorateRoute = &route{
		name: "electorate", method: http.MethodGet, path: "/v1/electorate", scope: mayRead,
		summary: "Who may vote", reply: api.Electorate{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Electorate(r.Context()) },
	}
	setElectorateRoute = &route{
		name: "setElectorate", method: http.MethodPost, path: "/v1/electorate", scope: mayAll,
		summary: "Change who may vote, with the consent of those who may now or by the founder's override",
		body:    api.ElectorateRequest{}, reply: api.Electorate{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ElectorateRequest) (any,
				error) {
				return svc.SetElectorate(r.Context(), in)
			})
		},
	}
	profileRoute = &route{
		name: "profile", method: http.MethodGet, path: "/v1/profile", scope: mayRead,
		summary: "What this partner says about itself", reply: api.Profile{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Profile(r.Context()) },
	}
	setProfileRoute = &route{
		name: "setProfile", method: http.MethodPost, path: "/v1/profile", scope: mayAll,
		summary: "Change what this partner says about itself", body: api.ProfileChange{}, reply: api.Profile{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ProfileChange) (any, error) { return svc.SetProfile(r.Context(), in) })
		},
	}
	resourcesRoute = &route{
		name: "resources", method: http.MethodGet, path: "/v1/resources", scope: mayRead,
		query:   []parameter{{name: "query", doc: "Words that must all be found in kind, name or a holder's name"}},
		summary: "The catalogue: what there is and who has it", reply: []api.Resource{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Resources(r.Context(), r.URL.Query().Get("query"))
		},
	}
	doctorRoute = &route{
		name: "doctor", method: http.MethodGet, path: "/v1/doctor", scope: mayRead,
		summary: "What is wrong with this node and its links, and how to mend it", reply: api.Diagnosis{},
		raw: (*handler).doctor,
	}
)
