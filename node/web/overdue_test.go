package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whoever decides can have what is overdue go on, or stop it, wherever the page says that it is overdue, and is told there
// what came of it, or why it was refused. Nobody else can.
func TestOrderingAboutWhatIsOverdue(t *testing.T) {
	for _, on := range []struct{ from, page, task string }{
		{fromHome, "/", "hoses"}, {fromMessages, "/messages", "hoses"}, {fromInstance, "/instances/" + id, "look-again"},
	} {
		for order, want := range map[string]string{
			api.TaskContinue: on.task + " goes on beyond its deadline.", api.TaskStop: on.task + " is stopped.",
		} {
			f := brigade()
			isOverdue(f, on.task)
			var asked api.TaskOrder
			f.OnOrderTask = func(o api.TaskOrder) (*api.TaskOrdered, error) {
				asked = o
				return &api.TaskOrdered{ID: o.ID, Task: o.Task, Order: o.Order, User: "ana", At: "engine-7"}, nil
			}
			p := newPage(f)
			body := get(t, p, on.page, "en").Body.String()
			if strings.Count(body, `name="from" value="`+on.from+`"`) != 2 ||
				!strings.Contains(body, `name="order" value="`+order+`"`) {
				t.Fatalf("%s: it is not offered to %s\n%s", on.page, order, prose(body))
			}
			path := "/instances/" + id + "/orders"
			form := url.Values{"task": {on.task}, "order": {order}, "from": {on.from}}
			w := post(t, p, sent(httpapi.Good), "en", path, form)
			if text := follow(t, p, w, "en"); !strings.Contains(text, want) ||
				!strings.HasPrefix(w.Header().Get("Location"), on.page+"?") {
				t.Errorf("%s, %s: to %s\n%s", on.page, order, w.Header().Get("Location"), text)
			}
			if asked.User != "id-of-ana" || asked.ID != id || string(asked.Task) != on.task || asked.Order != order {
				t.Errorf("%s: it asks %+v", on.page, asked)
			}
			f.OnOrderTask = func(api.TaskOrder) (*api.TaskOrdered, error) {
				return nil, api.Errorf(api.Refused, "that was decided about it already")
			}
			w = post(t, p, sent(httpapi.Good), "en", path, form)
			title, _, _ := strings.Cut(prose(get(t, p, on.page, "en").Body.String()), "\n")
			if text := prose(w.Body.String()); w.Code != http.StatusConflict || !strings.HasPrefix(text, title) ||
				!strings.Contains(text, "that was decided about it already") {
				t.Errorf("%s, refused: %d\n%s", on.page, w.Code, text)
			}
		}
		gone := brigade()
		gone.OnStatus = func() (*api.Status, error) {
			return &api.Status{Name: "station", Disconnected: ref(at(0))}, nil
		}
		if body := get(t, newPage(gone), on.page, "en").Body.String(); strings.Contains(body, `name="from"`) {
			t.Errorf("%s offers it at a node that is out of reach\n%s", on.page, prose(body))
		}
		other := brigade()
		other.OnDeciding = func(q api.DecidingQuery) (*api.Deciding, error) { return &api.Deciding{User: q.User}, nil }
		others := map[string]string{"who does not decide": get(t, newPage(other), on.page, "en").Body.String()}
		look := httptest.NewRecorder()
		newPage(brigade()).Inside(look, httptest.NewRequest(http.MethodGet, on.page, nil), httpapi.Session{})
		others["who may only look"] = look.Body.String()
		if on.from == fromMessages { // a message that asks is only told to who decides
			delete(others, "who does not decide")
		}
		for who, body := range others {
			if strings.Contains(body, `name="order"`) {
				t.Errorf("%s: %s sees\n%s", on.page, who, prose(body))
			}
		}
	}
}

// isOverdue has the instance that is shown say of a task, alone, that its deadline is over since noon. What it returns
// is by how much later that is; negative: it is not over.
func isOverdue(f *apitest.Fake, task string) *time.Duration {
	later, was := new(time.Duration), f.OnShow
	f.OnShow = func(of string) (*api.Instance, error) {
		in, err := was(of)
		if err != nil || of != id {
			return in, err
		}
		x := *in
		x.Overdue = []api.Overdue{
			{Task: workflow.TaskName(task), Partner: "engine-7", Item: "0001", Since: at(12 * time.Hour).Add(*later)},
		}
		if *later < 0 {
			x.Overdue = nil
		}
		return &x, nil
	}
	return later
}

