package web

import (
	"errors"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// sent is ana with a form that the server found to be good, or not.
func sent(what httpapi.Sent) httpapi.Session {
	s := ana
	s.Sent = what
	return s
}

// post sends a form to a page.
func post(t *testing.T, p *Page, s httpapi.Session, lang, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept-Language", lang)
	if err := r.ParseForm(); err != nil { // as the server does
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.Inside(w, r, s)
	filledIn(t, path, w)
	return w
}

// follow gets the page to which a form leads.
func follow(t *testing.T, p *Page, w *httptest.ResponseRecorder, lang string) string {
	t.Helper()
	if w.Code != http.StatusSeeOther {
		t.Fatalf("it leads nowhere: %d\n%s", w.Code, prose(w.Body.String()))
	}
	next := get(t, p, w.Header().Get("Location"), lang)
	if next.Code != 200 {
		t.Fatalf("%s: %d\n%s", w.Header().Get("Location"), next.Code, next.Body)
	}
	return prose(next.Body.String())
}

// What is ordered about a failure is asked of the node in the name of the session's user. A refusal
// is shown on the instance's page, and who may only look sees no button.
func TestOrderingAboutAFailure(t *testing.T) {
	for _, tt := range []struct {
		order string
		more  url.Values // of the form
		asked api.TaskOrder
		want  string
	}{
		{api.TaskAgain, nil, api.TaskOrder{User: "id-of-ana", ID: id, Task: "pump", Order: api.TaskAgain},
			"pump is done once more, by engine-7."},
		{api.TaskAgain, url.Values{"to": {"medic"}, "reason": {"not sent"}},
			api.TaskOrder{User: "id-of-ana", ID: id, Task: "pump", Order: api.TaskAgain, To: "medic"},
			"pump is done once more, by medic."},
		{api.TaskSkip, url.Values{"to": {"medic"}, "reason": {"the pump is lost"}},
			api.TaskOrder{User: "id-of-ana", ID: id, Task: "pump", Order: api.TaskSkip, Reason: "the pump is lost"},
			"pump is left out: what waits for it goes on."},
		{api.TaskContinue, nil, api.TaskOrder{User: "id-of-ana", ID: id, Task: "pump", Order: api.TaskContinue},
			"pump stays as it is."},
		{api.TaskCancel, nil, api.TaskOrder{User: "id-of-ana", ID: id, Order: api.TaskCancel}, "The instance is cancelled."},
	} {
		f := brigade()
		var asked api.TaskOrder
		f.OnOrderTask = func(o api.TaskOrder) (*api.TaskOrdered, error) {
			asked = o
			return &api.TaskOrdered{ID: o.ID, Task: o.Task, Order: o.Order, User: "ana", At: "engine-7", To: o.To}, nil
		}
		p := newPage(f)
		path, form := "/instances/"+id+"/orders", url.Values{"task": {"pump"}, "order": {tt.order}}
		maps.Copy(form, tt.more)
		if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path, form), "en"); !strings.Contains(text, tt.want) {
			t.Errorf("%s:\n%s", tt.order, text)
		}
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Errorf("%s: %s", tt.order, diff)
		}
		f.OnOrderTask = func(api.TaskOrder) (*api.TaskOrdered, error) {
			return nil, api.Errorf(api.NotAllowed, "ana answers for the instance")
		}
		w := post(t, p, sent(httpapi.Good), "en", path, form)
		if w.Code != http.StatusForbidden || !strings.Contains(prose(w.Body.String()), "ana answers for the instance") {
			t.Errorf("%s, refused: %d\n%s", tt.order, w.Code, prose(w.Body.String()))
		}
	}
	for want, done := range map[string]api.TaskOrdered{
		"guess is stopped. It stood in for pump, of which what boat still brings may count.": {
			Order: api.TaskStop, StandIn: "guess", MayCount: "boat"},
		"pump is done once more, by engine-7. What waits for it is with a partner that is gone as well, " +
			"and wants an order of its own: hoses.": {
			Order: api.TaskAgain, At: "engine-7", GoneToo: []workflow.TaskName{"hoses"}},
	} {
		f := brigade()
		isOverdue(f, "pump")
		f.OnOrderTask = func(o api.TaskOrder) (*api.TaskOrdered, error) {
			done.ID, done.Task = o.ID, o.Task
			return &done, nil
		}
		p := newPage(f)
		text := follow(t, p, post(t, p, sent(httpapi.Good), "en", "/instances/"+id+"/orders",
			url.Values{"task": {"pump"}, "order": {done.Order}}), "en")
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	look := httptest.NewRecorder()
	newPage(brigade()).Inside(look, httptest.NewRequest(http.MethodGet, "/instances/"+id, nil), httpapi.Session{})
	if body := look.Body.String(); !strings.Contains(body, "Waits for an order") ||
		strings.Contains(body, `name="order"`) {
		t.Errorf("whoever may only look sees\n%s", prose(body))
	}
}

// An order's form that comes twice is carried out once. Sent again from an old page after the task failed once more, it is
// not answered as if that had been decided: the node judges it by the attempt that the page was about, and its page is
// shown as it is now.
func TestAnOldOrderIsNotTheAnswerToANewFailure(t *testing.T) {
	f := brigade()
	var asked []api.TaskOrder
	f.OnOrderTask = func(o api.TaskOrder) (*api.TaskOrdered, error) {
		asked = append(asked, o)
		if len(asked) > 1 {
			return nil, api.Errorf(api.Refused, "task pump was done once more since, and has failed again: this order is about how it failed before")
		}
		return &api.TaskOrdered{ID: o.ID, Task: o.Task, Order: o.Order, User: "ana", At: "engine-7"}, nil
	}
	was := f.OnShow
	item := "0001"
	f.OnShow = func(of string) (*api.Instance, error) {
		in, err := was(of)
		if err == nil && len(in.Asks) > 0 {
			changed := *in
			changed.Asks = slices.Clone(in.Asks)
			changed.Asks[0].Item = item
			in = &changed
		}
		return in, err
	}
	p, path := newPage(f), "/instances/"+id
	form := url.Values{"order": {api.TaskAgain}}
	body := get(t, p, path, "en").Body.String()
	for _, name := range []string{"form-name", "task", "item"} {
		m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(body[strings.Index(body, `id="asks"`):])
		if m == nil {
			t.Fatalf("an order has no %s\n%s", name, body)
		}
		form.Set(name, m[1])
	}
	for range 2 {
		if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path+"/orders", form), "en"); !strings.Contains(text, "is done once more") {
			t.Errorf("pressed:\n%s", text)
		}
	}
	want := api.TaskOrder{User: "id-of-ana", ID: id, Task: workflow.TaskName(form.Get("task")), Order: api.TaskAgain, Item: "0001"}
	if diff := cmp.Diff([]api.TaskOrder{want}, asked); diff != "" {
		t.Errorf("twice the same form: %s", diff)
	}
	item = "0002"
	w := post(t, p, sent(httpapi.Good), "en", path+"/orders", form)
	if text := prose(w.Body.String()); w.Code == http.StatusSeeOther || !strings.Contains(text, "has failed again") {
		t.Errorf("from an old page: %d\n%s", w.Code, text)
	}
	if !strings.Contains(w.Body.String(), `name="item" value="0002"`) {
		t.Errorf("what is shown then is not how it failed now:\n%s", w.Body)
	}
	if diff := cmp.Diff([]api.TaskOrder{want, want}, asked); diff != "" {
		t.Error(diff)
	}
}

// A form that starts something says the same key to a node that was started again meanwhile, though its session has ended
// and its page was shown once more: the node knows what it began. So it is not begun twice, and that is said.
func TestAFormThatStartsIsTheSameAfterARestart(t *testing.T) {
	f := brigade()
	began := map[string]bool{}
	f.OnStart = func(r api.StartRequest) (*api.Started, error) {
		was := began[r.Key]
		began[r.Key] = true
		return &api.Started{ID: id, Already: was}, nil
	}
	p, path := newPage(f), "/workflows/fire"
	body := get(t, p, path, "en").Body.String()
	named := regexp.MustCompile(`name="form-name" value="([^"]+)"`)
	name := named.FindStringSubmatch(body)
	if name == nil {
		t.Fatal(body)
	}
	form := url.Values{"form-name": {name[1]}, "form-token": {"old"}, "data.place": {"by the river"}}
	if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path, form), "en"); !strings.Contains(text, "Started: ") {
		t.Fatal(text)
	}
	p = newPage(f) // the node is started again, and the browser sends its form once more
	shown := post(t, p, sent(httpapi.Stale), "en", path, form).Body.String()
	if again := named.FindStringSubmatch(shown); again == nil || again[1] != name[1] {
		t.Fatalf("the form is called %q, was %q", again, name)
	}
	form.Set("form-token", "new")
	if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path, form), "en"); !strings.Contains(text, "This form had started ") {
		t.Error(text)
	}
	if len(began) != 1 || began[""] {
		t.Errorf("the node was asked with %v", began)
	}
}

