package web

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/internal/test/sample"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// crew is a node whose items can be taken and done.
type crew struct {
	*apitest.Fake
	mu      sync.Mutex // guards what follows
	items   []api.Item
	results []api.ItemResult
	changed []chan struct{}
}

func newCrew() *crew {
	c := &crew{Fake: brigade(), items: work()}
	c.OnWorklist = func(q api.WorklistQuery) ([]api.Item, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return listed(q, c.items), nil
	}
	c.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.IndexFunc(c.items, func(x api.Item) bool { return x.ID == q.Item })
		if err != nil || i < 0 {
			return nil, api.Errorf(api.NotFound, "there is no item %q on this worklist", q.Item)
		}
		s.Item = c.items[i]
		return s, nil
	}
	c.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var out []api.Item
		for i := range c.items {
			if slices.Contains(r.Items, c.items[i].ID) {
				c.items[i].State = map[string]string{
					api.ClaimSelect: api.ItemSelected, api.ClaimLock: api.ItemLocked, api.ClaimRelease: api.ItemReady,
				}[r.Claim]
				out = append(out, c.items[i])
			}
		}
		return out, nil
	}
	c.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results = append(c.results, r)
		i := slices.IndexFunc(c.items, func(x api.Item) bool { return x.ID == r.Item })
		if i < 0 {
			return nil, api.Errorf(api.Refused, "somebody else has done it")
		}
		done := c.items[i]
		c.items = slices.Delete(c.items, i, i+1)
		done.Delivered = true
		return &done, nil
	}
	c.OnWatch = func(ctx context.Context, fn func(api.Event) error) error {
		change := make(chan struct{}, 1)
		c.mu.Lock()
		c.changed = append(c.changed, change)
		c.mu.Unlock()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-change:
				if err := fn(api.Event{Kind: "instance", Instance: id, Text: "changed"}); err != nil {
					return err
				}
			}
		}
	}
	return c
}

// change changes the items, and tells whoever watches.
func (c *crew) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
	for _, told := range c.changed {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// site serves a node's page, and counts what is asked for.
type site struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex // guards what follows
	asked []string
	cut   int // so many pieces of files break off, after some of each
	over  bool
}

