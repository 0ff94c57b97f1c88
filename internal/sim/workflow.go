package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Pace says how long the minutes and seconds of a random definition take.
type Pace struct {
	Minute, Second time.Duration
	// Rough has applications fail and hang by what the definition says, for
	// nodes whose runner does not do that by itself.
	Rough bool
	// Undo, if set, draws which tasks have a compensation.
	Undo *rand.Rand
	// People, if set, draws the roles of people's tasks, and by what mechanism the
	// work is distributed.
	People *rand.Rand
	// Claims, if set, draws more people's tasks, and which may be done offline.
	Claims *rand.Rand
	// situation, if set, has tasks of its own beside the random ones.
	situation *situation
}

// author writes a random definition that workflow.Parse accepts.
type author struct {
	r     *rand.Rand
	pace  Pace
	nodes int
	tasks []string // lines
	extra []string // lines of contingencies
	parts map[int][]string
	data  bool
}

// RandomWorkflow makes a definition, and says at which node each partition is.
// Every task has a time-out, so that there is a bound to what may take how long.
// Some contingencies need the capability Crane.
func RandomWorkflow(r *rand.Rand, nodes int, pace Pace) (string, map[string]int) {
	a := &author{r: r, pace: pace, nodes: nodes, parts: map[int][]string{}, data: r.IntN(3) == 0}
	for i := range 3 + r.IntN(7) {
		a.task(i)
	}
	var b strings.Builder
	b.WriteString("workflow: random\n")
	var data []string
	if a.data {
		data = append(data, "x: {type: integer}", "y: {type: integer, default: 3}")
	}
	if s := pace.situation; s != nil {
		a.tasks = append(a.tasks, s.tasks...)
		if s.data != "" {
			data = append(data, s.data)
		}
	}
	if len(data) > 0 {
		b.WriteString("data: {" + strings.Join(data, ", ") + "}\n")
	}
	b.WriteString(a.distribution())
	b.WriteString("tasks:\n" + strings.Join(append(a.tasks, a.extra...), "\n") + "\npartitions:\n")
	pins := map[string]int{}
	for k := range nodes {
		if len(a.parts[k]) == 0 {
			continue
		}
		name := fmt.Sprintf("p%d", k)
		pins[name] = k
		list := "[" + strings.Join(a.parts[k], ", ") + "]"
		if r.IntN(5) == 0 {
			list = fmt.Sprintf("{tasks: %s, timeout: %s}", list, a.minutes(20, 90))
		}
		fmt.Fprintf(&b, "  %s: %s\n", name, list)
	}
	if s := pace.situation; s != nil {
		for _, k := range slices.Sorted(maps.Keys(s.places)) {
			pins[fmt.Sprintf("q%d", k)] = k
			fmt.Fprintf(&b, "  q%d: [%s]\n", k, strings.Join(s.places[k], ", "))
		}
	}
	return b.String(), pins
}

func (a *author) minutes(lo, hi int) string {
	return workflow.FormatDuration(time.Duration(lo+a.r.IntN(hi-lo)) * a.pace.Minute)
}

func (a *author) task(i int) {
	r, name := a.r, fmt.Sprintf("t%d", i)
	var preds []string
	for j := range i {
		if r.IntN(3) == 0 || (j == i-1 && r.IntN(2) == 0) {
			preds = append(preds, fmt.Sprintf("t%d", j))
		}
	}
	keys := a.rule(preds)
	if len(preds) > 0 && r.IntN(6) == 0 {
		keys = append(keys, "time-to-wait: "+a.minutes(2, 30))
	}
	keys = append(keys, "timeout: "+a.minutes(5, 60))
	keys = append(keys, a.work()...)
	switch r.IntN(6) {
	case 0:
		keys = append(keys, "on-failure: release")
	case 1, 2:
		keys = append(keys, "on-failure: {contingency: "+a.contingency(fmt.Sprintf("x%d", i), 1)+"}")
		keys = append(keys, "reconcile: "+[]string{"keep-first", "keep-original", "keep-replacement"}[r.IntN(3)])
	}
	a.tasks = append(a.tasks, fmt.Sprintf("  %s: {%s}", name,
		strings.Join(append(keys, a.compensation(name)...), ", ")))
	a.place(name)
}

// compensation gives half of the tasks one: an application, or a task of its own.
func (a *author) compensation(name string) []string {
	u := a.pace.Undo
	if u == nil || u.IntN(2) == 0 {
		return nil
	}
	if u.IntN(2) == 0 {
		return []string{"compensate: {application: noop}"}
	}
	long := workflow.FormatDuration(time.Duration(1+u.IntN(60)) * a.pace.Minute / 60)
	a.extra = append(a.extra, fmt.Sprintf("  u%s: {application: sleep, with: {for: %s}, timeout: %s, retries: 1}", name,
		long, workflow.FormatDuration(5*a.pace.Minute)))
	return []string{"compensate: u" + name}
}

