package contingency

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has abort prevail in circles of data, too. There no order is right for all:
// a slot may have been answered before another whose failure makes its rule impossible.
//
//	a: {when: y > 4 or succeeded("t0"), out: [x]}
//	b: {when: x > 4 or succeeded("e"), out: [y]}
//
// When t0 fails with both of them, a can never begin without b; b can without a, while e
// is under way.

// maxChecks is how many slots of one verdict are looked at once more, each of which
// costs what the definition is long. A verdict on more that wait in circles of data may
// answer for some that it blocks.
const maxChecks = 32

// giveWay takes those answers back whose slots all the other answers block, in rule
// order, until there is none. What then is neither answered nor blocked, since a rule
// asked that something has not failed, is left for the next verdict.
func (o *overlay) giveWay(failures []Failure) []Response {
	checks := 0
	for again := true; again; {
		again = false
		for _, slot := range o.slots {
			f, failed := o.failed[slot]
			if _, answered := o.answers[slot]; !failed || !answered || f.Begun || !o.mayGiveWay(slot) {
				continue
			}
			if checks++; checks > maxChecks {
				return o.responses()
			}
			rest := slices.DeleteFunc(slices.Clone(failures), func(x Failure) bool {
				_, answered := o.answers[x.Slot]
				return x.Slot == slot || !answered
			})
			if without := o.given(rest); without.has(slot) {
				without.steps += o.steps
				o, failures, again = without, rest, true
			} else {
				o.steps += without.steps
			}
		}
	}
	return o.responses()
}

// given is the view in which exactly these failures are answered.
func (o *overlay) given(failures []Failure) *overlay {
	x := newOverlay(o.def, failures, o.View)
	x.circles, x.order = o.circles, o.order
	for _, f := range failures {
		x.answer(f)
	}
	x.readRules(x.order)
	x.blockBefore(len(x.order), len(x.order))
	return x
}

// mayGiveWay reports whether the other answers may block a slot: its rule is impossible,
// or would be at rest. Its own answer makes nothing possible that is impossible without.
func (o *overlay) mayGiveWay(slot workflow.TaskName) bool {
	r := o.rules[slot]
	return r.truth(asItIs) == workflow.Impossible || r.truth(atRest) == workflow.Impossible ||
		r.truth(asItIs) == workflow.Undecided && o.forData > 0
}
