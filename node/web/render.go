package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// screen asks the node for what one page shows.
type screen func(ctx context.Context, r *http.Request) (view, error)

// view is the middle of a page.
type view struct {
	template string
	title    string // the key of a string
	name     string // what the page is about, as it is; empty: the title says it
	data     any
	live     bool
	refresh  int    // after so many seconds it is asked for again, also without JavaScript; 0: it is not
	status   int    // of the answer; 0: all is well
	instance string // of which events concern the page; empty: all
}

// link is an entry of a menu.
type link struct {
	Code, Name, URL string
	Current         bool
	Counts          bool // it says how much of it is new
	New             int
}

// frame is what is around every page.
type frame struct {
	Title     string
	Node      *api.Status
	Session   httpapi.Session
	Nav       []link
	Languages []link
	Live      bool
	Reach     reach
	Instance  string
	Words     string // for the certificate, where the page is open to the network; empty: it is not
}

// show answers with a screen, or with what went wrong.
func (p *Page) show(w http.ResponseWriter, r *http.Request, s screen) {
	lang := languageOf(r.Context())
	node, err := p.node.Status(r.Context())
	if err != nil {
		node = &api.Status{}
	}
	var v view
	if err == nil {
		v, err = s(r.Context(), r)
	}
	status := cmp.Or(v.status, http.StatusOK)
	if err != nil {
		status, v = p.wrong(r, lang, err)
	}
	f := frame{
		Title: cmp.Or(v.name, lang.say(v.title)), Node: node, Session: session(r.Context()), Languages: lang.others(r),
		Live: v.live, Instance: v.instance,
	}
	f.Words = httpapi.LANWords(r.Context())
	f.Reach = p.reach(r.Context())
	for _, n := range []link{
		{Code: "nav.work", URL: "/"}, {Code: "nav.messages", URL: "/messages", Counts: true,
			New: p.unread(r.Context())}, {Code: "nav.instances", URL: "/instances"}, {Code: "nav.workflows",
			URL: "/workflows"}, {Code: "nav.mesh", URL: "/mesh"},
	} {
		n.Name = lang.say(n.Code)
		n.Current = r.URL.Path == n.URL || (n.URL != "/" && strings.HasPrefix(r.URL.Path, n.URL+"/")) ||
			n.URL == "/" && worksHere(r.URL.Path)
		f.Nav = append(f.Nav, n)
	}
	if v.refresh > 0 {
		w.Header().Set("Refresh", strconv.Itoa(v.refresh))
	}
	parts := []part{{"top", f}, {v.template, v.data}}
	if r.Method == http.MethodPost {
		parts = append(parts, p.typed(r, lang, parts[1], err)...)
	}
	p.write(w, r, status, lang, append(parts, part{"bottom", f})...)
}

// typed has the page of a form that was not carried out show what was typed there and has no control on it: with the
// reason or, of a page that says only what went wrong, in a part of its own.
func (p *Page) typed(r *http.Request, lang *language, middle part, wrong error) []part {
	x := refusalOf(r.Context())
	if x.why == nil && wrong == nil {
		return nil
	}
	var b bytes.Buffer
	if err := lang.pages.ExecuteTemplate(&b, middle.template, middle.data); err != nil {
		return nil // which write says
	}
	left := x.unshown(lang, r.PostForm, b.String())
	if wrong != nil {
		return []part{{"typed", left}}
	}
	x.why.Typed = left
	return nil
}

// worksHere reports whether a page belongs to a user's work.
func worksHere(path string) bool {
	return path == "/outbox" || path == "/contact" || strings.HasPrefix(path, "/items/")
}

// reach is how many partners can be reached now, of how many.
type reach struct{ Up, All int }

func (p *Page) reach(ctx context.Context) (out reach) {
	partners, err := p.node.Partners(ctx)
	if err != nil {
		return reach{}
	}
	for _, x := range partners {
		if x.Self || x.State == "evicted" || x.State == "left" {
			continue
		}
		out.All++
		if x.State == "active" {
			out.Up++
		}
	}
	return out
}

// wrong is the page that says what went wrong. What is no *api.Error is logged
// and not shown.
func (p *Page) wrong(r *http.Request, lang *language, err error) (status int, v view) {
	var gone *missing
	var shown *api.Error
	switch {
	case errors.As(err, &gone):
		shown = api.Errorf(api.NotFound, "%s", lang.say("error.nopage", gone.path))
	case !errors.As(err, &shown):
		if !errors.Is(err, context.Canceled) {
			p.log.Error("a page's question failed inside the node", "path", r.URL.Path, "error", err)
		}
		shown = api.Errorf(api.Internal, "%s", lang.say("error.internal")).
			WithHint("%s", lang.say("error.internal.hint"))
	}
	return shown.Code.HTTP(), view{
		template: "error", title: "error.title",
		data: &api.Error{Code: shown.Code, Message: lang.reason(shown.Message), Hint: lang.reason(shown.Hint)},
	}
}

// missing is the error of a path that leads nowhere.
type missing struct{ path string }

func (m *missing) Error() string { return "there is no page " + m.path }

func nowhere(_ context.Context, r *http.Request) (view, error) {
	return view{}, &missing{r.URL.Path}
}

// part is a template and what it shows.
type part struct {
	template string
	data     any
}

// write sends a page of parts, whole or not at all.
func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, lang *language, parts ...part) {
	var b bytes.Buffer
	for _, part := range parts {
		if err := lang.pages.ExecuteTemplate(&b, part.template, part.data); err != nil {
			p.log.Error("a page could not be made", "path", r.URL.Path, "error", err)
			http.Error(w, lang.say("error.internal"), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", lang.code)
	w.WriteHeader(status)
	// One place for all pages: what would turn a line's direction, or hides, shows.
	_, _ = io.WriteString(w, plain.Text(b.String())) // a reader that went away wants no error
}
