package amendments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Patch is what an amendment changes of the definition by which an instance runs: keys of its parts, in
// the order of Between, and parts that it adds. It says nothing of parts that it leaves as they are, so that
// two patches go together, whoever made them of which edition, unless they set one key or add one part.
//
// What is added has all its keys in the patch, and one that no definition has: of a task addTo, the partition into
// which it goes, of data, applications, resources and partitions add. Conditions and constraints need none: they are
// there as long as they have a key. What a task waits for is one thing: after and when are both in a patch that sets
// either. So is what its failure does: contingency is only in a patch with on-failure, and one that sets on-failure
// alone takes a contingency away.
type Patch []Setting

// Setting is a key of a part with its new value, as the canonical form has it.
type Setting struct {
	Part
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"` // left out: it is not written any more
}

// MaxPatch bounds a patch as it is written down, in bytes, MaxAdded the tasks that it adds, and MaxPatches how many
// of them one instance takes. A definition has room for all of them (MaxPatched, MaxPatchedTasks), so that which of
// them came together nowhere matters.
const (
	MaxPatch        = 4 << 10
	MaxAdded        = 16
	MaxPatches      = 64
	MaxPatched      = workflow.MaxSource - MaxPatch*MaxPatches
	MaxPatchedTasks = workflow.MaxTasks - MaxAdded*MaxPatches
)

// addTo is the key by which a patch adds a task: its value is the name of a partition. add is the key by which it adds
// data, an application, a resource or a partition: its value is true. standsIn says of a task that is added to no
// partition that it stands in for others, so that facts may name it: its value is true.
const (
	addTo    = "add-to"
	add      = "add"
	standsIn = "stands-in"
)

// light are the keys that can be changed in an instance that runs, and on which it does not depend whether what
// partners said of the instance counts: limits of time, what the choice of a performer weighs, and words. So it does
// not matter who had heard of the amendment when. A time-to-wait is not among them, as a task may be ready by it; nor
// is a timeout that goes (IsHeavy), as a task may have a time-to-wait only because of that.
//
// All others are heavy: on them it does depend, or on what goes together with them: what a fact says is judged by the
// definition in its own past. Steered are those of tasks that there are, triggered those of triggers, of an instance
// that is driven by its data. Addable are the keys of what is added.
var (
	light = map[Kind][]string{
		OfWorkflow: {"version", "label", "doc"},
		OfData:     {"label", "doc"},
		OfTask: {
			"timeout", "priority", "urgency", "suitability", "duration", "label", "doc",
		},
		OfPartition: {"timeout", "label"},
	}
	rule   = []string{"after", "when"}
	answer = []string{"contingency", "on-failure"}
	heavy  = map[Kind][]string{
		OfWorkflow:   {"final", "warnings", "transfer"},
		OfCondition:  {expression},
		OfConstraint: {"when", "strict"},
		OfLoop:       {"times", "from", "while"},
		OfPartition:  placement,
		OfResource:   {"capacity"},
		OfData:       {"enum", "min", "max"},
	}
	steered = []string{
		"after", "when", "in", "on-failure", "contingency", "enabled", "compensate", "retries", "time-to-wait", "deadline",
		"warnings", "transfer",
	}
	triggered = []string{
		"after", "when", "enabled", "type", "application", "with", "role", "in", "out", "form", "compensate", "retries",
		"repeat", "on-conflict",
	}
	hands   = []string{"type", "application", "role"}
	addable = map[Kind][]string{
		OfTask: {
			addTo, standsIn, "label", "doc", "after", "when", "type", "application", "with", "role", "needs", "in", "out",
			"form", "holds", "produces", "uses", "timeout", "time-to-wait", "on-failure", "contingency", "compensate",
			"retries", "deadline", "warnings", "transfer", "offline",
			"priority", "urgency", "suitability", "duration",
		},
		OfData: {
			add, "type", "default", "enum", "min", "max", "required", "name", "readers", "database", "expression", "label",
			"doc",
		},
		OfApplication: {add, "size", "os", "cpu", "installer", "hosts"},
		OfResource:    {add, "capacity", "partition"},
		OfPartition:   {add, "label", "timeout", "partner", "roles", "needs"},
	}
	addableTrigger = []string{
		addTo, "label", "doc", "when", "repeat", "type", "application", "with", "role", "in", "out", "form", "timeout",
		"retries", "compensate", "on-conflict", "enabled", "offline", "priority", "urgency", "suitability", "duration",
	}
)

