package web

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// shift is a workflow of which one task is a person's, and those of a role decide about as well.
const shift = `
workflow: shift
administrators: chief
data: {note: {type: string}}
tasks:
  look: {type: manual, role: crew, offline: true, deadline: 48h, out: [note]}
  tidy: {type: manual, role: crew, offline: true, after: look, compensate: undone}
  undone: {type: manual, role: crew}
`

// ward is a real node with people of several rights.
type ward struct {
	t    *testing.T
	node *httpapi.Client
	page *Page
	who  map[string]httpapi.Session
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{t: t, node: StartNode(t), who: map[string]httpapi.Session{}}
	w.page = newPage(w.node)
	for name, role := range map[string]string{
		"ana": "", "bia": "crew", "caio": "crew", "davi": "", "eva": "chief",
	} {
		r := api.UserRequest{Name: name}
		if role != "" {
			r.Roles = []string{role}
		}
		token, err := w.node.AddUser(t.Context(), r)
		if err == nil {
			_, err = w.node.SignInUser(t.Context(), token.Token)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.node.Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		w.who[u.Name] = httpapi.Session{User: u.ID, Name: u.Name, Acts: true, Manages: true, FormToken: "f0f0", Sent: httpapi.Good}
	}
	if _, err := w.node.AddWorkflow(t.Context(), "shift.yaml", []byte(shift)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *ward) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// begin starts an instance for which ana answers.
func (w *ward) begin() string {
	w.t.Helper()
	started, err := w.node.Start(w.t.Context(), api.StartRequest{Workflow: "shift", User: "ana"})
	w.must(err)
	return started.ID
}

// item is the item of a task, on the list of somebody who sees it.
func (w *ward) item(user, id, task string) string {
	w.t.Helper()
	list, err := w.node.Worklist(w.t.Context(), api.WorklistQuery{User: user, Ahead: true})
	w.must(err)
	for _, x := range list {
		if x.Instance == id && x.Task == task {
			return x.ID
		}
	}
	w.t.Fatalf("%s has no %s on the list: %+v", user, task, list)
	return ""
}

func (w *ward) take(user, id, task, how string) string {
	w.t.Helper()
	item := w.item(user, id, task)
	_, err := w.node.ClaimItems(w.t.Context(), api.ClaimRequest{User: user, Claim: how, Items: []string{item}})
	w.must(err)
	return item
}

// button is one that a page offers, with the form that it sends.
type button struct {
	path string
	form url.Values
}

// name says which button that is, whatever the item or the instance.
func (b button) name() string {
	parts := strings.Split(strings.Trim(b.path, "/"), "/")
	out := parts[0]
	if len(parts) > 2 {
		out = parts[2]
	} else if len(parts) > 1 {
		out = "item"
	}
	for _, k := range []string{"act", "order", "way", "extend"} {
		if v := b.form.Get(k); v != "" {
			out += " " + v
		}
	}
	return out
}

var (
	forms   = regexp.MustCompile(`(?s)<form method="post" action="([^"]+)"[^>]*>(.*?)</form>`)
	inputs  = regexp.MustCompile(`<input[^>]*type="hidden"[^>]*>`)
	boxes   = regexp.MustCompile(`<input type="checkbox" name="item" value="([^"]*)"`)
	selects = regexp.MustCompile(`(?s)<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>`)
	offers  = regexp.MustCompile(`<option[^>]*value="([^"]+)"`)
	pressed = regexp.MustCompile(`<button([^>]*)>`)
	named   = regexp.MustCompile(` (name|value)="([^"]*)"`)
)

// typedThere is what somebody types into a form who knows what it is for.
var typedThere = map[string]string{
	"reason": "fog", "why": "", "data.note": "calm", "count": "2", "till": "2199-01-01T00:00:00",
}

// offered are the buttons of a page, but for those at its foot.
func (w *ward) offered(user, path string) (out []button) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept-Language", "en")
	got := httptest.NewRecorder()
	w.page.Inside(got, r, w.who[user])
	if got.Code != 200 {
		return nil
	}
	for _, f := range forms.FindAllStringSubmatch(got.Body.String(), -1) {
		if f[1] == "/sign-out" || f[1] == "/messages" {
			continue
		}
		filled := url.Values{}
		for k, v := range typedThere {
			filled.Set(k, v)
		}
		for _, in := range inputs.FindAllString(f[2], -1) {
			is := map[string]string{}
			for _, a := range named.FindAllStringSubmatch(in, -1) {
				is[a[1]] = html.UnescapeString(a[2])
			}
			filled.Set(is["name"], is["value"])
		}
		for _, b := range boxes.FindAllStringSubmatch(f[2], -1) {
			filled.Add("item", b[1])
		}
		for _, s := range selects.FindAllStringSubmatch(f[2], -1) {
			if all := offers.FindAllStringSubmatch(s[2], -1); len(all) > 0 {
				filled.Set(s[1], html.UnescapeString(all[0][1]))
			}
		}
		for _, b := range pressed.FindAllStringSubmatch(f[2], -1) {
			form := url.Values{}
			for k, v := range filled {
				form[k] = slices.Clone(v)
			}
			is := map[string]string{}
			for _, a := range named.FindAllStringSubmatch(b[1], -1) {
				is[a[1]] = a[2]
			}
			if is["name"] != "" {
				form.Set(is["name"], is["value"])
			}
			out = append(out, button{html.UnescapeString(f[1]), form})
		}
	}
	return out
}

// press sends a button's form; "" if it was carried out, else what the page says.
func (w *ward) press(user string, b button) string {
	w.t.Helper()
	got := post(w.t, w.page, w.who[user], "en", b.path, b.form)
	if got.Code == http.StatusSeeOther {
		return ""
	}
	return prose(got.Body.String())
}

// Whoever looks at a task, an instance or the list is offered what that person may do now, and nothing else: each button
// that is there is carried out, at a real node.
func TestWhatIsOfferedIsNotRefused(t *testing.T) {
	w := newWard(t)
	ctx := t.Context()
	pass := []string{"transfer to", "transfer role", "transfer back"}
	decides := append(slices.Clone(pass), "deadline by", "deadline to")
	mine := append([]string{"item done", "item fail", "release"}, pass...)
	failed := func(id string) {
		_, err := w.node.FinishItem(ctx, api.ItemResult{User: "bia", Item: w.take("bia", id, "look", api.ClaimSelect), Failed: true, Reason: "fog"})
		w.must(err)
	}
	for _, tt := range []struct {
		name    string
		make    func(id string) (item string) // brings an instance into a state; item: what is looked at as well
		offered map[string][]string           // by user and page: what is there
	}{
		{"free", func(id string) string { return w.item("bia", id, "look") }, map[string][]string{
			"bia item": {"take", "lock"}, "caio item": {"take", "lock"}, "davi item": nil, "ana item": nil,
			"bia instance": nil, "davi instance": nil, "ana instance": decides, "eva instance": decides,
		}},
		{"another has it", func(id string) string { return w.take("bia", id, "look", api.ClaimLock) }, map[string][]string{
			"bia item": mine, "caio item": nil, "davi item": nil, "ana item": nil, "eva item": nil,
			"bia instance": nil, "caio instance": nil, "ana instance": decides, "eva instance": decides,
		}},
		{"it waits for another", func(id string) string {
			both := []string{w.item("bia", id, "look"), w.item("bia", id, "tidy")}
			_, err := w.node.ClaimItems(ctx, api.ClaimRequest{User: "bia", Claim: api.ClaimLock, Items: both})
			w.must(err)
			return both[1]
		}, map[string][]string{"bia item": {"release"}, "caio item": nil, "ana instance": decides}},
		{"taken from her", func(id string) string {
			item := w.take("bia", id, "look", api.ClaimLock)
			_, err := w.node.TransferItem(ctx, api.TransferRequest{User: "ana", ID: id, Task: "look", To: "caio"})
			w.must(err)
			return item
		}, map[string][]string{"bia item": nil, "caio item": {"take", "lock"}, "ana instance": decides}},
		{"free again", func(id string) string {
			item := w.take("bia", id, "look", api.ClaimLock)
			_, err := w.node.TransferItem(ctx, api.TransferRequest{User: "ana", ID: id, Task: "look", Back: true})
			w.must(err)
			return item
		}, map[string][]string{"bia item": {"take", "lock"}, "caio item": {"take", "lock"}}},
		{"failed", func(id string) string { failed(id); return "" }, map[string][]string{
			"bia instance": nil, "davi instance": nil,
			"ana instance": {"orders again", "orders continue", "orders skip", "orders cancel"},
			"eva instance": {"orders again", "orders continue", "orders skip", "orders cancel"},
		}},
		{"cancelled", func(id string) string {
			item := w.take("bia", id, "look", api.ClaimSelect)
			_, err := w.node.OrderTask(ctx, api.TaskOrder{User: "ana", ID: id, Order: api.TaskCancel})
			w.must(err)
			return item
		}, map[string][]string{"bia item": nil, "caio item": nil, "bia instance": nil, "ana instance": nil, "eva instance": nil}},
		{"done", func(id string) string {
			for _, task := range []string{"look", "tidy"} {
				_, err := w.node.FinishItem(ctx, api.ItemResult{User: "bia", Item: w.take("bia", id, task, api.ClaimSelect)})
				w.must(err)
			}
			in, err := w.node.Show(ctx, id)
			w.must(err)
			if in.State != workflow.InstanceSucceeded {
				t.Fatalf("it is %s", in.State)
			}
			return ""
		}, map[string][]string{
			"bia instance": nil, "davi instance": nil, "ana instance": {"orders undo"}, "eva instance": {"orders undo"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for of, want := range tt.offered {
				user, at, _ := strings.Cut(of, " ")
				fresh := func() []button {
					id := w.begin()
					item := tt.make(id)
					if at == "item" {
						return w.offered(user, "/items/"+item)
					}
					return w.offered(user, "/instances/"+id)
				}
				all := fresh()
				var names []string
				for _, b := range all {
					names = append(names, b.name())
				}
				slices.Sort(names)
				want = slices.Sorted(slices.Values(want))
				if !slices.Equal(names, want) {
					t.Errorf("%s is offered %q, want %q", of, names, want)
					continue
				}
				for i := range all {
					b := all[i]
					if i > 0 {
						b = fresh()[i] // what was pressed before changed the other
					}
					if says := w.press(user, b); says != "" {
						t.Errorf("%s is offered %s (%s, %v), and refused:\n%s", of, b.name(), b.path, b.form, says)
					}
				}
			}
		})
	}
}

// At a node that is out of reach on purpose nothing is offered for which its holder had to be asked, and at a node without
// the role that its author must have a workflow is not offered.
func TestNothingIsOfferedThatANodeCannotDo(t *testing.T) {
	st := api.Status{Name: "quay", Mesh: "brigade", Since: at(0), Disconnected: ref(at(0))}
	f := brigade()
	f.OnStatus = func() (*api.Status, error) { return &st, nil }
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		if q.Item == "b2" && st.Disconnected == nil {
			s.Item.TakenBy, s.Item.State, s.Item.Holder = "bia", api.ItemReady, nil
		}
		return s, err
	}
	w := &ward{t: t, page: newPage(f), who: map[string]httpapi.Session{"ana": sent(httpapi.Good)}}
	for _, path := range []string{"/", "/messages", "/items/a1", "/items/b2"} {
		if got := w.offered("ana", path); len(got) > 0 {
			t.Errorf("out of reach, %s offers %q", path, got[0].name())
		}
	}
	if body := get(t, w.page, "/items/b2", "en").Body.String(); !strings.Contains(body, "This node is out of reach") {
		t.Errorf("nothing says why:\n%s", prose(body))
	}
	// What it gives out itself it asks nobody for.
	st.Name = "station"
	for _, path := range []string{"/", "/items/a1"} {
		var names []string
		for _, b := range w.offered("ana", path) {
			names = append(names, b.name())
		}
		if want := []string{"lock", "take"}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
			t.Errorf("out of reach, %s offers %q of what is here, want %q", path, names, want)
		}
	}
	st.Disconnected, st.LocksNothing = nil, "the battery is low"
	for _, b := range w.offered("ana", "/") {
		if strings.HasSuffix(b.path, "/lock") {
			t.Errorf("a device that locks nothing offers %s", b.path)
		}
	}
	body := get(t, w.page, "/items/b2", "en").Body.String()
	if got := w.offered("ana", "/items/b2"); len(got) > 0 || !strings.Contains(body, "bia has it") {
		t.Errorf("what bia has: %d buttons\n%s", len(got), prose(body))
	}
	f.OnWorkflow = func(string) (*api.Workflow, error) {
		def, err := workflow.Parse("drill", []byte("workflow: drill\ncreator-role: chief\ntasks: {a: {}}\n"))
		if err != nil {
			return nil, err
		}
		return &api.Workflow{Name: "drill", Hash: "9f2c00112233", Current: true, Definition: def.Canonical()}, nil
	}
	st.Roles = []string{"chief"} // the node's are not ana's
	if got := w.offered("ana", "/workflows/drill"); len(got) > 0 {
		t.Errorf("a user without the role is offered %s", got[0].path)
	}
	f.OnUsers = func() ([]api.User, error) {
		return []api.User{{Name: "ana", ID: w.who["ana"].User, Roles: []string{"chief"}}}, nil
	}
	st.Roles = nil
	if got := w.offered("ana", "/workflows/drill"); len(got) != 1 {
		t.Errorf("a user with the role is offered %d buttons", len(got))
	}
}

