package aptitude

// The names of things, each with its own type so that a signature tells what
// it takes.
type (
	// ResourceID names a resource: a partner, or a user.
	ResourceID string
	// TaskID names a task of a process.
	TaskID string
	// ItemID names one piece of work: a task of one instance.
	ItemID string
)

// Item is one piece of work that waits for a resource.
type Item struct {
	ID      ItemID
	Task    TaskID
	Time    float64 // expected processing time, above 0
	Ready   float64 // the moment it became ready
	Urgency Urgency

	// Instance is what dispatching rules compare.
	Instance Instance
	// Violations are the constraints that each resource would break by taking
	// the item. They may speak of the task, the resource, the instance's data
	// and who performed other tasks, so the caller evaluates them.
	Violations map[ResourceID][]Violation
	// Rejected are the resources that have turned the item down.
	Rejected []ResourceID
}

// Instance is what dispatching rules know of the instance that an item belongs to.
type Instance struct {
	Start    float64 // the moment it started
	Expected float64 // expected time of all its tasks together
	Due      float64 // the moment it should end; 0: none
}

// Resource is someone who takes work, as things stand.
type Resource struct {
	ID          ResourceID
	Suitability map[TaskID]float64 // absent or 0: must never get the task
	// Rested is the availability with nothing to do, in [0, 1]; 0: absent.
	Rested float64
	// Availability is what is left of Rested, in [0, Rested].
	Availability float64
	// Busy resources take nothing from a shared queue.
	Busy bool
	// LastFlow is the flow time (start to end) of the task it was last given; 0: none.
	LastFlow float64
	// InHand is, per task, the expected time of the items that it has in hand, where the
	// queue may not know of all of them: of its own items it bears a share at most.
	InHand map[TaskID]float64
}

// Queue is the work that waits, and how much of each task is in hand already.
type Queue struct {
	Now     float64
	Waiting []Item
	// InHand is, per task, the expected time of the items that are assigned and
	// not finished. With what waits it makes FilaW: the task's items that are
	// ready or under execution.
	InHand map[TaskID]float64
}

// backlog is the expected time of the items in each waiting task's FilaW.
func (q *Queue) backlog() map[TaskID]float64 {
	sum := make(map[TaskID]float64, len(q.InHand))
	for i := range q.Waiting {
		it := &q.Waiting[i]
		if _, ok := sum[it.Task]; !ok {
			sum[it.Task] = q.InHand[it.Task]
		}
		sum[it.Task] += it.Time
	}
	return sum
}