func serveSite(t *testing.T, svc api.Service) *site {
	s := &site{t: t}
	inner := httpapi.NewServer(svc, "token", httpapi.Options{Page: New(svc, slog.New(slog.DiscardHandler))})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.over { // a browser that watches comes back at once, and would hold up the end
			s.mu.Unlock()
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		breaks := s.cut > 0 && strings.HasPrefix(r.URL.Path, httpapi.UploadsPath)
		if breaks {
			s.cut--
			r.Body = &broken{ReadCloser: r.Body, left: 300_000}
		}
		s.mu.Unlock()
		if breaks {
			defer panic(http.ErrAbortHandler) // nothing is answered, and the connection ends
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// broken is what comes over a link that breaks.
type broken struct {
	io.ReadCloser
	left int
}

func (b *broken) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}

// link is an address that signs a browser in, once.
func (s *site) link() string {
	s.t.Helper()
	return signInLink(s.t, s.URL, "token")
}

// signInLink is such an address of a node.
func signInLink(t *testing.T, node, token string) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, node+"/v1/sign-in", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var in httpapi.SignIn
	if err := json.NewDecoder(resp.Body).Decode(&in); err != nil {
		t.Fatal(err)
	}
	return node + in.Path
}

var screenSizes = []screenSize{{"phone", 390, 844, true}, {"desk", 1280, 800, false}}

// signIn opens a tab by a link.
func (s *site) signIn(c *chromium, size screenSize, lang string, dark bool) *tab {
	s.t.Helper()
	b := c.open(size, lang, dark)
	b.visit(s.link())
	b.until("document.querySelector('nav.main')")
	return b
}

// A person takes an item and finishes it by two taps and the form, in either language, on a phone and at a desk:
// in a real browser, whose policies and cookies are those of people.
func TestTakeAndFinishInABrowser(t *testing.T) {
	c := startChromium(t)
	for _, size := range screenSizes {
		for _, l := range languages() {
			node := newCrew()
			s := serveSite(t, node)
			b := s.signIn(c, size, l.code, false)
			b.shoot(size.name + "-home." + l.code)
			b.tap(`form[action="/items/a1/take"] button`)
			b.until(`location.pathname === "/items/a1" && document.querySelector("#note")`)
			b.shoot(size.name + "-item." + l.code)

			// What is wrong is said at the field, and nothing typed is lost.
			b.typing("#f-report", "two floors, <smoke>")
			b.eval(`document.querySelector("#f-level").value = ""`, nil)
			b.typing("#f-level", "high")
			b.tap(`button[value="done"]`)
			b.until(`document.querySelector("#problem")`)
			b.shoot(size.name + "-wrong." + l.code)
			b.eval(`document.querySelector("#f-level").value = ""`, nil)
			b.typing("#f-level", "2"+l.comma+"5")
			b.tap("#f-dry-0")
			b.tap(`button[value="done"]`)
			b.until(`location.pathname === "/" && document.querySelector("#note")`)
			b.shoot(size.name + "-done." + l.code)

			node.mu.Lock()
			got := node.results
			node.mu.Unlock()
			want := []api.ItemResult{{User: "id-of-ana", Item: "a1", Outputs: map[string]string{
				"report": "two floors, <smoke>", "level": "2.5", "dry": "true", "houses": `["7","9a"]`,
				"depth": `{"bridge":0.5}`,
			}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", size.name, l.code, diff)
			}
		}
	}
}

// A page that somebody looks at changes as the node does; the form that somebody fills in is left alone, and is
// there again after the browser was closed.
func TestLiveInABrowser(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	s := serveSite(t, node)
	b := s.signIn(c, screenSizes[0], "en", false)
	node.change(func() { node.items[0].Subject = "Elm Road 3" })
	b.until(`document.body.innerText.includes("Elm Road 3")`)

	b.visit(s.URL + "/items/b2")
	b.typing("#f-report", "smoke")
	node.change(func() { node.items[1].Partner = "reserve" })
	b.until(`document.querySelector("#item-now").innerText.includes("at reserve")`)
	var typed string
	if b.eval(`document.querySelector("#f-report").value`, &typed); typed != "smoke" {
		t.Errorf("what was typed became %q", typed)
	}
	b.visit(s.URL + "/items/b2")
	if b.eval(`document.querySelector("#f-report").value`, &typed); typed != "smoke" {
		t.Errorf("after a reload it is %q", typed)
	}
	node.change(func() { node.items = slices.Delete(node.items, 1, 2) })
	b.until(`!document.querySelector("#changed").hidden`)
	b.tap(`button[value="done"]`)
	b.until(`document.body.innerText.includes("This is not on your list any more")`)
	var text string
	if b.eval("document.body.innerText", &text); !strings.Contains(text, "report: smoke") ||
		!strings.Contains(text, "there is no item") {
		t.Errorf("what was typed is lost:\n%s", text)
	}
}

// Without JavaScript all but what is live works.
func TestWithoutJavaScriptInABrowser(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	s := serveSite(t, node)
	b := c.open(screenSizes[0], "en", false)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.visit(s.link())
	b.until(`document.querySelector("nav.main")`)
	b.tap(`form[action="/items/a1/take"] button`)
	b.until(`location.pathname === "/items/a1"`)
	b.tap("#cannot > summary")
	b.typing("#reason", "no water")
	b.tap(`button[value="fail"]`)
	b.until(`location.pathname === "/" && document.querySelector("#note")`)
	if len(node.results) != 1 || node.results[0].Reason != "no water" || !node.results[0].Failed {
		t.Errorf("the node got %+v", node.results)
	}
}

// looked are the pages that people use.
var looked = []string{
	"/", "/items/b2", "/instances", "/instances/" + id, "/workflows", "/workflows/flood", "/mesh", "/outbox",
	"/contact", "/messages", "/instances/" + id + "/log", "/instances/" + id + "/gantt", "/study",
}

// Every page fits its screen: nothing is cut off sideways, texts are as large as they should be, and what can be
// pressed is as high as a thumb needs, and a little apart from all else. A moment stands in one line.
func TestPagesFitTheScreen(t *testing.T) {
	c := startChromium(t)
	crew, wreck, away := serveSite(t, newCrew()), serveSite(t, stranded()), serveSite(t, holderAway())
	for _, size := range screenSizes {
		for _, dark := range []bool{false, true} {
			crew.fits(c, size, dark, looked)
			wreck.fits(c, size, dark, lookedAtRepairs)
			away.fits(c, size, dark, []string{"/?away", "/items/e5", "/instances?away", "/instances/" + id + "?away", "/messages"})
		}
	}
}

// lookedAtRepairs are the pages of an instance that is interrupted, under a name of its own for their pictures.
var lookedAtRepairs = []string{
	"/instances/9c" + id, "/instances/9c" + id + "/recover", "/instances/9c" + id + "/states",
}

// fits checks that pages fit a screen.
func (s *site) fits(c *chromium, size screenSize, dark bool, paths []string) {
	s.t.Helper()
	b := s.signIn(c, size, "pt-BR", dark)
	for _, path := range paths {
		b.visit(s.URL + path)
		if path == lookedAtRepairs[1] { // and all that is folded
			b.eval(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`, nil)
		}
		mode := map[bool]string{false: "", true: "-dark"}[dark]
		b.shoot(size.name + mode + strings.NewReplacer("/", "-", "?", "-").Replace(path))
		var found struct {
			Wide                        float64
			Small, Short, Touch, Broken []string
		}
		b.eval(`(() => {
			const shown = (e) => e.getClientRects().length && getComputedStyle(e).visibility !== "hidden";
			const name = (e) => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 30);
			const texts = [...document.querySelectorAll("body *")].filter((e) => shown(e) && !e.closest("svg") && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
			const boxes = [...document.querySelectorAll("main button:not(.plain), main .button")].filter((e) => e.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true }) && !e.closest("details:not([open]) > :not(summary)")).map((e) => [e, e.getBoundingClientRect()]);
			const touch = ([, p], [, q]) => p.left < q.right && q.left < p.right && q.top >= p.top && q.top < p.bottom + 4;
			const pressed = [...document.querySelectorAll("button, .button, select, input:not([type=hidden], [type=radio], [type=checkbox]), textarea, summary, nav a")];
			return {
				wide: document.documentElement.scrollWidth - innerWidth,
				small: texts.filter((e) => parseFloat(getComputedStyle(e).fontSize) < (e.closest("h1 small, h2 small, .count, code, .code, pre") ? 12 : 16)).map(name),
				touch: boxes.filter((p) => boxes.some((q) => p !== q && touch(p, q))).map(([e]) => name(e)),
				broken: [...document.querySelectorAll("main time, main .at, main .progress")].filter((e) => shown(e) && !e.closest("dd") && new Set([...e.getClientRects()].map((r) => Math.round(r.bottom))).size > 1).map(name),
				short: pressed.filter((e) => shown(e) && !e.classList.contains("plain") && e.getBoundingClientRect().height < 47.5).map(name),
			};
		})()`, &found)
		if found.Wide > 0 || len(found.Small)+len(found.Short)+len(found.Touch)+len(found.Broken) > 0 {
			s.t.Errorf("%s%s %s: %v px too wide, small: %q, short: %q, touched by another: %q, in several lines: %q", size.name, mode,
				path, found.Wide, found.Small, found.Short, found.Touch, found.Broken)
		}
	}
}

// Whatever axe-core finds wrong for people who do not see, hear or point as others do is mended, in either language.
func TestAccessible(t *testing.T) {
	axe := axeCore(t)
	switch axe {
	case "":
		without(t, "axe-core is not here: npm pack axe-core, and name its axe.min.js in MUTIRAO_AXE")
	case noAxe:
		t.Skip("axe-core cannot be had here, so what it looks for is not checked")
	}
	c := startChromium(t)
	for _, on := range []struct {
		svc   api.Service
		paths []string
	}{{newCrew(), looked}, {stranded(), lookedAtRepairs[:2]}, {leaving("too-slow"), []string{"/contact"}},
		{leaving(""), []string{"/contact"}}, {gone(), []string{"/", "/contact"}},
		{holderAway(), []string{"/", "/items/e5", "/instances", "/instances/" + id}}} {
		s := serveSite(t, on.svc)
		for _, size := range screenSizes {
			for _, l := range languages() {
				for _, dark := range []bool{false, true} {
					if dark && l != languages()[0] { // colours are the same in each language
						continue
					}
					if !sample.Whole() && (dark == size.phone || dark != (l == languages()[0])) { // each once, not with each
						continue
					}
					b := s.signIn(c, size, l.code, dark)
					for _, path := range on.paths {
						for _, f := range b.axe(s.URL+path, axe) {
							t.Errorf("%s, %s, dark %v, %s: %s", size.name, l.code, dark, path, f)
						}
					}
				}
			}
		}
	}
	s := serveSite(t, newCrew())
	for _, dark := range []bool{false, true} {
		b := s.signIn(c, screenSizes[0], languages()[0].code, dark)
		busy := `document.querySelectorAll("button").forEach((x) => x.setAttribute("aria-busy", "true"))`
		for _, f := range b.axeAfter(s.URL+"/items/b2", busy, axe) {
			t.Errorf("dark %v, while a form is sent: %s", dark, f)
		}
	}
}

// What a phone has to fetch for home is small, and little of it.
func TestHomeIsSmall(t *testing.T) {
	s := serveSite(t, newCrew())
	p := newPage(newCrew())
	bodies := []string{get(t, p, "/", "pt-BR").Body.String()}
	for _, file := range []string{"style.css", "live.js", "icon.svg"} {
		bodies = append(bodies, get(t, p, "/static/"+file, "pt-BR").Body.String())
	}
	total := 0
	for _, b := range bodies {
		var packed countBytes
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, b) // into memory
		_ = z.Close()
		total += int(packed)
	}
	if total > 30<<10 {
		t.Errorf("home has %d bytes, compressed", total)
	}
	t.Logf("home has %d bytes, compressed, in %d requests", total, len(bodies))
	c := startChromium(t)
	b := s.signIn(c, screenSizes[0], "en", false)
	s.mu.Lock()
	s.asked = nil
	s.mu.Unlock()
	b.visit(s.URL + "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	files := slices.DeleteFunc(slices.Clone(s.asked),
		func(a string) bool { return strings.HasSuffix(a, "/events") || strings.HasSuffix(a, ".ico") })
	slices.Sort(files)
	files = slices.Compact(files) // the page before may still have asked for the icon
	if len(files) > 4 {
		t.Errorf("home is made of %d requests: %s", len(files), fmt.Sprint(files))
	}
}

type countBytes int

func (c *countBytes) Write(b []byte) (int, error) {
	*c += countBytes(len(b))
	return len(b), nil
}

// Whoever is signed out while typing loses nothing: after another sign-in, in another tab, to reload the page
// shows what was typed once more, and to press once more sends it.
func TestSignedOutWhileTypingInABrowser(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	s := serveSite(t, node)
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/items/b2")
	b.typing("#f-report", "smoke")
	other := b.beside()
	other.visit(s.URL + "/mesh")
	other.tap(`form[action="/sign-out"] button`)
	other.until(`document.body.innerText.includes("Signed out of this browser.")`)
	b.tap(`button[value="done"]`)
	b.until(`document.body.innerText.includes("is not lost: open the new link in another tab")`)
	other.visit(s.link())
	other.until("document.querySelector('nav.main')")
	b.eval("window.left = true", nil)
	b.call("Page.reload", nil, nil)
	b.until(`!window.left && document.querySelector("#problem")`)
	var text string
	if b.eval(`document.querySelector("#problem").innerText + "|" + document.querySelector("#f-report").value`, &text); !strings.HasPrefix(text, "You had to sign in again meanwhile") || !strings.HasSuffix(text, "|smoke") {
		t.Errorf("after another sign-in it says %q", text)
	}
	if len(node.results) > 0 {
		t.Errorf("it was carried out unasked: %+v", node.results)
	}
	b.tap(`button[value="done"]`)
	b.until(`location.pathname === "/" && document.querySelector("#note")`)
	if len(node.results) != 1 || node.results[0].Outputs["report"] != "smoke" {
		t.Errorf("the node got %+v", node.results)
	}
}

// An item is passed on, and a kept result adopted, by a step that says what that means: without JavaScript too.
func TestPassingOnAndAdoptingInABrowser(t *testing.T) {
	c := startChromium(t)
	for _, size := range screenSizes {
		node := newCrew()
		var passed []api.TransferRequest
		node.OnTransferItem = func(r api.TransferRequest) (*api.Transferred, error) {
			passed = append(passed, r)
			return &api.Transferred{ID: id, Task: "procedure-1", To: "bia", Partner: "engine-7"}, nil
		}
		var adopted []api.AdoptRequest
		node.OnAdoptResult = func(r api.AdoptRequest) (*api.Adopted, error) {
			adopted = append(adopted, r)
			return &api.Adopted{ID: id, Task: "pump", Result: r.Result, User: "ana", At: "reserve"}, nil
		}
		s := serveSite(t, node)
		b := c.open(size, "pt-BR", false)
		if !size.phone {
			b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		}
		b.visit(s.link())
		b.until(`document.querySelector("nav.main")`)
		b.visit(s.URL + "/items/b2")
		b.tap("#pass > summary")
		b.eval(`document.querySelector("#pass-to").value = "id-of-bia"`, nil)
		b.shoot(size.name + "-pass")
		b.tap(`button[value="to"]`)
		b.until(`location.pathname === "/" && document.querySelector("#note")`)
		b.visit(s.URL + "/instances/" + id)
		b.tap(".adopt > summary")
		b.tap("#pass > summary")
		b.shoot(size.name + "-adopt")
		b.tap(".adopt button")
		b.until(`document.querySelector("#note")`)
		if diff := cmp.Diff([]api.TransferRequest{{User: "id-of-ana", Item: "b2", To: "id-of-bia"}}, passed); diff != "" {
			t.Errorf("%s: %s", size.name, diff)
		}
		if diff := cmp.Diff([]api.AdoptRequest{{User: "id-of-ana", ID: id, Result: lateResult}}, adopted); diff != "" {
			t.Errorf("%s: %s", size.name, diff)
		}
	}
}

// An instance of twelve tasks is at most three screens of a phone, as long as nothing is unfolded; the drawing on a
// phone is the one that fits it.
func TestInstanceIsShort(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	var drawn []string
	node.OnDiagram = func(_, format string) ([]byte, error) {
		node.mu.Lock()
		defer node.mu.Unlock()
		drawn = append(drawn, format)
		return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="300" height="300"/>`), nil
	}
	node.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Asks, in.Incidents, in.Conflicts, in.Duplicated = nil, nil, nil, false
		for len(in.Tasks) < 12 {
			next := in.Tasks[0]
			next.Name = workflow.TaskName(fmt.Sprintf("task-%d", len(in.Tasks)))
			in.Tasks = append(in.Tasks, next)
		}
		return in, nil
	}
	s := serveSite(t, node)
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/instances/" + id)
	b.shoot("phone-twelve")
	var high float64
	if b.eval("document.documentElement.scrollHeight", &high); high > 3*float64(screenSizes[0].height) {
		t.Errorf("an instance of twelve tasks is %v pixels high", high)
	}
	b.tap("#drawing > summary")
	b.until(`document.querySelector("#drawing img").naturalWidth > 0`)
	node.mu.Lock()
	defer node.mu.Unlock()
	if fmt.Sprint(drawn) != "[svg-tall-en]" {
		t.Errorf("on a phone these were drawn: %v", drawn)
	}
}

