package web

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// rentalText is a workflow that is driven by its data.
const rentalText = `
workflow: boat-rental
data:
  booking: {type: string, enum: [asked, open, agreed, refused], default: asked, doc: How the booking stands}
  boat: {type: string}
  licence: {type: boolean, doc: The licence was shown}
  days: {type: integer, default: 2, min: 1, max: 30}
  price: {type: number}
tasks:
  open: {when: booking == "asked", repeat: true, application: set, with: {booking: '"open"'}, out: [booking]}
  agree: {when: booking == "open", repeat: true, application: set, with: {booking: '"agreed"'}, out: [booking], compensate: {application: set, with: {booking: '"open"'}}}
  hand-over: {when: booking == "agreed" and price == null, repeat: true, application: fail, with: {reason: no key}, out: [price]}
final: booking == "refused" or price != null
`

// stranded is a node with an instance that is interrupted.
func stranded() *apitest.Fake {
	f := brigade()
	f.OnInstances = func(bool) ([]api.InstanceSummary, error) {
		return []api.InstanceSummary{
			{ID: id, Workflow: "boat-rental", Version: 1, State: workflow.InstanceInterrupted, Started: at(0),
				Needs: []api.Need{{Kind: "interrupted", Number: 1, Tasks: []workflow.TaskName{"hand-over"}}}},
			{ID: "77" + id, Workflow: "boat-rental", Version: 1, State: workflow.InstanceInterrupted, Started: at(0),
				Needs: []api.Need{{Kind: "interrupted", Number: 1}}},
		}, nil
	}
	f.OnShow = func(string) (*api.Instance, error) { return rental(), nil }
	f.OnHistory = func(string) ([]api.DataState, error) { return rentalStates(), nil }
	f.OnWorkflow = func(string) (*api.Workflow, error) {
		def, err := workflow.Parse("boat-rental", []byte(rentalText))
		if err != nil {
			return nil, err
		}
		return &api.Workflow{Name: "boat-rental", Version: 1, Hash: "aa22", Definition: def.Canonical()}, nil
	}
	f.OnDeciding = func(q api.DecidingQuery) (*api.Deciding, error) {
		return &api.Deciding{User: "ana", May: q.User == ana.User, MayCancel: q.User == ana.User, Responsible: "ana"}, nil
	}
	f.OnForesee = func(_ string, x api.RecoveryStep) (*api.Outlook, error) {
		now := rental().Data
		out := &api.Outlook{
			Interruption: "one", From: 3, State: 4, Undoes: []api.Undoing{}, Attributes: now, Changed: []workflow.DataName{},
			Then: api.ThenFires, Fires: []workflow.TaskName{},
		}
		switch x.Method {
		case methodCompensate:
			now["booking"], out.Changed, out.Like, out.Then = "open", []workflow.DataName{"booking"}, ref(1),
				api.ThenInterrupted
			out.Undoes = []api.Undoing{{Task: "agree", State: 3, Sure: true}, {Task: "choose", State: 2}}
			out.Cause, out.Methods = "no key", []string{methodCompensate, methodOffer}
		case methodBack:
			out.Like, out.Jumped = ref(1), []api.JumpedOver{
				{Task: "choose", State: 2}, {Task: "look-over", Label: "Look the boat over", State: 3},
			}
		case methodForward:
			for n, v := range x.Set {
				if now[string(n)] = nil; v != nil {
					now[string(n)] = *v
				}
				out.Changed = append(out.Changed, n)
			}
			slices.Sort(out.Changed)
			if now["booking"] == "open" {
				return nil, api.Errorf(api.Refused,
					"refused: its state would be equivalent to S1: a forward jump leads to a state that is equivalent to none in the history")
			}
			out.Then = api.ThenFinal
		case methodOffer:
			out.State, out.Fires = 4, []workflow.TaskName{"choose"}
			out.Undoes = []api.Undoing{{Task: "choose", State: 3, Sure: true}}
			out.Beside = []api.Beside{{Task: "look-over", Label: "Look the boat over", Mark: "aborted"}}
		default:
			out.State, out.Fires = 3, []workflow.TaskName{"hand-over"}
		}
		return out, nil
	}
	return f
}

// strandedAway is stranded where the partner that keeps the data states cannot be asked.
func strandedAway() *apitest.Fake {
	f := stranded()
	f.OnShow = func(string) (*api.Instance, error) {
		in := rental()
		in.Recovery.AsOf, in.Recovery.Known = ref(at(11*time.Hour+48*time.Minute)), "as known 12 min ago"
		return in, nil
	}
	return f
}

