// Package overview is what a coordinator hears of instances all over the mesh, in which it
// takes no part: short reports by those who do, and who it is that holds the office.
//
// Promises: it is kept in memory, and forgotten with the office: the next coordinator
// hears it again, and nothing depends on it. One partner fills a share of the room. A
// [Topic] is asked by many goroutines at once; while it holds its lock it calls nobody.
//
// What it needs of the rest of a node it names in small interfaces; nothing but the node
// puts it together.
//
// It imports membership, membership/election, membership/moment, node/api, node/wire
// and workflow; node imports it.
package overview

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Offices say who coordinates: Known is the highest mandate that is known, and Leads that
// of this node, if it holds the office.
type Offices interface {
	Known() (election.Mandate, bool)
	Leads() (election.Mandate, bool)
}

// Members is the partner list. Name is what people call a partner, Names what they call
// each of several.
type Members interface {
	Get(p workflow.PartnerID) (membership.Partner, bool)
	Name(p workflow.PartnerID) string
	Names(ids []workflow.PartnerID) []string
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Self    workflow.PartnerID
	Clock   Clock
	Offices Offices
	Members Members
	// Limit is how many reports of one partner are kept; of all together a few times as many.
	Limit int
	// Here reports whether this node has an instance itself.
	Here func(workflow.InstanceID) bool
	// Labels are what people call a workflow and tasks of it, as far as its definition is here: reports have no labels.
	Labels func(workflow.Hash, []workflow.TaskName) (label string, tasks map[string]string)
	// Another is called when another holds the office than before.
	Another func()
	// Count counts what people may want to know, Trouble notes what is wrong and lasts
	// (empty: nothing any more), and Publish tells people what happened.
	Count   func(what string, by uint64)
	Trouble func(what, why string)
	Publish func(api.Event)
}

// Topic is what others reported to this node while it is the coordinator, of instances
// all over the mesh, and who the coordinator is.
type Topic struct {
	in     Surroundings
	served atomic.Pointer[Chief] // who held the office when that was last looked at

	mu     sync.Mutex      // guards what follows
	office election.Office // during which this was reported
	all    map[workflow.InstanceID]map[workflow.PartnerID]reported
	of     map[workflow.PartnerID]int // reports of each
	size   int
}

// Chief is the partner that holds the office of coordinator, as far as this node knows;
// the zero value: nobody.
type Chief struct {
	Partner workflow.PartnerID
	Office  election.Office
}

// reported is a report, with when it came by this node's wall clock.
type reported struct {
	wire.Report
	Came time.Time
}

// Account is what one partner reports of one instance.
type Account struct {
	reported
	By workflow.PartnerID
}

// share is how many partners may report as much as one may.
const share = 4

// New knows of nothing.
func New(in Surroundings) *Topic {
	o := &Topic{in: in}
	o.served.Store(&Chief{})
	o.clear(election.Office{})
	return o
}

// clear forgets everything, for another office. The caller holds o.mu, or is
// the only one that knows o.
func (o *Topic) clear(office election.Office) {
	o.office, o.size = office, 0
	o.all, o.of = map[workflow.InstanceID]map[workflow.PartnerID]reported{}, map[workflow.PartnerID]int{}
}

func (o *Topic) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clear(election.Office{})
}

// add takes a report in. changed tells that it says something new; full, that
// there is no room for it.
func (o *Topic) add(office election.Office, from workflow.PartnerID, r reported) (changed, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if office != o.office {
		o.clear(office)
	}
	of := o.all[r.Instance]
	old, known := of[from]
	if !known && (o.of[from] >= o.in.Limit || o.size >= share*o.in.Limit) {
		return false, true
	}
	if !known {
		o.of[from]++
		o.size++
	}
	if of == nil {
		of = map[workflow.PartnerID]reported{}
		o.all[r.Instance] = of
	}
	if len(r.Participants) == 0 { // settled: what was said of it before holds
		r.Participants = old.Participants
	}
	of[from] = r
	return old.State != r.State || old.Facts != r.Facts || old.Done != r.Done, false
}

// Accounts are the reports of an instance, the best informed first.
func (o *Topic) Accounts(id workflow.InstanceID) []Account {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accountsLocked(id)
}

func (o *Topic) accountsLocked(id workflow.InstanceID) []Account {
	var out []Account
	for p, r := range o.all[id] {
		out = append(out, Account{r, p})
	}
	slices.SortFunc(out, func(a, b Account) int {
		return cmp.Or(cmp.Compare(b.knows(), a.knows()), b.Came.Compare(a.Came), cmp.Compare(a.By, b.By))
	})
	return out
}

// knows is how much a report knows: as many facts, or all.
func (r reported) knows() uint64 { return r.Facts - 1 }

// list is what is reported of all instances, in the order of their IDs.
func (o *Topic) list(office election.Office) [][]Account {
	o.mu.Lock()
	defer o.mu.Unlock()
	if office != o.office {
		return nil
	}
	var out [][]Account
	for _, id := range slices.SortedFunc(maps.Keys(o.all), workflow.InstanceID.Compare) {
		out = append(out, o.accountsLocked(id))
	}
	return out
}

// Find lists the instances whose IDs begin so, if this node is the coordinator.
func (o *Topic) Find(prefix string) []workflow.InstanceID {
	m, leads := o.in.Offices.Leads()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !leads || m.Office != o.office {
		return nil
	}
	var out []workflow.InstanceID
	for id := range o.all {
		if strings.HasPrefix(hex.EncodeToString(id[:]), prefix) {
			out = append(out, id)
		}
	}
	return out
}

