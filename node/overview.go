package node

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
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// overview is what others reported to this node while it is the coordinator, of
// instances all over the mesh. It is kept in memory, and forgotten with the
// office: the next coordinator hears it again.
type overview struct {
	*contacts
	offices leads
	people  reporters
	index   own
	// another is called when another holds the office than before.
	another func()
	limit   int // reports of one partner; of all together overviewShare times as many

	served atomic.Pointer[chief] // who held the office when that was last looked at

	mu     sync.Mutex      // guards what follows
	office election.Office // during which this was reported
	all    map[workflow.InstanceID]map[workflow.PartnerID]reported
	of     map[workflow.PartnerID]int // reports of each
	size   int
}

// reported is a report, with when it came by this node's wall clock.
type reported struct {
	wire.Report
	at time.Time
}

// overviewShare is how many partners may report as much as one may.
const overviewShare = 4

// own are the instances that this node has itself.
type own interface {
	get(workflow.InstanceID) (summary, bool)
}

// reporters is what the overview asks of the partner list.
type reporters interface {
	Get(workflow.PartnerID) (membership.Partner, bool)
	name(workflow.PartnerID) string
	names([]workflow.PartnerID) []string
}

// leads says who holds the office.
type leads interface {
	Known() (election.Mandate, bool)
	Leads() (election.Mandate, bool)
}

func newOverview(c *contacts, l leads, p reporters, x own, another func()) *overview {
	o := &overview{contacts: c, offices: l, people: p, index: x, another: another, limit: c.config.Limits.Instances}
	o.served.Store(&chief{})
	o.clear(election.Office{})
	return o
}

// clear forgets everything, for another office. The caller holds o.mu, or is
// the only one that knows o.
func (o *overview) clear(office election.Office) {
	o.office, o.size = office, 0
	o.all, o.of = map[workflow.InstanceID]map[workflow.PartnerID]reported{}, map[workflow.PartnerID]int{}
}

func (o *overview) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clear(election.Office{})
}

// add takes a report in. changed tells that it says something new; full, that
// there is no room for it.
func (o *overview) add(office election.Office, from workflow.PartnerID, r reported) (changed, full bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if office != o.office {
		o.clear(office)
	}
	of := o.all[r.Instance]
	old, known := of[from]
	if !known && (o.of[from] >= o.limit || o.size >= overviewShare*o.limit) {
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

// account is what one partner reports of one instance.
type account struct {
	reported
	by workflow.PartnerID
}

// accounts are the reports of an instance, the best informed first.
func (o *overview) accounts(id workflow.InstanceID) []account {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accountsLocked(id)
}

func (o *overview) accountsLocked(id workflow.InstanceID) []account {
	var out []account
	for p, r := range o.all[id] {
		out = append(out, account{r, p})
	}
	slices.SortFunc(out, func(a, b account) int {
		return cmp.Or(cmp.Compare(b.knows(), a.knows()), b.at.Compare(a.at), cmp.Compare(a.by, b.by))
	})
	return out
}

// knows is how much a report knows: as many facts, or all.
func (r reported) knows() uint64 { return r.Facts - 1 }

// list is what is reported of all instances, in the order of their IDs.
func (o *overview) list(office election.Office) [][]account {
	o.mu.Lock()
	defer o.mu.Unlock()
	if office != o.office {
		return nil
	}
	var out [][]account
	for _, id := range slices.SortedFunc(maps.Keys(o.all), compareInstances) {
		out = append(out, o.accountsLocked(id))
	}
	return out
}

// find lists the instances whose IDs begin so.
func (o *overview) find(office election.Office, prefix string) []workflow.InstanceID {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []workflow.InstanceID
	if office != o.office {
		return nil
	}
	for id := range o.all {
		if strings.HasPrefix(hex.EncodeToString(id[:]), prefix) {
			out = append(out, id)
		}
	}
	return out
}

// Greet: what is reported is nobody else's affair.
func (o *overview) Greet(workflow.PartnerID, *wire.Message) {}

// Take takes in what a partner reports, if this node is the coordinator.
func (o *overview) Take(from workflow.PartnerID, w *wire.Message) {
	list := w.Reports
	if len(list) == 0 {
		return
	}
	m, leads := o.offices.Leads()
	if !leads {
		o.count("reports.unasked", uint64(len(list))) // the sender does not know yet
		return
	}
	now, left := o.clock.Now().Wall, 0
	for _, r := range list {
		changed, full := o.add(m.Office, from, reported{r, now})
		if changed {
			o.events.publish(api.Event{At: now, Kind: "instance", Instance: r.Instance.String(), Partner: o.people.name(from), Text: string(r.State)})
		}
		if full {
			left++
		}
	}
	if left > 0 {
		o.count("reports.left-out", uint64(left))
		o.overflowing(true)
	}
}

// overflowing notes as trouble that the overview is not whole.
func (o *overview) overflowing(full bool) {
	why := ""
	if full {
		why = fmt.Sprintf("the mesh has more instances than its list takes as the coordinator: limits.instances allows for %d of one partner and %d in all; others are left out",
			o.limit, overviewShare*o.limit)
	}
	o.troubles.note("overview", why)
}

// elsewhere adds to the list of instances what others reported to this node, if
// it is the coordinator.
func (o *overview) elsewhere(list []api.InstanceSummary, all bool) []api.InstanceSummary {
	m, leads := o.offices.Leads()
	if !leads {
		return list
	}
	for _, accounts := range o.list(m.Office) {
		best := accounts[0]
		if _, here := o.index.get(best.Instance); here || !all && best.State != workflow.InstanceRunning {
			continue
		}
		sum := api.InstanceSummary{
			ID: best.Instance.String(), Workflow: best.Workflow, Version: best.Version, State: best.State,
			Started: atMilli(best.Started), Ended: instant(best.Ended),
			Done: int(best.Done), Tasks: int(best.Tasks), At: o.people.names(best.At), AsOf: &best.at, Needs: reportedNeeds(best.Needs),
		}
		for _, a := range accounts {
			sum.KnownBy = append(sum.KnownBy, o.witness(a))
		}
		list = append(list, sum)
	}
	return list
}

// witness is a partner that reported something, and when.
func (o *overview) witness(a account) api.Witness {
	w := api.Witness{Name: o.people.name(a.by), State: "unknown", At: a.at}
	if p, ok := o.people.Get(a.by); ok {
		w.State = string(p.State)
	}
	return w
}

func (p *people) names(ids []workflow.PartnerID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = p.name(id)
	}
	return out
}
