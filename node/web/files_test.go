package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// A file that comes with a form is handed in as what the task sets. Where the form will not do it is kept, and named
// in the form that is shown once more; so the file need not be sent again.
func TestAFileComesAlong(t *testing.T) {
	f := brigade()
	var got []api.ItemResult
	f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		got = append(got, r)
		done := work()[1]
		return &done, nil
	}
	s := sent(httpapi.Good)
	s.Files = map[string]httpapi.Upload{
		"file.photo": {File: &api.File{Name: "house.pdf", Value: planOfHouse}}, "photo": {File: &api.File{Value: "x"}},
	}
	w := post(t, newPage(f), s, "en", "/items/b2", url.Values{"act": {"done"}, "data.level": {"high"}})
	body := w.Body.String()
	if w.Code != http.StatusBadRequest || !strings.Contains(body, `name="data.photo" value="`+planOfHouse+`"`) ||
		!strings.Contains(body, "house.pdf (2.4 MB) is kept here, and goes along when you are done.") {
		t.Fatalf("%d\n%s", w.Code, prose(body))
	}
	p := newPage(f)
	follow(t, p, post(t, p, sent(httpapi.Good), "en", "/items/b2",
		url.Values{"act": {"done"}, "data.photo": {planOfHouse}}), "en")
	follow(t, p, post(t, p, s, "en", "/items/b2", url.Values{"act": {"done"}}), "en")
	want := api.ItemResult{User: "id-of-ana", Item: "b2", Outputs: map[string]string{"photo": planOfHouse}}
	if diff := cmp.Diff([]api.ItemResult{want, want}, got); diff != "" {
		t.Error(diff)
	}
}

// A file that came with a form that was not done is taken away again by a box, unless another one is chosen.
func TestAFileIsTakenAwayAgain(t *testing.T) {
	f := brigade()
	var got []api.ItemResult
	f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		got = append(got, r)
		done := work()[1]
		return &done, nil
	}
	p := newPage(f)
	again := url.Values{"act": {"done"}, "data.photo": {planOfHouse}, "data.level": {"high"}}
	w := post(t, p, sent(httpapi.Good), "en", "/items/b2", again)
	if !strings.Contains(w.Body.String(), `name="without.photo" value="`+planOfHouse+`"> Do without this file`) {
		t.Fatal(prose(w.Body.String()))
	}
	again.Set("without.photo", planOfHouse)
	w = post(t, p, sent(httpapi.Good), "en", "/items/b2", again)
	if strings.Contains(w.Body.String(), "is kept here, and goes along") {
		t.Errorf("it is there again: %s", prose(w.Body.String()))
	}
	again.Del("data.level")
	follow(t, p, post(t, p, sent(httpapi.Good), "en", "/items/b2", again), "en")
	other := strings.Replace(planOfHouse, "house", "mouse", 1)
	again.Set("data.photo", other)
	follow(t, p, post(t, p, sent(httpapi.Good), "en", "/items/b2", again), "en")
	if len(got) != 2 || got[0].Outputs["photo"] != "" || got[1].Outputs["photo"] != other {
		t.Errorf("handed in: %v", got)
	}
}

// A file that is not taken is said at its field, with the reason; all else that was typed is there again. A text that
// is no file is not handed in as one.
func TestAFileIsNotTaken(t *testing.T) {
	for want, tt := range map[string]struct {
		files map[string]httpapi.Upload
		form  url.Values
	}{
		"A photo of the place: house.pdf has 2.4 MB, and 1 MB is free": {map[string]httpapi.Upload{"file.photo": {Err: api.Errorf(api.Refused, "house.pdf has 2.4 MB, and 1 MB is free")}}, nil},
		"A photo of the place: Something went wrong inside the node.":  {map[string]httpapi.Upload{"file.photo": {Err: errors.New("badger: value log 7 is broken")}}, nil},
		"A photo of the place: this is no file: choose one": {nil,
			url.Values{"data.photo": {"/etc/passwd"}}},
		"A photo of the place: there is no room": {nil,
			url.Values{"lost.photo": {"there is no room"}}},
	} {
		s := sent(httpapi.Good)
		s.Files = tt.files
		form := url.Values{"act": {"done"}, "data.report": {"smoke"}}
		for k, v := range tt.form {
			form[k] = v
		}
		w := post(t, newPage(brigade()), s, "en", "/items/b2", form)
		if text := prose(w.Body.String()); w.Code != http.StatusBadRequest || !strings.Contains(text, want) ||
			!strings.Contains(text, "smoke") || strings.Contains(text, "badger") {
			t.Errorf("%s: %d\n%s", want, w.Code, text)
		}
	}
}

