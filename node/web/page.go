// Package web is the page where people work with their node: what they have to do,
// the mesh, instances and why work is where it is.
//
// It is rendered here and can be used without JavaScript; with a little of it,
// what changes is shown as it changes. Everything that it needs is embedded, so
// it works wherever the node does, without any network. It asks the node by a few
// methods of api.Service, and knows nothing else of it: whatever it shows or does,
// any program can ask for.
//
// Promises: no text of a partner becomes markup or script (html/template, a
// strict Content-Security-Policy, drawings as images); nothing is told to a
// browser that has not signed in; nothing is changed but by a form that the server
// found to be good (httpapi.Session), in the name of the session's user; a form that
// comes twice is carried out once; of a form that is not carried out nothing that was
// typed is lost.
//
// It imports internal/once, internal/plain, node/api, node/api/httpapi, partition/aptitude,
// partition/study, workflow and workflow/diagram; node/assemble imports it.
package web

import (
	"context"
	"embed"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

//go:embed static
var static embed.FS

// Node is what the page asks of its node.
type Node interface {
	worker
	Status(ctx context.Context) (*api.Status, error)
	Partners(ctx context.Context) ([]api.Partner, error)
	CoordinatorStatus(ctx context.Context) (*api.Coordinator, error)
	Electorate(ctx context.Context) (*api.Electorate, error)
	Workflows(ctx context.Context) ([]api.Workflow, error)
	Workflow(ctx context.Context, ref string) (*api.Workflow, error)
	Instances(ctx context.Context, all bool) ([]api.InstanceSummary, error)
	Refresh(ctx context.Context, id string) (*api.Refreshed, error)
	Show(ctx context.Context, id string) (*api.Instance, error)
	Log(ctx context.Context, id string) ([]api.LogEntry, error)
	History(ctx context.Context, id string) ([]api.DataState, error)
	ForeseeRecovery(ctx context.Context, user, id string, step api.RecoveryStep) (*api.Outlook, error)
	Deciding(ctx context.Context, q api.DecidingQuery) (*api.Deciding, error)
	Diagram(ctx context.Context, id, format string) ([]byte, error)
	Data(ctx context.Context, id string) ([]api.DataItem, error)
	File(ctx context.Context, id string, item workflow.DataName) (*api.File, io.ReadCloser, error)
}

// worker is what the page asks of its node for the people who work with it. Start, ClaimItems, FinishItem,
// OrderTask, TransferItem, AdoptResult, ExtendDeadline, SetPrefetch, Disconnect, Reconnect, DropRefused and ReadMessages
// are all by which the page changes anything.
type worker interface {
	Worklist(ctx context.Context, q api.WorklistQuery) ([]api.Item, error)
	WorklistUnanswered(ctx context.Context, user string) ([]string, error)
	WorklistLost(ctx context.Context, user string) ([]api.LostItem, error)
	ItemSheet(ctx context.Context, q api.ItemQuery) (*api.ItemSheet, error)
	Outbox(ctx context.Context, user string) ([]api.Undelivered, error)
	DropRefused(ctx context.Context, r api.DropRequest) (*api.Undelivered, error)
	Messages(ctx context.Context, q api.MessagesQuery) ([]api.Message, error)
	UnreadMessages(ctx context.Context, user string) (int, error)
	ReadMessages(ctx context.Context, r api.MessagesRead) error
	ClaimItems(ctx context.Context, r api.ClaimRequest) ([]api.Item, error)
	ItemFile(ctx context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error)
	FinishItem(ctx context.Context, r api.ItemResult) (*api.Item, error)
	Start(ctx context.Context, r api.StartRequest) (*api.Started, error)
	OrderTask(ctx context.Context, r api.TaskOrder) (*api.TaskOrdered, error)
	TransferItem(ctx context.Context, r api.TransferRequest) (*api.Transferred, error)
	AdoptResult(ctx context.Context, r api.AdoptRequest) (*api.Adopted, error)
	ExtendDeadline(ctx context.Context, r api.ExtendRequest) (*api.Extended, error)
	Users(ctx context.Context) ([]api.User, error)
	Prefetch(ctx context.Context, user string) (*api.Prefetch, error)
	SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error)
	Contact(ctx context.Context) (*api.Contact, error)
	Disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error)
	Reconnect(ctx context.Context) (*api.Contact, error)
}

