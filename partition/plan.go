package partition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Plan is a definition's cut and what follows from it. Methods that take a
// task or partition that the definition does not have answer with zero values.
//
// Rule order, here and below, is: each task after those that its rule mentions
// and those it stands in for, else by name.
type Plan struct {
	def        *workflow.Definition
	graph      *graph
	partitions []*Partition // by name
	tasks      []task
	home       []int // by task: the position of its partition, or none
	bounds     *bounds
	dropped    []workflow.TaskName // see Without
}

// task is what the graph and the cut say about one task, ready to be handed out.
type task struct {
	chain     []workflow.TaskName
	listeners []workflow.PartitionName
	// alarms are the partitions, by position, of tasks with time-to-wait whose rules
	// mention this one.
	alarms []int
}

// Partition is the unit of work that is sent to one partner.
type Partition struct {
	Name  workflow.PartitionName
	Tasks []workflow.TaskName // in rule order
	// Entry are the tasks that nothing inside the partition leads to, Last
	// those that lead to nothing inside it. Both count contingencies as edges.
	Entry, Last []workflow.TaskName
	// Partner is the name or ID that the author pinned it to; empty: anyone able.
	Partner string
	Roles   []workflow.RoleName   // what the holder itself must have
	Needs   []workflow.Capability // of the partition, without those of its tasks
	// Timeout is the partition's timeOut, declared or computed; 0: none. Its
	// clock runs only while one of the partition's tasks is READY or RUNNING.
	Timeout time.Duration
	// Declared tells that the author wrote the timeout.
	Declared bool
	// FailsAtTaskLevel tells that the partition has a single task, whose own
	// timeout decides: such a partition is never failed as a whole.
	FailsAtTaskLevel bool
}

// New derives the plan of a definition. It costs little: what would cost much is
// refused, see Err. The result may be kept for as long as the definition, which it
// refers to.
func New(def *workflow.Definition) *Plan {
	p := &Plan{def: def, graph: newGraph(def), home: make([]int, len(def.Tasks))}
	for i := range p.home {
		p.home[i] = none
	}
	for _, d := range slices.SortedFunc(slices.Values(def.Partitions), byName) {
		p.place(d)
	}
	p.fill()
	critical, ok := p.criticalPaths(false)
	if !ok {
		p.graph.refused = fmt.Sprintf("the time-outs of its partitions take more than %d steps to work out: write timeout: at those that paths lead in and out of", maxPathSteps)
	}
	for at, part := range p.partitions {
		if !part.Declared {
			part.Timeout = critical[at]
		}
	}
	p.tasks = make([]task, len(def.Tasks))
	for i := range p.tasks {
		p.tasks[i] = p.describe(i)
	}
	p.bounds = newBounds(p.graph)
	return p
}

func byName(a, b workflow.PartitionDecl) int { return cmp.Compare(a.Name, b.Name) }

// place makes a partition and notes that its tasks are in it.
func (p *Plan) place(d workflow.PartitionDecl) {
	part := &Partition{
		Name: d.Name, Partner: d.Partner, Roles: d.Roles, Needs: d.Needs,
		Timeout: d.Timeout, Declared: d.Timeout > 0,
		FailsAtTaskLevel: len(d.Tasks) == 1,
	}
	for _, t := range d.Tasks {
		if i, ok := p.graph.index[t]; ok {
			p.home[i] = len(p.partitions)
		}
	}
	p.partitions = append(p.partitions, part)
}

// fill lists the tasks of all partitions, and where they are entered and left.
func (p *Plan) fill() {
	entered, left := make([]bool, len(p.home)), make([]bool, len(p.home))
	for i, arcs := range p.graph.out {
		for _, a := range arcs {
			if at := p.home[i]; at != none && at == p.home[a.task] {
				entered[a.task], left[i] = true, true
			}
		}
	}
	for i, at := range p.home {
		if at == none {
			continue
		}
		part, name := p.partitions[at], p.graph.tasks[i].Name
		part.Tasks = append(part.Tasks, name)
		if !entered[i] {
			part.Entry = append(part.Entry, name)
		}
		if !left[i] {
			part.Last = append(part.Last, name)
		}
	}
}

