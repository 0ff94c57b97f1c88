package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// waits is a node that gives nothing ahead without what it waits for, in the words of a real one.
func waits(c *crew) *crew {
	claim := c.OnClaimItems
	c.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
		if slices.Contains(r.Items, "d4") && !slices.Contains(r.Items, "a1") {
			return nil, api.Errorf(api.Refused, "hoses: it waits for dispatch: lock that with it")
		}
		return claim(r)
	}
	return c
}

// What is chosen on the list is asked for at once, so that the node gives all or nothing. A refusal says which item and
// why, and what was chosen is chosen still.
func TestLockingTogether(t *testing.T) {
	f := brigade()
	var asked []api.ClaimRequest
	f.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
		asked = append(asked, r)
		return []api.Item{work()[0], work()[3]}, nil
	}
	p := newPage(f)
	form := url.Values{"item": {"a1", "d4"}}
	w := post(t, p, sent(httpapi.Good), "en", "/items/lock", form)
	if text := follow(t, p, w, "en"); !strings.Contains(text,
		"All of these are with you, also out of reach: Send an engine, Lay the hoses.") {
		t.Error(text)
	}
	if diff := cmp.Diff([]api.ClaimRequest{{User: "id-of-ana", Claim: api.ClaimLock, Items: []string{"a1", "d4"}}},
		asked); diff != "" {
		t.Error(diff)
	}
	f.OnClaimItems = func(api.ClaimRequest) ([]api.Item, error) {
		return nil, api.Errorf(api.Refused, "hoses: it waits for dispatch: lock that with it")
	}
	w = post(t, p, sent(httpapi.Good), "pt-BR", "/items/lock", url.Values{"item": {"d4"}})
	body := w.Body.String()
	if w.Code != http.StatusConflict || !strings.Contains(body, "hoses: espera por dispatch: pegue as duas offline") ||
		!strings.Contains(body, `value="d4" checked>`) || strings.Contains(body, `value="a1" checked>`) {
		t.Errorf("refused: %d\n%s", w.Code, prose(body))
	}
	asked = nil
	w = post(t, p, sent(httpapi.Good), "en", "/items/lock", nil)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Choose at least one item") || asked != nil {
		t.Errorf("nothing chosen: %d, asked %v\n%s", w.Code, asked, prose(w.Body.String()))
	}
}

// What can be locked together is shown by instance, what others wait for first; however much there is, and whatever a
// partner says of who waits for whom, it is not much and soon done.
func TestWhatCanBeLockedTogether(t *testing.T) {
	it := func(id, of, state string, awaits ...string) api.Item {
		return api.Item{ID: id, Instance: of, Task: id, State: state, Offline: true, Awaits: awaits}
	}
	stays := it("s", "1", api.ItemReady)
	stays.Offline = false
	lacks := it("l", "1", api.ItemReady)
	lacks.WaitsFor = []api.Lack{{Resource: "crane"}}
	shown := func(list ...api.Item) (out []string) {
		groups, more := together(list, nil, onHome, ana)
		for _, g := range groups {
			line := g.Instance + ":"
			for _, c := range g.Choices {
				line += " " + c.ID
			}
			out = append(out, line)
		}
		if more > 0 {
			out = append(out, fmt.Sprint("more: ", more))
		}
		return out
	}
	for _, tt := range []struct {
		name string
		list []api.Item
		want []string
	}{
		{"one that is ready has its own button", []api.Item{it("a", "1", api.ItemReady), it("b", "2", api.ItemReady)}, nil},
		{"two of one instance", []api.Item{it("a", "1", api.ItemReady), it("b", "1", api.ItemSelected)}, []string{"1: a b"}},
		{"what must stay connected, or cannot be had", []api.Item{it("a", "1", api.ItemReady), stays, lacks}, nil},
		{"what is locked is no choice, what waits for it is",
			[]api.Item{it("a", "1", api.ItemLocked), it("b", "1", api.ItemNotReady, "a")}, []string{"1: b"}},
		{"in turn", []api.Item{it("c", "1", api.ItemNotReady, "b"), it("b", "1", api.ItemNotReady, "a"),
			it("a", "1", api.ItemReady)}, []string{"1: a b c"}},
		{"a ring is a lie", []api.Item{it("a", "1", api.ItemNotReady, "b"), it("b", "1", api.ItemNotReady, "a")},
			[]string{"1: a b"}},
	} {
		if diff := cmp.Diff(tt.want, shown(tt.list...)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	var many []api.Item
	for i := range 10_000 {
		many = append(many, it(itoa(i), "1", api.ItemNotReady, itoa((i+1)%10_000)))
	}
	if got := shown(many...); len(got) != 2 || strings.Count(got[0], " ") != onHome || got[1] != "more: 9980" {
		t.Errorf("of very many: %q", got)
	}
}

// A person chooses on the list what to take along, is told what else it needs, and gets both by one button: on a phone
// and at a desk, in either language, with JavaScript and without.
func TestLockingTogetherInABrowser(t *testing.T) {
	c := startChromium(t)
	for _, size := range screenSizes {
		for _, l := range languages() {
			node := waits(newCrew())
			s := serveSite(t, node)
			b := c.open(size, l.code, false)
			if size.phone {
				b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
			}
			b.visit(s.link())
			b.until(`document.querySelector(".together")`)
			b.shoot(size.name + "-together." + l.code)
			b.tap(`.together input[value="d4"]`)
			b.tap(`.together button`)
			b.until(`document.querySelector("#problem")`)
			var text string
			if b.eval(`document.querySelector("#problem").innerText`, &text); !strings.Contains(text, "hoses") ||
				!strings.Contains(text, "dispatch") {
				t.Errorf("refused by %q", text)
			}
			b.shoot(size.name + "-together-refused." + l.code)
			var still bool
			if b.eval(`document.querySelector('.together input[value="d4"]').checked`, &still); !still {
				t.Error("what was chosen is forgotten")
			}
			b.tap(`.together input[value="a1"]`)
			b.tap(`.together button`)
			b.until(`location.pathname === "/" && document.querySelector("#note")`)
			b.shoot(size.name + "-together-done." + l.code)
			node.mu.Lock()
			for _, x := range node.items {
				if (x.ID == "a1" || x.ID == "d4") && x.State != api.ItemLocked {
					t.Errorf("%s, %s: %s is %s", size.name, l.code, x.ID, x.State)
				}
			}
			node.mu.Unlock()
		}
	}
}

// What waits for an item that somebody else has, or cannot be had out of reach, is not offered to be locked with
// others.
func TestOnlyWhatCanBeTakenIsOfferedTogether(t *testing.T) {
	x := func(task, state string, awaits ...string) api.Item {
		return api.Item{ID: task, Task: task, Instance: id, State: state, Offline: true, Awaits: awaits}
	}
	taken := x("look", api.ItemReady)
	taken.TakenBy = "rui"
	list := []api.Item{
		taken, x("treat", api.ItemNotReady, "look"), x("sign", api.ItemNotReady, "treat"),
		x("weigh", api.ItemLocked), x("feed", api.ItemNotReady, "weigh"), x("note", api.ItemNotReady, "feed"),
		x("call", api.ItemNotReady, "elsewhere"),
	}
	var got []string
	for _, y := range takable(list) {
		got = append(got, y.Task)
	}
	if !slices.Equal(got, []string{"feed", "note"}) {
		t.Errorf("offered are %q", got)
	}
}
