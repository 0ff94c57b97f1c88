package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// route is one row of the table from which the server's handlers, the client's
// requests and the test of the OpenAPI document are made.
type route struct {
	name    string // operation ID
	method  string
	path    string // parts in braces are parameters
	query   []parameter
	summary string
	body    any    // a zero value of the JSON body; source: the definition as it is; nil: none
	reply   any    // a zero value of the JSON reply; picture; nil: none
	none    string // what status 204 means, of a route that may have no reply
	example string // of a body, in JSON
	answer  string // an example of a reply, in JSON
	scope   scope
	local   bool // this machine's programs need no token
	large   bool // its body may be of any length
	// Either handle answers with JSON, or raw writes the answer itself.
	handle func(svc api.Service, r *http.Request) (any, error)
	raw    func(h *handler, w http.ResponseWriter, r *http.Request) error
}

// parameter is an optional parameter in a route's query.
type parameter struct {
	name, doc string
	values    []string // allowed; nil: any
	must      bool     // it must be given
}

// source is a definition's text as a request's body.
type source []byte

// picture is a drawing as a reply.
type picture struct {
	kind string // media type
	data []byte
}

// at returns the route's path with its parameters filled in, in order.
func (rt *route) at(params ...string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(rt.path[1:], "/") {
		b.WriteByte('/')
		if strings.HasPrefix(part, "{") {
			part, params = url.PathEscape(params[0]), params[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// routes is the whole interface. It is filled in init because the handlers of
// some routes read it.
var routes []*route

func init() {
	routes = []*route{
		statusRoute, partnersRoute, inviteRoute, evictRoute, leaveRoute,
		coordinatorRoute, electRoute, resignRoute, electorateRoute, setElectorateRoute,
		profileRoute, setProfileRoute, resourcesRoute, doctorRoute,
		addWorkflowRoute, workflowsRoute, workflowRoute, removeWorkflowRoute,
		startRoute, instancesRoute, refreshRoute, showRoute, logRoute, historyRoute, foreseeRecoveryRoute,
		foreseeAmendmentRoute, amendInstanceRoute, diagramRoute,
		cancelRoute, writeOffRoute, beginRoute, finishRoute,
		usersRoute, addUserRoute, removeUserRoute, signInUserRoute, signOutUserRoute, linkUserRoute,
		rolesRoute, grantRoleRoute, revokeRoleRoute,
		worklistRoute, worklistUnansweredRoute, worklistLostRoute, itemSheetRoute, itemFileRoute, moveItemRoute,
		claimItemsRoute, transferItemRoute,
		finishItemRoute, outboxRoute, dropRefusedRoute, contactRoute, disconnectRoute, reconnectRoute, prefetchRoute, setPrefetchRoute,
		messagesRoute, unreadMessagesRoute, readMessagesRoute,
		putFileRoute, dataRoute, fileRoute,
		rejectRoute, decidingRoute, orderTaskRoute, extendDeadlineRoute, changeNotifyRoute, adoptResultRoute,
		addDataRoute, removeDataRoute, signInRoute,
		openLANRoute, closeLANRoute,
		takeJobRoute, jobEventsRoute, keepJobRoute, completeJobRoute, failJobRoute, giveBackJobRoute, jobsRoute,
		tokensRoute, addTokenRoute, removeTokenRoute,
		eventsRoute, openAPIRoute, healthRoute, readyRoute, metricsRoute,
	}
}

// The node and its mesh.
var (
	statusRoute = &route{
		name: "status", method: http.MethodGet, path: "/v1/status", scope: mayRead,
		summary: "Who this node is and how it fares", reply: api.Status{},
		raw: (*handler).status,
	}
	partnersRoute = &route{
		name: "partners", method: http.MethodGet, path: "/v1/partners", scope: mayRead,
		summary: "The partner list", reply: []api.Partner{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Partners(r.Context()) },
	}
	inviteRoute = &route{
		name: "invite", method: http.MethodPost, path: "/v1/invitations", scope: mayAll,
		summary: "Make an invitation to join the mesh", body: api.InviteRequest{}, reply: api.Invitation{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.InviteRequest) (any, error) { return svc.Invite(r.Context(), in) })
		},
	}
)

// Definitions.
var (
	addWorkflowRoute = &route{
		name: "addWorkflow", method: http.MethodPost, path: "/v1/workflows", scope: mayAll,
		query:   []parameter{{name: "file", doc: "The file's name, for error messages"}},
		summary: "Check a definition and spread it to the mesh", body: source{}, reply: api.Workflow{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			src, err := readBody(r)
			if err != nil {
				return nil, err
			}
			return svc.AddWorkflow(r.Context(), r.URL.Query().Get("file"), src)
		},
	}
	workflowsRoute = &route{
		name: "workflows", method: http.MethodGet, path: "/v1/workflows", scope: mayRead,
		summary: "The definitions that the node holds", reply: []api.Workflow{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Workflows(r.Context()) },
	}
	workflowRoute = &route{
		name: "workflow", method: http.MethodGet, path: "/v1/workflows/{ref}", scope: mayRead,
		summary: "A definition: NAME, NAME@VERSION or NAME@HASH", reply: api.Workflow{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Workflow(r.Context(), r.PathValue("ref"))
		},
	}
	removeWorkflowRoute = &route{
		name: "removeWorkflow", method: http.MethodDelete, path: "/v1/workflows/{ref}", scope: mayAll,
		summary: "Take definitions off the list: all of NAME, or NAME@VERSION or NAME@HASH", reply: []api.Workflow{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.RemoveWorkflow(r.Context(), r.PathValue("ref"))
		},
	}
)

// Instances.
var (
	startRoute = &route{
		name: "start", method: http.MethodPost, path: "/v1/instances", scope: mayWork,
		summary: "Start an instance", body: api.StartRequest{}, reply: api.Started{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.StartRequest) (any, error) { return svc.Start(r.Context(), in) })
		},
	}
	instancesRoute = &route{
		name: "instances", method: http.MethodGet, path: "/v1/instances", scope: mayRead,
		query: []parameter{
			{name: "all", doc: "Finished instances too", values: []string{"true", "false"}},
			{name: "limit", doc: "How many at most: 1 to 1000, 500 if it is left out"},
			{name: "after", doc: "Where the page begins, as the page before it says"},
		},
		summary: "The instances that run or wait for an order, or all, newest first: those that the node takes part in and, at the coordinator, the whole mesh's; " +
			"last those of which only a summary is left. A page at a time: where there are more, the header Link has the next one (rel=\"next\")",
		reply: []api.InstanceSummary{},
		raw:   (*handler).instances,
	}
	showRoute = &route{
		name: "show", method: http.MethodGet, path: "/v1/instances/{id}", scope: mayRead,
		summary: "One instance as this node knows it", reply: api.Instance{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Show(r.Context(), r.PathValue("id"))
		},
	}
	refreshRoute = &route{
		name: "refresh", method: http.MethodGet, path: "/v1/instances/{id}/refresh", scope: mayRead,
		summary: "Ask the partners who hold what is not done, and can be reached, what they have",
		reply:   api.Refreshed{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Refresh(r.Context(), r.PathValue("id"))
		},
	}
	logRoute = &route{
		name: "log", method: http.MethodGet, path: "/v1/instances/{id}/log", scope: mayRead,
		summary: "The facts of an instance, readable", reply: []api.LogEntry{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Log(r.Context(), r.PathValue("id"))
		},
	}
	historyRoute = &route{
		name: "history", method: http.MethodGet, path: "/v1/instances/{id}/history", scope: mayRead,
		summary: "The data states of an instance that is driven by its data, in order", reply: []api.DataState{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.History(r.Context(), r.PathValue("id"))
		},
	}
	foreseeRecoveryRoute = &route{
		name: "foreseeRecovery", method: http.MethodPost, path: "/v1/instances/{id}/recovery/outlook", scope: mayWork,
		query:   []parameter{{name: "user", doc: "Who would order it: a user at this node, or the partner"}},
		summary: "What a step would lead to that recovers an interrupted instance; nothing is changed",
		body:    api.RecoveryStep{}, reply: api.Outlook{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.RecoveryStep) (any, error) {
				return svc.ForeseeRecovery(r.Context(), r.URL.Query().Get("user"), r.PathValue("id"), in)
			})
		},
	}
	foreseeAmendmentRoute = &route{
		name: "foreseeAmendment", method: http.MethodPost, path: "/v1/instances/{id}/amendment/outlook", scope: mayWork,
		query: []parameter{
			{name: "file", doc: "The file's name, for error messages"},
			{name: "user", doc: "Who would change it: a user at this node, or the partner"},
		},
		summary: "What an instance would do with a changed definition; nothing is changed",
		body:    source{}, reply: api.Amendment{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			src, err := readBody(r)
			if err != nil {
				return nil, err
			}
			return svc.ForeseeAmendment(r.Context(), api.AmendRequest{
				User: r.URL.Query().Get("user"), ID: r.PathValue("id"), File: r.URL.Query().Get("file"), Source: string(src),
			})
		},
	}
	amendInstanceRoute = &route{
		name: "amendInstance", method: http.MethodPost, path: "/v1/instances/{id}/amendment", scope: mayWork,
		summary: "Change the definition by which an instance runs, as who answers for it, or administers its workflow",
		body:    api.AmendRequest{}, reply: api.Amended{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.AmendRequest) (any, error) {
				in.ID = r.PathValue("id")
				return svc.AmendInstance(r.Context(), in)
			})
		},
	}
	diagramRoute = &route{
		name: "diagram", method: http.MethodGet, path: "/v1/instances/{id}/diagram", scope: mayRead,
		query: []parameter{{name: "format", doc: "svg when left out",
			values: []string{
				"svg", "svg-en", "svg-pt-BR", "svg-tall", "svg-tall-en", "svg-tall-pt-BR", "mermaid", "dot", "gantt",
				"gantt-en", "gantt-pt-BR",
			}}},
		summary: "A drawing of an instance; gantt: of when each task ran, as SVG", reply: picture{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			format := r.URL.Query().Get("format")
			if format == "" {
				format = "svg"
			}
			data, err := svc.Diagram(r.Context(), r.PathValue("id"), format)
			return picture{kind: pictureKinds[format], data: data}, err
		},
	}
	cancelRoute = &route{
		name: "cancel", method: http.MethodPost, path: "/v1/instances/{id}/cancel", scope: mayWork,
		summary: "Cancel an instance", body: cancelRequest{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in cancelRequest) (any, error) {
				return nil, svc.Cancel(r.Context(), r.PathValue("id"), in.Reason)
			})
		},
	}
	writeOffRoute = &route{
		name: "writeOff", method: http.MethodPost, path: "/v1/instances/{id}/write-off", scope: mayAll,
		summary: "Wait no longer for a partner before superseded work is undone", body: writeOffRequest{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in writeOffRequest) (any, error) {
				return nil, svc.WriteOff(r.Context(), r.PathValue("id"), in.Partner, in.Check)
			})
		},
	}
	beginRoute = &route{
		name: "beginTask", method: http.MethodPost, path: "/v1/tasks/begin", scope: mayWork,
		summary: "Note that a person began a task that this node holds", body: api.BeginRequest{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.BeginRequest) (any, error) { return nil, svc.BeginTask(r.Context(), in) })
		},
	}
	finishRoute = &route{
		name: "finishTask", method: http.MethodPost, path: "/v1/tasks/finish", scope: mayWork,
		summary: "Complete or fail a person's task that this node holds", body: api.FinishRequest{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.FinishRequest) (any, error) { return nil, svc.FinishTask(r.Context(), in) })
		},
	}
)