// Page is the web page of one node.
type Page struct {
	node    Node
	log     *slog.Logger
	mux     *http.ServeMux
	notes   *notes
	studies studies
}

var _ httpapi.Page = (*Page)(nil)

// New returns the page of a node. log receives causes that are not shown.
func New(node Node, log *slog.Logger) *Page {
	p := &Page{node: node, log: log, mux: http.NewServeMux(), notes: newNotes()}
	p.mux.HandleFunc("GET /static/{file}", asset)
	p.mux.HandleFunc("GET /instances/{id}/diagram.svg", p.drawing("svg"))
	p.mux.HandleFunc("GET /instances/{id}/gantt.svg", p.drawing("gantt"))
	p.mux.HandleFunc("GET /workflows/{workflow}/diagram.svg", p.plan)
	p.mux.HandleFunc("GET /study/{scenario}/{chart}", p.studyChart)
	p.mux.HandleFunc("GET /items/{item}/files/{name}", p.file)
	p.mux.HandleFunc("GET /instances/{id}/files/{name}", p.dataFile)
	for pattern, s := range map[string]screen{
		"GET /{$}": p.home, "GET /items/{item}": p.item, "GET /outbox": p.outbox, "GET /messages": p.messages,
		"GET /mesh": p.mesh, "GET /contact": p.contact,
		"GET /instances": p.instances, "GET /instances/{id}": p.instance, "GET /instances/{id}/log": p.history,
		"GET /instances/{id}/states": p.states, "GET /instances/{id}/gantt": p.gantt, "GET /instances/{id}/recover": p.repair,
		"GET /workflows": p.workflows, "GET /workflows/{workflow}": p.begin,
		"GET /study": p.study, "GET /study/{scenario}": p.study, "/": nowhere,
	} {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.show(w, r, s) })
	}
	p.mux.HandleFunc("POST /items/{item}/take", p.act(p.claim(api.ClaimSelect), p.homeWith))
	p.mux.HandleFunc("POST /items/{item}/lock", p.act(p.claim(api.ClaimLock), p.homeWith))
	p.mux.HandleFunc("POST /items/{item}/release", p.act(p.claim(api.ClaimRelease), p.homeWith))
	p.mux.HandleFunc("POST /items/lock", p.act(p.lockTogether, p.homeWith))
	p.mux.HandleFunc("POST /contact", p.act(p.setContact, p.contactWith))
	p.mux.HandleFunc("POST /outbox", p.act(p.drop, p.outboxWith))
	p.mux.HandleFunc("POST /messages", p.act(p.readMessages, p.messagesWith))
	p.mux.HandleFunc("POST /items/{item}", p.act(p.finish, p.itemWith))
	p.mux.HandleFunc("POST /items/{item}/transfer", p.act(p.transfer, p.itemWith))
	p.mux.HandleFunc("POST /workflows/{workflow}", p.act(p.start, p.beginWith))
	p.mux.HandleFunc("POST /instances/{id}/orders", p.actOnce(p.sameOrder, p.order, p.orderWith))
	p.mux.HandleFunc("POST /instances/{id}/transfer", p.act(p.transfer, p.instanceWith))
	p.mux.HandleFunc("POST /instances/{id}/adopt", p.act(p.adopt, p.instanceWith))
	p.mux.HandleFunc("POST /instances/{id}/deadline", p.act(p.extend, p.instanceWith))
	order := p.act(p.recover, p.repairWith)
	p.mux.HandleFunc("POST /instances/{id}/recover", func(w http.ResponseWriter, r *http.Request) {
		if r.PostForm.Get("act") == "look" { // which changes nothing
			p.show(w, r, p.foresee)
			return
		}
		order(w, r)
	})
	return p
}

