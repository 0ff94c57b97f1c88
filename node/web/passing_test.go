package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

var offered = regexp.MustCompile(`<option value="([^"]*)"`)

// options are what a control offers.
func options(body, id string) (out []string) {
	_, of, _ := strings.Cut(body, `id="`+id+`"`)
	of, _, _ = strings.Cut(of, "</select>")
	for _, m := range offered.FindAllStringSubmatch(of, -1) {
		out = append(out, m[1])
	}
	return out
}

// Whoever has an item passes it on to somebody who has its role, to another role, or back. It is asked of the node
// in the name of the session's user.
func TestPassingAnItemOn(t *testing.T) {
	for _, tt := range []struct {
		form  url.Values
		asked api.TransferRequest
		reply api.Transferred
		want  string
	}{
		{
			url.Values{"way": {"to"}, "to": {"id-of-bia"}, "role": {"medic"}, "why": {" she is nearer "}},
			api.TransferRequest{To: "id-of-bia", Reason: "she is nearer"},
			api.Transferred{To: "bia", Role: "crew"}, "procedure-1 is kept for bia for an hour.",
		},
		{url.Values{"way": {"to"}, "to": {"id-of-bia"}}, api.TransferRequest{To: "id-of-bia"},
			api.Transferred{To: "bia", Already: true}, "procedure-1 is with bia already."},
		{url.Values{"way": {"role"}, "role": {"medic"}, "to": {""}}, api.TransferRequest{Role: "medic"},
			api.Transferred{Role: "medic"}, "procedure-1 is for the role medic now."},
		{url.Values{"way": {"back"}, "role": {"medic"}}, api.TransferRequest{Back: true}, api.Transferred{Role: "crew"},
			"procedure-1 is free again."},
	} {
		f := brigade()
		var asked api.TransferRequest
		f.OnTransferItem = func(r api.TransferRequest) (*api.Transferred, error) {
			asked = r
			done := tt.reply
			done.ID, done.Task = id, "procedure-1"
			return &done, nil
		}
		p := newPage(f)
		if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", "/items/b2/transfer", tt.form), "en"); !strings.Contains(text, tt.want) || !strings.Contains(text, "My work") {
			t.Errorf("%v:\n%s", tt.form, text)
		}
		tt.asked.User, tt.asked.Item = "id-of-ana", "b2"
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Errorf("%v: %s", tt.form, diff)
		}
		// Who decides about the instance names the task.
		tt.form.Set("task", "procedure-1")
		if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", "/instances/"+id+"/transfer", tt.form), "en"); !strings.Contains(text, tt.want) {
			t.Errorf("%v:\n%s", tt.form, text)
		}
		tt.asked.Item, tt.asked.ID, tt.asked.Task = "", id, "procedure-1"
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Errorf("%v: %s", tt.form, diff)
		}
	}
}

// It offers those who have the role, and other roles; to oneself only who decides can hand it.
func TestToWhomAnItemCanGo(t *testing.T) {
	f := brigade()
	body := get(t, newPage(f), "/items/b2", "en").Body.String()
	if diff := cmp.Diff([]string{"", "id-of-bia", "id-of-engine-7"}, options(body, "pass-to")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"", "commander", "driver", "medic"}, options(body, "pass-role")); diff != "" {
		t.Errorf("roles: %s\n%s", diff, body)
	}
	body = get(t, newPage(f), "/instances/"+id, "en").Body.String()
	if diff := cmp.Diff([]string{"", "id-of-bia", "id-of-engine-7"}, // who has its role
		options(body, "pass-to")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"look-again"}, options(body, "pass-task")); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/items/a1", "/items/c3"} { // what is free, and what is done
		if body := get(t, newPage(f), path, "en").Body.String(); strings.Contains(body, `id="pass"`) {
			t.Errorf("%s can be passed on", path)
		}
	}
	// What is for nobody's role goes to people at its partner, and to no role.
	f.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Tasks[2].Role = ""
		return in, nil
	}
	f.OnUsers = func() ([]api.User, error) {
		all, err := brigade().OnUsers()
		all[2].Devices = []string{"reserve"}
		return all, err
	}
	body = get(t, newPage(f), "/instances/"+id, "en").Body.String()
	if diff := cmp.Diff([]string{"", "id-of-caio"}, options(body, "pass-to")); diff != "" ||
		strings.Contains(body, "pass-role") {
		t.Errorf("%s\n%s", diff, body)
	}
	// Where there are too many to choose from, or the node does not say, the name is typed.
	f.OnUsers = func() ([]api.User, error) { return nil, api.Errorf(api.Failed, "the disk is full") }
	if body := get(t, newPage(f), "/items/b2", "en").Body.String(); !strings.Contains(body, `<input id="pass-to"`) ||
		!strings.Contains(body, `<input id="pass-role"`) {
		t.Error(body)
	}
}

