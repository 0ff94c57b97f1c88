package node

import (
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file says what of the language needs behaviour that this version does not have.

// alive are the parts of the language that need behaviour and have it here.
// What is not in it is refused at start, never ignored.
var alive = map[string]bool{
	"coordination: orchestration": true,
	"timeout":                     true, "time-to-wait": true, "reconcile": true, "on-failure: release": true,
	"on-failure: contingency": true, "on-failure: block": true,
	"type: manual": true, "type: semi-automatic": true, "type: workflow": true, "uses": true,
	"needs": true, "retries": true, "compensate": true, "responsible": true, "administrators": true, "role": true,
	"creator-role": true,
	"produces":     true, "distribution: mechanism": true, "distribution: dispatching": true,
	"distribution: compensate-violations": true, "distribution: learning": true, "constraints: violated": true,
	"suitability": true, "urgency": true, "duration": true, "offline": true,
	"data: file": true, "data: query": true, "deadline": true, "warnings": true, "transfer": true, "priority": true,
	"initial": true, "constraints: when": true, "final": true,
	"enabled": true, "distribution: notify": true, "distribution: patience": true,
	"distribution: relax": true, "distribution: urgency-growth": true, "resources": true, "holds": true,
}

// driven are those that a definition may have besides that is driven by its data.
var driven = map[string]bool{
	"repeat": true, "on-conflict": true, workflow.FeatureAge: true,
}

// NotYet are the parts of the language that a definition uses and that nodes of
// this version cannot do, in the order of its text: they refuse to start it.
func NotYet(def *workflow.Definition) []workflow.FeatureUse {
	return slices.DeleteFunc(workflow.Features(def), func(f workflow.FeatureUse) bool {
		return alive[f.Feature] || def.Flow() != nil && driven[f.Feature]
	})
}

// WhyNotYet is what about its use keeps nodes of this version from doing a part of the language; empty: all uses do.
func WhyNotYet(def *workflow.Definition, f workflow.FeatureUse) string {
	if f.Feature != "repeat" {
		return ""
	}
	return def.FlowObstacle()
}

// notYet refuses what this node cannot do yet.
func (k *desk) notYet(def *workflow.Definition, r api.StartRequest) error {
	var missing []string
	for _, f := range NotYet(def) {
		what := f.Feature
		if why := WhyNotYet(def, f); why != "" {
			what += ": " + why
		} else if f.Task != "" {
			what += " (task " + string(f.Task) + ")"
		}
		missing = append(missing, what)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	return api.Errorf(api.Refused, "workflow %s uses what this version cannot do yet: %s", def.Name,
		strings.Join(missing, ", ")).
		WithHint("leave it out, or wait for the version that has it; nothing of a definition is ever ignored")
}