func rental() *api.Instance {
	return &api.Instance{
		ID: id, Workflow: "boat-rental", Version: 1, State: workflow.InstanceInterrupted, Subject: "Iara",
		Responsible: "ana", Started: at(0), DataDriven: true,
		Coordination: workflow.Choreography,
		Data: map[string]any{
			"booking": "agreed", "boat": "heron", "licence": true, "days": int64(2), "price": nil,
		},
		Incidents: []api.Incident{{At: at(11 * time.Hour), What: "interrupted: no key", Task: "hand-over"}},
		Recovery: &api.Recovery{Cause: "no key", Task: "hand-over", At: at(11 * time.Hour), State: 3, Consistent: true,
			Methods: []string{methodCompensate, methodOffer, methodRestart, methodForward, "made up"}},
		Tasks: []api.Task{{Name: "hand-over", Partition: "main", Partner: "station", Attempt: 1, State: workflow.Failed,
			Reason: "no key"}},
	}
}

func rentalStates() []api.DataState {
	state := func(n int, by workflow.TaskName, from int, data map[string]any,
		changed ...workflow.DataName) api.DataState {
		s := api.DataState{
			State: &n, Kind: "transition", Transition: &by, FiredBy: &from, Partner: "station",
			Ended: at(time.Duration(n) * time.Hour), Attributes: data, Changed: changed, Status: "regular",
		}
		if by == "" {
			s.Kind, s.Transition, s.FiredBy = "initial", nil, nil
		}
		return s
	}
	first := state(0, "", 0, map[string]any{"booking": "asked", "days": int64(2)}, "booking", "days")
	open := state(1, "open", 0, map[string]any{"booking": "open", "days": int64(2)}, "booking")
	open.Pending = []workflow.TaskName{"agree", "choose"}
	boat := state(2, "choose", 1, map[string]any{"booking": "open", "boat": "heron", "days": int64(2)}, "boat")
	boat.Pending, boat.EquivalentTo, boat.Conflicts = []workflow.TaskName{"agree"}, ref(1), []workflow.DataName{"boat"}
	agreed := state(3, "agree", 1, map[string]any{"booking": "agreed", "boat": "heron", "days": int64(2)}, "booking")
	lost := state(0, "hand-over", 3, agreed.Attributes)
	lost.State, lost.Mark, lost.Ended, lost.Reason = nil, "aborted", at(11*time.Hour), "no key"
	undone := state(0, "agree", 0, map[string]any{"booking": "void", "boat": "heron", "days": int64(2)}, "booking")
	undone.State, undone.FiredBy, undone.Kind, undone.Mark = nil, nil, "compensation", "aborted"
	undone.Reason = "a jump forward called it off"
	undone.Ended = at(11*time.Hour + 30*time.Minute)
	other := state(0, "choose", 1, map[string]any{"boat": "egret"}, "boat")
	other.State, other.Mark, other.Partner, other.Ended = nil, "superseded", "jetty", at(90*time.Minute)
	return []api.DataState{first, open, other, boat, agreed, lost, undone}
}

var hiddenFields = regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]*)"`)