// What programs need besides.
var (
	eventsRoute = &route{
		name: "events", method: http.MethodGet, path: "/v1/events", scope: mayRead,
		summary: "Server-sent events: something changed; a gap says that some are not told, and is the first", reply: api.Event{}, raw: (*handler).events,
	}
	openAPIRoute = &route{
		name: "openAPI", method: http.MethodGet, path: "/v1/openapi.json", scope: everybody,
		summary: "This document", reply: map[string]any{}, raw: (*handler).openAPI,
	}
	healthRoute = &route{
		name: "health", method: http.MethodGet, path: "/healthz", scope: everybody,
		summary: "The node is alive", raw: (*handler).health,
	}
	readyRoute = &route{
		name: "ready", method: http.MethodGet, path: "/readyz", scope: everybody,
		summary: "The node goes on with its instances, knows which of their jobs workers have, and takes part in its mesh", raw: (*handler).ready,
	}
)

// writeOffRequest writes a partner off.
type writeOffRequest struct {
	Partner string `json:"partner"`         // name or whole ID
	Check   bool   `json:"check,omitempty"` // only say whether it may; nothing is done
}

// cancelRequest cancels an instance.
type cancelRequest struct {
	Reason string `json:"reason,omitempty"` // for people, kept in the instance's log
}

var pictureKinds = map[string]string{
	"svg": "image/svg+xml", "svg-en": "image/svg+xml", "svg-pt-BR": "image/svg+xml",
	"svg-tall": "image/svg+xml", "svg-tall-en": "image/svg+xml", "svg-tall-pt-BR": "image/svg+xml",
	"gantt": "image/svg+xml", "gantt-en": "image/svg+xml", "gantt-pt-BR": "image/svg+xml",
	"mermaid": "text/vnd.mermaid",
	"dot":     "text/vnd.graphviz",
}
