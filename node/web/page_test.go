package web

import (
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/golden"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Moments are shown by the device's clock; the tests' device is in one place.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

const id = "3f9a0c21d4aa00112233445566778899"

// at is so long after noon on 31 December 1999; tests begin at midnight.
func at(d time.Duration) time.Time {
	return time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC).Add(d)
}

// planOfHouse is the reference to a file.
var planOfHouse = "file:" + strings.Repeat("ab", 32) + ":2400000:house.pdf"

// lateResult is the name of a result that came too late.
var lateResult = strings.Repeat("7a", 32)

func ref[T any](v T) *T { return &v }

// brigade is a node in a mesh where a crew fell silent.
func brigade() *apitest.Fake {
	f := &apitest.Fake{
		OnStatus: func() (*api.Status, error) {
			return &api.Status{
				Name: "station", ID: "12D3KooWstation", Mesh: "brigade", Version: "v1", Since: at(0), Instances: 2,
				Trouble: []string{"cannot write: no space left"},
			}, nil
		},
		OnPartners: func() ([]api.Partner, error) {
			return []api.Partner{
				{Name: "station", ID: "12D3KooWstation", Roles: []string{"commander"}, State: "active",
					ConnectionTime: "15s", Self: true},
				{Name: "engine-7", ID: "12D3KooWengine", Roles: []string{"crew", "driver"}, State: "expired",
					Since: ref(at(11 * time.Hour)), Reason: "silent for its connection time",
					Addresses: []string{"/ip4/10.0.0.7/tcp/4001"}, LastValidated: at(11 * time.Hour),
					ConnectionTime: "15s", Load: 0.25},
				{Name: "tablet", ID: "12D3KooWtablet", State: "unreachable", Since: ref(at(10 * time.Hour)),
					Reason: "away as announced", Until: ref(at(58 * time.Hour)), LastValidated: at(10 * time.Hour),
					ConnectionTime: "5m0s"},
			}, nil
		},
		OnInstances: func(all bool) ([]api.InstanceSummary, error) {
			list := []api.InstanceSummary{
				{ID: id, Workflow: "fire-call", Version: 3, State: workflow.InstanceRunning,
					Subject: "Harbour Street 12", Started: at(0), Done: 1, Tasks: 3, At: []string{"reserve"},
					AsOf: ref(at(11*time.Hour + 48*time.Minute)), Known: "as known 12 min ago",
					Needs: []api.Need{
						{Kind: "failed", Number: 5, Tasks: []workflow.TaskName{"pump", "hoses"}},
						{Kind: "nobody", Number: 1, Tasks: []workflow.TaskName{"medic"}}, {Kind: "incident", Number: 2},
						{Kind: "overdue", Number: 1, Tasks: []workflow.TaskName{"hoses"}, Since: ref(at(10 * time.Hour))},
					}},
				{ID: "77" + id, Workflow: "flood", Version: 1, State: workflow.InstanceBlocked, Started: at(0),
					KnownBy: []api.Witness{
						{Name: "reserve", State: "active", At: at(0)},
						{Name: "engine-7", State: "unreachable", At: at(11*time.Hour + 58*time.Minute)},
					}},
			}
			if all {
				list = append(list, api.InstanceSummary{
					ID: "88" + id, Workflow: "drill", State: workflow.InstanceSucceeded, Started: at(0),
					Ended: ref(at(time.Hour)),
				})
			}
			return list, nil
		},
		OnShow: func(string) (*api.Instance, error) { return fireCall(), nil },
		OnLog: func(string) ([]api.LogEntry, error) {
			return []api.LogEntry{
				{At: at(0), Time: 1, Fact: "aa11", Author: "station", Text: "instance created: engine=engine-7",
					Counted: true},
				{At: at(time.Hour), Time: 4, Fact: "bb22", Author: "engine-7", Task: "procedure-1",
					Text: "succeeded (does not count)"},
				{At: at(2 * time.Hour), Time: 5, Fact: "cc33", Author: "engine-7", Task: "procedure-1", Kind: "claim",
					Text: "result of ana", Counted: true, Signed: signedByAna},
			}, nil
		},
		OnDiagram: func(id, format string) ([]byte, error) { return []byte("<svg/>"), nil },
		OnWorkflows: func() ([]api.Workflow, error) {
			return []api.Workflow{{Name: "fire-call", Version: 3, Doc: "Procedure 2 is costly.", Tasks: 4,
				Partitions: []string{"station", "engine"}, Added: at(0)}}, nil
		},
	}
	f.OnCoordinatorStatus = func() (*api.Coordinator, error) {
		return &api.Coordinator{
			Coordinator: ref("station"), Term: 4, Since: ref(at(0)), Votes: []string{"station", "reserve"},
		}, nil
	}
	f.OnUsers = func() ([]api.User, error) {
		return []api.User{
			{Name: "ana", ID: "id-of-ana", Roles: []string{"commander"}, Here: true, Devices: []string{"station"}},
			{Name: "bia", ID: "id-of-bia", Roles: []string{"crew", "driver"}, Devices: []string{"engine-7"}},
			{Name: "caio", ID: "id-of-caio", Roles: []string{"medic"}, Devices: []string{"station"}},
			{Name: "engine-7", ID: "id-of-engine-7", Roles: []string{"crew"}, Partner: true, Devices: []string{"engine-7"}},
			{Name: "ze", ID: "id-of-ze", Roles: []string{"crew"}}, // never signed in
		}, nil
	}
	f.OnWorklist = func(q api.WorklistQuery) ([]api.Item, error) { return listed(q, work()), nil }
	f.OnWorklistUnanswered = func(string) ([]string, error) { return []string{"medic"}, nil }
	f.OnWorklistLost = func(user string) ([]api.LostItem, error) {
		if user != "id-of-ana" {
			return nil, nil
		}
		return []api.LostItem{
			{ID: "lost1", Instance: id, Task: "hoses", Label: "Lay the hoses", Workflow: "fire-call", WorkflowLabel: "Fire",
				Subject: "Harbour Street 12", Why: "as the item was put back", By: "bia", At: at(11 * time.Hour), Partner: "engine-7"},
			{ID: "lost2", Instance: "99" + id, Elsewhere: true, Task: "watch", Workflow: "fire-call", Why: "as its lease is over", At: at(10 * time.Hour),
				Partner: "engine-7", Adoptable: true},
			{ID: "lost4", Instance: "a2" + id, Task: "hoses", Label: "Lay the hoses", Workflow: "fire-call", WorkflowLabel: "Fire",
				Why: "as the item was handed on", By: "bia", At: at(11 * time.Hour), Partner: "engine-7"},
			{ID: "lost3", Instance: id, Task: "guard", Label: "Guard the gate", Workflow: "fire-call", WorkflowLabel: "Fire",
				Subject: "Harbour Street 12", Why: "as the task is presumed to have failed, and Close the street stands in for it", Presumed: true,
				At: at(11 * time.Hour), Partner: "medic"},
		}, nil
	}
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) { return sheetOf(q.Item) }
	f.OnOutbox = func() ([]api.Undelivered, error) {
		return []api.Undelivered{
			{Instance: id, Task: "evacuate", Workflow: "fire-call", Subject: "Harbour Street 12", What: "completed", Since: at(11*time.Hour + 57*time.Minute),
				WaitsFor: []string{"engine-7"}, User: "ana"},
			{Instance: id, Task: "hoses", Workflow: "fire-call", WorkflowLabel: "Fire", Label: "Lay the hoses", What: "failed: no water", Since: at(0), User: "ana",
				Refused: "bia has done it", ID: "5e0c91aa77d3b204", Outputs: map[string]string{"water": "0"},
				DataLabels: map[string]string{"water": "Water in litres"}},
			{Instance: "a2" + id, Task: "hoses", Workflow: "fire-call", WorkflowLabel: "Fire", Label: "Lay the hoses", What: "completed", Since: at(0), User: "ana",
				Refused: "it does not count, as the item was handed on; it is kept there", ID: "6e0c91aa77d3b204", Result: lateResult,
				Outputs: map[string]string{"water": "9"}},
			{Instance: id, Task: "report", Workflow: "fire-call", What: "completed", Since: at(0), User: "ana",
				WaitsFor: []string{"crew"}, HeldHere: true},
			{Instance: id, Task: "report", Workflow: "fire-call", What: "completed", Since: at(0), User: "ana",
				WaitsFor: []string{"crew"}, Awaits: []string{"pump", "hoses"}, TaskLabels: map[string]string{"hoses": "Lay the hoses"}},
			{Instance: id, Task: "tidy", Workflow: "fire-call", What: "completed", Since: at(0), User: "ana",
				WaitsFor: []string{}, HeldHere: true, Alone: true},
			{Instance: id, Task: "guard", Workflow: "fire-call", What: "completed", Since: at(0), User: "ana",
				WaitsFor: []string{"engine-7"}, NoMember: "station is evicted by engine-7 at 2025-06-01T12:00:00Z: lost"},
			{Instance: "99" + id, Elsewhere: true, Task: "survey", Workflow: "fire-call", What: "file roof.jpg, for photo", File: "photo",
				FileName: "roof.jpg", Since: at(0), User: "ana", WaitsFor: []string{"station"}},
		}, nil
	}
	f.OnData = func(string) ([]api.DataItem, error) {
		return []api.DataItem{{Name: "plan", Type: "file", Value: planOfHouse,
			File: &api.File{Name: "house.pdf", Size: 2_400_000, Value: planOfHouse, Here: true, OnlyHere: true}}}, nil
	}
	f.OnPrefetch = func(user string) (*api.Prefetch, error) { return &api.Prefetch{User: user, Items: []api.Item{}}, nil }
	f.OnContact = func() (*api.Contact, error) { return &api.Contact{State: api.IsConnected}, nil }
	f.OnUnreadMessages = func(string) (int, error) { return 2, nil }
	f.OnMessages = func(q api.MessagesQuery) ([]api.Message, error) {
		list := []api.Message{
			{ID: "m1", At: at(0), Type: "started", Instance: id, Workflow: "fire-call", Text: "it has started",
				Read: true},
			{ID: "m2", At: at(11 * time.Hour), Type: "deadline", Instance: id, Workflow: "fire-call", Task: "evacuate",
				Text: "evacuate is due in 1h", Past: true},
			{ID: "m3", At: at(12 * time.Hour), Type: "failed", Instance: id, Workflow: "fire-call", Task: "pump",
				Text: "pump has failed: no fuel", Asks: true},
			{ID: "m4", At: at(12 * time.Hour), Type: "deadline", Instance: id, Workflow: "fire-call", Task: "hoses",
				Label: "Lay the hoses", Text: "the deadline of hoses is over: let it go on, or stop it", Asks: true},
		}
		if q.Unread {
			return list[1:], nil
		}
		return list, nil
	}
	f.OnWorkflow = func(string) (*api.Workflow, error) { return flood(), nil }
	f.OnDeciding = func(q api.DecidingQuery) (*api.Deciding, error) {
		is := q.User == "id-of-ana"
		return &api.Deciding{User: q.User, May: is, MayCancel: is, Responsible: "ana"}, nil
	}
	f.OnElectorate = func() (*api.Electorate, error) {
		return &api.Electorate{
			Number: 1002, Voters: []api.Voter{{Name: "station"}, {Name: "reserve"}, {Name: "engine-7"}}, Majority: 2,
			Override: true,
		}, nil
	}
	return f
}