// PatchOf is the patch that makes one edition of another: a task that is taken out stays, and is not enabled any more,
// as facts may name it. It leaves out what is found of the changes: that is refused anyway, or has no effect (Judge).
// What cannot be changed yet in an instance that runs is refused, with the reason; then there is no patch.
func PatchOf(old, changed *workflow.Definition, found []Finding) (Patch, []Finding) {
	var out Patch
	var refused []Finding
	no := func(p Part, key, why string) {
		refused = append(refused, Finding{Part: p, Key: key, Refused: true, Why: why})
	}
	was, is, flows := partsOf(old), partsOf(changed), old.Flow() != nil
	for _, c := range Between(old, changed) {
		switch {
		case isFound(found, c.Part, ""):
			continue
		case c.How == Added && c.Kind == OfTask && isStandIn(old, workflow.TaskName(c.Name)):
			if why := standsInAgain(old, changed, &c); why != "" {
				no(c.Part, "", why)
			}
			continue // it is there, and is named again
		case c.How == Added && len(addable[c.Kind]) > 0:
			var why string
			if out, why = addPart(out, old, changed, &c, found); why != "" {
				no(c.Part, "", why)
			}
			continue
		case c.How == Removed && c.Kind == OfTask && canBeLeftOut(old, c.Name):
			if !old.Task(workflow.TaskName(c.Name)).Disabled { // else it was taken out before
				out = append(out, Setting{Part: c.Part, Key: "enabled", Value: written(false)})
			}
			continue
		case c.How == Removed && c.Kind == OfTask && isSpare(old, workflow.TaskName(c.Name)):
			continue // nothing begins it once it is named by no other
		case c.How == Removed && comesAndGoes(c.Kind):
			for _, k := range keys(was[c.Part]) {
				c.Keys = append(c.Keys, Key{Key: k, Was: was[c.Part][k]})
			}
		case c.How == Added && !comesAndGoes(c.Kind):
			no(c.Part, "", "this version cannot add it to an instance that runs")
			continue
		case c.How == Removed:
			no(c.Part, "", "this version cannot take it out of an instance that runs")
			continue
		}
		for _, k := range c.Keys {
			switch why := heaviness(c.Part, k, flows); {
			case isFound(found, c.Part, k.Key), c.Kind == OfTask && out.has(c.Part, k.Key), // set with another
				c.Kind == OfPartition && k.Key == "tasks" && !moves(old, changed, k):
			case why != "":
				no(c.Part, k.Key, why)
			case c.Kind == OfTask && slices.Contains(rule, k.Key): // both are set
				for _, key := range rule {
					out = append(out, Setting{Part: c.Part, Key: key, Value: is[c.Part][key]})
				}
			case c.Kind == OfTask && k.Key == "contingency":
				if l := loopOf(old, changed, workflow.TaskName(c.Name)); l != "" {
					no(c.Part, k.Key, inLoop(l))
				}
				for _, key := range answer {
					out = append(out, Setting{Part: c.Part, Key: key, Value: is[c.Part][key]})
				}
			default:
				out = append(out, Setting{Part: c.Part, Key: k.Key, Value: k.Is})
			}
		}
	}
	if err := roundsOf(old).stoodInFor(changed); err != nil {
		no(Part{Kind: OfWorkflow}, "", err.Error())
	}
	if t, why := Turned(old, changed); why != "" && old.Task(t) != nil {
		no(Part{OfTask, string(t)}, "", why+", which this version cannot have in an instance that runs")
	}
	if len(refused) > 0 {
		return nil, refused
	}
	slices.SortFunc(out, Setting.compare)
	if n := len(out.Text()); n > MaxPatch {
		no(Part{Kind: OfWorkflow}, "", fmt.Sprintf("the changes have %d bytes, and %d may be made at once", n, MaxPatch))
		return nil, refused
	}
	if n := len(out.Adds()); n > MaxAdded {
		no(Part{Kind: OfWorkflow}, "", fmt.Sprintf("%d tasks are new, and %d may be added at once", n, MaxAdded))
		return nil, refused
	}
	return out, nil
}

// Turned is a task of an instance that follows its tasks which one edition only has to stand in for others or to undo
// them, and another to be done by its own rule, with the difference in words; empty: there is none. What facts say of
// such a task by the one means nothing by the other.
func Turned(was, is *workflow.Definition) (task workflow.TaskName, why string) {
	if was.Flow() != nil || is.Flow() != nil {
		return "", ""
	}
	for _, t := range is.Tasks {
		before := was.Task(t.Name)
		switch only := before != nil && before.ContingencyOnly; {
		case before == nil && homeOf(is, t.Name) == "": // it is new, and undoes others
		case t.ContingencyOnly && !only:
			return t.Name, "would only stand in for others or undo them"
		case only && !t.ContingencyOnly:
			return t.Name, "would be done by itself, as no other names it any more"
		}
	}
	return "", ""
}

func turned(was, is *workflow.Definition) error {
	if t, why := Turned(was, is); why != "" {
		return fmt.Errorf("task %s %s", t, why)
	}
	return nil
}

// isSpare reports whether a task is begun by nothing of its own: it stands in for others, or undoes them.
func isSpare(d *workflow.Definition, t workflow.TaskName) bool {
	_, round := d.Round(t)
	x := d.Task(t)
	return x != nil && x.ContingencyOnly && x.Condition == nil && !x.Whole && !round
}

// isStandIn reports whether a definition keeps a task that only stood in for others, and that none names any more.
func isStandIn(d *workflow.Definition, t workflow.TaskName) bool {
	return slices.Contains(d.Kept().StandIns, t)
}