// A photo of an item whose fields this node does not know, as its holder cannot be asked and it was not locked, is no text
// that was typed: it comes to the node, whose reason is shown, and stays with the form.
func TestAPhotoForWhatIsNotKnownHere(t *testing.T) {
	f := brigade()
	f.OnItemSheet = func(api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf("b2")
		s.Fields, s.Whole = nil, false
		return s, err
	}
	var got map[string]string
	f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		got = r.Outputs
		return nil, api.Errorf(api.Refused, "medic, who holds evacuate, cannot be asked now")
	}
	photo := workflow.File{Name: "gate.jpg", Size: 5, Root: [32]byte{1}}.String()
	form := url.Values{"act": {"done"}, "data.photo": {photo}, "data.people": {" 7"}}
	w := post(t, newPage(f), sent(httpapi.Good), "en", "/items/b2", form)
	text := prose(w.Body.String())
	if !strings.Contains(text, "medic, who holds evacuate, cannot be asked now") || strings.Contains(text, "is data of type") {
		t.Error(text)
	}
	if !strings.Contains(text, "gate.jpg (5 B)") || !strings.Contains(w.Body.String(), `value="`+html.EscapeString(photo)+`"`) {
		t.Errorf("the photo is not with the form:\n%s", w.Body)
	}
	if diff := cmp.Diff(map[string]string{"photo": photo, "people": " 7"}, got); diff != "" {
		t.Error(diff)
	}
}

// Messages count as read when somebody says so who sees them, and only those that were shown; to look changes nothing.
func TestReadingMessages(t *testing.T) {
	f := brigade()
	var asked []api.MessagesRead
	f.OnReadMessages = func(r api.MessagesRead) error {
		asked = append(asked, r)
		return nil
	}
	p := newPage(f)
	body := get(t, p, "/messages", "en").Body.String()
	if len(asked) > 0 || strings.Contains(body, `value="m1"`) {
		t.Errorf("to look asked %+v\n%s", asked, body)
	}
	form := url.Values{}
	for _, m := range regexp.MustCompile(`name="message" value="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		form.Add("message", m[1])
	}
	follow(t, p, post(t, p, sent(httpapi.Good), "en", "/messages", form), "en")
	want := []api.MessagesRead{{User: "id-of-ana", IDs: []string{"m4", "m3", "m2"}}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	f.OnReadMessages = func(api.MessagesRead) error {
		return api.Errorf(api.NotFound, "there is no message \"m2\" for ana")
	}
	if w := post(t, p, sent(httpapi.Good), "en", "/messages", form); w.Code != http.StatusNotFound ||
		!strings.Contains(w.Body.String(), "there is no message") {
		t.Errorf("refused: %d\n%s", w.Code, prose(w.Body.String()))
	}
}

// What was refused is dropped by its user only, when that one says so; somebody else at the device is not shown what was
// handed in.
func TestDroppingWhatWasRefused(t *testing.T) {
	f := brigade()
	var asked []api.DropRequest
	f.OnDropRefused = func(r api.DropRequest) (*api.Undelivered, error) {
		asked = append(asked, r)
		return &api.Undelivered{Task: "hoses", Label: "Lay the hoses"}, nil
	}
	p := newPage(f)
	body := get(t, p, "/outbox", "en").Body.String()
	const button = `name="result" value="5e0c91aa77d3b204"`
	if len(asked) > 0 || strings.Count(body, button) != 1 {
		t.Errorf("to look asked %+v\n%s", asked, body)
	}
	form := url.Values{"result": {"5e0c91aa77d3b204"}}
	after := follow(t, p, post(t, p, sent(httpapi.Good), "en", "/outbox", form), "en")
	want := []api.DropRequest{{User: "id-of-ana", ID: "5e0c91aa77d3b204"}}
	if diff := cmp.Diff(want, asked); diff != "" || !strings.Contains(after, "Dropped: Lay the hoses.") {
		t.Errorf("%s\n%s", diff, prose(after))
	}
	other := httptest.NewRecorder()
	newPage(f).Inside(other, httptest.NewRequest(http.MethodGet, "/outbox", nil),
		httpapi.Session{User: "id-of-bia", Name: "bia", Acts: true})
	if body := other.Body.String(); strings.Contains(body, button) || strings.Contains(prose(body), "water | 0") {
		t.Errorf("somebody else sees\n%s", prose(body))
	}
}

// What is pressed on a list is asked of the node in the name of the session's user, and the page that follows
// says what came of it.
func TestTakingAndGivingBack(t *testing.T) {
	for _, tt := range []struct{ path, claim, to, want string }{
		{"/items/b2/take", api.ClaimSelect, "/items/b2", "You have it: Reach the site."},
		{"/items/b2/lock", api.ClaimLock, "/items/b2", "You have it, also out of reach: Reach the site."},
		{"/items/b2/release", api.ClaimRelease, "/", "Given back: Reach the site."},
	} {
		f := brigade()
		var asked []api.ClaimRequest
		f.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
			asked = append(asked, r)
			return []api.Item{work()[1]}, nil
		}
		p := newPage(f)
		w := post(t, p, sent(httpapi.Good), "en", tt.path, nil)
		if text := follow(t, p, w, "en"); !strings.Contains(text, tt.want) ||
			!strings.HasPrefix(w.Header().Get("Location"), tt.to+"?") {
			t.Errorf("%s leads to %s:\n%s", tt.path, w.Header().Get("Location"), text)
		}
		if diff := cmp.Diff([]api.ClaimRequest{{User: "id-of-ana", Claim: tt.claim, Items: []string{"b2"}}}, asked); diff != "" {
			t.Errorf("%s: %s", tt.path, diff)
		}
	}
}

// Why something is given back can be said on its page, and need not be.
func TestGivingBackForAReason(t *testing.T) {
	for lang, label := range map[string]string{"en": "Why is it given back?", "pt-BR": "Por que é devolvida?"} {
		f := brigade()
		var asked []string
		f.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
			asked = append(asked, r.Reason)
			return []api.Item{work()[1]}, nil
		}
		p := newPage(f)
		if body := get(t, p, "/items/b2", lang).Body.String(); !strings.Contains(body, label) ||
			!strings.Contains(body, `action="/items/b2/release"`) || !strings.Contains(body, `name="reason" rows="2" maxlength="500"`) {
			t.Errorf("the page of an item asks for no reason: %s", prose(body))
		}
		post(t, p, sent(httpapi.Good), lang, "/items/b2/release", url.Values{"reason": {" the hall is <locked> \n"}})
		post(t, p, sent(httpapi.Good), lang, "/items/b2/release", url.Values{"reason": {" "}})
		post(t, p, sent(httpapi.Good), lang, "/items/b2/take", url.Values{"reason": {"none"}})
		if want := []string{"the hall is <locked>", "", ""}; !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
	}
}

// Nothing is carried out but a good form, whatever the path: a call of the fake that changes something would
// panic. What was typed is there again.
func TestOnlyGoodFormsAreCarriedOut(t *testing.T) {
	form := url.Values{"data.report": {"two floors, <smoke>"}, "data.place": {"at the <bridge>"}, "act": {"done"}}
	for _, path := range []string{
		"/contact", "/items/lock", "/items/a1/take", "/items/a1/lock", "/items/b2/release", "/items/b2/transfer",
		"/instances/" + id + "/adopt", "/instances/" + id + "/deadline", "/instances/" + id + "/recover", "/items/b2",
		"/workflows/flood",
	} {
		for _, tt := range []struct {
			worth httpapi.Sent
			want  string
		}{
			{httpapi.Stale, "You had to sign in again meanwhile. This was not carried out now"},
			{httpapi.MayNot, "This browser may only look. Nothing was changed."},
			{httpapi.Nothing, "This browser may only look. Nothing was changed."},
		} {
			w := post(t, newPage(brigade()), sent(tt.worth), "en", path, form)
			text := prose(w.Body.String())
			if w.Code != http.StatusConflict || !strings.Contains(text, tt.want) {
				t.Errorf("%s, worth %d: %d\n%s", path, tt.worth, w.Code, text)
			}
			if path == "/items/b2" && !strings.Contains(text, "two floors, <smoke>") ||
				path == "/workflows/flood" && !strings.Contains(text, "at the <bridge>") {
				t.Errorf("%s: what was typed is lost:\n%s", path, text)
			}
		}
	}
	for _, path := range []string{"/", "/mesh", "/instances", "/instances/" + id, "/items/b2/x", "/nothing"} {
		if w := post(t, newPage(brigade()), sent(httpapi.Good), "en", path, form); w.Code != 404 && w.Code != 405 {
			t.Errorf("a form for %s: %d", path, w.Code)
		}
	}
}

// The buttons are there for whoever may press them.
func TestWhoMayOnlyLookSeesNoButtons(t *testing.T) {
	look := ana
	look.Acts, look.Manages = false, false
	nobody := httpapi.Session{FormToken: "f0f0"}
	for _, s := range []httpapi.Session{look, nobody} {
		for _, path := range []string{"/", "/items/a1", "/items/b2", "/contact", "/workflows", "/workflows/flood"} {
			if s.User == "" && strings.HasPrefix(path, "/items") {
				continue
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			w := httptest.NewRecorder()
			f := brigade()
			if s.User == "" { // nobody's list is asked for
				f.OnWorklist = nil
			}
			newPage(f).Inside(w, r, s)
			body := w.Body.String()
			if n := strings.Count(body, `method="post"`); w.Code != 200 || n != 1 ||
				!strings.Contains(body, `action="/sign-out"`) {
				t.Errorf("%s for %q: %d, %d forms\n%s", path, s.Name, w.Code, n, body)
			}
		}
	}
}

var formNames = regexp.MustCompile(`name="form-name" value="([^"]+)"`)