func fireCall() *api.Instance {
	why := &api.Why{
		Mechanism: "Sel-push", Reason: "chosen by Sel-push", Threshold: 0.4, Load: 0.125, Others: 3,
		Candidates: []api.Candidate{
			{Partner: "engine-7", Suitability: 0.9, Urgency: 0.8, Conformance: 1, Availability: 1, AbsAlloc: 0.72,
				Verdict: "chosen"},
			{Partner: "medic", Suitability: 0.5, Urgency: 0.8, Conformance: 0.5, Availability: 0.952, AbsAlloc: 0.19,
				Verdict: "below the threshold"},
		},
	}
	return &api.Instance{
		ID: id, Workflow: "fire-call", Version: 3, State: workflow.InstanceRunning, Subject: "Harbour Street 12",
		Duplicated: true, Coordination: workflow.Choreography,
		Mechanism: "Sel-push", Responsible: "ana", Started: at(0),
		Asks: []api.Ask{
			{
				Task: "pump", Partner: "engine-7",
				Orders: []string{api.TaskAgain, api.TaskSkip, api.TaskContinue, api.TaskCancel},
			},
			{Task: "procedure-1", Partner: "engine-7", Presumed: true, Orders: []string{api.TaskCancel}},
		},
		Overdue: []api.Overdue{{Task: "look-again", Partner: "reserve", Since: at(10 * time.Hour)}},
		Incidents: []api.Incident{
			{At: at(time.Hour), What: "engine-7: expired", Task: "procedure-1"},
			{At: at(2 * time.Hour), What: "the result of bia does not count: the item was given back", Task: "pump",
				Result: lateResult, Commands: []string{"mutirao task adopt"}},
			{At: at(3 * time.Hour), What: "the result of caio does not count: it is a failure", Task: "hoses",
				Result: strings.Repeat("c1", 32)},
			{At: at(4 * time.Hour), Task: "lift", What: "more tasks use crane at once than there is of it (1): it is given to " +
				"lower, and in use by lift as well; lift was presumed to have failed, and may go on all the same"},
		},
		Conflicts: []api.Conflict{{Data: "report", Values: []any{"smoke", 2.0}}},
		Partitions: []api.Partition{{Name: "engine", Partner: "engine-7", Attempt: 1, State: "FAILED",
			Timeout: ref("1h0m0s"), Why: why, Due: []api.Due{{Kind: "verdict", At: at(2 * time.Hour), Left: "52m3s"}}}},
		Tasks: []api.Task{
			{Name: "dispatch", Partition: "station", Partner: "station", Attempt: 1, State: workflow.Succeeded,
				Started: ref(at(0)), Ended: ref(at(time.Minute)),
				Outputs: map[string]any{"report": "smoke", "floors": 2.0}},
			{Name: "procedure-1", Partition: "engine", Partner: "engine-7", Attempt: 1, State: workflow.Failed,
				ReplacedBy: ref[workflow.TaskName]("look-again"), Reason: "no water",
				Superseded: []api.Superseded{{Task: "procedure-1", Partner: "engine-7", Attempt: 1,
					Ended: at(2 * time.Hour), Compensation: "waiting"}}},
			{Name: "look-again", Role: "crew", Partner: "reserve", Attempt: 2, State: workflow.Running, ClaimedBy: "bia",
				ContingencyOf: ref[workflow.TaskName]("procedure-1"), TriggerFired: true,
				AsOf: ref(at(11*time.Hour + 48*time.Minute)), Known: "as known 12 min ago",
				Due: []api.Due{{Kind: "timeout", At: at(13 * time.Hour), Left: "1h4m0s", About: true}},
				Why: &api.Why{Reason: "the only one who can"}},
			{Name: "hoses", Partition: "engine", Partner: "engine-7", Attempt: 1, State: workflow.NotReady,
				Said:  &api.Said{By: "caio", Why: "no boots", At: at(time.Hour), Passed: true},
				Known: "nothing was heard of it yet",
				Due:   []api.Due{{Kind: "trigger", At: at(13 * time.Hour), Left: "48s"}}},
			{Name: "pump", Partition: "engine", Partner: "engine-7", Attempt: 1, State: workflow.Failed,
				Reason: "no fuel", ReplacedBy: ref[workflow.TaskName]("hoses"),
				StandIn: &api.StandIn{Partner: "reserve", State: workflow.Succeeded}},
			{Name: "map", State: workflow.Skipped, Attempt: 1, Reason: "dropped",
				Dropped: &api.Dropped{DataSet: "city-map", Holder: "medic"}},
		},
		Data: map[string]any{"address": "Rua 1", "floors": 2.0, "plan": planOfHouse, "report": nil},
	}
}

