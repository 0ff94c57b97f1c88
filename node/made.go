package node

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file registers by itself what tasks with produces made here, so that the
// Optimizer finds it. A set is stored in front of the fact that its task succeeded:
// after a crash it may be there without the fact, never the fact without it.
// Partners learn of it with this node's record, which goes out on this account no
// more often than news of its load.

// register is what is to be stored of a data set that a task made, and what is to
// be done once that is durable; nothing where it is not to be registered.
func (n *Node) register(made choreo.Made) ([]kv.Write, func(error)) {
	d, why := dataOf(made)
	var writes []kv.Write
	if why == "" {
		writes, why = n.people.replace(d)
	}
	if why != "" {
		n.log.Info("what a task made is not registered", "task", made.Task.Name, "data", made.Task.Produces.Name, "why", why)
		return nil, nil
	}
	return writes, func(err error) {
		if err == nil {
			n.people.register(d)
			n.made.any.Store(true)
			n.nudge()
		}
	}
}

// dataOf is the data set that a task made; why says what it lacks for one.
func dataOf(made choreo.Made) (d storedData, why string) {
	p := made.Task.Produces
	for _, name := range made.Task.Out {
		if made.Values[name] == nil {
			return d, "it wrote no " + string(name)
		}
	}
	switch {
	case len(made.Task.Out) == 0:
		return d, "it names no data under out"
	case !workflow.ValidName(p.Name):
		return d, "a data set cannot have this name"
	case made.Unsure != "":
		return d, "it is not certain that the task read " + string(made.Unsure) + " as it is now"
	}
	content, err := json.Marshal(made.Values)
	if err != nil {
		return d, err.Error()
	}
	if len(content) > MaxData {
		return d, "it is too large"
	}
	d = storedData{Name: p.Name, Content: content}
	d.Terms = dataTerms{ByTask: true, Made: made.At, Until: until(made.At, p.Valid), Readers: p.Readers}
	if len(partition.MadeFrom(made.Task)) > 0 {
		d.Terms.From = madeFrom(made.From)
	}
	return d, ""
}

// madeFrom says in short of which values something was made. JSON writes them in
// one way, whatever they came through.
func madeFrom(values map[workflow.DataName]workflow.Value) []byte {
	b, err := json.Marshal(values)
	if err != nil {
		return []byte(err.Error()) // no other data is like it
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}

// replace is what is to be stored for a data set that a task made, in place of what
// a task made under this name before, whatever the clock said then. What a user
// registered stays. Of what tasks made the oldest goes when there is too much.
func (p *people) replace(d storedData) (writes []kv.Write, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now().Wall.UnixMilli()
	if was, known := p.data[d.Name]; known && !was.Terms.ByTask && was.Terms.valid(now) {
		return nil, "a user registered data under this name"
	}
	writes = []kv.Write{{Key: dataKey(d.Name), Value: encode(d)}}
	for _, old := range p.superfluous(d.Name, now) {
		writes = append(writes, kv.Write{Key: dataKey(old), Delete: true})
	}
	return writes, ""
}

// superfluous names the data sets that go when another is made: those that are not
// valid any more, and the oldest beyond what a record holds. The caller holds mu.
func (p *people) superfluous(but string, now int64) []string {
	var gone []string
	var made []storedData
	for name, d := range p.data {
		switch {
		case name == but:
		case !d.Terms.valid(now):
			gone = append(gone, name)
		case d.Terms.ByTask:
			made = append(made, d)
		}
	}
	slices.SortFunc(made, func(a, b storedData) int {
		return cmp.Or(cmp.Compare(b.Terms.Made, a.Terms.Made), cmp.Compare(a.Name, b.Name))
	})
	for _, d := range made[min(len(made), membership.MaxItems-1):] {
		gone = append(gone, d.Name)
	}
	slices.Sort(gone)
	return gone
}

// register takes up a data set that is durable.
func (p *people) register(d storedData) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range p.superfluous(d.Name, p.clock.Now().Wall.UnixMilli()) {
		delete(p.data, old)
	}
	p.data[d.Name] = d
}

// madeNews is what this node has to tell of data sets that tasks made.
type madeNews struct {
	any  atomic.Bool // there is one that no record offers yet
	next time.Duration
}

// tellMade publishes what tasks made here. It says after what time it is to be
// asked again; 0: when there is more. What is not valid any more stays in the record
// until there is a new one: whoever reads it looks at the time.
func (n *Node) tellMade(now time.Duration) time.Duration {
	switch {
	case !n.made.any.Load():
		return 0
	case now < n.made.next:
		return n.made.next - now
	}
	n.made.any.Store(false)
	n.made.next = now + n.loadPause()
	if err := n.announce(n.carrier.Addrs()); err != nil {
		n.made.any.Store(true)
		n.log.Error("the data sets that were made here could not be published", "error", err)
	}
	return 0
}