// Who presses twice, or whose answer is lost, does it once; what failed can be tried again.
func TestAFormThatComesTwiceIsCarriedOutOnce(t *testing.T) {
	f := brigade()
	var mu sync.Mutex
	calls := 0
	fails := true
	f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		calls++
		if fails {
			return nil, api.Errorf(api.Refused, "engine-7, who holds procedure-1, cannot be asked now")
		}
		done := work()[1]
		return &done, nil
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPage(f)
		name := formNames.FindStringSubmatch(get(t, p, "/items/b2", "en").Body.String())
		if name == nil {
			t.Fatal("the form has no name")
		}
		form := url.Values{"form-name": {name[1]}, "act": {"done"}}
		if w := post(t, p, sent(httpapi.Good), "en", "/items/b2", form); w.Code != http.StatusConflict {
			t.Fatalf("it fails: %d", w.Code)
		}
		fails = false
		var all sync.WaitGroup
		leads := make([]string, 3)
		for i := range leads {
			all.Go(func() {
				leads[i] = post(t, p, sent(httpapi.Good), "en", "/items/b2", form).Header().Get("Location")
			})
		}
		all.Wait()
		again := post(t, p, sent(httpapi.Good), "en", "/items/b2", form).Header().Get("Location")
		if calls != 2 || leads[0] == "" || leads[1] != leads[0] || again != leads[0] {
			t.Errorf("%d calls, which lead to %q and %q", calls, leads, again)
		}
		time.Sleep(noteLife + time.Second)
		if text := prose(get(t, p, leads[0], "en").Body.String()); strings.Contains(text, "Done:") {
			t.Errorf("a note is shown for ever:\n%s", text)
		}
	})
}

// To go back to a form that was sent and type something else, or press another button, is to send another one.
func TestAFormSentAgainWithOtherContentsIsAnother(t *testing.T) {
	f := brigade()
	var taken []string
	var results []api.ItemResult
	f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
		results = append(results, r)
		return &work()[1], nil
	}
	f.OnClaimItems = func(r api.ClaimRequest) ([]api.Item, error) {
		taken = append(taken, r.Items...)
		return nil, nil
	}
	p := newPage(f)
	send := func(path string, form url.Values) string {
		t.Helper()
		form.Set("form-name", "one")
		w := post(t, p, sent(httpapi.Good), "en", path, form)
		if w.Code != http.StatusSeeOther {
			t.Fatalf("%s with %v: %d\n%s", path, form, w.Code, prose(w.Body.String()))
		}
		return w.Header().Get("Location")
	}
	done := send("/items/b2", url.Values{"act": {"done"}, "data.level": {"4"}})
	other := send("/items/b2", url.Values{"act": {"done"}, "data.level": {"14"}})
	failed := send("/items/b2", url.Values{"act": {"fail"}, "reason": {"not at all"}})
	again := send("/items/b2", url.Values{"act": {"done"}, "data.level": {"4"}})
	send("/items/b1/take", url.Values{})
	send("/items/b3/take", url.Values{}) // the forms of home share a name
	if len(results) != 3 || results[1].Outputs["level"] != "14" || !results[2].Failed {
		t.Errorf("it was done as %+v", results)
	}
	if done == other || other == failed || again != done {
		t.Errorf("they lead to %q, %q, %q, and the first again to %q", done, other, failed, again)
	}
	if !slices.Equal(taken, []string{"b1", "b3"}) {
		t.Errorf("taken were %q", taken)
	}
}

// A file that is another one makes another form.
func TestAFormWithAnotherFileIsAnother(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/items/b2", nil)
	r.PostForm = url.Values{"form-name": {"one"}}
	with := func(file string) string {
		return sameForm(r, httpapi.Session{Files: map[string]httpapi.Upload{"file.photo": {File: &api.File{Value: file}}}})
	}
	one := with("file:1")
	if again := with("file:1"); again != one || with("file:2") == one {
		t.Error("forms are told apart by something else than their files")
	}
}