// What nobody can undo is not done by a form of an old page: a task is not stopped that got more time since, or whose
// later deadline is over as well, nor is an instance cancelled for a failure that is not what waits now.
func TestWhatNobodyCanUndoIsNotOrderedFromAnOldPage(t *testing.T) {
	fields := func(body, form string) url.Values {
		t.Helper()
		_, body, _ = strings.Cut(body, `<details id="`+form+`"`)
		body, _, is := strings.Cut(body, "</form>")
		if !is {
			t.Fatalf("there is no form %s", form)
		}
		out := url.Values{}
		for _, m := range regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			out.Set(m[1], m[2])
		}
		return out
	}
	var asked []api.TaskOrder
	ordered := func(o api.TaskOrder) (*api.TaskOrdered, error) {
		asked = append(asked, o)
		return &api.TaskOrdered{ID: o.ID, Task: o.Task, Order: o.Order, User: "ana", At: "engine-7"}, nil
	}
	try := func(name string, p *Page, form url.Values, no string) {
		t.Helper()
		asked = nil
		w := post(t, p, sent(httpapi.Good), "en", "/instances/"+id+"/orders", form)
		text := prose(w.Body.String())
		if done := len(asked) == 1 && w.Code == http.StatusSeeOther; done != (no == "") ||
			no != "" && (len(asked) > 0 || w.Code != http.StatusConflict || !strings.Contains(text, no)) {
			t.Errorf("%s: %d, asked %v\n%s", name, w.Code, asked, text)
		}
	}
	for page, task := range map[string]string{"/": "hoses", "/messages": "hoses", "/instances/" + id: "look-again"} {
		f := brigade()
		f.OnOrderTask = ordered
		later := isOverdue(f, task)
		p := newPage(f)
		form := fields(get(t, p, page, "en").Body.String(), "stop-"+id+"-"+task)
		if form.Get("order") != api.TaskStop || form.Get("item") != "0001" || form.Get("due") == "" {
			t.Errorf("%s: the form is %v", page, form)
		}
		const no = "This task is not overdue any more, or has another deadline by now. It was not stopped"
		*later = -time.Hour
		try(page+", with more time", p, form, no)
		*later = time.Hour
		try(page+", overdue once more", p, form, no)
		*later = time.Second // as its holder told it
		try(page+", as it was", p, form, "")
	}

	f := brigade()
	f.OnOrderTask = ordered
	was, item := f.OnShow, "0001"
	f.OnShow = func(of string) (*api.Instance, error) {
		in, err := was(of)
		if err != nil || len(in.Asks) == 0 {
			return in, err
		}
		x := *in
		x.Asks = slices.Clone(in.Asks)
		if x.Asks[0].Item = item; item == "" {
			x.Asks = x.Asks[1:]
		}
		return &x, nil
	}
	p := newPage(f)
	in, _ := f.OnShow(id)
	form := fields(get(t, p, "/instances/"+id, "en").Body.String(), "cancel-"+string(in.Asks[0].Task))
	const no = "What this was about is decided by now, or the task was done once more. Nothing was cancelled"
	item = "0002"
	try("failed once more", p, form, no)
	item = ""
	try("done", p, form, no)
	try("about no failure", p, url.Values{"order": {api.TaskCancel}}, "")
	item = "0001"
	try("as it was", p, form, "")
	if want := (api.TaskOrder{User: "id-of-ana", ID: id, Order: api.TaskCancel}); len(asked) != 1 || asked[0] != want {
		t.Errorf("it asks %+v", asked)
	}
}

// Each form about a failure, or what is overdue, has a name of its own and does one thing: what is typed in one, and sent by
// the key for it, orders nothing else, and one that was sent does not count as another.
func TestEachOrderHasAFormOfItsOwn(t *testing.T) {
	body := get(t, newPage(brigade()), "/instances/"+id, "en").Body.String()
	names, orders := map[string]bool{}, 0
	for _, form := range strings.Split(body, "<form ")[1:] {
		form, _, _ = strings.Cut(form, "</form>")
		if !strings.Contains(form, `name="order"`) {
			continue
		}
		orders++
		_, name, _ := strings.Cut(form, `name="form-name" value="`)
		name, _, _ = strings.Cut(name, `"`)
		if names[name] || name == "" {
			t.Errorf("another form is called %q", name)
		}
		names[name] = true
		if strings.Contains(form, `name="reason"`) && strings.Count(form, "<button") != 1 {
			t.Errorf("with a reason more than one thing can be ordered:\n%s", form)
		}
	}
	if orders < 6 {
		t.Errorf("%d forms order something", orders)
	}
}

// On a phone what may be ordered about a task that is overdue stands in one line; what is asked before it is stopped,
// below.
func TestOrdersAboutWhatIsOverdueStandInALineInABrowser(t *testing.T) {
	c := startChromium(t)
	s := serveSite(t, newCrew())
	for _, l := range languages() {
		b := s.signIn(c, screenSizes[0], l.code, false)
		for _, path := range []string{"/", "/messages", "/instances/" + id} {
			b.visit(s.URL + path)
			for _, open := range []bool{false, true} {
				var at struct{ GoOn, Stop, Form struct{ Top, Bottom float64 } }
				b.eval(fmt.Sprintf(`(() => {
					const d = document.querySelector("details[id^=stop-]"), e = d.parentElement.querySelector("button[value=continue]");
					d.open = %t;
					const [GoOn, Stop, Form] = [e, d.firstElementChild, d.querySelector("form")].map((x) => x.getBoundingClientRect());
					return {GoOn, Stop, Form};
				})()`, open), &at)
				if !open && at.GoOn.Top != at.Stop.Top || open && at.Form.Top < max(at.GoOn.Bottom, at.Stop.Bottom) {
					t.Errorf("%s, %s, open %t: %+v", l.code, path, open, at)
				}
			}
		}
	}
}
