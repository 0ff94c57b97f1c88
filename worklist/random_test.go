package worklist

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

var (
	seeds = flag.Int("seeds", 150, "how many random histories")
	first = flag.Uint64("first", 1, "the first seed")
)

// history is a random history: people act, holders decide, verdicts and restored stores
// make several holders, and facts travel late, or not at all until the end.
type history struct {
	*world
	rnd   *rand.Rand
	names []workflow.PartnerID
}

func newHistory(t testing.TB, seed uint64) *history {
	h := &history{newWorld(t), rand.New(rand.NewPCG(seed, 13)), []workflow.PartnerID{"p", "p#2", "q", "van", "car"}}
	h.terms = Terms{Responsible: "ana", Administrators: "chief"}
	if h.rnd.IntN(2) == 0 {
		h.terms.Policy = Policy{workflow.NotifyFewestAssigned, 1 + h.rnd.IntN(2)}
	}
	h.people["ana"] = &Person{User: "ana", Active: true}
	h.people["rui"] = &Person{User: "rui", Active: true, Roles: []workflow.RoleName{"chief"}}
	for _, u := range []User{"bia", "caio", "davi"} {
		h.people[u] = &Person{User: u, Active: h.rnd.IntN(4) > 0, Roles: []workflow.RoleName{"r"}}
	}
	h.stores = []Store{{Name: "crane", Capacity: 1 + h.rnd.IntN(2), Partition: "depot",
		Keepers: []Keeping{{Partner: "q"}}}}
	names := []workflow.TaskName{"a", "b", "c", "d"}
	for i, name := range names {
		s := taskSpec{name: name, holder: "p", Task: Task{Role: "r", Offline: h.rnd.IntN(3) > 0}}
		if i > 0 && h.rnd.IntN(2) == 0 {
			s.after = names[h.rnd.IntN(i):i]
		}
		if h.rnd.IntN(3) == 0 {
			s.Due, s.Transfer = Due{After: 48 * time.Hour}, 2*time.Hour
		}
		if h.rnd.IntN(4) == 0 {
			s.Holds = []Resource{"crane"}
		}
		h.tasks = append(h.tasks, s)
	}
	for _, n := range h.names {
		h.node(n)
	}
	return h
}

func (h *history) pick() *node       { return h.node(h.names[h.rnd.IntN(len(h.names))]) }
func (h *history) holder() *node     { return h.node(h.names[h.rnd.IntN(3)]) }
func (h *history) user() User        { return []User{"ana", "bia", "caio", "davi", "rui"}[h.rnd.IntN(5)] }
func (h *history) some(n *node) Item { return n.item([]string{"a", "b", "c", "d"}[h.rnd.IntN(4)]) }

// step has one thing happen.
func (h *history) step() {
	switch k := h.rnd.IntN(20); {
	case k < 5:
		h.holder().decide()
	case k < 9:
		h.asks()
	case k < 12:
		h.works()
	case k < 15:
		h.pick().deliver(h.pick())
	case k == 15:
		h.now += time.Duration(h.rnd.IntN(100)) * time.Hour
	case k == 16:
		h.orders()
	case k == 17 && h.rnd.IntN(2) == 0:
		n := h.pick()
		n.write("", replaced{h.some(n), []workflow.PartnerID{"p", "q"}[h.rnd.IntN(2)]})
	case k == 18:
		h.lies()
	case k == 19:
		u := h.user()
		h.people[u].Active = !h.people[u].Active
		h.people[u].Connected = h.now
		for _, n := range h.nodes {
			n.board.Changed("")
		}
	}
}

func (h *history) asks() {
	n := h.holder()
	items := []Item{h.some(n)}
	if h.rnd.IntN(3) == 0 {
		items = append(items, h.some(n))
	}
	u, mode, anew := h.user(), []Mode{Select, Lock}[h.rnd.IntN(2)], []ID(nil)
	if has, held := n.board.Holds(items[0]); held && mode == Lock && h.rnd.IntN(2) == 0 {
		u, anew = has.User, []ID{has.Word}
	}
	_, _ = n.ask(u, mode, anew, items...)
}

// works has somebody work on an item for which there is a grant, whether or not it counts.
func (h *history) works() {
	n, u := h.pick(), h.user()
	i := h.some(n)
	g := n.grant(i, u)
	if g.IsZero() {
		return
	}
	switch h.rnd.IntN(6) {
	case 0:
		n.write(u, Release{Item: i, Grant: g})
	case 1:
		n.write(u, Begin{i, g})
	default:
		n.write(u, Result{Item: i, Grant: g, Failed: h.rnd.IntN(4) == 0})
	}
}

