package amendments

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about loops in patches. A patch names a loop by its last task, and says how often, from where and while
// what it is done again: it does not say which rounds that makes. Which tasks come and go by it, and which wait for
// others, follows from the edition that its author knew.
//
// Facts may name a round that another patch takes away again, or that was there at the start. So a round does not go:
// where no loop has it any more it is kept, as a task by itself that is left out.

// Meant is a patch with what it says of the rounds of loops, as its author knew the definition.
type Meant struct {
	Patch
	came, steered, dated []workflow.TaskName
	rounds               rounds // that are there by it
	// alone are conditions, constraints and loops that its author did not know, so that it adds them.
	alone map[Part]bool
}

// rounds are tasks that belong to the rounds of loops, and that nobody wrote, as they are kept when no loop has them
// any more.
type rounds map[workflow.TaskName]keptRound

type keptRound struct {
	workflow.Round
	keys map[string]json.RawMessage
	home workflow.PartitionName
	data map[workflow.DataName]map[string]json.RawMessage // that nobody gave, and that it sets
}

// notKept are the keys of a round that mean nothing once no loop has it.
var notKept = []string{"after", "when", "time-to-wait", "repeat"}

// roundsOf are the rounds of a definition that nobody wrote, with those that it keeps.
func roundsOf(d *workflow.Definition) rounds {
	kept := d.Kept().Tasks
	if len(d.Loops()) == 0 && len(kept) == 0 {
		return nil
	}
	all, out, homes := writtenOut(d), rounds{}, map[workflow.TaskName]workflow.PartitionName{}
	for _, p := range d.Partitions {
		for _, t := range p.Tasks {
			homes[t] = p.Name
		}
	}
	for _, t := range d.Tasks {
		at, is := d.Round(t.Name)
		if !is || at.Of == t.Name {
			continue
		}
		x := keptRound{Round: at, keys: maps.Clone(all[Part{OfTask, string(t.Name)}]), home: homes[t.Name]}
		for _, key := range notKept {
			delete(x.keys, key)
		}
		if !t.ContingencyOnly {
			x.keys["enabled"] = written(false)
		}
		for _, n := range t.Out {
			if d.OfRounds(n) {
				if x.data == nil {
					x.data = map[workflow.DataName]map[string]json.RawMessage{}
				}
				x.data[n] = all[Part{OfData, string(n)}]
			}
		}
		out[t.Name] = x
	}
	return out
}

// keep puts rounds into a definition in the making that has none of that name; bare: with as little as possible.
func (p parts) keep(some rounds, bareOnly bool) workflow.Kept {
	out := workflow.Kept{Tasks: map[workflow.TaskName]workflow.Round{}}
	named := map[string]bool{}
	for _, x := range some {
		if c := x.keys["contingency"]; c != nil {
			named[text(c)] = true
		}
	}
	for _, t := range slices.Sorted(maps.Keys(some)) {
		x := some[t]
		if x.home == "" && !named[string(t)] { // what it stands in for has another one
			continue
		}
		keys := maps.Clone(x.keys)
		if bareOnly {
			maps.DeleteFunc(keys, func(k string, _ json.RawMessage) bool { return !slices.Contains(bareRound, k) })
		}
		if c := keys["contingency"]; c != nil && p[Part{OfTask, text(c)}] == nil {
			if _, kept := some[workflow.TaskName(text(c))]; !kept {
				delete(keys, "contingency")
			}
		}
		p[Part{OfTask, string(t)}] = keys
		if home := (Part{OfPartition, string(x.home)}); x.home != "" && p[home] != nil {
			list := append(names(p[home]["tasks"]), string(t))
			slices.Sort(list)
			p[home] = maps.Clone(p[home])
			p[home]["tasks"] = written(list)
		}
		for n, decl := range x.data {
			if p[Part{OfData, string(n)}] == nil {
				p[Part{OfData, string(n)}] = decl
				out.Data = append(out.Data, n)
			}
		}
		out.Tasks[t] = x.Round
	}
	slices.Sort(out.Data)
	return out
}

// bareRound are the keys of a round that is kept on which it depends whether what was said of it counts.
var bareRound = append([]string{"enabled", "contingency"}, bare...)

