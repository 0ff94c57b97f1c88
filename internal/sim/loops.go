package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file puts loops into random definitions whose tasks follow a graph.

// loops reports whether a plan's definition may have loops: every second of the later seeds of each kind.
func (p *Plan) loops() bool { return p.amends() && p.Seed%2 == 0 && !p.drives() }

// amends reports whether users amend more than what adds tasks, if there are users: in the later seeds of each kind.
func (p *Plan) amends() bool {
	from := uint64(994_000)
	for _, kind := range []struct{ first, from uint64 }{
		{Hostile, 1_164_000}, {Strained, 2_164_000}, {Claimed, 20_064_000}, {Equipped, 30_056_000}, {Linked, 40_056_000},
	} {
		if p.Seed >= kind.first {
			from = kind.from
		}
	}
	return p.Seed >= from && p.Seed < Driven
}

// mostTasks is how many tasks a definition has at most with the rounds of its loops, so that a run takes no longer
// than others.
const mostTasks = 32

var randomTask = regexp.MustCompile(`(?m)^  (t\d+): \{.*\}$`)

// laterRound is the name of a random task in a round after the first.
var laterRound = regexp.MustCompile(`^t\d+\.\d`)

// looped makes some of the tasks of a definition the last ones of loops, where that is allowed: of it alone or of what
// lies between it and one before, and of loops within loops.
func looped(r *rand.Rand, text string) string {
	names := randomTask.FindAllStringSubmatch(text, -1)
	for range 6 {
		last := r.IntN(len(names))
		repeat := fmt.Sprintf("times: %d", 2+r.IntN(2))
		if last > 0 && r.IntN(3) > 0 {
			repeat += ", from: " + names[r.IntN(last)][1]
		}
		if k := r.IntN(4); k > 0 && strings.Contains(text, "x: {type: integer}") {
			repeat += ", while: " + []string{"x < 6", "y == 3", "x == null or y > 4"}[k-1]
		}
		was := names[last][0]
		now := strings.Replace(text, was, strings.TrimSuffix(was, "}")+", repeat: {"+repeat+"}}", 1)
		def, err := workflow.Parse("looped", []byte(now))
		if err == nil && len(def.Tasks) <= mostTasks && !strings.Contains(was, "repeat: ") {
			text, names = now, randomTask.FindAllStringSubmatch(now, -1)
		}
	}
	return text
}
