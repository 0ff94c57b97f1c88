package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// marks name the content of each file that is the same for everybody: by name, the beginning of its hash.
var marks = marked()

func marked() map[string]string {
	out := map[string]string{}
	files, _ := static.ReadDir("static") // it is embedded; what could not be read would not be kept
	for _, f := range files {
		if b, err := static.ReadFile("static/" + f.Name()); err == nil {
			sum := sha256.Sum256(b)
			out[f.Name()] = hex.EncodeToString(sum[:6])
		}
	}
	return out
}

// zipped are these files compressed, by name, made for the first that is asked for.
var zipped = sync.OnceValue(func() map[string][]byte {
	out := map[string][]byte{}
	for file := range marks {
		b, err := static.ReadFile("static/" + file)
		must(err)
		var to bytes.Buffer
		z, err := gzip.NewWriterLevel(&to, gzip.BestCompression)
		must(err)
		_, err = z.Write(b)
		must(err)
		must(z.Close())
		out[file] = to.Bytes()
	}
	return out
})

// address is where a browser gets such a file. It names the content, so that the browser may keep it for good, and
// yet has the new one at once when this program is replaced.
func address(file string) string { return "/static/" + file + "?v=" + marks[file] }

// asset serves a file that is the same for everybody. They are most of what a page needs, so browsers keep them;
// nothing else of the page is kept. They are also all that is compressed: a page has secrets beside what others typed,
// and how small it gets would tell of them.
func asset(w http.ResponseWriter, r *http.Request) {
	file, h := r.PathValue("file"), w.Header()
	mark := marks[file]
	if mark == "" {
		http.ServeFileFS(w, r, static, "static/"+file)
		return
	}
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache") // asked for each time, but not sent
	if r.URL.Query().Get("v") == mark {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if !takesGzip(r) {
		h.Set("ETag", `"`+mark+`"`)
		http.ServeFileFS(w, r, static, "static/"+file)
		return
	}
	h.Set("ETag", `"`+mark+`-gzip"`) // other bytes, so another name
	h.Set("Content-Encoding", "gzip")
	http.ServeContent(w, r, file, time.Time{}, bytes.NewReader(zipped()[file]))
}

// takesGzip reports whether a browser takes what is compressed.
func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, rest, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, weight, given := strings.Cut(rest, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		return !given || err == nil && q > 0
	}
	return false
}
