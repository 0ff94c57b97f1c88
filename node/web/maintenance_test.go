package web

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// StartMesh starts real nodes of one mesh, until the test ends, that all see each other, and says how each is asked. The
// first founds it and has the roles. It is set as StartNode is.
var StartMesh func(t *testing.T, roles []string, names ...string) map[string]*httpapi.Client

var (
	//go:embed testdata/maintenance.yaml
	maintenance []byte
	//go:embed testdata/rounds.yaml
	rounds []byte
)

// crewOf are the people of the workshop, and at whose node each works.
var crewOf = []struct{ name, role, at string }{
	{"ana", "attendant", "office"}, {"caio", "office-boy", "office"}, {"bia", "technician", "van"},
	{"davi", "technician", "depot"},
}

// A client's machine is mended as worklists tell it, by people at browsers whose nodes are a real mesh: ana starts it and
// writes the order; bia takes the visit offline, goes out of reach with it, and does it there, while the others wait
// and nobody else can have it; back in reach, what she did is handed in by itself, the programs go on, caio brings the
// order, and ana is told that it has ended. On a phone and at a desk, in either language. After that bia takes two items of
// two partners by one button, of which the second waits for the first, and does both out of reach.
func TestMaintenanceInABrowser(t *testing.T) {
	c := startChromium(t)
	nodes := StartMesh(t, []string{"attendant"}, "office", "van", "depot")
	shop := &workshop{t: t, c: c, nodes: nodes, seats: map[string]*seat{}, axe: axeCore(t)}
	for _, p := range crewOf {
		token, err := nodes["office"].AddUser(t.Context(), api.UserRequest{Name: p.name, Roles: []string{p.role}})
		if err == nil {
			_, err = nodes[p.at].SignInUser(t.Context(), token.Token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string][]byte{"maintenance.yaml": maintenance, "rounds.yaml": rounds} {
		if _, err := nodes["office"].AddWorkflow(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range screenSizes {
		for _, l := range languages() {
			shop.size, shop.lang = size, l
			began := time.Now()
			shop.mend()
			shop.goRound()
			t.Logf("%s, %s: %s", size.name, l.code, time.Since(began).Round(time.Millisecond))
		}
	}
}

// workshop is a mesh, with a browser for each of its people.
type workshop struct {
	t     *testing.T
	c     *chromium
	nodes map[string]*httpapi.Client
	size  screenSize
	lang  *language
	seats map[string]*seat // who has signed in, by name
	axe   string           // axeCore
}

// sit opens a browser for somebody, or takes up the one that somebody has.
func (w *workshop) sit(name string) *seat {
	w.t.Helper()
	if s := w.seats[name]; s != nil {
		s.become(w.size, w.lang.code)
		s.home()
		return s
	}
	for _, p := range crewOf {
		if p.name != name {
			continue
		}
		node := w.nodes[p.at]
		link, of, err := node.SignIn(w.t.Context(), httpapi.SignInLink{User: name})
		if err != nil || of.User != name {
			w.t.Fatalf("%s signs in as %+v: %v", name, of, err)
		}
		url, _, _ := node.Way()
		s := &seat{tab: w.c.open(w.size, w.lang.code, false), w: w, name: name, url: url, node: node}
		s.visit(link)
		s.until("document.querySelector('nav.main')")
		w.seats[name] = s
		return s
	}
	w.t.Fatalf("nobody is called %s", name)
	return nil
}

// seat is a person at a browser.
type seat struct {
	*tab
	w         *workshop
	name, url string
	node      *httpapi.Client
}

// says waits until the page says something in the reader's language, by itself.
func (s *seat) says(key string, args ...any) {
	s.t.Helper()
	s.reads(s.w.lang.say(key, args...))
}

func (s *seat) reads(text string) {
	s.t.Helper()
	s.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// lists waits until an item is on the list that is shown, or is not, by itself: also at a node that takes no part in
// the instance. A page asks again after 30 s anyway, so it is to be sooner.
func (s *seat) lists(title string, want bool) {
	s.t.Helper()
	began := time.Now()
	s.until(fmt.Sprintf(`[...document.querySelectorAll(".card h3")].some((h) => h.innerText === %q) === %v`, title, want))
	if late := time.Since(began); late > liveWithin {
		s.t.Errorf("that %q is on the list of %s became %v only after %s", title, s.name, want, late)
	}
}

// liveWithin is how soon a page shows what its node was told, on a busy machine: it asks at most every second.
const liveWithin = 8 * time.Second

// card waits for an item on the list, and is the selector of its card.
func (s *seat) card(title string) string {
	s.t.Helper()
	s.until(fmt.Sprintf(`[...document.querySelectorAll(".card h3")].some((h) => h.innerText === %q)`, title))
	s.eval(fmt.Sprintf(`[...document.querySelectorAll(".card h3")].forEach((h) => h.parentElement.classList.toggle("found", h.innerText === %q))`, title), nil)
	return "li.card.found"
}

// press presses a button of a card, as soon as it is there: the page renews itself meanwhile.
func (s *seat) press(title, button, until string) {
	s.t.Helper()
	at := s.card(title) + " " + button
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var there bool
		if s.eval(fmt.Sprintf(`!!document.querySelector(%q)`, at), &there); there {
			break
		}
		if time.Since(began) > 30*time.Second {
			s.t.Fatalf("%s has no %s", title, button)
		}
		s.card(title)
	}
	s.tap(at)
	s.until(until)
}

// asks reports fields of the page's form that stand in another order.
func (s *seat) asks(want ...string) {
	s.t.Helper()
	var got []string
	s.eval(`[...new Set([...document.querySelectorAll("main form[data-keep] [name^='data.']")].map((e) => e.name))]`, &got)
	if !slices.Equal(got, want) {
		s.t.Errorf("the form asks for %q, want %q", got, want)
	}
}

func (s *seat) home() {
	s.t.Helper()
	s.visit(s.url + "/")
}

// look keeps a picture of the page, and has axe-core look at it, where that is here.
func (s *seat) look(at string) {
	s.t.Helper()
	s.shoot(s.w.size.name + "-maintenance-" + at + "." + s.w.lang.code)
	if s.w.axe == "" || s.w.axe == noAxe {
		return
	}
	for range 3 {
		found, err := s.axeHere(s.w.axe)
		if err != nil { // the page brought itself up to date meanwhile
			continue
		}
		for _, f := range found {
			s.t.Errorf("%s, %s, %s: %s", s.w.size.name, s.w.lang.code, at, f)
		}
		return
	}
	s.t.Errorf("%s, %s, %s: axe-core could not look at it", s.w.size.name, s.w.lang.code, at)
}

// leave has the node of whoever sits there go out of reach, or come back.
func (s *seat) leave() {
	s.t.Helper()
	s.visit(s.url + "/contact")
	s.look("before-leaving")
	s.tap(`button[name="act"][value="go"]`)
	s.until(`document.querySelector('button[name="act"][value="back"]')`)
}

func (s *seat) comeBack() {
	s.t.Helper()
	s.visit(s.url + "/contact")
	s.look("out-of-reach")
	s.tap(`button[name="act"][value="back"]`)
	s.until(`document.querySelector('button[name="act"][value="go"]')`)
}

// state is how a task stands, as a node knows it.
func (s *seat) state(id string, task workflow.TaskName) (out workflow.State) {
	s.t.Helper()
	in, err := s.node.Show(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, t := range in.Tasks {
		if t.Name == task {
			out = t.State
		}
	}
	return out
}

func (w *workshop) mend() {
	w.t.Helper()
	client := strings.TrimSpace("Mill " + w.size.name + " " + w.lang.code)
	ana, bia, caio, davi := w.sit("ana"), w.sit("bia"), w.sit("caio"), w.sit("davi")

	// It starts, and is offered to whom it is for.
	ana.visit(ana.url + "/workflows/maintenance")
	ana.typing("#f-client", client)
	ana.look("start")
	ana.tap(`form[data-keep^="start-"] .acts button`)
	ana.until(`location.pathname.startsWith("/instances/") && document.querySelector("#note")`)
	var id string
	ana.eval(`location.pathname.split("/")[2]`, &id)
	ana.home()
	ana.look("home")
	ana.press("Write the service order", `form[action$="/take"] button`, `document.querySelector("#f-fault")`)
	ana.typing("#f-fault", "the wheel stands still")
	ana.look("order")
	ana.tap(`button[value="done"]`)
	ana.until(`location.pathname === "/" && document.querySelector("#note")`)

	// Both technicians see it; who takes it offline has it alone.
	davi.lists("Visit the client", true)
	bia.lists("Visit the client", true)
	bia.look("offered")
	bia.press("Visit the client", `form[action$="/lock"] button`, `document.querySelector("#f-hours")`)
	davi.lists("Visit the client", false)
	bia.reads("the wheel stands still")
	bia.asks("data.mended", "data.hours") // as its form says, not by name
	bia.look("locked")

	// Out of reach it is done, and kept; nothing else goes on.
	bia.leave()
	bia.look("gone")
	bia.home()
	bia.press("Visit the client", "a.button", `document.querySelector("#f-hours")`)
	bia.asks("data.mended", "data.hours")
	bia.tap("#f-mended-0")
	bia.typing("#f-hours", "2"+w.lang.comma+"5")
	bia.look("visit")
	bia.tap(`button[value="done"]`)
	bia.until(`location.pathname === "/" && document.querySelector("#note")`)
	bia.says("note.done.kept", "Visit the client", "office")
	bia.look("kept")
	bia.visit(bia.url + "/outbox")
	bia.says("outbox.waits", "office")
	bia.look("outbox")
	if is := ana.state(id, "visit-client"); is.Done() {
		w.t.Errorf("at the office the visit is %s, while nobody there can know", is)
	}
	ana.visit(ana.url + "/instances/" + id)
	ana.reads("bia")
	ana.look("waits")

	// Back in reach it is handed in, and all goes on to the end.
	bia.comeBack()
	bia.look("back")
	bia.visit(bia.url + "/outbox")
	bia.until(`!document.querySelector("main .rows")`) // by itself
	caio.press("Bring the payment order", `form[action$="/take"] button`, `document.querySelector('button[value="done"]')`)
	caio.reads("to be paid")
	caio.look("bring")
	caio.tap(`button[value="done"]`)
	caio.until(`location.pathname === "/" && document.querySelector("#note")`)
	ana.reads(w.lang.word("instance", workflow.InstanceSucceeded))
	ana.look("ended")
	ana.visit(ana.url + "/messages")
	ana.until(fmt.Sprintf(`[...document.querySelectorAll(".rows li")].some((m) => m.innerHTML.includes("/instances/%s") && m.innerText.includes(%q))`,
		id, w.lang.reason("it has ended: succeeded")))
	ana.look("messages")
	in, err := ana.node.Show(w.t.Context(), id)
	if err != nil || in.Data["hours"] != json.Number("2.5") || in.Data["mended"] != true || in.Data["debt"] != "noted" {
		w.t.Errorf("its data are %v, %v", in.Data, err)
	}
	for _, s := range []*seat{ana, bia, caio, davi} {
		s.visit("about:blank") // nobody listens to a node any more
	}
}

// goRound is about items of two partners that are taken along together.
func (w *workshop) goRound() {
	w.t.Helper()
	bia := w.sit("bia")
	started, err := w.nodes["office"].Start(w.t.Context(), api.StartRequest{Workflow: "rounds", User: "ana"})
	if err != nil {
		w.t.Fatal(err)
	}
	bia.lists("Look at the oil", true)
	bia.until(`document.querySelectorAll('.together input[type=checkbox]').length === 2`)
	bia.tap(`.together label:nth-of-type(2) input`) // alone it cannot be had
	bia.tap(`.together button`)
	bia.until(`document.querySelector("#problem")`)
	bia.look("round-refused")
	bia.tap(`.together label:nth-of-type(1) input`)
	bia.tap(`.together button`)
	bia.until(`location.pathname === "/" && document.querySelector("#note")`)
	bia.look("round-locked")
	bia.leave()
	bia.home()
	bia.press("Look at the oil", "a.button", `document.querySelector("#f-level")`)
	bia.typing("#f-level", "7")
	bia.tap(`button[value="done"]`)
	bia.until(`location.pathname === "/" && document.querySelector("#note")`)
	bia.look("round-first")
	bia.press("Fill the oil", "a.button", `document.querySelector('button[value="done"]')`)
	bia.reads("7")
	bia.look("round-second")
	bia.tap(`button[value="done"]`)
	bia.until(`location.pathname === "/" && document.querySelector("#note")`)
	bia.comeBack()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		in, err := w.nodes["office"].Show(w.t.Context(), started.ID)
		if err == nil && in.State == workflow.InstanceSucceeded {
			break
		}
		if time.Since(began) > time.Minute {
			w.t.Fatalf("the round never ended: %+v, %v", in, err)
		}
	}
	bia.visit("about:blank")
}
