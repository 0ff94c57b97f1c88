package worklists

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what this node remembers of instances in which it takes no part: who does. An instance does not
// cease to exist when nobody can be asked for it, nor does what a prefix means depend on who can be asked.

// takers are partners that take part in an instance, each with why it cannot be asked now.
type takers map[workflow.PartnerID]string

// outOfReach are the instances whose IDs begin so and in which partners take part that cannot be asked now, as whoever is
// here was told. silent were asked just now, and did not answer.
func (d *Desk) outOfReach(ref string, silent []workflow.PartnerID) map[workflow.InstanceID]takers {
	out := map[workflow.InstanceID]takers{}
	for id, all := range d.knownElsewhere(ref) {
		of := takers{}
		for p := range all {
			if why := d.whyNotAsked(p, slices.Contains(silent, p)); why != "" {
				of[p] = why
			}
		}
		if len(of) > 0 {
			out[id] = of
		}
	}
	return out
}

// knownElsewhere says of the instances whose IDs begin so who takes part, as partners said lately.
func (d *Desk) knownElsewhere(ref string) map[workflow.InstanceID]map[workflow.PartnerID]bool {
	out := map[workflow.InstanceID]map[workflow.PartnerID]bool{}
	prefix, now := lowered(ref), d.in.Clock.Now()
	note := func(id workflow.InstanceID, of ...workflow.PartnerID) {
		if prefix == "" || !strings.HasPrefix(id.String(), prefix) {
			return
		}
		if out[id] == nil {
			out[id] = map[workflow.PartnerID]bool{}
		}
		for _, p := range of {
			if p != d.in.Self {
				out[id][p] = true
			}
		}
	}
	here := d.in.People.Here()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, who := range here {
		for p, is := range d.stuck[who.ID] {
			for i := range is.list {
				id, err := workflow.ParseInstanceID(is.list[i].Shown.ID)
				if err == nil && now.Wall.Sub(is.wall) < shownFor {
					note(id, append(slices.Clone(is.list[i].With), p)...)
				}
			}
		}
		for id, f := range d.found {
			if f.who.ID == who.ID {
				note(id, f.t.At)
			}
		}
	}
	return out
}

// whyNotAsked says why a partner cannot be asked now; empty: it can, or is nobody who is known.
func (d *Desk) whyNotAsked(p workflow.PartnerID, silent bool) string {
	heard := d.in.Heard(p)
	switch a := d.in.Absent(p); {
	case silent:
		return "does not answer"
	case d.in.Peers.Up(p):
		return ""
	case d.in.Gone(p):
		return "gone for good"
	case heard.IsZero():
		return ""
	case a != nil:
		return "away as announced until about " + a.Until.UTC().Format(time.RFC3339)
	default:
		return "not heard of since " + heard.UTC().Format(time.RFC3339)
	}
}

// notReached refuses what is about an instance of which those who take part cannot be asked now.
func (d *Desk) notReached(id workflow.InstanceID, of takers) error {
	var each, back []string
	for p, why := range of {
		each = append(each, fmt.Sprintf("%s (%s)", d.in.Name(p), why))
		if !d.in.Gone(p) {
			back = append(back, d.in.Name(p))
		}
	}
	slices.Sort(each)
	slices.Sort(back)
	if d.away() {
		return api.Errorf(api.Refused, "this node takes no part in instance %s, and is disconnected on purpose from: %s", id,
			strings.Join(d.names(slices.Collect(maps.Keys(of))), ", ")).
			WithHint("mutirao worklist reconnect")
	}
	no := api.Errorf(api.Refused,
		"this node takes no part in instance %s, and nobody can be asked now that is known to: %s", id,
		strings.Join(each, ", "))
	if len(back) == 0 {
		return no.WithHint("look for it at other nodes: whether others take part is not known here")
	}
	return no.WithHint("mutirao partners shows when it is back; until then, do it at a node that takes part, such as %s",
		back[0])
}

// notOne refuses a prefix that begins the IDs of several instances: those that were found at partners, the one that this
// node hears of, and those out of reach. nil: it does not.
func notOne(ref string, heardOf workflow.InstanceID, found map[workflow.InstanceID]Target,
	away map[workflow.InstanceID]takers,
) error {
	all := map[workflow.InstanceID]bool{}
	for id := range found {
		all[id] = true
	}
	for id := range away {
		all[id] = true
	}
	if heardOf != everywhere {
		all[heardOf] = true
	}
	if len(all) < 2 {
		return nil
	}
	return beginsSeveral(ref, len(all))
}

// beginsSeveral says so as a node does that takes part in them.
func beginsSeveral(ref string, n int) error {
	return api.Errorf(api.Invalid, "%q begins the IDs of %d instances", lowered(ref), n).WithHint("give more of the ID")
}
