package profile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// stored is what a user set; what is nil or zero is as configured.
type stored struct {
	Capabilities   *[]workflow.Capability         `cbor:"1,keyasint,omitempty"`
	Applications   []workflow.ApplicationName     `cbor:"2,keyasint,omitempty"` // beside the configured ones
	Suitability    map[string]membership.PerMille `cbor:"3,keyasint,omitempty"`
	Absence        membership.PerMille            `cbor:"4,keyasint,omitempty"`
	ConnectionTime time.Duration                  `cbor:"5,keyasint,omitempty"`
}

// Decodes returns an error if a stored profile cannot be read.
func Decodes(b []byte) error {
	var s stored
	return codec.Decode(b, &s)
}

// fill puts the profile into this node's own record.
func (s stored) fill(r *membership.Record, cfg configs.Config) {
	r.Capabilities = cfg.Capabilities
	if s.Capabilities != nil {
		r.Capabilities = *s.Capabilities
	}
	r.Applications = slices.AppendSeq(slices.Clone(s.Applications), maps.Keys(cfg.Applications))
	slices.Sort(r.Applications)
	r.Applications = slices.Compact(r.Applications)
	r.Databases = slices.Sorted(maps.Keys(cfg.Databases))
	r.Suitability = nil
	for _, name := range slices.Sorted(maps.Keys(s.Suitability)) {
		r.Suitability = append(r.Suitability, membership.Suitability{For: name, Of: s.Suitability[name]})
	}
	r.Absence = s.Absence
	r.ConnectionTime = cmp.Or(s.ConnectionTime, cfg.ConnectionTime)
}

// changed is s with a change, which it checks.
func (s stored) changed(c api.ProfileChange) (stored, error) {
	if c.Capabilities != nil {
		list, err := names[workflow.Capability]("capability", *c.Capabilities)
		if err != nil {
			return s, err
		}
		s.Capabilities = &list
	}
	if c.Applications != nil {
		list, err := names[workflow.ApplicationName]("application", *c.Applications)
		if err != nil {
			return s, err
		}
		s.Applications = list
	}
	if c.Availability != nil {
		v, err := perMille("availability", *c.Availability)
		if err != nil {
			return s, err
		}
		s.Absence = membership.Whole - v
	}
	if c.ConnectionTime != nil {
		d := time.Duration(*c.ConnectionTime)
		if d != 0 && (d < membership.MinConnectionTime || d > membership.MaxConnectionTime) {
			return s, api.Errorf(api.Invalid,
				"connection time %s: want %s to %s, or 0 for what is configured: "+
					"a partner gives three signs of life in that time, at least a second apart, so that one may be lost",
				workflow.FormatDuration(d), workflow.FormatDuration(membership.MinConnectionTime),
				workflow.FormatDuration(membership.MaxConnectionTime))
		}
		s.ConnectionTime = d
	}
	return s.suited(c.Suitability)
}

// suited is s with other suitabilities.
func (s stored) suited(change map[string]float64) (stored, error) {
	suits := maps.Clone(s.Suitability)
	if suits == nil {
		suits = map[string]membership.PerMille{}
	}
	for name, v := range change {
		if rule := workflow.NameRule(name); rule != "" {
			return s, api.Errorf(api.Invalid, "suitability for %q: want the name of a task, role or capability: %s",
				name, rule)
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

func names[T ~string](what string, texts []string) ([]T, error) {
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
	return membership.PerMille(v*float64(membership.Whole) + 0.5), nil
}