func (h *history) orders() {
	n, u := h.pick(), []User{"ana", "rui", "bia"}[h.rnd.IntN(3)]
	i := h.some(n)
	switch h.rnd.IntN(6) {
	case 5:
		h.passes()
	case 0:
		n.write(u, Order{Item: i, What: []string{Continue, Stop, Again}[h.rnd.IntN(3)]})
	case 1:
		n.write(u, Extend{i, Due{After: time.Duration(50+h.rnd.IntN(50)) * time.Hour}})
	case 2:
		n.write(u, Notify{Policy{workflow.NotifyFewestSelected, h.rnd.IntN(3)}})
	case 3:
		to := h.user()
		n.write(u, Transfer{Item: i, To: to, Cause: ByDelegation, Lease: time.Hour})
	case 4:
		if it := n.board.items[i]; it != nil && len(it.works) > 0 {
			n.write(u, Adopt{i, it.works[h.rnd.IntN(len(it.works))].fact.ID})
		}
	}
}

// passes has somebody ask a holder to pass an item on, or a holder that lies write it all the same.
func (h *history) passes() {
	n, by, to, role := h.holder(), h.user(), h.user(), workflow.RoleName("")
	i := h.some(n)
	if k := h.rnd.IntN(6); k < 3 {
		to, role = "", []workflow.RoleName{"r", "chief", ""}[k]
	}
	s, _ := n.board.Holds(i)
	if h.rnd.IntN(6) == 0 {
		s.Grant = n.grant(i, h.user())
	}
	x, person := NewTransfer(i, s.Grant, to, role, ""), Person{}
	if to != "" {
		person = *h.people[to]
	}
	already, err := n.board.Pass(n.partner(), x, *h.people[by], person)
	if err == nil && !already || h.rnd.IntN(8) == 0 {
		n.write(by, x)
	}
}

// lies has a node say what it may not, or may not say now.
func (h *history) lies() {
	n, u := h.pick(), h.user()
	i := h.some(n)
	g := n.grant(i, h.user())
	switch h.rnd.IntN(6) {
	case 0:
		n.write(u, Grant{Items: []Item{i, i}, Mode: Lock})
	case 1:
		n.write(u, Result{Item: i, Grant: g})
	case 2:
		n.write(u, Revoke{Item: i, Grant: g, Cause: ByLease})
	case 3:
		n.write(u, Adopt{i, g})
	case 4:
		n.write("", Reserve{Item: i, Resources: []Resource{"crane"}})
	case 5:
		if it := n.board.items[i]; it != nil && len(it.works) > 0 {
			n.write("", Close{Item: i, Result: it.works[h.rnd.IntN(len(it.works))].fact.ID})
		}
	}
}

// TestAnyOrder: whatever happens, the same facts in any order, however often, are the same
// state; never do two people hold an item; no work is lost, and no item forgotten.
func TestAnyOrder(t *testing.T) {
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		h := newHistory(t, seed)
		for range 20 + h.rnd.IntN(60) {
			h.step()
			for _, n := range h.names {
				h.checkHolds(h.node(n), seed)
			}
		}
		h.meet()
		h.checkSame(seed)
		h.checkWork(seed)
		h.checkForgotten(seed)
		if t.Failed() {
			return
		}
	}
}

// meet gives every node all facts.
func (h *history) meet() {
	for range 2 {
		for _, a := range h.names {
			for _, b := range h.names {
				h.node(a).deliver(h.node(b))
			}
		}
	}
}

// shuffled are all facts in a random order in which each comes after its past.
func (h *history) shuffled() (out []*told) {
	left := slices.Clone(h.node("p").has)
	done := map[ID]bool{}
	for len(left) > 0 {
		i := h.rnd.IntN(len(left))
		ready := true
		for id := range left[i].past {
			ready = ready && done[id]
		}
		if ready {
			done[left[i].ID] = true
			out = append(out, left[i])
			left = slices.Delete(left, i, i+1)
		}
	}
	return out
}

