package web

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed strings templates
var texts embed.FS

// language is one in which the page can be read.
type language struct {
	code   string
	text   map[string]string
	comma  string // before decimals
	date   string // the layout of a date
	pages  *template.Template
	prefix string // of the language tags that it suits

	reasons []reasonRow // how it says what the node words
}

// languages are those there are; the first is for readers that understand none. They are loaded for the first page that
// somebody looks at: a command has none, and most nodes are never looked at.
var languages = sync.OnceValue(func() []*language {
	return []*language{
		load(&language{code: "en", prefix: "en", comma: ".", date: "2006-01-02"}),
		load(&language{code: "pt-BR", prefix: "pt", comma: ",", date: "02/01/2006"}),
	}
})

func load(l *language) *language {
	b, err := texts.ReadFile("strings/" + l.code + ".json")
	must(err)
	must(json.Unmarshal(b, &l.text))
	l.reasons = reasonRows(l.code)
	l.pages, err = template.New("").Funcs(l.functions()).ParseFS(texts, "templates/*.html")
	must(err)
	return l
}

func must(err error) {
	if err != nil {
		panic("web: an embedded file is broken: " + err.Error())
	}
}

// ofOne ends the key of a text that is said in place of another where that is of one thing alone.
const ofOne = ".one"

// say is the text of a key, with its blanks filled in.
func (l *language) say(key string, args ...any) string {
	text, ok := l.text[key]
	if one, is := l.text[key+ofOne]; is && len(args) > 0 && args[0] == 1 {
		text = one
	}
	if !ok {
		return key
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// word is a value of the interface in words. One that is not known, since the
// node is newer than this page or a partner made it up, is shown as it is.
func (l *language) word(family string, value any) string {
	v := fmt.Sprint(value)
	if text, ok := l.text["is."+family+"."+v]; ok {
		return text
	}
	return v
}

// languageCookie remembers which language was chosen by hand.
const languageCookie = "mutirao-lang"

// choose finds the reader's language: what was chosen now by ?lang=, or once, or
// what the browser asks for.
func choose(w http.ResponseWriter, r *http.Request) *language {
	if l := byTag(r.URL.Query().Get("lang")); l != nil {
		http.SetCookie(w, &http.Cookie{
			Name: languageCookie, Value: l.code, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true,
			SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
		})
		return l
	}
	if c, err := r.Cookie(languageCookie); err == nil {
		if l := byTag(c.Value); l != nil {
			return l
		}
	}
	for _, tag := range preferred(r.Header.Get("Accept-Language")) {
		if l := byTag(tag); l != nil {
			return l
		}
	}
	return languages()[0]
}

// byTag finds the language for a tag such as pt-PT; nil: none.
func byTag(tag string) *language {
	primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
	for _, l := range languages() {
		if primary == l.prefix {
			return l
		}
	}
	return nil
}

// preferred lists the tags of an Accept-Language header, the dearest first.
func preferred(header string) []string {
	type wish struct {
		tag string
		q   float64
	}
	var wishes []wish
	for part := range strings.SplitSeq(header, ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			q, _ = strconv.ParseFloat(v, 64) // what cannot be read is not wished for
		}
		if q > 0 {
			wishes = append(wishes, wish{tag, q})
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(b.q, a.q) })
	tags := make([]string, len(wishes))
	for i, w := range wishes {
		tags[i] = w.tag
	}
	return tags
}

// others are the languages with links to the same page in them.
func (l *language) others(r *http.Request) []link {
	var out []link
	for _, other := range languages() {
		q := r.URL.Query()
		q.Set("lang", other.code)
		out = append(out, link{
			Code: other.code, Name: other.say("language"), URL: "?" + q.Encode(), Current: other == l,
		})
	}
	return out
}