// However many forms are sent, the node remembers a few.
func TestNotesAreBounded(t *testing.T) {
	n := newNotes()
	for i := range 3 * maxNotes {
		if _, err := n.once(string(rune('a'+i)), func() (*outcome, error) { return &outcome{to: "/"}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = n.once("broken", func() (*outcome, error) { panic("broken") })
	}()
	if is, err := n.once("broken", func() (*outcome, error) { return &outcome{to: "/"}, nil }); err != nil ||
		is.to != "/" {
		t.Errorf("after a panic: %+v, %v", is, err)
	}
	if len(n.byForm) > maxNotes || len(n.byNote) > maxNotes {
		t.Errorf("%d forms and %d notes", len(n.byForm), len(n.byNote))
	}
}

// A form that says neither that it is done nor that it cannot be, or has what there is no field for, does nothing: what was
// typed is not lost without a word.
func TestAFormThatNobodyMade(t *testing.T) {
	for _, tt := range []struct {
		form url.Values
		lang string
		says string
	}{
		{url.Values{"act": {"peek"}}, "en", "Say whether it is done, or cannot be done."},
		{url.Values{"act": {"done"}, "data.zzz": {"12 boats"}}, "en", "What was typed has no field here any more"},
		{url.Values{"act": {"done"}, "data.zzz": {"12 boats"}}, "pt-BR", "O que foi digitado não tem mais campo aqui"},
	} {
		f := newCrew()
		w := post(t, newPage(f), sent(httpapi.Good), tt.lang, "/items/b2", tt.form)
		if len(f.results) > 0 || w.Code != http.StatusConflict || !strings.Contains(prose(w.Body.String()), tt.says) {
			t.Errorf("%v: %d, %+v\n%s", tt.form, w.Code, f.results, prose(w.Body.String()))
		}
	}
}

// What is typed arrives as the node reads it, in the spelling of either language.
func TestDoingAnItem(t *testing.T) {
	for _, tt := range []struct {
		name, lang string
		form       url.Values
		want       api.ItemResult
		says       string
	}{
		{"nothing is typed", "en", url.Values{}, api.ItemResult{Outputs: map[string]string{}},
			"Done: Reach the site. engine-7 has it."},
		{
			"all kinds", "en", url.Values{
				"data.report": {"a\r\nb"}, "data.level": {" 2.50 "}, "data.boats": {"-3"}, "data.dry": {"true"},
				"data.since": {"2026-07-01T08:30"},
				"data.state": {"alert"}, "data.houses": {"7\r\n\r\n 9a "}, "data.depth": {"bridge = 0.5\na=x=y"},
				"data.grade": {"7"},
			}, api.ItemResult{Outputs: map[string]string{
				"report": "a\nb", "level": "2.50", "boats": "-3", "dry": "true", "since": "2026-07-01T08:30:00Z",
				"state": "alert", "houses": `[7,"9a"]`,
				"depth": `{"a":"x=y","bridge":0.5}`, "grade": "7",
			}}, "Done: Reach the site. engine-7 has it.",
		},
		{
			"JSON, and a comma", "pt-BR",
			url.Values{
				"data.level": {"2,5"}, "data.houses": {`["7"]`}, "data.depth": {"a = 1,5"},
				"data.since": {"2026-07-01T08:30:00-03:00"},
			},
			api.ItemResult{Outputs: map[string]string{
				"level": "2.5", "houses": `["7"]`, "depth": `{"a":1.5}`, "since": "2026-07-01T08:30:00-03:00",
			}},
			"Pronto: Reach the site. engine-7 já tem o resultado.",
		},
		{
			"numbers with points between thousands", "pt-BR",
			url.Values{"data.level": {"2.5"}, "data.houses": {"1.234,5\n1.234.567\n-0.125"}, "data.depth": {"a = 1,000"}},
			api.ItemResult{Outputs: map[string]string{
				"level": "2.5", "houses": "[1234.5,1234567,-0.125]", "depth": `{"a":1.000}`,
			}},
			"Pronto: Reach the site. engine-7 já tem o resultado.",
		},
		{"it cannot be done", "en", url.Values{"act": {"fail"}, "reason": {" no water "}, "data.level": {"high"}},
			api.ItemResult{Failed: true, Reason: "no water"},
			"Said that it cannot be done: Reach the site. engine-7 knows it."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := brigade()
			var got api.ItemResult
			f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
				got = r
				done := work()[1]
				return &done, nil
			}
			p := newPage(f)
			text := follow(t, p, post(t, p, sent(httpapi.Good), tt.lang, "/items/b2", tt.form), tt.lang)
			tt.want.User, tt.want.Item = "id-of-ana", "b2"
			if diff := cmp.Diff(tt.want, got); diff != "" || !strings.Contains(text, tt.says) {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}

// What is done of a locked item out of reach is said to be kept here.
// Fields stand in the order in which the node lists them, which is that of the task's form: also once something will not
// do, at the top too, and where an item is only looked at.
func TestFieldsStandInTheOrderOfTheForm(t *testing.T) {
	f := brigade()
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		s.Fields = []api.Field{
			{Name: "pulse", Type: "integer"}, {Name: "age", Type: "integer"}, {Name: "note", Type: "string"},
			{Name: "fever", Type: "number", Label: "Ague"},
		}
		return s, err
	}
	p := newPage(f)
	inOrder := func(body string, want ...string) {
		t.Helper()
		at := 0
		for _, w := range want {
			i := strings.Index(body[at:], w)
			if i < 0 {
				t.Errorf("%q does not come then:\n%s", w, prose(body))
				return
			}
			at += i + len(w)
		}
	}
	controls := []string{`name="data.pulse"`, `name="data.age"`, `name="data.note"`, `name="data.fever"`}
	inOrder(get(t, p, "/items/b2", "en").Body.String(), controls...)
	inOrder(get(t, p, "/items/a1", "en").Body.String(), "pulse, age, note, Ague")
	w := post(t, p, sent(httpapi.Good), "en", "/items/b2", url.Values{
		"act": {"done"}, "data.fever": {"x"}, "data.age": {"y"}, "data.pulse": {"z"}, "data.note": {"n"},
	})
	if w.Code != http.StatusBadRequest {
		t.Errorf("status %d", w.Code)
	}
	inOrder(w.Body.String(), append([]string{`href="#f-pulse"`, `href="#f-age"`, `href="#f-fever"`}, controls...)...)
}

func TestDoingAnItemOutOfReach(t *testing.T) {
	f := brigade()
	f.OnFinishItem = func(api.ItemResult) (*api.Item, error) {
		done := work()[1]
		done.State, done.Delivered = api.ItemDone, false
		return &done, nil
	}
	p := newPage(f)
	text := follow(t, p, post(t, p, sent(httpapi.Good), "en", "/items/b2", url.Values{}), "en")
	if !strings.Contains(text, "Done: Reach the site. It is kept here; engine-7 hears of it as soon as it can be reached.") {
		t.Error(text)
	}
}

// What stands twice in JSON is said by its key.
func TestKeyThatIsThereTwice(t *testing.T) {
	for lang, want := range map[string]string{
		"en": "depth: the key “a” is there twice: write it once", "pt-BR": "depth: a chave “a” está aí duas vezes",
	} {
		for _, typed := range []string{`{"a": 1, "b": {"a": 2}, "a": 3}`, "a = 1\nb = a\na=2"} {
			w := post(t, newPage(brigade()), sent(httpapi.Good), lang, "/items/b2", url.Values{"data.depth": {typed}})
			if text := prose(w.Body.String()); !strings.Contains(text, want) {
				t.Errorf("want %q:\n%s", want, text)
			}
		}
	}
}

// A number that may be read in two ways is not taken for either: one with a point before three digits, in a language
// whose thousands are parted by points.
func TestANumberThatMayBeTwo(t *testing.T) {
	for _, typed := range []url.Values{
		{"data.level": {"1.000"}}, {"data.houses": {"a\n1.000"}}, {"data.depth": {"a = 1.000"}},
	} {
		w := post(t, newPage(brigade()), sent(httpapi.Good), "pt-BR", "/items/b2", typed)
		if text := prose(w.Body.String()); !strings.Contains(text, "“1.000” pode ser 1000 ou 1,000: escreva como um dos dois") {
			t.Errorf("%v: %s", typed, text)
		}
	}
	if n, ok := languages()[0].decimal("1.000"); !ok || n != "1.000" {
		t.Errorf("in English 1.000 is %q", n)
	}
}

// Zeros at the beginning of a number change nothing; one that is too large is said to be so, in the reader's language.
func TestNumbersAsPeopleTypeThem(t *testing.T) {
	f := []api.Field{{Name: "n", Type: "number"}, {Name: "i", Type: "integer"}, {Name: "l", Type: "list"}}
	pt := languages()[1]
	for typed, want := range map[string]string{
		"05": "5", "-007": "-7", ".5": "0.5", "-,5": "-0.5", "0": "0", "00": "0", "0.5": "0.5", "+05,25": "5.25",
	} {
		if values, wrong := pt.typed(f, url.Values{"data.n": {typed}}, false); values["n"] != want {
			t.Errorf("%q is %q, %q", typed, values, wrong)
		}
	}
	if values, _ := pt.typed(f, url.Values{"data.l": {"007"}}, false); values["l"] != `["007"]` {
		t.Errorf("what may be no number is %q in a list", values)
	}
	for name, typed := range map[string]string{"n": "1e400", "i": "99999999999999999999"} {
		_, wrong := pt.typed(f, url.Values{"data." + name: {typed}}, false)
		if wrong[name] != "“"+typed+"” é um número grande demais" {
			t.Errorf("%s is wrong as %q", typed, wrong)
		}
	}
	_, wrong := pt.typed(f, url.Values{"data.n": {"1", "2"}, "data.i": {"1"}}, false)
	if len(wrong) != 1 || !strings.HasPrefix(wrong["n"], "isto veio duas vezes") {
		t.Errorf("what came twice is wrong as %q", wrong)
	}
}

// A reason with a character that no browser shows is not taken, and nothing is lost.
func TestAReasonWithANUL(t *testing.T) {
	w := post(t, newPage(brigade()), sent(httpapi.Good), "en", "/items/b2",
		url.Values{"act": {"fail"}, "reason": {"no\x00water"}, "data.report": {"smoke"}})
	if body := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(prose(body), "U+0000") ||
		!strings.Contains(body, ">\nsmoke</textarea>") {
		t.Errorf("%d\n%s", w.Code, prose(body))
	}
}

// What is wrong is said at the field and on top, and all that was typed is there again.
func TestWhatWillNotDo(t *testing.T) {
	typed := url.Values{
		"data.report": {strings.Repeat("x", 70<<10)}, "data.level": {"31"}, "data.boats": {"2.5"},
		"data.dry": {"perhaps"}, "data.since": {"soon"},
		"data.state": {"panic"}, "data.houses": {"[1,"}, "data.depth": {"deep"}, "data.grade": {"9"},
		"reason": {"a reason <too>"},
	}
	for lang, want := range map[string][]string{
		"en": {
			"Something that you typed will not do", "What you see: too long: at most 64 KiB",
			"level: out of range: from 0 to 30", "Barcos à mão: “2.5” is not a whole number: write digits only, as in 1000", "dry: choose yes or no",
			"since: write day and time, for example 2026-07-01 08:00",
			"state: this is not one of the values to choose from",
			"houses: this begins like JSON and cannot be read as such",
			"depth: “deep” has no equals sign: write name = value", "grade: this is not one of the values to choose from",
		},
		"pt-BR": {"Algo do que você digitou não serve", "level: fora dos limites: de 0 a 30",
			"Barcos à mão: “2.5” não é um número inteiro: escreva só algarismos, como 1000"},
	} {
		w := post(t, newPage(brigade()), sent(httpapi.Good), lang, "/items/b2", typed)
		body := w.Body.String()
		text := prose(body)
		for _, line := range want {
			if w.Code != http.StatusBadRequest || !strings.Contains(text, line+"\n") {
				t.Errorf("%s: %d, not said: %s\n%s", lang, w.Code, line, text[:min(len(text), 3000)])
			}
		}
		for _, again := range []string{"a reason &lt;too&gt;", `value="31"`, `value="2.5"`, ">\n[1,</textarea>",
			">\ndeep</textarea>", strings.Repeat("x", 70<<10)} {
			if !strings.Contains(body, again) {
				t.Errorf("%s: what was typed is lost: %.40s", lang, again)
			}
		}
		if n := strings.Count(body, `class="error"`); n != 9 {
			t.Errorf("%s: %d fields say what is wrong", lang, n)
		}
		for _, link := range regexp.MustCompile(`<a href="#(f-[^"]+)"`).FindAllStringSubmatch(body, -1) {
			if !strings.Contains(body, `id="`+link[1]+`"`) {
				t.Errorf("%s: %s leads to no field", lang, link[1])
			}
		}
	}
	// Why something cannot be done is asked for.
	w := post(t, newPage(brigade()), sent(httpapi.Good), "en", "/items/b2",
		url.Values{"act": {"fail"}, "reason": {"  "}, "data.report": {"smoke"}})
	if body := w.Body.String(); w.Code != http.StatusConflict ||
		!strings.Contains(body, `<details id="cannot" open>`) || !strings.Contains(body, ">\nsmoke</textarea>") ||
		!strings.Contains(body, "Say why it cannot be done") {
		t.Errorf("%d\n%s", w.Code, prose(body))
	}
}

// An item that somebody else took, or that ended meanwhile: the page says so, and nothing typed is lost.
func TestAnItemThatIsGoneMeanwhile(t *testing.T) {
	typed := url.Values{"data.report": {"two floors, <smoke>"}, "data.level": {"2"}, "act": {"done"}}
	refused := api.Errorf(api.Refused, "the result of procedure-1 does not count, as the item was given back; it is kept").WithHint(
		"mutirao show 3f9a shows it")
	for _, tt := range []struct {
		name  string
		sheet func(string) (*api.ItemSheet, error)
		want  []string
	}{
		{"it is listed still", sheetOf, []string{"does not count, as the item was given back; it is kept\nthe instance's page shows it", "two floors, <smoke>"}},
		{"it is not ana's any more", func(string) (*api.ItemSheet, error) { return sheetOf("a1") },
			[]string{"does not count", "What you typed\nlevel: 2 What you see: two floors, <smoke>"}},
		{"it is nowhere", func(string) (*api.ItemSheet,
			error) {
			return nil, api.Errorf(api.NotFound, "there is no item")
		}, []string{"there is no item", "This is not on your list any more",
			"What you typed\nlevel: 2 report: two floors, <smoke>"}},
		{"its holder is away", func(string) (*api.ItemSheet, error) { return &api.ItemSheet{Item: work()[1]}, nil },
			[]string{"does not count", "engine-7 holds this and cannot be asked now", "two floors, <smoke>"}},
	} {
		f := brigade()
		f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) { return tt.sheet(q.Item) }
		f.OnFinishItem = func(api.ItemResult) (*api.Item, error) { return nil, refused }
		w := post(t, newPage(f), sent(httpapi.Good), "en", "/items/b2", typed)
		text := prose(w.Body.String())
		for _, want := range tt.want {
			if w.Code < 400 || !strings.Contains(text, want) {
				t.Errorf("%s: %d, not said: %s\n%s", tt.name, w.Code, want, text)
			}
		}
	}
	// To take what is gone leads back to the list, with the reason.
	f := brigade()
	f.OnClaimItems = func(api.ClaimRequest) ([]api.Item,
		error) {
		return nil, api.Errorf(api.Refused, "bia has procedure-1")
	}
	w := post(t, newPage(f), sent(httpapi.Good), "en", "/items/a1/take", nil)
	if text := prose(w.Body.String()); w.Code != http.StatusConflict ||
		!strings.Contains(text, "bia has procedure-1\n") || !strings.Contains(text, "My work") {
		t.Errorf("%d\n%s", w.Code, text)
	}
	// A cause inside the node is not shown.
	f.OnClaimItems = func(api.ClaimRequest) ([]api.Item,
		error) {
		return nil, errors.New("badger: value log 7 is broken")
	}
	w = post(t, newPage(f), sent(httpapi.Good), "en", "/items/a1/take", nil)
	if text := prose(w.Body.String()); w.Code != 500 ||
		!strings.Contains(text, "Something went wrong inside the node.") || strings.Contains(text, "badger") {
		t.Errorf("%d\n%s", w.Code, text)
	}
}

// What was typed in a form that is refused is there once more, also where its page has no such form any more.
func TestWhatWasTypedIsShownInEachRefusal(t *testing.T) {
	no := api.Errorf(api.Refused, "engine-7 holds procedure-1, and this node is disconnected on purpose")
	f := brigade()
	was := f.OnStatus
	f.OnStatus = func() (*api.Status, error) {
		st, err := was()
		if err == nil {
			away := *st
			away.Disconnected, st = ref(at(11*time.Hour)), &away
		}
		return st, err
	}
	f.OnFinishItem = func(api.ItemResult) (*api.Item, error) { return nil, no }
	f.OnClaimItems = func(api.ClaimRequest) ([]api.Item, error) { return nil, no }
	f.OnTransferItem = func(api.TransferRequest) (*api.Transferred, error) { return nil, no }
	f.OnStart = func(api.StartRequest) (*api.Started, error) { return nil, no }
	f.OnOrderTask = func(api.TaskOrder) (*api.TaskOrdered, error) { return nil, no }
	gone := *f // whose workflow is gone, and who has no role
	gone.OnWorkflow = func(string) (*api.Workflow, error) { return nil, api.Errorf(api.NotFound, "there is no workflow") }
	lent := *f // whose item somebody else has by now
	lent.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		s.Item.State, s.Item.TakenBy, s.Item.Holder = api.ItemReady, "bia", nil
		return s, err
	}
	only := *f
	only.OnWorkflow = func(ref string) (*api.Workflow, error) {
		wf, err := f.OnWorkflow(ref)
		if err == nil {
			with := *wf
			with.Definition, wf = append([]byte(`{"creator-role":"chief",`), wf.Definition[1:]...), &with
		}
		return wf, err
	}
	for _, tt := range []struct {
		f    *apitest.Fake
		path string
		form url.Values
		want string
	}{
		{&lent, "/items/b2", url.Values{"act": {"done"}, "data.level": {"4"}, "data.dry": {"true"}, "data.photo": {planOfHouse}},
			"What you typed\ndry: Yes level: 4 A photo of the place: house.pdf (2.4 MB)"},
		{&lent, "/items/b2", url.Values{"act": {"fail"}, "reason": {"the bridge is down"}}, "What you typed\nthe bridge is down"},
		{f, "/items/b2/release", url.Values{"reason": {"the car broke"}}, "What you typed\nthe car broke"},
		{f, "/items/b2/transfer", url.Values{"way": {"back"}, "why": {"I am ill"}}, "What you typed\nI am ill"},
		{f, "/instances/" + id + "/orders", url.Values{"task": {"pump"}, "order": {"again"}, "reason": {"it is dry now"}},
			"What you typed\nit is dry now"},
		{&gone, "/workflows/flood", url.Values{"data.street": {"Rua 3"}}, "What you typed\nstreet: Rua 3"},
		{&only, "/workflows/flood", url.Values{"data.place": {"Rua 3"}}, "What you typed\nWhere the water is: Rua 3"},
	} {
		w := post(t, newPage(tt.f), sent(httpapi.Good), "en", tt.path, tt.form)
		if text := prose(w.Body.String()); w.Code < 400 || !strings.Contains(text, tt.want) {
			t.Errorf("%s with %v: %d\n%s", tt.path, tt.form, w.Code, text)
		}
	}
}

// A form from before its item was done does not take the place of what waits to be handed in.
func TestAFormFromBeforeAnItemWasDone(t *testing.T) {
	for _, form := range []url.Values{
		{"act": {"done"}, "data.report": {"all dry"}}, {"act": {"fail"}, "reason": {"all dry"}},
	} {
		f := brigade()
		f.OnFinishItem = func(r api.ItemResult) (*api.Item, error) {
			t.Errorf("handed in was %+v", r)
			return &work()[2], nil
		}
		w := post(t, newPage(f), sent(httpapi.Good), "en", "/items/c3", form)
		if text := prose(w.Body.String()); w.Code != http.StatusConflict || !strings.Contains(text, "It was done meanwhile") ||
			!strings.Contains(text, "all dry") {
			t.Errorf("%v: %d\n%s", form, w.Code, text)
		}
	}
}

// A hint, a range and what is wrong are tied to their field, each under an ID that is there.
func TestFieldsAreDescribed(t *testing.T) {
	body := post(t, newPage(brigade()), sent(httpapi.Good), "en", "/items/b2", url.Values{"data.level": {"31"}}).Body.String()
	if !strings.Contains(body, `aria-describedby="f-level-error f-level-range"`) ||
		!strings.Contains(body, `aria-describedby="f-houses-form"`) {
		t.Error("a field has no hint of its own")
	}
	for _, ids := range regexp.MustCompile(`aria-describedby="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		for _, one := range strings.Fields(ids[1]) {
			if !strings.Contains(body, `id="`+one+`"`) {
				t.Errorf("there is nothing called %s", one)
			}
		}
	}
}

// Of files that are not here an item says how much they are, how long they take, and what to do about it.
func TestAnItemSaysWhatIsStillToCome(t *testing.T) {
	for _, tt := range []struct {
		coming api.Coming
		en, pt string
	}{
		{api.Coming{Files: 1, Bytes: 12_000_000, Reachable: true, Rate: 100_000, Takes: "2m0s", Advice: "lock"},
			"Of its files 12 MB are not here yet. As files came lately, that takes 2 min. Take this task offline",
			"leva 2 min. Pegue esta tarefa offline"},
		{api.Coming{Files: 2, Bytes: 3000, Advice: "wait"}, "3 kB are not here yet. Nobody who has them is connected now",
			"Ninguém que os tem está conectado agora"},
	} {
		f := brigade()
		f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
			s, err := sheetOf("b2")
			s.Coming = &tt.coming
			return s, err
		}
		for language, want := range map[string]string{"en": tt.en, "pt-BR": tt.pt} {
			if text := prose(get(t, newPage(f), "/items/b2", language).Body.String()); !strings.Contains(text, want) {
				t.Errorf("%s: it does not say %q:\n%s", language, want, text)
			}
		}
	}
}

// What was typed comes back to the byte, whatever it is, once something in the form will not do: as its browser reads the
// page, and where somebody may copy it.
func TestWhatWasTypedComesBackAsItWas(t *testing.T) {
	const odd = "\n two\nlines\t\u200d|\u200f|\u00ad|\ufe0f|\u202e|\x1b|<&amp;\" 'é\u0301 🧑\u200d🚒\n"
	typed := url.Values{
		"data.level": {"x"}, "data.report": {odd}, "data.houses": {odd}, "data.depth": {"a = 1\nb = 2"}, "reason": {odd},
		"data.photo": {planOfHouse + "\u200d\u00ad.pdf"}, "data.gone": {odd},
	}
	sending := url.Values{} // as browsers send it
	for k, v := range typed {
		sending[k] = []string{strings.ReplaceAll(v[0], "\n", "\r\n")}
	}
	body := post(t, newPage(brigade()), sent(httpapi.Good), "en", "/items/b2", sending).Body.String()
	area := regexp.MustCompile(`(?s)name="([a-z.]+)"[^>]*>\n([^<]*)</textarea>`)
	came := map[string]string{}
	for _, m := range area.FindAllStringSubmatch(body, -1) {
		came[m[1]] = html.UnescapeString(m[2])
	}
	if m := regexp.MustCompile(`name="data.photo" value="([^"]*)"`).FindStringSubmatch(body); m != nil {
		came["data.photo"] = html.UnescapeString(m[1])
	}
	if m := regexp.MustCompile(`(?s)<pre>([^<]*)\n</pre>`).FindStringSubmatch(body); m != nil {
		came["data.gone"] = strings.TrimPrefix(html.UnescapeString(m[1]), "gone: ")
	}
	for _, name := range []string{"data.report", "data.houses", "data.depth", "reason", "data.photo", "data.gone"} {
		if came[name] != typed.Get(name) {
			t.Errorf("%s came back as %q, want %q", name, came[name], typed.Get(name))
		}
	}
	if !plain.IsPlain(body) {
		t.Error("the page has what cannot be seen")
	}
}

