package httpapi

import (
	"net/http"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// People's work.
var (
	worklistRoute = &route{
		name: "worklist", method: http.MethodGet, path: "/v1/worklist", scope: mayRead,
		summary: "The people's tasks that a user at this node has, or may take", reply: []api.Item{},
		query: []parameter{
			{name: "user", doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"},
			{name: "order", doc: "arrival when left out", values: api.Orders},
			{name: "ahead", doc: "true: also what is not ready and can be locked together with what it waits for",
				values: []string{"true", "false"}},
		},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			q := r.URL.Query()
			return svc.Worklist(r.Context(),
				api.WorklistQuery{User: q.Get("user"), Order: q.Get("order"), Ahead: q.Get("ahead") == "true"})
		},
	}
	worklistUnansweredRoute = &route{
		name: "worklistUnanswered", method: http.MethodGet, path: "/v1/worklist/unanswered", scope: mayRead,
		summary: "The partners that did not answer when a user's worklist was asked for last", reply: []string{},
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.WorklistUnanswered(r.Context(), r.URL.Query().Get("user"))
		},
	}
	worklistLostRoute = &route{
		name: "worklistLost", method: http.MethodGet, path: "/v1/worklist/lost", scope: mayRead,
		summary: "The items that a user had and lost in the last seven days, as far as known here",
		reply:   []api.LostItem{},
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.WorklistLost(r.Context(), r.URL.Query().Get("user"))
		},
	}
	transferItemRoute = &route{
		name: "transferItem", method: http.MethodPost, path: "/v1/worklist/transfer", scope: mayWork,
		summary: "Pass an item on to a user or a role, or back, as who has it or decides about its instance",
		body:    api.TransferRequest{}, reply: api.Transferred{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.TransferRequest) (any, error) { return svc.TransferItem(r.Context(), in) })
		},
	}
	itemSheetRoute = &route{
		name: "itemSheet", method: http.MethodGet, path: "/v1/worklist/items/{item}", scope: mayRead,
		summary: "An item with all that is needed to do it", reply: api.ItemSheet{},
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.ItemSheet(r.Context(), api.ItemQuery{User: r.URL.Query().Get("user"), Item: r.PathValue("item")})
		},
	}
	moveItemRoute = &route{
		name: "moveItem", method: http.MethodPost, path: "/v1/worklist/move", scope: mayWork,
		summary: "Put an item elsewhere in a user's list that is ordered by hand", body: api.MoveRequest{},
		reply: []api.Item{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.MoveRequest) (any, error) { return svc.MoveItem(r.Context(), in) })
		},
	}
	claimItemsRoute = &route{
		name: "claimItems", method: http.MethodPost, path: "/v1/worklist/claim", scope: mayWork,
		summary: "Take items for a user at this node, or give them back", body: api.ClaimRequest{}, reply: []api.Item{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ClaimRequest) (any, error) { return svc.ClaimItems(r.Context(), in) })
		},
	}
	finishItemRoute = &route{
		name: "finishItem", method: http.MethodPost, path: "/v1/worklist/finish", scope: mayWork,
		summary: "Hand in what a user at this node made of an item", body: api.ItemResult{}, reply: api.Item{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ItemResult) (any, error) { return svc.FinishItem(r.Context(), in) })
		},
	}
	orderTaskRoute = &route{
		name: "orderTask", method: http.MethodPost, path: "/v1/tasks/order", scope: mayWork,
		summary: "Order what becomes of a task, as who answers for its instance, or administers its workflow",
		body:    api.TaskOrder{}, reply: api.TaskOrdered{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.TaskOrder) (any, error) { return svc.OrderTask(r.Context(), in) })
		},
	}
	decidingRoute = &route{
		name: "deciding", method: http.MethodGet, path: "/v1/instances/{id}/deciding", scope: mayRead,
		summary: "Who decides about an instance, and whether a user at this node does", reply: api.Deciding{},
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Deciding(r.Context(), api.DecidingQuery{User: r.URL.Query().Get("user"), ID: r.PathValue("id")})
		},
	}
	extendDeadlineRoute = &route{
		name: "extendDeadline", method: http.MethodPost, path: "/v1/tasks/extend", scope: mayWork,
		summary: "Give a task a later deadline, as who answers for its instance, or administers its workflow",
		body:    api.ExtendRequest{}, reply: api.Extended{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.ExtendRequest) (any, error) { return svc.ExtendDeadline(r.Context(), in) })
		},
	}
	changeNotifyRoute = &route{
		name: "changeNotify", method: http.MethodPost, path: "/v1/worklist/notify", scope: mayWork,
		summary: "Change whom the items of an instance are offered to, as who answers for it, or administers its workflow",
		body:    api.NotifyRequest{}, reply: api.Notified{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.NotifyRequest) (any, error) { return svc.ChangeNotify(r.Context(), in) })
		},
	}
	adoptResultRoute = &route{
		name: "adoptResult", method: http.MethodPost, path: "/v1/tasks/adopt", scope: mayWork,
		summary: "Adopt a result that is kept, as who answers for its instance, or administers its workflow",
		body:    api.AdoptRequest{}, reply: api.Adopted{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.AdoptRequest) (any, error) { return svc.AdoptResult(r.Context(), in) })
		},
	}
	messagesRoute = &route{
		name: "messages", method: http.MethodGet, path: "/v1/messages", scope: mayRead,
		summary: "What a user at this node is told of instances, the oldest first", reply: []api.Message{},
		query: []parameter{
			{name: "user", doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"},
			{name: "unread", doc: "only those that the user has not read here", values: []string{"true", "false"}},
		},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			q := r.URL.Query()
			return svc.Messages(r.Context(), api.MessagesQuery{User: q.Get("user"), Unread: q.Get("unread") == "true"})
		},
	}
	unreadMessagesRoute = &route{
		name: "unreadMessages", method: http.MethodGet, path: "/v1/messages/unread", scope: mayRead,
		summary: "How many messages a user at this node has not read, as of at most two seconds ago", reply: 0,
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.UnreadMessages(r.Context(), r.URL.Query().Get("user"))
		},
	}
	readMessagesRoute = &route{
		name: "readMessages", method: http.MethodPost, path: "/v1/messages/read", scope: mayWork,
		summary: "Note that a user at this node has read messages", body: api.MessagesRead{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.MessagesRead) (any, error) { return nil, svc.ReadMessages(r.Context(), in) })
		},
	}
	prefetchRoute = &route{
		name: "prefetch", method: http.MethodGet, path: "/v1/worklist/prefetch", scope: mayRead,
		summary: "Which files of a user's items come before they are needed", reply: api.Prefetch{},
		query: []parameter{{name: "user",
			doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Prefetch(r.Context(), r.URL.Query().Get("user"))
		},
	}
	setPrefetchRoute = &route{
		name: "setPrefetch", method: http.MethodPost, path: "/v1/worklist/prefetch", scope: mayWork,
		summary: "Have the files of a user's items come before they are needed, or not", body: api.PrefetchRequest{},
		reply: api.Prefetch{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.PrefetchRequest) (any, error) { return svc.SetPrefetch(r.Context(), in) })
		},
	}
	contactRoute = &route{
		name: "contact", method: http.MethodGet, path: "/v1/contact", scope: mayRead,
		summary: "How this node stands to its partners", reply: api.Contact{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Contact(r.Context()) },
	}
	disconnectRoute = &route{
		name: "disconnect", method: http.MethodPost, path: "/v1/contact/disconnect", scope: mayAll,
		summary: "End all contact with partners, once what users have locked is here",
		body:    api.DisconnectRequest{}, reply: api.Contact{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.DisconnectRequest) (any, error) { return svc.Disconnect(r.Context(), in) })
		},
	}
	reconnectRoute = &route{
		name: "reconnect", method: http.MethodPost, path: "/v1/contact/reconnect", scope: mayAll,
		summary: "Talk to partners again, or stay if this node had not gone yet", reply: api.Contact{},
		handle: func(svc api.Service, r *http.Request) (any, error) { return svc.Reconnect(r.Context()) },
	}
	outboxRoute = &route{
		name: "outbox", method: http.MethodGet, path: "/v1/outbox", scope: mayRead,
		summary: "What users did at this node that nobody else has acknowledged yet", reply: []api.Undelivered{},
		query: []parameter{{name: "user", doc: "A name or a whole ID: what this user did; none: what was done at this node"}},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Outbox(r.Context(), r.URL.Query().Get("user"))
		},
	}
	dropRefusedRoute = &route{
		name: "dropRefused", method: http.MethodPost, path: "/v1/outbox/drop", scope: mayWork,
		summary: "Drop from the outbox a result that was refused", body: api.DropRequest{}, reply: api.Undelivered{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return withBody(r, func(in api.DropRequest) (any, error) { return svc.DropRefused(r.Context(), in) })
		},
	}
)
