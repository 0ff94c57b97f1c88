package worklist

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// world is a mesh for tests: nodes with boards, people, and what the core would conclude.
type world struct {
	t      testing.TB
	terms  Terms
	tasks  []taskSpec
	stores []Store
	people map[User]*Person
	nodes  map[workflow.PartnerID]*node
	facts  map[ID]*told
	labels map[ID]string
	now    time.Duration
	pulls  map[workflow.TaskName]Sight
}

// taskSpec is a task: who holds it at first, and what it waits for.
type taskSpec struct {
	name   workflow.TaskName
	holder workflow.PartnerID
	after  []workflow.TaskName
	Task
}

// told is a fact with its past.
type told struct {
	*Fact
	label string
	past  map[ID]bool
}

// replaced stands for a verdict of the core: an attempt is given to another partner.
type replaced struct {
	was Item
	by  workflow.PartnerID
}

func (replaced) kind() string  { return "verdict" }
func (replaced) about() []Item { return nil }

// cancelled stands for the core's end of an instance.
type cancelled struct{}

func (cancelled) kind() string  { return "cancelled" }
func (cancelled) about() []Item { return nil }

// keeps stands for a verdict of the core: a resource is kept by another partner.
type keeps struct {
	what Resource
	by   workflow.PartnerID
}

func (keeps) kind() string  { return "keeps" }
func (keeps) about() []Item { return nil }

// node is a partner's node. P#2 is P once more, with a store that was restored.
type node struct {
	w     *world
	name  workflow.PartnerID
	board *Board
	has   []*told
	known map[ID]bool
	since map[Item]time.Duration
	rules []*told // what stands for words of the core, in the order of facts
}

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	return &world{
		t: t, people: map[User]*Person{}, nodes: map[workflow.PartnerID]*node{}, facts: map[ID]*told{},
		labels: map[ID]string{}, pulls: map[workflow.TaskName]Sight{},
	}
}

func (w *world) knew(later, earlier ID) bool {
	f := w.facts[later]
	return f != nil && f.past[earlier]
}

func (w *world) node(name workflow.PartnerID) *node {
	n := w.nodes[name]
	if n == nil {
		n = &node{w: w, name: name, board: New(w.terms, w.knew), known: map[ID]bool{}, since: map[Item]time.Duration{}}
		w.nodes[name] = n
		n.conclude()
	}
	return n
}

func (w *world) moment() Moment { return Moment{Boot: w.now, Wall: start.Add(w.now)} }

// With, Known and Visible make the world the people that a node knows.
func (w *world) With(r workflow.RoleName) (out []Person) {
	for _, u := range slices.Sorted(maps.Keys(w.people)) {
		if p := w.people[u]; r == "" || slices.Contains(p.Roles, r) {
			out = append(out, *p)
		}
	}
	return out
}

// Known is a person by key.
func (w *world) Known(u User) (Person, bool) {
	if p := w.people[u]; p != nil {
		return *p, true
	}
	return Person{}, false
}

// Visible is as the story says.
func (w *world) Visible(i Item) Sight { return w.pulls[i.Slot] }

// partner is whose node it is.
func (n *node) partner() workflow.PartnerID {
	name, _, _ := strings.Cut(string(n.name), "#")
	return workflow.PartnerID(name)
}

// write makes a fact at a node, which knows all that the node has.
func (n *node) write(u User, body Body) *told {
	label := fmt.Sprintf("f%d", len(n.w.facts)+1)
	f := &told{
		label: label, past: maps.Clone(n.known),
		Fact: &Fact{
			ID: sha256.Sum256([]byte(label)), Partner: n.partner(), User: u, Body: body, Time: 1,
			At: start.Add(n.w.now),
		},
	}
	for _, o := range n.has {
		f.Time = max(f.Time, o.Time+1)
	}
	if p := n.w.people[u]; p != nil {
		f.Roles = slices.Clone(p.Roles)
	}
	n.w.facts[f.ID], n.w.labels[f.ID] = f, label
	n.take(f)
	return f
}