// confirming is the form by which what was shown is ordered.
func confirming(body string) url.Values {
	_, of, _ := strings.Cut(body, "<main")
	form := url.Values{"act": {"do"}}
	for _, m := range hiddenFields.FindAllStringSubmatch(of, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// A step is shown first, and nothing is ordered; then it is, in the name of the session's user, as it was shown.
func TestRecoveringAnInstance(t *testing.T) {
	for _, tt := range []struct {
		form url.Values
		want api.RecoveryStep
		says []string
		to   string
	}{
		{
			url.Values{"method": {methodCompensate}, "steps": {"2"}, "until": {"s1"}, "when": {" boat == null "}},
			api.RecoveryStep{Method: methodCompensate, Steps: 2, Until: ref(1), When: "boat == null"},
			[]string{
				"Nothing has been done yet.", "agree it had brought S3\n",
				"choose it had brought S2 Its program decides what that sets", "booking | agreed | open |",
				"As now: boat, days, licence, price", "That is state S4, and it is like S1.",
				"It stays interrupted: no key", "Undo the last steps; Try again, cleaned up first", "ordered by ana",
			},
			"/instances/" + id + "/recover?",
		},
		{url.Values{"method": {methodOffer}, "steps": {"7"}}, api.RecoveryStep{Method: methodOffer},
			[]string{
				"came to nothing, so that is undone first: Look the boat over", "choose it had brought S3",
				"They stay as they are.", "Then this begins: choose.",
			}, "/instances/" + id + "?"},
		{url.Values{"method": {methodRestart}}, api.RecoveryStep{Method: methodRestart},
			[]string{"They stay as they are.", "Then this begins: hand-over."}, "/instances/" + id + "?"},
		{
			url.Values{
				"method": {methodForward}, "data.booking": {"refused"}, "data.boat": {""}, "data.days": {"2"},
				"data.licence": {"true"}, "data.price": {"10.5"},
			},
			api.RecoveryStep{
				Method: methodForward, Set: map[workflow.DataName]*string{
					"booking": ref("refused"), "boat": nil, "price": ref("10.5"),
				},
			},
			[]string{
				"booking | agreed | refused |", "boat | heron | – |", "price | – | 10.5 |", "like none before",
				"Then it has ended well.",
			}, "/instances/" + id + "?",
		},
		{
			url.Values{"method": {methodBack}, "data.booking": {"refused"}},
			api.RecoveryStep{Method: methodBack, Set: map[workflow.DataName]*string{"booking": ref("refused")}},
			[]string{
				"It jumps over this: what was done stays done, and counts no more", "choose it had brought S2",
				"Look the boat over it had brought S3",
			}, "/instances/" + id + "?",
		},
	} {
		f := stranded()
		var asked []api.TaskOrder
		f.OnOrderTask = func(o api.TaskOrder) (*api.TaskOrdered, error) {
			asked = append(asked, o)
			return &api.TaskOrdered{ID: o.ID, Order: o.Order, User: "ana", At: "station"}, nil
		}
		p := newPage(f)
		path := "/instances/" + id + "/recover"
		tt.form.Set("act", "look")
		w := post(t, p, sent(httpapi.Good), "en", path, tt.form)
		for _, says := range tt.says {
			if !strings.Contains(prose(w.Body.String()), says) {
				t.Errorf("%s does not say %q:\n%s", tt.want.Method, says, prose(w.Body.String()))
			}
		}
		if w.Code != 200 || len(asked) > 0 {
			t.Fatalf("%s: %d, to look ordered %+v", tt.want.Method, w.Code, asked)
		}
		form := confirming(w.Body.String())
		done := post(t, p, sent(httpapi.Good), "en", path, form)
		if text := follow(t, p, done, "en"); !strings.Contains(text, "It is ordered: station wrote it down") ||
			!strings.HasPrefix(done.Header().Get("Location"), tt.to) {
			t.Errorf("%s leads to %s:\n%s", tt.want.Method, done.Header().Get("Location"), text)
		}
		tt.want.From, tt.want.Interruption = ref(3), "one" // what was shown
		want := []api.TaskOrder{{User: "id-of-ana", ID: id, Order: api.TaskRecover, Recover: &tt.want}}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("%s: %s", tt.want.Method, diff)
		}
		post(t, p, sent(httpapi.Good), "en", path, form)
		if len(asked) != 1 {
			t.Errorf("%s, sent twice, is ordered %d times", tt.want.Method, len(asked))
		}
	}
}

// What the rules forbid, and what will not do, is said where it was asked for, and what was typed is there again.
func TestRecoveryRefused(t *testing.T) {
	for _, tt := range []struct {
		form url.Values
		code int
		lang string
		want []string
	}{
		{
			url.Values{"method": {methodForward}, "data.booking": {"open"}, "data.days": {"5"}}, http.StatusConflict,
			"en",
			[]string{"its state would be equivalent to S1", `id="m-jump-forward" open`, `name="data.days" value="5"`},
		},
		{
			url.Values{"method": {methodForward}, "data.booking": {"open"}}, http.StatusConflict, "pt-BR",
			[]string{"recusado: o estado seria equivalente a S1", `value="open" checked`},
		},
		{url.Values{"method": {methodForward}, "data.days": {"many"}}, http.StatusBadRequest, "en",
			[]string{"“many” is not a whole number: write digits only, as in 1000", `href="#jump-forward-f-days"`}},
		{url.Values{"method": {methodForward}, "data.days": {"31"}}, http.StatusBadRequest, "en",
			[]string{"out of range: from 1 to 30"}},
		{url.Values{"method": {methodForward}, "data.days": {"2"}, "data.price": {""}}, http.StatusConflict, "en",
			[]string{"Change at least one value"}},
		{url.Values{"method": {methodCompensate}, "steps": {"0"}, "when": {"<x>"}}, http.StatusConflict, "en",
			[]string{"1 or more", `value="&lt;x&gt;"`, `id="limits" open`}},
		{url.Values{"method": {methodCompensate}, "until": {"S-1"}}, http.StatusConflict, "en",
			[]string{"A state is named by its number"}},
		{url.Values{"method": {"made up"}}, http.StatusConflict, "en", []string{"Choose what is to be done."}},
	} {
		tt.form.Set("act", "look")
		w := post(t, newPage(stranded()), sent(httpapi.Good), tt.lang, "/instances/"+id+"/recover", tt.form)
		for _, want := range tt.want {
			if w.Code != tt.code || !strings.Contains(html.UnescapeString(w.Body.String()), html.UnescapeString(want)) {
				t.Errorf("%v: %d, no %s in\n%s", tt.form, w.Code, want, w.Body)
			}
		}
	}
}

// A jump is asked for the data of the instance as it is now: also for those that an amendment added, of which the
// workflow that it was started by says nothing. Nothing set is one of the answers, once.
func TestAJumpSetsWhatAnAmendmentAdded(t *testing.T) {
	f := stranded()
	f.OnShow = func(string) (*api.Instance, error) {
		in := rental()
		in.Data["insured"], in.Data["crew"], in.Data["deck"] = nil, nil, nil
		in.Recovery.Data = []api.Declared{
			{Name: "days", Type: workflow.TypeInteger, Min: ref(1.0), Max: ref(40.0)},
			{Name: "insured", Type: workflow.TypeBoolean, Doc: "Somebody pays for a lost boat"},
			{Name: "crew", Type: workflow.TypeInteger, Min: ref(1.0), Max: ref(9.0)},
			{Name: "deck", Type: workflow.TypeString, Enum: []any{"upper", "lower"}},
		}
		return in, nil
	}
	path := "/instances/" + id + "/recover"
	page := get(t, newPage(f), path, "en").Body.String()
	for _, want := range []string{
		`-f-insured-0" value="true"`, `-f-insured-1" value="false"`, "Somebody pays for a lost boat",
		`-f-deck-0" value="upper"`, `-f-deck-1" value="lower"`, `name="data.crew" value="" inputmode="numeric"`,
		"From 1 to 9", "From 1 to 40",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, name := range []string{"insured", "deck"} {
		none := regexp.MustCompile(`name="data.` + name + `" id="[a-z0-9-]+" value=""`)
		if n := len(none.FindAllString(page, -1)); n != 1 {
			t.Errorf("%s: %d answers say that nothing is set, want one", name, n)
		}
	}
	w := post(t, newPage(f), sent(httpapi.Good), "en", path,
		url.Values{"act": {"look"}, "method": {methodForward}, "data.crew": {"12"}})
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "out of range: from 1 to 9") {
		t.Errorf("%d\n%s", w.Code, prose(w.Body.String()))
	}
}

// What has changed since somebody looked is not ordered, but shown once more; so is what was sent after the session
// had ended. What cannot be read orders nothing. OnOrderTask is not there, and would panic.
func TestOnlyWhatWasShownIsOrdered(t *testing.T) {
	f := stranded()
	p, path := newPage(f), "/instances/"+id+"/recover"
	shown := post(t, p, sent(httpapi.Good), "en", path,
		url.Values{"act": {"look"}, "method": {methodCompensate}, "steps": {"1"}})
	form := confirming(shown.Body.String())
	w := post(t, p, sent(httpapi.Stale), "en", path, form)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "look it over, and press once more") ||
		confirming(w.Body.String()).Get("step") != form.Get("step") {
		t.Errorf("after another sign-in: %d\n%s", w.Code, prose(w.Body.String()))
	}
	inner := f.OnForesee
	f.OnForesee = func(id string, x api.RecoveryStep) (*api.Outlook, error) {
		out, err := inner(id, x)
		out.Interruption = "another" // of which the step would lead to the same
		return out, err
	}
	w = post(t, p, sent(httpapi.Good), "en", path, form)
	if text := prose(w.Body.String()); w.Code != http.StatusConflict ||
		!strings.Contains(text, "It has changed meanwhile, so nothing was done.") {
		t.Errorf("interrupted once more: %d\n%s", w.Code, text)
	}
	f.OnForesee = func(id string, x api.RecoveryStep) (*api.Outlook, error) {
		out, err := inner(id, x)
		out.Like = ref(0)
		return out, err
	}
	w = post(t, p, sent(httpapi.Good), "en", path, form)
	if text := prose(w.Body.String()); w.Code != http.StatusConflict ||
		!strings.Contains(text, "It has changed meanwhile, so nothing was done.") ||
		!strings.Contains(text, "it is like S0.") {
		t.Errorf("changed: %d\n%s", w.Code, text)
	}
	form.Set("step", `{"method":"offer","more":1}`)
	if w = post(t, p, sent(httpapi.Good), "en", path, form); w.Code != http.StatusConflict ||
		!strings.Contains(w.Body.String(), "cannot be read") {
		t.Errorf("unreadable: %d\n%s", w.Code, prose(w.Body.String()))
	}
	f.OnShow = func(string) (*api.Instance, error) {
		in := rental()
		in.State, in.Recovery = workflow.InstanceRunning, nil
		return in, nil
	}
	w = post(t, p, sent(httpapi.Good), "en", path, url.Values{"act": {"look"}, "method": {methodOffer}})
	if text := prose(w.Body.String()); w.Code != http.StatusConflict ||
		!strings.Contains(text, "It is not interrupted any more. Nothing was changed.") {
		t.Errorf("recovered by another: %d\n%s", w.Code, text)
	}
}

