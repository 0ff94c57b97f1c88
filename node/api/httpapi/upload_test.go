package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// drawer is a node that notes what files it is given.
type drawer struct {
	*apitest.Fake
	kept []string
}

func (d *drawer) PutFile(_ context.Context, name string, from io.Reader) (*api.File, error) {
	b, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	if string(b) == "too much" {
		return nil, api.Errorf(api.Refused, "there is no room for %s", name)
	}
	d.kept = append(d.kept, name+"="+string(b))
	return &api.File{Name: name, Size: int64(len(b)), Value: "file:" + name}, nil
}

// pigeonhole is a page that says what came with a form.
type pigeonhole struct{ doors }

func (pigeonhole) Inside(w http.ResponseWriter, r *http.Request, s httpapi.Session) {
	w.Header().Set("X-Form-Token", s.FormToken)
	fmt.Fprintf(w, "sent %d, report %q, files", s.Sent, r.PostForm["report"])
	for _, name := range []string{"file.a", "file.b"} {
		if up, came := s.Files[name]; up.Err != nil && up.Name != "" {
			fmt.Fprintf(w, " %s not, %s: %v", name, up.Name, up.Err)
		} else if up.Err != nil {
			fmt.Fprintf(w, " %s not: %v", name, up.Err)
		} else if came {
			fmt.Fprintf(w, " %s=%s", name, up.File.Value)
		}
	}
}