// take puts a fact in, after its past.
func (n *node) take(f *told) {
	if n.known[f.ID] {
		return
	}
	n.known[f.ID] = true
	n.has = append(n.has, f)
	switch f.Body.(type) {
	case replaced, keeps, cancelled:
		at, _ := slices.BinarySearchFunc(n.rules, f, func(a, b *told) int { return a.compare(b.Fact) })
		n.rules = slices.Insert(n.rules, at, f)
	}
	n.board.Add(f.Fact, n.w.now)
	n.conclude()
}

// deliver brings one node all that another has, in an order of its own.
func (n *node) deliver(to *node) int {
	before := len(to.has)
	for _, f := range n.has {
		to.take(f)
	}
	return len(to.has) - before
}

// attempt is an attempt as the model of the core sees it.
type attempt struct {
	item   Item
	holder workflow.PartnerID
	depth  int
}

// conclude does for the board what the core would: attempts, who is in charge, what is ready.
func (n *node) conclude() {
	over := slices.ContainsFunc(n.rules, func(f *told) bool { _, is := f.Body.(cancelled); return is })
	for _, t := range n.w.tasks {
		all := n.attempts(t)
		ready := !over && !slices.ContainsFunc(t.after, func(a workflow.TaskName) bool { return !n.succeeded(a) })
		charge := n.charge(all)
		for _, a := range all {
			p := Place{
				Item: a.item, Holder: a.holder, Task: t.Task, InCharge: a.item == charge, Ready: ready,
				Waits: n.waits(t), Over: over,
			}
			if ready {
				if _, was := n.since[a.item]; !was {
					n.since[a.item] = n.w.now
				}
				p.Since = n.since[a.item]
			}
			if it := n.board.items[a.item]; it != nil {
				e := it.end()
				p.Unhandled = e != nil && e.Failed
				if reflect.DeepEqual(p, it.Place) {
					continue
				}
			}
			n.board.Set(p)
		}
	}
	n.concludeStores()
}

func (n *node) concludeStores() {
	for _, s := range n.w.stores {
		for _, f := range n.rules {
			if k, is := f.Body.(keeps); is && k.what == s.Name {
				s.Keepers = append([]Keeping{{k.by, f.ID}}, s.Keepers...)
			}
		}
		if was := n.board.stores[s.Name]; was == nil || !reflect.DeepEqual(was.Store, s) {
			n.board.SetStore(s)
		}
	}
}

// attempts are a task's attempts that a node knows of.
func (n *node) attempts(t taskSpec) []attempt {
	all := []attempt{{Item{Slot: t.name}, t.holder, 0}}
	for _, f := range n.rules {
		if r, is := f.Body.(replaced); is && r.was.Slot == t.name {
			i := slices.IndexFunc(all, func(a attempt) bool { return a.item == r.was })
			all = append(all, attempt{Item{f.ID, t.name}, r.by, all[i].depth + 1})
		}
	}
	return all
}