// The menu is for who decides about the instance; others see why it is interrupted, and who that is.
func TestWhoMayRecover(t *testing.T) {
	path := "/instances/" + id + "/recover"
	look := ana
	look.Acts = false
	bia := httpapi.Session{User: "id-of-bia", Name: "bia", Acts: true, FormToken: "f0f0"}
	for _, tt := range []struct {
		s    httpapi.Session
		want string
	}{{look, "This browser may only look."}, {bia, "ana decides."},
		{httpapi.Session{Acts: true}, "ana decides"}} {
		w := httptest.NewRecorder()
		newPage(stranded()).Inside(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil), tt.s)
		if text := prose(w.Body.String()); !strings.Contains(text, tt.want) ||
			!strings.Contains(text, "hand-over: no key") || strings.Contains(w.Body.String(), `name="method"`) {
			t.Errorf("%q sees\n%s", tt.s.Name, text)
		}
		w = post(t, newPage(stranded()), tt.s, "en", path, url.Values{"act": {"look"}, "method": {methodOffer}})
		if body := w.Body.String(); w.Code != 200 || strings.Contains(body, `name="step"`) ||
			!strings.Contains(body, "Nothing has been done yet.") {
			t.Errorf("%q is shown what it would do as\n%s", tt.s.Name, prose(body))
		}
	}
	f := stranded()
	f.OnOrderTask = func(api.TaskOrder) (*api.TaskOrdered, error) {
		return nil, api.Errorf(api.NotAllowed,
			"ana answers for the instance: that is decided by ana alone, as its definition names no administrators")
	}
	p := newPage(f)
	form := confirming(post(t, p, sent(httpapi.Good), "en", path,
		url.Values{"act": {"look"}, "method": {methodOffer}}).Body.String())
	if w := post(t, p, sent(httpapi.Good), "pt-BR", path, form); w.Code != http.StatusForbidden ||
		!strings.Contains(w.Body.String(), "só ana decide isso, pois a definição não nomeia administradores") {
		t.Errorf("refused: %d\n%s", w.Code, prose(w.Body.String()))
	}
}