// standsInAgain says why a task cannot stand in that did so before, and that no other named since; empty: it can.
func standsInAgain(old, changed *workflow.Definition, c *Change) string {
	was := withStandIns(old)[c.Part]
	same := maps.EqualFunc(was, partsOf(changed)[c.Part], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	t := workflow.TaskName(c.Name)
	if same && changed.Task(t).ContingencyOnly && homeOf(old, t) == homeOf(changed, t) {
		return ""
	}
	return "the instance had a task of that name before, which was another: give it another name"
}

// loopOf is the loop to which a task belongs by one of two definitions, by its last task; empty: to none.
func loopOf(old, changed *workflow.Definition, t workflow.TaskName) workflow.TaskName {
	for _, d := range []*workflow.Definition{old, changed} {
		if x, is := d.Round(t); is {
			return x.Loop
		}
	}
	return ""
}

func inLoop(last workflow.TaskName) string {
	return fmt.Sprintf("it belongs to the loop that ends with %s, and this version cannot change who stands in for a task "+
		"of a loop", last)
}

// comesAndGoes reports whether parts of a kind are added and taken out by their keys alone.
func comesAndGoes(k Kind) bool { return k == OfCondition || k == OfConstraint || k == OfLoop }

// canBeLeftOut reports whether a task can be not enabled.
func canBeLeftOut(def *workflow.Definition, task string) bool {
	t := def.Task(workflow.TaskName(task))
	return t.Condition != nil || !t.ContingencyOnly
}

// moves reports whether a task that there was before and is now comes to a partition, or leaves it.
func moves(old, changed *workflow.Definition, k Key) bool {
	was, is := names(k.Was), names(k.Is)
	return slices.ContainsFunc(append(without(was, is), without(is, was)...), func(n string) bool {
		t := workflow.TaskName(n)
		return old.Task(t) != nil && changed.Task(t) != nil && homeOf(old, t) != homeOf(changed, t)
	})
}

// addPart adds to a patch what adds a part; else why it cannot be. What is found of its keys has no effect.
func addPart(p Patch, old, changed *workflow.Definition, c *Change, found []Finding) (Patch, string) {
	may, marker := addable[c.Kind], Key{Key: add, Is: written(true)}
	if c.Kind == OfTask {
		t := workflow.TaskName(c.Name)
		home := homeOf(changed, t)
		switch spare := isSpare(changed, t); {
		case spare && home != "" && standsFor(changed, t):
			return p, fmt.Sprintf("this version adds what only stands in for others to no partition: leave it out of %s, and "+
				"it goes to a partner that is able, when it is needed", home)
		case spare && home != "":
			return p, "whoever has a task undoes it: what only undoes others is added to no partition"
		case spare && standsFor(changed, t):
			if why := standInObstacle(changed, t); why != "" {
				return p, why
			}
		}
		if marker = (Key{Key: addTo, Is: written(home)}); old.Flow() != nil {
			may = addableTrigger
		}
	}
	added := append(slices.Clone(c.Keys), marker)
	if t := workflow.TaskName(c.Name); c.Kind == OfTask && isSpare(changed, t) && standsFor(changed, t) {
		added = append(added, Key{Key: standsIn, Is: written(true)})
	}
	if c.Kind == OfPartition {
		if old.Flow() != nil {
			return p, "an instance that is driven by its data has one partition"
		}
		for _, t := range changed.Partition(workflow.PartitionName(c.Name)).Tasks {
			if old.Task(t) != nil {
				return p, fmt.Sprintf("this version cannot move task %s into it", t)
			}
		}
		added = slices.DeleteFunc(added, func(k Key) bool { return k.Key == "tasks" }) // each says it itself
	}
	slices.SortFunc(added, func(a, b Key) int { return strings.Compare(a.Key, b.Key) })
	for _, k := range added {
		if !slices.Contains(may, k.Key) {
			return p, fmt.Sprintf("this version cannot add a %s with %s to an instance that runs", c.Kind, k.Key)
		}
		if !isFound(found, c.Part, k.Key) {
			p = append(p, Setting{Part: c.Part, Key: k.Key, Value: k.Is})
		}
	}
	return p, ""
}

// onlyUndoes reports whether a task is there to undo others.
func onlyUndoes(d *workflow.Definition, t workflow.TaskName) bool {
	return isSpare(d, t) && !standsFor(d, t) && !isStandIn(d, t)
}

// standsFor reports whether a task is a contingency of others.
func standsFor(d *workflow.Definition, t workflow.TaskName) bool {
	return slices.ContainsFunc(d.Tasks, func(x *workflow.Task) bool { return x.Contingency == t })
}

// standInObstacle says why a task that is added cannot only stand in for others; empty: it can. Which units somebody is
// to give out, and which data set somebody is to make, has to be known before it is needed; and what only undoes others
// is gone once nothing is undone by it, whereas facts may name what stands in.
func standInObstacle(d *workflow.Definition, t workflow.TaskName) string {
	switch x := d.Task(t); {
	case len(x.Holds) > 0:
		return "this version cannot add what only stands in for others and holds resources"
	case x.Produces.Name != "":
		return "this version cannot add what only stands in for others and makes a data set"
	case withStandIns(d).undone()[t]:
		return "this version cannot add one task to stand in for others and to undo others: add two"
	}
	return ""
}

// homeOf is the partition of a task; empty: it has none.
func homeOf(d *workflow.Definition, t workflow.TaskName) workflow.PartitionName {
	for _, x := range d.Partitions {
		if slices.Contains(x.Tasks, t) {
			return x.Name
		}
	}
	return ""
}

func isFound(found []Finding, p Part, key string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Part == p && f.Key == key })
}