// parts are a form with files: a name that begins with file. has a file's name before its content.
func parts(t *testing.T, fields ...string) (kind string, body *bytes.Buffer) {
	t.Helper()
	body = &bytes.Buffer{}
	m := multipart.NewWriter(body)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		file, content, _ := strings.Cut(value, ":")
		var to io.Writer
		var err error
		if strings.HasPrefix(name, "file.") {
			to, err = m.CreateFormFile(name, file)
		} else {
			to, err = m.CreateFormField(name)
			content = value
		}
		if err == nil {
			_, err = io.WriteString(to, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return m.FormDataContentType(), body
}

// refuser is a node that takes no file, and notes how large one was said to be.
type refuser struct {
	*apitest.Fake
	announced int64
}

func (x *refuser) PutFile(_ context.Context, name string, r io.Reader) (*api.File, error) {
	x.announced = r.(interface{ Announced() int64 }).Announced()
	return nil, api.Errorf(api.Refused, "there is no room for %s", name)
}

// A form with a file that is not kept is read to its end, for what was typed behind the file, but not if that is far: then
// it is answered, and the connection closed, with most of it unsent.
func TestAHugeFormIsAnsweredEarly(t *testing.T) {
	b := newBrowser(t, people("ana"))
	node := &refuser{Fake: people("ana")}
	b.server = httpapi.NewServer(node, "token", httpapi.Options{Page: pigeonhole{}})
	b.signIn()
	token := "form-token=" + b.do("GET", "/").Header().Get("X-Form-Token")
	kind, body := parts(t, token, "file.a=a.jpg:"+strings.Repeat("x", 3<<20), "report=smoke")
	if w := b.send(kind, body); w.Code != 200 || !strings.Contains(w.Body.String(), `report ["smoke"], files file.a not: there is no room for a.jpg`) {
		t.Errorf("of 3 MiB: %d %.300s", w.Code, w.Body)
	}
	kind, body = parts(t, token, "file.a=a.jpg:"+strings.Repeat("x", 40<<20), "report=smoke")
	w := b.send(kind, body)
	if w.Code != 401 || !strings.Contains(w.Body.String(), "too large") || body.Len() < 30<<20 {
		t.Errorf("of 40 MiB, with %d bytes unread: %d %.300s", body.Len(), w.Code, w.Body)
	}
	if node.announced < 39<<20 || node.announced > 40<<20 {
		t.Errorf("of a file of 40 MiB the node is told that it has at least %d bytes", node.announced)
	}
}

// Files of a form are kept if our own page of this very session sent it, by whoever may act, and if that is known
// before the file comes; else nothing is kept, and the rest of the form is there all the same.
func TestFilesOfForms(t *testing.T) {
	d := &drawer{Fake: people("ana")}
	b := newBrowser(t, d.Fake)
	b.server = httpapi.NewServer(d, "token", httpapi.Options{Page: pigeonhole{}})
	b.signIn()
	token := "form-token=" + b.do("GET", "/").Header().Get("X-Form-Token")
	big := strings.Repeat("x", 3<<20)
	for _, tt := range []struct {
		name    string
		fields  []string
		headers []string
		status  int
		want    string
		kept    []string
	}{
		{"ours", []string{token, "file.a=a.jpg:photo", "report=smoke"}, nil, 200,
			`sent 1, report ["smoke"], files file.a=file:a.jpg`, []string{"a.jpg=photo"}},
		{"larger than a form may be", []string{token, "file.a=a.jpg:" + big}, nil, 200, `files file.a=file:a.jpg`,
			[]string{"a.jpg=" + big}},
		{"two, of which one is not taken", []string{token, "file.a=a.jpg:too much", "file.b=b.jpg:y"}, nil, 200,
			`file.a not: there is no room for a.jpg file.b=file:b.jpg`, []string{"b.jpg=y"}},
		{"none was chosen", []string{token, "file.a=:", "report=smoke"}, nil, 200, `sent 1, report ["smoke"], files`,
			nil},
		{"in a folder", []string{token, "file.a=../../etc/a.jpg:photo"}, nil, 200, "file.a=file:a.jpg",
			[]string{"a.jpg=photo"}},
		{"without the token", []string{"file.a=a.jpg:photo", "report=smoke"}, nil, 200,
			`sent 2, report ["smoke"], files file.a not, a.jpg: the form is not carried out`, nil},
		{"a wrong token", []string{"form-token=x", "file.a=a.jpg:photo", "report=smoke"}, nil, 200,
			`sent 2, report ["smoke"], files file.a not, a.jpg: the form is not carried out`, nil},
		{"the token comes late", []string{"file.a=a.jpg:photo", token}, nil, 200,
			"sent 1, report [], files file.a not, a.jpg: the file came before form-token in its form", nil},
		{"another site", []string{token, "file.a=a.jpg:photo"},
			[]string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}, 403, "pages of", nil},
		{"nobody says where it comes from", []string{token, "file.a=a.jpg:photo"},
			[]string{"Origin: ", "Sec-Fetch-Site: "}, 403, "only the node's own page", nil},
		{"texts that are too large", []string{token, "report=" + big}, nil, 401, "too large", nil},
		{"too many parts", append([]string{token}, strings.Split(strings.Repeat("report=x ", 600), " ")...), nil, 401,
			"too large", nil},
	} {
		d.kept = nil
		kind, body := parts(t, tt.fields...)
		w := b.send(kind, body, tt.headers...)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %.300s, want %d %s", tt.name, w.Code, w.Body, tt.status, tt.want)
		}
		if diff := cmp.Diff(tt.kept, d.kept); diff != "" {
			t.Errorf("%s: %.300s", tt.name, diff)
		}
	}
	for _, each := range []int{1, 0} { // names of their own, and one for all
		d.kept = nil
		many := []string{token}
		for i := range 20 {
			many = append(many, fmt.Sprintf("file.%d=a.jpg:photo", each*i))
		}
		kind, body := parts(t, many...)
		if b.send(kind, body); len(d.kept) != 16 {
			t.Errorf("of 20 files %d are kept", len(d.kept))
		}
	}

	// A form that breaks off is not carried out; nor is one of whoever may only look, or is not signed in.
	d.kept = nil
	kind, body := parts(t, token, "report=smoke", "file.a=a.jpg:photo")
	body.Truncate(body.Len() - 30)
	if w := b.send(kind, body); w.Code != 400 || !strings.Contains(w.Body.String(), "the form broke off") {
		t.Errorf("broken off: %d %s", w.Code, w.Body)
	}
	d.kept = nil // what came of it is kept for a day, and given to nobody
	b.cookies = b.do("GET", b.linkBy("token", "?look=true")).Result().Cookies()
	kind, body = parts(t, "form-token="+b.do("GET", "/").Header().Get("X-Form-Token"), "file.a=a.jpg:photo")
	if w := b.send(kind, body); !strings.Contains(w.Body.String(), "sent 3, report [], files") {
		t.Errorf("whoever may only look: %d %s", w.Code, w.Body)
	}
	b.cookies = nil
	kind, body = parts(t, token, "file.a=a.jpg:photo")
	if w := b.send(kind, body); w.Code != 401 {
		t.Errorf("whoever is not signed in: %d %s", w.Code, w.Body)
	}
	if len(d.kept) > 0 {
		t.Errorf("kept: %q", d.kept)
	}
}