// Texts of people and partners in forms stay texts, when they come back too.
func TestHostileFormsStayText(t *testing.T) {
	f := brigade()
	f.OnFinishItem = func(api.ItemResult) (*api.Item, error) {
		return nil, api.Errorf(api.Refused, "%s", hostile).WithHint("%s", hostile)
	}
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf("b2")
		for i := range s.Fields {
			s.Fields[i].Name, s.Fields[i].Doc = hostile+string(rune('a'+i)), hostile
		}
		return s, err
	}
	typed := url.Values{"data." + hostile: {hostile}, "data." + hostile + "a": {hostile}, "reason": {hostile}}
	for _, s := range []httpapi.Session{sent(httpapi.Good), sent(httpapi.Stale)} {
		body := post(t, newPage(f), s, "en", "/items/b2", typed).Body.String()
		for _, bad := range []string{"<x-evil", `="javascript:`, `='`, "<script>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s in\n%s", bad, body)
			}
		}
		if !plain.IsPlain(body) || strings.Count(body, "x-evil") < 5 {
			t.Errorf("not plain, or the test did not get its text in: %q", body)
		}
	}
	if w := get(t, newPage(brigade()), "/?note="+url.QueryEscape(hostile), "en"); strings.Contains(prose(w.Body.String()), "x-evil") {
		t.Error("an address puts words on the page")
	}
}