// heaviness says why a key cannot be changed so in an instance that runs; empty: it can. Flows: one that is driven by
// its data.
func heaviness(p Part, k Key, flows bool) string {
	more := heavy[p.Kind]
	switch {
	case p.Kind == OfPartition && flows:
		more = nil // its holder keeps the data states
	case p.Kind == OfLoop && flows:
		more = nil // no tasks wait for tasks
	case p.Kind == OfTask && flows:
		more = triggered
	case p.Kind == OfTask:
		more = steered
	}
	switch {
	case slices.Contains(more, k.Key):
	case !slices.Contains(light[p.Kind], k.Key):
		return "this version cannot change it in an instance that runs"
	}
	return ""
}

// Steers are the tasks of which a patch sets what they wait for, or whether they are done at all, without adding them.
func (p Patch) Steers() (out []workflow.TaskName) {
	for _, x := range p {
		if x.Kind == OfTask && (x.Key == "enabled" || x.Key == rule[0]) && !p.adds(x.Part) {
			out = append(out, workflow.TaskName(x.Name))
		}
	}
	return slices.Compact(out)
}

// Compensates are the tasks that there are to which a patch gives something that undoes them.
func (p Patch) Compensates() (out []workflow.TaskName) {
	return named[workflow.TaskName](p, func(x Setting) bool {
		return x.Kind == OfTask && x.Key == "compensate" && len(x.Value) > 0 && !p.adds(x.Part)
	})
}

// Answers reports whether a patch says which tasks stand in for others.
func (p Patch) Answers() bool {
	return slices.ContainsFunc(p, func(x Setting) bool { return x.Kind == OfTask && slices.Contains(answer, x.Key) })
}

// named are the parts of which a patch says what is meant, each once, in its order.
func named[N ~string](p Patch, meant func(Setting) bool) (out []N) {
	for _, x := range p {
		if meant(x) {
			out = append(out, N(x.Name))
		}
	}
	return slices.Compact(out)
}

// Hands are the tasks that there are of which a patch says who or what does them.
func (p Patch) Hands() (out []workflow.TaskName) {
	return named[workflow.TaskName](p, func(x Setting) bool {
		return x.Kind == OfTask && slices.Contains(hands, x.Key) && !p.adds(x.Part)
	})
}

// Dates are the tasks that there are to which a patch gives another deadline, or none.
func (p Patch) Dates() (out []workflow.TaskName) {
	return named[workflow.TaskName](p, func(x Setting) bool {
		return x.Kind == OfTask && x.Key == "deadline" && !p.adds(x.Part)
	})
}

// Adds are the tasks that a patch adds, in its order.
func (p Patch) Adds() (out []workflow.TaskName) {
	return named[workflow.TaskName](p, func(x Setting) bool { return x.Key == addTo })
}

// Parts are the partitions that a patch adds, in its order.
func (p Patch) Parts() (out []workflow.PartitionName) {
	return named[workflow.PartitionName](p, func(x Setting) bool { return x.Kind == OfPartition && x.Key == add })
}

// Replaces are the partitions that there are of which a patch says who can have them.
func (p Patch) Replaces() (out []workflow.PartitionName) {
	return named[workflow.PartitionName](p, func(x Setting) bool {
		return x.Kind == OfPartition && slices.Contains(placement, x.Key) && !p.adds(x.Part)
	})
}

// StoreOf is the partition that gives out a resource which a patch adds; empty: it adds none of that name.
func (p Patch) StoreOf(r workflow.ResourceName) (part workflow.PartitionName) {
	of := Part{OfResource, string(r)}
	for _, x := range p {
		if x.Part == of && x.Key == "partition" && p.adds(of) {
			part = workflow.PartitionName(text(x.Value))
		}
	}
	return part
}

// has reports whether a patch says something of a key of a part.
func (p Patch) has(part Part, key string) bool {
	return slices.ContainsFunc(p, func(x Setting) bool { return x.Part == part && x.Key == key })
}

// Set is what a patch sets of what there was before.
func (p Patch) Set() Patch {
	return slices.DeleteFunc(slices.Clone(p), func(x Setting) bool { return p.adds(x.Part) })
}

// Adding is what a patch says of a task that it adds, and into which partition it goes.
func (p Patch) Adding(t workflow.TaskName) (what Patch, home workflow.PartitionName) {
	what = p.Of(Part{OfTask, string(t)})
	for _, x := range what {
		if x.Key == addTo {
			home = workflow.PartitionName(text(x.Value))
		}
	}
	return what, home
}

// adds reports whether a patch adds a part.
func (p Patch) adds(part Part) bool {
	return p.has(part, adding(part.Kind))
}

// adding is the key by which parts of a kind are added.
func adding(k Kind) string {
	if k == OfTask {
		return addTo
	}
	return add
}

// IsHeavy reports whether it depends on a patch whether facts count: then each is judged by what its author knew.
func (p Patch) IsHeavy() bool {
	return slices.ContainsFunc(p, func(x Setting) bool {
		return !slices.Contains(light[x.Kind], x.Key) || x.Key == "timeout" && len(x.Value) == 0
	})
}

// Text is the one way to write a patch down.
func (p Patch) Text() string { return string(written(p)) }