// On a phone the drawing leads to itself alone, at the size at which its text is read, and there it can be enlarged.
func TestTheDrawingIsEnlargedOnAPhone(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	node.OnDiagram = func(string, string) ([]byte, error) {
		return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"><text y="20">pump</text></svg>`), nil
	}
	s := serveSite(t, node)
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/instances/" + id)
	b.tap("#drawing > summary")
	b.until(`document.querySelector("#drawing img").naturalWidth > 0`)
	b.tap("#drawing a")
	b.until(`location.pathname.endsWith("/diagram.svg") && document.documentElement.tagName === "svg"`)
	var is struct{ Wide, Before, After float64 }
	b.eval(`({wide: document.documentElement.getBoundingClientRect().width, before: visualViewport.scale})`, &is)
	b.call("Input.synthesizePinchGesture", map[string]any{"x": 195, "y": 150, "scaleFactor": 2.5}, nil)
	b.eval(`({wide: document.documentElement.getBoundingClientRect().width, after: visualViewport.scale})`, &is)
	if is.Wide < 900 || is.After < 2*is.Before {
		t.Errorf("the drawing is %v pixels wide; two fingers enlarge it from %v to %v", is.Wide, is.Before, is.After)
	}
}

// When each task ran can be read on a phone without moving anything sideways: the whole name of a task stands above its
// bar. On a wide screen there is the drawing.
func TestTheTimesOfTasksFitAPhoneInABrowser(t *testing.T) {
	c := startChromium(t)
	node := newCrew()
	was := node.OnShow
	const long = "Avisar os moradores da rua do porto, número "
	node.OnShow = func(of string) (*api.Instance, error) {
		in, err := was(of)
		if err != nil {
			return nil, err
		}
		x := *in
		x.Tasks = slices.Clone(in.Tasks)
		for i := range x.Tasks {
			x.Tasks[i].Label = fmt.Sprint(long, i)
		}
		return &x, nil
	}
	s := serveSite(t, node)
	for _, size := range screenSizes {
		b := s.signIn(c, size, "pt-BR", false)
		b.visit(s.URL + "/instances/" + id + "/gantt")
		var seen struct {
			Rows, Whole int
			Drawing     bool
		}
		b.eval(`(() => {
			const rows = [...document.querySelectorAll(".timeline > li")].filter((e) => e.checkVisibility());
			const whole = rows.filter((e) => {
				const [name, bar] = [e.querySelector("strong"), e.querySelector(".bar")].map((x) => x.getBoundingClientRect());
				return name.left >= 0 && name.right <= innerWidth && name.bottom <= bar.top &&
					bar.left >= 0 && bar.right <= innerWidth && bar.width > innerWidth * 0.8;
			});
			return {Rows: rows.length, Whole: whole.length, Drawing: document.querySelector("main img").checkVisibility()};
		})()`, &seen)
		in, _ := node.OnShow(id)
		if phone := size == screenSizes[0]; phone && (seen.Rows != len(in.Tasks) || seen.Whole != seen.Rows || seen.Drawing) ||
			!phone && (seen.Rows > 0 || !seen.Drawing) {
			t.Errorf("%s: %+v", size.name, seen)
		}
	}
}

