package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// pieces is a browser that sends a file in pieces.
type pieces struct {
	*browser
	token string
}

func newPieces(t *testing.T) (*pieces, *drawer) {
	t.Helper()
	d := &drawer{Fake: people("ana")}
	b := newBrowser(t, d.Fake)
	b.server = httpapi.NewServer(d, "token", httpapi.Options{Page: pigeonhole{}})
	b.signIn()
	return &pieces{b, b.do("GET", "/").Header().Get("X-Form-Token")}, d
}

func (p *pieces) request(id string, size, at int, part io.Reader, headers ...string) *http.Request {
	path := fmt.Sprintf("%s%s?name=a.jpg&size=%d&at=%d", httpapi.UploadsPath, id, size, at)
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, path, part)
	r.Host = "127.0.0.1:7700"
	for _, h := range append([]string{
		"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:7700", httpapi.FormTokenHeader + ": " + p.token,
	}, headers...) {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	for _, c := range p.cookies {
		r.AddCookie(c)
	}
	return r
}

// put sends a piece, and gives the status, up to where the file came, and what it is called once it is kept.
func (p *pieces) put(id string, size, at int, part string, headers ...string) (status int, came int64, value string) {
	p.t.Helper()
	w := httptest.NewRecorder()
	p.server.ServeHTTP(w, p.request(id, size, at, strings.NewReader(part), headers...))
	var said httpapi.Piece
	_ = json.Unmarshal(w.Body.Bytes(), &said) // an error has none of it
	if said.File != nil {
		value = said.File.Value
	}
	return w.Code, said.At, value
}

const piecesID = "0123456789abcdef0123456789abcdef"

// A file comes in pieces: each goes on where the last one ended, a piece that came already is not taken twice, and
// what became of the file is said again to whoever did not hear it.
func TestAFileInPieces(t *testing.T) {
	p, d := newPieces(t)
	for _, step := range []struct {
		at     int
		part   string
		status int
		came   int64
		value  string
	}{
		{0, "pho", 200, 3, ""},
		{0, "pho", 409, 3, ""},
		{4, "o", 409, 3, ""},
		{3, "to", 200, 5, "file:a.jpg"},
		{5, "", 200, 5, "file:a.jpg"},
		{3, "to", 409, 5, "file:a.jpg"},
	} {
		status, came, value := p.put(piecesID, 5, step.at, step.part)
		if status != step.status || came != step.came || value != step.value {
			t.Errorf("%q at %d: %d, %d bytes, %q", step.part, step.at, status, came, value)
		}
	}
	if fmt.Sprint(d.kept) != "[a.jpg=photo]" {
		t.Errorf("kept: %q", d.kept)
	}
	if status, _, value := p.put(piecesID+"0", 0, 0, ""); status != 200 || value != "file:a.jpg" {
		t.Errorf("an empty file: %d %q", status, value)
	}
}

// Pieces are taken of our own page of this very session, for whoever may act, and no more than was announced.
func TestPiecesAreRefused(t *testing.T) {
	p, d := newPieces(t)
	for _, tt := range []struct {
		name    string
		size    int
		at      int
		part    string
		headers []string
		status  int
	}{
		{"without the token", 5, 0, "photo", []string{httpapi.FormTokenHeader + ": "}, 403},
		{"with another", 5, 0, "photo", []string{httpapi.FormTokenHeader + ": x"}, 403},
		{"of another site", 5, 0, "photo", []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}, 403},
		{"of another port", 5, 0, "photo", []string{"Sec-Fetch-Site: same-site"}, 401},
		{"of nobody", 5, 0, "photo", []string{"Cookie: "}, 401},
		{"beyond its end", 5, 6, "x", nil, 400},
		{"of less than nothing", -1, 0, "x", nil, 400},
		{"in the middle of what is not here", 5, 3, "to", nil, 404},
	} {
		q := *p
		if tt.status == 401 && tt.headers[0] == "Cookie: " {
			b := *p.browser
			b.cookies = nil
			q.browser = &b
		}
		if status, _, value := q.put(piecesID, tt.size, tt.at, tt.part, tt.headers...); status != tt.status ||
			value != "" {
			t.Errorf("%s: %d, %q", tt.name, status, value)
		}
	}
	if status, _, _ := p.put("short", 5, 0, "photo"); status != 400 {
		t.Errorf("a name that others may have: %d", status)
	}
	if len(d.kept) > 0 {
		t.Errorf("kept: %q", d.kept)
	}
	if status, _, value := p.put(piecesID, 8, 0, "too much"); status != 409 && status != 422 || value != "" {
		t.Errorf("a file that the node does not take: %d, %q", status, value)
	}
	if status, _, value := p.put(piecesID+"1", 5, 0, "photo and more"); status != 400 || value != "" {
		t.Errorf("more than was announced: %d, %q", status, value)
	}
	for i := range 60 { // those that came make room
		if status, _, _ := p.put(fmt.Sprintf("%s%d", piecesID, 1000+i), 1, 0, "p"); status != 200 {
			t.Fatalf("file %d that comes whole: %d", i, status)
		}
	}
	for i := range 40 { // one is under way already, of which more came than was announced
		status, _, _ := p.put(fmt.Sprintf("%s%d", piecesID, 100+i), 5, 0, "p")
		if want := i < 31; (status == 200) != want {
			t.Fatalf("file %d that does not come whole: %d", i, status)
		}
	}
}