// Wherever a form breaks off, in a value, in the head of a part or after a boundary, it is not taken for a whole one.
// The end of its last line may lack.
func TestAFormThatBreaksOffAnywhere(t *testing.T) {
	d := &drawer{Fake: people("ana")}
	b := newBrowser(t, d.Fake)
	b.server = httpapi.NewServer(d, "token", httpapi.Options{Page: pigeonhole{}})
	b.signIn()
	kind, body := parts(t, "form-token="+b.do("GET", "/").Header().Get("X-Form-Token"), "file.a=a.jpg:photo", "report=smoke")
	end := body.Len() - len("\r\n")
	for n := range end {
		w := b.send(kind, bytes.NewReader(body.Bytes()[:n]))
		if w.Code != 400 || !strings.Contains(w.Body.String(), "the form broke off") {
			t.Errorf("after %q: %d %s", body.Bytes()[:n], w.Code, w.Body)
		}
	}
	if w := b.send(kind, bytes.NewReader(body.Bytes()[:end])); w.Code != 200 {
		t.Errorf("without the end of its last line: %d %s", w.Code, w.Body)
	}
}

// A form without files that is shorter than it says is none either: its link was torn.
func TestAFormShorterThanItSays(t *testing.T) {
	p, _ := newPieces(t)
	at := httptest.NewServer(p.server)
	defer at.Close()
	form := "form-token=" + p.token + "&report=smoke"
	for _, more := range []int{0, 1, 100} {
		conn, err := net.Dial("tcp", at.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /items/x HTTP/1.1\r\nHost: 127.0.0.1:7700\r\nOrigin: http://127.0.0.1:7700\r\n"+
			"Cookie: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
			p.cookies[0], len(form)+more, form)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if whole := answer.StatusCode == 200; err != nil || whole != (more == 0) || !whole && answer.StatusCode != 400 {
			t.Errorf("%d bytes short: %d %s %v", more, answer.StatusCode, text, err)
		}
		answer.Body.Close()
		conn.Close()
	}
}

// send sends a form of any kind, as a browser of today does unless headers say otherwise.
func (b *browser) send(kind string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, "/items/x", body)
	r.Host = "127.0.0.1:7700"
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Origin", "http://127.0.0.1:7700")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	return w
}

// fullAtOnce is a node that has no room for files, and reads none.
type fullAtOnce struct{ *apitest.Fake }

func (fullAtOnce) PutFile(_ context.Context, name string, from io.Reader) (*api.File, error) {
	return nil, api.Errorf(api.Refused, "there is no room for %s of %d bytes", name, from.(interface{ Announced() int64 }).Announced())
}

// counted is content without an end, which counts what is read of it.
type counted struct{ read *atomic.Int64 }

func (c counted) Read(b []byte) (int, error) {
	c.read.Add(int64(len(b)))
	return len(b), nil
}

// Nothing is sent of a file that is refused before any of it is read, so whoever gives it gets to read why, and not that
// the connection broke while it was sent.
func TestWhatIsRefusedAtOnceIsNotSent(t *testing.T) {
	dir, _ := serve(t, "127.0.0.1:0", fullAtOnce{&apitest.Fake{}}, httpapi.Options{})
	c, sent := dial(t, dir), atomic.Int64{}
	_, err := c.PutFile(t.Context(), "huge.bin", counted{&sent})
	if err == nil || !strings.Contains(err.Error(), "there is no room for huge.bin") || sent.Load() > 0 {
		t.Errorf("%d bytes were sent, and the error is %v", sent.Load(), err)
	}
	path := filepath.Join(t.TempDir(), "photo.jpg")
	if err := os.WriteFile(path, []byte("a wound"), 0o600); err != nil {
		t.Fatal(err)
	}
	photo, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer photo.Close()
	if _, err := c.PutFile(t.Context(), "photo.jpg", photo); err == nil || !strings.Contains(err.Error(), "photo.jpg of 7 bytes") {
		t.Errorf("of a file of 7 bytes the error is %v", err)
	}
}
