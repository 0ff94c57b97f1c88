package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// Client is the Service of a node in another process. It outlives a restart of
// the node, which changes address and token.
type Client struct {
	dir   string
	pause time.Duration // before the first reconnection of a watch
	give  time.Duration // after which a watch no longer waits for the node's return

	mu   sync.Mutex // guards conn
	conn *connection
}

var _ api.Service = (*Client)(nil)

// connection is a way to one run of the node.
type connection struct {
	access Access
	base   string
	http   *http.Client
}

// maxReply is the greatest reply that a client reads, in bytes.
const maxReply = 256 << 20

// Dial returns a client of the node that runs in a folder. When none does, the
// error's code is NoNode: here, or at the first call if the node ended without
// removing AccessFile.
func Dial(dir string) (*Client, error) {
	a, err := readAccess(dir)
	if err != nil {
		return nil, err
	}
	return &Client{dir: dir, pause: 200 * time.Millisecond, give: 15 * time.Second, conn: a.connect()}, nil
}

// Access tells where the node is and with which token it is called.
func (c *Client) Access() Access { return c.connection().access }

func (c *Client) connection() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// Way is where the node is, with which token it is called, and by what: for programs that
// speak to it in their own words.
func (c *Client) Way() (url, token string, by *http.Client) {
	conn := c.connection()
	return conn.base, conn.access.Token, conn.http
}