// size is how much room rounds take at least: tasks, and bytes.
func (r rounds) size() (tasks, bytes int) {
	for t, x := range r {
		keys := maps.Clone(x.keys)
		maps.DeleteFunc(keys, func(k string, _ json.RawMessage) bool { return !slices.Contains(bareRound, k) })
		tasks, bytes = tasks+1, bytes+len(written(keys))+2*len(t)+len(`"":,"",`)
		for n, decl := range x.data {
			bytes += len(n) + len(written(decl)) + len(`"":,`)
		}
	}
	return tasks, bytes
}

// room is how many tasks, and how many bytes, one patch of a definition may add in rounds: so that there is room for
// what all patches add.
func room(def *workflow.Definition) (tasks, bytes int) {
	return max(0, MaxPatchedTasks-len(def.Tasks)) / MaxPatches, max(0, MaxPatched-len(def.WrittenOut())) / MaxPatches
}

// ManyRoundsError says that a patch adds more rounds than there is room for.
type ManyRoundsError struct {
	Loop string // that has most more rounds by it; empty: none has
	Step int    // how many rounds it may have by a patch; 0: it may not have more
	Why  string
}

func (e *ManyRoundsError) Error() string {
	if e.Step == 0 {
		return e.Why
	}
	return fmt.Sprintf("%s: times: %d of loop %s would fit", e.Why, e.Step, plain.Line(e.Loop))
}

// Finding is what is refused, with the step that fits.
func (e *ManyRoundsError) Finding() Finding {
	f := Finding{Part: Part{OfLoop, e.Loop}, Key: "times", Refused: true, Why: e.Why, Next: "have fewer rounds"}
	switch {
	case e.Loop == "":
		f.Part, f.Key = Part{Kind: OfWorkflow}, ""
	case e.Step > 0:
		f.Next = fmt.Sprintf("go in steps, first to times: %d", e.Step)
	}
	return f
}

// fewEnough says why a patch of a definition, made of one that its author knew, cannot add so many rounds; nil: it can.
func fewEnough(def, known *workflow.Definition, p Patch, more rounds) error {
	tasks, bytes := more.size()
	most, mostBytes := room(def)
	if tasks <= most && bytes <= mostBytes {
		return nil
	}
	e := &ManyRoundsError{
		Why: fmt.Sprintf("its rounds are %d tasks more, and one amendment may add %d of these", tasks, most),
	}
	if tasks <= most {
		e.Why = fmt.Sprintf("its rounds take %d bytes more, and one amendment may add %d of these", bytes, mostBytes)
	}
	longest := 0
	for _, x := range p {
		if x.Kind != OfLoop || x.Key != "times" {
			continue
		}
		was, is := 1, 0
		for _, l := range known.Loops() {
			if string(l.Last) == x.Name {
				was = l.Times
			}
		}
		_ = json.Unmarshal(x.Value, &is) // 0: it is written in another way, and there is no step to name
		if n := is - was; n > longest {
			// As rounds of one loop are alike, a share of them takes a share of the room.
			longest, e.Loop, e.Step = n, x.Name, was+min(n*most/max(tasks, 1), n*mostBytes/max(bytes, 1))
			if e.Step == was {
				e.Step = 0
			}
		}
	}
	return e
}

// meant is what a patch means that makes one edition of another.
func meant(known, made *workflow.Definition, p Patch) Meant {
	m := Meant{Patch: p, came: p.Adds(), steered: p.Steers(), dated: p.Dates()}
	has := partsOf(known)
	for _, x := range p {
		if comesAndGoes(x.Kind) && has[x.Part] == nil {
			if m.alone == nil {
				m.alone = map[Part]bool{}
			}
			m.alone[x.Part] = true
		}
	}
	if len(known.Loops()) == 0 && len(made.Loops()) == 0 {
		return m
	}
	old, looped := roundsOf(known), func(t workflow.TaskName) bool {
		_, before := known.Round(t)
		_, after := made.Round(t)
		return before || after
	}
	m.steered, m.dated = slices.DeleteFunc(m.steered, looped), slices.DeleteFunc(m.dated, looped)
	m.rounds = roundsOf(made)
	maps.DeleteFunc(m.rounds, func(t workflow.TaskName, _ keptRound) bool { _, there := old[t]; return there })
	for t, x := range m.rounds {
		if x.home != "" {
			m.came = append(m.came, t)
		}
	}
	was, is := writtenOut(known), writtenOut(made)
	for _, t := range known.TopoOrder() {
		at, round := (Part{OfTask, string(t)}), old[t]
		switch {
		case isKept(known, t): // what was done of it counts as that round
		case isKept(made, t):
			if round.Beside == "" {
				m.steered = append(m.steered, t)
			}
		case differ(was[at], is[at], rule) && !slices.Contains(m.steered, t): // or another end of a loop is waited for
			m.steered = append(m.steered, t)
		}
		if looped(t) && differ(was[at], is[at], []string{"deadline"}) {
			m.dated = append(m.dated, t)
		}
	}
	for _, list := range [][]workflow.TaskName{m.came, m.steered, m.dated} {
		slices.Sort(list)
	}
	return m
}