// DecodePatch reads what Text writes, and nothing else.
func DecodePatch(s string) (Patch, error) {
	if len(s) > MaxPatch {
		return nil, fmt.Errorf("a patch of %d bytes, at most %d", len(s), MaxPatch)
	}
	var p Patch
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("a patch that cannot be read: %w", err)
	}
	if len(p) == 0 {
		return nil, errors.New("a patch that changes nothing")
	}
	if n := len(p.Adds()); n > MaxAdded {
		return nil, fmt.Errorf("a patch that adds %d tasks, at most %d", n, MaxAdded)
	}
	for i, x := range p {
		if why := p.unreadable(x); why != "" {
			return nil, fmt.Errorf("a patch of %s, %s: %s", x.Part, x.Key, why)
		}
		if i > 0 && p[i-1].compare(x) >= 0 {
			return nil, errors.New("a patch whose settings are not in their order")
		}
	}
	if p.Text() != s {
		return nil, errors.New("a patch that is not written in the one way")
	}
	return p, nil
}

// unreadable says why a setting can be in no patch, whatever it is a patch of; empty: it can.
func (p Patch) unreadable(x Setting) string {
	k := Key{Key: x.Key, Was: x.Value, Is: x.Value}
	if p.adds(x.Part) {
		switch {
		case !slices.Contains(addable[x.Kind], x.Key) && !(x.Kind == OfTask && slices.Contains(addableTrigger, x.Key)),
			len(x.Value) == 0, (x.Key == addTo || x.Kind == OfData && x.Key == "type") && x.Value[0] != '"',
			x.Key == add && string(x.Value) != "true",
			x.Key == standsIn && (string(x.Value) != "true" || !slices.Contains(p.undoing(), workflow.TaskName(x.Name))):
			return fmt.Sprintf("a %s cannot be added with that", x.Kind)
		}
		return ""
	}
	if why := heaviness(x.Part, k, true); why != "" && heaviness(x.Part, k, false) != "" {
		return why
	}
	if x.Kind == OfTask && slices.Contains(rule, x.Key) && !(p.has(x.Part, rule[0]) && p.has(x.Part, rule[1])) {
		return "it has after without when, or when without after"
	}
	if x.Kind == OfTask && x.Key == "contingency" && !p.has(x.Part, "on-failure") {
		return "it has contingency without on-failure"
	}
	return ""
}

func (x Setting) compare(o Setting) int {
	if n := x.Part.compare(o.Part); n != 0 {
		return n
	}
	return strings.Compare(x.Key, o.Key)
}

// Fits is what a patch means by an edition of a definition that its author knew; an error says why it is not one of
// that. The edition has its parts, with their limits, has none of what it adds, and is one with the patch as well, that
// check does not refuse.
func Fits(def, known *workflow.Definition, p Patch, check func(*workflow.Definition) error) (Meant, error) {
	m, made, err := fits(def, known, p)
	switch {
	case err != nil:
		return Meant{}, err
	case made.FlowObstacle() != "":
		return Meant{}, errors.New(made.FlowObstacle())
	case turned(known, made) != nil:
		return Meant{}, turned(known, made)
	case (made.Flow() != nil) != (known.Flow() != nil):
		return Meant{}, errors.New("it makes an instance one that is driven by its data, or one that is not any more")
	case made.Flow() != nil && made.Flow().Partition != known.Flow().Partition:
		return Meant{}, errors.New("whoever holds the partition keeps the data states, so they cannot be in another")
	case p.IsHeavy() && check(made) != nil:
		return Meant{}, check(made)
	case standInsFit(def, known, made, p) != nil:
		return Meant{}, standInsFit(def, known, made, p)
	}
	return m, fewEnough(def, known, p, m.rounds)
}

// standInsFit says why tasks cannot stand in for others as a patch says that makes one edition of another; nil: they
// can. What patches add to undo others does not stand in for others, nor the other way round (standInObstacle).
func standInsFit(def, known, made *workflow.Definition, p Patch) error {
	for _, x := range p {
		t := workflow.TaskName(x.Name)
		switch {
		case x.Kind != OfTask:
		case x.Key == "contingency":
			if l := loopOf(known, made, t); l != "" {
				return fmt.Errorf("task %s: %s", t, inLoop(l))
			}
			if c := made.Task(t).Contingency; c != "" && def.Task(c) == nil && known.Task(c) != nil && onlyUndoes(known, c) {
				return fmt.Errorf("task %s: %s is there to undo others", t, c)
			}
		case x.Key == standsIn:
			if why := standInObstacle(made, t); why != "" {
				return fmt.Errorf("task %s: %s", t, why)
			}
		case x.Key == "compensate" && made.Task(t).Compensate != nil:
			u := made.Task(t).Compensate.Task
			if def.Task(u) == nil && known.Task(u) != nil && (standsFor(known, u) || isStandIn(known, u)) {
				return fmt.Errorf("task %s: %s is there to stand in for others", t, u)
			}
		}
	}
	return nil
}

func fits(def, known *workflow.Definition, p Patch) (m Meant, made *workflow.Definition, err error) {
	if n := len(def.WrittenOut()); n > MaxPatched {
		return m, nil, fmt.Errorf("a definition of %d bytes is not amended, only one of at most %d", n, MaxPatched)
	}
	if n := len(def.Tasks); n > MaxPatchedTasks && len(p.Adds()) > 0 {
		return m, nil, fmt.Errorf("to a definition of %d tasks none are added, only to one of at most %d", n, MaxPatchedTasks)
	}
	has := withStandIns(known)
	for _, x := range p {
		if err := p.fits(x, known, has); err != nil {
			return m, nil, err
		}
	}
	var added []workflow.TaskName
	for _, t := range known.Tasks {
		if def.Task(t.Name) == nil && onlyUndoes(known, t.Name) {
			added = append(added, t.Name)
		}
	}
	m.Patch = p
	if made, err = patched(known, has, added, roundsOf(known), m); err != nil {
		return m, nil, err
	}
	return meant(known, made, p), made, nil
}

