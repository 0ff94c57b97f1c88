package web

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// StartNode starts a real node with a mesh of its own, until the test ends, and says how it is asked. Tests outside of
// this package set it (node_test.go): a node has the page in it, so this package cannot make one.
var StartNode func(t *testing.T) *httpapi.Client

//go:embed testdata/boat-rental.yaml
var boatRental []byte

// A boat cannot be handed over, and the rental is interrupted. A person finds it on the page of a real node, undoes the
// agreement, is refused a state that was there before, sets another boat, and the rental goes on to its end: on a phone
// and at a desk, in either language, and once without JavaScript. Each step is shown before it is ordered.
func TestRepairingARentalInABrowser(t *testing.T) {
	c := startChromium(t)
	node := StartNode(t)
	if _, err := node.AddWorkflow(t.Context(), "boat-rental.yaml", boatRental); err != nil {
		t.Fatal(err)
	}
	axe := axeCore(t)
	for _, size := range screenSizes {
		for _, l := range languages() {
			r := &repairer{
				t: t, node: node, lang: l, name: size.name, axe: axe, scripts: size.phone || l == languages()[0],
			}
			r.id = r.wreck()
			r.tab = c.open(size, l.code, false)
			if !r.scripts {
				r.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
			}
			url, token, _ := node.Way()
			r.visit(signInLink(t, url, token))
			r.until("document.querySelector('nav.main')")
			r.repair()
			r.visit("about:blank") // nobody listens to the node any more
		}
	}
}

// repairer is a person who repairs an instance.
type repairer struct {
	*tab
	t       *testing.T
	node    *httpapi.Client
	lang    *language
	id      string
	name    string // of the screen
	axe     string
	scripts bool
}

// wreck starts a rental, which is interrupted.
func (r *repairer) wreck() string {
	r.t.Helper()
	started, err := r.node.Start(r.t.Context(),
		api.StartRequest{Workflow: "boat-rental", Input: map[string]string{"guest": "Iara"}})
	if err != nil {
		r.t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if in, err := r.node.Show(r.t.Context(), started.ID); err == nil && in.State == workflow.InstanceInterrupted {
			return started.ID
		}
	}
	r.t.Fatal("the rental was not interrupted")
	return ""
}

// states are the numbers of all states, with what brought each.
func (r *repairer) states() string {
	r.t.Helper()
	list, err := r.node.History(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, s := range list {
		x := steps(&api.Instance{}, []api.DataState{s})[0]
		out = append(out, strings.TrimSpace(x.Number+" "+x.Kind+" "+x.Mark))
	}
	return strings.Join(out, ", ")
}

// says waits until a part of the page says something, which it does by itself only with JavaScript.
func (r *repairer) says(selector, text string) {
	r.t.Helper()
	has := `(document.querySelector("` + selector + `") || {innerText: ""}).innerText.includes("` + text + `")`
	if r.scripts {
		r.until(has)
		return
	}
	for began, is := time.Now(), false; !is; {
		if r.eval(has, &is); !is && time.Since(began) > time.Minute {
			r.t.Fatalf("%s never said %q", selector, text)
		} else if !is {
			r.call("Page.reload", nil, nil)
			r.until("true")
		}
	}
}

// looks keeps a picture of the page, and has axe-core look at it.
func (r *repairer) looks(at string) {
	r.t.Helper()
	r.shoot(r.name + "-repair-" + at + "." + r.lang.code)
	if r.axe == "" || r.axe == noAxe || !r.scripts || r.lang != languages()[0] {
		return
	}
	found, err := r.axeHere(r.axe)
	if err != nil { // it brought itself up to date
		found, err = r.axeHere(r.axe)
	}
	if len(found) > 0 || err != nil {
		r.t.Errorf("%s: %v, %v", at, err, found)
	}
}

func (r *repairer) repair() {
	r.t.Helper()
	page := "/instances/" + r.id
	r.until(`document.querySelector('a[href="` + page + `/recover"]')`) // home says that a person is needed
	r.shoot(r.name + "-repair-home." + r.lang.code)
	r.tap(`.rows a[href="` + page + `"]`)
	r.until(`document.querySelector(".states .now")`)
	r.looks("instance")
	r.tap(`.alert a[href="` + page + `/recover"]`)
	r.until(`document.querySelector("#m-compensate")`)
	was := r.states()

	// The agreement is undone: first shown, then done.
	r.tap("#m-compensate > summary")
	r.looks("menu")
	r.tap(`#m-compensate button[value="look"]`)
	r.until(`document.querySelector('input[name="step"]')`)
	r.says("main", r.lang.say("foreseen.like", 5, "S3"))
	r.looks("compensate")
	if now := r.states(); now != was {
		r.t.Errorf("to look changed the states from %s to %s", was, now)
	}
	r.tap(`button[value="do"]`)
	r.until(`location.pathname.endsWith("/recover") && document.querySelector("#note")`)
	r.says("#cause", "S5")

	// A state that was there before is refused, and changes nothing.
	was = r.states()
	r.tap("#m-jump-forward > summary")
	r.eval(`document.querySelector("#jump-forward-f-boat").value = ""`, nil)
	r.typing("#jump-forward-f-boat", "spare")
	r.tap(`#m-jump-forward button[value="look"]`)
	r.until(`document.querySelector("#problem")`)
	r.says("#problem", "S3")
	r.looks("refused")
	if now := r.states(); now != was {
		r.t.Errorf("what was refused changed the states from %s to %s", was, now)
	}

	// With another boat it is agreed, goes on, and ends. What was typed is there still.
	r.tap("#jump-forward-f-booking-2")
	r.tap(`#m-jump-forward button[value="look"]`)
	r.until(`document.querySelector('input[name="step"]')`)
	r.says("main", r.lang.say("foreseen.fires", "hand-over-spare"))
	r.says("main", "spare")
	r.looks("jump")
	r.tap(`button[value="do"]`)
	r.until(`location.pathname === "` + page + `" && document.querySelector("#note")`)
	r.says("h1", r.lang.word("instance", workflow.InstanceSucceeded))
	r.looks("done")

	want := "S0 initial, S1 transition, S2 transition, S3 transition, S4 transition compensated, transition aborted, " +
		"S5 compensation, S6 jump-forward, S7 transition, S8 transition"
	if got := r.states(); got != want {
		r.t.Errorf("the states are %s", got)
	}
	log, err := r.node.Log(r.t.Context(), r.id)
	if err != nil || !slices.ContainsFunc(log, func(e api.LogEntry) bool {
		return strings.Contains(e.Text, "jetty recovers it: jump-forward, boat = spare, booking = agreed")
	}) {
		r.t.Errorf("the log does not say who ordered it: %v %+v", err, log)
	}
}