func (h *history) checkSame(seed uint64) {
	want := h.node("p").show()
	for _, name := range h.names {
		if got := h.node(name).show(); got != want {
			h.t.Errorf("seed %d: %s and p disagree:\n%s\np:\n%s", seed, name, got, want)
			return
		}
	}
	for try := range 3 {
		n := h.node(workflow.PartnerID(fmt.Sprintf("new%d", try)))
		for _, f := range h.shuffled() {
			n.take(f)
			n.board.Add(f.Fact, 0)
		}
		if got := n.show(); got != want {
			h.t.Errorf("seed %d: in another order:\n%s\nnot:\n%s", seed, got, want)
		}
		h.checkHolds(n, seed)
	}
}

// checkHolds looks for an item that two people hold.
func (h *history) checkHolds(n *node, seed uint64) {
	for _, t := range h.tasks {
		holders := map[User]bool{}
		for _, it := range n.board.slots[t.name] {
			counting := 0
			for _, hold := range it.holds {
				if hold.Ended == "" {
					counting++
				}
			}
			if counting > 1 || counting == 1 && it.open == nil {
				h.t.Errorf("seed %d: %d grants of %s count", seed, counting, h.itemName(it.Item))
			}
			if v, known := n.board.View(it.Item); known && (v.State == Selected || v.State == Locked) {
				holders[v.Holder] = true
			}
		}
		if len(holders) > 1 {
			h.t.Errorf("seed %d: %v hold %s at %s", seed, holders, t.name, n.name)
		}
	}
}

// checkWork looks for results that are neither what their item ended with nor kept with a
// reason, and for ends upon results that were revoked first.
func (h *history) checkWork(seed uint64) {
	n := h.node("p")
	for _, f := range n.has {
		r, is := f.Body.(Result)
		g := h.facts[r.Grant]
		if !is || g == nil || f.User == "" || g.grantee() != f.User || !slices.Contains(g.Body.about(), r.Item) {
			continue
		}
		v, _ := n.board.View(r.Item)
		at := slices.IndexFunc(v.Works, func(w Work) bool { return w.ID == f.ID })
		if at < 0 {
			h.t.Errorf("seed %d: the result %s is lost", seed, f.label)
			continue
		}
		if w := v.Works[at]; w.Counts && !v.End.Adopted {
			for _, o := range n.has {
				x, revokes := o.Body.(Revoke)
				t, passes := o.Body.(Transfer)
				ended := revokes && x.Grant == r.Grant ||
					passes && t.Grant == r.Grant && n.board.items[r.Item].refused[o.ID] == ""
				if ended && o.Partner == v.Partner && h.knew(v.End.By, o.ID) {
					h.t.Errorf("seed %d: the result %s counts under a grant that its holder knew to be revoked", seed,
						f.label)
				}
			}
		}
	}
}

// checkForgotten has the holders decide until nothing is left: every item that waits for a
// person is then held until some moment, or offered to somebody who is here, or nobody of
// its role is.
func (h *history) checkForgotten(seed uint64) {
	for _, u := range []User{"ana", "bia", "caio", "davi", "rui"} {
		h.people[u].Active = true
	}
	for _, n := range h.nodes {
		n.board.Changed("")
	}
	wake := map[workflow.PartnerID]time.Duration{}
	for range 10 {
		for _, name := range []workflow.PartnerID{"p", "q"} {
			_, out := h.node(name).decide()
			wake[name] = out.Wake
			h.meet()
		}
	}
	n := h.node("p")
	for _, i := range n.board.Items() {
		v, _ := n.board.View(i)
		it := n.board.items[i]
		switch {
		case v.State == Open && v.Handed == "" && !v.All && !h.somebody(v):
			h.t.Errorf("seed %d: %s is offered to nobody", seed, h.itemName(i))
		case v.State == Waiting && it.Ready && v.Lacks == "":
			h.t.Errorf("seed %d: %s waits for nothing", seed, h.itemName(i))
		case it.open != nil && it.open.lease.Lease > 0 && it.InCharge &&
			(wake[it.Holder] == 0 || wake[it.Holder] > h.now+it.open.lease.Lease):
			h.t.Errorf("seed %d: nobody looks at the lease of %s", seed, h.itemName(i))
		}
	}
	crane := n.board.stores["crane"]
	n.board.countUnits()
	if len(crane.have) < crane.Capacity && len(n.board.wanting()) > 0 {
		h.t.Errorf("seed %d: a crane is free, and items wait for it", seed)
	}
}

func (h *history) somebody(v View) bool {
	return slices.ContainsFunc(v.To, func(u User) bool {
		return h.people[u].Active && slices.Contains(h.people[u].Roles, v.Role)
	})
}