// fits says of one setting why it is not one of an edition that has these parts; nil: it is.
func (p Patch) fits(x Setting, known *workflow.Definition, has parts) error {
	keys, there := has[x.Part]
	flows, added := known.Flow() != nil, p.adds(x.Part)
	may := addable[x.Kind]
	if x.Kind == OfTask && flows {
		may = addableTrigger
	}
	k := Key{Key: x.Key, Was: keys[x.Key], Is: x.Value}
	switch {
	case added && there:
		return fmt.Errorf("the definition has %s already", x.Part)
	case added && !slices.Contains(may, x.Key):
		return fmt.Errorf("%s, %s: a %s cannot be added with that", x.Part, x.Key, x.Kind)
	case added && x.Kind == OfPartition && flows:
		return errors.New("an instance that is driven by its data has one partition")
	case x.Key == addTo && text(x.Value) != "" && known.Partition(workflow.PartitionName(text(x.Value))) == nil &&
		!p.adds(Part{OfPartition, text(x.Value)}):
		return fmt.Errorf("the definition has no partition %s", plain.Line(text(x.Value)))
	case !added && !there && !(comesAndGoes(x.Kind) && p.sets(x.Part, []string{expression, "when", "times"})):
		return fmt.Errorf("the definition has no %s", x.Part)
	case !added && heaviness(x.Part, k, flows) != "":
		return fmt.Errorf("%s, %s: %s", x.Part, x.Key, heaviness(x.Part, k, flows))
	}
	return nil
}

// Effective is a definition with the patches that were made of it, in their order, each of which fits what its author
// knew of the others. Of several that add one task the first one counts; of several that set one key the last.
//
// A patch is doubtful whose author did not know all that come before it: where the definition would be none any more
// with it, or check refuses it, it sets nothing. left are the places of those. The tasks that they add are there in any
// case, as only those ask for their names who knew of them: if need be without what they wait for and do, so that they
// are not done; triggers are not there then, as nobody waits for them. Nil: none is doubtful. One that adds a task only
// to undo others that another adds to be done by itself sets nothing either: what was said of that goes on to count.
func Effective(
	def *workflow.Definition, patches []Meant, doubtful func(i int) bool, check func(*workflow.Definition) error,
) (out *workflow.Definition, left []int) {
	if len(patches) == 0 {
		return def, nil
	}
	kept := roundsOf(def)
	made := func(some []Meant) *workflow.Definition {
		d, err := patched(def, withStandIns(def), nil, kept, some...)
		if err != nil || check(d) != nil {
			return nil
		}
		return d
	}
	some, slots, shaken := slices.Clone(patches), placedTasks(patches), false // those after one that sets nothing may need it
	for i, p := range patches {
		odd := slices.ContainsFunc(p.undoing(), func(t workflow.TaskName) bool { return slots[t] })
		shaken = shaken || odd
		unsure := shaken || doubtful != nil && doubtful(i)
		if odd || p.IsHeavy() && unsure && made(some[:i+1]) == nil {
			for _, some[i].Patch = range p.less(slots) {
				if made(some[:i+1]) != nil {
					break
				}
			}
			left = append(left, i)
		}
	}
	if out = made(some); out == nil { // cannot be, as far as known
		return def, nil
	}
	return out, left
}

// bare are the keys of an added task on which it depends whether what was said of it counts.
var bare = []string{addTo, standsIn, "type", "uses", "role", "in", "out"}

// less are what can be left of a patch that does not go together with others: what it adds, or less and less of that.
// Of what is in no partition that is what stands in for others, unless another patch adds it to one (placed): facts may
// name it.
func (p Patch) less(placed map[workflow.TaskName]bool) []Patch {
	undoing, standing := p.undoing(), p.standing()
	adds := slices.DeleteFunc(slices.Clone(p), func(x Setting) bool {
		t := workflow.TaskName(x.Name)
		return !p.adds(x.Part) ||
			x.Kind == OfTask && slices.Contains(undoing, t) && (placed[t] || !slices.Contains(standing, t))
	})
	idle := slices.DeleteFunc(slices.Clone(adds), func(x Setting) bool {
		return x.Kind == OfResource || x.Kind == OfTask && !slices.Contains(bare, x.Key) // what is not done holds nothing
	})
	for _, t := range without(adds.Adds(), standing) {
		idle = append(idle, Setting{Part: Part{OfTask, string(t)}, Key: "enabled", Value: written(false)})
	}
	return []Patch{adds, idle, nil}
}

// standing are the tasks that a patch adds only to stand in for others: they are in no partition, either.
func (p Patch) standing() []workflow.TaskName {
	return named[workflow.TaskName](p, func(x Setting) bool { return x.Key == standsIn })
}