// signedByAna is how ana signed what she did.
var signedByAna = &api.PersonSignature{Key: "12D3KooWanasKey1", Signature: "5e0c91aa77d3b204"}

// work is what ana has and may take.
func work() []api.Item {
	ana, lease := "ana", at(35*time.Hour)
	return []api.Item{
		{ID: "a1", Instance: id, Workflow: "fire-call", Task: "dispatch", State: api.ItemReady, Partner: "station",
			Role: "commander", Doc: "Send an engine.", Subject: "Harbour Street 12",
			AsOf: at(11*time.Hour + 48*time.Minute), Known: "as known 12 min ago", Offline: true, Delivered: true,
			Said: &api.Said{By: "bia", Why: "the car broke down", At: at(11 * time.Hour)}},
		{ID: "b2", Instance: id, Workflow: "fire-call", Task: "procedure-1", State: api.ItemSelected, Holder: &ana,
			Partner: "engine-7", Role: "crew", Doc: "Reach the site.", Subject: "Harbour Street 12",
			Due:        &api.Due{Kind: "timeout", At: at(12*time.Hour + 252*time.Second), Left: "4m12s", About: true},
			Transfer:   &api.Passing{At: at(12*time.Hour + 600*time.Second), Left: "10m0s", To: "ana", About: true},
			LeaseUntil: &lease, Delivered: true},
		{ID: "c3", Instance: "77" + id, Workflow: "flood", WorkflowLabel: "Enchente – 洪水", Task: "evacuate",
			Label: "Levar as pessoas", InPlaceOf: "warn", State: api.ItemDone,
			Holder: &ana, Partner: "engine-7", Offline: true, Signed: signedByAna},
		{ID: "d4", Instance: id, Workflow: "fire-call", Task: "hoses", Label: "Lay the hoses", State: api.ItemNotReady,
			Partner: "engine-7", Role: "crew", Subject: "Harbour Street 12", Offline: true, Awaits: []string{"dispatch"},
			Delivered: true},
	}
}