// A workflow is started by a form: what is needed is asked for first.
func TestStartingAWorkflow(t *testing.T) {
	f := brigade()
	var got api.StartRequest
	f.OnStart = func(r api.StartRequest) (*api.Started, error) {
		got = r
		return &api.Started{ID: id, HeldOnlyHere: true}, nil
	}
	p := newPage(f)
	text := prose(get(t, p, "/workflows/flood@9f2c", "en").Body.String())
	if place, boats := strings.Index(text, "Where the water is (needed)\n"),
		strings.Index(text, "boats\n0 or more"); place < 0 || boats < place {
		t.Errorf("the form:\n%s", text)
	}
	w := post(t, p, sent(httpapi.Good), "en", "/workflows/flood@9f2c",
		url.Values{"data.place": {""}, "data.boats": {"-1"}})
	if text := prose(w.Body.String()); w.Code != 400 ||
		!strings.Contains(text, "Where the water is: this is needed\n") ||
		!strings.Contains(text, "boats: out of range: 0 or more\n") {
		t.Errorf("%d\n%s", w.Code, text)
	}
	w = post(t, p, sent(httpapi.Good), "en", "/workflows/flood@9f2c",
		url.Values{
			"data.place": {"Rua das Águas"}, "data.boats": {"3"}, "responsible": {"bia"}, "wait-for-role": {"yes"},
		})
	text = follow(t, p, w, "en")
	want := api.StartRequest{
		Workflow: "flood@9f2c", User: "id-of-ana", Input: map[string]string{"place": "Rua das Águas", "boats": "3"},
		Responsible: "bia", WaitForRole: true,
	}
	if diff := cmp.Diff(want, got); diff != "" ||
		!strings.Contains(text, "Started: Enchente – 洪水. Nobody else knows of it yet") {
		t.Errorf("%s\n%s", diff, text)
	}
	f.OnStart = func(api.StartRequest) (*api.Started, error) {
		return nil, api.Errorf(api.NotAllowed, "only a commander starts it")
	}
	w = post(t, p, sent(httpapi.Good), "en", "/workflows/flood@9f2c", url.Values{"data.place": {"Rua das Águas"}})
	if body := w.Body.String(); w.Code != 403 || !strings.Contains(body, "only a commander starts it") ||
		!strings.Contains(body, "Rua das Águas") {
		t.Errorf("%d\n%s", w.Code, prose(body))
	}
}