func (p *Plan) describe(i int) task {
	g := p.graph
	var waiting, alarms []int
	for _, to := range g.out[i] {
		waiting = append(waiting, p.home[to.task])
	}
	for _, j := range g.succs[i] {
		if g.tasks[j].TimeToWait > 0 {
			alarms = append(alarms, p.home[j])
		}
	}
	slices.Sort(alarms)
	return task{chain: g.names(g.chain[i]), listeners: p.elsewhere(i, waiting), alarms: slices.Compact(alarms)}
}

// elsewhere names those of the partitions, given by position, that are not that of
// task i, each once.
func (p *Plan) elsewhere(i int, positions []int) []workflow.PartitionName {
	slices.Sort(positions)
	var names []workflow.PartitionName
	for _, at := range slices.Compact(positions) {
		if at != none && at != p.home[i] {
			names = append(names, p.partitions[at].Name)
		}
	}
	return names
}

// task is the description of t; an empty one if there is no such task.
func (p *Plan) task(t workflow.TaskName) task {
	if i, ok := p.graph.index[t]; ok {
		return p.tasks[i]
	}
	return task{}
}

// Err says why a definition is refused although workflow.Parse takes it: working out
// what follows from its cut would cost more than any use of it is worth. Such a plan
// is not whole. The error names the limit.
func (p *Plan) Err() error {
	if p.graph.refused == "" {
		return nil
	}
	return errors.New(p.graph.refused)
}

// Definition is what the plan was made from.
func (p *Plan) Definition() *workflow.Definition { return p.def }

// Partitions lists the partitions by name.
func (p *Plan) Partitions() []*Partition { return p.partitions }

// Partition returns the partition of that name, or nil.
func (p *Plan) Partition(name workflow.PartitionName) *Partition {
	at, ok := slices.BinarySearchFunc(p.partitions, name, func(part *Partition, name workflow.PartitionName) int {
		return cmp.Compare(part.Name, name)
	})
	if !ok {
		return nil
	}
	return p.partitions[at]
}

// Home names the partition that a task is placed in. It is empty for a
// contingency that was left for any available partner.
func (p *Plan) Home(t workflow.TaskName) workflow.PartitionName {
	if i, ok := p.graph.index[t]; ok && p.home[i] != none {
		return p.partitions[p.home[i]].Name
	}
	return ""
}

// Timeout is the timeOut of a partition, declared or computed as the critical
// path; 0: none.
func (p *Plan) Timeout(name workflow.PartitionName) time.Duration {
	if part := p.Partition(name); part != nil {
		return part.Timeout
	}
	return 0
}

// Chain lists t, its contingency, that one's contingency and so on: the tasks
// that may fill the slot of t, in the order in which they are tried.
func (p *Plan) Chain(t workflow.TaskName) []workflow.TaskName { return p.task(t).chain }

// ResponseImmediate reports whether the end of t must be reported at once
// (docs/systems.md, Partitions): it has a successor in another partition.
//
// A contingency reports like the task in whose place it runs: the successors
// of that slot are its successors; one that is placed nowhere runs in no
// partition, so all of them are elsewhere. A task whose contingency is placed
// in another partition reports as well: that partition's holder waits for its
// failure exactly as it would with the rule failed(t), and must learn that
// there will be none.
func (p *Plan) ResponseImmediate(t workflow.TaskName) bool { return len(p.Listeners(t)) > 0 }

// Listeners names the partitions that an immediate report of the end of t goes
// to: those, besides its own, that hold a successor. By name.
func (p *Plan) Listeners(t workflow.TaskName) []workflow.PartitionName {
	return p.task(t).listeners
}

// EmergencyListeners names the partitions, besides that of t, that hold a task
// with time-to-wait one of whose predecessors waits for t. A report of t that
// makes this predecessor READY starts the wait clock there, so it goes to them
// as well (docs/systems.md, Partitions). This does not by itself make t
// report at once. By name.
func (p *Plan) EmergencyListeners(t workflow.TaskName) []workflow.PartitionName {
	i, ok := p.graph.index[t]
	if !ok {
		return nil
	}
	var alarms []int
	for _, to := range p.graph.out[i] {
		if to.kind != Covers {
			alarms = append(alarms, p.tasks[to.task].alarms...)
		}
	}
	return p.elsewhere(i, alarms)
}