// holderAway is the brigade while engine-7 is away as it announced, which gives out all that is to be done.
func holderAway() *apitest.Fake {
	f := brigade()
	away := &api.Absence{Partner: "engine-7", Since: at(11 * time.Hour), Until: at(35 * time.Hour)}
	items := work()
	for i := range items {
		items[i].Partner, items[i].Away = "engine-7", away
	}
	items[0].Known = "nothing was heard of it yet"
	items = append(items, items[1])
	items[len(items)-1].ID, items[len(items)-1].State, items[len(items)-1].Offline = "e5", api.ItemLocked, true
	f.OnWorklist = func(q api.WorklistQuery) ([]api.Item, error) { return listed(q, items), nil }
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(strings.Replace(q.Item, "e5", "b2", 1))
		if err == nil {
			s.Item, s.Whole = items[slices.IndexFunc(items, func(x api.Item) bool { return x.ID == q.Item })], q.Item == "e5"
		}
		return s, err
	}
	f.OnInstances = func(bool) ([]api.InstanceSummary, error) {
		return []api.InstanceSummary{{
			ID: id, Workflow: "fire-call", Version: 1, State: workflow.InstanceRunning, Started: at(0), Done: 1, Tasks: 3,
			At: []string{"engine-7"}, Known: "nothing was heard of it yet", Of: "engine-7", Away: []api.Absence{*away},
		}}, nil
	}
	f.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		for i := range in.Tasks {
			if t := &in.Tasks[i]; !t.State.Done() {
				t.Partner, t.Away = "engine-7", away
			}
		}
		return in, nil
	}
	return f
}

// listed is what a list of ana's has of it.
func listed(q api.WorklistQuery, items []api.Item) []api.Item {
	return slices.DeleteFunc(slices.Clone(items), func(x api.Item) bool { return x.State == api.ItemNotReady && !q.Ahead })
}

