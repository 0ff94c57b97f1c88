package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
)

// service is what a node can be asked (api.Service), by what it is about. Each part holds the
// topics that it asks, hands on what one of them answers, and says of an error what it means
// to whoever asked.
type service struct {
	statusService
	meshService
	profileService
	libraryService
	instanceService
	userService
	worklistService
	jobService
}

var _ api.Service = (*service)(nil)

// statusService answers how this node and its partners fare.
type statusService struct {
	contacts     *contacts
	people       *people
	certificates *certificates.Topic
	definitions  *library.Definitions
	retention    *retention
	departure    *departure
	absence      *absence
	filing       *filing.Desk
	index        *index.List
	life         *life
	losses       *losses
	parts        Parts
	started      time.Time
}

// Status says which node this is and how it fares.
func (s *statusService) Status(context.Context) (*api.Status, error) {
	leaf := s.certificates.Chain().Leaf()
	st := &api.Status{
		Name: leaf.Name, ID: s.contacts.member.ID(), Mesh: s.contacts.member.Mesh.Name, Version: s.parts.Version,
		Roles: texts(leaf.Roles),
		Since: s.started, Incarnation: s.life.incarnation().String(), Boot: s.life.bootCount(),
		Instances: s.index.Running(), Counters: s.contacts.counters.all(),
		Disconnected: s.absence.since(), Back: s.absence.until(),
		Leaving: s.departure.leaving.Load(), ForGood: s.departure.leaving.Load() && s.departure.forGood.Load(),
		Device: s.parts.device(),
	}
	if err := s.parts.mayLock(); err != nil {
		st.LocksNothing = err.Error()
	}
	if s.contacts.carrier != nil {
		st.Addresses, st.Traffic = s.contacts.carrier.Addrs(), s.contacts.carrier.Traffic()
		for k, v := range s.contacts.carrier.Refused() {
			st.Counters["mesh.refused."+k] = v
		}
	}
	st.Trouble = append(s.losses.damages(s.index.Quarantined()), s.contacts.troubles.list()...)
	if t := s.definitions.Trouble(); t != "" {
		st.Trouble = append(st.Trouble, t)
	}
	st.Trouble = append(st.Trouble, s.retention.lateOnes()...)
	return st, nil
}

// Partners lists the partners that are here.
func (s *statusService) Partners(context.Context) ([]api.Partner, error) {
	out := []api.Partner{}
	for _, p := range s.people.All() { // by the names that all else has for them, also where two have the same
		r := p.Record
		out = append(out, api.Partner{
			Name: s.people.name(r.Partner), ID: r.Partner, Roles: texts(r.Roles()), State: string(p.State), Since: since(p),
			Reason: string(p.Reason()), Until: until(p), Remark: s.people.remark(p), Addresses: append([]string{}, r.Addresses...),
			LastValidated: p.Validated.Time(), ConnectionTime: r.ConnectionTime.String(), Load: p.Load.Share(),
			FilesRate: s.filing.RateFrom(r.Partner), Self: r.Partner == s.contacts.member.ID(),
			Refused: s.contacts.refusals.List(r.Partner),
		})
	}
	slices.SortFunc(out, func(a, b api.Partner) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// since is when a partner came into its state; nil: not known.
func since(p membership.Partner) *time.Time {
	if p.Since == 0 {
		return nil
	}
	t := p.Since.Time()
	return &t
}

// until is about when a partner is back that is absent as it announced, or was to be; nil: it announced nothing.
func until(p membership.Partner) *time.Time {
	if p.Until == 0 || p.State != membership.Unreachable && p.State != membership.Expired {
		return nil
	}
	t := p.Until.Time()
	return &t
}

// Watch follows what happens.
func (s *statusService) Watch(ctx context.Context, fn func(api.Event) error) error {
	return s.contacts.events.watch(ctx, fn)
}
