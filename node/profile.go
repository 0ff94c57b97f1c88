package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// metaProfile is the key of what was set in the profile.
const metaProfile = "profile"

// absent is the absence of a partner that takes nothing on.
const absent membership.PerMille = 1000

// storedProfile is what a user set; what is nil or zero is as configured.
type storedProfile struct {
	Capabilities   *[]workflow.Capability         `cbor:"1,keyasint,omitempty"`
	Applications   []workflow.ApplicationName     `cbor:"2,keyasint,omitempty"` // beside the configured ones
	Suitability    map[string]membership.PerMille `cbor:"3,keyasint,omitempty"`
	Absence        membership.PerMille            `cbor:"4,keyasint,omitempty"`
	ConnectionTime time.Duration                  `cbor:"5,keyasint,omitempty"`
}

func (p *people) loadProfile() error {
	b, err := p.store.Get(metaKey(metaProfile))
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = decode(b, &p.profile)
	}
	if err != nil {
		return fmt.Errorf("the stored profile cannot be read: %w", err)
	}
	return nil
}

// fill puts the profile into this node's own record.
func (s storedProfile) fill(r *membership.Record, cfg configs.Config) {
	r.Capabilities = cfg.Capabilities
	if s.Capabilities != nil {
		r.Capabilities = *s.Capabilities
	}
	r.Applications = slices.AppendSeq(slices.Clone(s.Applications), maps.Keys(cfg.Applications))
	slices.Sort(r.Applications)
	r.Applications = slices.Compact(r.Applications)
	r.Suitability = nil
	for _, name := range slices.Sorted(maps.Keys(s.Suitability)) {
		r.Suitability = append(r.Suitability, membership.Suitability{For: name, Of: s.Suitability[name]})
	}
	r.Absence = s.Absence
	r.ConnectionTime = cmp.Or(s.ConnectionTime, cfg.ConnectionTime)
}

// connectionTime is how long others may go without hearing of this node.
func (p *people) connectionTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.profile.ConnectionTime, p.config.ConnectionTime)
}

// Profile shows what this partner says about itself.
func (n *Node) Profile(context.Context) (*api.Profile, error) {
	r := n.people.described()
	out := &api.Profile{
		Name: r.Name(), ID: r.Partner, Roles: texts(r.Roles()), Capabilities: texts(r.Capabilities), Applications: texts(r.Applications),
		Suitability: map[string]float64{}, Availability: (absent - r.Absence).Share(), ConnectionTime: r.ConnectionTime.String(),
		Learned: []api.Learned{},
	}
	for _, s := range r.Suitability {
		out.Suitability[s.For] = s.Of.Share()
	}
	for _, about := range n.instances.learned.lessons() {
		if all, _, _ := n.instances.learned.of(about, 0); about.Partner == out.ID {
			out.Learned = append(out.Learned, api.Learned{Task: about.String(), Factor: math.Round(all.Factor()*100) / 100, From: all.String()})
		}
	}
	return out, nil
}

// described is a record with what this node says of itself.
func (p *people) described() membership.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := membership.Record{Partner: p.member.ID(), Chain: p.wallet.Chain()}
	p.profile.fill(&r, p.config)
	return r
}

// SetProfile changes what this partner says about itself, durably, and
// publishes it.
func (n *Node) SetProfile(ctx context.Context, c api.ProfileChange) (*api.Profile, error) {
	if err := n.people.setProfile(c); err != nil {
		return nil, err
	}
	if err := n.roster.announce(); err != nil {
		return nil, err
	}
	n.nudge()
	n.instances.reconsider(n.member.ID()) // what waits here may be for this node now
	return n.Profile(ctx)
}

// setProfile checks, stores and takes over a change.
func (p *people) setProfile(c api.ProfileChange) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.profile.changed(c)
	if err != nil {
		return err
	}
	r := p.own
	s.fill(&r, p.config)
	if err := r.Sign(p.member.Key).Verify(); err != nil {
		return api.Errorf(api.Invalid, "%v", err)
	}
	if err := p.store.CommitWait([]kv.Write{{Key: metaKey(metaProfile), Value: encode(s)}}); err != nil {
		return err
	}
	p.profile = s
	return nil
}

