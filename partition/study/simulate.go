package study

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// simulation runs one problem under one mechanism.
//
// The reading of the source (docs/study.md): an item that is assigned stands
// in its resource's own list and counts as in hand until it is finished; then
// the resource has back the availability that the item cost. What nobody can
// take now stays in the shared queue, which is distributed again whenever
// something became ready or ended.
type simulation struct {
	scenario *Scenario
	problem  *Problem
	policy   aptitude.Policy
	rnd      *rand.Rand

	now       float64
	agenda    agenda
	waiting   []aptitude.Item             // the shared queue, in the order of becoming ready
	jobs      map[aptitude.ItemID]*job    // what became ready
	inHand    map[aptitude.TaskID]float64 // expected time of what is assigned and not finished
	resources []aptitude.Resource         // as Allocate sees them
	index     map[aptitude.ResourceID]int // into resources
	lists     []list                      // per resource
	missing   [][]int                     // per instance and task: predecessors that have not ended
	best      map[aptitude.TaskID]float64 // the best quality to be had
	violate   map[aptitude.TaskID]map[aptitude.ResourceID][]aptitude.Violation
	done      []Work
	quality   aptitude.Quality
}

// job is an item with what became of it.
type job struct {
	Work
	item aptitude.Item
	load float64 // the availability that it costs its resource
	wake float64 // the moment for which a wake is in the agenda; 0: none
}

// list is the work of one resource.
type list struct {
	running *job
	waiting []*job // in the order of assignment
}

func simulate(s *Scenario, p *Problem, m aptitude.Mechanism, rnd *rand.Rand) (Result, []Work, error) {
	sim := newSimulation(s, p, m, rnd)
	for i, at := range p.Arrival {
		sim.agenda.add(event{at: at, kind: arrival, instance: i})
	}
	for !sim.agenda.empty() {
		sim.now = sim.agenda.next()
		for !sim.agenda.empty() && sim.agenda.next() == sim.now {
			sim.handle(sim.agenda.pop())
		}
		if err := sim.distribute(); err != nil {
			return Result{}, nil, err
		}
		for r := range sim.lists {
			sim.begin(r)
		}
	}
	if len(sim.waiting) > 0 {
		return Result{}, nil, fmt.Errorf("task %q waits and nothing will happen any more", sim.waiting[0].Task)
	}
	// Not sim.now: the last event may be a wake for what has been done meanwhile.
	last := sim.done[len(sim.done)-1]
	return Result{Time: last.End, InstanceTime: p.instanceTime(sim.done), Quality: sim.quality.Total()}, sim.done, nil
}

func newSimulation(s *Scenario, p *Problem, m aptitude.Mechanism, rnd *rand.Rand) *simulation {
	n := s.Instances * len(s.Tasks)
	sim := &simulation{
		scenario: s, problem: p, policy: s.policy(m), rnd: rnd,
		jobs:    make(map[aptitude.ItemID]*job, n),
		inHand:  make(map[aptitude.TaskID]float64, len(s.Tasks)),
		index:   make(map[aptitude.ResourceID]int, len(s.Resources)),
		lists:   make([]list, len(s.Resources)),
		missing: make([][]int, s.Instances),
		best:    s.bestQualities(),
		violate: make(map[aptitude.TaskID]map[aptitude.ResourceID][]aptitude.Violation),
		done:    make([]Work, 0, n),
	}
	for i, r := range s.Resources {
		sim.index[r.Name] = i
		sim.resources = append(sim.resources, aptitude.Resource{
			ID: r.Name, Suitability: r.Suitability, Rested: r.Availability, Availability: r.Availability,
		})
	}
	for _, t := range s.Tasks {
		sim.violate[t.Name] = s.violations(t.Name)
	}
	return sim
}

func (sim *simulation) handle(e event) {
	switch e.kind {
	case arrival:
		sim.arrive(e.instance)
	case ending:
		sim.end(e.resource)
	}
}

// arrive starts a workflow instance.
func (sim *simulation) arrive(instance int) {
	sim.missing[instance] = make([]int, len(sim.scenario.Tasks))
	for t, task := range sim.scenario.Tasks {
		sim.missing[instance][t] = len(task.After)
		if len(task.After) == 0 {
			sim.ready(instance, t)
		}
	}
}