// A form of a session that has ended kept no file: it is said which one is to be chosen once more.
func TestAFileThatIsToBeChosenAgain(t *testing.T) {
	s := sent(httpapi.Stale)
	s.Files = map[string]httpapi.Upload{"file.photo": {Err: errors.New("not kept"), Name: "roof.jpg"}}
	w := post(t, newPage(brigade()), s, "en", "/items/b2", url.Values{"act": {"done"}, "data.report": {"smoke"}})
	if text := prose(w.Body.String()); w.Code != http.StatusConflict || !strings.Contains(text, "You had to sign in again") ||
		!strings.Contains(text, "A photo of the place: choose roof.jpg once more") || !strings.Contains(text, "smoke") {
		t.Errorf("%d\n%s", w.Code, text)
	}
}

// A file that an item needs is fetched in the name of the session's user, and is never shown as a page.
func TestFilesOfAnItem(t *testing.T) {
	f := brigade()
	f.OnItemFile = func(q api.ItemQuery, name string) (*api.File, io.ReadCloser, error) {
		if q.User != "id-of-ana" || q.Item != "b2" || name != "map" {
			return nil, nil, api.Errorf(api.NotFound, "there is no file <x> among what b2 reads")
		}
		return &api.File{Name: "house.html", Size: 8, Value: planOfHouse}, io.NopCloser(strings.NewReader("<script>")),
			nil
	}
	p := newPage(f)
	if body := get(t, p, "/items/b2", "en").Body.String(); !strings.Contains(body, `<a href="/items/b2/files/map" download>house.pdf</a>`) || !strings.Contains(prose(body), "sketch.png 900 B · comes here when you open it") {
		t.Error(prose(body))
	}
	w := get(t, p, "/items/b2/files/map", "en")
	if h := w.Header(); w.Code != 200 || w.Body.String() != "<script>" ||
		h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("Content-Disposition") != "attachment; filename=house.html" ||
		!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%d %v %s", w.Code, h, w.Body)
	}
	if w := get(t, p, "/items/b2/files/other", "pt-BR"); w.Code != 404 ||
		!strings.Contains(w.Body.String(), "&lt;x&gt;") ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "style-src 'self'") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Of a file that nobody has who is there it is not said that it comes when somebody opens it.
