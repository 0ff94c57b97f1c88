package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// perPage is how many instances a page lists: as many as a phone takes.
const perPage = 50

// needsPerson reports whether an instance waits for a person to look at it, as mutirao instances says it too: also where
// tasks have failed only as others presume, so that nobody takes it for one that runs.
func needsPerson(in api.InstanceSummary) bool {
	waits := api.UnderWay(in.State, in.Needs)
	return in.Quarantine != nil || waits && (len(in.Needs) > 0 || in.State != workflow.InstanceRunning)
}

// mostUrgent orders instances that need a person: first those at which something stands still until somebody orders or
// can do something, then what is overdue, the longest first, then what may wait; else the one that was started first.
func mostUrgent(a, b *api.InstanceSummary) int {
	return cmp.Or(urgency(a)-urgency(b), overdueSince(a).Compare(overdueSince(b)), a.Started.Compare(b.Started))
}

func urgency(in *api.InstanceSummary) int {
	if in.Quarantine != nil || in.State != workflow.InstanceRunning {
		return 0
	}
	least := 2
	for _, n := range in.Needs {
		switch n.Kind {
		case api.NeedOverdue:
			least = 1
		case api.NeedGoesOn, "incident":
		default:
			return 0
		}
	}
	return least
}

// overdueSince is from when on the first of an instance's tasks is overdue; where nobody says that, or at least not
// when, it is as late as can be.
func overdueSince(in *api.InstanceSummary) time.Time {
	for _, n := range in.Needs {
		if n.Since != nil {
			return *n.Since
		}
	}
	return time.Unix(1<<40, 0)
}

// filter is which instances are listed.
type filter struct {
	Words, State, Workflow string
	Page                   int
}

// The states that can be asked for beside those of instances.
const (
	stateOpen  = "open" // what runs or waits for an order; the default
	stateNeeds = "needs"
	stateAll   = "all"
)

var filterStates = []string{
	stateOpen, stateNeeds, string(workflow.InstanceRunning), string(workflow.InstanceBlocked),
	string(workflow.InstanceInterrupted),
	string(workflow.InstanceSucceeded), string(workflow.InstanceFailed), string(workflow.InstanceCancelled), stateAll,
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	f := filter{Words: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Workflow: q.Get("workflow"), Page: 1}
	if !slices.Contains(filterStates, f.State) {
		f.State = stateOpen
		if q.Has("all") { // as links of versions before this one say it
			f.State = stateAll
		}
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		f.Page = n
	}
	return f
}

// all reports whether instances that have ended are looked at, too.
func (f filter) all() bool {
	return !slices.Contains([]string{stateOpen, stateNeeds, string(workflow.InstanceRunning)}, f.State)
}

// url is where the page of the same filter with that number is.
func (f filter) url(page int) string {
	q := url.Values{}
	for k, v := range map[string]string{"q": f.Words, "workflow": f.Workflow} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.State != stateOpen {
		q.Set("state", f.State)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	if len(q) == 0 {
		return "/instances"
	}
	return "/instances?" + q.Encode()
}

// fewestOfID is how much of the beginning of an ID finds its instance: a house number is in nearly every ID somewhere.
const fewestOfID = 4

// takes reports whether an instance is one of those that are asked for. Each of the words must be in it somewhere, or
// begin its ID.
func (f filter) takes(in *api.InstanceSummary, words []string) bool {
	switch f.State {
	case stateAll:
	case stateOpen:
		if in.Quarantine == nil && !api.UnderWay(in.State, in.Needs) {
			return false
		}
	case stateNeeds:
		if !needsPerson(*in) {
			return false
		}
	default:
		if string(in.State) != f.State {
			return false
		}
	}
	if f.Workflow != "" && string(in.Workflow) != f.Workflow {
		return false
	}
	if len(words) == 0 {
		return true
	}
	text := folded(strings.Join(append([]string{string(in.Workflow), in.Label, in.Subject}, in.At...), " "))
	return !slices.ContainsFunc(words, func(w string) bool {
		return !strings.Contains(text, w) && !(len(w) >= fewestOfID && strings.HasPrefix(in.ID, w))
	})
}

// folded is the same for texts that differ in capitals and accents only, which nobody types on a phone.
func folded(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(text) // as nearly always
	}
	return strings.Map(func(r rune) rune {
		if '\u0300' <= r && r <= '\u036f' { // marks that other alphabets need stay
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
}

// instances answers: what runs, how far is it, with whom, and what of it needs a person?
func (p *Page) instances(ctx context.Context, r *http.Request) (view, error) {
	f := filterOf(r)
	list, err := p.node.Instances(ctx, f.all())
	if err != nil {
		return view{}, err
	}
	var found []*api.InstanceSummary
	names := map[string]bool{}
	told := false // of some, as this node takes no part
	words := strings.Fields(folded(f.Words))
	for i := range list {
		in := &list[i]
		names[string(in.Workflow)] = true
		if f.takes(in, words) {
			found, told = append(found, in), told || len(in.KnownBy) > 0
		}
	}
	slices.SortStableFunc(found, func(a, b *api.InstanceSummary) int {
		if place(a) == 0 && place(b) == 0 {
			return mostUrgent(a, b)
		}
		return place(a) - place(b)
	})
	pages := max((len(found)+perPage-1)/perPage, 1)
	f.Page = min(f.Page, pages)
	from := (f.Page - 1) * perPage
	v := struct {
		Filter              filter
		States              []string
		Workflows           []string
		Told, Filtered      bool
		List                []*api.InstanceSummary
		First, Last, Number int
		Back, On            string
	}{
		Filter: f, States: filterStates, Workflows: sorted(names), Told: told, Filtered: f.url(1) != "/instances",
		List: found[from:min(from+perPage, len(found))], First: from + 1, Last: min(from+perPage, len(found)),
		Number: len(found),
	}
	if f.Page > 1 {
		v.Back = f.url(f.Page - 1)
	}
	if f.Page < pages {
		v.On = f.url(f.Page + 1)
	}
	return view{template: "instances", title: "nav.instances", live: true, data: v}, nil
}

// place puts first what needs a person, then what runs, then what has ended.
func place(in *api.InstanceSummary) int {
	switch {
	case needsPerson(*in):
		return 0
	case in.Ended == nil:
		return 1
	}
	return 2
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