// A browser that trusts the node's address can install the page; on the network, with a certificate that no phone
// knows, it is not offered.
func TestInstallable(t *testing.T) {
	c := startChromium(t)
	s := serveSite(t, newCrew())
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/")
	var got struct {
		URL    string
		Errors []struct{ Message string }
		Data   string
	}
	if b.call("Page.getAppManifest", nil, &got); !strings.HasSuffix(got.URL, address("manifest.json")) ||
		len(got.Errors) > 0 || !strings.Contains(got.Data, `"standalone"`) {
		t.Errorf("the manifest is %+v", got)
	}
	var not struct {
		InstallabilityErrors []struct{ ErrorID string }
	}
	b.call("Page.getInstallabilityErrors", nil, &not)
	for _, e := range not.InstallabilityErrors {
		if e.ErrorID != "in-incognito" { // as each browser of these tests is
			t.Errorf("it cannot be installed: %s", e.ErrorID)
		}
	}
}

// axe looks at a page with axe-core, which it is given. A page that was left meanwhile, as it brought itself up to
// date, is looked at again.
func (b *tab) axe(url, core string) []string {
	b.t.Helper()
	return b.axeAfter(url, "", core)
}

// axeAfter is axe once a script was run there.
func (b *tab) axeAfter(url, script, core string) []string {
	b.t.Helper()
	var err error
	for range 3 {
		b.visit(url)
		b.eval(script, nil)
		var found []string
		if found, err = b.axeHere(core); err == nil {
			return found
		}
	}
	b.t.Fatalf("axe-core on %s: %v", url, err)
	return nil
}