// undoing are the tasks that a patch adds only to undo others, or to stand in for them: they are in no partition.
func (p Patch) undoing() (out []workflow.TaskName) {
	for _, x := range p {
		if x.Key == addTo && text(x.Value) == "" {
			out = append(out, workflow.TaskName(x.Name))
		}
	}
	return out
}

// placedTasks are the tasks that patches add to partitions.
func placedTasks(patches []Meant) map[workflow.TaskName]bool {
	out := map[workflow.TaskName]bool{}
	for _, p := range patches {
		undoing := p.undoing()
		for _, t := range p.Patch.Adds() {
			out[t] = out[t] || !slices.Contains(undoing, t)
		}
	}
	return out
}

// undone are the tasks that are named to undo others.
func (p parts) undone() map[workflow.TaskName]bool {
	out := map[workflow.TaskName]bool{}
	for part, keys := range p {
		var by struct{ Task workflow.TaskName }
		if part.Kind == OfTask && json.Unmarshal(keys["compensate"], &by) == nil {
			out[by.Task] = true
		}
	}
	return out
}

// spare are the tasks that others name, to stand in for them or to undo them.
func (p parts) spare() map[workflow.TaskName]bool {
	out := p.undone()
	for part, keys := range p {
		var by workflow.TaskName
		if part.Kind == OfTask && json.Unmarshal(keys["contingency"], &by) == nil { // else it is refused when it is read
			out[by] = true
		}
	}
	return out
}