// Chief is the partner that held the office when that was last looked at, which
// is whenever something of elections happens.
func (o *Topic) Chief() Chief { return *o.served.Load() }

// Tick looks whether another holds the office than when it was last called.
func (o *Topic) Tick(moment.Now) time.Duration {
	var now Chief
	if m, ok := o.in.Offices.Known(); ok {
		now = Chief{m.Holder, m.Office}
	}
	if now == o.Chief() {
		return moment.Never
	}
	o.served.Store(&now)
	if now.Partner != o.in.Self {
		o.forget()
		o.overflowing(false)
	}
	o.in.Another()
	return moment.Never
}

// Greet: what is reported is nobody else's affair.
func (o *Topic) Greet(workflow.PartnerID, *wire.Message) {}

// Take takes in what a partner reports, if this node is the coordinator.
func (o *Topic) Take(from workflow.PartnerID, w *wire.Message) {
	list := w.Reports
	if len(list) == 0 {
		return
	}
	m, leads := o.in.Offices.Leads()
	if !leads {
		o.in.Count("reports.unasked", uint64(len(list))) // the sender does not know yet
		return
	}
	now, left := o.in.Clock.Now().Wall, 0
	for _, r := range list {
		changed, full := o.add(m.Office, from, reported{r, now})
		if changed {
			o.in.Publish(api.Event{
				At: now, Kind: "instance", Instance: r.Instance.String(), Partner: o.in.Members.Name(from),
				Text: string(r.State),
			})
		}
		if full {
			left++
		}
	}
	if left > 0 {
		o.in.Count("reports.left-out", uint64(left))
		o.overflowing(true)
	}
}

// overflowing notes as trouble that the overview is not whole.
func (o *Topic) overflowing(full bool) {
	why := ""
	if full {
		why = fmt.Sprintf("the mesh has more instances than its list takes as the coordinator: "+
			"limits.instances allows for %d of one partner and %d in all; others are left out",
			o.in.Limit, share*o.in.Limit)
	}
	o.in.Trouble("overview", why)
}

// Elsewhere lists what others reported to this node of instances that it does not have itself, if it is the
// coordinator: newest first, at most limit of those that come after the one with that start (ms) and ID (start
// and ID zero: from the first on). all: those too in which nothing is to happen any more.
func (o *Topic) Elsewhere(all bool, start int64, id workflow.InstanceID, limit int) []api.InstanceSummary {
	m, leads := o.in.Offices.Leads()
	if !leads {
		return nil
	}
	first := start == 0 && id == workflow.InstanceID{}
	var found [][]Account
	for _, accounts := range o.list(m.Office) {
		best := accounts[0]
		after := cmp.Or(cmp.Compare(start, best.Started), best.Instance.Compare(id))
		open := all || api.UnderWay(best.State, reportedNeeds(best.Needs))
		if open && (first || after > 0) && !o.in.Here(best.Instance) {
			found = append(found, accounts)
		}
	}
	slices.SortFunc(found, func(a, b []Account) int {
		return cmp.Or(cmp.Compare(b[0].Started, a[0].Started), a[0].Instance.Compare(b[0].Instance))
	})
	var out []api.InstanceSummary
	for _, accounts := range found[:min(len(found), limit)] {
		best := accounts[0]
		sum := api.InstanceSummary{
			ID: best.Instance.String(), Workflow: best.Workflow, Version: best.Version, State: best.State,
			Started: wire.AtMilli(best.Started), Ended: wire.Instant(best.Ended),
			Done: int(best.Done), Tasks: int(best.Tasks), Needs: reportedNeeds(best.Needs),
			At: o.in.Members.Names(best.At), AsOf: &best.Came,
		}
		o.label(&sum, best.Definition)
		for _, a := range accounts {
			sum.KnownBy = append(sum.KnownBy, o.Witness(a))
		}
		out = append(out, sum)
	}
	return out
}

// label adds what people call the workflow and its tasks.
func (o *Topic) label(sum *api.InstanceSummary, definition workflow.Hash) {
	sum.Label, _ = o.in.Labels(definition, nil)
	for i := range sum.Needs {
		_, sum.Needs[i].TaskLabels = o.in.Labels(definition, sum.Needs[i].Tasks)
	}
}

// Witness is a partner that reported something, and when.
func (o *Topic) Witness(a Account) api.Witness { return o.WitnessAt(a.By, a.Came) }

// WitnessNow is a partner that says something now.
func (o *Topic) WitnessNow(p workflow.PartnerID) api.Witness {
	return o.WitnessAt(p, o.in.Clock.Now().Wall)
}

// WitnessAt is a partner that said something at some time.
func (o *Topic) WitnessAt(by workflow.PartnerID, at time.Time) api.Witness {
	w := api.Witness{Name: o.in.Members.Name(by), State: "unknown", At: at}
	if p, ok := o.in.Members.Get(by); ok {
		w.State = string(p.State)
	}
	return w
}

// reportedNeeds are why an instance needs people, as it was reported.
func reportedNeeds(needs []wire.Need) []api.Need {
	out := []api.Need{}
	for _, x := range needs {
		out = append(out, api.Need{
			Kind: x.Kind, Number: int(x.Number), Tasks: append([]workflow.TaskName{}, x.Tasks...),
			Presumed: int(x.Presumed),
		})
	}
	return out
}