func TestAFileWhoseGiverIsGone(t *testing.T) {
	f := brigade()
	f.OnData = func(string) ([]api.DataItem, error) {
		return []api.DataItem{{Name: "plan", Type: "file", Value: planOfHouse, File: &api.File{
			Name: "photo.jpg", Size: 900, Value: planOfHouse, Gone: []string{"tech"},
		}}}, nil
	}
	p := newPage(f)
	for lang, want := range map[string]string{
		"en":    "photo.jpg 900 B · given by tech, no longer active: it comes only if another partner has it",
		"pt-BR": "photo.jpg 900 B · enviado por tech, fora de atividade: só vem se outro parceiro o tiver",
	} {
		if text := prose(get(t, p, "/instances/"+fireCall().ID, lang).Body.String()); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
}

// A photo goes along with the form, in a real browser, with JavaScript and without; what will not do in the form does
// not cost sending the photo again.
func TestAPhotoComesAlongInABrowser(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "Straße 7.jpg")
	if err := os.WriteFile(path, []byte(strings.Repeat("photo", 300_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range screenSizes {
		for _, script := range []bool{true, false} {
			node := newCrew()
			var kept []int64
			s := serveSite(t, keeper{node, &kept})
			b := c.open(size, "pt-BR", false)
			b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !script}, nil)
			b.visit(s.link())
			b.until(`document.querySelector("nav.main")`)
			b.visit(s.URL + "/items/b2")
			b.choose("#f-photo", path)
			b.eval(`document.querySelector("#f-level").value = "high"`, nil)
			b.tap(`button[value="done"]`)
			b.until(`document.querySelector("#problem") && document.querySelector("#f-photo-has")`)
			b.shoot(size.name + "-photo")
			b.eval(`document.querySelector("#f-level").value = "2,5"`, nil)
			b.tap(`button[value="done"]`)
			b.until(`location.pathname === "/" && document.querySelector("#note")`)
			if len(kept) != 1 || kept[0] != 1_500_000 || len(node.results) != 1 ||
				!strings.HasSuffix(node.results[0].Outputs["photo"], ":1500000:Straße 7.jpg") {
				t.Errorf("%s, script %v: %v, %+v", size.name, script, kept, node.results)
			}
			b.visit(s.URL + "/items/a1") // the crew's other item, with the file at once
			b.tap(`form[action="/items/a1/take"] button`)
			b.until(`document.querySelector("#f-photo")`)
			b.choose("#f-photo", path)
			b.tap(`button[value="done"]`)
			b.until(`location.pathname === "/" && document.querySelector("#note")`)
			if len(node.results) != 2 || node.results[1].Outputs["photo"] == "" {
				t.Errorf("%s, script %v: %+v", size.name, script, node.results)
			}
		}
	}
}

// A photo that the node keeps for a form is there again when the item is opened once more, as what was typed is; and all
// of that is handed in as it was typed.
func TestAPhotoStaysWithAnItemInABrowser(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "house.jpg")
	if err := os.WriteFile(path, []byte("photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := newCrew()
	var kept []int64
	s := serveSite(t, keeper{node, &kept})
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/items/b2")
	b.typing("#f-report", "one\ntwo \u200d.")
	b.eval(`document.querySelector("#f-houses").value = ""`, nil)
	b.typing("#f-houses", "a\nb")
	b.typing("#f-level", "high")
	b.choose("#f-photo", path)
	b.tap(`button[value="done"]`)
	b.until(`document.querySelector("#problem") && document.querySelector("#f-photo-has")`)
	b.visit(s.URL + "/items/a1") // another one, of which something is said
	b.tap(`form[action="/items/a1/take"] button`)
	b.until(`document.querySelector("#note")`)
	b.visit(s.URL + "/items/b2")
	b.until(`(document.querySelector("#f-photo-has") || {}).textContent === "house.jpg (5 B) is kept here, and goes along when you are done. Choose another one to replace it."`)
	b.eval(`document.querySelector("#f-level").value = ""`, nil)
	b.typing("#f-level", "2.5")
	b.visit(s.URL + "/items/b2")
	b.until(`document.querySelector("#f-photo-has")`)
	b.tap(`button[value="done"]`)
	b.until(`location.pathname === "/" && document.querySelector("#note")`)
	if len(node.results) != 1 {
		t.Fatalf("%d results", len(node.results))
	}
	got := node.results[0].Outputs
	if got["report"] != "one\ntwo \u200d." || got["houses"] != `["a","b"]` || got["level"] != "2.5" ||
		!strings.HasSuffix(got["photo"], ":5:house.jpg") {
		t.Errorf("handed in: %q", got)
	}
	b.visit(s.URL + "/items/b2")
	var left string
	b.eval(`JSON.stringify({...localStorage})`, &left)
	if strings.Contains(left, "house.jpg") {
		t.Errorf("what was handed in is kept still: %s", left)
	}
}

// A photo for an item that is only taken stays with its form where the node went out of reach on purpose before it was
// sent: it may exist nowhere else. Back in reach it is handed in, without a script from the page that said why it was not,
// with one also from the item opened once more.
func TestAPhotoStaysOutOfReachInABrowser(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "flood.jpg")
	if err := os.WriteFile(path, []byte("photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, script := range []bool{true, false} {
		node := newCrew()
		var kept []int64
		var alone atomic.Bool
		was, finish := node.OnStatus, node.OnFinishItem
		node.OnStatus = func() (*api.Status, error) {
			st, err := was()
			if err != nil || !alone.Load() {
				return st, err
			}
			away := *st
			away.Disconnected = ref(at(11 * time.Hour))
			return &away, nil
		}
		node.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
			if alone.Load() {
				return nil, api.Errorf(api.Refused, "engine-7 holds procedure-1, and this node is disconnected on purpose")
			}
			return finish(r)
		}
		s := serveSite(t, keeper{node, &kept})
		b := c.open(screenSizes[0], "en", false)
		b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !script}, nil)
		b.visit(s.link())
		b.until(`document.querySelector("nav.main")`)
		b.visit(s.URL + "/items/b2")
		b.choose("#f-photo", path)
		b.eval(`document.querySelector("#f-level").value = "6.5"`, nil)
		alone.Store(true)
		b.tap(`button[value="done"]`)
		b.until(`document.querySelector("#problem") && document.querySelector("#f-photo-has") && document.querySelector(".notice")`)
		if script {
			b.visit(s.URL + "/items/b2") // which has no form now
			b.until(`document.querySelector("h1") && !document.querySelector("#f-photo")`)
		}
		alone.Store(false)
		if script {
			b.visit(s.URL + "/items/b2")
			b.until(`(document.querySelector("#f-photo-has") || {}).textContent === "flood.jpg (5 B) is kept here, and goes along when you are done. Choose another one to replace it."`)
		}
		b.tap(`button[value="done"]`)
		b.until(`location.pathname === "/" && document.querySelector("#note")`)
		if len(kept) != 1 || len(node.results) != 1 || node.results[0].Outputs["level"] != "6.5" ||
			!strings.HasSuffix(node.results[0].Outputs["photo"], ":5:flood.jpg") {
			t.Errorf("script %v: %v, %+v", script, kept, node.results)
		}
	}
}