// A long history comes in pages, the newest state first.
func TestStatesArePaged(t *testing.T) {
	f := stranded()
	f.OnHistory = func(string) ([]api.DataState, error) {
		var out []api.DataState
		for n := range 120 {
			out = append(out, api.DataState{
				State: ref(n), Kind: "initial", Status: "regular", Attributes: map[string]any{},
			})
		}
		return out, nil
	}
	rows := func(path string) int {
		return strings.Count(get(t, newPage(f), path, "en").Body.String(), `<tr role="row"`) - 1
	}
	if n := rows("/instances/" + id); n != fewStates {
		t.Errorf("the page of the instance has %d states", n)
	}
	if n := rows("/instances/" + id + "/states"); n != perPageStates {
		t.Errorf("the first page has %d states", n)
	}
	if body := get(t, newPage(f), "/instances/"+id+"/states?page=99", "en").Body.String(); !strings.Contains(body, "101 to 120 of 120") || !strings.Contains(body, `href="?page=2"`) {
		t.Error(prose(body))
	}
}

// A task gets a later deadline by a span or until a moment, from who decides about the instance.
func TestExtendingADeadline(t *testing.T) {
	f := brigade()
	f.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Tasks[2].Due = append(in.Tasks[2].Due, api.Due{Kind: "deadline", At: at(13 * time.Hour), Left: "1h0m0s"})
		return in, nil
	}
	path := "/instances/" + id
	f.OnDeciding = nil
	if body := get(t, newPage(f), path, "en").Body.String(); strings.Contains(body, `id="later"`) {
		t.Errorf("who does not decide is offered it:\n%s", prose(body))
	}
	f.OnDeciding = func(api.DecidingQuery) (*api.Deciding, error) { return &api.Deciding{May: true}, nil }
	if got := options(get(t, newPage(f), path, "en").Body.String(), "later-task"); !cmp.Equal(got, []string{"look-again"}) {
		t.Errorf("tasks that can have more time: %q", got)
	}
	field, hidden := "due.look-again", at(13*time.Hour).Format(time.RFC3339)
	if body := get(t, newPage(f), path, "en").Body.String(); !strings.Contains(body, `name="`+field+`" value="`+hidden+`"`) {
		t.Error("the form does not name the deadline that there was")
	}
	form := func(pairs ...string) url.Values {
		v := url.Values{"task": {"look-again"}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	for _, tt := range []struct {
		form  url.Values
		asked api.ExtendRequest
		reply api.Extended
		want  string
	}{
		{form("extend", "by", "count", " 2 ", "unit", "d", field, hidden), api.ExtendRequest{By: "2d"}, api.Extended{After: "50h"},
			"look-again is now due 2 d after it can be begun."},
		{form("extend", "to", "till", "1999-12-31T18:00"), api.ExtendRequest{To: "1999-12-31T18:00:00Z"},
			api.Extended{At: ref(at(6 * time.Hour))}, "look-again is due at 1999-12-31 18:00 now."},
	} {
		var asked api.ExtendRequest
		f.OnExtendDeadline = func(r api.ExtendRequest) (*api.Extended, error) {
			asked = r
			done := tt.reply
			done.ID, done.Task = id, "look-again"
			return &done, nil
		}
		p := newPage(f)
		if text := follow(t, p, post(t, p, sent(httpapi.Good), "en", path+"/deadline", tt.form), "en"); !strings.Contains(text, tt.want) {
			t.Errorf("%v: no %q in\n%s", tt.form, tt.want, text)
		}
		tt.asked.User, tt.asked.ID, tt.asked.Task = "id-of-ana", id, "look-again"
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Error(diff)
		}
	}
	f.OnExtendDeadline = func(api.ExtendRequest) (*api.Extended, error) {
		return nil, api.Errorf(api.Refused, "refused: that deadline of look-again is over already: give a later one")
	}
	for want, typed := range map[string]url.Values{
		"recusado: esse prazo de look-again já passou": form("extend", "by", "count", "1", "unit", "m"),
		"Diga quanto tempo a mais: um número inteiro":  form("extend", "by", "count", "<1>", "unit", "m"),
		"já tem outro prazo que quando":                form("extend", "by", "count", "1", "unit", "m", field, at(11*time.Hour).Format(time.RFC3339)),
		"Diga até que dia e hora.":                     form("extend", "to", "till", ""),
		"Diga quanto tempo a mais, ou até quando.":     form("extend", "up"),
		"Escolha qual tarefa ganha mais prazo.":        {"extend": {"by"}, "count": {"1"}, "unit": {"m"}},
	} {
		w := post(t, newPage(f), sent(httpapi.Good), "pt-BR", path+"/deadline", typed)
		if body := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(body, want) ||
			!strings.Contains(body, `id="later" open`) {
			t.Errorf("%v: %d\n%s", typed, w.Code, prose(body))
		}
	}
	// What was sent and shown again is the form that it was, also with another session; once it is refused for its deadline,
	// it is about that of now.
	old := at(11 * time.Hour).Format(time.RFC3339)
	for count, want := range map[string]string{"<1>": old, "1": hidden} {
		w := post(t, newPage(f), sent(httpapi.Good), "en", path+"/deadline", form("extend", "by", "count", count, "unit", "m", field, old))
		if !strings.Contains(w.Body.String(), `name="`+field+`" value="`+want+`"`) {
			t.Errorf("%s more: the form that comes is not about %s", count, want)
		}
	}
}
