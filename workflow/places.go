package workflow

// Places say where in a text tasks, partitions and the keys of distribution stand.
type Places struct{ r *reader }

// PlacesIn are the places in a text that has no mistakes. shared are the pieces that it may take.
func PlacesIn(file string, src []byte, shared Shared) Places {
	pr := &problems{file: file}
	r := newReader(pr)
	r.shared = shared
	if root := readSource(src, pr); root != nil {
		r.definition(root)
	}
	return Places{r}
}

// Task is the line and the column, from 1, of a task's key, or of the task if it is not written
// there, or taken from a model; of what the text does not have it is the first line.
func (p Places) Task(name TaskName, key string) (line, col int) {
	return p.of(p.r.def.Task(name), key)
}

// Partition is Task of a partition.
func (p Places) Partition(name PartitionName, key string) (line, col int) {
	for thing := range p.r.heads {
		if d, ok := thing.(*PartitionDecl); ok && d.Name == name {
			return p.of(d, key)
		}
	}
	return 1, 1
}

// Workflow is Task of the workflow as a whole.
func (p Places) Workflow(key string) (line, col int) { return p.of(p.r.def, key) }

// Distribution is Task of what the text says of distribution.
func (p Places) Distribution(key string) (line, col int) { return p.of(&p.r.def.Distribution, key) }

func (p Places) of(thing any, key string) (line, col int) {
	n := p.r.where(thing, key)
	return n.line, n.col
}