// ready puts a task of an instance into the shared queue.
func (sim *simulation) ready(instance, task int) {
	s, p := sim.scenario, sim.problem
	j := &job{
		Work: Work{Instance: instance, Task: task, Ready: sim.now},
		item: aptitude.Item{
			ID:       aptitude.ItemID(fmt.Sprint(instance+1, "/", s.Tasks[task].Name)),
			Task:     s.Tasks[task].Name,
			Time:     p.Mean[task],
			Ready:    sim.now,
			Urgency:  s.Urgency,
			Instance: sim.instance(instance),

			Violations: sim.violate[s.Tasks[task].Name],
		},
	}
	sim.jobs[j.item.ID] = j
	sim.waiting = append(sim.waiting, j.item)
}

// instance is what dispatching rules know of a workflow instance.
func (sim *simulation) instance(i int) aptitude.Instance {
	in := aptitude.Instance{Start: sim.problem.Arrival[i]}
	for _, mean := range sim.problem.Mean {
		in.Expected += mean
	}
	if f := sim.scenario.DueFactor; f > 0 {
		in.Due = in.Start + f*in.Expected
	}
	return in
}

// distribute hands out what waits, until nobody turns down anything.
func (sim *simulation) distribute() error {
	for again := true; again && len(sim.waiting) > 0; {
		again = false
		for r := range sim.lists {
			sim.resources[r].Busy = sim.lists[r].running != nil || len(sim.lists[r].waiting) > 0
		}
		taken := make(map[aptitude.ItemID]bool)
		for _, a := range sim.allocate() {
			switch {
			case a.Err != nil:
				return a.Err
			case a.Resource == "":
				sim.wakeAt(a.Item, a.Again)
			case sim.rejects(&a):
				again = true
			default:
				taken[a.Item] = true
				sim.assign(&a)
			}
		}
		sim.waiting = slices.DeleteFunc(sim.waiting, func(it aptitude.Item) bool { return taken[it.ID] })
	}
	return nil
}

// allocate asks the mechanism what becomes of what waits.
func (sim *simulation) allocate() []aptitude.Assignment {
	queue := aptitude.Queue{Now: sim.now, Waiting: sim.waiting, InHand: sim.inHand}
	rule := sim.scenario.Shares
	if rule == KeptShares || rule == RenewedShares && !sim.policy.Mechanism.Loads() {
		return aptitude.Allocate(queue, sim.resources, sim.policy, sim.rnd)
	}
	waiting := slices.SortedStableFunc(slices.Values(sim.waiting), func(a, b aptitude.Item) int {
		return sim.policy.Dispatching.Compare(&a, &b, sim.now)
	})
	var out []aptitude.Assignment
	held := sim.held()
	for _, it := range waiting {
		instance, seen := sim.jobs[it.ID].Instance, held
		if rule == EarlierShares {
			seen = held.until(instance)
		}
		queue.Waiting, queue.InHand = []aptitude.Item{it}, seen.times()
		as := aptitude.Allocate(queue, seen.resources(sim, &it), sim.policy, sim.rnd)[0]
		if as.Resource != "" {
			held = append(held, piece{instance, sim.index[as.Resource], it.Task, it.Time})
		}
		out = append(out, as)
	}
	return out
}

// pieces are what is in hand where that is looked at again for each item that is distributed,
// as live distribution does.
type pieces []piece

// piece is one item in hand, with the time that is expected of it.
type piece struct {
	instance, resource int
	task               aptitude.TaskID
	time               float64
}

func (sim *simulation) held() (out pieces) {
	for r, l := range sim.lists {
		if l.running != nil {
			out = append(out, l.running.piece(r))
		}
		for _, j := range l.waiting {
			out = append(out, j.piece(r))
		}
	}
	return out
}

func (j *job) piece(resource int) piece { return piece{j.Instance, resource, j.item.Task, j.item.Time} }

// until are the pieces of an instance and of those that arrived before it.
func (ps pieces) until(instance int) pieces {
	return slices.DeleteFunc(slices.Clone(ps), func(p piece) bool { return p.instance > instance })
}