// sheetOf is an item with a field of each kind.
func sheetOf(item string) (*api.ItemSheet, error) {
	for _, x := range work() {
		if x.ID != item {
			continue
		}
		zero, most := 0.0, 30.0
		s := &api.ItemSheet{
			Item: x, Whole: true, Doc: x.Doc + "\nLook from the bridge.",
			Application: &api.ItemApplication{Name: "survey-form", Size: 3_000_000, OS: "linux", Installer: "the office"},
			After: []api.Earlier{
				{Task: "dispatch", By: "bia", Ended: ref(at(2 * time.Hour))}, {Task: "call", By: "station"},
			},
			Fields: []api.Field{
				{Name: "report", Type: "string", Doc: "What you see"},
				{Name: "level", Type: "number", Min: &zero, Max: &most, Value: 1.5},
				{Name: "boats", Type: "integer", Label: "Barcos à mão", Doc: "Those that float"}, {Name: "dry", Type: "boolean", Value: false},
				{Name: "since", Type: "time"},
				{Name: "state", Type: "string", Enum: []any{"calm", "alert", "flood"}},
				{Name: "houses", Type: "list", Value: []any{"7", "9a"}},
				{Name: "depth", Type: "map", Value: map[string]any{"bridge": 0.5}},
				{Name: "grade", Type: "integer", Enum: []any{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}},
				{Name: "photo", Type: "file", Doc: "A photo of the place"},
			},
		}
		if x.State != api.ItemReady {
			s.Data = []api.Datum{{Name: "address", Value: "Rua 1"}, {Name: "plan", Large: true},
				{Name: "map", Type: "file", Value: planOfHouse,
					File: &api.File{
						Name: "house.pdf", Size: 2_400_000, Value: planOfHouse, Here: true,
					}}, {Name: "sketch", Type: "file", Value: planOfHouse, File: &api.File{Name: "sketch.png",
					Size: 900, Value: planOfHouse}},
				{Name: "wounds", Type: "file", Value: planOfHouse, File: &api.File{Name: "wounds.png", Size: 900,
					Value: planOfHouse, OnlyFor: []string{"doctor", "medic"}}}}
		}
		return s, nil
	}
	return nil, api.Errorf(api.NotFound, "there is no item %q on this worklist", item)
}

// flood is a workflow that can be started.
func flood() *api.Workflow {
	def, err := workflow.Parse("flood", []byte(`
workflow: flood
doc: What to do when the river rises.
data:
  place: {type: string, required: true, doc: Where the water is}
  boats: {type: integer, default: 2, min: 0}
tasks:
  look: {type: manual, role: crew, doc: Read the gauge., out: [boats]}
  warn: {after: look}
`))
	if err != nil {
		panic(err)
	}
	return &api.Workflow{
		Name: "flood", Label: "Enchente – 洪水", Version: 2, Hash: "9f2c00112233", Doc: def.Doc, Tasks: 2, Partitions: []string{"main"},
		Added: at(0), Current: true, Definition: def.Canonical(),
	}
}

// ana is a user who signed in, and whose browser may act.
var ana = httpapi.Session{User: "id-of-ana", Name: "ana", Acts: true, Manages: true, FormToken: "f0f0"}

// get asks a page for a path, as a browser that signed in.
func get(t *testing.T, p *Page, path, lang string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	p.Inside(w, r, ana)
	filledIn(t, path, w)
	return w
}

// filledIn says where a text of a page was given more, or less, than it has blanks.
func filledIn(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	if _, wrong, is := strings.Cut(w.Body.String(), "%!"); is {
		t.Errorf("%s: a text is given what it has no blanks for: %%!%.80s", path, wrong)
	}
}

func newPage(svc api.Service) *Page { return New(svc, slog.New(slog.DiscardHandler)) }