// stoodInFor says of a definition that has rounds that others stand in for what asks whether a loop goes on: facts may
// name those of before.
func (r rounds) stoodInFor(made *workflow.Definition) error {
	for _, t := range slices.Sorted(maps.Keys(r)) {
		x, now := r[t], made.Task(t)
		if x.Beside == "" || now == nil || isKept(made, t) {
			continue
		}
		was := ""
		if c := x.keys["contingency"]; c != nil {
			was = text(c)
		}
		if was != string(now.Contingency) {
			return fmt.Errorf("loop %s: %s", x.Loop, standsInWhy)
		}
	}
	return nil
}

const standsInWhy = "others would stand in for what asks whether it goes on, which this version cannot change"

func isKept(d *workflow.Definition, t workflow.TaskName) bool {
	_, is := d.Kept().Tasks[t]
	return is
}

func differ(was, is map[string]json.RawMessage, some []string) bool {
	return slices.ContainsFunc(some, func(k string) bool { return !bytes.Equal(was[k], is[k]) })
}

// Adds are the tasks that are there by a patch and have a place, by name.
func (m *Meant) Adds() []workflow.TaskName { return m.came }

// Steers are the tasks of which a patch sets what they wait for, or whether they are done at all, without adding them.
// Where one round of a task is over, others may be left out all the same.
func (m *Meant) Steers() []workflow.TaskName { return m.steered }

// Dates are the tasks that there are to which a patch gives another deadline, or none.
func (m *Meant) Dates() []workflow.TaskName { return m.dated }

// Said is what a patch says of a task that is there by it, and into which partition it goes. Rounds of one name are
// alike: what they do is what their task says.
func (m *Meant) Said(t workflow.TaskName) (what string, home workflow.PartitionName) {
	if x, is := m.rounds[t]; is {
		return fmt.Sprintf("round %s of %s %s, in %s", x.Round, x.Of, x.Beside, x.home), x.home
	}
	p, home := m.Adding(t)
	return p.Text(), home
}

// maxRoundsTold bounds how many rounds people are told of.
const maxRoundsTold = 6

// Lines tell people what a patch sets, and which rounds there are by it.
func (m *Meant) Lines() []string {
	out, more := m.Patch.Lines(), map[workflow.TaskName][]workflow.TaskName{}
	for _, t := range m.came {
		if x, is := m.rounds[t]; is && x.Beside == "" {
			more[x.Loop] = append(more[x.Loop], t)
		}
	}
	for _, loop := range slices.Sorted(maps.Keys(more)) {
		all, rest := more[loop], ""
		slices.SortFunc(all, func(a, b workflow.TaskName) int {
			return cmp.Or(slices.Compare(m.rounds[a].Numbers, m.rounds[b].Numbers), cmp.Compare(a, b))
		})
		if n := len(all) - maxRoundsTold; n > 0 {
			rest = fmt.Sprintf(" and %d more", n)
			all = all[:maxRoundsTold]
		}
		words := make([]string, len(all))
		for i, t := range all {
			words[i] = plain.Line(string(t))
		}
		part := Part{OfLoop, string(loop)}
		out = append(out, fmt.Sprintf("%s has more rounds: %s%s", part, strings.Join(words, ", "), rest))
	}
	return out
}