// charge is the attempt in charge: one that has succeeded, else the deepest, then the one
// of the verdict with the lower hash.
func (n *node) charge(all []attempt) Item {
	best := slices.MinFunc(all, func(a, b attempt) int {
		return cmp.Or(-compareBool(n.ended(a.item), n.ended(b.item)), -cmp.Compare(a.depth, b.depth),
			a.item.Compare(b.item))
	})
	return best.item
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (n *node) ended(i Item) bool {
	it := n.board.items[i]
	return it != nil && it.end() != nil && !it.end().Failed
}

func (n *node) succeeded(t workflow.TaskName) bool {
	return slices.ContainsFunc(n.board.slots[t], func(it *item) bool { return n.ended(it.Item) })
}

func (n *node) waits(t taskSpec) []workflow.TaskName {
	return slices.DeleteFunc(slices.Clone(t.after), n.succeeded)
}

// item is the attempt in charge of a slot, as a node sees it.
func (n *node) item(slot string) Item {
	for _, t := range n.w.tasks {
		if string(t.name) == slot {
			return n.charge(n.attempts(t))
		}
	}
	n.w.t.Fatalf("there is no task %s", slot)
	return Item{}
}

// decide has a node write what is to be written, until there is nothing left.
func (n *node) decide() (written []*told, out Effects) {
	for range 60 {
		out = n.board.Decide(n.partner(), n.w, n.w.moment())
		if len(out.Write) == 0 {
			return written, out
		}
		for _, body := range out.Write {
			written = append(written, n.write(n.signer(body), body))
		}
	}
	n.w.t.Fatalf("%s never has enough", n.name)
	return nil, out
}

// signer is nobody: what a holder writes by itself no person signs.
func (n *node) signer(Body) User { return "" }

// ask has a user ask a node for items.
func (n *node) ask(u User, m Mode, anew []ID, items ...Item) (*told, error) {
	r := Request{Items: items, Mode: m, Anew: anew, Person: Person{User: u}}
	if p := n.w.people[u]; p != nil {
		r.Person = *p
	}
	g, err := n.board.Ask(n.partner(), r)
	if err != nil || len(g.Items) == 0 {
		return nil, err
	}
	return n.write(u, g), nil
}

// grant is the last grant of an item to a user that a node knows of, whether or not it counts.
func (n *node) grant(i Item, u User) ID {
	for _, f := range slices.Backward(n.has) {
		switch x := f.Body.(type) {
		case Grant:
			if f.User == u && slices.Contains(x.Items, i) {
				return f.ID
			}
		case Transfer:
			if x.Item == i && x.To == u {
				return f.ID
			}
		}
	}
	return ID{}
}

// show is all that a board says of the items, which is the same for the same facts.
func (n *node) show() string {
	var b strings.Builder
	for _, i := range n.board.Items() {
		v, _ := n.board.View(i)
		fmt.Fprintf(&b, "%s at %s: %s\n", n.w.itemName(i), v.Partner, n.standing(v))
		for _, x := range v.Works {
			fmt.Fprintf(&b, "  work %s of %s: %s\n", n.w.label(x.ID), x.User, n.w.judged(x))
		}
		for _, h := range n.board.items[i].holds {
			if l, lost := n.board.items[i].loss(h); lost {
				fmt.Fprintf(&b, "  told %s: %s%s\n", l.User, l.Why, n.w.by(l.By))
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.board.Refused()),
		func(a, b ID) int { return n.w.facts[a].compare(n.w.facts[b].Fact) }) {
		fmt.Fprintf(&b, "refused %s: %s: %s\n", n.w.label(id), n.w.facts[id].Body.kind(), n.board.Refused()[id])
	}
	return b.String()
}

func (w *world) judged(x Work) string {
	what := "success"
	if x.Failed {
		what = "failure"
	}
	switch {
	case x.Counts:
		return what + " counts"
	case x.Why == "":
		return what + " waits for the holder"
	}
	return what + " is kept: " + x.Why
}

func (w *world) by(id ID) string {
	if id.IsZero() {
		return ""
	}
	return " (" + w.label(id) + ")"
}

func (w *world) label(id ID) string { return cmp.Or(w.labels[id], id.String()) }

func (w *world) itemName(i Item) string {
	if i.Assigned.IsZero() {
		return string(i.Slot)
	}
	return string(i.Slot) + "/" + w.label(i.Assigned)
}

func (n *node) standing(v View) string {
	s := string(v.State)
	switch {
	case v.End != nil && v.End.Failed:
		s += " failed"
	case v.End != nil && v.End.Adopted:
		s += " adopted"
	}
	if v.Holder != "" {
		s += " " + string(v.Holder)
	}
	if v.Begun {
		s += " begun"
	}
	if v.Handed != "" {
		s += " for " + string(v.Handed)
	} else if v.State == Open && (v.All || len(v.To) > 0) {
		s += " to " + offered(v)
	}
	if v.Lacks != "" {
		s += " lacks " + v.Lacks
	}
	if len(v.Beyond) > 0 {
		s += fmt.Sprintf(" beyond %v", v.Beyond)
	}
	if v.Asks {
		s += " asks the responsible user"
	}
	if v.Rounds > 0 {
		s += fmt.Sprintf(" round %d", v.Rounds+1)
	}
	return s
}

func offered(v View) string {
	if v.All {
		return "all of " + cmp.Or(string(v.Role), "the mesh")
	}
	var out []string
	for _, u := range v.To {
		out = append(out, string(u))
	}
	return strings.Join(out, ", ")
}