// A file that was chosen and not sent is named when its form is opened again: it has to be chosen once more.
func TestAFileIsToBeChosenAgainInABrowser(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "roof.jpg")
	if err := os.WriteFile(path, []byte("photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveSite(t, newCrew())
	b := s.signIn(c, screenSizes[0], "en", false)
	says := `(document.querySelector("#f-photo-error") || {}).textContent === "choose roof.jpg once more: it was not kept"`
	b.visit(s.URL + "/items/b2")
	b.choose("#f-photo", path)
	b.visit(s.URL + "/items/b2")
	b.until(says)
	b.typing("#f-report", "one") // which keeps the form once more
	b.visit(s.URL + "/items/b2")
	b.until(says)
	b.choose("#f-photo", path)
	b.until(`!document.querySelector("#f-photo-error")`)
}

// What is typed and not sent yet is of the user who typed it, and of the item: another user who signs in with the browser
// finds nothing of it, nor whoever looks after its user has signed out.
func TestADraftGoesWithItsUserInABrowser(t *testing.T) {
	c := startChromium(t)
	s := serveSite(t, newCrew())
	b := s.signIn(c, screenSizes[0], "en", false)
	drafts := func() (out []string) {
		b.eval(`Object.keys(localStorage).filter((k) => k.startsWith("mutirao "))`, &out)
		return out
	}
	b.visit(s.URL + "/items/b2")
	b.eval(`localStorage.setItem("mutirao bia b2", "{}"); localStorage.setItem("of another page", "{}")`, nil)
	b.typing("#f-report", "the cellar is dry")
	b.visit(s.URL + "/items/b2")
	b.until(`document.querySelector("#f-report").value === "the cellar is dry"`)
	if got := drafts(); len(got) != 1 || !strings.HasSuffix(got[0], " b2") || strings.Contains(got[0], "bia") {
		t.Errorf("the browser keeps %q", got)
	}
	b.tap(`form[action="/sign-out"] button`)
	b.until(`!document.querySelector("nav.main")`)
	if got := drafts(); len(got) != 0 {
		t.Errorf("after its user has signed out the browser keeps %q", got)
	}
	var other string
	if b.eval(`localStorage.getItem("of another page")`, &other); other != "{}" {
		t.Errorf("what is of another page is %q", other)
	}
}

// A photo that is sent over a link that breaks goes on where it stopped, and comes whole; what the node does not take
// is said at its field, and is not sent twice.
func TestAPhotoOverALinkThatBreaksInABrowser(t *testing.T) {
	c := startChromium(t)
	path := filepath.Join(t.TempDir(), "large.jpg")
	if err := os.WriteFile(path, []byte(strings.Repeat("photo", 600_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	node := newCrew()
	var kept []int64
	s := serveSite(t, keeper{node, &kept})
	s.cut = 2
	b := s.signIn(c, screenSizes[0], "en", false)
	b.visit(s.URL + "/items/b2")
	b.typing("#f-report", "smoke")
	b.choose("#f-photo", path)
	b.tap(`button[value="done"]`)
	b.until(`location.pathname === "/" && document.querySelector("#note")`)
	s.mu.Lock()
	defer s.mu.Unlock()
	pieces := 0
	for _, a := range s.asked {
		if strings.HasPrefix(a, "POST "+httpapi.UploadsPath) {
			pieces++
		}
	}
	if len(kept) != 1 || kept[0] != 3_000_000 || len(node.results) != 1 ||
		node.results[0].Outputs["report"] != "smoke" ||
		!strings.HasSuffix(node.results[0].Outputs["photo"], ":3000000:large.jpg") {
		t.Errorf("it came as %v, %+v", kept, node.results)
	}
	if pieces < 5 || pieces > 8 { // three, two that broke off, and one for each of these that was not where it should be
		t.Errorf("it came in %d pieces", pieces)
	}
}

// keeper is a crew's node that notes how long the files are that it is given.
type keeper struct {
	*crew
	kept *[]int64
}

func (k keeper) PutFile(ctx context.Context, name string, from io.Reader) (*api.File, error) {
	f, err := k.crew.PutFile(ctx, name, from)
	*k.kept = append(*k.kept, f.Size)
	return f, err
}

// choose chooses a file in what a selector finds.
func (b *tab) choose(selector, path string) {
	b.t.Helper()
	var doc struct{ Root struct{ NodeID int } }
	b.call("DOM.getDocument", nil, &doc)
	var found struct{ NodeID int }
	b.call("DOM.querySelector", map[string]any{"nodeId": doc.Root.NodeID, "selector": selector}, &found)
	b.call("DOM.setFileInputFiles", map[string]any{"nodeId": found.NodeID, "files": []string{path}}, nil)
}

// A file among data is shown by its name and size, not by its reference.
func TestAFileIsShownByItsName(t *testing.T) {
	if got := value(planOfHouse); got != "house.pdf, 2.4 MB" {
		t.Errorf("it is shown as %q", got)
	}
}