// What will not do, and what the node refuses, is said; what was chosen is there again.
func TestPassingOnRefused(t *testing.T) {
	f := brigade()
	f.OnTransferItem = func(api.TransferRequest) (*api.Transferred, error) {
		return nil, api.Errorf(api.Refused, "bia lacks the role crew")
	}
	for _, path := range []string{"/items/b2/transfer", "/instances/" + id + "/transfer"} {
		for want, form := range map[string]url.Values{
			"Choose to whom it goes.":                               {"way": {"to"}, "to": {" "}},
			"Choose to which role it goes.":                         {"way": {"role"}},
			"Say where it goes: to a person, to a role, or back.":   {"way": {"away"}},
			"Diga para onde vai: uma pessoa, um papel ou de volta.": {"way": {""}},
			"bia lacks the role crew": {"way": {"to"}, "to": {"id-of-bia"},
				"why": {"<near>"}},
			"This was not carried out now: look it over, and press once more": {"way": {"to"}, "to": {"id-of-bia"},
				"why": {"<near>"}, "stale": {"yes"}},
		} {
			lang, s := "en", sent(httpapi.Good)
			if strings.HasPrefix(want, "Diga") {
				lang = "pt-BR"
			}
			if form.Has("stale") {
				s = sent(httpapi.Stale)
			}
			form.Set("task", "look-again")
			w := post(t, newPage(f), s, lang, path, form)
			body := w.Body.String()
			if w.Code != http.StatusConflict || !strings.Contains(body, want) ||
				!strings.Contains(body, `id="pass" open`) {
				t.Errorf("%s %s: %d\n%s", path, want, w.Code, prose(body))
			}
			if form.Get("to") == "id-of-bia" &&
				(!strings.Contains(body, `<option value="id-of-bia" selected>`) ||
					!strings.Contains(body, `value="&lt;near&gt;"`)) {
				t.Errorf("%s %s: what was chosen is lost\n%s", path, want, body)
			}
		}
	}
	w := post(t, newPage(f), sent(httpapi.Good), "en", "/instances/"+id+"/transfer", url.Values{"way": {"back"}})
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "Choose which task goes to somebody else.") {
		t.Errorf("without a task: %d\n%s", w.Code, prose(w.Body.String()))
	}
}