// times add up the pieces by task.
func (ps pieces) times() map[aptitude.TaskID]float64 {
	out := map[aptitude.TaskID]float64{}
	for _, p := range ps {
		out[p.task] += p.time
	}
	return out
}

// resources are the resources as they stand before an item.
func (ps pieces) resources(sim *simulation, it *aptitude.Item) []aptitude.Resource {
	all, held := ps.times(), make([]map[aptitude.TaskID]float64, len(sim.lists))
	for r := range held {
		held[r] = map[aptitude.TaskID]float64{}
	}
	for _, p := range ps {
		held[p.resource][p.task] += p.time
	}
	all[it.Task] += it.Time
	out := slices.Clone(sim.resources)
	for r := range out {
		out[r].Busy = len(held[r]) > 0
		if !sim.policy.Mechanism.Loads() {
			continue
		}
		taken := 0.0
		for _, t := range sim.scenario.Tasks { // sums of floats depend on the order
			if has := held[r][t.Name]; has > 0 {
				taken += has / all[t.Name]
			}
		}
		out[r].Availability = out[r].Rested * max(0, 1-taken)
		out[r].InHand = map[aptitude.TaskID]float64{it.Task: held[r][it.Task]}
	}
	return out
}

// wakeAt makes sure that the queue is distributed at that moment; 0: no need.
func (sim *simulation) wakeAt(id aptitude.ItemID, at float64) {
	if j := sim.jobs[id]; at > j.wake {
		j.wake = at
		sim.agenda.add(event{at: at, kind: wake})
	}
}

// rejects lets chance decide whether the resource turns the item down. The
// last one to be asked does not.
func (sim *simulation) rejects(a *aptitude.Assignment) bool {
	if sim.scenario.Rejection == 0 || sim.rnd.Float64() >= sim.scenario.Rejection {
		return false
	}
	i := slices.IndexFunc(sim.waiting, func(it aptitude.Item) bool { return it.ID == a.Item })
	it := &sim.waiting[i]
	if len(it.Rejected)+1 >= len(a.Candidates) {
		return false
	}
	it.Rejected = append(it.Rejected, a.Resource)
	return true
}

// assign puts an item into its resource's list.
func (sim *simulation) assign(a *aptitude.Assignment) {
	j := sim.jobs[a.Item]
	j.Resource = sim.index[a.Resource]
	j.load = a.Load
	sim.resources[j.Resource].Availability -= a.Load
	sim.inHand[a.Task] += j.item.Time
	l := &sim.lists[j.Resource]
	l.waiting = append(l.waiting, j)
}

// begin lets a resource start the next item of its list if it is idle.
func (sim *simulation) begin(resource int) {
	l := &sim.lists[resource]
	if l.running != nil || len(l.waiting) == 0 {
		return
	}
	next := 0
	for i := range l.waiting {
		if sim.policy.Dispatching.Compare(&l.waiting[i].item, &l.waiting[next].item, sim.now) < 0 {
			next = i
		}
	}
	j := l.waiting[next]
	l.waiting = slices.Delete(l.waiting, next, next+1)
	l.running = j
	j.Start = sim.now
	j.End = sim.now + sim.problem.Duration[j.Instance][j.Task][resource]
	sim.agenda.add(event{at: j.End, kind: ending, resource: resource})
}

// end finishes what a resource executes.
func (sim *simulation) end(resource int) {
	l := &sim.lists[resource]
	j := l.running
	l.running = nil
	r := &sim.resources[resource]
	r.Availability += j.load
	if len(l.waiting) == 0 {
		r.Availability = r.Rested // no rounding error outlives the work
	}
	r.LastFlow = j.End - j.Start
	sim.inHand[j.item.Task] -= j.item.Time
	sim.quality.Add(sim.scenario.Resources[resource].quality(j.item.Task), sim.best[j.item.Task])
	sim.done = append(sim.done, j.Work)
	for t, task := range sim.scenario.Tasks {
		if slices.Contains(task.After, j.Task) {
			if sim.missing[j.Instance][t]--; sim.missing[j.Instance][t] == 0 {
				sim.ready(j.Instance, t)
			}
		}
	}
}