// What cannot be taken now, as its holder cannot be asked, has no button; it is said when it can.
func TestWhatCannotBeTakenNowHasNoButton(t *testing.T) {
	x := item{Item: api.Item{State: api.ItemReady, Offline: true}, Acts: true}
	if !x.Free() || !x.Lockable() || !lockable(x.Item) {
		t.Error("what is free cannot be taken")
	}
	if x.Unreachable = true; x.Free() || x.Lockable() || lockable(x.Item) {
		t.Error("what nobody can be asked for is offered")
	}
	if x.State = api.ItemSelected; x.Lockable() {
		t.Error("what was taken cannot be locked while its holder cannot be asked")
	}
	if x.Unreachable = false; !x.Lockable() {
		t.Error("what was taken cannot be locked")
	}
	x.Unreachable = true
	if x.State = api.ItemLocked; x.Movable() || !x.Doable() {
		t.Error("what was locked can be done out of reach, and not given back")
	}
}

// Whoever opens an item that is done is told who did it and how that was signed, and not what it would ask for, nor how
// somebody signed whose result came later and does not count.
func TestWhoDidAnItemIsSaid(t *testing.T) {
	w := newWard(t)
	id := w.begin()
	item := w.take("caio", id, "look", api.ClaimSelect)
	_, err := w.node.ClaimItems(t.Context(), api.ClaimRequest{User: "caio", Claim: api.ClaimRelease, Items: []string{item}})
	w.must(err)
	w.take("bia", id, "look", api.ClaimSelect)
	done, err := w.node.FinishItem(t.Context(), api.ItemResult{User: "bia", Item: item})
	w.must(err)
	if _, err := w.node.FinishItem(t.Context(), api.ItemResult{User: "caio", Item: item}); err == nil {
		t.Fatal("what caio gave back counts")
	}
	if in, err := w.node.Show(t.Context(), id); err != nil || len(in.Incidents) == 0 {
		t.Fatalf("what caio brought is not kept: %v", err)
	}
	if done.Signed == nil {
		t.Fatal("it is not said how she signed it")
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/items/"+item, nil)
	got := httptest.NewRecorder()
	w.page.Inside(got, r, w.who["bia"])
	b := prose(got.Body.String())
	signed := fmt.Sprintf("Signed with the key %s: %s…", workflow.PartnerID(done.Signed.Key).Short(), done.Signed.Signature[:10])
	if !strings.Contains(b, signed) || !strings.Contains(b, "done by bia") || strings.Contains(b, "It will ask for") ||
		strings.Contains(b, "can be done") {
		t.Errorf("the item is shown so:\n%s", b)
	}
}

// Whoever opens an item that failed reads why, and so does whoever is to decide what becomes of it.
func TestWhyAnItemFailedIsSaid(t *testing.T) {
	w := newWard(t)
	id := w.begin()
	item := w.take("bia", id, "look", api.ClaimSelect)
	_, err := w.node.FinishItem(t.Context(), api.ItemResult{User: "bia", Item: item, Failed: true, Reason: "no ladder"})
	w.must(err)
	for path, as := range map[string]string{"/items/" + item: "bia", "/instances/" + id: "ana"} {
		got := httptest.NewRecorder()
		w.page.Inside(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), w.who[as])
		if b, _, _ := strings.Cut(prose(got.Body.String()), "More of it"); !strings.Contains(b, "no ladder") {
			t.Errorf("%s says to %s:\n%s", path, as, b)
		}
	}
}