var (
	blocks = regexp.MustCompile(`</?(p|h\d|li|ul|ol|div|section|dl|tr|summary|title|main|header|nav|footer)\b[^>]*>`)
	cells  = regexp.MustCompile(`</(dt|th|td)>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`[ \t]+`)
	// rawSpan is a span of two units as programs write it, such as 1h0m0s.
	rawSpan = regexp.MustCompile(`\b[0-9]+[dhm][0-9]+[hms]`)
)

// prose is what a page says, without its markup: a line for each block.
func prose(page string) string {
	page = strings.ReplaceAll(page, "\n", " ")
	page = cells.ReplaceAllString(blocks.ReplaceAllString(page, "\n"), " | ")
	page = html.UnescapeString(tags.ReplaceAllString(page, ""))
	var out []string
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(spaces.ReplaceAllString(line, " ")); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// What each page says, in both languages, is in testdata.
func TestPages(t *testing.T) {
	told := brigade()
	told.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Told = &api.Told{By: api.Witness{Name: "reserve", State: "active"}}
		return in, nil
	}
	summary := brigade()
	summary.OnShow = func(string) (*api.Instance, error) {
		return &api.Instance{ID: id, Workflow: "flood", State: workflow.InstanceRunning, Started: at(0),
			Told: &api.Told{
				By: api.Witness{Name: "engine-7", State: "unreachable", At: at(11 * time.Hour)}, Summary: true,
				Why:  "engine-7: cannot be reached",
				Done: 1, Tasks: 3, Current: []string{"engine-7"}, Participants: []string{"engine-7", "medic"},
			}}, nil
	}
	alone := brigade()
	alone.OnCoordinatorStatus = func() (*api.Coordinator, error) { return &api.Coordinator{}, nil }
	alone.OnElectorate = func() (*api.Electorate, error) { return &api.Electorate{}, nil }
	alone.OnStatus = func() (*api.Status,
		error) {
		return &api.Status{Name: "station", Mesh: "brigade", Since: at(0)}, nil
	}
	alone.OnPartners = func() ([]api.Partner, error) { return nil, nil }
	alone.OnInstances = func(bool) ([]api.InstanceSummary, error) { return nil, nil }
	alone.OnWorkflows = func() ([]api.Workflow, error) { return nil, nil }
	alone.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) { return nil, nil }
	alone.OnWorklistUnanswered = nil
	alone.OnOutbox = func() ([]api.Undelivered, error) { return nil, nil }
	alone.OnUnreadMessages, alone.OnUsers = nil, nil
	alone.OnMessages = func(api.MessagesQuery) ([]api.Message, error) { return nil, nil }
	for _, tt := range []struct {
		name string
		svc  api.Service
		path string
	}{
		{"home", brigade(), "/"}, {"home-none", alone, "/"}, {"item", brigade(), "/items/b2"},
		{"item-free", brigade(), "/items/a1"}, {"item-done", brigade(), "/items/c3"},
		{"outbox", brigade(), "/outbox"}, {"outbox-none", alone, "/outbox"},
		{"contact", brigade(), "/contact"}, {"contact-asks", leaving("too-slow"), "/contact?within=20"},
		{"contact-leaving", leaving(""), "/contact"}, {"contact-gone", gone(), "/contact"},
		{"messages", brigade(), "/messages"}, {"messages-none", alone, "/messages"},
		{"mesh", brigade(), "/mesh"}, {"mesh-alone", alone, "/mesh"},
		{"instances", brigade(), "/instances"}, {"instances-all", brigade(), "/instances?state=all"},
		{"instances-none", alone, "/instances"},
		{"instances-not-found", brigade(), "/instances?q=nothing+like+that"},
		{"workflow", brigade(), "/workflows/flood"},
		{"instance", brigade(), "/instances/" + id}, {"instance-told", told, "/instances/" + id},
		{"instance-summary", summary, "/instances/" + id},
		{"log", brigade(), "/instances/" + id + "/log"},
		{"gantt", brigade(), "/instances/" + id + "/gantt"},
		{"instance-interrupted", stranded(), "/instances/" + id},
		{"repair", stranded(), "/instances/" + id + "/recover"},
		{"repair-away", strandedAway(), "/instances/" + id + "/recover"},
		{"states", stranded(), "/instances/" + id + "/states"}, {"home-interrupted", stranded(), "/"},
		{"home-away", holderAway(), "/"}, {"item-away", holderAway(), "/items/a1"},
		{"item-away-locked", holderAway(), "/items/e5"},
		{"instances-away", holderAway(), "/instances"}, {"instance-away", holderAway(), "/instances/" + id},
		{"workflows", brigade(), "/workflows"}, {"workflows-none", alone, "/workflows"},
		{"study", brigade(), "/study"}, {"study-three", brigade(), "/study/three"},
	} {
		for _, l := range languages() {
			t.Run(tt.name+"."+l.code, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := get(t, newPage(tt.svc), tt.path, l.code)
					if w.Code != 200 || w.Header().Get("Content-Language") != l.code {
						t.Errorf("status %d, language %s", w.Code, w.Header().Get("Content-Language"))
					}
					said := prose(w.Body.String())
					if span := rawSpan.FindString(said); span != "" {
						t.Errorf("a span is written as programs write it: %s", span)
					}
					golden.Compare(t, "testdata/"+tt.name+"."+l.code+".txt", said)
				})
			})
		}
	}
}

// A title in another script does not turn what stands beside it on its line, such as a state.
func TestTitlesAreIsolated(t *testing.T) {
	f := brigade()
	f.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Subject = "حريق"
		return in, nil
	}
	for _, path := range []string{"/instances/" + id, "/items/b2", "/workflows/flood"} {
		_, head, _ := strings.Cut(get(t, newPage(f), path, "en").Body.String(), "<h1>")
		if head, _, _ = strings.Cut(head, "</h1>"); !strings.HasPrefix(head, "<bdi>") || strings.Count(head, "</bdi>") != 1 {
			t.Errorf("%s is called %s", path, head)
		}
	}
}

var screens = []string{
	"/", "/mesh", "/items/b2", "/items/a1", "/outbox", "/contact", "/messages", "/workflows/flood", "/instances",
	"/instances?all", "/instances/" + id, "/instances/" + id + "/log", "/instances/" + id + "/gantt", "/workflows", "/study", "/nothing",
}

// hostile means something to HTML, to attributes, to URLs and to JavaScript, and
// turns the direction of writing.
const hostile = `"'><x-evil onload=a()>javascript:a()//</script>&lt;x-evil>` + "\u202egnp\u2066\u200f\u009b\x1b"

// Whatever text comes from partners, on whatever page: it stays text.
func TestHostileTextStaysText(t *testing.T) {
	staysText(t, brigade(), screens, "OnStatus", "OnPartners", "OnInstances", "OnShow", "OnLog", "OnWorkflows",
		"OnCoordinatorStatus", "OnElectorate",
		"OnWorklist", "OnWorklistUnanswered", "OnItemSheet", "OnOutbox", "OnMessages", "OnUsers", "OnContact")
	staysText(t, stranded(), []string{"/instances/" + id, "/instances/" + id + "/states"}, "OnShow", "OnHistory")
	staysText(t, stranded(), []string{"/instances/" + id + "/states", "/instances/" + id + "/recover"}, "OnHistory",
		"OnDeciding")
}

func staysText(t *testing.T, f *apitest.Fake, paths []string, functions ...string) {
	poison := func(v any) { fill(reflect.ValueOf(v)) }
	of := func(name string, results ...any) {
		fn := reflect.ValueOf(f).Elem().FieldByName(name)
		inner := fn.Interface()
		fn.Set(reflect.MakeFunc(fn.Type(), func(args []reflect.Value) []reflect.Value {
			out := reflect.ValueOf(inner).Call(args)
			p := reflect.New(out[0].Type())
			p.Elem().Set(out[0])
			poison(p.Interface())
			out[0] = p.Elem()
			return out
		}))
	}
	for _, name := range functions {
		of(name)
	}
	for _, path := range paths {
		body := get(t, newPage(f), path, "en").Body.String()
		for _, bad := range []string{"<x-evil", `="javascript:`, `='`, "<script>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: %s in\n%s", path, bad, body)
			}
		}
		if !plain.IsPlain(body) {
			t.Errorf("%s: not plain: %q", path, body)
		}
		if path != "/nothing" && strings.Count(body, "x-evil") < 3 {
			t.Errorf("%s: the test did not get its text in", path)
		}
	}
}

