package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// content is the bytes of a file as a request's body or as a reply.
type content struct{}

// fileKind is the media type of content: nobody shows it as a page.
const fileKind = "application/octet-stream"

// fileHeader carries the reference to a file whose content is the reply.
const fileHeader = "Mutirao-File"

// patience is how long one read or write of a file's content may take.
const patience = time.Minute

var (
	putFileRoute = &route{
		name: "putFile", method: http.MethodPost, path: "/v1/files/{name}", scope: mayWork, large: true,
		summary: "Keep a file, to be given to an instance within a day", body: content{}, reply: api.File{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != fileKind {
				return nil, withStatus(http.StatusUnsupportedMediaType,
					api.Errorf(api.Invalid, "Content-Type %q: want %s", r.Header.Get("Content-Type"), fileKind))
			}
			return svc.PutFile(r.Context(), r.PathValue("name"), sized{r.Body, r.ContentLength})
		},
	}
	dataRoute = &route{
		name: "data", method: http.MethodGet, path: "/v1/instances/{id}/data", scope: mayRead,
		summary: "The data of an instance, and where the content of its files is", reply: []api.DataItem{},
		handle: func(svc api.Service, r *http.Request) (any, error) {
			return svc.Data(r.Context(), r.PathValue("id"))
		},
	}
	fileRoute = &route{
		name: "file", method: http.MethodGet, path: "/v1/instances/{id}/data/{name}", scope: mayRead,
		query: []parameter{{
			name: "wait", doc: "How long to wait for a file that is not here yet, such as 10s; a minute at most, and when left out",
		}},
		summary: "The content of a file among an instance's data", reply: content{},
		raw: func(h *handler, w http.ResponseWriter, r *http.Request) error {
			return SendFile(w, r, func(ctx context.Context) (*api.File, io.ReadCloser, error) {
				return h.svc.File(ctx, r.PathValue("id"), workflow.DataName(r.PathValue("name")))
			})
		},
	}
	itemFileRoute = &route{
		name: "itemFile", method: http.MethodGet, path: "/v1/worklist/items/{item}/files/{name}", scope: mayRead,
		query: []parameter{
			{name: "user", doc: "A name or a whole ID; none: the one user who is signed in at this node, else the partner"},
			{name: "wait", doc: "How long to wait for a file that is not here yet, such as 10s; a minute at most, and when left out"},
		},
		summary: "The content of a file among the data of an item that a user has", reply: content{},
		raw: func(h *handler, w http.ResponseWriter, r *http.Request) error {
			return SendFile(w, r, func(ctx context.Context) (*api.File, io.ReadCloser, error) {
				q := api.ItemQuery{User: r.URL.Query().Get("user"), Item: r.PathValue("item")}
				return h.svc.ItemFile(ctx, q, r.PathValue("name"))
			})
		},
	}
)

// SendFile answers with the content of a file, which get waits for as long as was asked. An error that it returns was
// not answered yet.
func SendFile(
	w http.ResponseWriter, r *http.Request, get func(context.Context) (*api.File, io.ReadCloser, error),
) error {
	wait := time.Minute
	if v := r.URL.Query().Get("wait"); v != "" {
		d, err := workflow.ParseDuration(v)
		if err != nil || d == 0 || d > time.Minute {
			return api.Errorf(api.Invalid, "wait is %q: want a duration above 0 and up to 1m, such as 10s", v)
		}
		wait = d
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + patience)) // recorders of tests have none
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	f, from, err := get(ctx)
	if err != nil {
		return err
	}
	defer from.Close() // it was only read
	w.Header().Set("Content-Type", fileKind)
	w.Header().Set("Content-Length", strconv.FormatInt(f.Size, 10))
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	w.Header().Set(fileHeader, url.QueryEscape(f.Value))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(&patientWriter{w}, from) // the length tells a reader that something is missing
	return nil
}

// patientReader and patientWriter may take long, as long as something goes on.
type patientReader struct {
	io.ReadCloser
	w http.ResponseWriter
}

func (p *patientReader) Read(b []byte) (int, error) {
	_ = http.NewResponseController(p.w).SetReadDeadline(time.Now().Add(patience)) // recorders of tests have none
	return p.ReadCloser.Read(b)
}

type patientWriter struct{ http.ResponseWriter }

func (p *patientWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(patience))
	return p.ResponseWriter.Write(b)
}

// PutFile implements Service.
func (c *Client) PutFile(ctx context.Context, name string, from io.Reader) (*api.File, error) {
	return call[*api.File](ctx, c, putFileRoute, nil, from, name)
}

// Data implements Service.
func (c *Client) Data(ctx context.Context, id string) ([]api.DataItem, error) {
	return call[[]api.DataItem](ctx, c, dataRoute, nil, nil, id)
}

// File implements Service. What comes is not verified by the client, but its length is.
func (c *Client) File(ctx context.Context, id string, item workflow.DataName) (*api.File, io.ReadCloser, error) {
	return c.getFile(ctx, fileRoute, url.Values{}, id, string(item))
}

// ItemFile implements Service, as File does.
func (c *Client) ItemFile(ctx context.Context, q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
	values := url.Values{}
	if q.User != "" {
		values.Set("user", q.User)
	}
	return c.getFile(ctx, itemFileRoute, values, q.Item, name)
}

func (c *Client) getFile(
	ctx context.Context, rt *route, query url.Values, params ...string,
) (*api.File, io.ReadCloser, error) {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline).Truncate(time.Second)
		query.Set("wait", workflow.FormatDuration(min(max(left, time.Second), time.Minute)))
	}
	resp, err := c.do(context.WithoutCancel(ctx), rt, query, nil, params...)
	if err != nil {
		return nil, nil, err
	}
	value, err := url.QueryUnescape(resp.Header.Get(fileHeader))
	if err != nil {
		return nil, nil, errors.Join(err, resp.Body.Close())
	}
	f, err := workflow.ParseFile(value)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the node's reply cannot be read: %w", err), resp.Body.Close())
	}
	return &api.File{Name: f.Name, Size: f.Size, Value: value, Here: true}, resp.Body, nil
}
