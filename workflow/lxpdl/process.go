package lxpdl

// Process is a process definition as LXPDL has it.
type Process struct {
	Name        string // the file's name without folder and extension
	Tasks       []Task // in the order written
	Start, End  []string
	Transitions []Transition // those that go forward
	Loops       []Loop       // those that go back
}

// Loop says that First and all between it and Last may be done again when Last is done.
type Loop struct {
	First, Last string
}

// Task is a step of the process.
type Task struct {
	Name              string
	Roles             []string // who may perform it, in the order written; none: nobody needs to
	Time              float64  // in time units; 0: not stated
	Precond, Postcond string   // as written; informative only
}

// Transition says that Destination comes after Source; both are tasks.
type Transition struct {
	Source, Destination string
}

// Predecessors are the tasks that come directly before each task, in the order
// of the transitions, each once.
func (p *Process) Predecessors() map[string][]string {
	before := make(map[string][]string)
	seen := make(map[Transition]bool)
	for _, t := range p.Transitions {
		if !seen[t] {
			seen[t] = true
			before[t.Destination] = append(before[t.Destination], t.Source)
		}
	}
	return before
}