// changed is s with a change, which it checks.
func (s storedProfile) changed(c api.ProfileChange) (storedProfile, error) {
	if c.Capabilities != nil {
		names, err := profileNames[workflow.Capability]("capability", *c.Capabilities)
		if err != nil {
			return s, err
		}
		s.Capabilities = &names
	}
	if c.Applications != nil {
		names, err := profileNames[workflow.ApplicationName]("application", *c.Applications)
		if err != nil {
			return s, err
		}
		s.Applications = names
	}
	if c.Availability != nil {
		v, err := perMille("availability", *c.Availability)
		if err != nil {
			return s, err
		}
		s.Absence = absent - v
	}
	if c.ConnectionTime != nil {
		if d := *c.ConnectionTime; d != 0 && (d < membership.MinConnectionTime || d > membership.MaxConnectionTime) {
			return s, api.Errorf(api.Invalid, "connection time %s: want %s to %s, or 0 for what is configured", d, membership.MinConnectionTime, membership.MaxConnectionTime)
		}
		s.ConnectionTime = *c.ConnectionTime
	}
	return s.suited(c.Suitability)
}

// suited is s with other suitabilities.
func (s storedProfile) suited(change map[string]float64) (storedProfile, error) {
	suits := maps.Clone(s.Suitability)
	if suits == nil {
		suits = map[string]membership.PerMille{}
	}
	for name, v := range change {
		if rule := workflow.NameRule(name); rule != "" {
			return s, api.Errorf(api.Invalid, "suitability for %q: want the name of a task, role or capability: %s", name, rule)
		}
		if v < 0 {
			delete(suits, name)
			continue
		}
		of, err := perMille("suitability for "+name, v)
		if err != nil {
			return s, err
		}
		suits[name] = of
	}
	s.Suitability = suits
	return s, nil
}

func profileNames[T ~string](what string, texts []string) ([]T, error) {
	out := []T{}
	for _, t := range texts {
		if rule := workflow.NameRule(t); rule != "" {
			return nil, api.Errorf(api.Invalid, "%s %q: want %s", what, t, rule)
		}
		out = append(out, T(t))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func perMille(what string, v float64) (membership.PerMille, error) {
	if !(v >= 0 && v <= 1) {
		return 0, api.Errorf(api.Invalid, "%s %v: want 0 to 1", what, v)
	}
	return membership.PerMille(v*1000 + 0.5), nil
}

// Resources searches the catalogue, which is made of all partners' records.
func (n *Node) Resources(_ context.Context, query string) ([]api.Resource, error) {
	words := strings.Fields(strings.ToLower(query))
	out := []api.Resource{}
	for _, r := range append(catalogue(n.people.all(), n.people.label, n.clock.Now().Wall.UnixMilli()), n.partners.experience()...) {
		holders := slices.DeleteFunc(slices.Clone(r.Holders), func(h api.Holder) bool { return !matches(words, r, h) })
		if len(holders) > 0 {
			r.Holders = holders
			out = append(out, r)
		}
	}
	return out, nil
}

// experience lists what was learned of partners that are not gone, by task.
func (ps *partners) experience() []api.Resource {
	var out []api.Resource
	for _, about := range ps.learned.lessons() {
		p, ok := ps.get(about.Partner)
		if !ok || p.State.Gone() {
			continue
		}
		if len(out) == 0 || out[len(out)-1].Name != about.String() {
			out = append(out, api.Resource{Kind: "experience", Name: about.String()})
		}
		all, _, _ := ps.learned.of(about, 0)
		h := holder(p)
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
		r.Holders = append(r.Holders, holder(p))
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
		for _, x := range p.Record.DataSets {
			if x.Until != 0 && now >= x.Until {
				continue
			}
			r := add(p, resourceKey{Kind: "data", Name: x.Name, Hash: hex.EncodeToString(x.Hash[:])}, x.Size)
			h := &r.Holders[len(r.Holders)-1]
			h.ValidUntil, h.Readers = moment(x.Until), x.Readers
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
func holder(p membership.Partner) api.Holder {
	return api.Holder{
		Name: p.Record.Name(), ID: p.Record.Partner, State: string(p.State),
		Spare: (absent - min(p.Load, absent)).Share() * (absent - p.Record.Absence).Share(),
	}
}

// announced are the applications that a user said this node runs, beside the configured ones.
func (p *people) announced() []workflow.ApplicationName {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.profile.Applications)
}