// fill makes every text below v hostile.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]any]() && !v.IsNil() {
			v.Set(reflect.ValueOf(map[string]any{hostile: hostile}))
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(hostile))
	case reflect.String:
		v.SetString(hostile)
	}
}

// Every answer says what a browser may do with it. Nothing is inline, since the
// policy would refuse it, and nothing comes from elsewhere.
func TestPolicy(t *testing.T) {
	p := newPage(brigade())
	inline := regexp.MustCompile(`<style|<script(?: defer)?>| style="| on[a-z]+="|(?:src|href)="(?:https?:)?//`)
	for _, path := range screens {
		w := get(t, p, path, "en")
		if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
		if bad := inline.FindString(w.Body.String()); bad != "" {
			t.Errorf("%s: %s", path, bad)
		}
		if w.Header().Get("Referrer-Policy") != "same-origin" ||
			!strings.HasPrefix(w.Body.String(), "<!doctype html>\n<html lang=\"en\">") {
			t.Errorf("%s: %v\n%s", path, w.Header(), w.Body)
		}
	}
}

// A drawing may do nothing, even if it were no drawing.
func TestDiagram(t *testing.T) {
	f := brigade()
	w := get(t, newPage(f), "/instances/"+id+"/diagram.svg?v=1", "en")
	if h := w.Header(); h.Get("Content-Type") != "image/svg+xml" ||
		h.Get("Content-Security-Policy") != "default-src 'none'; style-src 'unsafe-inline'; sandbox" {
		t.Errorf("%v", h)
	}
	a, b := fireCall(), fireCall()
	if diagramOf(a) != diagramOf(b) {
		t.Error("one drawing, two addresses")
	}
	b.Tasks[0].State = workflow.Failed
	if diagramOf(a) == diagramOf(b) {
		t.Error("two drawings, one address: a browser would go on showing the first")
	}
	for _, c := range []struct{ query, lang, format string }{
		{"", "en", "svg-en"}, {"?tall", "en", "svg-tall-en"}, {"?tall&v=1", "pt-BR", "svg-tall-pt-BR"},
	} {
		f.OnDiagram = func(_, format string) ([]byte, error) { return []byte(format), nil }
		if got := get(t, newPage(f), "/instances/"+id+"/diagram.svg"+c.query, c.lang).Body.String(); got != c.format {
			t.Errorf("%s in %s is drawn as %s", c.query, c.lang, got)
		}
	}
	for query, want := range map[string]string{"": `width="620"`, "?tall": `width="358"`} {
		w := get(t, newPage(f), "/workflows/flood/diagram.svg"+query, "pt-BR")
		if svg := w.Body.String(); !strings.Contains(svg, want) || !strings.Contains(svg, "após sucesso") ||
			w.Header().Get("Content-Type") != "image/svg+xml" {
			t.Errorf("a workflow is drawn as %.300s", svg)
		}
	}
	f.OnDiagram = func(string, string) ([]byte, error) { return nil, api.Errorf(api.Failed, "only a summary") }
	if w := get(t, newPage(f), "/instances/"+id+"/diagram.svg", "en"); w.Code != 500 ||
		!strings.Contains(w.Body.String(), "only a summary") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Drawings call states as the page around them does, in either language.
func TestDrawingsSayStatesAsThePage(t *testing.T) {
	def, err := workflow.Parse("w", []byte("workflow: w\ncreator-role: chief\ntasks: {a: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range languages() {
		for _, state := range worded["task"] {
			in := &api.Instance{Tasks: []api.Task{{Name: "a", State: workflow.State(state)}}}
			word := l.word("task", state)
			for _, format := range []string{"svg-", "svg-tall-"} {
				svg, err := show.Draw(def, in, format+l.code)
				_, drawn, _ := strings.Cut(string(svg), "</style>") // before it states are classes
				if err != nil || !strings.Contains(drawn, "; "+word) || !strings.Contains(drawn, ">"+word) {
					t.Errorf("%s of %s does not say %s: %v\n%s", format+l.code, state, word, err, svg)
				}
			}
			svg, err := show.Gantt(in, time.Now(), l.code, time.UTC)
			if err != nil || !strings.Contains(string(svg), ": "+word) || !strings.Contains(string(svg), ">"+word+"<") {
				t.Errorf("when %s ran is drawn in %s without %s: %v\n%s", state, l.code, word, err, svg)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	f := brigade()
	f.OnShow = func(string) (*api.Instance, error) {
		return nil, api.Errorf(api.NotFound, "there is no instance <x>").WithHint("mutirao instances --all")
	}
	f.OnLog = func(string) ([]api.LogEntry, error) { return nil, errors.New("badger: value log 7 is broken") }
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/instances/x", 404, "there is no instance <x>\nmutirao instances --all\n"},
		{"/instances/x/log", 500, "Algo deu errado dentro do nó.\nO registro do nó diz o quê.\n"},
		{"/nothing", 404, "A página /nothing não existe.\n"},
		{"/instances/x/y", 404, "A página /instances/x/y não existe.\n"},
	} {
		w := get(t, newPage(f), tt.path, "pt")
		if text := prose(w.Body.String()); w.Code != tt.status || !strings.Contains(text, tt.want) ||
			strings.Contains(text, "badger") {
			t.Errorf("%s: %d\n%s", tt.path, w.Code, text)
		}
	}
	f.OnStatus = func() (*api.Status, error) { return nil, errors.New("gone") }
	if w := get(t, newPage(f), "/workflows", "en"); w.Code != 500 {
		t.Errorf("without a node: %d", w.Code)
	}
}

// Open to the network the page has the words for its certificate at its foot, and says what they do not
// show and that it is an ordinary page; at the door it says with which command one gets in.
func TestThePageOnTheNetwork(t *testing.T) {
	p := newPage(brigade())
	for lang, want := range map[string][]string{
		"en": {"This is an ordinary page, which cannot be installed", `<strong lang="en">acorn zipper</strong>`,
			"only the fingerprint that the browser itself shows"},
		"pt-BR": {"Esta é uma página comum, que não pode ser instalada", `<strong lang="en">acorn zipper</strong>`,
			"só a impressão digital que o próprio navegador mostra"},
	} {
		r := httptest.NewRequestWithContext(httpapi.WithLANWords(t.Context(), "acorn zipper"), http.MethodGet, "/mesh",
			nil)
		r.Header.Set("Accept-Language", lang)
		inside, outside := httptest.NewRecorder(), httptest.NewRecorder()
		p.Inside(inside, r, ana)
		for _, text := range want {
			if !strings.Contains(inside.Body.String(), text) {
				t.Errorf("%s: no %q in\n%s", lang, text, inside.Body)
			}
			if page := get(t, p, "/mesh", lang).Body.String(); strings.Contains(page, text) {
				t.Errorf("%s: %q on the node's own address", lang, text)
			}
		}
		p.Outside(outside, r, httpapi.Closed)
		if !strings.Contains(outside.Body.String(), "<code>mutirao web --lan</code>") {
			t.Errorf("%s: at the door\n%s", lang, outside.Body)
		}
	}
}

// A person who has not signed in is told how to, in their language, and nothing
// of the node: a call of the fake would panic.
func TestOutside(t *testing.T) {
	p := newPage(&apitest.Fake{})
	for _, tt := range []struct {
		path   string
		why    httpapi.Door
		status int
		want   string
	}{
		{"/instances?all", httpapi.Closed, 401, "Este navegador ainda não entrou neste nó."},
		{"/instances?all", httpapi.Closed, 401, `<a href="/instances?all">`},
		{"//elsewhere.example/", httpapi.Closed, 401, `<a href="/elsewhere.example">`},
		{"/sign-in/x", httpapi.Spent, 401, "Este link já foi usado ou venceu"},
		{"/sign-in/x", httpapi.Welcome, 200, "Pronto, você entrou."},
		{"/sign-out", httpapi.Left, 200, "Você saiu neste navegador."},
		{"/", httpapi.Ended, 401, "foi removido, saiu, ou seus certificados venceram"},
		{"/items/x", httpapi.TooLarge, 413, "um formulário pode ter 1 MiB"},
		{"/sign-in/x", httpapi.TooOften, 429, "links demais que não funcionam"},
		{"/", httpapi.Closed, 401, "<code>mutirao web</code>"},
		{"/static/style.css", httpapi.Closed, 200, ".cards"},
		{"/static/page.go", httpapi.Closed, 404, "not found"},
		{"/static/..%2fpage.go", httpapi.Closed, 400, "invalid URL path"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, nil)
		r.Header.Set("Accept-Language", "pt-BR")
		w := httptest.NewRecorder()
		p.Outside(w, r, tt.why)
		body := w.Body.String()
		if w.Code != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d\n%s", tt.path, w.Code, body)
		}
		if leads := strings.Contains(body, `http-equiv="refresh" content="0; url=/"`); leads != (tt.why == httpapi.Welcome) {
			t.Errorf("%s: leads inside: %v", tt.path, leads)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", tt.path)
		}
	}

	// Whoever sent a form after the session had ended is told how not to lose it.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/items/x", nil)
	w := httptest.NewRecorder()
	p.Outside(w, r, httpapi.Closed)
	if w.Code != 401 || !strings.Contains(w.Body.String(), "is not lost: open the new link in another tab") {
		t.Errorf("a form without a session: %d\n%s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	p.Outside(w, r, httpapi.Ended)
	if w.Code != 401 || !strings.Contains(w.Body.String(), "If that user signs in at this node again, open the new link") {
		t.Errorf("a form of a user who was removed: %d\n%s", w.Code, w.Body)
	}
}
