package node

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// In orchestration the coordinator takes part in every instance that is started
// so while it holds the office: immediate reports go to it, and it releases the
// successors (choreo/route.go). It is never needed for progress.

// coordinator is the partner that holds the office, as far as this node knows; empty: nobody.
func (n *Node) coordinator() workflow.PartnerID {
	if n.office == nil {
		return ""
	}
	m, ok := n.Coordinator()
	if !ok {
		return ""
	}
	return m.Holder
}

// chief is the partner that held the office when that was last looked at, which
// is whenever something of elections happens.
func (n *Node) chief() chief { return *n.served.Load() }

// officeChanged has all instances worked out again when another holds the
// office than when it was last called.
func (n *Node) officeChanged() {
	var now chief
	if m, ok := n.Coordinator(); ok {
		now = chief{m.Holder, m.Office}
	}
	if now == n.chief() {
		return
	}
	n.served.Store(&now)
	if now.partner != n.member.ID() {
		n.overview.forget()
		n.overflowing(false)
	}
	for _, s := range n.shards {
		n.side(func() {
			n.post(s, event{apply: func(s *shard) error {
				s.each(func(_ workflow.InstanceID, h *held) { s.touch(h) })
				return nil
			}})
		})
	}
}

// coordination reads how an instance is to be coordinated, and puts the
// coordinator first in its succession. notes say what the user should know.
func (n *Node) coordination(def *workflow.Definition, asked string, succession []workflow.PartnerID) (workflow.Coordination, []workflow.PartnerID, []string, error) {
	kind := def.Coordination
	switch workflow.Coordination(asked) {
	case "":
	case workflow.Choreography, workflow.Orchestration:
		kind = workflow.Coordination(asked)
	default:
		return "", nil, nil, api.Errorf(api.Invalid, "--coordination %s: want choreography or orchestration", asked)
	}
	if kind != workflow.Orchestration {
		return workflow.Choreography, succession, nil, nil
	}
	c := n.coordinator()
	if c == "" {
		return kind, succession, []string{"no coordinator is known: the instance goes by choreography; elect one with: mutirao coordinator elect"}, nil
	}
	others := slices.DeleteFunc(slices.Clone(succession), func(p workflow.PartnerID) bool { return p == c })
	return kind, append([]workflow.PartnerID{c}, others...), []string{"orchestrated by " + n.people.label(c)}, nil
}
