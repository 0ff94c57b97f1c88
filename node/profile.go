package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/profile"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// profileService is about what partners say of themselves, and what was learned of them.
type profileService struct {
	tools     *tools
	own       *profile.Own
	people    *people
	learned   *assignment.Learned
	instances *instances
	jobs      interface{ Review() }
	announce  func() error
	explain   func(error) error
}

// Profile shows what this partner says about itself.
func (s *profileService) Profile(context.Context) (*api.Profile, error) {
	r := s.own.Described()
	out := &api.Profile{
		Name: r.Name(), ID: r.Partner, Roles: texts(r.Roles()), Capabilities: texts(r.Capabilities),
		Applications: texts(r.Applications), Databases: texts(r.Databases),
		Suitability: map[string]float64{}, Availability: (membership.Whole - r.Absence).Share(),
		ConnectionTime: r.ConnectionTime.String(),
		Learned:        []api.Learned{},
	}
	for _, x := range r.Suitability {
		out.Suitability[x.For] = x.Of.Share()
	}
	for _, about := range s.learned.About() {
		if all, _, _ := s.learned.Of(about, 0); about.Partner == out.ID {
			out.Learned = append(out.Learned,
				api.Learned{Task: about.String(), Factor: math.Round(all.Factor()*100) / 100, From: all.String()})
		}
	}
	return out, nil
}

// SetProfile changes what this partner says about itself, durably, and
// publishes it.
func (s *profileService) SetProfile(ctx context.Context, c api.ProfileChange) (*api.Profile, error) {
	if err := s.own.Set(c); err != nil {
		return nil, s.explain(err)
	}
	if err := s.announce(); err != nil {
		return nil, s.explain(err)
	}
	s.jobs.Review() // what waits for a worker may wait for what this node has no more
	s.tools.nudge()
	s.instances.reconsider(s.tools.member.ID()) // what waits here may be for this node now
	out, err := s.Profile(ctx)
	return out, s.explain(err)
}

// Resources searches the catalogue, which is made of all partners' records.
func (s *profileService) Resources(_ context.Context, query string) ([]api.Resource, error) {
	words := strings.Fields(strings.ToLower(query))
	out := []api.Resource{}
	for _, r := range append(catalogue(s.people.All(), s.people.label, s.tools.clock.Now().Wall.UnixMilli()),
		experience(s.learned, s.people)...) {
		holders := slices.DeleteFunc(slices.Clone(r.Holders), func(h api.Holder) bool { return !matches(words, r, h) })
		if len(holders) > 0 {
			r.Holders = holders
			out = append(out, r)
		}
	}
	return out, nil
}

// experience lists what was learned of partners that are not gone, by task.
func experience(learned *assignment.Learned, ps *people) []api.Resource {
	var out []api.Resource
	for _, about := range learned.About() {
		p, ok := ps.Get(about.Partner)
		if !ok || p.State.Gone() {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Name != about.String() {
			out = append(out, api.Resource{Kind: "experience", Name: about.String()})
		}
		all, _, _ := learned.Of(about, 0)
		h := holder(p, ps.label)
		h.Note = all.String()
		last := &out[len(out)-1]
		last.Holders = append(last.Holders, h)
	}
	return out
}

// resourceKey tells resources apart.
type resourceKey struct{ Kind, Name, Hash string }

// matches reports whether all words are found in a resource and one holder.
func matches(words []string, r api.Resource, h api.Holder) bool {
	text := strings.ToLower(r.Kind + " " + r.Name + " " + h.Name)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// catalogue lists what partners that are not gone have, by kind and name, at a moment
// in ms since 1970. label is the name of a partner.
func catalogue(partners []membership.Partner, label func(workflow.PartnerID) string, now int64) []api.Resource {
	found := map[resourceKey]*api.Resource{}
	add := func(p membership.Partner, k resourceKey, size uint64) *api.Resource {
		r := found[k]
		if r == nil {
			r = &api.Resource{Kind: k.Kind, Name: k.Name, Hash: k.Hash, Size: size}
			found[k] = r
		}
		r.Holders = append(r.Holders, holder(p, label))
		return r
	}
	for _, p := range partners {
		if p.State.Gone() {
			continue
		}
		add(p, resourceKey{Kind: "capacity", Name: "spare"}, 0)
		for _, x := range p.Record.Roles() {
			add(p, resourceKey{Kind: "role", Name: string(x)}, 0)
		}
		for _, x := range p.Record.Capabilities {
			add(p, resourceKey{Kind: "capability", Name: string(x)}, 0)
		}
		for _, x := range p.Record.Applications {
			add(p, resourceKey{Kind: "application", Name: string(x)}, 0)
		}
		for _, x := range p.Record.Databases {
			add(p, resourceKey{Kind: "database", Name: string(x)}, 0)
		}
		for _, x := range p.Record.DataSets {
			if x.Until != 0 && now >= x.Until {
				continue
			}
			r := add(p, resourceKey{Kind: "data", Name: x.Name, Hash: hex.EncodeToString(x.Hash[:])}, x.Size)
			h := &r.Holders[len(r.Holders)-1]
			h.ValidUntil, h.Readers = datasets.Moment(x.Until), x.Readers
			if x.Author != "" {
				h.Author = label(x.Author)
			}
		}
	}
	return inOrder(found)
}

func inOrder(found map[resourceKey]*api.Resource) []api.Resource {
	keys := slices.SortedFunc(maps.Keys(found), func(a, b resourceKey) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hash, b.Hash))
	})
	out := make([]api.Resource, 0, len(keys))
	for _, k := range keys {
		r := *found[k]
		slices.SortFunc(r.Holders, func(a, b api.Holder) int {
			return cmp.Or(cmp.Compare(b.Spare, a.Spare), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Author, b.Author))
		})
		out = append(out, r)
	}
	return out
}

// holder shows a partner in the catalogue. What it has to spare is what its
// load leaves of its availability.
func holder(p membership.Partner, label func(workflow.PartnerID) string) api.Holder {
	return api.Holder{
		Name: label(p.Record.Partner), ID: p.Record.Partner, State: string(p.State),
		Spare: (membership.Whole - min(p.Load, membership.Whole)).Share() * (membership.Whole - p.Record.Absence).
			Share(),
	}
}
