package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// packed is how many bytes something has, compressed.
func packed(t *testing.T, b []byte) int {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}

var (
	ours   = regexp.MustCompile(`(?:href|src|srcset)="(/[^"]+)"`)
	needed = regexp.MustCompile(`<(?:link|script|img|source)[^>]*>`)
)

// What a browser has to fetch for a page is small: at most 30 kB for the first, with all that it needs, and 10 kB for
// each that follows, of which it fetches only what it could not keep; and it is little.
func TestPagesAreLight(t *testing.T) {
	const first, after, requests = 30 << 10, 10 << 10, 4
	sound, stuck := newCrew(), stranded()
	for _, tt := range []struct {
		svc   api.Service
		paths []string
	}{{sound, looked}, {stuck, lookedAtRepairs}, {stuck, []string{"/instances/" + id}}} {
		p := newPage(tt.svc)
		for _, path := range tt.paths {
			if path == "/study" { // a table of charts, which come as somebody comes to them
				continue
			}
			for _, lang := range []string{"en", "pt-BR"} {
				page := get(t, p, path, lang)
				if page.Code != http.StatusOK {
					t.Fatalf("%s: %d", path, page.Code)
				}
				whole := packed(t, page.Body.Bytes())
				fresh, number := whole, 1
				for _, tag := range needed.FindAllString(page.Body.String(), -1) {
					at := ours.FindStringSubmatch(tag)
					if at == nil || strings.Contains(tag, "manifest") { // which is for a browser that installs it
						continue
					}
					file := get(t, p, strings.ReplaceAll(at[1], "&amp;", "&"), lang)
					n := packed(t, file.Body.Bytes())
					whole += n
					if !strings.Contains(file.Header().Get("Cache-Control"), "immutable") {
						fresh += n
						number++
					}
				}
				if whole > first || fresh > after || number > requests {
					t.Errorf("%s in %s: %d bytes, at most %d; after another page %d, at most %d, in %d requests", path, lang,
						whole, first, fresh, after, number)
				}
				t.Logf("%s in %s: %d bytes, after another page %d; the page as it is sent %d", path, lang, whole, fresh, page.Body.Len())
			}
		}
	}
}

// What is the same for everybody is compressed for who takes that; what a person sees never is.
func TestFilesAreCompressed(t *testing.T) {
	p := newPage(newCrew())
	ask := func(path, takes, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", takes)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		p.Inside(w, r, ana)
		return w
	}
	sum := 0
	for file := range marks {
		plain, small := ask(address(file), "br, gzip;q=0", ""), ask(address(file), "deflate, GZIP;q=0.5, br", "")
		z, err := gzip.NewReader(small.Body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		n := small.Body.Len()
		sum += n
		body, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(body, plain.Body.Bytes()) || n >= len(body) {
			t.Errorf("%s: %v, %d bytes of %d", file, err, n, len(body))
		}
		for w, encoding := range map[*httptest.ResponseRecorder]string{plain: "", small: "gzip"} {
			h := w.Header()
			if h.Get("Content-Encoding") != encoding || h.Get("Vary") != "Accept-Encoding" ||
				h.Get("Content-Type") != plain.Header().Get("Content-Type") {
				t.Errorf("%s: %v", file, h)
			}
		}
		tag := small.Header().Get("ETag")
		if tag == plain.Header().Get("ETag") || ask(address(file), "gzip", tag).Code != http.StatusNotModified ||
			ask(address(file), "", tag).Code != http.StatusOK {
			t.Errorf("%s: a browser that has %s is told something else", file, tag)
		}
	}
	home := ask("/", "gzip", "")
	if home.Header().Get("Content-Encoding") != "" {
		t.Error("home is compressed")
	}
	t.Logf("home has %d bytes, and its files %d", home.Body.Len(), sum)
}

// Browsers keep what is the same for everybody, by a name that goes with its content, and nothing else: also where
// nobody is signed in.
func TestWhatBrowsersKeep(t *testing.T) {
	p := newPage(&apitest.Fake{})
	ask := func(path, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Cache-Control", "no-store") // as the server says of all that says nothing else
		p.Outside(w, r, httpapi.Closed)
		return w
	}
	for file := range marks {
		kept := ask(address(file), "")
		if got := kept.Header().Get("Cache-Control"); kept.Code != http.StatusOK || got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %d, %q", file, kept.Code, got)
		}
		for _, path := range []string{"/static/" + file, "/static/" + file + "?v=another"} {
			loose := ask(path, "")
			if got := loose.Header().Get("Cache-Control"); loose.Code != http.StatusOK || got != "no-cache" {
				t.Errorf("%s: %d, %q", path, loose.Code, got)
			}
			again := ask(path, loose.Header().Get("ETag"))
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
				t.Errorf("%s once more: %d, %d bytes", path, again.Code, again.Body.Len())
			}
		}
	}
	for _, path := range []string{"/", "/static/nothing.css", "/instances/" + id + "/diagram.svg?v=1"} {
		if got := ask(path, "").Header().Get("Cache-Control"); got != "no-store" && got != "" {
			t.Errorf("%s: %q", path, got)
		}
	}
}