// Inside implements api.Page.
func (p *Page) Inside(w http.ResponseWriter, r *http.Request, s httpapi.Session) {
	guard(w)
	ctx := context.WithValue(r.Context(), sessionKey{}, s)
	ctx = context.WithValue(ctx, languageKey{}, choose(w, r))
	ctx = context.WithValue(ctx, refusalKey{}, &refusal{})
	p.mux.ServeHTTP(w, r.WithContext(ctx))
}

type (
	sessionKey  struct{}
	languageKey struct{}
)

// languageOf is the language of whoever asks.
func languageOf(ctx context.Context) *language {
	if l, ok := ctx.Value(languageKey{}).(*language); ok {
		return l
	}
	return languages()[0]
}

// session is who the browser is that asks.
func session(ctx context.Context) httpapi.Session {
	s, _ := ctx.Value(sessionKey{}).(httpapi.Session)
	return s
}

// Outside implements api.Page. What a page needs to look right is for everybody.
func (p *Page) Outside(w http.ResponseWriter, r *http.Request, why httpapi.Door) {
	guard(w)
	if _, pattern := p.mux.Handler(r); pattern == "GET /static/{file}" {
		p.mux.ServeHTTP(w, r)
		return
	}
	status := http.StatusUnauthorized
	switch why {
	case httpapi.Welcome, httpapi.Left:
		status = http.StatusOK
	case httpapi.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case httpapi.TooOften:
		status = http.StatusTooManyRequests
	}
	lang := choose(w, r)
	p.write(w, r, status, lang, part{"door", struct {
		Refresh, Spent, Left, TooLarge, TooOften, Ended bool

		Sent      bool // a form came, and was not carried out
		LAN       bool // the page is open to the network
		Here      string
		Languages []link
	}{
		why == httpapi.Welcome, why == httpapi.Spent, why == httpapi.Left, why == httpapi.TooLarge,
		why == httpapi.TooOften, why == httpapi.Ended,
		(why == httpapi.Closed || why == httpapi.Ended) && r.Method == http.MethodPost,
		httpapi.LANWords(r.Context()) != "", here(r), lang.others(r),
	}})
}

// here is the page that was asked for, on this node whatever its path: a link to
// //elsewhere would lead away.
func here(r *http.Request) string {
	return (&url.URL{Path: path.Clean("/" + r.URL.Path), RawQuery: r.URL.RawQuery}).String()
}

// guard allows a page what ours needs: its own files, and nothing inline.
func guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "+
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser would not say of our forms that they are ours
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// drawing serves a drawing of an instance. It is made of what partners say, so it
// may do nothing at all when somebody opens it by itself.
func (p *Page) drawing(format string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		of := format
		if format == "svg" && narrow(r) {
			of = "svg-tall"
		}
		svg, err := p.node.Diagram(r.Context(), r.PathValue("id"), of+"-"+languageOf(r.Context()).code)
		p.picture(w, r, svg, err)
	}
}

// plan serves the drawing of a workflow.
func (p *Page) plan(w http.ResponseWriter, r *http.Request) {
	_, def, _, err := p.definition(r.Context(), r)
	if err != nil {
		p.picture(w, r, nil, err)
		return
	}
	svg, err := diagram.Render(def, "svg", diagram.Options{Tall: narrow(r), Language: languageOf(r.Context()).code})
	if err != nil {
		err = api.Judge(api.Invalid, err)
	}
	p.picture(w, r, svg, err)
}

// narrow reports whether a drawing is asked for that fits a phone.
func narrow(r *http.Request) bool { return r.URL.Query().Has("tall") }

// picture answers with a drawing, which may do nothing at all when somebody opens it by itself.
func (p *Page) picture(w http.ResponseWriter, r *http.Request, svg []byte, err error) {
	if err != nil {
		p.show(w, r, func(context.Context, *http.Request) (view, error) { return view{}, err })
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(svg) // a reader that went away wants no error
}