// renew looks whether the node has started again since old.
func (c *Client) renew(old *connection) (*connection, bool) {
	a, err := readAccess(c.dir)
	if err != nil || a == old.access {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = a.connect()
	return c.conn, true
}

// keptConnections are kept at most for the next requests of a program: as many as it makes at a time, with room.
const keptConnections = 64

func (a Access) connect() *connection {
	base := a.URL
	if base == "" {
		base = "http://localhost"
	}
	return &connection{access: a, base: base, http: &http.Client{
		Transport: &http.Transport{
			DialContext: a.dial, TLSClientConfig: a.tls(), ResponseHeaderTimeout: 2 * time.Minute,
			ExpectContinueTimeout: time.Minute,
			// A connection is kept for the next request, for less time than the node keeps it. If the node has
			// gone meanwhile, that shows before anything of the request was sent, and a new one is made.
			MaxIdleConnsPerHost: keptConnections, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (a Access) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	if path, ok := strings.CutPrefix(a.Address, "unix:"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return d.DialContext(ctx, "tcp", a.Address)
}

// tls trusts exactly the certificate that the node named, whatever its names
// and issuer: the node's folder vouches for it.
func (a Access) tls() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(cs tls.ConnectionState) error {
			sum := sha256.Sum256(cs.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(a.Certificate)) != 1 {
				return errors.New("this is not the node's certificate")
			}
			return nil
		},
	}
}

// call makes the request of a route with its path's parameters.
func call[T any](ctx context.Context, c *Client, rt *route, query url.Values, body any, params ...string) (T, error) {
	reply, _, err := callHeader[T](ctx, c, rt, query, body, params...)
	return reply, err
}

// callHeader is call, for those who read the reply's header as well.
func callHeader[T any](
	ctx context.Context, c *Client, rt *route, query url.Values, body any, params ...string,
) (reply T, header http.Header, err error) {
	b, resp, err := c.fetch(ctx, rt, query, body, params...)
	if err != nil {
		return reply, nil, err
	}
	if p, ok := any(&reply).(*picture); ok {
		p.kind, p.data = resp.Header.Get("Content-Type"), b
		return reply, resp.Header, nil
	}
	if rt.reply == nil || resp.StatusCode == http.StatusNoContent {
		return reply, resp.Header, nil
	}
	return reply, resp.Header, decodeReply(b, &reply)
}

// fetch is what a request is answered with, and the response whose body that was.
func (c *Client) fetch(
	ctx context.Context, rt *route, query url.Values, body any, params ...string,
) ([]byte, *http.Response, error) {
	resp, err := c.do(ctx, rt, query, body, params...)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 { // a long one would grow by copies
		b.Grow(int(min(n, maxReply)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(resp.Body, maxReply)); err != nil {
		return nil, nil, c.lost(ctx, err)
	}
	return b.Bytes(), resp, nil
}

// decodeReply reads a reply. Unknown fields are allowed: the node may be newer than its client.
func decodeReply(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // data may be whole numbers of 64 bits, which a float64 has no room for
	if err := dec.Decode(into); err != nil {
		return unreadable(err)
	}
	return nil
}

// unreadable says of a reply that it is none.
func unreadable(err error) error {
	return api.Errorf(api.Failed, "the node's reply cannot be read: %v", err).
		WithHint("compare \"mutirao version\" with the version in \"mutirao status\"")
}

// do sends a request and returns the reply of a success. A request that the
// node has not seen, because it has started again elsewhere, is sent there.
func (c *Client) do(
	ctx context.Context, rt *route, query url.Values, body any, params ...string,
) (*http.Response, error) {
	for _, p := range params {
		if slices.Contains([]string{"", ".", ".."}, p) { // would change the path
			return nil, api.Errorf(api.NotFound, "%q names nothing: want an ID or a name", p)
		}
	}
	conn := c.connection()
	resp, err := c.send(ctx, conn, rt, query, body, params...)
	var shown *api.Error
	_, once := body.(io.Reader) // it is gone once it was sent
	if !once && errors.As(err, &shown) && (shown.Code == api.NoNode || shown.Code == api.NotAllowed) {
		if conn, ok := c.renew(conn); ok {
			return c.send(ctx, conn, rt, query, body, params...)
		}
	}
	return resp, err
}

func (c *Client) send(
	ctx context.Context, conn *connection, rt *route, query url.Values, body any, params ...string,
) (*http.Response, error) {
	req, err := conn.request(ctx, rt, query, body, params...)
	if err != nil {
		return nil, err
	}
	resp, err := conn.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, MaxBody)) // half a message is still one
	shown := &api.Error{}
	if err := json.Unmarshal(b, shown); err != nil || shown.Code == "" {
		return nil, api.Errorf(api.Failed, "%s answered %s: is it a node?", conn.access.Address, resp.Status)
	}
	return nil, shown
}

func (conn *connection) request(
	ctx context.Context, rt *route, query url.Values, body any, params ...string,
) (*http.Request, error) {
	kind, content := "application/json", []byte(nil)
	from := io.Reader(nil)
	switch body := body.(type) {
	case io.Reader:
		kind, from = fileKind, body
	case nil:
		kind = ""
	case source:
		kind, content = "application/yaml", body
	case json.RawMessage:
		content = body // as it is, also where it is no JSON: the node says what is wrong
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, api.Errorf(api.Invalid, "the request cannot be written as JSON: %v", err)
		}
	}
	target := conn.base + rt.at(params...)
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if from == nil {
		from = bytes.NewReader(content)
	}
	req, err := http.NewRequestWithContext(ctx, rt.method, target, from)
	if err != nil {
		return nil, api.Errorf(api.Failed, "call the node: %v", err)
	}
	req.Header.Set("Authorization", "Bearer "+conn.access.Token)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if kind == fileKind { // what is refused at once is not sent, and the answer is not lost over that
		req.Header.Set("Expect", "100-continue")
		req.ContentLength = sizeOf(from)
	}
	return req, nil
}

// sizeOf is how much comes of a file; 0: that is not known.
func sizeOf(from io.Reader) int64 {
	f, is := from.(interface{ Stat() (fs.FileInfo, error) })
	if !is {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// lost says what a broken connection means.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the node was not waited for: %w", context.Cause(ctx))
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return noNode(c.dir)
	}
	return api.Errorf(api.Failed, "the connection to the node broke: %v", err).
		WithHint("the request may or may not have been carried out: look before you repeat it")
}
