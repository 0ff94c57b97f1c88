package api

import "net/http"

// Members, the coordinator, and this partner's place among them.
var (
	evictRoute = &route{
		name: "evict", method: http.MethodPost, path: "/v1/evictions", scope: mayAll,
		summary: "Remove a member for good", body: EvictRequest{}, reply: Evicted{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return withBody(r, func(in EvictRequest) (any, error) { return svc.Evict(r.Context(), in) })
		},
	}
	leaveRoute = &route{
		name: "leave", method: http.MethodPost, path: "/v1/leave", scope: mayAll,
		summary: "Give this node's work on, and have it go when nothing stays", body: LeaveRequest{}, reply: Leaving{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return withBody(r, func(in LeaveRequest) (any, error) { return svc.Leave(r.Context(), in) })
		},
	}
	coordinatorRoute = &route{
		name: "coordinatorStatus", method: http.MethodGet, path: "/v1/coordinator", scope: mayRead,
		summary: "Who coordinates", reply: Coordinator{},
		handle: func(svc Service, r *http.Request) (any, error) { return svc.CoordinatorStatus(r.Context()) },
	}
	electRoute = &route{
		name: "elect", method: http.MethodPost, path: "/v1/coordinator/elect", scope: mayAll,
		summary: "Have this node or another stand for election, and wait for the outcome", body: ElectRequest{}, reply: Coordinator{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return withBody(r, func(in ElectRequest) (any, error) { return svc.Elect(r.Context(), in) })
		},
	}
	resignRoute = &route{
		name: "resign", method: http.MethodPost, path: "/v1/coordinator/resign", scope: mayAll,
		summary: "Give this node's office up",
		handle:  func(svc Service, r *http.Request) (any, error) { return nil, svc.Resign(r.Context()) },
	}
	electorateRoute = &route{
		name: "electorate", method: http.MethodGet, path: "/v1/electorate", scope: mayRead,
		summary: "Who may vote", reply: Electorate{},
		handle: func(svc Service, r *http.Request) (any, error) { return svc.Electorate(r.Context()) },
	}
	setElectorateRoute = &route{
		name: "setElectorate", method: http.MethodPost, path: "/v1/electorate", scope: mayAll,
		summary: "Change who may vote, with the consent of those who may now or by the founder's override",
		body:    ElectorateRequest{}, reply: Electorate{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return withBody(r, func(in ElectorateRequest) (any, error) { return svc.SetElectorate(r.Context(), in) })
		},
	}
	profileRoute = &route{
		name: "profile", method: http.MethodGet, path: "/v1/profile", scope: mayRead,
		summary: "What this partner says about itself", reply: Profile{},
		handle: func(svc Service, r *http.Request) (any, error) { return svc.Profile(r.Context()) },
	}
	setProfileRoute = &route{
		name: "setProfile", method: http.MethodPost, path: "/v1/profile", scope: mayAll,
		summary: "Change what this partner says about itself", body: ProfileChange{}, reply: Profile{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return withBody(r, func(in ProfileChange) (any, error) { return svc.SetProfile(r.Context(), in) })
		},
	}
	resourcesRoute = &route{
		name: "resources", method: http.MethodGet, path: "/v1/resources", scope: mayRead,
		query:   []parameter{{name: "query", doc: "Words that must all be found in kind, name or a holder's name"}},
		summary: "The catalogue: what there is and who has it", reply: []Resource{},
		handle: func(svc Service, r *http.Request) (any, error) {
			return svc.Resources(r.Context(), r.URL.Query().Get("query"))
		},
	}
	doctorRoute = &route{
		name: "doctor", method: http.MethodGet, path: "/v1/doctor", scope: mayRead,
		summary: "What is wrong with this node and its links, and how to mend it", reply: Diagnosis{},
		handle: func(svc Service, r *http.Request) (any, error) { return svc.Doctor(r.Context()) },
	}
)