// fullDrawer has no room for more than four bytes, and reads nothing of what is known to be more.
type fullDrawer struct{ *drawer }

func (d fullDrawer) PutFile(ctx context.Context, name string, from io.Reader) (*api.File, error) {
	if of, is := from.(interface{ Announced() int64 }); is && of.Announced() > 4 {
		return nil, api.Errorf(api.Refused, "there is no room for %d bytes", of.Announced())
	}
	return d.drawer.PutFile(ctx, name, from)
}

// A file that has no room is refused with its first piece: its size is said there.
func TestAFileWithoutRoomIsRefusedAtItsBeginning(t *testing.T) {
	p, d := newPieces(t)
	p.server = httpapi.NewServer(fullDrawer{d}, "token", httpapi.Options{Page: pigeonhole{}})
	p.signIn()
	p.token = p.do("GET", "/").Header().Get("X-Form-Token")
	w := httptest.NewRecorder()
	p.server.ServeHTTP(w, p.request(piecesID, 5, 0, strings.NewReader("p")))
	if w.Code != 409 || !strings.Contains(w.Body.String(), "no room for 5 bytes") {
		t.Errorf("it is %d %s", w.Code, w.Body)
	}
	if status, _, value := p.put(piecesID+"1", 4, 0, "phot"); status != 200 || value == "" {
		t.Errorf("one that has room: %d %q", status, value)
	}
}

// heard is a drawer that says how much came of a file, as it comes.
type heard struct {
	*drawer
	came chan int
}

func (h heard) PutFile(ctx context.Context, name string, from io.Reader) (*api.File, error) {
	return h.drawer.PutFile(ctx, name, io.TeeReader(from, h))
}

func (h heard) Write(b []byte) (int, error) {
	h.came <- len(b)
	return len(b), nil
}

// A piece that hangs on a link that nobody knows to be broken is given up for the next one, and what came of it counts.
func TestAPieceThatHangs(t *testing.T) {
	p, d := newPieces(t)
	node := heard{d, make(chan int, 8)}
	p.server = httpapi.NewServer(node, "token", httpapi.Options{Page: pigeonhole{}})
	p.signIn()
	p.token = p.do("GET", "/").Header().Get("X-Form-Token")
	s := httptest.NewServer(p.server)
	defer s.Close()
	send := func(from int, part string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		r := p.request(piecesID, 5, from, nil, "Origin: ")
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:7700\r\n%s: %s\r\nCookie: %s\r\nContent-Length: %d\r\n\r\n%s",
			r.URL.RequestURI(), httpapi.FormTokenHeader, p.token, r.Header.Get("Cookie"), 5-from, part)
		return c
	}
	hung := send(0, "pho")
	defer hung.Close()
	for came := 0; came < 3; {
		came += <-node.came
	}
	again := send(3, "to")
	defer again.Close()
	reply, err := io.ReadAll(io.LimitReader(again, 12))
	if err != nil || string(reply) != "HTTP/1.1 200" {
		t.Errorf("the next piece: %q %v", reply, err)
	}
	if fmt.Sprint(d.kept) != "[a.jpg=photo]" {
		t.Errorf("kept: %q", d.kept)
	}
}