func (a *author) place(name string) {
	k := a.r.IntN(a.nodes)
	a.parts[k] = append(a.parts[k], name)
}

// work says what a task does.
func (a *author) work() []string {
	r := a.r
	var keys []string
	kind := r.IntN(4)
	if c := a.pace.Claims; c != nil && c.IntN(5) < 2 {
		kind = 0
	}
	switch kind {
	case 0:
		keys = append(append(keys, "type: manual"), a.role()...)
		keys = append(keys, a.offline()...)
		if a.data && r.IntN(2) == 0 {
			keys = append(keys, "out: [x]")
		}
		return keys
	case 1:
		keys = append(keys, a.sleep(1+r.IntN(300))...)
	case 2:
		if a.data {
			v := []string{"x", "y"}[r.IntN(2)]
			keys = append(keys, "application: set", fmt.Sprintf("with: {%s: '%d'}", v, r.IntN(10)), "out: ["+v+"]")
		}
	}
	if r.IntN(5) == 0 {
		keys = append(keys, fmt.Sprintf("retries: {times: %d, backoff: %s, jitter: 0.2}", 1+r.IntN(3),
			workflow.FormatDuration(time.Duration(1+r.IntN(60))*a.pace.Second)))
	}
	return keys
}

// role gives two thirds of people's tasks one.
func (a *author) role() []string {
	p := a.pace.People
	if p == nil {
		return nil
	}
	if i := p.IntN(3); i < len(Roles) {
		return []string{"role: " + string(Roles[i])}
	}
	return nil
}

// offline lets half of people's tasks that users claim be done out of reach.
func (a *author) offline() []string {
	if c := a.pace.Claims; c == nil || c.IntN(2) == 0 {
		return nil
	}
	return []string{"offline: true"}
}

// distribution has half of the definitions distributed by some mechanism.
func (a *author) distribution() string {
	p := a.pace.People
	if p == nil || p.IntN(2) == 0 {
		return ""
	}
	return "distribution: {mechanism: " + workflow.Mechanisms[p.IntN(len(workflow.Mechanisms))] + "}\n"
}

// sleep has a task do nothing for so many sixtieths of a minute; at a rough pace
// some fail, and some hang.
func (a *author) sleep(n int) []string {
	if a.pace.Rough {
		switch k := a.r.IntN(20); {
		case k < 2:
			return []string{"application: fail", "with: {reason: by chance}"}
		case k == 2:
			n *= 100
		}
	}
	return []string{
		"application: sleep", "with: {for: " + workflow.FormatDuration(time.Duration(n)*a.pace.Minute/60) + "}",
	}
}

// contingency writes a task that stands in, at times with one of its own, and
// gives its name. Some are placed in a partition, some need what only one node has.
func (a *author) contingency(name string, depth int) string {
	r := a.r
	keys := append(a.sleep(1+r.IntN(120)), "timeout: "+a.minutes(5, 30))
	if c := a.pace.Claims; c != nil && c.IntN(4) == 0 {
		keys = append(append([]string{"type: manual", keys[len(keys)-1]}, a.role()...), a.offline()...)
	}
	switch r.IntN(6) {
	case 0, 1, 2:
		if depth < 3 {
			keys = append(keys, "on-failure: {contingency: "+a.contingency(name+"x", depth+1)+"}")
		}
	case 3:
		keys = append(keys, "on-failure: release")
	}
	switch r.IntN(6) {
	case 0:
		a.place(name)
	case 1:
		keys = append(keys, "needs: ["+string(Crane)+"]")
	}
	keys = append(keys, a.compensation(name)...)
	a.extra = append(a.extra, fmt.Sprintf("  %s: {%s}", name, strings.Join(keys, ", ")))
	return name
}

// rule gives a task the keys that say when it runs.
func (a *author) rule(preds []string) []string {
	r := a.r
	var terms []string
	for _, p := range preds {
		terms = append(terms, fmt.Sprintf("%s(%q)",
			[]string{"succeeded", "succeeded", "succeeded", "failed", "running", "ready"}[r.IntN(6)], p))
	}
	about := ""
	if a.data && r.IntN(3) == 0 {
		about = fmt.Sprintf("%s > %d", []string{"x", "y"}[r.IntN(2)], r.IntN(8))
	}
	switch {
	case len(preds) == 0 && about == "":
		return nil
	case len(preds) == 0:
		return []string{"when: '" + about + "'"}
	case about != "" && r.IntN(2) == 0:
		return []string{"when: '" + about + []string{" and ", " or "}[r.IntN(2)] + terms[0] + "'"}
	case about != "":
		return []string{"when: '" + about + "'", "after: [" + strings.Join(preds, ", ") + "]"}
	case r.IntN(5) == 0:
		return []string{"when: '" + strings.Join(terms, []string{" or ", " and "}[r.IntN(2)]) + "'"}
	}
	return []string{"after: [" + strings.Join(preds, ", ") + "]"}
}