// patched is a definition, which has these parts, with patches. A task that patches add only to undo others, as some
// before have added these, is not there once nothing is undone by it any more. What only stood in for others is kept,
// and so are rounds that were there, or are by one of the patches, and are not any more by all of them.
func patched(
	def *workflow.Definition, has parts, undo []workflow.TaskName, were rounds, patches ...Meant,
) (*workflow.Definition, error) {
	out := parts{}
	for p, keys := range has {
		out[p] = maps.Clone(keys)
	}
	for _, p := range patches {
		before := maps.Clone(out)
		out.add(p.Patch)
		for _, x := range p.Patch {
			switch {
			case p.adds(x.Part):
			case p.alone[x.Part] && before[x.Part] != nil: // another has added it
			case out[x.Part] == nil && !comesAndGoes(x.Kind):
				return nil, fmt.Errorf("there is no %s", x.Part)
			case len(x.Value) == 0:
				if delete(out[x.Part], x.Key); comesAndGoes(x.Kind) && len(out[x.Part]) == 0 {
					delete(out, x.Part)
				}
			default:
				if out[x.Part] == nil {
					out[x.Part] = map[string]json.RawMessage{}
				}
				out[x.Part][x.Key] = x.Value
			}
			if x.Kind == OfTask && x.Key == "on-failure" && !p.adds(x.Part) && !p.has(x.Part, "contingency") {
				delete(out[x.Part], "contingency")
			}
		}
	}
	var stand []workflow.TaskName
	for _, p := range patches {
		stand = append(stand, p.standing()...)
	}
	for _, p := range patches {
		undo = append(undo, without(p.undoing(), stand)...)
	}
	for _, t := range def.Tasks {
		if isSpare(def, t.Name) && (standsFor(def, t.Name) || isStandIn(def, t.Name)) {
			stand = append(stand, t.Name)
		}
	}
	named := out.spare()
	for _, t := range undo {
		if !named[t] {
			delete(out, Part{OfTask, string(t)})
		}
	}
	named = out.leaveUnused(def, named)
	stand = slices.DeleteFunc(stand, func(t workflow.TaskName) bool {
		return named[t] || out[Part{OfTask, string(t)}] == nil
	})
	slices.Sort(stand)
	stand = slices.Compact(stand)
	for _, p := range order(out) {
		if p.Kind == OfLoop && out[Part{OfTask, p.Name}] == nil {
			return nil, fmt.Errorf("there is no task %s with which a loop ends", p.Name)
		}
	}
	all := maps.Clone(were)
	for _, p := range patches {
		for t, x := range p.rounds {
			if _, there := all[t]; !there { // of several the first counts
				if all == nil {
					all = rounds{}
				}
				all[t] = x
			}
		}
	}
	made, err := out.parse(def, all, stand)
	if err == nil {
		err = all.stoodInFor(made)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range undo {
		if x := made.Task(t); x != nil && !isSpare(made, t) {
			return nil, fmt.Errorf("task %s is in no partition, and does not only undo others", t)
		}
	}
	if made.Name != def.Name {
		return nil, errors.New("the name of the workflow is another")
	}
	return made, nil
}

// leaveUnused takes out what only undid others in a definition, and that no other names any more: no fact names it, as
// what undoes something goes by the name of that. It says which tasks are named then.
func (p parts) leaveUnused(def *workflow.Definition, named map[workflow.TaskName]bool) map[workflow.TaskName]bool {
	for i := 0; i < len(def.Tasks); i++ {
		t := def.Tasks[i].Name
		part := Part{OfTask, string(t)}
		keys := p[part]
		if named[t] || keys == nil || keys["when"] != nil || keys["after"] != nil || !onlyUndoes(def, t) {
			continue
		}
		delete(p, part)
		if home := (Part{OfPartition, string(homeOf(def, t))}); p[home] != nil {
			p[home] = maps.Clone(p[home])
			p[home]["tasks"] = written(without(names(p[home]["tasks"]), []string{string(t)}))
		}
		if keys["compensate"] != nil || keys["contingency"] != nil { // it may have been the last that names another
			named, i = p.spare(), -1
		}
	}
	return named
}

// parse makes a definition of its parts, with those of some rounds that are not in it, and with what stands in for no
// other any more.
func (p parts) parse(def *workflow.Definition, all rounds, stand []workflow.TaskName) (*workflow.Definition, error) {
	made, err := workflow.ParseKept("amended", p.text(p.constraints(def)), workflow.Kept{StandIns: stand})
	if err != nil {
		return nil, err
	}
	gone := maps.Clone(all)
	maps.DeleteFunc(gone, func(t workflow.TaskName, _ keptRound) bool { return made.Task(t) != nil })
	if len(gone) == 0 {
		return made, nil
	}
	for _, bareOnly := range []bool{false, true} {
		out := maps.Clone(p)
		kept := out.keep(gone, bareOnly)
		kept.StandIns = stand
		if made, err = workflow.ParseKept("amended", out.text(out.constraints(def)), kept); err == nil {
			return made, nil
		}
	}
	return nil, err
}

// constraints are the names of the constraints in an order: those of a definition first, as it has them.
func (p parts) constraints(def *workflow.Definition) []string {
	out := placedConstraints(def, def, def)
	for _, x := range order(p) {
		if x.Kind == OfConstraint && !slices.Contains(out, x.Name) {
			out = append(out, x.Name)
		}
	}
	return out
}

// add puts in what a patch adds and what is not there yet: partitions first, so that tasks go into them.
func (p parts) add(patch Patch) {
	before := maps.Clone(p)
	p.addThose(patch, before, true)
	p.addThose(patch, before, false)
}

func (p parts) addThose(patch Patch, before parts, partitions bool) {
	for _, x := range patch {
		if (x.Kind == OfPartition) != partitions {
			continue
		}
		switch {
		case !patch.adds(x.Part) || before[x.Part] != nil:
			continue
		case p[x.Part] == nil:
			p[x.Part] = map[string]json.RawMessage{}
		}
		if x.Key != addTo {
			if x.Key != add && x.Key != standsIn {
				p[x.Part][x.Key] = x.Value
			}
			continue
		}
		home := Part{OfPartition, text(x.Value)}
		if p[home] == nil { // the only one there is, which nobody wrote
			continue
		}
		list := append(names(p[home]["tasks"]), x.Name)
		slices.Sort(list)
		p[home]["tasks"] = written(list)
	}
}

// Clash is a key that two patches set unlike, or a part that both add.
type Clash struct {
	Part
	Key        string // empty: they add it
	One, Other json.RawMessage
}

func (c Clash) String() string {
	if c.Key == "" {
		return c.Part.String() + ": both add it"
	}
	return fmt.Sprintf("%s, %s: %s against %s", c.Part, c.Key, Apart(c.One), Apart(c.Other))
}

// Clashes are the keys that two patches set unlike, and the parts that they add unlike, in their order.
func Clashes(one, other Meant) (out []Clash) {
	for _, x := range one.Patch {
		both := one.adds(x.Part) && other.adds(x.Part)
		if both || one.alone[x.Part] && other.alone[x.Part] {
			first := len(out) == 0 || out[len(out)-1].Part != x.Part
			if first && one.Of(x.Part).Text() != other.Of(x.Part).Text() {
				out = append(out, Clash{Part: x.Part})
			}
			continue
		}
		for _, y := range other.Patch {
			if x.compare(y) == 0 && !bytes.Equal(x.Value, y.Value) {
				out = append(out, Clash{Part: x.Part, Key: x.Key, One: x.Value, Other: y.Value})
			}
		}
	}
	return out
}

// Of is what a patch says of a part.
func (p Patch) Of(part Part) Patch {
	return slices.DeleteFunc(slices.Clone(p), func(x Setting) bool { return x.Part != part })
}

// Lines tell people what a patch sets.
func (p Patch) Lines() (out []string) {
	for _, x := range p {
		switch {
		case x.Key == standsIn: // said with addTo
		case x.Key == addTo && p.has(x.Part, standsIn):
			out = append(out, x.Part.String()+" is new, and stands in for others")
		case x.Key == addTo && text(x.Value) == "":
			out = append(out, x.Part.String()+" is new")
		case x.Key == addTo:
			out = append(out, fmt.Sprintf("%s is new, in partition %s", x.Part, plain.Line(text(x.Value))))
		case x.Key == add:
			out = append(out, x.Part.String()+" is new")
		case len(x.Value) == 0 && slices.Contains(rule, x.Key) && p.sets(x.Part, rule):
			// after and when are set together, and what is not written is not worth a line
		case len(x.Value) == 0 && slices.Contains(answer, x.Key) && p.sets(x.Part, answer): // likewise
		default:
			out = append(out, fmt.Sprintf("%s, %s: %s", x.Part, plain.Line(x.Key), Shown(x.Value)))
		}
	}
	return out
}

// sets reports whether a patch has a value of a part for one of some keys.
func (p Patch) sets(part Part, some []string) bool {
	return slices.ContainsFunc(p, func(x Setting) bool {
		return x.Part == part && slices.Contains(some, x.Key) && len(x.Value) > 0
	})
}