// A result that is kept is adopted by its whole name, after a step that says what that means. What cannot be adopted
// has no button, and whoever may only look has none.
func TestAdoptingAResult(t *testing.T) {
	f := brigade()
	var asked []api.AdoptRequest
	f.OnAdoptResult = func(r api.AdoptRequest) (*api.Adopted, error) {
		asked = append(asked, r)
		return &api.Adopted{ID: id, Task: "pump", Result: r.Result, User: "ana", At: "reserve"}, nil
	}
	p := newPage(f)
	body := get(t, p, "/instances/"+id, "en").Body.String()
	results := regexp.MustCompile(`name="result" value="([^"]+)"`).FindAllStringSubmatch(body, -1)
	if len(results) != 1 || results[0][1] != lateResult ||
		!strings.Contains(prose(body), "It counts from now on as the result of pump, and what waits for that goes on. Whoever has the task loses it. Nobody can take that back.") {
		t.Errorf("%v\n%s", results, prose(body))
	}
	path, form := "/instances/"+id+"/adopt", url.Values{"result": {lateResult}}
	if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path, form), "en"); !strings.Contains(text, "pump is done by that result: reserve wrote it down.") {
		t.Error(text)
	}
	for _, s := range []httpapi.Sent{httpapi.Stale, httpapi.MayNot, httpapi.Nothing} {
		if w := post(t, p, sent(s), "en", path, form); w.Code != http.StatusConflict {
			t.Errorf("worth %d: %d", s, w.Code)
		}
	}
	if w := post(t, p, sent(httpapi.Good), "en", path, url.Values{"result": {lateResult[:8]}}); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "not the whole name of a result") {
		t.Errorf("the beginning of a name: %d\n%s", w.Code, prose(w.Body.String()))
	}
	if diff := cmp.Diff([]api.AdoptRequest{{User: "id-of-ana", ID: id, Result: lateResult}}, asked); diff != "" {
		t.Error(diff)
	}
	f.OnAdoptResult = func(api.AdoptRequest) (*api.Adopted, error) {
		return nil, api.Errorf(api.NotAllowed, "ana does not decide about this instance: bia does")
	}
	if w := post(t, p, sent(httpapi.Good), "en", path, form); w.Code != http.StatusForbidden ||
		!strings.Contains(prose(w.Body.String()), "ana does not decide about this instance: bia does") {
		t.Errorf("refused: %d\n%s", w.Code, prose(w.Body.String()))
	}
	look := httptest.NewRecorder()
	p.Inside(look, httptest.NewRequest(http.MethodGet, "/instances/"+id, nil), httpapi.Session{})
	if body := look.Body.String(); strings.Contains(body, `name="result"`) || strings.Contains(body, `id="pass"`) {
		t.Errorf("whoever may only look sees\n%s", prose(body))
	}
}

// Of an item that has passed to the responsible user by the device's clock, while its holder cannot be asked, its page
// and home say so before somebody works on it, and what becomes of that; not where its holder can be asked, which says it
// itself, nor to whom it passed.
func TestAnItemThatHasPassedOutOfReach(t *testing.T) {
	f := brigade()
	x := work()[1]
	x.State = api.ItemLocked
	var st api.Status
	f.OnStatus = func() (*api.Status, error) { return &st, nil }
	f.OnWorklist = func(q api.WorklistQuery) ([]api.Item, error) { return listed(q, []api.Item{x}), nil }
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		s.Item = x
		return s, err
	}
	const en, pt = "By the clock of this device it has passed to bia (2000-01-01 00:10), as its deadline is near. " +
		"What you make of it from now on is kept, and counts if it is adopted.",
		"Pelo relógio deste aparelho ela já passou para bia (01/01/2000 00:10), porque o prazo está perto. " +
			"O que você fizer dela a partir de agora fica guardado, e vale se for adotado."
	away := ref(at(11 * time.Hour))
	for _, tt := range []struct {
		name        string
		left, to    string
		alone       *time.Time
		unreachable bool
		passed      bool
	}{
		{"out of reach on purpose", "0s", "bia", away, false, true},
		{"its holder is gone", "0s", "bia", nil, true, true},
		{"not yet", "1s", "bia", away, true, false},
		{"its holder can be asked", "0s", "bia", nil, false, false},
		{"to whoever has it", "0s", "ana", away, true, false},
	} {
		st = api.Status{Name: "station", Mesh: "brigade", Since: at(0), Disconnected: tt.alone}
		passes := *work()[1].Transfer
		passes.Left, passes.To = tt.left, tt.to
		x.Transfer, x.Unreachable = &passes, tt.unreachable
		p := newPage(f)
		for _, path := range []string{"/items/b2", "/"} {
			for lang, want := range map[string]string{"en": en, "pt-BR": pt} {
				text := prose(get(t, p, path, lang).Body.String())
				if strings.Contains(text, want) != tt.passed {
					t.Errorf("%s, %s in %s:\n%s", tt.name, path, lang, text)
				}
				others := map[string]string{"en": "Others may take it", "pt-BR": "Outros podem pegá-la"}[lang]
				if tt.passed && (strings.Contains(text, "Passes to") || strings.Contains(text, others)) {
					t.Errorf("%s, %s in %s, says it both ways:\n%s", tt.name, path, lang, text)
				}
			}
		}
	}
}