// What says whether a loop goes on is not asked for at the start.
func TestStartingAWorkflowWithALoop(t *testing.T) {
	def, err := workflow.Parse("mix", []byte(`
workflow: mix
data: {good: {type: boolean}}
tasks:
  stir: {type: manual}
  taste: {after: stir, type: manual, out: [good], repeat: {times: 3, from: stir, while: not good}}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := brigade()
	f.OnWorkflow = func(string) (*api.Workflow, error) {
		return &api.Workflow{Name: "mix", Hash: "9f2c00112233", Current: true, Definition: def.Canonical()}, nil
	}
	text := get(t, newPage(f), "/workflows/mix@9f2c", "en").Body.String()
	if !strings.Contains(text, `"data.good"`) || strings.Contains(text, "data.taste") {
		t.Errorf("the form:\n%s", prose(text))
	}
}

// What a database answers is not asked for at the start, and where it comes from is said.
func TestStartingAWorkflowWithAQuery(t *testing.T) {
	def, err := workflow.Parse("shop", []byte(`
workflow: shop
data:
  client: {type: string, required: true}
  debts: {type: query, database: till, expression: "select sum from debts where of = :client", label: What is owed}
tasks:
  ask: {out: [debts]}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := brigade()
	f.OnWorkflow = func(string) (*api.Workflow, error) {
		return &api.Workflow{Name: "shop", Hash: "9f2c00112233", Current: true, Definition: def.Canonical()}, nil
	}
	for lang, says := range map[string]string{
		"en":    "What is owed: a task asks the database till for it.",
		"pt-BR": "What is owed: uma tarefa pergunta ao banco de dados till.",
	} {
		text := get(t, newPage(f), "/workflows/shop@9f2c", lang).Body.String()
		if !strings.Contains(text, `"data.client"`) || strings.Contains(text, "data.debts") || !strings.Contains(text, says) {
			t.Errorf("the form:\n%s", prose(text))
		}
	}
	var got api.StartRequest
	f.OnStart = func(r api.StartRequest) (*api.Started, error) {
		got = r
		return &api.Started{ID: id}, nil
	}
	w := post(t, newPage(f), sent(httpapi.Good), "en", "/workflows/shop@9f2c",
		url.Values{"data.client": {"ana"}, "data.debts": {"5"}})
	if diff := cmp.Diff(api.Texts{"client": "ana"}, got.Input); diff != "" {
		t.Errorf("%d %s", w.Code, diff)
	}
}

// A value that a control shows, and that nobody changes, comes back as it was.
func TestControlsGiveBackWhatTheyShow(t *testing.T) {
	for _, l := range languages() {
		for _, f := range []api.Field{
			{Name: "a", Type: "string", Value: " a\nb \"c\""}, {Name: "a", Type: "integer", Value: int64(-5)},
			{Name: "a", Type: "integer", Value: 5.0},
			{Name: "a", Type: "number", Value: 0.25}, {Name: "a", Type: "boolean", Value: false},
			{Name: "a", Type: "time", Value: "2026-07-01T08:00:00Z"},
			{Name: "a", Type: "list", Value: []any{"x", "y z"}}, {Name: "a", Type: "list", Value: []any{1.5, 2.0}},
			{Name: "a", Type: "list", Value: []any{"1", "true", " x", ""}},
			{Name: "a", Type: "list", Value: []any{"1.000", "<b>", 1.125, 1000.0}}, {Name: "a", Type: "number", Value: 1.125},
			{Name: "a", Type: "list", Value: []any{true, nil}},
			{Name: "a", Type: "list", Value: []any{[]any{1.0}, map[string]any{"b": "c"}}},
			{Name: "a", Type: "map", Value: map[string]any{"k": "v", "n": 1.5}},
			{Name: "a", Type: "map", Value: map[string]any{"k=": "v", "n": "1"}},
			{Name: "a", Type: "map", Value: map[string]any{"[": "{"}},
			{Name: "a", Type: "number", Value: 2.0, Enum: []any{1.0, 2.0, 2.5}},
		} {
			c := l.control(f, nil)
			v, wrong := l.read(f, c.Text)
			want := value(f.Value)
			if wrong != "" || v != want {
				t.Errorf("%s: %v is shown as %q and read as %q (%s)", l.code, f.Value, c.Text, v, wrong)
			}
		}
	}
}

// A choice that need not be made can be taken back, also without JavaScript: no answer is one of those that are offered.
// It is not where the task has to answer, nor where there is an answer already, which leaving it out would not change.
func TestAChoiceCanBeTakenBack(t *testing.T) {
	for _, l := range languages() {
		for _, f := range []api.Field{
			{Name: "a", Type: "boolean"}, {Name: "a", Type: "string", Enum: []any{"low", "high"}},
		} {
			c := l.control(f, url.Values{"data.a": {""}})
			if last := c.Choices[len(c.Choices)-1]; last.Value != "" || last.Name != l.say("choice.none") || !last.Chosen {
				t.Errorf("%s: the last of %+v is no answer", l.code, c.Choices)
			}
			values, wrong := l.typed([]api.Field{f}, url.Values{"data.a": {""}}, false)
			if len(values)+len(wrong) != 0 {
				t.Errorf("%s: no answer is read as %v, %v", l.code, values, wrong)
			}
			must, has := f, f
			must.Required, has.Value = true, "high"
			for _, f := range []api.Field{must, has} {
				for _, o := range l.control(f, nil).Choices {
					if o.Value == "" {
						t.Errorf("%s: of %+v no answer is offered", l.code, f)
					}
				}
			}
		}
	}
}

// A control character that no page can bring back is refused, and is seen where it stood; a value that has one already
// stays as it is unless somebody types another.
func TestWhatNoFormCanBringBackIsRefused(t *testing.T) {
	const text = "a\u0096b\u0001\u202ec"
	f := api.Field{Name: "a", Type: "string"}
	for _, l := range languages() {
		values, wrong := l.typed([]api.Field{f}, url.Values{"data.a": {"a\x00b"}}, false)
		if len(values) != 0 || !strings.Contains(wrong["a"], "U+0000") || exact("a\x00b") != "a\ufffdb" {
			t.Errorf("%s: a text with U+0000 is read as %q, and is wrong as %q", l.code, values, wrong)
		}
		values, wrong = l.typed([]api.Field{f}, url.Values{"data.a": {text}}, false)
		if len(values) != 0 || !strings.Contains(wrong["a"], "U+0096") {
			t.Errorf("%s: %q is read as %q, and is wrong as %q", l.code, text, values, wrong)
		}
		if shown := string(exact(text)); shown != "a\ufffdb&#1;&#8238;c" {
			t.Errorf("it is shown as %q", shown)
		}
		has := f
		has.Value = text
		values, wrong = l.typed([]api.Field{has}, url.Values{"data.a": {"a\ufffdb\u0001\u202ec"}}, false)
		if len(values)+len(wrong) != 0 {
			t.Errorf("%s: what was shown is read as %q, and is wrong as %q", l.code, values, wrong)
		}
	}
}

// The list is filtered by words, state and workflow, and paged; what needs a person comes first.
func TestInstancesAreFilteredAndPaged(t *testing.T) {
	f := many(10_000)
	p := newPage(f)
	for _, tt := range []struct {
		query, found string
		cards        int
	}{
		{"", "1 to 50 of 8000", 50}, {"?page=2", "51 to 100 of 8000", 50}, {"?page=160", "7951 to 8000 of 8000", 50},
		{"?page=9999", "7951 to 8000 of 8000", 50},
		{"?page=-1", "1 to 50 of 8000", 50}, {"?page=x", "1 to 50 of 8000", 50}, {"?state=all", "1 to 50 of 10000", 50},
		{"?state=needs", "1 to 50 of 100", 50}, {"?state=needs&page=2", "51 to 100 of 100", 50},
		{"?state=succeeded", "1 to 50 of 2000", 50}, {"?state=nonsense", "1 to 50 of 8000", 50},
		{"?q=street+777", "1 to 17 of 17", 17}, {"?q=HARBOUR+7777", "1 to 1 of 1", 1},
		{"?q=Zo%C3%AB", "1 to 50 of 8000", 50}, {"?q=zoe", "1 to 50 of 8000", 50},
		{"?q=ZOE%CC%88", "1 to 50 of 8000", 50}, {"?workflow=flood&state=all", "1 to 50 of 5000", 50},
		{"?all", "1 to 50 of 10000", 50}, {"?q=id0000", "1 to 50 of 8000", 50},
	} {
		began := time.Now()
		body := get(t, p, "/instances"+tt.query, "en").Body.String()
		took := time.Since(began)
		if n := strings.Count(body, "<h2>"); !strings.Contains(body, tt.found+"<") || n != tt.cards {
			t.Errorf("%s: %d are listed, want %s\n%s", tt.query, n, tt.found, prose(body)[:900])
		}
		if took > 2*time.Second { // it is a tenth of a second on an idle machine
			t.Errorf("%s took %s", tt.query, took)
		}
	}
	for _, query := range []string{"?q=id0", "?q=00000777", "?q=harbour+d00"} { // an ID is found by its beginning alone
		if n := strings.Count(get(t, p, "/instances"+query, "en").Body.String(), "<h2>"); n != 0 {
			t.Errorf("%s: %d are listed", query, n)
		}
	}
	if body := get(t, p, "/instances", "en").Body.String(); strings.Count(body, `class="needy"`) != 50 {
		t.Error("what needs a person does not come first")
	}
}

// many is a node with so many instances and items.
func many(n int) *apitest.Fake {
	f := brigade()
	var list []api.InstanceSummary
	for i := range n {
		in := api.InstanceSummary{
			ID: "id" + strings.Repeat("0", 5) + itoa(i), Workflow: "fire-call", State: "running",
			Subject: "Harbour Street " + itoa(i) + ", Zoë", Started: at(0), Tasks: 5, At: []string{"reserve"},
		}
		if i%2 == 0 {
			in.Workflow = "flood"
		}
		if i%5 == 1 {
			in.State, in.Ended = "succeeded", ref(at(time.Hour))
		} else if i%100 == 0 {
			in.Needs = []api.Need{{Kind: "failed", Number: 1, Tasks: nil}}
		}
		list = append(list, in)
	}
	f.OnInstances = func(all bool) ([]api.InstanceSummary, error) {
		out := slices.Clone(list)
		if !all {
			out = slices.DeleteFunc(out, func(in api.InstanceSummary) bool { return in.Ended != nil })
		}
		return out, nil
	}
	f.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) {
		items := make([]api.Item, n)
		for i := range items {
			items[i] = api.Item{
				ID: "i" + itoa(i), Instance: id, Workflow: "fire-call", Task: "look", State: api.ItemReady,
				Partner: "station", Delivered: true,
			}
		}
		return items, nil
	}
	return f
}

// Home shows of very much work what a phone takes, and leads to the rest, of which a browser gets what it can bear.
func TestHomeWithVeryMuchWork(t *testing.T) {
	body := get(t, newPage(many(10_000)), "/", "en").Body.String()
	if n := strings.Count(body, `class="card"`); n != onHome ||
		!strings.Contains(body, `<a href="/?all=yes">And 9980 more</a>`) || !strings.Contains(body, "And 80 more") ||
		!strings.Contains(body, "And 7880 more") {
		t.Errorf("%d items\n%s", n, prose(body))
	}
	if len(body) > 60_000 {
		t.Errorf("%d bytes", len(body))
	}
	for path, more := range map[string]string{
		"/?order=here": `<a href="/?all=yes&amp;order=here">And 9980 more</a>`, "/?all=yes": "9000 more are not shown here.",
		"/?all=yes&order=here": "9000 more are not shown here.",
	} {
		if body := get(t, newPage(many(10_000)), path, "en").Body.String(); !strings.Contains(body, more) ||
			strings.Contains(body, "<code>mutirao") {
			t.Errorf("%s\n%.2000s", path, prose(body))
		}
	}
}

// Of what needs a person the most urgent comes first, and home stops after that order, not before.
func TestWhatIsMostUrgentComesFirst(t *testing.T) {
	f := brigade()
	need := func(kind string, since time.Duration) []api.Need {
		n := api.Need{Kind: kind, Number: 1}
		if since > 0 {
			n.Since = ref(at(since))
		}
		return []api.Need{n}
	}
	list := []api.InstanceSummary{{ID: "told", Subject: "Told", State: workflow.InstanceRunning, Needs: need("incident", 0)}}
	for i := range 30 { // the newest first, as the node lists them
		since := time.Duration(60-i) * time.Minute
		list = append(list, api.InstanceSummary{
			ID: "late" + itoa(i), Subject: "Late" + itoa(60-i), State: workflow.InstanceRunning, Started: at(since),
			Needs: need(api.NeedOverdue, since),
		})
	}
	list = append(list, api.InstanceSummary{
		ID: "stuck", Subject: "Stuck", State: workflow.InstanceBlocked, Needs: need("blocked", 0),
	}, api.InstanceSummary{
		ID: "failed", Subject: "Failed", State: workflow.InstanceRunning, Started: at(time.Hour), Needs: need(api.NeedFailed, 0),
	})
	f.OnInstances = func(bool) ([]api.InstanceSummary, error) { return slices.Clone(list), nil }
	p := newPage(f)
	for path, last := range map[string]string{"/": "Late48", "/instances?state=needs": "Told"} {
		text := prose(get(t, p, path, "en").Body.String())
		from := 0
		for _, name := range []string{"Stuck", "Failed", "Late31", "Late32", last} {
			next := strings.Index(text[from:], name)
			if next < 0 {
				t.Fatalf("%s: %s is not there, or not in its place:\n%s", path, name, text)
			}
			from += next
		}
		if path == "/" && (strings.Contains(text, "Late49") || !strings.Contains(text, "And 13 more")) {
			t.Errorf("home does not stop after twenty:\n%s", text)
		}
	}
}

// An instance that has failed as others presume is not among those under way: home and the list of what needs a person
// name it with its state, as mutirao instances does.
func TestWhatIsPresumedToHaveFailedNeedsAPerson(t *testing.T) {
	f := brigade()
	f.OnInstances = func(bool) ([]api.InstanceSummary, error) {
		return []api.InstanceSummary{{
			ID: id, Workflow: "round", State: workflow.InstanceFailed, Started: at(0), Tasks: 2,
			Needs: []api.Need{{Kind: api.NeedFailed, Number: 2, Presumed: 2, Tasks: []workflow.TaskName{"one", "two"}}},
		}}, nil
	}
	p := newPage(f)
	for _, path := range []string{"/", "/instances?state=needs"} {
		body := prose(get(t, p, path, "pt-BR").Body.String())
		if !strings.Contains(body, "falhou") || !strings.Contains(body, "one, two (segundo outros: pode continuar)") {
			t.Errorf("%s says:\n%s", path, body)
		}
	}
}

func itoa(i int) string { return strconv.Itoa(i) }