// axeHere looks at the page that is shown, and leaves it as it was. The error says that it was left meanwhile.
func (b *tab) axeHere(core string) ([]string, error) {
	b.t.Helper()
	const run = `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 120) + " " + n.failureSummary).join(" | ").slice(0, 600)))`
	const open = `globalThis.folded = [...document.querySelectorAll("details:not([open])")];
		folded.forEach((d) => { d.open = true; });` // what is folded, too
	const fold = `.finally(() => folded.forEach((d) => { d.open = false; }))`
	got, err := b.try(b.session, "Runtime.evaluate",
		map[string]any{"expression": open + core + "\n;" + run + fold, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return nil, err
	}
	var is struct {
		Result           struct{ Value []string }
		ExceptionDetails json.RawMessage
	}
	if err = json.Unmarshal(got, &is); err != nil || is.ExceptionDetails != nil {
		b.t.Fatalf("axe-core: %v, %s", err, is.ExceptionDetails)
	}
	return is.Result.Value, nil
}

// noAxe is what MUTIRAO_AXE says where axe-core cannot be had at all.
const noAxe = "none"

// axeCore is axe-core, whose file is named by MUTIRAO_AXE; CI fetches it from the npm registry. Empty: it is not here.
func axeCore(t *testing.T) string {
	t.Helper()
	file := os.Getenv("MUTIRAO_AXE")
	if file == "" || file == noAxe {
		return file
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(axe)
}
